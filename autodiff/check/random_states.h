#pragma once
// Places where a gradient check says more than at a scene's own start, which is often one of rest: random states in
// motion, some of them pressed onto the ground.
#include <cstdint>
#include <optional>

#include "autodiff/problem/problem.h"

namespace backdrive {

struct RandomState {
  Problem problem;   ///< begins in this state
  int touching = 0;  ///< pairs of shapes that press on one another in the first step
};

/// State `number` (from 1) of a seed, the same whatever others are asked for. Joints of one degree of freedom begin
/// within their limits, orientations up to 1 rad away; velocities are of the size √(g L) and √(g / L), L the model's
/// largest length, and turn at most 0.05 rad in a step; no shapes are deeper in one another than a quarter of their
/// size, or than they are in the problem itself. Where a tree can be moved against gravity as a whole, every first of
/// two states is let down until a shape touches, with a velocity downwards. A model with loops begins where its own
/// motion has led it at a random time, so that loops are closed. Each state's run has a finite loss.
/// Empty where twelve draws, ever nearer to the problem's own state, give none. O(100 steps of one world + a run).
std::optional<RandomState> random_state(const Problem& problem, std::uint64_t seed, int number);

}  // namespace backdrive
