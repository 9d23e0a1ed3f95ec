#include "models/contact_pairs.h"

#include <vector>

namespace backdrive {
namespace {

bool is_ground(GeometryType type) {
  return type == GeometryType::plane || type == GeometryType::height_field;
}
/// Ellipsoids and cylinders touch the ground only.
bool touches_all(GeometryType type) {
  return !is_ground(type) && type != GeometryType::ellipsoid && type != GeometryType::cylinder;
}

/// Bodies that fixed joints make one: the body of the lot that is nearest the world, −1: the world.
std::vector<int> rigid_groups(const Model& model) {
  std::vector<int> group(model.body_names.size(), -1);
  for (const Link& link : model.topology.links) {  // parents first
    if (link.body < 0) continue;
    const int parent = model.joint_parents[link.joint];
    const bool welded = link.type == JointType::fixed;
    group[link.body] = !welded ? link.body : parent < 0 ? -1 : group[parent];
  }
  return group;
}

/// For each body the group that carries its own, −1: the world; −2 for what is part of the world.
std::vector<int> carriers(const Model& model, const std::vector<int>& group) {
  std::vector<int> carrier(group.size(), -2);
  for (std::size_t j = 0; j < model.joint_types.size(); ++j) {
    const int body = model.joint_children[j], parent = model.joint_parents[j];
    if (group[body] != body) continue;
    carrier[body] = parent < 0 ? -1 : group[parent];
  }
  return carrier;
}

int root_of(const Topology& topology, int link) {
  while (link >= 0 && topology.links[link].parent >= 0) link = topology.links[link].parent;
  return link;
}

}  // namespace

bool can_touch(GeometryType a, GeometryType b) {
  if (is_ground(a) || is_ground(b)) return is_ground(a) != is_ground(b);
  return touches_all(a) && touches_all(b);
}

void find_contact_pairs(Model& model) {
  Topology& t = model.topology;
  t.contact_shapes.clear();
  t.contact_pairs.clear();
  const std::vector<int> group = rigid_groups(model), carrier = carriers(model, group);
  const auto group_of = [&](int shape) {
    const int body = model.shape_bodies[shape];
    return body < 0 ? -1 : group[body];
  };
  const auto connected = [&](int a, int b) { return a >= 0 && b >= 0 && (carrier[a] == b || carrier[b] == a); };
  const int shapes = static_cast<int>(model.shape_names.size());
  std::vector<int> index(shapes, -1);
  const auto contact_shape = [&](int shape) {
    if (index[shape] < 0) {
      index[shape] = static_cast<int>(t.contact_shapes.size());
      const int link = model.shape_bodies[shape] < 0 ? -1 : model.link_of_body(model.shape_bodies[shape]);
      t.contact_shapes.push_back({shape, link, root_of(t, link), model.shape_types[shape]});
    }
    return index[shape];
  };
  for (int i = 0; i < shapes; ++i) {
    for (int j = i + 1; j < shapes; ++j) {
      const CollisionFilter &f = model.shape_filters[i], &g = model.shape_filters[j];
      if (!(f.groups & g.meets) || !(g.groups & f.meets)) continue;
      if (!can_touch(model.shape_types[i], model.shape_types[j])) continue;
      const int a = group_of(i), b = group_of(j);
      if (a == b || connected(a, b)) continue;
      // What stands on the ground comes first, and of others what the pair functions list first.
      const GeometryType type = model.shape_types[i], other = model.shape_types[j];
      const bool keep = is_ground(other) || (!is_ground(type) && type <= other);
      const int first = contact_shape(keep ? i : j), second = contact_shape(keep ? j : i);
      t.contact_pairs.push_back({first, second});
    }
  }
}

}  // namespace backdrive
