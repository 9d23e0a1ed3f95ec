#pragma once
// Where gradcheck checks: at a scene's own state, at a random start of its optimiser, at random states in motion.
#include <cstdint>
#include <string>
#include <vector>

#include "autodiff/check/gradient_check.h"
#include "scenes/scene.h"

namespace backdrive::app {

struct CheckPlace {
  std::string name;   ///< "scene", "start", "random 1"
  std::string words;  ///< of the state: "in motion, 3 pairs of shapes touching"; empty for the scene's own
  Problem problem;
};

/// "scene,start,random,random:3": of random, `states` of them. Throws Error (usage) for another word.
struct PlaceNames {
  bool scene = false, start = false;
  std::vector<int> random;
};
PlaceNames parse_places(const std::string& text, int states);

/// The problem at those places. Random states are those of the optimiser's first random start, whose controls and
/// parameters they have, and warned of where there is none.
std::vector<CheckPlace> check_places(const Problem& problem, const PlaceNames& names, std::uint64_t seed);

/// Writes every place but the scene's own as a scene, random-1.yaml and the like, into a folder that has none yet.
void write_places(const Scene& scene, const std::vector<CheckPlace>& places, const std::string& folder, bool force);

}  // namespace backdrive::app
