#pragma once
// What was found of each number of a gradient, as it goes into a row of the check.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "autodiff/check/differences.h"
#include "autodiff/check/gradient_check.h"
#include "autodiff/check/gradient_probes.h"

namespace backdrive {

/// How much inputs are disturbed to measure rounding: some 45 ulp, what a rollout's own rounding amounts to.
constexpr double kDisturbance = 1e-14;
/// Adjoint and dual that agree to this part of the derivative are the same.
constexpr double kAgreement = 1e-9;

/// The numbers of one probe, as they go into a row.
struct Comparison {
  double adjoint, per_world, dual, dual_tolerance;
  double small;  ///< what would change the loss by kSmallChange of the largest change
  Difference difference;

  double difference_error() const { return std::abs(adjoint - difference.value); }
  /// The adjoint runs on two routes, uniform and per-world parameters; both must agree with the
  /// dual.
  double dual_error() const { return std::max(std::abs(adjoint - dual), std::abs(per_world - dual)); }
  /// Largest error in units of its tolerance; NaN counts as infinite.
  double badness() const {
    const auto ratio = [](double error, double tolerance) {
      if (error == 0 && std::isfinite(tolerance)) return 0.0;
      const double r = error / tolerance;
      return std::isfinite(error) && std::isfinite(tolerance) && !std::isnan(r) ? r : kInfinity;
    };
    const double of_difference = difference.taken ? ratio(difference_error(), difference.tolerance()) : 0;
    return std::max(of_difference, ratio(dual_error(), dual_tolerance));
  }
  bool is_derivative() const { return dual_error() <= dual_tolerance; }
};

/// `noisy_loss`: a disturbance of its inputs moves it so far that it has no difference quotients.
void fill_row(GradientCheckRow& row, const std::vector<Comparison>& all, const std::vector<int>& index,
              bool noisy_loss);
void fill_float32(GradientCheckRow& row, std::span<const Float32Check> all, const std::vector<int>& index);
void fill_macroscopic(GradientCheckRow& row, std::span<const MacroscopicSlope> all, const std::vector<int>& index);
/// A parameter that no motion depends on must have a gradient of exactly zero.
void fill_unused(GradientCheckRow& row, const ProbeGroup& group, const Parameters& gradient);

}  // namespace backdrive
