#pragma once
// The efforts of a link's degrees of freedom (rollout/joint_forces.h, ball_forces.h), from the working set of a step.
#include "integrators/featherstone/joints.h"
#include "integrators/rollout/ball_forces.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <class Layout>
struct Workspace;  // dynamics.h

/// Of degree of freedom k. Only links with one have a use for the position and for targets.
template <class Layout>
BACKDRIVE_INLINE JointInput<typename Layout::Real> joint_input(const Workspace<Layout>& ws, const Link& link,
                                                               int k = 0) {
  const auto zero = constant<typename Layout::Real>(0);
  const bool driven = link.target >= 0;
  return {ws.q[link.q], ws.qd[link.v + k], ws.control[link.v + k], driven ? ws.control[link.target] : zero,
          driven ? ws.control[link.target + 1] : zero};
}

/// Of a link for which turns_as_one().
template <class Layout>
BACKDRIVE_INLINE BallInput<typename Layout::Real> ball_input(const Workspace<Layout>& ws, const Link& link) {
  const auto control = [&](int first, int step) {
    return Vec3<typename Layout::Real>{ws.control[first], ws.control[first + step], ws.control[first + 2 * step]};
  };
  const Vec3<typename Layout::Real> none = zero3<typename Layout::Real>();
  const bool driven = link.target >= 0;
  return {load_quaternion(ws.q + link.q), vector_at(ws.qd + link.v), control(link.v, 1),
          driven ? control(link.target, 2) : none, driven ? control(link.target + 1, 2) : none};
}

/// The efforts of a link's degrees of freedom.
template <int K, class Layout>
struct LinkForces {
  using Real = typename Layout::Real;
  const Workspace<Layout>& ws;
  const Link& link;
  int index;

  BACKDRIVE_INLINE LinkForces(const Workspace<Layout>& workspace, int i)
      : ws(workspace), link(workspace.links[i]), index(i) {}
  BACKDRIVE_INLINE JointForce<Real> operator()(int k) const {
    return joint_force(link, ws.constants[index].efforts, joint_input(ws, link, k), ws.dt);
  }
};
/// Those of a ball, which may act together.
template <class Layout>
struct LinkForces<Ball::dofs, Layout> {
  using Real = typename Layout::Real;
  const Workspace<Layout>& ws;
  const Link& link;
  int index;
  bool as_one;
  BallForce<Real> ball;

  BACKDRIVE_INLINE LinkForces(const Workspace<Layout>& workspace, int i)
      : ws(workspace), link(workspace.links[i]), index(i), as_one(turns_as_one(link.type, link.acts)) {
    if (as_one) ball = ball_force(link, ws.constants[i].efforts, ball_input(ws, link), ws.dt);
  }
  BACKDRIVE_INLINE JointForce<Real> operator()(int k) const {
    if (as_one) return {component(ball.effort, k), component(ball.increment, k)};
    return joint_force(link, ws.constants[index].efforts, joint_input(ws, link, k), ws.dt);
  }
};

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
