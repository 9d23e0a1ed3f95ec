#include "models/model.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "models/parameter_list.h"
#include "models/parameter_reader.h"

namespace backdrive {
namespace {

int find(const std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

/// Whether any world's value of an item satisfies the predicate. O(worlds).
template <class Predicate>
bool in_any_world(const Parameter& parameter, int item, Predicate predicate) {
  for (int w = 0; w < parameter.worlds(); ++w) {
    if (predicate(parameter(item, 0, w))) return true;
  }
  return false;
}

void check_items(const Model& model, const Field& field) {
  std::size_t expected = 1;
  if (field.group == FieldGroup::bodies) expected = model.body_names.size();
  if (field.group == FieldGroup::joints) expected = model.joint_names.size();
  if (field.group == FieldGroup::shapes) expected = model.shape_names.size();
  if (field.group == FieldGroup::couplings) expected = model.coupling_names.size();
  if (field.group == FieldGroup::terms) expected = model.coupling_terms.size();
  const int items = field.in(model).items();
  if (static_cast<std::size_t>(items) == expected) return;
  constexpr const char* groups[] = {"bodies/*/", "joints/*/", "shapes/*/", "couplings/*/", "couplings/*/", ""};
  usage_error(groups[static_cast<int>(field.group)] + std::string(field.leaf) + " of " + std::to_string(items) +
              " items in a model of " + std::to_string(expected) + "; was it moved from, or is it another model's?");
}

}  // namespace

void Parameter::resize(int items) {
  if (items < 0) usage_error("Parameter::resize: " + std::to_string(items) + " items, expected >= 0");
  generation_.invalidate();
  const size_t kept = static_cast<size_t>(std::min(items, this->items())) * components_;
  const size_t old_row = static_cast<size_t>(this->items()) * components_;
  const size_t new_row = static_cast<size_t>(items) * components_;
  if (worlds_ == 1) {
    values_.resize(new_row, fill_);
  } else {
    PoolVector<double> values(new_row * worlds_, fill_);
    for (int w = 0; w < worlds_; ++w) {
      std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(w * old_row), kept,
                  values.begin() + static_cast<std::ptrdiff_t>(w * new_row));
    }
    values_ = std::move(values);
  }
  requires_grad_.resize(static_cast<size_t>(items), false);
}

void Parameter::spread(int worlds) {
  if (worlds < 1) usage_error("Parameter::spread: " + std::to_string(worlds) + " worlds, expected >= 1");
  generation_.invalidate();
  const size_t row = static_cast<size_t>(items()) * components_;
  PoolVector<double> values(row * worlds);
  for (int w = 0; w < worlds; ++w) {
    std::copy_n(values_.begin(), row, values.begin() + static_cast<std::ptrdiff_t>(w * row));
  }
  values_ = std::move(values);
  worlds_ = worlds;
}

Parameter Parameter::zeros(int components, int worlds) const {
  Parameter result(components, 0);
  result.resize(items());
  if (worlds != 1) result.spread(worlds);
  result.requires_grad_ = requires_grad_;
  return result;
}

bool Parameter::any_requires_grad() const {
  return std::find(requires_grad_.begin(), requires_grad_.end(), true) != requires_grad_.end();
}

BodyIndex Model::find_body(const std::string& name) const {
  return find(body_names, name);
}
JointIndex Model::find_joint(const std::string& name) const {
  return find(joint_names, name);
}
ShapeIndex Model::find_shape(const std::string& name) const {
  return find(shape_names, name);
}
CouplingIndex Model::find_coupling(const std::string& name) const {
  return find(coupling_names, name);
}

int Model::link_of_body(BodyIndex body) const {
  for (size_t i = 0; i < topology.links.size(); ++i) {
    if (topology.links[i].body == body) return static_cast<int>(i);
  }
  return -1;
}

int Model::link_of_joint(JointIndex joint) const {
  for (size_t i = 0; i < topology.links.size(); ++i) {
    if (topology.links[i].joint == joint) return static_cast<int>(i);
  }
  return -1;
}

int Model::parameter_worlds() const {
  int worlds = 1;
  std::string_view first;
  for (const Field& field : fields()) {
    check_items(*this, field);
    const int own = field.in(*this).worlds();
    if (own == 1) continue;
    if (worlds != 1 && own != worlds) {
      usage_error("per-world parameters disagree: " + std::string(first) + " has " + std::to_string(worlds) +
                  " worlds, " + std::string(field.leaf) + " has " + std::to_string(own));
    }
    worlds = own;
    first = field.leaf;
  }
  return worlds;
}

double least_size(const Model& model, int shape) {
  const GeometryType type = model.shape_types[shape];
  double least = kInfinity;
  if (type == GeometryType::mesh || type == GeometryType::height_field) return least;
  for (int c = 0; c < scale_components(type); ++c) least = std::min(least, model.shapes.geometry.scale(shape, c));
  return least;
}

Parameters zero_parameters(const Model& model, int worlds) {
  Parameters result;
  for (const Field& field : fields()) {
    field.of(result) = field.in(model).zeros(field.tangents, worlds);
  }
  return result;
}

void refresh_features(Model& model, const Parameters* direction) {
  const auto positive = [](double x) { return x > 0; };
  const auto not_zero = [](double x) { return x != 0; };
  // Whether a part acts that is not there at zero.
  const auto counts_where = [&](auto pick, int item, auto acts) {
    const Parameter& p = pick(model);
    return p.requires_grad(item) || in_any_world(p, item, acts) ||
           (direction && in_any_world(pick(*direction), item, not_zero));
  };
  const auto counts = [&](auto pick, int item) { return counts_where(pick, item, positive); };
  for (ContactShape& s : model.topology.contact_shapes) {
    s.resists_turns = counts(BACKDRIVE_PICK(shapes.material.torsional_friction), s.shape) ||
                      counts(BACKDRIVE_PICK(shapes.material.rolling_friction), s.shape);
  }
  const JointParameters& joints = model.joints;
  const auto finite = [](double x) { return std::isfinite(x); };
  for (Link& link : model.topology.links) {
    const bool moves = joint_size(link.type).nv > 0, driven = may_be_driven(model.joint_types[link.joint]);
    link.acts.drive = link.target >= 0;
    link.acts.spring = driven && counts(BACKDRIVE_PICK(joints.spring.stiffness), link.joint);
    link.acts.limit = driven && (in_any_world(joints.limit.lower, link.joint, finite) ||
                                 in_any_world(joints.limit.upper, link.joint, finite));
    link.acts.speed = driven && in_any_world(joints.limit.velocity, link.joint, finite);
    link.lifted = link.body >= 0 && counts_where(BACKDRIVE_PICK(bodies.gravity_compensation), link.body, not_zero);
    link.acts.friction = moves && counts(BACKDRIVE_PICK(joints.friction), link.joint);
  }
  const LimitParameters& limit = model.couplings.limit;
  for (std::size_t c = 0; c < model.topology.couplings.size(); ++c) {
    const int item = static_cast<int>(c);
    Coupling& coupling = model.topology.couplings[c];
    coupling.acts.drive = coupling.target >= 0;
    coupling.acts.spring = counts(BACKDRIVE_PICK(couplings.spring.stiffness), item);
    coupling.acts.limit = in_any_world(limit.lower, item, finite) || in_any_world(limit.upper, item, finite);
    coupling.acts.speed = in_any_world(limit.velocity, item, finite);
    coupling.acts.friction = counts(BACKDRIVE_PICK(couplings.friction), item);
  }
}

const char* to_string(Integrator integrator) {
  return integrator == Integrator::featherstone ? "featherstone" : "semi_implicit";
}

const char* to_string(JointType type) {
  switch (type) {
    case JointType::revolute:
      return "revolute";
    case JointType::prismatic:
      return "prismatic";
    case JointType::fixed:
      return "fixed";
    case JointType::universal:
      return "universal";
    case JointType::planar:
      return "planar";
    case JointType::ball:
      return "ball";
    case JointType::free:
      return "free";
  }
  return "unknown";
}

const char* to_string(GeometryType type) {
  switch (type) {
    case GeometryType::plane:
      return "plane";
    case GeometryType::sphere:
      return "sphere";
    case GeometryType::ellipsoid:
      return "ellipsoid";
    case GeometryType::capsule:
      return "capsule";
    case GeometryType::box:
      return "box";
    case GeometryType::cylinder:
      return "cylinder";
    case GeometryType::mesh:
      return "mesh";
    case GeometryType::height_field:
      return "height_field";
  }
  return "unknown";
}

}  // namespace backdrive
