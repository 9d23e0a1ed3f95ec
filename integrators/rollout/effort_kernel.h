#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// The efforts that acted in the steps of a recorded rollout, and their adjoint. All but the command and the spring act
// implicitly (joint_forces.h): with the acceleration a = (q̇⁺ − q̇)/Δt that the step led to, contact and loops included,
//
//   T = T(q, q̇, u) − I a        I: what T adds to the inertia
//
// which is M a + h, armatures included, less what contacts do. A part is the effort of a joint on which nothing else
// acts; a drive's is what it adds to the command.
#include "integrators/rollout/ball_forces.h"
#include "integrators/rollout/numbers.h"
#include "integrators/rollout/rows.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// Of a joint as joint_force() wants it.
struct ActingParts {
  EffortParts acts;
};

/// What stands between the numbers of one joint in one step and its effort.
template <class Real>
struct EffortStep {
  JointInput<Real> in;
  BallInput<Real> ball;         ///< where all components act as one
  Real acceleration, velocity;  ///< (q̇⁺ − q̇)/Δt; that which moved q
};

/// What of all that acts is a part.
BACKDRIVE_HD constexpr ActingParts acting(EffortPart part, const EffortParts& all) {
  const bool total = part == EffortPart::total, drive = part == EffortPart::drive || part == EffortPart::actuator;
  EffortParts acts;
  acts.drive = all.drive && (total || drive);
  acts.spring = all.spring && (total || part == EffortPart::spring);
  acts.limit = all.limit && (total || part == EffortPart::limit);
  acts.speed = all.speed && (total || part == EffortPart::limit);
  acts.friction = all.friction && (total || part == EffortPart::friction);
  return {acts};
}
/// Whether a part depends on the command.
BACKDRIVE_HD constexpr bool sees_command(EffortPart part) {
  return part == EffortPart::total || part == EffortPart::actuator || part == EffortPart::command ||
         part == EffortPart::drive;
}

/// Cotangents of a step's numbers.
template <class Real>
struct EffortStepBar {
  JointInputBar<Real> in;
  BallInputBar<Real> ball;
  Real acceleration, velocity;
};

/// A term in one group of worlds: where it finds its numbers, and what it makes of them.
template <class Real>
struct EffortRows {
  using T = StorageOf<Real>;
  const EffortArguments<T>& a;
  const EffortTerm& term;
  const Link& link;
  ActingParts parts;
  bool as_one;  ///< turns_as_one()
  int first_world;
  Real dt;
  JointEfforts<Real> c;

  BACKDRIVE_HD EffortRows(const EffortArguments<T>& arguments, int k, int world)
      : a(arguments),
        term(a.terms[k]),
        link(a.launch.topology.links[term.link]),
        parts(acting(term.part, link.acts)),
        as_one(turns_as_one(link.type, parts.acts)),
        first_world(world),
        dt(a.launch.time_step) {
    load_constants(a.launch, term.constants_row, first_world, numbers_of<Real>(&c), kNumbers<Real, JointEfforts<Real>>);
    c.armature = constant<Real>(0);
    if (!damps()) c.damping = constant<Real>(0);
  }

  BACKDRIVE_INLINE bool damps() const { return term.part == EffortPart::damping || term.part == EffortPart::total; }
  BACKDRIVE_INLINE std::size_t at(std::size_t row) const { return row * a.launch.stride + first_world; }
  BACKDRIVE_INLINE std::size_t q(int state, int row) const {
    return at(std::size_t(state) * a.launch.topology.nq + row);
  }
  BACKDRIVE_INLINE std::size_t q(int state) const { return q(state, link.q); }
  BACKDRIVE_INLINE std::size_t v(int state, int row) const {
    return at(std::size_t(state) * a.launch.topology.nv + row);
  }
  BACKDRIVE_INLINE std::size_t v(int state) const { return v(state, v()); }
  BACKDRIVE_INLINE int v() const { return link.v + term.dof; }
  BACKDRIVE_INLINE std::size_t u(int step, int row) const { return at(std::size_t(step) * a.launch.topology.nu + row); }
  BACKDRIVE_INLINE std::size_t out(int step, int k) const { return at(std::size_t(step) * a.count + k); }

  BACKDRIVE_INLINE EffortStep<Real> step(int step) const {
    const Real zero = constant<Real>(0), qd = load<Real>(a.qd + v(step));
    const auto control = [&](int row) { return a.control && row >= 0 ? load<Real>(a.control + u(step, row)) : zero; };
    const bool drive = link.target >= 0, command = sees_command(term.part);
    EffortStep<Real> now;
    if (as_one) {
      const auto three = [&](const auto& number) { return Vec3<Real>{number(0), number(1), number(2)}; };
      const auto position = [&](int k) { return load<Real>(a.q + q(step, link.q + k)); };
      const auto target = [&](int which) {
        return three([&](int k) { return control(drive ? link.target + 2 * k + which : -1); });
      };
      now.ball = {{three(position), position(3)},
                  three([&](int k) { return load<Real>(a.qd + v(step, link.v + k)); }),
                  three([&](int k) { return command ? control(link.v + k) : zero; }),
                  target(0),
                  target(1)};
    }
    now.in = {load<Real>(a.q + q(step)), qd, command ? control(v()) : zero, control(drive ? link.target : -1),
              control(drive ? link.target + 1 : -1)};
    now.acceleration = (load<Real>(a.qd + v(step + 1)) - qd) / dt;
    now.velocity = load<Real>(a.velocity + v(step + 1));
    return now;
  }
  BACKDRIVE_INLINE JointForce<Real> force(const EffortStep<Real>& step) const {
    if (!as_one) return joint_force(parts, c, step.in, dt);
    const BallForce<Real> force = ball_force(parts, c, step.ball, dt);
    return {component(force.effort, term.dof), component(force.increment, term.dof)};
  }
  BACKDRIVE_INLINE Real effort(const EffortStep<Real>& step) const {
    const JointForce<Real> now = force(step);
    const Real effort = now.effort - now.increment * step.acceleration;
    return term.part == EffortPart::drive ? effort - step.in.effort : effort;
  }
};

/// Adjoint of EffortRows::effort, or of effort·velocity. Adds to `gradient`, unless null.
template <class Real>
BACKDRIVE_INLINE EffortStepBar<Real> adj_effort(const EffortRows<Real>& rows, const EffortStep<Real>& step,
                                                const Real& bar, JointEfforts<Real>* gradient) {
  EffortStepBar<Real> result;
  result.velocity = constant<Real>(0);
  Real w = bar;
  if (rows.term.power) {
    w = bar * step.velocity;
    result.velocity = bar * rows.effort(step);
  }
  result.acceleration = -(w * rows.force(step).increment);
  if (rows.as_one) {
    const auto own = [&](const Real& x) {
      const int k = rows.term.dof;
      const Real zero = constant<Real>(0);
      return Vec3<Real>{k == 0 ? x : zero, k == 1 ? x : zero, k == 2 ? x : zero};
    };
    result.ball =
        adj_ball_force(rows.parts, rows.c, step.ball, rows.dt, {own(w), own(w * step.acceleration)}, gradient);
    if (rows.term.part == EffortPart::drive) result.ball.effort -= own(w);
    result.in = component(result.ball, rows.term.dof);
    return result;
  }
  result.in = adj_joint_force(rows.parts, rows.c, step.in, rows.dt, {w, w * step.acceleration}, gradient);
  if (rows.term.part == EffortPart::drive) result.in.effort -= w;
  return result;
}

template <class Real>
BACKDRIVE_HD void efforts_group(const EffortArguments<StorageOf<Real>>& a, int first_world, std::byte*) {
  for (int k = 0; k < a.count; ++k) {
    const EffortRows<Real> rows(a, k, first_world);
    for (int step = 0; step < a.launch.steps; ++step) {
      const EffortStep<Real> now = rows.step(step);
      const Real effort = rows.effort(now);
      store<Real>(a.efforts + rows.out(step, k), a.terms[k].power ? effort * now.velocity : effort);
    }
  }
}

template <class Real>
BACKDRIVE_INLINE void add_to(StorageOf<Real>* at, const Real& x) {
  store<Real>(at, load<Real>(at) + x);
}

/// What the inputs of a ball's components receive.
template <class Real>
BACKDRIVE_INLINE void add_ball_inputs(const EffortRows<Real>& rows, const BallInputBar<Real>& bar, int step) {
  const auto& a = rows.a;
  const Link& link = rows.link;
  for (int k = 0; k < 3; ++k) {
    const JointInputBar<Real> of = component(bar, k);
    add_to<Real>(a.q_bar + rows.q(step, link.q + k), of.q);
    add_to<Real>(a.qd_bar + rows.v(step, link.v + k), of.qd);
    if (!a.control_bar) continue;
    if (sees_command(rows.term.part)) add_to<Real>(a.control_bar + rows.u(step, link.v + k), of.effort);
    if (link.target < 0) continue;
    add_to<Real>(a.control_bar + rows.u(step, link.target + 2 * k), of.target_position);
    add_to<Real>(a.control_bar + rows.u(step, link.target + 2 * k + 1), of.target_velocity);
  }
}

/// Of one step of one term.
template <class Real>
BACKDRIVE_INLINE void walk_effort_back(const EffortRows<Real>& rows, int k, int step) {
  constexpr int numbers = kNumbers<Real, JointEfforts<Real>>;
  const auto& a = rows.a;
  const Link& link = rows.link;
  StorageOf<Real>* const to = a.constants_bar ? a.constants_bar + rows.at(rows.term.gradient_row) : nullptr;
  JointEfforts<Real> gradient = {};
  Real* const own = numbers_of<Real>(&gradient);
  for (int n = 0; to && n < numbers; ++n) own[n] = load<Real>(to + std::size_t(n) * a.launch.stride);
  const Real armature = gradient.armature, damping = gradient.damping;
  const Real bar = load<Real>(a.efforts_bar + rows.out(step, k));
  const EffortStepBar<Real> s = adj_effort(rows, rows.step(step), bar, to ? &gradient : nullptr);
  gradient.armature = armature;  // no part of an effort
  if (!rows.damps()) gradient.damping = damping;
  for (int n = 0; to && n < numbers; ++n) store<Real>(to + std::size_t(n) * a.launch.stride, own[n]);
  const Real rate = s.acceleration / rows.dt;
  add_to<Real>(a.qd_bar + rows.v(step + 1), rate);
  if (rows.term.power) add_to<Real>(a.velocity_bar + rows.v(step + 1), s.velocity);
  if (rows.as_one) {
    add_to<Real>(a.qd_bar + rows.v(step), -rate);
    return add_ball_inputs(rows, s.ball, step);
  }
  add_to<Real>(a.q_bar + rows.q(step), s.in.q);
  add_to<Real>(a.qd_bar + rows.v(step), s.in.qd - rate);
  if (!a.control_bar) return;
  if (sees_command(rows.term.part)) add_to<Real>(a.control_bar + rows.u(step, rows.v()), s.in.effort);
  if (link.target < 0) return;
  add_to<Real>(a.control_bar + rows.u(step, link.target), s.in.target_position);
  add_to<Real>(a.control_bar + rows.u(step, link.target + 1), s.in.target_velocity);
}

/// Adds to all cotangents, last step first, so that a rollout that is walked back in pieces has the same bits.
template <class Real>
BACKDRIVE_HD void efforts_adjoint_group(const EffortArguments<StorageOf<Real>>& a, int first_world, std::byte*) {
  for (int step = a.launch.steps; step-- > 0;) {
    for (int k = 0; k < a.count; ++k) walk_effort_back(EffortRows<Real>(a, k, first_world), k, step);
  }
}

/// The same for a device, a thread to each world.
template <class T>
struct EffortsWorld {
  EffortArguments<T> arguments;
  BACKDRIVE_HD void operator()(std::int64_t world) const {
    efforts_group<T>(arguments, static_cast<int>(world), nullptr);
  }
};
template <class T>
struct EffortsAdjointWorld {
  EffortArguments<T> arguments;
  BACKDRIVE_HD void operator()(std::int64_t world) const {
    efforts_adjoint_group<T>(arguments, static_cast<int>(world), nullptr);
  }
};

}  // namespace backdrive::inline BACKDRIVE_KERNELS
