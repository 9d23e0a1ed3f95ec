// What a scene varies.
#include <algorithm>
#include <cmath>

#include "autodiff/problem/parameter_chart.h"
#include "scenes/reader.h"

namespace backdrive::scene {
ControlChannel channel_of(std::string_view word) {
  if (word == "target_position") return ControlChannel::target_position;
  if (word == "target_velocity") return ControlChannel::target_velocity;
  return ControlChannel::effort;
}

void ProblemReader::read_variables() {
  has_variables_ = mistakes_.attempt([&] {
    for (const View& view : root_["optimize"]["variables"].items()) {
      has_variables_ = mistakes_.attempt([&] { read_variable(view); }) && has_variables_;
    }
    if (!has_variables_) Mistakes::leave_off();
  });
  resolve_ties();
}

namespace {

constexpr const char* kTieExpected =
    "a variable's name, with or without a factor and a constant (2 * NAME + 1 cm), or a sum of products of names and "
    "numbers";

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? std::string_view() : text.substr(first, last - first + 1);
}

}  // namespace

void ProblemReader::read_tie(Variable& variable, Dimension dimension, const JointType* joint, const View& view) {
  const View tie = view["same_as"];
  if (!tie) return;
  for (const char* const key : {"bounds", "initial", "scale", "knots", "interpolation"}) {
    if (view.given(key)) view[key].refuse("no such key beside same_as: the other variable has it");
  }
  ReadTie read{problem_.variables.size(), {}, tie};
  std::string_view rest = tie.text();
  for (double sign = 1; !rest.empty();) {
    const std::size_t end = std::min(rest.find(" + "), rest.find(" - "));
    read_tie_term(without_spaces(rest.substr(0, end)), sign, dimension, joint, variable.tie, read);
    if (end == std::string_view::npos) break;
    sign = rest[end + 1] == '-' ? -1 : 1;
    rest.remove_prefix(end + 3);
    if (rest.empty()) tie.refuse(kTieExpected);
  }
  if (read.terms.empty()) tie.refuse(kTieExpected);
  ties_.push_back(std::move(read));
}

void ProblemReader::read_tie_term(std::string_view text, double sign, Dimension dimension, const JointType* joint,
                                  Tie& tie, ReadTie& to) const {
  const bool alone = text.find(" * ") == std::string_view::npos;
  ReadTie::Term term{sign};
  while (true) {
    const std::size_t star = text.find(" * ");
    const std::string_view part = without_spaces(text.substr(0, star));
    Quantity quantity;
    if (part.empty()) to.view.refuse(kTieExpected);
    if (!parse_quantity(part, quantity).expected.empty()) {
      if (std::string_view("0123456789.+-").find(part[0]) != std::string_view::npos) to.view.refuse(kTieExpected);
      term.of.emplace_back(part);
    } else if (quantity.has_unit && !alone) {
      to.view.refuse(kTieExpected);
    } else if (!unit_fits(quantity, dimension, joint)) {
      to.view.refuse(dimension_words(dimension, joint) + " as the constant");
    } else {
      term.factor *= quantity.value;
    }
    if (star == std::string_view::npos) break;
    text.remove_prefix(star + 3);
  }
  if (term.of.empty()) {
    tie.shift += term.factor;
  } else if (term.factor == 0) {
    to.view.refuse("a factor that is not zero");
  } else {
    to.terms.push_back(std::move(term));
  }
}

void ProblemReader::resolve_ties() {
  std::vector<std::string> names;
  for (const Variable& variable : problem_.variables) names.push_back(variable.name);
  for (const ReadTie& tie : ties_) mistakes_.attempt([&] { resolve_tie(tie, names); });
  for (const ReadTie& tie : ties_) {
    const Variable& variable = problem_.variables[tie.variable];
    if (tie.terms.size() == 1 && variable.tie.terms.size() == 1 && variable.tie.terms[0].of.size() == 1) {
      Tie& simple = problem_.variables[tie.variable].tie;
      simple.to = simple.terms[0].of[0], simple.factor = simple.terms[0].factor;
      simple.terms.clear();
    }
  }
}

int ProblemReader::tie_numbers(const Variable& of) const {
  if (of.kind != VariableKind::parameter || of.parameter.component >= 0) return 1;
  return ParameterChart(problem_.model, of.parameter).size();
}

void ProblemReader::resolve_tie(const ReadTie& tie, std::span<const std::string> names) {
  Variable& variable = problem_.variables[tie.variable];
  bool any_control = false;
  for (const ReadTie::Term& read : tie.terms) {
    TieTerm term{read.factor};
    for (const std::string& name : read.of) {
      const auto found = std::ranges::find(names, name);
      if (found == names.end()) {
        if (!has_variables_) Mistakes::leave_off();
        tie.view.refuse("the name of another variable", nearest_name(name.substr(0, 200), names));
      }
      const int index = static_cast<int>(found - names.begin());
      const Variable& to = problem_.variables[index];
      const bool is_tied = std::ranges::any_of(
          ties_, [&](const ReadTie& other) { return other.variable == static_cast<std::size_t>(index); });
      if (is_tied) tie.view.refuse("a variable that is not tied itself");
      if (to.is_control() && !variable.is_control()) tie.view.refuse("a variable that is no control");
      if (to.is_control() && any_control && (to.knots != variable.knots || to.hold != variable.hold)) {
        tie.view.refuse("controls of the same knots and interpolation");
      }
      if (to.is_control()) variable.knots = to.knots, variable.hold = to.hold, any_control = true;
      const int own = tie_numbers(variable), others = tie_numbers(to);
      const bool one_for_all = tie.terms.size() + read.of.size() > 2 && others == 1;
      if (!variable.is_control() && own != others && !one_for_all) {
        tie.view.refuse("a variable of " + std::to_string(own) + " numbers (this one has " + std::to_string(others) +
                        ")");
      }
      term.of.push_back(index);
    }
    variable.tie.terms.push_back(std::move(term));
  }
  if (variable.is_control() && !any_control) tie.view.refuse("another control");
}

void ProblemReader::read_variable(const View& view) {
  const Model& model = problem_.model;
  if (view.given("parameter")) {
    const View path = view["parameter"];
    std::vector<FieldSelection> selections;
    try {
      selections = select_fields(model, path.text());
    } catch (const Error& error) {
      refuse_path(path, error);
    }
    for (const FieldSelection& selection : selections) {
      Variable one;
      one.kind = VariableKind::parameter;
      one.parameter = selection;
      one.name = path_of(model, selection);
      if (selection.field->values != ValueRange::any) one.lower = 0;
      const JointType* type = nullptr;
      if (selection.field->group == FieldGroup::joints) type = &model.joint_types[selection.item];
      if (selection.field->group == FieldGroup::couplings) type = unit_of_coupling(model, selection.item);
      // What slides and turns takes either unit.
      if (type && (*type == JointType::planar || *type == JointType::free)) type = nullptr;
      const int numbers = selection.component < 0 ? selection.field->components : 1;
      add_variable(std::move(one), dimension_of(*selection.field), type, {static_cast<size_t>(numbers)}, view);
    }
    return;
  }
  view.given("control") ? read_control_variable(view) : read_initial_state_variable(view);
}

void ProblemReader::read_control_variable(const View& view) {
  const View name = view["control"];
  Variable variable;
  variable.joint = controlled(name);
  const std::string& word = view["channel"].text();
  variable.channel = channel_of(word);
  const std::vector<NamedComponent> parts = channel_parts(variable.joint, word, view["channel"]);
  variable.hold = view["interpolation"].text() == "hold";
  if (const View knots = view["knots"]) {
    variable.knots = knots.integer();
    check_knots(variable.knots, knots);
  }
  const size_t numbers = variable.knots > 0 ? variable.knots : simulation().control_steps();
  for (const NamedComponent& part : asked_parts(parts, view)) {
    Variable one = variable;
    const std::string quantity = part.component.name();
    one.name = "control/" + name.text() + (quantity == "effort" ? "" : "/" + quantity);
    one.component = part.index;
    add_variable(std::move(one), dimension_of(variable.channel), part.unit(), {numbers}, view);
  }
}

void ProblemReader::read_initial_state_variable(const View& view) {
  const View name = view["initial_state"], quantity = view["quantity"];
  const int joint = moving_joint(name);
  if (problem_.model.joint_loops[joint]) name.refuse(kJointOfTheTree);
  const JointType type = problem_.model.joint_types[joint];
  const bool is_position = quantity.text() == "position";
  std::vector<NamedComponent> parts;
  int index = 0;
  for (const JointComponent& c : is_position ? position_components(type) : velocity_components(type)) {
    if (quantity.text() == c.quantity) parts.push_back({index, c});
    ++index;
  }
  if (parts.empty()) {
    const bool turns = has_quaternion(type) && is_position;
    quantity.refuse("a quantity that can vary of joint '" + name.text() + "', which is " + to_string(type) +
                    (turns ? " (its orientation is fixed)" : ""));
  }
  const std::vector<NamedComponent> asked = asked_parts(parts, view);
  for (std::size_t k = 0; k < asked.size(); ++k) {
    Variable variable;
    variable.joint = joint;
    variable.component = asked[k].index;
    variable.kind = is_position ? VariableKind::initial_position : VariableKind::initial_velocity;
    variable.name = "initial_state/" + name.text() + "/" + asked[k].component.name();
    add_variable(std::move(variable), is_position ? Dimension::joint_position : Dimension::joint_velocity,
                 asked[k].unit(), {1, k, asked.size()}, view);
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
