#include "apps/fast_turns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/console.h"
#include "autodiff/tape/rollout.h"

namespace backdrive::app {
namespace {

/// Beyond which a step no longer follows the turn: rad.
constexpr double kMostTurn = 1;
/// What a number of substeps that would do leaves of it.
constexpr double kTurnWithin = 0.5;

/// No body turns faster: the sum over all joints, rad/s.
double fastest_possible(const Topology& t, const double* qd) {
  double sum = 0;
  for (const Link& link : t.links) {
    const int turns = link.type == JointType::revolute ? 1 : joint_size(link.type).nv >= 3 ? 3 : 0;
    double squares = 0;
    for (int k = 0; k < turns; ++k) squares += qd[link.v + k] * qd[link.v + k];
    sum += std::sqrt(squares);
  }
  return sum;
}

/// Angular speeds of all bodies in one state, rad/s.
std::vector<double> angular_speeds(const Model& model, const double* q, const double* qd) {
  const Topology& t = model.topology;
  State<double> state;
  state.q = Buffer<double>(t.nq, 1);
  state.qd = Buffer<double>(t.nv, 1);
  for (int k = 0; k < t.nq; ++k) state.q.set(k, 0, q[k]);
  for (int k = 0; k < t.nv; ++k) state.qd.set(k, 0, qd[k]);
  std::vector<int> bodies(model.body_names.size());
  std::iota(bodies.begin(), bodies.end(), 0);
  const Buffer<double> motions = body_motions<double>(nullptr, model, state, bodies, {});
  std::vector<double> speeds;
  for (std::size_t body = 0; body < bodies.size(); ++body) {
    const int row = static_cast<int>(body) * kMotionRows + 15;
    speeds.push_back(std::hypot(motions(row, 0), motions(row + 1, 0), motions(row + 2, 0)));
  }
  return speeds;
}

}  // namespace

std::string fast_turns(const Problem& problem, const SimulationResult& result) {
  const Model& model = problem.model;
  const Topology& t = model.topology;
  const Simulation& simulation = problem.simulation;
  for (int step = 0; step <= result.steps; ++step) {
    const double* const q = result.q.data() + static_cast<std::size_t>(step) * t.nq;
    const double* const qd = result.qd.data() + static_cast<std::size_t>(step) * t.nv;
    if (!(fastest_possible(t, qd) * simulation.time_step > kMostTurn)) continue;
    const std::vector<double> speeds = angular_speeds(model, q, qd);
    const auto fastest = std::ranges::max_element(speeds);
    if (fastest == speeds.end() || !(*fastest * simulation.time_step > kMostTurn)) continue;
    const auto body = static_cast<std::size_t>(fastest - speeds.begin());
    return "body '" + model.body_names[body] + "' turns by " + number(*fastest * simulation.time_step) +
           " rad in a step (at " + number(step * simulation.time_step) +
           " s), and perhaps others later: its energy and gradients cannot be trusted; steps of " +
           number(kTurnWithin / *fastest) + " s would do, or, where it hangs on hinges, `spins: true` of its joint";
  }
  return "";
}

}  // namespace backdrive::app
