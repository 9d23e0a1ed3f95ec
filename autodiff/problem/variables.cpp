#include "autodiff/problem/variables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "autodiff/problem/dependence.h"
#include "autodiff/problem/normal_numbers.h"
#include "engine/error.h"
#include "engine/spatial.h"

namespace backdrive {
namespace {

/// Shortest length that a shape's scale may take, m.
constexpr double kShortest = 1e-6;

std::vector<double> start_values(const Problem& problem, const Variable& variable);

const Link& link_of(const Problem& problem, const Variable& variable) {
  const int joints = static_cast<int>(problem.model.joint_names.size());
  if (variable.joint < 0 || variable.joint >= joints) {
    input_error(variable.name + ": joint index " + std::to_string(variable.joint) + ", expected one of " +
                std::to_string(joints) + " joints");
  }
  return problem.model.topology.links[problem.model.link_of_joint(variable.joint)];
}

/// Row that a variable of a state or control drives.
int variable_row(const Problem& problem, const Variable& variable) {
  if (variable.is_control()) {
    return channel_row(problem.model, variable.joint, variable.channel, variable.component, {"", variable.name});
  }
  const Link& link = link_of(problem, variable);
  const JointType type = problem.model.joint_types[variable.joint];
  const std::string joint = variable.name + ": joint '" + problem.model.joint_names[variable.joint] + "' is ";
  const bool position = variable.kind == VariableKind::initial_position;
  const JointSize size = joint_size(type);
  const int count = position ? size.nq : size.nv;
  if (variable.component < 0 || variable.component >= count) {
    input_error(joint + to_string(type) + ": component " + std::to_string(variable.component) + ", expected one of " +
                std::to_string(count));
  }
  if (position && has_quaternion(type) && variable.component < 4) {
    input_error(joint + to_string(type) + ", and a component of its orientation cannot vary by itself");
  }
  return (position ? link.q : link.v) + variable.component;
}

int control_size(const Problem& problem, const Variable& variable) {
  return variable.knots > 0 ? variable.knots : problem.simulation.control_steps();
}

/// Chart of a parameter variable, about the problem's model.
ParameterChart chart_of(const Problem& problem, const Variable& variable) {
  if (!variable.parameter.field) input_error(variable.name + ": names no parameter");
  if (variable.is_tied()) {
    const std::vector<double> start = start_values(problem, variable);
    ParameterChart chart{problem.model, variable.parameter, {}};
    if (chart.size() != static_cast<int>(start.size())) {
      input_error(variable.name + " of " + std::to_string(chart.size()) + " numbers is tied to " +
                  (variable.is_expression() ? "values" : problem.variables[variable.tie.to].name) + " of " +
                  std::to_string(start.size()));
    }
    chart.start_at(start.data());
    return chart;
  }
  return {problem.model, variable.parameter, variable.initial};
}

/// A signal's value at the knots of a variable that takes its place: at the first step where each
/// knot counts fully.
std::vector<double> sampled(const ControlSignal& signal, int knots, bool hold, int steps) {
  const int given = static_cast<int>(signal.values.size());
  if (given == knots && signal.hold == hold) return signal.values;
  std::vector<double> values(knots, 0.0);
  if (given == 0) return values;
  for (int k = 0; k < knots; ++k) {
    const double at = hold || knots == 1 ? static_cast<double>(k) * steps / knots
                                         : static_cast<double>(k) * (steps - 1) / (knots - 1);
    const int step = std::min(static_cast<int>(std::ceil(at)), steps - 1);
    const KnotWeights w = knot_weights(given, steps, step, signal.hold);
    values[k] = w.first_weight * signal.values[w.first] + w.second_weight * signal.values[w.second];
  }
  return values;
}

/// A value from its scaled number; one that rounding alone takes past a bound stands on it.
double unscaled(double x, const Problem& problem, const Variable& variable) {
  const VariableScale by = scale_of(problem, variable);
  const double value = x * by.scale + by.shift, ulps = 4 * std::numeric_limits<double>::epsilon();
  for (const double bound : {variable.lower, variable.upper}) {
    if (std::isfinite(bound) && std::abs(value - bound) <= ulps * std::abs(bound)) return bound;
  }
  return value;
}

const ControlSignal* find_signal(const std::vector<ControlSignal>& signals, const Variable& variable) {
  for (const ControlSignal& signal : signals) {
    if (signal.drives(variable.joint, variable.channel, variable.component)) return &signal;
  }
  return nullptr;
}

/// Of a variable that is an expression.
std::vector<double> expression_start(const Problem& problem, const Variable& variable) {
  std::vector<double> sum(1, variable.tie.shift);
  for (const TieTerm& term : variable.tie.terms) {
    std::vector<double> product(1, term.factor);
    const auto widen = [](std::vector<double>& to, std::size_t size) {
      if (to.size() == 1 && size > 1) to.assign(size, to[0]);
    };
    for (const int v : term.of) {
      std::vector<double> values = start_values(problem, problem.variables[v]);
      widen(product, values.size()), widen(values, product.size());
      if (values.size() != product.size()) break;  // variable_layout() says so
      for (std::size_t k = 0; k < values.size(); ++k) product[k] *= values[k];
    }
    widen(sum, product.size()), widen(product, sum.size());
    for (std::size_t k = 0; k < std::min(sum.size(), product.size()); ++k) sum[k] += product[k];
  }
  return sum;
}

/// Initial value of each number of a variable, not scaled, without its random part.
std::vector<double> start_values(const Problem& problem, const Variable& variable) {
  if (variable.is_expression()) return expression_start(problem, variable);
  if (variable.is_tied()) {
    std::vector<double> values = start_values(problem, problem.variables[variable.tie.to]);
    for (double& value : values) value = variable.tie.factor * value + variable.tie.shift;
    return values;
  }
  if (variable.kind == VariableKind::parameter) return chart_of(problem, variable).start();
  const bool control = variable.kind == VariableKind::control;
  const size_t size = control ? control_size(problem, variable) : 1;
  if (variable.initial.size() == 1) return std::vector<double>(size, variable.initial[0]);
  if (!variable.initial.empty()) {
    if (variable.initial.size() == size) return variable.initial;
    input_error(variable.name + ": " + std::to_string(variable.initial.size()) + " initial values, expected 1 or " +
                std::to_string(size));
  }
  const int row = variable_row(problem, variable);
  if (variable.kind == VariableKind::initial_position) return {problem.initial_position[row]};
  if (variable.kind == VariableKind::initial_velocity) return {problem.initial_velocity[row]};
  const ControlSignal* signal = find_signal(problem.controls, variable);
  if (!signal) return std::vector<double>(size, 0.0);
  return sampled(*signal, static_cast<int>(size), variable.hold, problem.simulation.control_steps());
}

/// An axis or orientation, whose numbers do not stand for themselves: only one variable may hold
/// any of them.
bool is_rotation(const Field& field) {
  return field.tangents != field.components || field.leaf == "axis";
}

/// Throws when two variables drive the same number.
void check_distinct(const std::vector<Variable>& variables) {
  for (size_t a = 0; a < variables.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const Variable &x = variables[a], &y = variables[b];
      if (x.kind != y.kind) continue;
      bool same = x.joint == y.joint && x.component == y.component;
      if (x.kind == VariableKind::control) same = same && x.channel == y.channel;
      if (x.kind == VariableKind::parameter) {
        const FieldSelection &p = x.parameter, &q = y.parameter;
        same = p.field == q.field && p.item == q.item &&
               (is_rotation(*p.field) || p.component < 0 || q.component < 0 || p.component == q.component);
      }
      if (same) {
        input_error(x.name + " and " + y.name + " among the variables drive the same number, expected one of them");
      }
    }
  }
}

/// Throws for a parameter that cannot have any effect, unless another variable gives it one.
void check_used(const Problem& problem, const Variable& variable) {
  const FieldSelection& s = variable.parameter;
  if (problem.model.parameter_worlds() > 1) {
    usage_error("variables of a model whose parameters differ from world to world; expected uniform ones");
  }
  for (const double x : start_values(problem, variable)) {
    if (!std::isfinite(x)) input_error(variable.name + " is infinite; expected a finite initial value");
  }
  const char* reason = unused_reason(problem.model, *s.field, s.item);
  // Whether an initial value makes what there was not: a limit, or a drive's, of a joint or coupling that can have one.
  const bool of_joint = s.field->group == FieldGroup::joints;
  const JointType type = of_joint ? problem.model.joint_types[s.item] : JointType::revolute;
  const bool can_be = may_be_driven(type) && !(type == JointType::ball && s.field->leaf == "limit/lower");
  const bool infinite_before = can_be && !std::isfinite(s.field->in(problem.model)(s.item, 0));
  if (!reason || (infinite_before && !variable.initial.empty())) return;
  const auto is_varied = [&](std::string_view leaf) {
    return std::any_of(problem.variables.begin(), problem.variables.end(), [&](const Variable& v) {
      return v.kind == VariableKind::parameter && v.parameter.field && v.parameter.field->group == s.field->group &&
             v.parameter.item == s.item && v.parameter.field->leaf == leaf;
    });
  };
  if (s.field->group == FieldGroup::shapes && is_varied("density") && s.field->leaf != "density") return;
  const bool of_speed = s.field->leaf.starts_with("limit/velocity");
  if (can_be && s.field->leaf.starts_with("limit/") &&
      (of_speed ? is_varied("limit/velocity") : is_varied("limit/lower") || is_varied("limit/upper"))) {
    return;
  }
  input_error(variable.name + " cannot change the motion: " + reason);
}

}  // namespace

bool VariableBounds::any() const {
  const auto finite = [](double x) { return std::isfinite(x); };
  return std::any_of(lower.begin(), lower.end(), finite) || std::any_of(upper.begin(), upper.end(), finite);
}

void VariableBounds::clip(std::vector<double>& x) const {
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::min(std::max(x[i], lower[i]), upper[i]);
}

double VariableBounds::projected_norm(const double* x, const double* gradient) const {
  double sum = 0;
  for (size_t i = 0; i < lower.size(); ++i) {
    const double step = std::min(upper[i] - x[i], std::max(lower[i] - x[i], -gradient[i]));
    sum += step * step;
  }
  return std::sqrt(sum);
}

VariableBounds variable_bounds(const Problem& problem) {
  const VariableLayout layout = variable_layout(problem);
  VariableBounds bounds;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    if (variable.is_tied()) continue;
    double lower = variable.lower;
    if (variable.kind == VariableKind::parameter && variable.parameter.field->values != ValueRange::any) {
      lower = std::max(lower, variable.parameter.field->leaf == "geometry/scale" ? kShortest : 0.0);
    }
    bounds.lower.insert(bounds.lower.end(), layout.size[v], lower / variable.scale);
    bounds.upper.insert(bounds.upper.end(), layout.size[v], variable.upper / variable.scale);
  }
  return bounds;
}

VariableScale scale_of(const Problem& problem, const Variable& variable) {
  if (!variable.is_tied()) return {variable.scale, 0};
  if (variable.is_expression()) return {1, 0};  // its numbers are computed, and its values
  return {variable.tie.factor * problem.variables[variable.tie.to].scale, variable.tie.shift};
}

VariableLayout variable_layout(const Problem& problem) {
  VariableLayout layout;
  for (const Variable& variable : problem.variables) {
    int size = 1;
    if (variable.kind == VariableKind::control) size = control_size(problem, variable);
    if (variable.kind == VariableKind::parameter) size = chart_of(problem, variable).size();
    if (!(variable.scale > 0) || !std::isfinite(variable.scale)) {
      input_error(variable.name + ": scale " + std::to_string(variable.scale) + ", expected more than 0");
    }
    layout.offset.push_back(layout.total);
    layout.size.push_back(size);
    if (!variable.is_tied()) layout.total += size;
  }
  const auto check = [&](const Variable& variable, int to, int size, bool one_does) {
    if (to < 0 || to >= static_cast<int>(problem.variables.size()) || problem.variables[to].is_tied()) {
      input_error(variable.name + ": tied to a variable that is tied or none, expected one with numbers of its own");
    }
    if (layout.size[to] != size && !(one_does && layout.size[to] == 1)) {
      input_error(variable.name + " of " + std::to_string(size) + " numbers is tied to " + problem.variables[to].name +
                  " of " + std::to_string(layout.size[to]));
    }
  };
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    if (!variable.is_tied()) continue;
    if (variable.is_expression()) {
      for (const TieTerm& term : variable.tie.terms) {
        for (const int to : term.of) check(variable, to, layout.size[v], true);
      }
      layout.offset[v] = layout.total + layout.computed;
      layout.computed += layout.size[v];
      continue;
    }
    check(variable, variable.tie.to, layout.size[v], false);
    layout.offset[v] = layout.offset[variable.tie.to];
  }
  return layout;
}

TieProducts tie_products(const Problem& problem, const VariableLayout& layout) {
  TieProducts all;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    if (!variable.is_expression()) continue;
    const auto add = [&](double factor, const std::vector<int>& of) {
      all.products.push_back({static_cast<int>(v), layout.offset[v], layout.size[v], factor,
                              static_cast<int>(all.factors.size()), static_cast<int>(of.size())});
      for (const int to : of) {
        all.factors.push_back({layout.offset[to], layout.size[to] == 1 ? 0 : 1, problem.variables[to].scale});
      }
    };
    for (const TieTerm& term : variable.tie.terms) add(term.factor, term.of);
    if (variable.tie.shift != 0) add(variable.tie.shift, {});
  }
  return all;
}

bool Variable::is_tied_to(int v) const {
  const auto holds = [&](const TieTerm& term) { return std::ranges::find(term.of, v) != term.of.end(); };
  return tie.to == v || std::ranges::any_of(tie.terms, holds);
}

std::vector<VariableEntry> variable_entries(const Problem& problem) {
  check_distinct(problem.variables);
  const VariableLayout layout = variable_layout(problem);
  const LinkDependence links = loss_dependence(problem);
  std::vector<VariableEntry> entries;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    const VariableScale by = scale_of(problem, variable);
    VariableEntry entry{variable.kind, layout.offset[v], layout.size[v], by.scale, by.shift, 0, {}, {}};
    if (variable.kind == VariableKind::parameter) check_used(problem, variable);
    const char* const why = problem.loss.empty() ? nullptr : disconnected_reason(problem, links, variable);
    if (why) input_error(variable.name + " cannot change the loss: " + why);
    if (variable.kind == VariableKind::parameter) {
      entry.chart = chart_of(problem, variable);
      const bool plain = entry.chart->chart().kind == Chart::Kind::plain;
      const bool tied_to = std::ranges::any_of(
          problem.variables, [&](const Variable& other) { return other.is_tied_to(static_cast<int>(v)); });
      if (!plain && (variable.is_tied() || tied_to)) {
        input_error(variable.name + ": axes and orientations are tied to nothing, expected plain numbers");
      }
    } else {
      entry.row = variable_row(problem, variable);
    }
    if (variable.kind == VariableKind::control) {
      const int steps = problem.simulation.steps;
      for (int step = 0; step < steps; ++step) {
        entry.knots.push_back(knot_weights(entry.size, problem.simulation, step, variable.hold));
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::vector<double>> initial_points(const Problem& problem, int starts, std::uint64_t seed) {
  if (starts < 1) usage_error(std::to_string(starts) + " starts, expected 1 or more");
  const VariableBounds bounds = variable_bounds(problem);
  std::vector<std::vector<double>> points(starts);
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    if (variable.is_tied()) continue;
    const std::vector<double> values = start_values(problem, variable);
    for (int k = 0; k < starts; ++k) {
      const bool plain = k == 0 && starts > 1;
      NormalNumbers normal(seed, k, v);
      for (const double value : values) {
        const double part = variable.random * normal.next();
        points[k].push_back((plain ? value : value + part) / variable.scale);
      }
    }
  }
  for (std::vector<double>& point : points) bounds.clip(point);
  return points;
}

Problem with_values(const Problem& problem, const std::vector<double>& x) {
  const VariableLayout layout = variable_layout(problem);
  if (static_cast<int>(x.size()) != layout.total) {
    usage_error(std::to_string(x.size()) + " numbers for variables that have " + std::to_string(layout.total));
  }
  const TieProducts ties = tie_products(problem, layout);
  std::vector<double> numbers = x;
  numbers.resize(layout.total + layout.computed);
  for (const TieProduct& product : ties.products)
    TieProducts::add<double>(product, ties.factors.data(), {numbers.data()});
  Problem result = problem;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    const auto own = numbers.begin() + layout.offset[v];
    std::vector<double> values(own, own + layout.size[v]);
    for (double& value : values) value = unscaled(value, problem, variable);
    if (variable.kind == VariableKind::parameter) {
      const ParameterChart chart = chart_of(problem, variable);
      chart.write(chart.field().of(result.model), values.data());
      continue;
    }
    const int row = variable_row(problem, variable);
    if (variable.kind == VariableKind::initial_position) result.initial_position[row] = values[0];
    if (variable.kind == VariableKind::initial_velocity) result.initial_velocity[row] = values[0];
    if (variable.kind != VariableKind::control) continue;
    std::erase_if(result.controls, [&](const ControlSignal& signal) {
      return signal.drives(variable.joint, variable.channel, variable.component);
    });
    result.controls.push_back({variable.joint, variable.channel, std::move(values), variable.hold, variable.component});
  }
  refresh_features(result.model);
  return result;
}

}  // namespace backdrive
