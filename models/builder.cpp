#include "models/builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "models/contact_pairs.h"
#include "models/couplings.h"
#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "models/parameter_list.h"
#include "models/structure.h"

namespace backdrive {
namespace {

void put(double value, int item, Parameter& parameter) {
  parameter.at(item) = value;
}
template <std::size_t N>
void put(const std::array<double, N>& values, int item, Parameter& parameter) {
  for (std::size_t c = 0; c < N; ++c) parameter.at(item, static_cast<int>(c)) = values[c];
}
// Of options nested as the parameters are, and of those that stand beside each other.
#define BACKDRIVE_PUT(at, name, ...) put(options.at name, item, parameters.at name);
#define BACKDRIVE_PUT_FLAT(at, name, ...) put(options.name, item, parameters.at name);

/// Appends an item to every parameter of a group.
void append_item(Parameters& parameters, FieldGroup group, int items) {
  for (const Field& field : fields()) {
    if (field.group == group) field.of(parameters).resize(items);
  }
}

/// For each body the joint whose child it is.
std::vector<int> joints_of_bodies(const Model& model) {
  ModelMistakes mistakes;
  std::vector<int> joint_of(model.body_names.size(), -1);
  for (size_t j = 0; j < model.joint_names.size(); ++j) {
    if (model.joint_loops[j]) continue;
    int& own = joint_of[model.joint_children[j]];
    const std::string& body = model.body_names[model.joint_children[j]];
    if (own >= 0) {
      mistakes.add("joints/" + model.joint_names[j] + "/child",
                   "body " + quoted(body) + " is already the child of joint " + quoted(model.joint_names[own]) +
                       ", expected one joint per body, or `loop: true` of a joint that closes a loop");
    }
    own = static_cast<int>(j);
  }
  for (size_t b = 0; b < joint_of.size(); ++b) {
    if (joint_of[b] >= 0) continue;
    mistakes.add("bodies/" + model.body_names[b],
                 "the child of no joint, expected exactly one (type fixed welds it to its parent)");
  }
  mistakes.throw_any();
  return joint_of;
}

/// Bodies that the world does not reach go round in circles: names one circle.
[[noreturn]] void loop_error(const Model& model, const std::vector<int>& joint_of, int lost) {
  // As many steps up as there are bodies lead from anywhere into the circle.
  for (size_t i = 0; i < joint_of.size(); ++i) lost = model.joint_parents[joint_of[lost]];
  std::string circle = quoted(model.body_names[lost]);
  for (int b = model.joint_parents[joint_of[lost]]; b != lost; b = model.joint_parents[joint_of[b]]) {
    circle += " on " + quoted(model.body_names[b]);
  }
  throw ModelError(
      "joints/" + model.joint_names[joint_of[lost]] + "/parent",
      "a loop: " + circle + " on " + quoted(model.body_names[lost]) + ", expected a tree that hangs on the world");
}

/// Joints by parent body, in joint order; the world's stand last.
std::vector<std::vector<int>> joints_by_parent(const Model& model) {
  const size_t bodies = model.body_names.size();
  std::vector<std::vector<int>> children(bodies + 1);
  for (size_t j = 0; j < model.joint_names.size(); ++j) {
    if (model.joint_loops[j]) continue;
    const int parent = model.joint_parents[j];
    children[parent == ModelBuilder::world ? bodies : parent].push_back(static_cast<int>(j));
  }
  return children;
}

/// The chain of links of one joint, root first; its body hangs on the last.
std::vector<Link> links_of_type(JointType type) {
  const auto link = [](JointType own, LinkAxis axis) {
    Link result;
    result.type = own;
    result.axis = axis;
    return result;
  };
  if (type == JointType::universal) {
    return {link(JointType::revolute, LinkAxis::x), link(JointType::revolute, LinkAxis::y)};
  }
  if (type == JointType::planar) {
    return {link(JointType::prismatic, LinkAxis::x), link(JointType::prismatic, LinkAxis::y),
            link(JointType::revolute, LinkAxis::z)};
  }
  return {link(type, LinkAxis::parameter)};
}

/// Appends the links of one joint below link `parent`. Returns the last.
int append_links(PoolVector<Link>& links, JointType type, int joint, int parent) {
  bool first = true;
  for (Link link : links_of_type(type)) {
    link.joint = joint;
    link.first = first;
    link.parent = parent;
    parent = static_cast<int>(links.size());
    links.push_back(link);
    first = false;
  }
  return parent;
}

/// Links depth first, children in joint order. O(bodies), without recursion.
PoolVector<Link> ordered_links(const Model& model, const std::vector<int>& joint_of) {
  const std::vector<std::vector<int>> children = joints_by_parent(model);
  const size_t bodies = model.body_names.size();
  std::vector<int> link_of(bodies, -1);
  std::vector<int> stack(children[bodies].rbegin(), children[bodies].rend());
  PoolVector<Link> links;
  while (!stack.empty()) {
    const int joint = stack.back();
    stack.pop_back();
    const int parent = model.joint_parents[joint], body = model.joint_children[joint];
    const int above = parent == ModelBuilder::world ? -1 : link_of[parent];
    link_of[body] = append_links(links, model.joint_types[joint], joint, above);
    links[link_of[body]].body = body;
    stack.insert(stack.end(), children[body].rbegin(), children[body].rend());
  }
  for (size_t b = 0; b < bodies; ++b) {
    if (link_of[b] < 0) loop_error(model, joint_of, static_cast<int>(b));
  }
  return links;
}

/// Each joint on the world, for a model that is no tree.
PoolVector<Link> standing_links(const Model& model) {
  PoolVector<Link> links;
  for (size_t j = 0; j < model.joint_names.size(); ++j) {
    append_links(links, model.joint_types[j], static_cast<int>(j), -1);
  }
  return links;
}

/// Behind the tree, in joint order.
void append_loops(Model& model) {
  PoolVector<Link>& links = model.topology.links;
  for (size_t j = 0; j < model.joint_names.size(); ++j) {
    if (!model.joint_loops[j]) continue;
    const int parent = model.joint_parents[j], first = static_cast<int>(links.size());
    const int child = model.link_of_body(model.joint_children[j]);
    const int above = parent == ModelBuilder::world ? -1 : model.link_of_body(parent);
    const int last = append_links(links, model.joint_types[j], static_cast<int>(j), above);
    for (int i = first; i <= last; ++i) links[i].loop_child = child;
  }
}

/// Components follow the joints as the user listed them, not the links.
void number_components(Topology& topology, const PoolVector<JointType>& types, const std::vector<bool>& driven) {
  std::vector<Link*> link_of(types.size(), nullptr);
  for (Link& link : topology.links) {
    if (link.first) link_of[link.joint] = &link;
  }
  for (std::size_t joint = 0; joint < types.size(); ++joint) {
    for (Link* link = link_of[joint]; link <= &topology.links.back() && link->joint == static_cast<int>(joint);
         ++link) {
      link->q = topology.nq;
      link->v = topology.nv;
      topology.nq += joint_size(link->type).nq;
      topology.nv += joint_size(link->type).nv;
    }
  }
  topology.joint_nq = topology.nq;
  topology.joint_nv = topology.nu = topology.nv;
  for (size_t j = 0; j < types.size(); ++j) {
    if (!driven[j]) continue;
    for (Link* link = link_of[j]; link <= &topology.links.back() && link->joint == static_cast<int>(j); ++link) {
      link->target = topology.nu;
      topology.nu += 2 * joint_size(link->type).nv;
    }
  }
}

/// Rows of the bodies, where they are the state.
void number_bodies(Model& model) {
  Topology& t = model.topology;
  if (!t.has_bodies()) return;
  const int bodies = static_cast<int>(model.body_names.size());
  t.nq += bodies * kBodyPositions;
  t.nv += bodies * kBodyVelocities;
}

/// Link::rigid. Links of a tree stand behind its root.
void mark_rigid_trees(Topology& topology) {
  Link* root = nullptr;
  for (Link& link : topology.links) {
    if (link.parent < 0) {
      root = &link;
      link.rigid = link.type == JointType::free;
    } else if (link.type != JointType::fixed) {
      root->rigid = false;
    }
  }
}

/// Link::carrier and Link::fixed_end.
void mark_carriers(Topology& topology) {
  for (int i = 0; i < static_cast<int>(topology.links.size()); ++i) {
    Link& link = topology.links[i];
    if (link.type != JointType::fixed || link.parent < 0 || link.loop_child >= 0) continue;
    const Link& parent = topology.links[link.parent];
    link.carrier = parent.type == JointType::fixed ? parent.carrier : link.parent;
    if (link.carrier >= 0) topology.links[link.carrier].fixed_end = i + 1;
  }
}

/// Links whose joints spin or are to be taken for such, after mark_rigid_trees(): what flies as one body is another
/// case.
void mark_spinning(Topology& topology, const std::vector<bool>& spins) {
  for (Link& link : topology.links) {
    const bool asked = link.type == JointType::revolute && spins[link.joint];
    link.spins = !link.rigid && (asked || link.type == JointType::ball || link.type == JointType::free);
  }
}

/// The link whose joint turns this one against its parent or, if its own does not turn, what it is attached to; −1:
/// none does, or a hinge that is said to spin.
int turning_link(const Topology& topology, int i) {
  while (i >= 0 && (topology.links[i].type == JointType::fixed || topology.links[i].type == JointType::prismatic)) {
    i = topology.links[i].parent;
  }
  return i >= 0 && topology.links[i].type == JointType::revolute && topology.links[i].spins ? -1 : i;
}

/// Link::turns_with, after mark_spinning().
void mark_adjoining(Topology& topology) {
  for (int i = 0; i < static_cast<int>(topology.links.size()); ++i) {
    if (turning_link(topology, i) != i) continue;
    topology.links[i].turns_with = turning_link(topology, topology.links[i].parent);
  }
}

/// Depth first, the last child of a link is the one with the highest index.
void mark_leaves_and_last_children(Topology& topology) {
  for (size_t i = topology.links.size(); i-- > 0;) {
    Link& link = topology.links[i];
    if (link.parent < 0) continue;
    link.last_child = topology.links[link.parent].leaf;
    topology.links[link.parent].leaf = false;
  }
}

/// The index of an item in a table, which gets it unless it is there.
template <class Table, class Item>
int index_in(Table& table, const Item& item) {
  const auto found = std::find(table.begin(), table.end(), item);
  const auto index = static_cast<int>(found - table.begin());
  if (found == table.end()) table.push_back(item);
  return index;
}

/// What a shape has of meshes, if its type asks for any.
void add_mesh(Model& model, const ShapeOptions& options) {
  int index = -1;
  SolidMoments<double> moments;
  if (options.type == GeometryType::mesh && options.mesh) {
    index = index_in(model.meshes, options.mesh);
    moments = solid_moments(*options.mesh);
  } else if (options.type == GeometryType::height_field && options.height_field) {
    index = index_in(model.height_fields, options.height_field);
  }
  model.shape_meshes.push_back(index);
  model.shape_moments.push_back(moments);
}

void put_body(const BodyOptions& options, int item, BodyParameters& parameters) {
  BACKDRIVE_BODY_PARAMETERS(BACKDRIVE_PUT, )
}
void put_joint(const JointOptions& options, int item, JointParameters& parameters) {
  BACKDRIVE_JOINT_PARAMETERS(BACKDRIVE_PUT)
}
void put_shape(const ShapeOptions& options, int item, ShapeParameters& parameters) {
  BACKDRIVE_FRAME_PARAMETERS(BACKDRIVE_PUT, frame., "")
  BACKDRIVE_GEOMETRY_PARAMETERS(BACKDRIVE_PUT_FLAT, geometry.)
  BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_PUT_FLAT, material.)
  BACKDRIVE_DENSITY_PARAMETERS(BACKDRIVE_PUT, )
}
void put_coupling(const CouplingOptions& options, int item, CouplingParameters& parameters) {
  BACKDRIVE_COUPLING_PARAMETERS(BACKDRIVE_PUT)
}
#undef BACKDRIVE_PUT
#undef BACKDRIVE_PUT_FLAT

}  // namespace

BodyIndex ModelBuilder::add_body(const std::string& name, const BodyOptions& options) {
  const int body = static_cast<int>(model_.body_names.size());
  model_.body_names.push_back(name);
  append_item(model_, FieldGroup::bodies, body + 1);
  put_body(options, body, model_.bodies);
  model_.unphysical_inertias.push_back(options.unphysical_inertia);
  return body;
}

JointIndex ModelBuilder::add_joint(const std::string& name, JointType type, BodyIndex parent, BodyIndex child,
                                   const JointOptions& options) {
  const int joint = static_cast<int>(model_.joint_names.size());
  model_.joint_names.push_back(name);
  model_.joint_types.push_back(type);
  model_.joint_parents.push_back(parent);
  model_.joint_children.push_back(child);
  model_.joint_loops.push_back(options.loop);
  model_.joint_releases.push_back(options.release);
  driven_.push_back(options.driven);
  spins_.push_back(options.spins);
  append_item(model_, FieldGroup::joints, joint + 1);
  put_joint(options, joint, model_.joints);
  return joint;
}

ShapeIndex ModelBuilder::add_shape(const std::string& name, BodyIndex body, const ShapeOptions& options) {
  const int shape = static_cast<int>(model_.shape_names.size());
  model_.shape_names.push_back(name);
  model_.shape_types.push_back(options.type);
  model_.shape_bodies.push_back(body);
  model_.shape_filters.push_back(options.filter);
  add_mesh(model_, options);
  append_item(model_, FieldGroup::shapes, shape + 1);
  put_shape(options, shape, model_.shapes);
  return shape;
}

CouplingIndex ModelBuilder::add_coupling(const std::string& name, const CouplingOptions& options) {
  const int coupling = static_cast<int>(model_.coupling_names.size());
  model_.coupling_names.push_back(name);
  model_.coupling_holds.push_back(options.hold);
  coupling_driven_.push_back(options.driven);
  append_item(model_, FieldGroup::couplings, coupling + 1);
  put_coupling(options, coupling, model_.couplings);
  for (const CouplingRatio& ratio : options.ratios) {
    const int term = static_cast<int>(model_.coupling_terms.size());
    model_.coupling_terms.push_back({coupling, ratio.joint});
    append_item(model_, FieldGroup::terms, term + 1);
    model_.couplings.ratios.at(term) = ratio.ratio;
  }
  return coupling;
}

Model ModelBuilder::build() const {
  ModelMistakes mistakes;
  Model model = build(mistakes);
  mistakes.throw_any();
  return model;
}

Model ModelBuilder::build(ModelMistakes& mistakes, const UnknownParts& unknown) const {
  Model model = model_;
  model.gravity.resize(1);
  put(world_.gravity, 0, model.gravity);
  const std::size_t before = mistakes.size();
  check_names(mistakes, model);
  check_references(mistakes, model, driven_);
  check_couplings(mistakes, model, coupling_driven_);
  check_contacts(mistakes, model);
  bool is_tree = false;
  if (!unknown.tree && mistakes.size() == before) {
    mistakes.attempt([&] {
      model.topology.links = ordered_links(model, joints_of_bodies(model));
      is_tree = true;
    });
  }
  if (!is_tree) model.topology.links = standing_links(model);
  mark_leaves_and_last_children(model.topology);
  for (Link& link : model.topology.links) {
    link.unphysical_inertia = link.body >= 0 && model.unphysical_inertias[link.body];
  }
  if (is_tree) append_loops(model);
  number_components(model.topology, model.joint_types, driven_);
  number_couplings(model, coupling_driven_);
  mark_carriers(model.topology);
  mark_rigid_trees(model.topology);
  mark_spinning(model.topology, spins_);
  mark_adjoining(model.topology);
  number_bodies(model);
  if (is_tree) mistakes.attempt([&] { find_contact_pairs(model); });
  validate(model, mistakes, {!is_tree, unknown.inertia});
  return model;
}

}  // namespace backdrive
