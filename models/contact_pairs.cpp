#include "models/contact_pairs.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/builder.h"

namespace backdrive {
namespace {

bool is_ground(GeometryType type) {
  return type == GeometryType::plane || type == GeometryType::height_field;
}

/// Bodies that fixed joints make one, and what they hang on.
struct RigidGroups {
  std::vector<int> of;      ///< for each body the one of its group that is nearest the world, −1: the world
  std::vector<int> parent;  ///< for each body that others are counted as: the body its joint hangs on, −1: world
};

RigidGroups rigid_groups(const Model& model) {
  const std::size_t bodies = model.body_names.size();
  RigidGroups groups{std::vector<int>(bodies, -1), std::vector<int>(bodies, -1)};
  for (const Link& link : model.topology.links) {  // parents first
    if (link.body < 0) continue;
    const int parent = model.joint_parents[link.joint];
    if (link.type == JointType::fixed) {
      groups.of[link.body] = parent < 0 ? -1 : groups.of[parent];
    } else {
      groups.of[link.body] = link.body;
      groups.parent[link.body] = parent;
    }
  }
  return groups;
}

using Pairs = std::set<std::pair<int, int>>;

/// Unordered pairs of indices, the lower one first.
template <class List>
Pairs set_of(const List& pairs) {
  Pairs result;
  for (const auto& [a, b] : pairs) result.insert(std::minmax(a, b));
  return result;
}
bool has(const Pairs& pairs, int a, int b) {
  return !pairs.empty() && pairs.contains(std::minmax(a, b));
}

class PairFinder {
 public:
  explicit PairFinder(const Model& model)
      : model_(model),
        groups_(rigid_groups(model)),
        excluded_(set_of(model.excluded_contacts)),
        apart_(set_of(model.excluded_shapes)),
        included_(set_of(model.included_contacts)) {
    for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
      if (model.joint_loops[j]) excluded_.insert(std::minmax(model.joint_parents[j], model.joint_children[j]));
    }
    check_included();
  }

  /// Shapes that may touch anything at all.
  std::vector<int> candidates() const {
    std::vector<char> named(model_.shape_names.size(), 0);
    for (const auto& [a, b] : included_) named[a] = named[b] = 1;
    std::vector<int> shapes;
    for (int s = 0; s < static_cast<int>(named.size()); ++s) {
      const CollisionFilter& filter = model_.shape_filters[s];
      if (named[s] || (filter.groups && filter.meets)) shapes.push_back(s);
    }
    return shapes;
  }

  /// The rigid body that a shape belongs to: shapes of the same never touch.
  int group(int shape) const { return body(shape) < 0 ? -1 : groups_.of[body(shape)]; }

  bool may_touch(int i, int j) const {
    if (!can_touch(model_.shape_types[i], model_.shape_types[j])) return false;
    const CollisionFilter &f = model_.shape_filters[i], &g = model_.shape_filters[j];
    const bool filtered = !(f.groups & g.meets) || !(g.groups & f.meets);
    if (filtered) return has(included_, i, j);
    if (moves_with(i, j)) return false;
    const bool left_out = hangs_on(i, j) || hangs_on(j, i) || has(excluded_, body(i), body(j)) || has(apart_, i, j);
    return !left_out || has(included_, i, j);
  }

 private:
  int body(int shape) const { return model_.shape_bodies[shape]; }
  bool moves_with(int i, int j) const { return group(i) == group(j); }
  /// Whether a joint carries i's bodies on j's. What is fixed to the world is one with it, but for the joint's own
  /// parent: an arm may fall on the table beside its base.
  bool hangs_on(int i, int j) const {
    const int own = group(i);
    const int parent = own < 0 ? -1 : groups_.parent[own];
    if (parent < 0) return false;
    return groups_.of[parent] < 0 ? body(j) == parent : group(j) == groups_.of[parent];
  }

  void check_included() const {
    for (std::size_t k = 0; k < model_.included_contacts.size(); ++k) {
      const auto [a, b] = model_.included_contacts[k];
      const auto refuse = [&](const std::string& what, const std::string& expected) {
        throw ModelError("contacts/include/" + std::to_string(k), what + ", expected " + expected);
      };
      const auto name = [&](int shape) { return "'" + model_.shape_names[shape] + "'"; };
      if (a == b) refuse("shape " + name(a) + " with itself", "two shapes");
      if (!can_touch(model_.shape_types[a], model_.shape_types[b])) {
        refuse(std::string(to_string(model_.shape_types[a])) + " and " + to_string(model_.shape_types[b]),
               "types that can touch (planes and height fields do not touch each other)");
      }
      if (moves_with(a, b)) {
        refuse("shapes " + name(a) + " and " + name(b) + " of one rigid body", "two that move against each other");
      }
    }
  }

  const Model& model_;
  RigidGroups groups_;
  Pairs excluded_, apart_, included_;  ///< of bodies, of shapes, of shapes
};

/// The contact shapes of a topology, made when they are first asked for.
class ContactShapes {
 public:
  explicit ContactShapes(Model& model)
      : model_(model), index_(model.shape_names.size(), -1), link_of_(model.body_names.size(), -1) {
    const PoolVector<Link>& links = model.topology.links;
    for (std::size_t i = 0; i < links.size(); ++i) {
      root_.push_back(links[i].parent < 0 ? static_cast<int>(i) : root_[links[i].parent]);
      const bool held = links[i].parent < 0 || fixed_[links[i].parent];
      fixed_.push_back(held && links[i].type == JointType::fixed);
      if (links[i].body >= 0) link_of_[links[i].body] = static_cast<int>(i);
      model.topology.links[i].touches = false;
    }
  }

  int index(int shape) {
    PoolVector<ContactShape>& shapes = model_.topology.contact_shapes;
    if (index_[shape] < 0) {
      index_[shape] = static_cast<int>(shapes.size());
      const int body = model_.shape_bodies[shape], link = body < 0 ? -1 : link_of_[body];
      ContactShape made{.shape = shape, .body = body, .link = link};
      if (link >= 0) made.root = root_[link], made.fixed = fixed_[link];
      made.type = model_.shape_types[shape], made.mesh = model_.shape_meshes[shape];
      shapes.push_back(made);
      if (link >= 0) model_.topology.links[link].touches = true;
    }
    return index_[shape];
  }

 private:
  Model& model_;
  std::vector<int> index_, link_of_, root_;
  std::vector<bool> fixed_;
};

/// What stands on the ground comes first, and of others whose type is listed first. (But nothing of the world does: the
/// first of a pair has a link.)
bool in_order(GeometryType a, GeometryType b) {
  return is_ground(b) || (!is_ground(a) && a <= b);
}

/// Link::way: of trees in which two joints that adjoin turn, and something may be touched.
void number_ways(Topology& topology) {
  PoolVector<Link>& links = topology.links;
  std::vector<bool> turns(links.size()), touches(links.size());
  std::size_t root = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].parent < 0) root = i;
    turns[root] = turns[root] || links[i].turns_with >= 0;
    touches[root] = touches[root] || links[i].touches;
  }
  topology.way_count = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const bool has_way = turns[i] && touches[i] && !topology.has_bodies();
    links[i].way = has_way ? topology.way_count++ : -1;
  }
}

}  // namespace

bool can_touch(GeometryType a, GeometryType b) {
  return !is_ground(a) || !is_ground(b);
}

void find_contact_pairs(Model& model) {
  PoolVector<ContactPair>& pairs = model.topology.contact_pairs;
  model.topology.contact_shapes.clear();
  pairs.clear();
  const PairFinder finder(model);
  ContactShapes contact_shapes(model);
  const std::vector<int> shapes = finder.candidates();
  // Behind the last of neighbours of one rigid body: worlds of thousands of shapes are passed over at once.
  std::vector<std::size_t> run_end(shapes.size());
  for (std::size_t k = shapes.size(); k-- > 0;) {
    const bool same = k + 1 < shapes.size() && finder.group(shapes[k]) == finder.group(shapes[k + 1]);
    run_end[k] = same ? run_end[k + 1] : k + 1;
  }
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    for (std::size_t l = run_end[k]; l < shapes.size(); ++l) {
      int a = shapes[k], b = shapes[l];
      if (finder.group(a) == finder.group(b)) {
        l = run_end[l] - 1;
        continue;
      }
      if (!finder.may_touch(a, b)) continue;
      if (pairs.size() == kMostContactPairs) {
        throw ModelError("shapes", "more than " + std::to_string(kMostContactPairs) +
                                       " pairs that may touch, expected fewer (collision groups leave pairs out)");
      }
      const bool in_place = in_order(model.shape_types[a], model.shape_types[b]);
      if (model.shape_bodies[a] < 0 || (!in_place && model.shape_bodies[b] >= 0)) std::swap(a, b);
      const int first = contact_shapes.index(a);
      pairs.push_back({first, contact_shapes.index(b)});
    }
  }
  number_ways(model.topology);
}

}  // namespace backdrive
