#include "autodiff/check/hessian.h"

#include <cmath>

#include "autodiff/problem/loss.h"
#include "autodiff/problem/variables.h"
#include "engine/dual.h"
#include "engine/error.h"

namespace backdrive {
namespace {

using D = Dual<double>;

/// Values, not scaled, of numbers and their derivatives.
std::vector<D> values_of(const VariableEntry& entry, const std::vector<D>& numbers) {
  std::vector<D> values;
  for (int k = entry.offset; k < entry.offset + entry.size; ++k) {
    values.push_back({numbers[k].value * entry.scale + entry.shift, numbers[k].dot * entry.scale});
  }
  return values;
}

struct Inputs {
  State<D> state;
  Control<D> control;
  Parameters direction;
};

/// Sets the dots; the values are in place.
void move(Inputs& inputs, const VariableEntry& entry, const std::vector<D>& values, int nu) {
  if (entry.kind == VariableKind::control) {
    for (size_t step = 0; step < entry.knots.size(); ++step) {
      const KnotWeights& k = entry.knots[step];
      inputs.control.u.write(static_cast<int>(step) * nu + entry.row)[0].dot =
          k.first_weight * values[k.first].dot + k.second_weight * values[k.second].dot;
    }
  } else if (entry.chart) {
    const ParameterChart& chart = *entry.chart;
    std::vector<double> numbers, dots, tangents(chart.field().tangents);
    for (const D& value : values) {
      numbers.push_back(value.value);
      dots.push_back(value.dot);
    }
    chart.push(numbers.data(), dots.data(), tangents.data());
    Parameter& to = chart.field().of(inputs.direction);
    // Two variables may hold different components of one item.
    for (int c = 0; c < to.components(); ++c) to.at(chart.item(), c) += tangents[c];
  } else {
    const bool position = entry.kind == VariableKind::initial_position;
    (position ? inputs.state.q : inputs.state.qd).write(entry.row)[0].dot = values[0].dot;
  }
}

/// Adds to the gradient: several variables may stand on the same numbers.
void pull(const Inputs& inputs, const VariableEntry& entry, const std::vector<D>& values, int nu,
          const Gradients<D>& gradients, std::vector<D>& gradient) {
  std::vector<std::vector<D>> own(1, std::vector<D>(entry.size));
  if (entry.kind == VariableKind::control) {
    VariableEntry alone = entry;
    alone.offset = 0;
    pull_control(alone, gradients.of(inputs.control.u), nu, own);
  } else if (entry.chart) {
    const ParameterChart& chart = *entry.chart;
    const Parameter& value = chart.field().in(gradients.parameters());
    const Parameter& dot = chart.field().in(gradients.parameters_dot());
    std::array<D, 6> tangents;
    for (int c = 0; c < value.components(); ++c) {
      tangents[c] = {value(chart.item(), c), dot(chart.item(), c)};
    }
    chart.pull(values.data(), tangents.data(), own[0].data());
  } else {
    const bool position = entry.kind == VariableKind::initial_position;
    own[0][0] = gradients.of(position ? inputs.state.q : inputs.state.qd)(entry.row, 0);
  }
  for (int k = 0; k < entry.size; ++k) gradient[entry.offset + k] += own[0][k] * D(entry.scale);
}

}  // namespace

HessianProduct hessian_vector_product(const Problem& problem, const std::vector<double>& x,
                                      const std::vector<double>& direction) {
  const std::vector<VariableEntry> entries = variable_entries(problem);
  if (direction.size() != x.size()) {
    usage_error("a direction of " + std::to_string(direction.size()) + " numbers at a point of " +
                std::to_string(x.size()));
  }
  Problem at = with_values(problem, x);
  Model& model = at.model;
  set_requires_grad(model, "*", false);
  for (const VariableEntry& entry : entries) {
    if (entry.chart) entry.chart->field().of(model).requires_grad(entry.chart->item(), true);
  }
  refresh_features(model);

  Inputs inputs{initial_state<D>(at, 1), initial_control<D>(at, 1), zero_parameters(model)};
  const int nu = model.topology.nu;
  std::vector<D> numbers;
  for (std::size_t k = 0; k < x.size(); ++k) numbers.push_back({x[k], direction[k]});
  const VariableLayout layout = variable_layout(problem);
  const TieProducts ties = tie_products(problem, layout);
  numbers.resize(layout.total + layout.computed);
  for (const TieProduct& product : ties.products) TieProducts::add<D>(product, ties.factors.data(), {numbers.data()});
  for (const VariableEntry& entry : entries) move(inputs, entry, values_of(entry, numbers), nu);
  RolloutOptions options;
  options.time_step = at.simulation.time_step;
  options.steps = at.simulation.steps;
  options.direction = &inputs.direction;
  options.keep_contact = scores_contact(at);
  Tape<D> tape;
  const State<D> start = place_bodies(&tape, model, inputs.state, options);
  const Trajectory<D> trajectory = rollout(tape, model, start, inputs.control, options);
  if (const WorldStatus& s = (*trajectory.status)[0]; s.stopped()) {
    throw Error(ErrorKind::non_finite, "Hessian of a rollout that stops at step " + std::to_string(s.stopped_step));
  }
  const LossResult<D> loss = evaluate_loss(at, trajectory, inputs.control, options, &tape);
  const Gradients<D> gradients = std::move(tape).backward(loss.seeds);

  std::vector<D> gradient(numbers.size());
  for (const VariableEntry& entry : entries) {
    pull(inputs, entry, values_of(entry, numbers), nu, gradients, gradient);
  }
  for (const TieProduct& p : ties.products) {
    for (int k = 0; k < p.size; ++k) {
      TieProducts::pull<D>(p, ties.factors.data(), k, gradient[p.to + k], {numbers.data()}, {gradient.data()});
    }
  }
  gradient.resize(x.size());
  HessianProduct result;
  result.loss = loss.total(0, 0).value;
  for (const D& g : gradient) {
    result.gradient.push_back(g.value);
    result.product.push_back(g.dot);
  }
  return result;
}

}  // namespace backdrive
