// What there is to probe: numbers of the initial state, of controls, of parameters, and in what steps.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "autodiff/check/gradient_probes.h"
#include "models/parameter_reader.h"

namespace backdrive {
namespace {

const char* unit_of(ControlChannel channel, bool turns) {
  switch (channel) {
    case ControlChannel::effort:
      return turns ? "N·m" : "N";
    case ControlChannel::target_position:
      return turns ? "rad" : "m";
    case ControlChannel::target_velocity:
      return turns ? "rad/s" : "m/s";
  }
  return "";
}

double largest_finite(const Parameter& p, int item) {
  double largest = 0;
  for (int c = 0; c < p.components(); ++c) {
    if (std::isfinite(p(item, c))) largest = std::max(largest, std::abs(p(item, c)));
  }
  return largest;
}

}  // namespace

void ProbedProblem::add_units(const Problem& problem) {
  const Topology& t = problem.model.topology;
  for (const Variable& variable : problem.variables) {
    if (variable.is_tied() || variable.scale == 1) continue;
    const bool of_state =
        variable.kind == VariableKind::initial_position || variable.kind == VariableKind::initial_velocity;
    const Link* const link = of_state ? &t.links[problem.model.link_of_joint(variable.joint)] : nullptr;
    int channel = -1;
    if (variable.is_control()) {
      channel = channel_row(problem.model, variable.joint, variable.channel, variable.component, {"", variable.name});
    }
    const auto varies = [&](const ProbeGroup& group, const Probe& probe) {
      const FieldSelection& own = variable.parameter;
      switch (variable.kind) {
        case VariableKind::parameter:
          return probe.kind == Probe::Kind::parameter && group.field.field == own.field &&
                 group.field.item == own.item && (own.component < 0 || own.component == probe.component);
        case VariableKind::initial_position:
          return probe.kind == Probe::Kind::position && probe.row == link->q + variable.component;
        case VariableKind::initial_velocity:
          return probe.kind == Probe::Kind::velocity && probe.row == link->v + variable.component;
        case VariableKind::control:
          return probe.kind == Probe::Kind::control && probe.row % t.nu == channel;
      }
      return false;
    };
    for (ProbeGroup& group : groups_) {
      for (Probe& probe : group.probes) {
        if (varies(group, probe)) probe.unit = variable.scale;
      }
    }
  }
}

bool ProbedProblem::may_fall(const Probe& probe, double amount) const {
  if (probe.kind != Probe::Kind::parameter) return true;
  const ParameterChart& chart = charts_[probe.chart];
  return chart.field().values == ValueRange::any || chart.start()[probe.component] > amount;
}

void ProbedProblem::add_state_groups() {
  const Model& model = problem_.model;
  const std::vector<int> tangent = tangent_rows(model.topology);
  for (const Probe::Kind kind : {Probe::Kind::position, Probe::Kind::velocity}) {
    const bool position = kind == Probe::Kind::position;
    const std::vector<double>& values = position ? problem_.initial_position : problem_.initial_velocity;
    for (std::size_t joint = 0; joint < model.joint_names.size(); ++joint) {
      const JointType type = model.joint_types[joint];
      if (joint_size(type).nv == 0 || model.joint_loops[joint]) continue;
      const int first = model.topology.links[model.link_of_joint(static_cast<int>(joint))].v;
      // A position's small changes are those of its velocities.
      const auto components = velocity_components(type);
      for (std::size_t k = 0; k < components.size(); ++k) {
        const JointComponent& c = components[k];
        const bool turns_quaternion = has_quaternion(type) && k < 3;
        if (k == 0 || c.quantity != components[k - 1].quantity || c.turns != components[k - 1].turns) {
          ProbeGroup group;
          std::string quantity = position ? (turns_quaternion ? "orientation" : "position") : c.quantity;
          if (k > 0 && c.quantity == components[k - 1].quantity) quantity += std::string("/") + c.axis;
          group.name = "initial_state/" + model.joint_names[joint] + "/" + quantity;
          group.unit = unit_of(position ? ControlChannel::target_position : ControlChannel::target_velocity, c.turns);
          groups_.push_back(std::move(group));
        }
        ProbeGroup& group = groups_.back();
        const int row = position ? tangent[first + k] : first + static_cast<int>(k);
        const double scale = turns_quaternion && position ? 1 : std::max(1.0, std::abs(values[row]));
        group.index.push_back(group.total++);
        group.probes.push_back({kind, row, -1, 0, scale});
      }
    }
  }
}

void ProbedProblem::add_control_groups(int sample, std::uint64_t seed) {
  const Model& model = problem_.model;
  const int nu = model.topology.nu, steps = options_.steps, total = row_count(steps, nu);
  if (total == 0) return;
  const Control<double> control = initial_control<double>(problem_, 1);
  std::mt19937_64 generator(seed);
  std::vector<int> rows(total);
  std::iota(rows.begin(), rows.end(), 0);
  const int count = std::min(std::max(sample, 0), total);
  for (int k = 0; k < count; ++k) {
    std::swap(rows[k], rows[k + static_cast<int>(generator() % static_cast<std::uint64_t>(total - k))]);
  }
  std::sort(rows.begin(), rows.begin() + count);
  double square = 0, largest = 0;
  for (int r = 0; r < total; ++r) {
    direction_.push_back(2 * unit_interval(generator) - 1);
    square += direction_.back() * direction_.back();
    largest = std::max(largest, std::abs(control.u(r, 0)));
  }
  for (double& d : direction_) d /= std::sqrt(square);

  for (const ControlRow& channel : control_rows(model)) {
    ProbeGroup group;
    group.name = "control/" + channel.name;
    group.unit = unit_of(channel.channel, channel.turns);
    group.total = steps;
    for (int k = 0; k < count; ++k) {
      if (rows[k] % nu != channel.row) continue;
      group.probes.push_back({Probe::Kind::control, rows[k], -1, 0, std::max(1.0, std::abs(control.u(rows[k], 0)))});
      group.index.push_back(rows[k] / nu);
    }
    if (!group.probes.empty()) groups_.push_back(std::move(group));
  }
  ProbeGroup all;
  all.name = "control/* (one random direction)";
  all.total = total;
  all.probes.push_back({Probe::Kind::all_controls, 0, -1, 0, std::max(1.0, largest) * std::sqrt(total)});
  all.index.push_back(0);
  groups_.push_back(std::move(all));
}

/// How large numbers of this kind are: the item's own, or where they are zero what stands beside
/// them.
double ProbedProblem::parameter_scale(const Field& field, int item) const {
  const Model& model = problem_.model;
  const Parameter& values = field.in(model);
  if (field.tangents != field.components || field.leaf == "axis") return 1;
  double scale = largest_finite(values, item);
  const bool mass = field.leaf == "mass", inertia = field.leaf == "inertia";
  if (field.group != FieldGroup::couplings && (mass || inertia || field.leaf == "armature")) {
    const int body = field.group == FieldGroup::bodies ? item : model.joint_children[item];
    const MassProperties<double> all = body_mass(model, body, 0);
    const bool heavy = mass || (!inertia && model.joint_types[item] == JointType::prismatic);
    scale = std::max(scale, heavy ? all.mass : std::max({all.inertia.xx, all.inertia.yy, all.inertia.zz}));
  }
  for (int other = 0; scale == 0 && other < values.items(); ++other) scale = largest_finite(values, other);
  return scale > 0 ? scale : 1;
}

void ProbedProblem::add_parameter_groups() {
  const Model& model = problem_.model;
  for (const Field& field : fields()) {
    for (int item = 0; item < field.in(model).items(); ++item) {
      const FieldSelection selection{&field, item, -1};
      ProbeGroup group;
      group.name = path_of(model, selection);
      group.unit = field.unit;
      group.unused = unused_reason(model, field, item);
      group.field = selection;
      if (!group.unused) {
        const int chart = static_cast<int>(charts_.size());
        charts_.emplace_back(model, selection);
        group.total = charts_.back().size();
        for (int k = 0; k < group.total; ++k) {
          group.probes.push_back({Probe::Kind::parameter, 0, chart, k, parameter_scale(field, item)});
          group.index.push_back(k);
        }
      }
      groups_.push_back(std::move(group));
    }
  }
}

}  // namespace backdrive
