#include "apps/energy.h"

#include <algorithm>
#include <cmath>

#include "apps/console.h"
#include "models/coordinates.h"

namespace backdrive::app {
namespace {

using Vec = Vec3<double>;

/// Of the energy that a motion has, beyond which growth is told. A state's velocity is up to half a step away from its
/// position: g Δt/v of a fall's energy, 8 % of a swing at a sixth of a radian a step.
constexpr double kGrowth = 0.2;
/// States looked at in one batch.
constexpr int kBlock = 1024;

/// Whether something may do work: controls, drives of joints or couplings.
bool is_driven_at_all(const Problem& problem) {
  const Model& model = problem.model;
  for (int joint = 0; joint < static_cast<int>(model.joint_names.size()); ++joint) {
    if (is_driven(model, joint)) return true;
  }
  for (int c = 0; c < static_cast<int>(model.coupling_names.size()); ++c) {
    if (model.couplings.drive.stiffness(c) > 0 || model.couplings.drive.damping(c) > 0) return true;
  }
  for (const ControlSignal& signal : problem.controls) {
    if (std::ranges::any_of(signal.values, [](double value) { return value != 0; })) return true;
  }
  return false;
}

/// At least what contact and limits hold at the start, J.
double stored_at_start(const Model& model, const SimulationResult& result) {
  double stored = 0;
  for (const ContactRecord& c : result.contacts) {
    if (c.step == 0) stored += std::hypot(c.force[0], c.force[1], c.force[2]) * std::max(c.depth, 0.0);
  }
  for (const Link& link : model.topology.links) {
    if (!may_be_driven(link.type)) continue;
    const int joint = link.joint;
    const double q = result.q[static_cast<std::size_t>(link.q)];
    const double beyond = std::max({q - model.joints.limit.upper(joint), model.joints.limit.lower(joint) - q, 0.0});
    stored += model.joints.limit.stiffness(joint) * beyond * beyond;
  }
  return stored;
}

}  // namespace

double kinetic_energy(const Model& model, const BodyStates& bodies, int state, std::span<const double> qd) {
  double energy = 0;
  for (int body = 0; body < bodies.bodies(); ++body) {
    const BodyStates::Center c = bodies.center(state, body);
    energy += 0.5 * (c.mass * dot(c.velocity, c.velocity) +
                     dot(bodies.angular_velocity(state, body), bodies.spin(state, body)));
  }
  for (const Link& link : model.topology.links) {
    for (int k = 0; k < joint_size(link.type).nv; ++k) {
      energy += 0.5 * model.joints.armature(link.joint) * std::pow(qd[link.v + k], 2);
    }
  }
  for (int c = 0; c < static_cast<int>(model.coupling_names.size()); ++c) {
    const double rate = coupling_velocity(model, c, qd);
    energy += 0.5 * model.couplings.armature(c) * rate * rate;
  }
  return energy;
}

double potential_energy(const Model& model, const BodyStates& bodies, int state, std::span<const double> q) {
  const Vec gravity{model.gravity(0, 0), model.gravity(0, 1), model.gravity(0, 2)};
  double energy = 0;
  for (int body = 0; body < bodies.bodies(); ++body) {
    const double share = 1 - model.bodies.gravity_compensation(body);
    energy -= share * bodies.mass(body) * dot(gravity, bodies.center(state, body).position);
  }
  for (const Link& link : model.topology.links) {
    const double stiffness = model.joints.spring.stiffness(link.joint);
    if (!may_be_driven(link.type) || stiffness == 0) continue;
    const double* const at = &q[link.q];
    const bool ball = link.type == JointType::ball;
    const double angle =
        2 * std::atan2(std::hypot(at[0], ball ? at[1] : 0, ball ? at[2] : 0), std::abs(ball ? at[3] : 1));
    const double stretch = ball ? angle : at[0] - model.joints.spring.rest(link.joint);
    energy += 0.5 * stiffness * stretch * stretch;
  }
  for (int c = 0; c < static_cast<int>(model.coupling_names.size()); ++c) {
    const double stretch = coupling_position(model, c, q) - model.couplings.spring.rest(c);
    energy += 0.5 * model.couplings.spring.stiffness(c) * stretch * stretch;
  }
  return energy;
}

std::string energy_growth(const Problem& problem, const SimulationResult& result) {
  const Model& model = problem.model;
  if (result.q.empty() || model.body_names.empty() || is_driven_at_all(problem)) return "";
  const std::size_t nq = model.topology.nq, nv = model.topology.nv;
  const double stored = stored_at_start(model, result);
  double start = 0, lowest = 0, most = 0;
  int at = 0;
  for (int first = 0; first <= result.steps; first += kBlock) {
    const int count = std::min(kBlock, result.steps + 1 - first);
    const auto q = std::span(result.q).subspan(first * nq, count * nq);
    const auto qd = std::span(result.qd).subspan(first * nv, count * nv);
    // Each velocity with the positions that it moved on: where links turn far in a step, it gives the next ones another
    // energy (docs/theory.md, "Trees that whip"). Nothing was moved before the first state, and nothing after the last.
    const auto rows = [&](const std::vector<double>& of, std::size_t width, int begin) {
      std::vector<double> block;
      for (int k = 0; k <= count; ++k) {
        const auto row = of.begin() + std::clamp(begin + k, 0, result.steps) * width;
        block.insert(block.end(), row, row + width);
      }
      return block;
    };
    const BodyStates bodies(model, count + 1, rows(result.q, nq, first - 1), rows(result.qd, nv, first));
    for (int state = 0; state < count; ++state) {
      const double potential = potential_energy(model, bodies, state + 1, q.subspan(state * nq, nq));
      const double kinetic = kinetic_energy(model, bodies, state, qd.subspan(state * nv, nv));
      if (first + state == 0) start = most = potential + kinetic, lowest = potential;
      lowest = std::min(lowest, potential);
      if (potential + kinetic > most) most = potential + kinetic, at = first + state;
    }
  }
  // What there was to move with: what the motion began with above the lowest place that it came to.
  const double available = start - lowest + stored;
  if (!(most - start - stored > kGrowth * available) || !(available > 0)) return "";
  std::string line = "energy grows " + number((most - lowest) / available) + "-fold up to " +
                     number(at * problem.simulation.time_step) +
                     " s, though nothing drives it: motion and gradients cannot be trusted; a shorter time step "
                     "(simulation/substeps) would do";
  if (model.topology.integrator != Integrator::semi_implicit) line += ", or `simulation/integrator: semi_implicit`";
  return line;
}

}  // namespace backdrive::app
