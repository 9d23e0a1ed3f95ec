#pragma once
#include <string>

#include "apps/simulate.h"

namespace backdrive::app {

/// A sentence about the first body that turns by more than a radian in a step of a motion, with what would help; empty:
/// none does. O(states · bodies) where joints turn fast enough for it, else O(states · degrees of freedom).
std::string fast_turns(const Problem& problem, const SimulationResult& result);

/// A sentence about the first two adjoining joints of whose energy steps take a fifth, as they turn so fast ((21) of
/// docs/theory.md), with what would help; empty: none do. O(states · links).
std::string damped_turns(const Problem& problem, const SimulationResult& result);

}  // namespace backdrive::app
