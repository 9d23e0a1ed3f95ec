#include "apps/crossings.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "apps/console.h"
#include "autodiff/tape/rollout.h"
#include "integrators/contact/pair_stiffness.h"

namespace backdrive::app {
namespace {

/// States whose poses are computed at once.
constexpr int kStatesAtOnce = 256;
/// How far an impact that would do goes in, of the room there is, and how many steps it takes.
constexpr double kPartOfRoom = 0.5, kStepsThrough = 5;

std::string first_shape(const Model& model, const contact::Crossing& crossing, int ContactPair::*side) {
  const ContactPair& pair = model.topology.contact_pairs[crossing.pair];
  return model.shape_names[model.topology.contact_shapes[pair.*side].shape];
}

/// What of stiffness and steps would have stopped the two: at speed v they go in by v √(m/k).
std::string remedy(const Problem& problem, const contact::Crossing& crossing) {
  const double step = problem.simulation.time_step;
  const contact::PairStiffness own = contact::pair_stiffnesses(problem.model, step)[crossing.pair];
  const double needed = own.mass * std::pow(crossing.speed / (kPartOfRoom * crossing.room), 2);  // N/m
  if (!(needed > own.stiffness / 4) || !std::isfinite(needed)) {
    return "stiffer contact would do (it has " + number(own.stiffness) + " N/m)";
  }
  const double stiffness = std::max(needed, own.stiffness);
  const double most = std::numbers::pi * std::sqrt(own.mass / stiffness) / kStepsThrough;
  const std::string words =
      needed > own.stiffness ? "contact of " + number(stiffness) + " N/m (it has " + number(own.stiffness) + ")" : "";
  if (!(most < step)) return words + " would do";
  return words + (words.empty() ? "" : " in ") + "steps of " + number(most) +
         " s (simulation/substeps: " + number(std::ceil(problem.simulation.control_time_step() / most)) + ") would do";
}

}  // namespace

contact::Crossings find_crossings(const Problem& problem, const SimulationResult& result) {
  const Model& model = problem.model;
  const Topology& t = model.topology;
  if (t.contact_pairs.empty() || t.nq == 0) return {};
  contact::CrossingFinder finder(model, problem.simulation.time_step);
  std::vector<int> bodies(model.body_names.size());
  std::iota(bodies.begin(), bodies.end(), 0);
  const std::size_t rows = bodies.size() * 12;
  std::vector<double> poses(rows);
  for (int first = 0; first <= result.steps; first += kStatesAtOnce) {
    const int count = std::min(kStatesAtOnce, result.steps + 1 - first);
    Buffer<double> q(count * t.nq, 1);
    const double* const from = result.q.data() + static_cast<std::size_t>(first) * t.nq;
    for (int k = 0; k < count * t.nq; ++k) q.set(k, 0, from[k]);
    const Buffer<double> all = body_poses<double>(nullptr, model, q, bodies, {});
    for (int state = 0; state < count; ++state) {
      for (std::size_t k = 0; k < rows; ++k) poses[k] = all(static_cast<int>(state * rows + k), 0);
      finder.see(poses);
    }
  }
  return finder.found();
}

std::string crossing_words(const Problem& problem, const contact::Crossings& crossings) {
  if (crossings.count == 0) return "";
  const contact::Crossing& first = crossings.first;
  const double time = first.step * problem.simulation.time_step;
  const std::string a = "'" + first_shape(problem.model, first, &ContactPair::a) + "'",
                    b = "'" + first_shape(problem.model, first, &ContactPair::b) + "'";
  const std::string when =
      " in step " + std::to_string(first.step / problem.simulation.substeps) + " (at " + number(time) + " s)";
  const std::string more = crossings.count > 1 ? "; " + count(crossings.count - 1, "more crossing") + " followed" : "";
  switch (first.kind) {
    case contact::CrossingKind::started:
      return "shapes " + a + " and " + b + " begin so deep in one another that neither has a side to be pushed out to" +
             more + ": forces and gradients cannot be trusted";
    case contact::CrossingKind::under:
      return "shape " + a + " lies under " + b + " by more than its size" + when + more +
             ": forces and gradients cannot be trusted; at " + number(first.speed) + " m/s " + remedy(problem, first);
    case contact::CrossingKind::through:
      break;
  }
  return "shapes " + a + " and " + b + " go through each other" + when + more +
         ": forces and gradients cannot be trusted; at " + number(first.speed) + " m/s " + remedy(problem, first);
}

nlohmann::json crossings_json(const Problem& problem, const contact::Crossings& crossings) {
  if (crossings.count == 0) return {{"count", 0}};
  const contact::Crossing& first = crossings.first;
  return {
      {"count", crossings.count},
      {"first",
       {{"step", first.step / problem.simulation.substeps},
        {"time", first.step * problem.simulation.time_step},
        {"world", 0},
        {"shapes",
         {first_shape(problem.model, first, &ContactPair::a), first_shape(problem.model, first, &ContactPair::b)}}}}};
}

}  // namespace backdrive::app
