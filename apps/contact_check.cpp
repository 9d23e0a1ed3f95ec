#include "apps/contact_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/problem/variables.h"

namespace backdrive::app {
namespace {

/// How far aside, in scaled variables: far above rounding, well below what an optimiser steps.
constexpr double kAside = 1e-5;
/// What the loss has to change by, as a share of itself, to stand above its rounding.
constexpr double kLeastChange = 1e-9;
/// Points that are evaluated at once.
constexpr std::size_t kBatch = 64;

using Points = std::vector<std::vector<double>>;

/// `x` moved by `step` along `direction`.
std::vector<double> moved(std::vector<double> x, const std::vector<double>& direction, double step) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += step * direction[i];
  return x;
}

/// The gradient's direction among the numbers that no bound is near of; empty where nothing is left of it.
std::vector<double> free_direction(const std::vector<double>& x, std::vector<double> gradient,
                                   const VariableBounds& bounds, double& length) {
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] - bounds.lower[i] < 2 * kAside || bounds.upper[i] - x[i] < 2 * kAside) gradient[i] = 0;
    squares += gradient[i] * gradient[i];
  }
  length = std::sqrt(squares);
  if (!(length > 0) || !std::isfinite(length)) return {};
  for (double& g : gradient) g /= length;
  return gradient;
}

std::vector<double> slope_ratios(const Problem& problem, const Points& x, const ExecutionOptions& how) {
  ExecutionOptions here = how;
  here.worlds = static_cast<int>(x.size());
  const std::unique_ptr<BatchObjective> objective = make_objective(problem, here);
  const VariableBounds bounds = variable_bounds(problem);
  std::vector<double> loss, ratios(x.size(), std::numeric_limits<double>::quiet_NaN()), lengths(x.size());
  Points gradient, unused, aside;
  objective->evaluate(x, loss, gradient);
  std::vector<std::size_t> which;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::vector<double> direction = free_direction(x[k], gradient[k], bounds, lengths[k]);
    if (direction.empty() || lengths[k] * kAside < kLeastChange * std::abs(loss[k])) continue;
    which.push_back(k);
    aside.push_back(moved(x[k], direction, kAside));
    aside.push_back(moved(x[k], direction, -kAside));
  }
  if (which.empty()) return ratios;
  objective->evaluate(aside, loss, unused);
  for (std::size_t i = 0; i < which.size(); ++i) {
    const double slope = (loss[2 * i] - loss[2 * i + 1]) / (2 * kAside);
    if (std::isfinite(slope)) ratios[which[i]] = slope / lengths[which[i]];
  }
  return ratios;
}

}  // namespace

std::vector<ContactCheck> check_contacts(const Problem& problem, const OptimizeResult& result,
                                         const ExecutionOptions& how) {
  std::vector<ContactCheck> checks;
  if (!may_touch(problem)) return checks;
  ExecutionOptions here = how;
  here.devices = {Device{}};
  here.precision = Precision::float64;
  checks.resize(result.history.size());
  Points points;
  std::vector<ContactCheck*> rows;
  for (std::size_t k = 0; k < checks.size(); ++k) {
    if (result.history[k].x.empty()) continue;
    points.push_back(result.history[k].x);
    rows.push_back(&checks[k]);
    checks[k].done = true;
  }
  for (std::size_t begin = 0; begin < points.size(); begin += kBatch) {
    const std::size_t end = std::min(points.size(), begin + kBatch);
    const Points batch(points.begin() + static_cast<std::ptrdiff_t>(begin),
                       points.begin() + static_cast<std::ptrdiff_t>(end));
    const std::vector<double> ratios = slope_ratios(problem, batch, here);
    for (std::size_t i = 0; i < ratios.size(); ++i) rows[begin + i]->slope_ratio = ratios[i];
  }
  for (std::size_t k = 0; k < points.size(); ++k) {
    rows[k]->changes = contact_changes(simulate(with_values(problem, points[k]), here));
  }
  return checks;
}

}  // namespace backdrive::app
