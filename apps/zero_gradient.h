#pragma once
// Gradients that are zero by value: which, and what of the motion made them so.
#include <string>
#include <vector>

#include "apps/simulate.h"

namespace backdrive::app {

struct ZeroGradient {
  std::string name;
  std::string why;  ///< empty: not known
};

/// Why the loss's gradient by a variable may be zero in a motion of `problem`: what it acts on never acted ("never in
/// contact", "limit never reached"). Empty: nothing of the kind. O(steps).
std::string zero_reason(const Problem& problem, const Variable& variable, const SimulationResult& motion);

/// Losses at points of the scaled variables, and gradients by their values (not scaled). A world that stopped has an
/// infinite loss.
struct Slopes {
  std::vector<double> loss;                   ///< [point]
  std::vector<std::vector<double>> gradient;  ///< [point][number]
  std::vector<WorldStatus> status;            ///< [point]
};
Slopes slopes_at(const Problem& problem, const std::vector<std::vector<double>>& points, const ExecutionOptions& how);

/// The variables whose gradient is zero at all of the points. Motions are looked at where there is one. O(points ·
/// a rollout with gradient).
std::vector<ZeroGradient> zero_gradients(const Problem& problem, const std::vector<std::vector<double>>& points,
                                         const ExecutionOptions& how);

}  // namespace backdrive::app
