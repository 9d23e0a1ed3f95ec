#include "apps/fast_turns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/console.h"
#include "autodiff/tape/rollout.h"
#include "integrators/featherstone/whip_share.h"

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

/// |ω| of a link's joint, rad/s.
double turning_speed(const Topology& t, int i, const double* qd) {
  const Link& link = t.links[i];
  const double* const rate = qd + link.v;
  return link.type == JointType::revolute ? std::abs(rate[0]) : std::hypot(rate[0], rate[1], rate[2]);
}

/// What steps may take of the energy of two adjoining joints until it is told, and x of (22), λ being an eighth there,
/// that steps that would do leave.
constexpr double kTaken = 0.2, kDampedLittle = 0.22;

/// Of each link, what (22) multiplies |ω|² with in its tree.
std::vector<double> whip_times(const Topology& t, double time_step) {
  std::vector<double> times(t.links.size());
  for (std::size_t root = 0, end; root < times.size(); root = end) {
    bool touches = false;
    for (end = root; end == root || (end < times.size() && t.links[end].parent >= 0); ++end) {
      touches = touches || t.links[end].touches;
    }
    std::fill(times.begin() + root, times.begin() + end, featherstone::whip_time(time_step, touches));
  }
  return times;
}

/// Steps, s, that would do for joints whose h is `together` by Δt².
double little_damped(bool touches, double together) {
  using featherstone::kWhipFrom, featherstone::kWhipTo;
  const double h = kWhipFrom + kDampedLittle * (kWhipTo - kWhipFrom);
  return touches ? h / (together * featherstone::kWhipTime) : std::sqrt(h / together);
}

}  // namespace

std::string damped_turns(const Problem& problem, const SimulationResult& result) {
  const Model& model = problem.model;
  const Topology& t = model.topology;
  if (t.integrator != Integrator::featherstone) return "";
  const double dt = problem.simulation.time_step;
  const std::vector<double> times = whip_times(t, dt);
  struct Pair {
    double taken = 0;
    double together = 0, own = 0, other = 0;  ///< where they turned fastest
    int step = 0;
  };
  std::vector<Pair> pairs(t.links.size());
  for (int step = 0; step <= result.steps; ++step) {
    const double* const qd = result.qd.data() + static_cast<std::size_t>(step) * t.nv;
    for (int i = 0; i < static_cast<int>(t.links.size()); ++i) {
      const int other = t.links[i].turns_with;
      if (other < 0) continue;
      const double a = turning_speed(t, i, qd), b = turning_speed(t, other, qd);
      const double together = featherstone::JointTurn<double>(a * a, b * b).h;
      const double share = featherstone::whip_share(std::pow(together * times[i], 4)).share;
      if (!(share > 0)) continue;
      Pair& pair = pairs[i];
      pair.taken += share * together * dt * dt;
      if (together > pair.together) pair = {pair.taken, together, a, b, step};
      if (!(pair.taken > kTaken)) continue;
      return "joints '" + model.joint_names[t.links[other].joint] + "' and '" + model.joint_names[t.links[i].joint] +
             "' turn by " + number(pair.other) + " and " + number(pair.own) + " rad/s (at " + number(pair.step * dt) +
             " s): steps of " + number(dt) +
             " s damp what adjoining joints do so fast, by a fifth of its energy up to " + number(step * dt) +
             " s; steps of " + number(little_damped(times[i] > dt * dt, pair.together)) +
             " s (simulation/substeps) hardly would, or, of a rotor, `spins: true` of its joint";
    }
  }
  return "";
}

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
