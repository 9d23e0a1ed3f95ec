#pragma once
// The energy of a motion, and whether it grew of itself.
#include <span>
#include <string>

#include "apps/body_states.h"
#include "apps/simulate.h"

namespace backdrive::app {

/// J, with armatures. `state`: of `bodies`, whose velocities are qd.
double kinetic_energy(const Model& model, const BodyStates& bodies, int state, std::span<const double> qd);
/// J: of weight, less what is compensated, and of the springs of joints and couplings, not of limits and contact.
/// `state`: of `bodies`, whose positions are q.
double potential_energy(const Model& model, const BodyStates& bodies, int state, std::span<const double> q);

/// A sentence where the energy of a motion that nothing drives grows by more than a fifth of what there was to move
/// with, and what would help; empty: it does not, or something does. Steps gain energy whose forces of motion, taken
/// where the step begins, turn too far with it. O(states · bodies) where nothing drives, in memory O(bodies).
std::string energy_growth(const Problem& problem, const SimulationResult& result);

}  // namespace backdrive::app
