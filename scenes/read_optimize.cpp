// What a scene varies.
#include <algorithm>
#include <cmath>

#include "autodiff/problem/parameter_chart.h"
#include "scenes/reader.h"

namespace backdrive::scene {
ControlChannel channel_of(const View& view) {
  if (view.text() == "target_position") return ControlChannel::target_position;
  if (view.text() == "target_velocity") return ControlChannel::target_velocity;
  return ControlChannel::effort;
}

void ProblemReader::read_variables() {
  for (const View& view : root_["optimize"]["variables"].items()) read_variable(view);
  resolve_ties();
}

void ProblemReader::read_tie(Variable& variable, Dimension dimension, const JointType* joint, const View& view) {
  const View tie = view["same_as"];
  if (!tie) return;
  for (const char* const key : {"bounds", "initial", "scale", "knots", "interpolation"}) {
    if (view.given(key)) view[key].refuse("no such key beside same_as: the other variable has it");
  }
  constexpr const char* expected = "a variable's name, with or without a factor and a constant: 2 * NAME + 1 cm";
  std::string text = tie.text();
  const auto trimmed = [](std::string from) {
    const std::size_t first = from.find_first_not_of(' '), last = from.find_last_not_of(' ');
    return first == std::string::npos ? std::string() : from.substr(first, last - first + 1);
  };
  const auto number = [&](const std::string& from, double& to, bool unit) {
    Quantity quantity;
    if (!parse_quantity(from, quantity).expected.empty() || (quantity.has_unit && !unit)) tie.refuse(expected);
    if (!unit_fits(quantity, dimension, joint)) tie.refuse(dimension_words(dimension, joint) + " as the constant");
    to = quantity.value;
  };
  if (const std::size_t star = text.find(" * "); star != std::string::npos) {
    number(trimmed(text.substr(0, star)), variable.tie.factor, false);
    text = text.substr(star + 3);
  }
  for (const char sign : {'+', '-'}) {
    const std::size_t at = text.find(std::string(" ") + sign + " ");
    if (at == std::string::npos) continue;
    number(trimmed(text.substr(at + 3)), variable.tie.shift, true);
    if (sign == '-') variable.tie.shift = -variable.tie.shift;
    text = text.substr(0, at);
    break;
  }
  if (variable.tie.factor == 0) tie.refuse("a factor that is not zero");
  ties_.push_back({problem_.variables.size(), trimmed(text), tie});
}

void ProblemReader::resolve_ties() {
  std::vector<std::string> names;
  for (const Variable& variable : problem_.variables) names.push_back(variable.name);
  for (const ReadTie& tie : ties_) {
    Variable& variable = problem_.variables[tie.variable];
    const auto found = std::ranges::find(names, tie.to);
    if (found == names.end()) {
      tie.view.refuse("the name of another variable", nearest_name(tie.to.substr(0, 200), names));
    }
    variable.tie.to = static_cast<int>(found - names.begin());
    const Variable& to = problem_.variables[variable.tie.to];
    const bool is_tied = std::ranges::any_of(
        ties_, [&](const ReadTie& other) { return other.variable == static_cast<std::size_t>(variable.tie.to); });
    if (is_tied) tie.view.refuse("a variable that is not tied itself");
    if (variable.is_control() && to.is_control()) variable.knots = to.knots, variable.hold = to.hold;
    if (variable.is_control() != to.is_control()) {
      tie.view.refuse(variable.is_control() ? "another control" : "a variable that is no control");
    }
    const auto numbers = [&](const Variable& of) {
      if (of.kind != VariableKind::parameter || of.parameter.component >= 0) return 1;
      return ParameterChart(problem_.model, of.parameter).size();
    };
    if (numbers(variable) != numbers(to)) {
      tie.view.refuse("a variable of " + std::to_string(numbers(variable)) + " numbers (this one has " +
                      std::to_string(numbers(to)) + ")");
    }
  }
}

void ProblemReader::read_variable(const View& view) {
  const Model& model = problem_.model;
  Variable variable;
  if (view.given("parameter")) {
    const View path = view["parameter"];
    std::vector<FieldSelection> selections;
    try {
      selections = select_fields(model, path.text());
    } catch (const Error& error) {
      path.refuse(std::string("the path of a model parameter (") + error.what() + ")");
    }
    for (const FieldSelection& selection : selections) {
      Variable one;
      one.kind = VariableKind::parameter;
      one.parameter = selection;
      one.name = path_of(model, selection);
      if (selection.field->values != ValueRange::any) one.lower = 0;
      const bool of_joint = selection.field->group == FieldGroup::joints;
      const int numbers = selection.component < 0 ? selection.field->components : 1;
      add_variable(std::move(one), dimension_of(*selection.field),
                   of_joint ? &model.joint_types[selection.item] : nullptr, {static_cast<size_t>(numbers)}, view);
    }
    return;
  }
  if (!view.given("control")) return read_initial_state_variable(view);
  const View name = view["control"];
  variable.joint = joint_of_one_degree(name);
  const JointType* type = &model.joint_types[variable.joint];
  variable.channel = channel_of(view["channel"]);
  check_channel(variable.joint, variable.channel, view["channel"]);
  variable.hold = view["interpolation"].text() == "hold";
  if (const View knots = view["knots"]) {
    variable.knots = knots.integer();
    check_knots(variable.knots, knots);
  }
  const char* const suffix[] = {"", "/target_position", "/target_velocity"};
  variable.name = "control/" + name.text() + suffix[static_cast<int>(variable.channel)];
  const size_t numbers = variable.knots > 0 ? variable.knots : problem_.simulation.control_steps();
  add_variable(std::move(variable), dimension_of(channel_of(view["channel"])), type, {numbers}, view);
}

void ProblemReader::read_initial_state_variable(const View& view) {
  const View name = view["initial_state"], quantity = view["quantity"];
  const int joint = moving_joint(name);
  if (problem_.model.joint_loops[joint]) name.refuse(kJointOfTheTree);
  const JointType type = problem_.model.joint_types[joint];
  const bool is_position = quantity.text() == "position";
  const auto components = is_position ? position_components(type) : velocity_components(type);
  const auto parts = static_cast<size_t>(
      std::ranges::count_if(components, [&](const JointComponent& c) { return quantity.text() == c.quantity; }));
  size_t part = 0;
  for (std::size_t k = 0; k < components.size(); ++k) {
    const JointComponent& c = components[k];
    if (quantity.text() != c.quantity) continue;
    Variable variable;
    variable.joint = joint;
    variable.component = static_cast<int>(k);
    variable.kind = is_position ? VariableKind::initial_position : VariableKind::initial_velocity;
    variable.name = "initial_state/" + name.text() + "/" + c.name();
    const JointType unit = c.turns ? JointType::revolute : JointType::prismatic;
    add_variable(std::move(variable), is_position ? Dimension::joint_position : Dimension::joint_velocity, &unit,
                 {1, part++, parts}, view);
  }
  if (parts == 0) {
    const bool turns = has_quaternion(type) && is_position;
    quantity.refuse("a quantity that can vary of joint '" + name.text() + "', which is " + to_string(type) +
                    (turns ? " (its orientation is fixed)" : ""));
  }
}

void ProblemReader::add_variable(Variable variable, Dimension dimension, const JointType* joint, const Extent& extent,
                                 const View& view) {
  const View bounds = view["bounds"];
  const std::vector<double> range = bounds.numbers(dimension, joint);
  const bool nonnegative = variable.lower == 0;
  if (!std::isnan(range[0])) variable.lower = range[0];
  if (!std::isnan(range[1])) variable.upper = range[1];
  if (nonnegative && variable.lower < 0) bounds.refuse("bounds ≥ 0 for " + variable.name);
  if (variable.lower > variable.upper) bounds.refuse("a lower bound that is not above the upper one");
  variable.scale = view["scale"].number(dimension, joint);
  read_tie(variable, dimension, joint, view);
  read_initial(variable, dimension, joint, extent, view);

  const bool is_parameter = variable.kind == VariableKind::parameter;
  std::string base = variable.name;
  if (is_parameter) base = path_of(problem_.model, {variable.parameter.field, variable.parameter.item, -1});
  const int component = is_parameter ? variable.parameter.component : -1;
  for (const auto& [other, part] : varied_) {
    if (other == base && (part < 0 || component < 0 || part == component)) {
      view.refuse("a variable that is not one already (" + variable.name + " is)");
    }
  }
  varied_.emplace_back(std::move(base), component);
  variable_views_.push_back(view);
  problem_.variables.push_back(std::move(variable));
}

void ProblemReader::read_initial(Variable& variable, Dimension dimension, const JointType* joint, const Extent& extent,
                                 const View& view) const {
  const View initial = view["initial"];
  if (!initial) return;
  const bool is_map = initial.kind() == NodeKind::map;
  const View value = is_map ? initial["value"] : initial;
  if (is_map) variable.random = initial["random"].number(dimension, joint);
  if (!value) return;
  variable.initial = value.numbers(dimension, joint);
  if (extent.parts > 1 && variable.initial.size() == extent.parts) {
    variable.initial = {variable.initial[extent.part]};
  } else if (variable.initial.size() != 1 && variable.initial.size() != extent.numbers) {
    value.refuse("1 or " + std::to_string(std::max(extent.numbers, extent.parts)) + " numbers for " + variable.name);
  }
  for (const double x : variable.initial) {
    if (x < variable.lower || x > variable.upper) value.refuse("values within the bounds");
  }
}

}  // namespace backdrive::scene
