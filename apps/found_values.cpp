#include "apps/found_values.h"

#include <algorithm>
#include <cmath>

#include "apps/console.h"
#include "apps/table.h"
#include "models/fields.h"
#include "scenes/reader.h"

namespace backdrive::app {
namespace {

/// How near a bound counts as on it, relative to the bound or the variable's scale.
constexpr double kAtBound = 1e-9;

std::string bound_note(const Variable& variable, double value) {
  const auto at = [&](double bound) {
    return std::isfinite(bound) && std::abs(value - bound) <= kAtBound * std::max(variable.scale, std::abs(bound));
  };
  if (at(variable.lower)) return "at its lower bound";
  return at(variable.upper) ? "at its upper bound" : "";
}

std::string unit_text(scene::Dimension dimension, const JointType* joint) {
  const std::string unit = scene::si_unit(dimension, joint);
  return unit == "1" ? "" : unit;
}

void add_parameter(const Model& model, const Variable& variable, std::vector<FoundValue>& to) {
  const auto& [field, item, component] = variable.parameter;
  // Coefficients of joints that slide and turn have either unit.
  const bool one_degree = field->group == FieldGroup::joints && has_one_degree(model.joint_types[item]);
  const JointType* type = one_degree ? &model.joint_types[item] : nullptr;
  if (field->group == FieldGroup::couplings) type = unit_of_coupling(model, item);
  const std::string unit = unit_text(scene::dimension_of(*field), type);
  const int count = used_components(model, *field, item);
  for (int c = component < 0 ? 0 : component; c < (component < 0 ? count : component + 1); ++c) {
    const double value = field->in(model)(item, c);
    to.push_back({path_of(model, {field, item, count == 1 ? -1 : c}), value, unit, bound_note(variable, value)});
  }
}

void add_initial_state(const Problem& problem, const Variable& variable, std::vector<FoundValue>& to) {
  const Model& model = problem.model;
  const JointType type = model.joint_types[variable.joint];
  const Link& link = model.topology.links[model.link_of_joint(variable.joint)];
  const bool position = variable.kind == VariableKind::initial_position;
  const JointComponent& component =
      (position ? position_components(type) : velocity_components(type))[variable.component];
  const JointType unit = component.turns ? JointType::revolute : JointType::prismatic;
  const double value = position ? problem.initial_position[link.q + variable.component]
                                : problem.initial_velocity[link.v + variable.component];
  to.push_back({variable.name, value,
                unit_text(position ? scene::Dimension::joint_position : scene::Dimension::joint_velocity, &unit),
                bound_note(variable, value)});
}

void add_control(const Problem& problem, const Variable& variable, std::vector<FoundValue>& to) {
  const auto drives = [&](const ControlSignal& s) {
    return s.drives(variable.joint, variable.channel, variable.component) && s.values.size() == 1;
  };
  const auto signal = std::ranges::find_if(problem.controls, drives);
  if (signal == problem.controls.end()) return;
  const double value = signal->values[0];
  to.push_back({variable.name, value,
                unit_text(scene::dimension_of(variable.channel),
                          unit_of_controlled(problem.model, variable.joint, variable.channel, variable.component)),
                bound_note(variable, value)});
}

}  // namespace

std::vector<FoundValue> found_values(const Problem& problem) {
  std::vector<FoundValue> values;
  for (const Variable& variable : problem.variables) {
    switch (variable.kind) {
      case VariableKind::parameter:
        add_parameter(problem.model, variable, values);
        break;
      case VariableKind::initial_position:
      case VariableKind::initial_velocity:
        add_initial_state(problem, variable, values);
        break;
      case VariableKind::control:
        add_control(problem, variable, values);
        break;
    }
  }
  return values;
}

std::string found_table(const std::vector<FoundValue>& values) {
  Table table({{"found", Table::Align::left}, {"value"}, {"unit", Table::Align::left}, {"", Table::Align::left}});
  for (const FoundValue& v : values) table.add({v.name, number(v.value), v.unit, v.note});
  return table.text();
}

}  // namespace backdrive::app
