#include "autodiff/check/gradient_reach.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/problem/variables.h"

namespace backdrive {
namespace {

using GradientPoints = std::vector<std::vector<double>>;

/// What the loss has to change by, as a share of itself, to stand above its rounding.
constexpr double kLeastChange = 1e-9;
/// Over which a gradient is held against slopes, and what part of it they have where it is good for something.
constexpr double kReaches[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2}, kLeastPart = 0.1;
/// What part the loss, over a thousandth and more, has of a gradient that is right of smaller changes only; and what
/// part it has on one side of a point in a hollow, whose other side takes that back.
constexpr double kLostPart = 0.01, kHollowPart = 0.1;
/// Slopes that differ by no more are one. Wider than that, and losses that only bend would be told of.
constexpr double kSameSlope = 0.05;

/// `x` moved by `step` along `direction`.
std::vector<double> moved_along(std::vector<double> x, const std::vector<double>& direction, double step) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += step * direction[i];
  return x;
}

/// The gradient's direction among the numbers that no bound is near of; empty where nothing is left of it.
std::vector<double> free_direction(const std::vector<double>& x, std::vector<double> gradient,
                                   const VariableBounds& bounds, double distance, double& length) {
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] - bounds.lower[i] < 2 * distance || bounds.upper[i] - x[i] < 2 * distance) gradient[i] = 0;
    squares += gradient[i] * gradient[i];
  }
  length = std::sqrt(squares);
  if (!(length > 0) || !std::isfinite(length)) return {};
  for (double& g : gradient) g /= length;
  return gradient;
}

/// Gradients at points, and losses elsewhere.
struct Evaluations {
  std::vector<double> loss;
  GradientPoints gradient;
  std::unique_ptr<BatchObjective> losses;
  VariableBounds bounds;

  Evaluations(const Problem& problem, const GradientPoints& points, ExecutionOptions how)
      : bounds(variable_bounds(problem)) {
    how.worlds = static_cast<int>(points.size());
    make_objective(problem, how)->evaluate(points, loss, gradient);
    how.devices = {Device{}};
    how.precision = Precision::float64;
    losses = make_objective(problem, how);
  }

  /// Slopes over the gradient's length: over ± a distance, and of the steeper side where `here`, the loss at each point
  /// in float64, is given. NaN as in slope_ratios().
  struct Along {
    std::vector<double> ratios, steeper;
  };
  Along along(const GradientPoints& points, double distance, const std::vector<double>& here = {}) {
    const std::vector<double> unknown(points.size(), std::numeric_limits<double>::quiet_NaN());
    Along result{unknown, unknown};
    std::vector<double> lengths(points.size());
    std::vector<std::size_t> which;
    GradientPoints aside, unused;
    for (std::size_t k = 0; k < points.size(); ++k) {
      const auto direction = free_direction(points[k], gradient[k], bounds, distance, lengths[k]);
      if (direction.empty() || lengths[k] * distance < kLeastChange * std::abs(loss[k])) continue;
      // What bounds leave free has to be a part of the gradient that counts: of a rest of it rounding is most.
      if (lengths[k] < kLeastPart * steepness(k)) continue;
      which.push_back(k);
      aside.push_back(moved_along(points[k], direction, distance));
      aside.push_back(moved_along(points[k], direction, -distance));
    }
    if (which.empty()) return result;
    std::vector<double> there;
    losses->evaluate(aside, there, unused);
    for (std::size_t i = 0; i < which.size(); ++i) {
      const std::size_t k = which[i];
      const double up = there[2 * i], down = there[2 * i + 1], all = distance * lengths[k];
      if (!std::isfinite(up - down)) continue;
      result.ratios[k] = (up - down) / (2 * all);
      if (!here.empty()) result.steeper[k] = std::max(std::abs(up - here[k]), std::abs(down - here[k])) / all;
    }
    return result;
  }

  double steepness(std::size_t point) const {
    double squares = 0;
    for (const double g : gradient[point]) squares += g * g;
    return std::sqrt(squares);
  }
};

}  // namespace

std::vector<double> slope_ratios(const Problem& problem, const std::vector<std::vector<double>>& points,
                                 double distance, const ExecutionOptions& how) {
  return Evaluations(problem, points, how).along(points, distance).ratios;
}

GradientReach gradient_reach(const Problem& problem, const std::vector<double>& x, const ExecutionOptions& how) {
  GradientReach reach;
  if (x.empty()) return reach;
  Evaluations at(problem, {x}, how);
  reach.distances.assign(std::begin(kReaches), std::end(kReaches));
  std::vector<double> here;
  GradientPoints unused;
  at.losses->evaluate({x}, here, unused);
  for (const double distance : kReaches) {
    const auto [ratios, steeper] = at.along({x}, distance, here);
    reach.ratios.push_back(ratios[0]);
    reach.steeper.push_back(steeper[0]);
  }
  reach.steepness = at.steepness(0);
  return reach;
}

double GradientReach::greatest() const {
  double most = 0;
  for (const double ratio : ratios) most = std::fmax(most, std::abs(ratio));
  return most;
}

bool GradientReach::is_endless() const {
  const auto known = std::ranges::count_if(ratios, [](double ratio) { return !std::isnan(ratio); });
  return known >= 2 && greatest() < kLeastPart;
}

bool GradientReach::is_lost() const {
  const std::size_t n = ratios.size();
  const auto lost = [&](std::size_t k) {  // no number: not known
    return std::abs(ratios[k]) < kLostPart && steeper[k] < kHollowPart;
  };
  return n >= 2 && lost(n - 2) && lost(n - 1);
}

bool GradientReach::is_parted() const {
  if (ratios.size() < 2) return false;
  const double near = ratios[ratios.size() - 2], far = ratios.back();
  const double larger = std::max(std::abs(near), std::abs(far));
  return std::abs(near - far) <= kSameSlope * larger && std::abs((near + far) / 2 - 1) > kSameSlope * larger;
}

}  // namespace backdrive
