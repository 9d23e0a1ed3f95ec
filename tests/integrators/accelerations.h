#pragma once
// q̈ as the kernels compute it, for tests that compare with other routes.
#include <Eigen/Dense>

#include "autodiff/tape/rollout.h"
#include "integrators/reference/link_motion.h"

namespace backdrive::test {

/// What a step's couple of one body is beyond that of its start (docs/theory.md, (12)), for J, ω and e in any axes, by
/// dense matrices.
inline Eigen::Vector3d free_turn_couple(const Eigen::Matrix3d& J, const Eigen::Vector3d& omega,
                                        const Eigen::Vector3d& held, double dt) {
  using reference::skew;
  const Eigen::Vector3d momentum = J * omega;
  const Eigen::Matrix3d G = skew<double>(omega) * J - skew<double>(momentum) - J * skew<double>(held);
  const Eigen::Vector3d u = (J + 0.5 * dt * G).fullPivLu().solve(omega.cross(momentum) + J * omega.cross(held));
  return -0.5 * dt * G * u;
}

/// The same of all bodies that spin, as efforts of the joints: in link axes, by the reference's motions of links.
inline std::vector<double> free_turn_efforts(const Model& model, const std::vector<double>& q,
                                             const std::vector<double>& qd, double dt) {
  using Vector6 = reference::Vector6<double>;
  const Topology& t = model.topology;
  const auto motions = reference::link_motions(model, q, 0);
  std::vector<Vector6> v(t.links.size(), Vector6::Zero()), f = v;
  for (std::size_t i = 0; i < t.links.size(); ++i) {
    const Link& link = t.links[i];
    if (link.parent >= 0) v[i] = motions[i].X * v[link.parent];
    v[i] += motions[i].times(qd, link.v);
    if (!link.spins) continue;
    const reference::Matrix6<double> I = reference::link_inertia(model, link, 0);
    Eigen::Matrix3d J = I.topLeftCorner<3, 3>();  // about the link's origin, where a ball's joint is
    if (link.type != JointType::ball && I(3, 3) > 0) {
      const Eigen::Matrix3d moment = I.topRightCorner<3, 3>();  // m [com]×
      J += moment * moment / I(3, 3);
    }
    // e: of a hinge what it turns by itself, here in the axes of what is fixed to it; of a ball its carrier's, taken
    // away.
    Eigen::Vector3d held = Eigen::Vector3d::Zero();
    if (link.type == JointType::ball && link.parent >= 0) held = -(motions[i].X * v[link.parent]).head<3>();
    Vector6 turn = Vector6::Zero();
    int turning = static_cast<int>(i);
    for (; t.links[turning].type == JointType::fixed; turning = t.links[turning].parent) {
    }
    if (t.links[turning].type == JointType::revolute) {
      turn = motions[turning].times(qd, t.links[turning].v);
      std::vector<int> path;
      for (int k = static_cast<int>(i); k != turning; k = t.links[k].parent) path.push_back(k);
      for (std::size_t k = path.size(); k-- > 0;) turn = motions[path[k]].X * turn;
      held = turn.head<3>();
    }
    f[i].head<3>() = free_turn_couple(J, v[i].head<3>(), held, dt);
  }
  std::vector<double> efforts(t.nv, 0.0);
  for (std::size_t i = t.links.size(); i-- > 0;) {
    const Link& link = t.links[i];
    for (int k = 0; k < motions[i].dofs(); ++k) efforts[link.v + k] = motions[i].S.col(k).dot(f[i]);
    if (link.parent >= 0) f[link.parent] += motions[i].X.transpose() * f[i];
  }
  return efforts;
}

/// One short step from q̇ = qd: (q̇⁺ − q̇)/Δt is q̈ to rounding, once bodies that spin are relieved of what their couple
/// has beyond ω × J ω. Only for models whose joints have no implicit forces (damping, friction, limits, drives), in
/// which the time step stands.
inline std::vector<double> accelerations(const Model& model, const std::vector<double>& q,
                                         const std::vector<double>& qd, const std::vector<double>& tau) {
  // Short enough for the couple, and that nothing whips (theory.md, (22)); a power of two, not so short that digits go.
  constexpr double kStep = 1.0 / 512;
  const Topology& t = model.topology;
  State<double> state(model, 1);
  Control<double> control(model, 1, 1);
  for (int i = 0; i < t.nq; ++i) state.q.set(i, 0, q[i]);
  for (int i = 0; i < t.nv; ++i) state.qd.set(i, 0, qd[i]);
  const std::vector<double> relief = free_turn_efforts(model, q, qd, kStep);
  for (int i = 0; i < t.nv; ++i) control.u.set(i, 0, tau[i] + relief[i]);
  RolloutOptions options;
  options.time_step = kStep;
  const Trajectory<double> after = rollout(model, state, control, options);
  std::vector<double> qdd(t.nv);
  for (int i = 0; i < t.nv; ++i) qdd[i] = (after.final.qd(i, 0) - qd[i]) / kStep;
  return qdd;
}

/// ∂q̈/∂(q, q̇, τ) by the adjoint of one step of dt, a row for each component of q̈: of q̇⁺ = q̇ + Δt q̈, in which what
/// accelerations() says of the step stands too. `q`: by rows of a state.
struct AccelerationDerivatives {
  std::vector<std::vector<double>> q, qd, tau;
};
inline AccelerationDerivatives acceleration_derivatives(const Model& model, const std::vector<double>& q,
                                                        const std::vector<double>& qd, const std::vector<double>& tau,
                                                        double dt) {
  const int n = model.topology.nv, nq = model.topology.nq;
  State<double> state(model, n);
  Control<double> control(model, 1, n);
  Buffer<double> seed(n, n);
  for (int w = 0; w < n; ++w) {  // world w has the seed of q̈_w
    for (int i = 0; i < nq; ++i) state.q.set(i, w, q[i]);
    for (int i = 0; i < n; ++i) state.qd.set(i, w, qd[i]);
    for (int i = 0; i < n; ++i) control.u.set(i, w, tau[i]);
    seed.set(w, w, 1);
  }
  RolloutOptions options;
  options.time_step = dt;
  Tape<double> tape;
  const Trajectory<double> t = rollout(tape, model, state, control, options);
  Seeds<double> seeds;
  seeds.add(t.final.qd, seed);
  const Gradients<double> g = std::move(tape).backward(seeds);
  AccelerationDerivatives d{std::vector(n, std::vector<double>(nq)), std::vector(n, std::vector<double>(n)),
                            std::vector(n, std::vector<double>(n))};
  for (int w = 0; w < n; ++w) {
    for (int i = 0; i < nq; ++i) d.q[w][i] = g.of(state.q)(i, w) / dt;
    for (int i = 0; i < n; ++i) d.qd[w][i] = (g.of(state.qd)(i, w) - (i == w)) / dt;
    for (int i = 0; i < n; ++i) d.tau[w][i] = g.of(control.u)(i, w) / dt;
  }
  return d;
}

}  // namespace backdrive::test
