#include "autodiff/check/standard_errors.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "autodiff/check/hessian.h"
#include "autodiff/problem/variables.h"

namespace backdrive {
namespace {

/// What a term follows that was measured; 0: it is no fit. Steps between two rows of the record follow what is
/// interpolated, and count no further.
long long samples_of(const LossTerm& term, const Simulation& simulation) {
  const bool fits = !term.terminal && !term.record.empty() && term.measure == ErrorMeasure::squared &&
                    term.over == OverTime::sum && !term.is_contact() && term.weight > 0;
  if (!fits) return 0;
  const int first = std::max(term.first_step, 1), last = std::min(term.last_step, simulation.steps);
  // Half a step to each side, for times that are rounded.
  const auto row_at = [&](double step) {
    return std::ranges::lower_bound(term.record.times, step * simulation.time_step) - term.record.times.begin();
  };
  const long long rows = row_at(last + 0.5) - row_at(first - 0.5);
  // A unit quaternion has three degrees of freedom.
  const bool turns =
      term.quantity == LossQuantity::body_orientation || term.quantity == LossQuantity::joint_orientation;
  const int numbers = turns ? 3 : term.target_numbers();
  return std::clamp<long long>(rows, 0, std::max(0, last - first + 1)) * numbers;
}

}  // namespace

std::optional<std::vector<double>> standard_errors(const Problem& problem, const std::vector<double>& x, int most) {
  long long samples = 0;
  for (const LossTerm& term : problem.loss) {
    const long long own = samples_of(term, problem.simulation);
    if (own == 0) return {};
    samples += own;
  }
  const VariableBounds bounds = variable_bounds(problem);
  std::vector<int> free;
  for (int k = 0; k < static_cast<int>(x.size()); ++k) {
    const double near = 1e-9 * std::max(1.0, std::abs(x[k]));
    if (x[k] - bounds.lower[k] > near && bounds.upper[k] - x[k] > near) free.push_back(k);
  }
  const int count = static_cast<int>(free.size());
  if (count == 0 || count > most || samples <= count) return {};
  Eigen::MatrixXd hessian(count, count);
  double loss = 0;
  for (int j = 0; j < count; ++j) {
    std::vector<double> direction(x.size(), 0.0);
    direction[free[j]] = 1;
    const HessianProduct product = hessian_vector_product(problem, x, direction);
    loss = product.loss;
    for (int i = 0; i < count; ++i) hessian(i, j) = product.product[free[i]];
  }
  const Eigen::LLT<Eigen::MatrixXd> factor((hessian + hessian.transpose()) / 2);
  if (factor.info() != Eigen::Success) return {};
  const Eigen::MatrixXd inverse = factor.solve(Eigen::MatrixXd::Identity(count, count));
  std::vector<double> errors(x.size(), INFINITY);
  for (int i = 0; i < count; ++i) {
    const double error = std::sqrt(2 * loss / static_cast<double>(samples - count) * inverse(i, i));
    if (!std::isfinite(error)) return {};
    errors[free[i]] = error;
  }
  return errors;
}

}  // namespace backdrive
