#pragma once
// One step of loose bodies and their joints: docs/semi_implicit.md, equations (1)-(6).
//
//   kick:   (M + Gᵀ A G) v⁺ = M v + Δt (weights + wrenches) + Gᵀ (r + A t)        one sparse solve over all rows
//   free flight:  every body moves on by itself with v⁺, its momentum kept
//
// An attached row pulls with −K (e + Δt (s⁺ − s)) − C s⁺, where s and s⁺ are its rates before and after the kick and e
// is its error where the bodies would be if nobody kicked them: linearly implicit, stable for any K and C ≥ 0, and one
// Newton step of SHAKE as K grows. Rows that are degrees of freedom act with the efforts of featherstone's joints;
// their armature resists what the kick and the free flight, as predicted, change their rates by together.
#include "integrators/semi_implicit/held_couplings.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Where the body is and how it moves.
template <class Real>
BACKDRIVE_INLINE void set_motion(const BodyConstants<Real>& body, const BodyState<Real>& state, BodyScratch<Real>& s) {
  s.pose.axes = rotation_matrix(state.rotation);
  s.lever = s.pose.axes * body.com;
  s.pose.centre = state.position + s.lever;
  s.velocity = {state.velocity.ang, plus_cross(state.velocity.lin, state.velocity.ang, s.lever)};
}

/// (1): that, and where it would fly to.
template <class Real>
BACKDRIVE_PART void prepare_body(const BodyConstants<Real>& body, const BodyState<Real>& state, const Real& dt,
                                 BodyScratch<Real>& s) {
  set_motion(body, state, s);
  s.inertia = rotated(s.pose.axes, body.inertia);
  s.inverse_inertia = rotated(s.pose.axes, body.inverse_inertia);
  const FreeFlight<Real> d = flight_of<Real>({body, state.rotation, s.pose.axes, dt}, s.velocity.ang);
  s.predicted = {d.axes, s.pose.centre + s.velocity.lin * dt};
  s.predicted_velocity = {d.axes * d.omega, s.velocity.lin};
}

/// K and C of an attached row.
template <class Real>
BACKDRIVE_INLINE const Real& row_stiffness(const Attachment<Real>& a, int row) {
  return row < 3 ? a.angular_stiffness : a.stiffness;
}
template <class Real>
BACKDRIVE_INLINE const Real& row_damping(const Attachment<Real>& a, int row) {
  return row < 3 ? a.angular_damping : a.damping;
}

/// (2): geometry, and what each row adds to the kick.
template <class Real>
BACKDRIVE_PART void prepare_joint(const System<Real>& system, Workspace<Real>& ws, int j, const JointInputs<Real>& in) {
  const Joint& joint = system.joints[j];
  const JointConstants<Real>& c = system.constants[j];
  JointScratch<Real>& s = ws.joint[j];
  const Real& dt = system.dt;
  s.geometry = geometry_at(system, ws, j, &BodyScratch<Real>::pose);
  const JointGeometry<Real> predicted = geometry_at(system, ws, j, &BodyScratch<Real>::predicted);
  joint_errors(joint.type, predicted, s.error);
  const auto rates = [&](const JointGeometry<Real>& g, Spatial<Real> BodyScratch<Real>::*velocity, Real(&rate)[kRows])
      __attribute__((always_inline)) {
    row_rates(g, ws.body[joint.child].*velocity, joint.parent >= 0 ? &(ws.body[joint.parent].*velocity) : nullptr,
              rate);
  };
  rates(s.geometry, &BodyScratch<Real>::velocity, s.start);
  rates(predicted, &BodyScratch<Real>::predicted_velocity, s.flown);
  for (Real& q : s.position) q = constant<Real>(0);
  if (!system.holds(j)) {
    for (int row = 0; row < kRows; ++row) s.inertia[row] = s.target[row] = s.impulse[row] = constant<Real>(0);
    return;
  }
  joint_positions(joint, s.geometry, in.near, s.position);
  const bool as_one = turns_as_one(joint.type, joint.acts);
  BallForce<Real> ball;
  if (as_one) ball = ball_force(joint, c.efforts, ball_input(s.position, s.start, in), dt);
  for (int row = 0; row < kRows; ++row) {
    const int dof = dof_of_row(joint.type, row);
    if (dof < 0) {
      const Real &K = row_stiffness(c.attach, row), &C = row_damping(c.attach, row);
      const Real zero = constant<Real>(0), resists = dt * K + C;
      const auto pulls = value_of(resists) > value_of(zero);
      s.inertia[row] = dt * resists;
      s.target[row] = K * (dt * s.start[row] - s.error[row]) / select(pulls, resists, constant<Real>(1));
      s.impulse[row] = zero;
    } else {
      const JointForce<Real> force =
          as_one ? JointForce<Real>{component(ball.effort, dof), component(ball.increment, dof)}
                 : joint_force(joint, c.efforts, effort_input(joint, dof, s.position, s.start[row], in), dt);
      s.inertia[row] = force.increment;
      s.target[row] = s.start[row];
      s.impulse[row] = dt * force.effort - c.efforts.armature * (s.flown[row] - s.start[row]);
    }
  }
}

/// What of a body's weight acts: docs/theory.md, (20).
template <class Real>
BACKDRIVE_INLINE Real weight_share(const BodyConstants<Real>& body) {
  return constant<Real>(1) - body.lift;
}

/// (3)-(4): velocities after the kick, in body[].next; all that the adjoint needs stays in the workspace.
template <class Real>
BACKDRIVE_CALLED void kick(const System<Real>& system, const BodyState<Real>* state, const StepInputs<Real>& in,
                           Workspace<Real>& ws) {
  for (int i = 0; i < system.body_count; ++i) {
    BodyScratch<Real>& s = ws.body[i];
    prepare_body(system.bodies[i], state[i], system.dt, s);
    s.u = {s.inertia * s.velocity.ang,
           (s.velocity.lin + system.gravity * (system.dt * weight_share(system.bodies[i]))) * system.bodies[i].mass};
    if (in.wrenches) s.u += in.wrenches[i] * system.dt;
  }
  for (int j = 0; j < system.joint_count; ++j) {
    const Joint& joint = system.joints[j];
    prepare_joint(system, ws, j, in.joints[j]);
    add_row_forces(ws.joint[j].geometry, ws.joint[j].impulse, ws.body[joint.child].u,
                   joint.parent >= 0 ? &ws.body[joint.parent].u : nullptr);
  }
  assemble(system, ws, OwnMasses<Real>{system, ws}, ws.factors);
  factor(system, ws, ws.factors);
  if (is_coupled(system)) {
    prepare_couplings(system, ws);
    solve_coupled(system, ws, OwnMasses<Real>{system, ws}, ws.factors,
                  {ws.response, &CoupledStep<Real>::push, true, true});
  } else {
    solve(system, ws, true);
  }
  for (int i = 0; i < system.body_count; ++i) ws.body[i].next = ws.body[i].u;
  for (int j = 0; j < system.joint_count; ++j) {
    JointScratch<Real>& s = ws.joint[j];
    for (int row = 0; row < kRows; ++row) {
      s.off[row] = s.rate[row];
      s.next[row] = s.target[row] + s.off[row];
    }
  }
  if (holds_any(system)) close_couplings(system, state, ws);
}

/// Velocity of the link's origin after a free flight, from that of the com.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> velocity_after(const FreeFlight<Real>& d, const Spin<Real>& spin,
                                              const Vec3<Real>& of_com) {
  const Vec3<Real> omega = d.axes * spin.omega;
  return {omega, plus_cross(of_com, d.lever, omega)};  // v_c − ω × lever
}
/// The state after a free flight.
template <class Real>
BACKDRIVE_INLINE BodyState<Real> state_after(const BodyScratch<Real>& s, const FreeFlight<Real>& d, const Real& dt) {
  return {d.rotation, s.pose.centre + s.next.lin * dt - d.lever, velocity_after<Real>(d, d, s.next.lin)};
}

/// Takes the states in body[].after for the next ones, in lanes that are not halted and where all are finite; the
/// others keep what they had, and are halted.
template <class Real>
BACKDRIVE_HD void accept(const System<Real>& system, const BodyState<Real>* state, const Workspace<Real>& ws,
                         BodyState<Real>* next, Real& halted) {
  constexpr int numbers = sizeof(BodyState<Real>) / sizeof(Real);
  Real check = halted;
  for (int i = 0; i < system.body_count; ++i) {
    const BodyState<Real>& s = ws.body[i].after;
    const Real* const x = &s.rotation.v.x;
    for (int k = 0; k < numbers; ++k) check += x[k] - x[k];  // zero where finite and NaN else
    // Of an angle beyond all bounds nothing is left but a quaternion that is none.
    const Real excess = dot(s.rotation.v, s.rotation.v) + s.rotation.w * s.rotation.w - constant<Real>(1);
    check += select(value_of(excess * excess) < value_of(constant<Real>(0.01)), constant<Real>(0),
                    constant<Real>(__builtin_nan("")));
  }
  const auto fine = is_finite(check);
  for (int i = 0; i < system.body_count; ++i) {
    const Real *const x = &ws.body[i].after.rotation.v.x, *const old = &state[i].rotation.v.x;
    Real* const to = &next[i].rotation.v.x;
    for (int k = 0; k < numbers; ++k) to[k] = select(fine, x[k], old[k]);
  }
  halted = check;
}

/// One step of a group of worlds: next from state (they may be the same array). `halted` is zero for worlds that go on
/// and NaN for those that had a state that was not finite, then and ever after: they keep the last one that was.
/// O(joints) for trees of bounded branching; loops cost their fill. Allocates nothing.
template <class Real>
BACKDRIVE_HD void step(const System<Real>& system, const BodyState<Real>* state, const StepInputs<Real>& in,
                       Workspace<Real>& ws, BodyState<Real>* next, Real& halted) {
  kick(system, state, in, ws);
  for (int i = 0; i < system.body_count; ++i) {
    BodyScratch<Real>& s = ws.body[i];
    s.after = state_after(s, flight_of(flight_start(system, state, ws, i), s.next.ang), system.dt);
  }
  accept(system, state, ws, next, halted);
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
