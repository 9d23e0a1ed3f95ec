#include "models/coordinates.h"

namespace backdrive {
namespace {

constexpr JointComponent kTurn[] = {{"position", "", true}}, kTurnRate[] = {{"velocity", "", true}};
constexpr JointComponent kSlide[] = {{"position", "", false}}, kSlideRate[] = {{"velocity", "", false}};
constexpr JointComponent kTorque[] = {{"effort", "", true}}, kForce[] = {{"effort", "", false}};
constexpr JointComponent kUniversal[] = {{"position", "x", true}, {"position", "y", true}};
constexpr JointComponent kUniversalRate[] = {{"velocity", "x", true}, {"velocity", "y", true}};
constexpr JointComponent kUniversalEffort[] = {{"effort", "x", true}, {"effort", "y", true}};
constexpr JointComponent kPlanar[] = {{"position", "x", false}, {"position", "y", false}, {"position", "angle", true}};
constexpr JointComponent kPlanarRate[] = {
    {"velocity", "x", false}, {"velocity", "y", false}, {"velocity", "angle", true}};
constexpr JointComponent kPlanarEffort[] = {{"effort", "x", false}, {"effort", "y", false}, {"effort", "angle", true}};
constexpr JointComponent kTurnTarget[] = {{"target_position", "", true}}, kTurnGoal[] = {{"target_velocity", "", true}};
constexpr JointComponent kSlideTarget[] = {{"target_position", "", false}},
                         kSlideGoal[] = {{"target_velocity", "", false}};
constexpr JointComponent kTurnTargets[] = {
    {"target_position", "x", true}, {"target_position", "y", true}, {"target_position", "z", true}};
constexpr JointComponent kTurnGoals[] = {
    {"target_velocity", "x", true}, {"target_velocity", "y", true}, {"target_velocity", "z", true}};
constexpr JointComponent kPlanarTarget[] = {
    {"target_position", "x", false}, {"target_position", "y", false}, {"target_position", "angle", true}};
constexpr JointComponent kPlanarGoal[] = {
    {"target_velocity", "x", false}, {"target_velocity", "y", false}, {"target_velocity", "angle", true}};
constexpr JointComponent kFree[] = {
    {"orientation", "x", false}, {"orientation", "y", false}, {"orientation", "z", false}, {"orientation", "w", false},
    {"position", "x", false},    {"position", "y", false},    {"position", "z", false}};
constexpr JointComponent kFreeRate[] = {{"angular_velocity", "x", true}, {"angular_velocity", "y", true},
                                        {"angular_velocity", "z", true}, {"velocity", "x", false},
                                        {"velocity", "y", false},        {"velocity", "z", false}};
constexpr JointComponent kFreeEffort[] = {{"torque", "x", true}, {"torque", "y", true}, {"torque", "z", true},
                                          {"force", "x", false}, {"force", "y", false}, {"force", "z", false}};

Quaternion<double> quaternion_at(std::span<const double> q, int row) {
  return load_quaternion(q.data() + row);
}

/// The joints' and the bodies'.
template <class Visit>
void each_quaternion_of_all(const Topology& topology, const Visit& visit) {
  each_quaternion(topology, visit);
  each_body(topology, [&](int q, int v) { visit(TurnSide::left, q, v); });
}

}  // namespace

std::string command_name(const JointComponent& effort) {
  const std::string name = effort.name(), plain = "effort";
  return "command" + (name.starts_with(plain) ? name.substr(plain.size()) : "/" + name);
}

std::span<const JointComponent> position_components(JointType type) {
  switch (type) {
    case JointType::revolute:
      return kTurn;
    case JointType::prismatic:
      return kSlide;
    case JointType::universal:
      return kUniversal;
    case JointType::planar:
      return kPlanar;
    case JointType::ball:
      return std::span(kFree).first(4);
    case JointType::free:
      return kFree;
    case JointType::fixed:
      break;
  }
  return {};
}

std::span<const JointComponent> velocity_components(JointType type) {
  switch (type) {
    case JointType::revolute:
      return kTurnRate;
    case JointType::prismatic:
      return kSlideRate;
    case JointType::universal:
      return kUniversalRate;
    case JointType::planar:
      return kPlanarRate;
    case JointType::ball:
      return std::span(kFreeRate).first(3);
    case JointType::free:
      return kFreeRate;
    case JointType::fixed:
      break;
  }
  return {};
}

std::span<const JointComponent> effort_components(JointType type) {
  switch (type) {
    case JointType::revolute:
      return kTorque;
    case JointType::prismatic:
      return kForce;
    case JointType::universal:
      return kUniversalEffort;
    case JointType::planar:
      return kPlanarEffort;
    case JointType::ball:
      return std::span(kFreeEffort).first(3);
    case JointType::free:
      return kFreeEffort;
    case JointType::fixed:
      break;
  }
  return {};
}

namespace {

std::vector<std::string> component_names(const Model& model, std::span<const JointComponent> (*of)(JointType)) {
  std::vector<std::string> names;
  for (std::size_t joint = 0; joint < model.joint_names.size(); ++joint) {
    for (const JointComponent& c : of(model.joint_types[joint])) {
      names.push_back(model.joint_names[joint] + "/" + c.name());
    }
  }
  return names;
}

}  // namespace

std::vector<std::string> position_names(const Model& model) {
  return component_names(model, position_components);
}
std::vector<std::string> velocity_names(const Model& model) {
  return component_names(model, velocity_components);
}

const char* to_string(ControlChannel channel) {
  switch (channel) {
    case ControlChannel::effort:
      return "effort";
    case ControlChannel::target_position:
      return "target_position";
    case ControlChannel::target_velocity:
      return "target_velocity";
  }
  return "unknown";
}

std::span<const JointComponent> channel_components(JointType type, ControlChannel channel) {
  if (channel == ControlChannel::effort) return effort_components(type);
  const bool position = channel == ControlChannel::target_position;
  if (type == JointType::revolute) return position ? kTurnTarget : kTurnGoal;
  if (type == JointType::prismatic) return position ? kSlideTarget : kSlideGoal;
  if (type == JointType::planar) return position ? kPlanarTarget : kPlanarGoal;
  const std::span turns(position ? kTurnTargets : kTurnGoals);
  if (type == JointType::universal) return turns.first(2);
  return type == JointType::ball ? turns : std::span<const JointComponent>();
}

DegreeOfFreedom degree_of_freedom(const Model& model, int joint, int k) {
  const int link = model.link_of_joint(joint);
  const bool chain = joint_size(model.topology.links[link].type).nv < joint_size(model.joint_types[joint]).nv;
  return chain ? DegreeOfFreedom{link + k, 0} : DegreeOfFreedom{link, k};
}

bool is_driven(const Model& model, int joint) {
  return model.topology.links[model.link_of_joint(joint)].target >= 0;
}

std::vector<ControlRow> control_rows(const Model& model) {
  std::vector<ControlRow> rows;
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const int joint = static_cast<int>(j);
    for (const ControlChannel channel :
         {ControlChannel::effort, ControlChannel::target_position, ControlChannel::target_velocity}) {
      if (channel != ControlChannel::effort && !is_driven(model, joint)) break;
      int component = 0;
      for (const JointComponent& c : channel_components(model.joint_types[j], channel)) {
        rows.push_back({model.joint_names[j] + "/" + c.name(), channel, control_row(model, joint, channel, component),
                        c.turns, joint, component});
        ++component;
      }
    }
  }
  for (std::size_t c = 0; c < model.coupling_names.size(); ++c) {
    const int controlled = static_cast<int>(model.joint_names.size() + c);
    for (const ControlChannel channel :
         {ControlChannel::effort, ControlChannel::target_position, ControlChannel::target_velocity}) {
      const int row = control_row(model, controlled, channel);
      if (row < 0) continue;
      const JointComponent& one = controlled_components(model, controlled, channel)[0];
      rows.push_back({model.coupling_names[c] + "/" + one.name(), channel, row, one.turns, controlled, 0});
    }
  }
  return rows;
}

namespace {

int coupling_of(const Model& model, int controlled) {
  return controlled - static_cast<int>(model.joint_names.size());
}

}  // namespace

int find_controlled(const Model& model, const std::string& name) {
  const int joint = model.find_joint(name), coupling = model.find_coupling(name);
  return joint >= 0 || coupling < 0 ? joint : static_cast<int>(model.joint_names.size()) + coupling;
}

const std::string& name_of_controlled(const Model& model, int controlled) {
  const int coupling = coupling_of(model, controlled);
  return coupling < 0 ? model.joint_names.at(controlled) : model.coupling_names.at(coupling);
}

const JointType* unit_of_coupling(const Model& model, int coupling) {
  const JointType* unit = nullptr;
  for (const auto& [of, joint] : model.coupling_terms) {
    if (of != coupling) continue;
    if (unit && *unit != model.joint_types[joint]) return nullptr;
    unit = &model.joint_types[joint];
  }
  return unit;
}

double coupling_position(const Model& model, int coupling, std::span<const double> q) {
  const Coupling& own = model.topology.couplings[coupling];
  double s = model.couplings.offset(coupling);
  for (int k = own.first_term; k < own.first_term + own.term_count; ++k) {
    s += model.couplings.ratios(k) * q[model.topology.coupling_terms[k].q];
  }
  return s;
}

double coupling_velocity(const Model& model, int coupling, std::span<const double> qd) {
  const Coupling& own = model.topology.couplings[coupling];
  double rate = 0;
  for (int k = own.first_term; k < own.first_term + own.term_count; ++k) {
    rate += model.couplings.ratios(k) * qd[model.topology.coupling_terms[k].v];
  }
  return rate;
}

std::span<const JointComponent> controlled_components(const Model& model, int controlled, ControlChannel channel) {
  const int coupling = coupling_of(model, controlled);
  if (coupling < 0) return channel_components(model.joint_types[controlled], channel);
  const JointType* const unit = unit_of_coupling(model, coupling);
  return channel_components(unit ? *unit : JointType::prismatic, channel);
}

const JointType* unit_of_controlled(const Model& model, int controlled, ControlChannel channel, int component) {
  static constexpr JointType turns = JointType::revolute, slides = JointType::prismatic;
  const int coupling = coupling_of(model, controlled);
  if (coupling >= 0) return unit_of_coupling(model, coupling);
  return channel_components(model.joint_types[controlled], channel)[component].turns ? &turns : &slides;
}

int control_row(const Model& model, int controlled, ControlChannel channel, int component) {
  const int coupling = coupling_of(model, controlled);
  int effort, target;
  if (coupling < 0) {
    const auto [at, dof] = degree_of_freedom(model, controlled, component);
    const Link& link = model.topology.links[at];
    effort = link.v + dof, target = link.target < 0 ? -1 : link.target + 2 * dof;
  } else {
    effort = model.topology.couplings.at(coupling).effort, target = model.topology.couplings.at(coupling).target;
  }
  if (channel == ControlChannel::effort) return effort;
  return target < 0 ? -1 : target + (channel == ControlChannel::target_velocity ? 1 : 0);
}

int link_of_controlled(const Model& model, int controlled) {
  const int coupling = coupling_of(model, controlled);
  if (coupling < 0) return model.link_of_joint(controlled);
  return model.topology.coupling_terms[model.topology.couplings.at(coupling).first_term].link;
}

std::vector<int> tangent_rows(const Topology& topology) {
  std::vector<int> rows(topology.nv);
  for (const Link& link : topology.links) {
    for (int k = 0; k < joint_size(link.type).nv; ++k) {
      rows[link.v + k] = link.q + k + (link.type == JointType::free && k > 2 ? 1 : 0);
    }
  }
  each_body(topology, [&](int q, int v) {
    for (int k = 0; k < kBodyVelocities; ++k) rows[v + k] = q + k + (k > 2 ? 1 : 0);
  });
  return rows;
}

std::vector<double> neutral_positions(const Topology& topology) {
  std::vector<double> q(topology.nq, 0.0);
  each_quaternion(topology, [&](TurnSide, int row, int) { q[row + 3] = 1; });
  return q;
}

void add_tangent(const Topology& topology, std::span<const double> change, std::span<double> q) {
  const std::vector<int> rows = tangent_rows(topology);
  std::vector<bool> turns(topology.nv, false);
  each_quaternion_of_all(topology, [&](TurnSide side, int row, int v) {
    const Vec3<double> theta{change[v], change[v + 1], change[v + 2]};
    const Quaternion<double> at = quaternion_at(q, row);
    const Quaternion<double> next =
        side == TurnSide::left ? turned<TurnSide::left>(at, theta) : turned<TurnSide::right>(at, theta);
    q[row] = next.v.x, q[row + 1] = next.v.y, q[row + 2] = next.v.z, q[row + 3] = next.w;
    turns[v] = turns[v + 1] = turns[v + 2] = true;
  });
  for (int v = 0; v < topology.nv; ++v) {
    if (!turns[v]) q[rows[v]] += change[v];
  }
}

// With dq = ½ Q θ and QᵀQ = 1: θ̄ = ½ Qᵀ q̄, whose least solution is q̄ = 2 Q θ̄, four times the rate along θ̄.
void to_quaternion_components(const Topology& topology, std::span<const double> q, std::span<double> gradient) {
  each_quaternion_of_all(topology, [&](TurnSide side, int row, int) {
    const Vec3<double> theta_bar{gradient[row], gradient[row + 1], gradient[row + 2]};
    const Quaternion<double> bar = quaternion_rate(side, quaternion_at(q, row), theta_bar * 4.0);
    gradient[row] = bar.v.x, gradient[row + 1] = bar.v.y, gradient[row + 2] = bar.v.z, gradient[row + 3] = bar.w;
  });
}

void to_tangent_components(const Topology& topology, std::span<const double> q, std::span<double> gradient) {
  each_quaternion_of_all(topology, [&](TurnSide side, int row, int) {
    const Quaternion<double> bar = quaternion_at(gradient, row);
    const Vec3<double> theta = turn_of_rate(side, quaternion_at(q, row), bar) * 0.25;
    gradient[row] = theta.x, gradient[row + 1] = theta.y, gradient[row + 2] = theta.z, gradient[row + 3] = 0;
  });
}

}  // namespace backdrive
