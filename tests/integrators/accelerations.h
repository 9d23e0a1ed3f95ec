#pragma once
// q̈ as the kernels compute it, for tests that compare with other routes.
#include <Eigen/Dense>

#include "autodiff/tape/rollout.h"
#include "models/parameter_reader.h"

namespace backdrive::test {

/// What a step's couple of a free root's body is beyond ω × J ω (docs/theory.md, (12)), in the joint's axes, by dense
/// matrices.
inline Eigen::Vector3d free_turn_couple(const Model& model, const Link& link, const std::vector<double>& q,
                                        const std::vector<double>& qd, double dt) {
  const Sym3<double> own = body_mass(model, link.body, 0).inertia;
  const Eigen::Matrix3d J{{own.xx, own.xy, own.xz}, {own.xy, own.yy, own.yz}, {own.xz, own.yz, own.zz}};
  const Eigen::Map<const Eigen::Vector4d> quaternion(q.data() + link.q);
  const Eigen::Matrix3d R = Eigen::Quaterniond(quaternion).toRotationMatrix();
  const Eigen::Vector3d omega = R.transpose() * Eigen::Map<const Eigen::Vector3d>(qd.data() + link.v);
  const auto skew = [](const Eigen::Vector3d& v) {
    return Eigen::Matrix3d{{0, -v.z(), v.y()}, {v.z(), 0, -v.x()}, {-v.y(), v.x(), 0}};
  };
  const Eigen::Matrix3d G = skew(omega) * J - skew(J * omega);
  const Eigen::Vector3d u = (J + 0.5 * dt * G).fullPivLu().solve(omega.cross(J * omega));
  return -0.5 * dt * (R * (G * u));
}

/// One short step from q̇ = qd: (q̇⁺ − q̇)/Δt is q̈ to rounding, once free roots are relieved of what their couple has
/// beyond ω × J ω. Only for models whose joints have no implicit forces (damping, friction, limits, drives), in which
/// the time step stands.
inline std::vector<double> accelerations(const Model& model, const std::vector<double>& q,
                                         const std::vector<double>& qd, const std::vector<double>& tau) {
  constexpr double kStep = 1.0 / 64;  // short enough for the couple, a power of two, and not so short that digits go
  const Topology& t = model.topology;
  State<double> state(model, 1);
  Control<double> control(model, 1, 1);
  for (int i = 0; i < t.nq; ++i) state.q.set(i, 0, q[i]);
  for (int i = 0; i < t.nv; ++i) state.qd.set(i, 0, qd[i]);
  for (int i = 0; i < t.nv; ++i) control.u.set(i, 0, tau[i]);
  for (const Link& link : t.links) {
    if (link.type != JointType::free) continue;
    const Eigen::Vector3d couple = free_turn_couple(model, link, q, qd, kStep);
    for (int k = 0; k < 3; ++k) control.u.set(link.v + k, 0, tau[link.v + k] + couple[k]);
  }
  RolloutOptions options;
  options.time_step = kStep;
  const Trajectory<double> after = rollout(model, state, control, options);
  std::vector<double> qdd(t.nv);
  for (int i = 0; i < t.nv; ++i) qdd[i] = (after.final.qd(i, 0) - qd[i]) / kStep;
  return qdd;
}

}  // namespace backdrive::test
