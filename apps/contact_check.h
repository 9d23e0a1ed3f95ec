#pragma once
// What contact did to an optimisation: how many contacts came and went at each point of its history, and whether the
// loss changes there as the gradient says. A rollout in which other shapes touch than a little aside has a gradient all
// the same; that it says little about what is further off is worth knowing.
#include <limits>
#include <vector>

#include "apps/simulate.h"

namespace backdrive::app {

struct ContactCheck {
  bool done = false;  ///< only rows of the history that kept their point are checked
  ContactChanges changes;
  /// Central difference of the loss along its gradient over the gradient's length: 1 where they agree; NaN where the
  /// gradient is too small, or a point to compare with has no loss.
  double slope_ratio = std::numeric_limits<double>::quiet_NaN();

  /// Whether a step along the gradient changes the loss the other way, or by less than half or more than twice as much.
  bool agrees() const { return !(slope_ratio < 0.5 || slope_ratio > 2); }
};

/// For each row of the history; of a problem without contact none. Three evaluations and one run for each, on the
/// host.
std::vector<ContactCheck> check_contacts(const Problem& problem, const OptimizeResult& result,
                                         const ExecutionOptions& how);

}  // namespace backdrive::app
