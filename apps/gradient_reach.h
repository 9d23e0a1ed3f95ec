#pragma once
// How far a gradient holds: against slopes of the loss along it, over distances.
#include <string>
#include <vector>

#include "autodiff/optimize/optimize.h"

namespace backdrive::app {

/// Of each point: the central difference of the loss over ±`distance`, in scaled variables, along its gradient, over
/// the gradient's length: 1 where they agree. NaN where the gradient is too small, or a point to compare with has no
/// loss. Gradients as `how` says, losses in float64 on the host. Numbers that are so near to a bound stay.
std::vector<double> slope_ratios(const Problem& problem, const std::vector<std::vector<double>>& points,
                                 double distance, const ExecutionOptions& how);

/// A sentence where the gradient at a point is ten times as steep as the loss over any distance, from a millionth of
/// the variables' scale to a hundredth: it grew on its way through the steps, in chaos or by rounding, to what no slope
/// has. Empty where it is not. O(evaluations), twelve.
std::string endless_growth(const Problem& problem, const std::vector<double>& x, const ExecutionOptions& how);

}  // namespace backdrive::app
