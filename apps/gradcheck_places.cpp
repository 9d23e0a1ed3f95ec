#include "apps/gradcheck_places.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "apps/atomic_output.h"
#include "apps/console.h"
#include "apps/log.h"
#include "autodiff/check/random_states.h"
#include "autodiff/problem/variables.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

/// Random states have numbers up to this one.
constexpr int kMostStates = 10'000;

/// The scene as the optimiser's second start has it, random parts included.
Problem at_start(const Problem& problem, std::uint64_t seed) {
  if (problem.variables.empty()) return problem;
  return with_values(problem, initial_points(problem, 2, seed)[1]);
}

}  // namespace

PlaceNames parse_places(const std::string& text, int states) {
  PlaceNames names;
  std::istringstream words(text);
  std::string word;
  bool any = false;
  while (std::getline(words, word, ',')) {
    any = true;
    constexpr std::string_view kOne = "random:";
    if (word == "scene") {
      names.scene = true;
    } else if (word == "start") {
      names.start = true;
    } else if (word == "random") {
      for (int k = 1; k <= states; ++k) names.random.push_back(k);
    } else if (int number = 0; word.starts_with(kOne) &&
                               std::from_chars(word.data() + kOne.size(), word.data() + word.size(), number).ptr ==
                                   word.data() + word.size() &&
                               number >= 1 && number <= kMostStates) {
      names.random.push_back(number);
    } else {
      any = false;
      break;
    }
  }
  if (!any || (!text.empty() && text.back() == ',')) {
    usage_error("--at " + text + ": expected scene, start, random, random:N (1 to " + std::to_string(kMostStates) +
                "), or several with commas between");
  }
  return names;
}

std::vector<CheckPlace> check_places(const Problem& problem, const PlaceNames& names, std::uint64_t seed) {
  std::vector<CheckPlace> places;
  if (names.scene) places.push_back({"scene", "", problem});
  const Problem start = at_start(problem, seed);
  if (names.start) places.push_back({"start", "the optimiser's first random start", start});
  for (const int number : names.random) {
    const std::string name = "random " + std::to_string(number);
    std::optional<RandomState> state = random_state(start, seed, number);
    if (!state) {
      log_warning(name + ": found no state near the scene's own from which the run ends with a finite loss");
      continue;
    }
    const std::string touching =
        state->touching > 0 ? ", " + count(state->touching, "pair") + " of shapes touching" : "";
    places.push_back({name, "in motion" + touching, std::move(state->problem)});
  }
  return places;
}

void write_places(const Scene& scene, const std::vector<CheckPlace>& places, const std::string& folder, bool force) {
  for (const CheckPlace& place : places) {
    if (place.name == "scene") continue;
    std::string file = place.name + ".yaml";
    std::ranges::replace(file, ' ', '-');
    OutputFile output(std::filesystem::path(folder) / file, force);
    output.stream() << scene_with_values(scene, place.problem);
    output.commit();
  }
}

}  // namespace backdrive::app
