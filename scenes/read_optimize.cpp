// What a scene varies and scores.
#include <algorithm>
#include <cmath>

#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

ControlChannel channel_of(const View& view) {
  if (view.text() == "target_position") return ControlChannel::target_position;
  if (view.text() == "target_velocity") return ControlChannel::target_velocity;
  return ControlChannel::effort;
}

double weight_of(const View& weight, const char* part) {
  return weight.kind() == NodeKind::map ? weight[part].number() : weight.number();
}

}  // namespace

void ProblemReader::read_variables() {
  for (const View& view : root_["optimize"]["variables"].items()) read_variable(view);
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
      if (selection.field->nonnegative) one.lower = 0;
      const bool of_joint = selection.field->group == FieldGroup::joints;
      const int numbers = selection.component < 0 ? selection.field->components : 1;
      add_variable(std::move(one), dimension_of(*selection.field),
                   of_joint ? &model.joint_types[selection.item] : nullptr, numbers, view);
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
  const size_t numbers = variable.knots > 0 ? variable.knots : problem_.simulation.steps;
  add_variable(std::move(variable), channel_dimension(channel_of(view["channel"])), type, numbers, view);
}

void ProblemReader::read_initial_state_variable(const View& view) {
  const View name = view["initial_state"], quantity = view["quantity"];
  const int joint = moving_joint(name);
  const JointType type = problem_.model.joint_types[joint];
  const bool is_position = quantity.text() == "position";
  const auto components = is_position ? position_components(type) : velocity_components(type);
  bool found = false;
  for (std::size_t k = 0; k < components.size(); ++k) {
    const JointComponent& c = components[k];
    if (quantity.text() != c.quantity) continue;
    found = true;
    Variable variable;
    variable.joint = joint;
    variable.component = static_cast<int>(k);
    variable.kind = is_position ? VariableKind::initial_position : VariableKind::initial_velocity;
    variable.name = "initial_state/" + name.text() + "/" + c.name();
    const JointType unit = c.turns ? JointType::revolute : JointType::prismatic;
    add_variable(std::move(variable), is_position ? Dimension::joint_position : Dimension::joint_velocity, &unit, 1,
                 view);
  }
  if (!found) {
    const bool turns = has_quaternion(type) && is_position;
    quantity.refuse("a quantity that can vary of joint '" + name.text() + "', which is " + to_string(type) +
                    (turns ? " (its orientation is fixed)" : ""));
  }
}

void ProblemReader::add_variable(Variable variable, Dimension dimension, const JointType* joint, size_t numbers,
                                 const View& view) {
  const View bounds = view["bounds"];
  const std::vector<double> range = bounds.numbers(dimension, joint);
  const bool nonnegative = variable.lower == 0;
  if (!std::isnan(range[0])) variable.lower = range[0];
  if (!std::isnan(range[1])) variable.upper = range[1];
  if (nonnegative && variable.lower < 0) bounds.refuse("bounds ≥ 0 for " + variable.name);
  if (variable.lower > variable.upper) bounds.refuse("a lower bound that is not above the upper one");
  variable.scale = view["scale"].number(dimension, joint);
  read_initial(variable, dimension, joint, numbers, view);

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

void ProblemReader::read_initial(Variable& variable, Dimension dimension, const JointType* joint, size_t numbers,
                                 const View& view) const {
  const View initial = view["initial"];
  if (!initial) return;
  const bool is_map = initial.kind() == NodeKind::map;
  const View value = is_map ? initial["value"] : initial;
  if (is_map) variable.random = initial["random"].number(dimension, joint);
  if (!value) return;
  variable.initial = value.numbers(dimension, joint);
  if (variable.initial.size() != 1 && variable.initial.size() != numbers) {
    value.refuse("1 or " + std::to_string(numbers) + " numbers for " + variable.name);
  }
  for (const double x : variable.initial) {
    if (x < variable.lower || x > variable.upper) value.refuse("values within the bounds");
  }
}

void ProblemReader::read_loss() {
  const View loss = root_["optimize"]["loss"];
  for (const View& term : loss["terminal"].items()) read_term(term, true);
  for (const View& term : loss["running"].items()) read_term(term, false);
}

void ProblemReader::add_term(LossTerm term, const std::string& name) {
  term.name = (term.terminal ? "terminal/" : "running/") + name;
  // Equal names would make equal columns.
  const auto taken = [&](const std::string& candidate) {
    return std::any_of(problem_.loss.begin(), problem_.loss.end(),
                       [&](const LossTerm& other) { return other.name == candidate; });
  };
  std::string candidate = term.name;
  for (int k = 2; taken(candidate); ++k) candidate = term.name + "/" + std::to_string(k);
  term.name = std::move(candidate);
  problem_.loss.push_back(std::move(term));
}

int ProblemReader::contact_pair(const View& view, bool& swapped) const {
  const Model& model = problem_.model;
  const std::vector<View> names = view.items();
  if (names.size() != 2) view.refuse("two names of shapes");
  int shapes[2];
  for (int k = 0; k < 2; ++k) {
    shapes[k] = model.find_shape(names[k].text());
    if (shapes[k] >= 0) continue;
    names[k].refuse("the name of a shape", nearest_name(names[k].text().substr(0, 200), model.shape_names.list()));
  }
  const Topology& t = model.topology;
  for (std::size_t k = 0; k < t.contact_pairs.size(); ++k) {
    const int a = t.contact_shapes[t.contact_pairs[k].a].shape, b = t.contact_shapes[t.contact_pairs[k].b].shape;
    swapped = a == shapes[1] && b == shapes[0];
    if (swapped || (a == shapes[0] && b == shapes[1])) return static_cast<int>(k);
  }
  view.refuse("two shapes that may touch (see their types, `collision`, and `contacts`)");
}

void ProblemReader::read_contact_term(const View& view, LossTerm term) {
  if (term.terminal) view.refuse("a contact among the running terms: forces act in steps, not in the last state");
  bool swapped = false;
  const View names = view["contact"];
  term.quantity = LossQuantity::contact_force;
  term.index = contact_pair(names, swapped);
  const std::vector<double> force = view["force"].numbers();
  for (int k = 0; k < 3; ++k) term.target[k] = swapped ? -force[k] : force[k];
  term.weight = view["weight"].number();
  const std::vector<View> shapes = names.items();
  add_term(term, "contact/" + shapes[0].text() + "/" + shapes[1].text());
}

void ProblemReader::read_term(const View& view, bool terminal) {
  const Model& model = problem_.model;
  LossTerm term;
  term.terminal = terminal;
  if (view.given("control")) {
    const View name = view["control"];
    term.quantity = LossQuantity::control;
    term.index = joint_of_one_degree(name);
    term.channel = channel_of(view["channel"]);
    check_channel(term.index, term.channel, view["channel"]);
    term.target[0] = view["target"].number(channel_dimension(term.channel), &model.joint_types[term.index]);
    term.weight = view["weight"].number();
    const bool is_effort = term.channel == ControlChannel::effort;
    add_term(term, name.text() + "/" + (is_effort ? "effort" : view["channel"].text()));
    return;
  }
  if (view.given("contact")) return read_contact_term(view, term);
  const bool is_joint = view.given("joint");
  const char* second = is_joint ? "velocity" : "orientation";
  if (!view.given("position") && !view.given(second)) {
    view.refuse(std::string("one of the keys position and ") + second);
  }
  const View weight = view["weight"];
  if (is_joint) {
    const View name = view["joint"];
    term.index = joint_of_one_degree(name);
    const JointType* type = &model.joint_types[term.index];
    if (view.given("position")) {
      LossTerm position = term;
      const bool unlimited =
          std::isinf(model.joints.limit.lower(term.index)) && std::isinf(model.joints.limit.upper(term.index));
      position.on_circle =
          view.given("on_circle") ? view["on_circle"].flag() : *type == JointType::revolute && unlimited;
      if (position.on_circle && *type != JointType::revolute) {
        view["on_circle"].refuse("false for a joint that is not revolute");
      }
      position.target[0] = view["position"].number(type);
      position.weight = weight_of(weight, "position");
      add_term(position, name.text() + "/position");
    }
    if (view.given("velocity")) {
      term.quantity = LossQuantity::joint_velocity;
      term.target[0] = view["velocity"].number(type);
      term.weight = weight_of(weight, "velocity");
      add_term(term, name.text() + "/velocity");
    }
    return;
  }
  const View name = view["body"];
  term.index = body(name);
  const std::vector<double> point = view["point"].numbers();
  std::copy(point.begin(), point.end(), term.point.begin());
  if (view.given("position")) {
    LossTerm position = term;
    position.quantity = LossQuantity::body_position;
    const std::vector<double> target = view["position"].numbers();
    std::copy(target.begin(), target.end(), position.target.begin());
    position.weight = weight_of(weight, "position");
    add_term(position, name.text() + "/position");
  }
  if (view.given("orientation")) {
    term.quantity = LossQuantity::body_orientation;
    term.target = read_orientation(view["orientation"]);
    term.weight = weight_of(weight, "orientation");
    add_term(term, name.text() + "/orientation");
  }
}

}  // namespace backdrive::scene
