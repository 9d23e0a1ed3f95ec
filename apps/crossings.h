#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/simulate.h"
#include "integrators/contact/crossings.h"

namespace backdrive::app {

/// Shapes that went through each other in a motion. O(states · (bodies + pairs)), and contact points of what is near.
contact::Crossings find_crossings(const Problem& problem, const SimulationResult& result);

/// A sentence about the first of them, with what would do; empty: there is none.
std::string crossing_words(const Problem& problem, const contact::Crossings& crossings);

/// How many, and of the first step, time and shapes.
nlohmann::json crossings_json(const Problem& problem, const contact::Crossings& crossings);

}  // namespace backdrive::app
