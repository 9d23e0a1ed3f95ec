#pragma once
#include "autodiff/problem/problem.h"
#include "autodiff/tape/rollout.h"

namespace backdrive {

/// How far a step in dual numbers ends from the same step in float64, at most, of all steps of the problem's motion;
/// relative to max(1, |x|) of each number x of the state. Both solve contact, each as far as its own limits ask for,
/// and where friction is stiff that is less than the last digits. O(steps). 0 of models whose joints let go at a time:
/// a step by itself does not know when it is.
double step_defect(const Problem& problem, RolloutOptions options);

}  // namespace backdrive
