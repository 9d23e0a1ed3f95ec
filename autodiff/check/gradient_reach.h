#pragma once
// How far a gradient holds: against slopes of the loss along it, over distances.
#include <vector>

#include "autodiff/problem/objective.h"

namespace backdrive {

/// Of each point: the central difference of the loss over ±`distance`, in scaled variables, along its gradient, over
/// the gradient's length: 1 where they agree. NaN where the gradient is too small, or a point to compare with has no
/// loss. Gradients as `how` says, losses in float64 on the host. Numbers that are so near to a bound stay.
std::vector<double> slope_ratios(const Problem& problem, const std::vector<std::vector<double>>& points,
                                 double distance, const ExecutionOptions& how);

/// Whether a gradient at a point is what the loss does over distances along it, from a millionth of the variables'
/// scales to a hundredth. O(evaluations), thirteen.
struct GradientReach {
  /// Distances, in scaled variables, and slopes over ± these over the gradient's length: NaN where the loss does not
  /// change by more than its rounding.
  std::vector<double> distances, ratios;
  /// The same of the steeper of both sides, without a sign: what a loss with a hollow in between has, too.
  std::vector<double> steeper;
  double steepness = 0;  ///< the gradient's length

  /// Of the ratios that are known, without signs; 0: none is.
  double greatest() const;
  /// Ten times as steep as the loss over any distance: it grew on its way through the steps, in chaos or by rounding,
  /// to what no slope has.
  bool is_endless() const;
  /// A hundred times as steep as the loss, and ten times as on either side, over a thousandth and over a hundredth:
  /// changes so small that it is right of them grow on their way through the steps, and larger ones end anywhere.
  bool is_lost() const;
  /// Over a thousandth and over a hundredth the loss has one slope, to a twentieth, and the gradient another: what it
  /// does there are jumps that no derivative sees, as of the step in which something stops or lets go.
  bool is_parted() const;
  bool is_doubtful() const { return is_endless() || is_lost() || is_parted(); }
};
GradientReach gradient_reach(const Problem& problem, const std::vector<double>& x, const ExecutionOptions& how);

}  // namespace backdrive
