#include "apps/view_sliders.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <string_view>

#include "apps/console.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/zero_gradient.h"
#include "autodiff/problem/dependence.h"
#include "models/builder.h"

namespace backdrive::app {
namespace {

/// How many numbers of a parameter move by themselves: of an orientation the three of a turn.
int movable_components(const Model& model, const Field& field, int item) {
  return field.components == 4 ? field.tangents : used_components(model, field, item);
}

bool is_turn(const Field& field) {
  return field.components == 4;
}
/// Whose numbers do not stand for themselves, so that one variable has all of them.
bool moves_as_one(const Field& field) {
  return is_turn(field) || field.leaf == "axis";
}

FieldSelection number_of(const Field& field, int item, int component) {
  return {&field, item, field.components == 1 ? -1 : component};
}

/// Around a value, on the side of zero that it may be on.
void guess_range(Slider& slider, bool nonnegative, double reach) {
  if (!std::isfinite(slider.value)) {
    slider.lower = -reach, slider.upper = reach;
    return;
  }
  const double size = std::abs(slider.value) > 0 ? std::abs(slider.value) : reach;
  slider.lower = nonnegative ? 0 : slider.value - size;
  slider.upper = slider.value + size;
}

void add_state_sliders(const Problem& problem, bool positions, std::vector<Slider>& sliders) {
  const Model& model = problem.model;
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const JointType type = model.joint_types[j];
    const auto components = positions ? position_components(type) : velocity_components(type);
    if (components.empty() || model.joint_loops[j]) continue;
    const int joint = static_cast<int>(j);
    const Link& link = model.topology.links[model.link_of_joint(joint)];
    for (std::size_t k = 0; k < components.size(); ++k) {
      const JointComponent& c = components[k];
      if (std::string_view(c.quantity) == "orientation") continue;  // its numbers cannot vary one by one
      Slider slider;
      slider.path = "initial_state/" + model.joint_names[j] + "/" + c.name();
      slider.value = positions ? problem.initial_position[link.q + k] : problem.initial_velocity[link.v + k];
      slider.unit = std::string(c.turns ? "rad" : "m") + (positions ? "" : "/s");
      slider.words = "at the start";
      slider.is_position = positions;
      const double reach = c.turns ? std::numbers::pi : 1;
      slider.lower = slider.value - reach, slider.upper = slider.value + reach;
      if (positions && has_one_degree(type)) {
        const double lower = model.joints.limit.lower(joint), upper = model.joints.limit.upper(joint);
        if (std::isfinite(lower)) slider.lower = std::min(lower, slider.value);
        if (std::isfinite(upper)) slider.upper = std::max(upper, slider.value);
      }
      sliders.push_back(std::move(slider));
    }
  }
}

void add_parameter_sliders(const Model& model, std::vector<Slider>& sliders) {
  for (const Field& field : fields()) {
    const Parameter& parameter = field.in(model);
    for (int item = 0; item < parameter.items(); ++item) {
      if (unused_reason(model, field, item) && !field.may_be_infinite) continue;
      for (int k = 0; k < movable_components(model, field, item); ++k) {
        Slider slider;
        slider.path = path_of(model, number_of(field, item, k));
        slider.value = is_turn(field) ? 0 : parameter(item, k);
        slider.unit = is_turn(field) ? "rad" : std::string(field.unit);
        slider.words = std::string(field.doc) + (is_turn(field) ? ": turned by that about its own axis" : "");
        guess_range(slider, field.values != ValueRange::any, 1);
        sliders.push_back(std::move(slider));
      }
    }
  }
}

/// The variable of a path that begins with initial_state/.
Variable state_variable(const Problem& problem, const std::string& path) {
  const Model& model = problem.model;
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const std::string before = "initial_state/" + model.joint_names[j] + "/";
    if (!path.starts_with(before) || model.joint_loops[j]) continue;
    const std::string rest = path.substr(before.size());
    const JointType type = model.joint_types[j];
    for (const bool position : {true, false}) {
      const auto components = position ? position_components(type) : velocity_components(type);
      for (std::size_t k = 0; k < components.size(); ++k) {
        if (components[k].name() != rest) continue;
        if (std::string_view(components[k].quantity) == "orientation") {
          input_error(path + ": a component of an orientation cannot vary by itself");
        }
        Variable variable;
        variable.kind = position ? VariableKind::initial_position : VariableKind::initial_velocity;
        variable.joint = static_cast<int>(j);
        variable.component = static_cast<int>(k);
        return variable;
      }
    }
  }
  input_error(path + ": expected initial_state/JOINT/position or /velocity of a joint of this model");
}

/// The one number that a path names.
FieldSelection parameter_of(const Model& model, const std::string& path) {
  const std::vector<FieldSelection> found = select_fields(model, path);
  FieldSelection one = found[0];
  const int count = movable_components(model, *one.field, one.item);
  if (found.size() > 1 || (one.component < 0 && count > 1)) input_error(path + ": expected the path of one number");
  if (one.component >= count) input_error(path + ": there is no such number to move");
  return one;
}

/// What a value must be beside a number: the scene's reader says the same.
void check_range(const std::string& path, const FieldSelection& number, double value) {
  const ValueRange values = number.field->values;
  const bool scale = number.field->leaf == "geometry/scale";
  const char* expected = nullptr;
  if (values == ValueRange::nonnegative && value < 0) expected = "at least 0";
  if (values == ValueRange::positive && value <= 0) expected = "more than 0";
  if (scale && value < 1e-6) expected = "at least 1e-6";
  if (expected) input_error(path + ": value " + exact(value) + ": expected " + expected);
}

}  // namespace

std::vector<Slider> sliders_of(const Problem& problem) {
  std::vector<Slider> sliders;
  add_state_sliders(problem, true, sliders);
  add_state_sliders(problem, false, sliders);
  add_parameter_sliders(problem.model, sliders);
  return sliders;
}

MovedProblem move_numbers(const Problem& problem, const std::vector<std::pair<std::string, double>>& values) {
  MovedProblem moved{problem, {}};
  Problem& p = moved.problem;
  p.variables.clear();
  std::vector<double> x;
  std::map<std::pair<const Field*, int>, int> as_one;  // where the numbers of axes and turns begin
  for (const auto& [path, value] : values) {
    Variable variable;
    int component = 0;
    if (path.starts_with("initial_state/")) {
      variable = state_variable(p, path);
    } else {
      variable.kind = VariableKind::parameter;
      variable.parameter = parameter_of(p.model, path);
      check_range(path, variable.parameter, value);
    }
    variable.name = path;
    if (variable.kind == VariableKind::parameter && moves_as_one(*variable.parameter.field)) {
      component = std::max(0, std::exchange(variable.parameter.component, -1));
      const std::pair item{variable.parameter.field, variable.parameter.item};
      const auto [at, first] = as_one.try_emplace(item, static_cast<int>(x.size()));
      if (first) {
        const std::vector<double> start = ParameterChart(p.model, variable.parameter).start();
        x.insert(x.end(), start.begin(), start.end());
        p.variables.push_back(std::move(variable));
      }
      moved.numbers.emplace_back(path, at->second + component);
    } else {
      moved.numbers.emplace_back(path, static_cast<int>(x.size()));
      x.push_back(0);
      p.variables.push_back(std::move(variable));
    }
    x[moved.numbers.back().second] = value;
  }
  std::vector<Variable> variables = p.variables;
  p = with_values(p, x);
  p.variables = std::move(variables);
  validate(p.model);
  return moved;
}

SliderGradient slider_gradient(const MovedProblem& moved, ExecutionOptions how) {
  Problem problem = moved.problem;
  const LinkDependence links = loss_dependence(problem);
  const VariableLayout all = variable_layout(problem);
  std::vector<int> kept(all.total, -1);  // where a number is among those that are asked for
  std::vector<const char*> why_of(all.total, nullptr);
  std::vector<Variable> asked;
  int next = 0;
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    const bool parameter = variable.kind == VariableKind::parameter;
    const FieldSelection& s = variable.parameter;
    const char* why = disconnected_reason(problem, links, variable);
    if (!why && parameter) why = unused_reason(problem.model, *s.field, s.item);
    for (int k = 0; k < all.size[v]; ++k) {
      why_of[all.offset[v] + k] = why;
      if (!why) kept[all.offset[v] + k] = next++;
    }
    if (!why) asked.push_back(variable);
  }
  problem.variables = std::move(asked);
  SliderGradient result;
  std::vector<double> gradient;
  if (!problem.variables.empty()) {
    keep_within_memory(problem, how);
    const Slopes slopes = slopes_at(problem, {initial_points(problem, 1, 0)[0]}, how);
    if (slopes.status[0].stopped()) throw Error(ErrorKind::non_finite, describe_stop(problem, 0, slopes.status[0]));
    result.loss = slopes.loss[0];
    gradient = slopes.gradient[0];
  }
  for (const auto& [path, number] : moved.numbers) {
    result.gradient.push_back(kept[number] < 0 ? 0 : gradient[kept[number]]);
    result.why.emplace_back(why_of[number] ? why_of[number] : "");
  }
  return result;
}

}  // namespace backdrive::app
