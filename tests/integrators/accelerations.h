#pragma once
// q̈ as the kernels compute it, for tests that compare with other routes.
#include "autodiff/rollout.h"

namespace backdrive::test {

/// One step of one second from q̇ = qd: q̇⁺ − q̇ is q̈ to rounding. Only for models whose joints have no implicit forces
/// (damping, friction, limits, drives), in which the time step stands.
template <class T = double>
std::vector<T> accelerations(const Model& model, const std::vector<T>& q, const std::vector<T>& qd,
                             const std::vector<T>& tau) {
  const Topology& t = model.topology;
  State<T> state(model, 1);
  Control<T> control(model, 1, 1);
  for (int i = 0; i < t.nq; ++i) state.q.set(i, 0, q[i]);
  for (int i = 0; i < t.nv; ++i) state.qd.set(i, 0, qd[i]);
  for (int i = 0; i < t.nv; ++i) control.u.set(i, 0, tau[i]);
  RolloutOptions options;
  options.time_step = 1;
  const Trajectory<T> after = rollout(model, state, control, options);
  std::vector<T> qdd(t.nv);
  for (int i = 0; i < t.nv; ++i) qdd[i] = after.final.qd(i, 0) - qd[i];
  return qdd;
}

}  // namespace backdrive::test
