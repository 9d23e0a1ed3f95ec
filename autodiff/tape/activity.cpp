#include "autodiff/tape/activity.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace backdrive {
namespace {

int root_of(const Topology& topology, int link) {
  while (topology.links[link].parent >= 0) link = topology.links[link].parent;
  return link;
}

bool any(const PoolVector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

bool may_touch(const Model& model, int shape) {
  return std::ranges::any_of(model.topology.contact_shapes, [=](const ContactShape& s) { return s.shape == shape; });
}

/// Why no motion depends on a shape's mass.
const char* massless_reason(const Model& model, std::string_view leaf, int shape) {
  if (model.shape_bodies[shape] < 0) return "a shape of the world moves nothing";
  if (model.shape_types[shape] == GeometryType::plane) return "a plane has no mass";
  if (model.shape_types[shape] == GeometryType::height_field) return "a height field has no mass";
  if (leaf != "density" && model.shapes.density(shape) == 0) return "the shape has no density";
  return nullptr;
}

const char* unused_shape_reason(const Model& model, std::string_view leaf, int shape) {
  const bool of_touch = leaf == "geometry/margin" || leaf.starts_with("material/");
  if (may_touch(model, shape)) {
    if (leaf == "density") return massless_reason(model, leaf, shape);
    if (leaf == "geometry/scale" && scale_components(model.shape_types[shape]) == 0) return "a plane has no size";
    return nullptr;
  }
  return of_touch ? "the shape can touch no other" : massless_reason(model, leaf, shape);
}

const char* unused_coupling_reason(const Model& model, std::string_view leaf, int item) {
  if (leaf == "offset") return nullptr;
  if (model.coupling_holds[item]) return "the coupling is held: nothing else acts on it";
  const CouplingParameters& own = model.couplings;
  const bool lower = std::isfinite(own.limit.lower(item)), upper = std::isfinite(own.limit.upper(item));
  if (leaf.starts_with("limit/velocity")) {
    return std::isfinite(own.limit.velocity(item)) ? nullptr : "the coupling's speed has no limit";
  }
  if (leaf.starts_with("limit/") && !lower && !upper) return "the coupling has no limits";
  if ((leaf == "limit/lower" && !lower) || (leaf == "limit/upper" && !upper)) {
    return "the coupling has no limit on this side";
  }
  if (leaf.starts_with("drive/") && model.topology.couplings[item].target < 0) return "the coupling has no drive";
  if (leaf == "drive/effort_limit" && !std::isfinite(own.drive.effort_limit(item))) {
    return "the drive's effort has no limit";
  }
  return nullptr;
}

constexpr const char* kNoLimitsNorDrive = "free joints have no springs, limits and drives";
constexpr const char* kNoMotion = "the loss does not depend on any motion";
constexpr const char* kOtherTree = "the loss only reads what hangs from the world by other joints";

template <class Visit>
Components components_where(const Topology& topology, const PoolVector<bool>& flags, const Visit& visit) {
  Components components;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    if (flags[i]) visit(topology.links[i], components);
  }
  return components;
}

/// Of a link's joint and, where bodies are the state, of its body.
Components positions_where(const Topology& t, const PoolVector<bool>& flags) {
  return components_where(t, flags, [&](const Link& link, Components& components) {
    for (int k = 0; k < joint_size(link.type).nq; ++k) components.add(link.q + k);
    if (!t.has_bodies() || link.body < 0) return;
    for (int k = 0; k < kBodyPositions; ++k) components.add(t.body_q(link.body) + k);
  });
}

Components velocities_where(const Topology& t, const PoolVector<bool>& flags) {
  return components_where(t, flags, [&](const Link& link, Components& components) {
    for (int k = 0; k < joint_size(link.type).nv; ++k) components.add(link.v + k);
    if (!t.has_bodies() || link.body < 0) return;
    for (int k = 0; k < kBodyVelocities; ++k) components.add(t.body_v(link.body) + k);
  });
}

}  // namespace

int link_of_item(const Model& model, const Field& field, int item) {
  switch (field.group) {
    case FieldGroup::joints:
      return model.link_of_joint(item);
    case FieldGroup::bodies:
      return model.link_of_body(item);
    case FieldGroup::shapes:
      return model.shape_bodies[item] < 0 ? -1 : model.link_of_body(model.shape_bodies[item]);
    case FieldGroup::couplings: {
      const Coupling& coupling = model.topology.couplings[item];
      return model.topology.coupling_terms[coupling.first_term].link;
    }
    case FieldGroup::terms:
      return model.topology.coupling_terms[item].link;
    case FieldGroup::model:
      break;
  }
  return -1;
}

const char* foreign_reason(const Model& model, const Field& field, int item) {
  if (field.group != FieldGroup::joints) return nullptr;
  if (field.leaf.starts_with("child_frame/")) {
    return model.joint_loops[item] ? nullptr : "only a joint that closes a loop has a frame on its child";
  }
  if (!field.leaf.starts_with("attachment/")) return nullptr;
  if (!model.topology.has_bodies()) return "only the integrator semi_implicit attaches bodies by springs";
  const JointType type = model.joint_types[item];
  if (type == JointType::free) return "a free joint holds nothing";
  const bool angular = field.leaf.starts_with("attachment/angular_");
  return angular && type == JointType::ball ? "a ball joint lets its child turn any way" : nullptr;
}

const char* unused_reason(const Model& model, const Field& field, int item) {
  const std::string_view leaf = field.leaf;
  if (field.group == FieldGroup::couplings) return unused_coupling_reason(model, leaf, item);
  if (field.group == FieldGroup::shapes) {
    if (const char* unused = unused_shape_reason(model, leaf, item)) return unused;
  }
  if (const char* foreign = foreign_reason(model, field, item)) return foreign;
  const bool always = leaf.starts_with("frame/") || leaf.starts_with("child_frame/") || leaf.starts_with("attachment/");
  if (field.group != FieldGroup::joints || always) return nullptr;
  const JointType type = model.joint_types[item];
  if (joint_size(type).nv == 0) return "a fixed joint does not move";
  if (leaf == "axis" && !has_one_degree(type)) return "the joint has no axis of its own: its frame says all";
  const bool of_drive = leaf.starts_with("limit/") || leaf.starts_with("drive/") || leaf.starts_with("spring/");
  if (!may_be_driven(type) && of_drive) return kNoLimitsNorDrive;
  if (type == JointType::ball && leaf == "spring/rest") return "a ball joint's spring pulls to orientation zero";
  const JointParameters& joints = model.joints;
  const bool lower = std::isfinite(joints.limit.lower(item)), upper = std::isfinite(joints.limit.upper(item));
  if (leaf.starts_with("limit/velocity")) {
    return std::isfinite(joints.limit.velocity(item)) ? nullptr : "the joint's speed has no limit";
  }
  const bool drive = model.topology.links[model.link_of_joint(item)].target >= 0;
  if (leaf.starts_with("limit/") && !lower && !upper) return "the joint has no limits";
  if ((leaf == "limit/lower" && !lower) || (leaf == "limit/upper" && !upper)) {
    return "the joint has no limit on this side";
  }
  if (leaf.starts_with("drive/") && !drive) return "the joint has no drive";
  if (leaf == "drive/effort_limit" && !std::isfinite(joints.drive.effort_limit(item))) {
    return "the drive's effort has no limit";
  }
  return nullptr;
}

void Components::add(int component) {
  if (!has(component)) some_.push_back(component);
}

void Components::add(const Components& other) {
  all_ = all_ || other.all_;
  for (const int component : other.some_) add(component);
}

bool Components::has(int component) const {
  return all_ || std::find(some_.begin(), some_.end(), component) != some_.end();
}

void LinkDependence::move_tree_of(const Topology& topology, int link) {
  const int root = root_of(topology, link);
  if (moved[root]) return;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    if (root_of(topology, static_cast<int>(i)) == root) moved[i] = true;
  }
  for (const ContactPair& pair : topology.contact_pairs) {  // and what it may touch
    const int a = topology.contact_shapes[pair.a].root, b = topology.contact_shapes[pair.b].root;
    if (a == root && b >= 0) move_tree_of(topology, b);
    if (b == root) move_tree_of(topology, a);
  }
  for (const Coupling& coupling : topology.couplings) {  // what a coupling joins it to
    const auto terms = std::span(topology.coupling_terms).subspan(coupling.first_term, coupling.term_count);
    const auto here = [&](const CouplingTerm& term) { return root_of(topology, term.link) == root; };
    if (!std::ranges::any_of(terms, here)) continue;
    for (const CouplingTerm& term : terms) move_tree_of(topology, term.link);
  }
  for (std::size_t i = 0; i < topology.links.size(); ++i) {  // and what a loop joins it to
    if (topology.links[i].loop_child < 0) continue;
    const int a = root_of(topology, static_cast<int>(i)), b = root_of(topology, topology.links[i].loop_child);
    if (a == root) move_tree_of(topology, b);
    if (b == root) move_tree_of(topology, a);
  }
}

bool touches_beyond(const Topology& topology, int link) {
  const int root = root_of(topology, link);
  return std::ranges::any_of(topology.contact_pairs, [&](const ContactPair& pair) {
    const int a = topology.contact_shapes[pair.a].root, b = topology.contact_shapes[pair.b].root;
    return a != b && (a == root || b == root);
  });
}

bool LinkDependence::moves(int link) const {
  return link < 0 ? any(moved) : moved[link];
}

const char* LinkDependence::reason_unmoved() const {
  return any(moved) ? kOtherTree : kNoMotion;
}

void LinkDependence::pose(const Topology& topology, int link) {
  for (; link >= 0; link = topology.links[link].parent) posed[link] = true;
}

const char* disconnected_reason(const Model& model, const LinkDependence& links, const Field& field, int item) {
  if (const char* unused = unused_reason(model, field, item)) return unused;
  const int link = link_of_item(model, field, item);
  if (links.moves(link)) return nullptr;
  const bool placement =
      field.group == FieldGroup::joints &&
      (field.leaf.starts_with("frame/") || field.leaf.starts_with("child_frame/") || field.leaf == "axis");
  if (placement && links.posed[link]) return nullptr;
  return links.reason_unmoved();
}

void Reach::read(std::uint64_t buffer, const Components& components) {
  if (components.any()) buffers_[buffer].add(components);
}

const Components* Reach::of(std::uint64_t buffer) const {
  const auto found = buffers_.find(buffer);
  return found == buffers_.end() ? nullptr : &found->second;
}

Components posed_positions(const Topology& topology, const LinkDependence& links) {
  return positions_where(topology, links.posed);
}

Components posed_velocities(const Topology& topology, const LinkDependence& links) {
  return velocities_where(topology, links.posed);
}

Components moved_positions(const Topology& topology, const LinkDependence& links) {
  return positions_where(topology, links.moved);
}

Components moved_velocities(const Topology& topology, const LinkDependence& links) {
  return velocities_where(topology, links.moved);
}

Components moved_ways(const Topology& topology, const LinkDependence& links) {
  return components_where(topology, links.moved, [](const Link& link, Components& components) {
    if (link.way >= 0) components.add(link.way);
  });
}

Components moved_controls(const Topology& topology, const LinkDependence& links) {
  Components moved = components_where(topology, links.moved, [](const Link& link, Components& components) {
    // Efforts stand at the indices of velocities.
    for (int k = 0; k < joint_size(link.type).nv; ++k) components.add(link.v + k);
    for (int k = 0; link.target >= 0 && k < 2 * joint_size(link.type).nv; ++k) components.add(link.target + k);
  });
  for (const Coupling& coupling : topology.couplings) {
    if (!links.moves(topology.coupling_terms[coupling.first_term].link)) continue;
    if (coupling.effort >= 0) moved.add(coupling.effort);
    for (int k = 0; coupling.target >= 0 && k < 2; ++k) moved.add(coupling.target + k);
  }
  return moved;
}

}  // namespace backdrive
