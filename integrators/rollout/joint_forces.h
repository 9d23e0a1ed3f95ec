#pragma once
// Effort of one degree of freedom: command, drive, spring, damping, friction, soft limit. All but the command and the
// spring act implicitly:
// with q̇⁺ = q̇ + Δt q̈ the effort is
//
//   T = sat(u + k(target − q − Δt q̇⁺) + d(target rate − q̇⁺)) − s(q − rest) − (b + μ/√(q̇² + ε²)) q̇⁺
//       − N(q) − (Δt N′(q) + c r′(q)) q̇⁺
//
// (docs/theory.md, equation 9), split into a part known before q̈ and the increment that multiplies −q̈ in D of (2).
// Beyond its limit L at q̇ a drive acts with its gains scaled so that there it is L: with its effort x at q̇ and what it
// adds to D, b = Δt (d + Δt k),
//
//   (13) sat(x − b q̈) = s (x − b q̈)      s = min(1, L/|x|)
//
// which ends where the drive would be content, and so cannot throw a light joint past that; L alone would. Beyond the
// speed limit v, with its damper c_v and the ramp r,
//
//   (19) T −= c_v (± r(|q̇| − v) + Δt r′(|q̇| − v) q̈)                            ±: the sign of q̇
//
#include "engine/real.h"
#include "integrators/rollout/joint_efforts.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

template <class Real>
struct JointInput {
  Real q, qd;
  Real effort, target_position, target_velocity;
};

/// Ramp of the soft limit at penetration x and its derivatives: r = 0, x²/2w, x − w/2 over x < 0, < w, ≥ w.
template <class Real>
struct LimitRamp {
  Real value, slope, curvature;

  BACKDRIVE_INLINE explicit LimitRamp(const Real& x) {
    const Real width = constant<Real>(kLimitRamp), zero = constant<Real>(0);
    const Real inverse = constant<Real>(1 / kLimitRamp);
    slope = clamped(x * inverse, zero, constant<Real>(1));
    value = slope * (x - constant<Real>(0.5) * width * slope);
    const auto bent = value_of(x) > value_of(zero) && value_of(x) < value_of(width);
    curvature = select(bent, inverse, zero);
  }
};

/// Of (19): r of what a rate exceeds the speed limit by.
template <class Real>
struct SpeedLimit {
  Real sign;
  LimitRamp<Real> ramp;

  template <class Const>
  BACKDRIVE_INLINE SpeedLimit(const JointEfforts<Const>& c, const Real& qd)
      : sign(select(value_of(qd) < value_of(constant<Real>(0)), constant<Real>(-1), constant<Real>(1))),
        ramp(sign * qd - c.limit.velocity) {}
};

/// Of (13).
template <class Real>
struct DriveState {
  Real effort;     ///< x: command and drive at q̇
  Real increment;  ///< b
  Real share;      ///< s
  decltype(value_of(std::declval<Real>()) < value_of(std::declval<Real>())) saturated;
};

template <class Real, class Const>
BACKDRIVE_INLINE DriveState<Real> drive_state(const JointEfforts<Const>& c, const JointInput<Real>& in,
                                              const Real& dt) {
  const Real one = constant<Real>(1), error = in.target_position - in.q - dt * in.qd;
  const Real x = in.effort + error * c.drive.stiffness + (in.target_velocity - in.qd) * c.drive.damping;
  const Real bound = constant<Real>(0) + c.drive.effort_limit, size = maximum(x, -x);
  const auto saturated = value_of(size) > value_of(bound);
  return {x, dt * (c.drive.damping + dt * c.drive.stiffness),
          select(saturated, bound / select(saturated, size, one), one), saturated};
}

/// μ/√(q̇² + ε²): friction as a damping coefficient per unit of level μ.
template <class Real>
BACKDRIVE_INLINE Real friction_factor(const Real& qd) {
  return constant<Real>(1) / square_root(qd * qd + constant<Real>(kFrictionVelocity * kFrictionVelocity));
}

/// The effort at q̈ = 0, and what to add to D.
template <class Real>
struct JointForce {
  Real effort, increment;
};

/// `joint` says what of it acts.
template <class Joint, class Real, class Const>
BACKDRIVE_PART JointForce<Real> joint_force(const Joint& joint, const JointEfforts<Const>& c,
                                            const JointInput<Real>& in, const Real& dt) {
  Real damping = constant<Real>(0) + c.damping;  // everything that multiplies −q̇⁺
  Real effort = in.effort;
  Real increment = constant<Real>(0) + c.armature;
  if (joint.acts.drive) {
    const DriveState<Real> drive = drive_state(c, in, dt);
    const Real bound = constant<Real>(0) + c.drive.effort_limit;
    effort = clamped(drive.effort, -bound, bound);
    increment += drive.share * drive.increment;
  }
  if (joint.acts.friction) damping += friction_factor(in.qd) * c.friction;
  if (joint.acts.spring) effort -= (in.q - c.spring.rest) * c.spring.stiffness;
  if (joint.acts.limit) {
    const LimitRamp<Real> above(in.q - c.limit.upper), below(c.limit.lower - in.q);
    effort -= (above.value - below.value) * c.limit.stiffness;
    damping += (above.slope + below.slope) * (dt * c.limit.stiffness + c.limit.damping);
  }
  effort -= damping * in.qd;
  increment += dt * damping;
  if (joint.acts.speed) {
    const SpeedLimit<Real> over(c, in.qd);
    effort -= over.sign * (over.ramp.value * c.limit.velocity_damping);
    increment += dt * (over.ramp.slope * c.limit.velocity_damping);
  }
  return {effort, increment};
}

/// Cotangents of what joint_force gives: of T, and what the increment of D is multiplied with (q̈ times that of T, and
/// with contact more), whose negative is its cotangent.
template <class Real>
struct JointForceBar {
  Real effort, resisted;
};

/// Cotangents of the inputs of joint_force.
template <class Real>
struct JointInputBar {
  Real q, qd, effort, target_position, target_velocity;
};

/// Adjoint of T with q̈ held. Adds to `gradient` unless it is null (the armature receives −`resisted`).
template <class Joint, class Real, class Const>
BACKDRIVE_PART JointInputBar<Real> adj_joint_force(const Joint& joint, const JointEfforts<Const>& c,
                                                   const JointInput<Real>& in, const Real& dt,
                                                   const JointForceBar<Real>& of, JointEfforts<Real>* gradient) {
  const Real zero = constant<Real>(0);
  const Real &w = of.effort, &resisted = of.resisted;
  JointInputBar<Real> bar{zero, zero, zero, zero, zero};
  const Real w_next = w * in.qd + dt * resisted;  // of −q̇⁺
  Real damping = zero + c.damping;
  if (gradient) {
    gradient->armature -= resisted;
    gradient->damping -= w_next;
  }
  if (joint.acts.drive) {
    const DriveState<Real> drive = drive_state(c, in, dt);
    // s x is L, and s b = L b / |x|.
    const Real one = constant<Real>(1), per_effort = one / select(drive.saturated, drive.effort, one);
    const Real slowed = resisted * drive.increment * per_effort;
    const Real live = select(drive.saturated, drive.share * slowed, w), next_bar = resisted * drive.share;
    bar.effort += live;
    bar.target_position += live * c.drive.stiffness;
    bar.target_velocity += live * c.drive.damping;
    bar.q -= live * c.drive.stiffness;
    bar.qd -= live * (c.drive.damping + dt * c.drive.stiffness);
    if (gradient) {
      gradient->drive.stiffness += live * (in.target_position - in.q - dt * in.qd) - dt * dt * next_bar;
      gradient->drive.damping += live * (in.target_velocity - in.qd) - dt * next_bar;
      const Real least = w - slowed, sign = select(value_of(drive.effort) > value_of(zero), least, -least);
      gradient->drive.effort_limit += select(drive.saturated, sign, zero);
    }
  } else {
    bar.effort += w;
  }
  if (joint.acts.friction) {
    const Real factor = friction_factor(in.qd);
    damping += factor * c.friction;
    bar.qd += w_next * in.qd * factor * factor * factor * c.friction;
    if (gradient) gradient->friction -= w_next * factor;
  }
  if (joint.acts.spring) {
    const Real pull = w * c.spring.stiffness;
    bar.q -= pull;
    if (gradient) {
      gradient->spring.stiffness -= w * (in.q - c.spring.rest);
      gradient->spring.rest += pull;
    }
  }
  if (joint.acts.limit) {
    const LimitRamp<Real> above(in.q - c.limit.upper), below(c.limit.lower - in.q);
    const Real rate = dt * c.limit.stiffness + c.limit.damping;  // multiplies r′(q) q̇⁺
    const Real touch = above.slope + below.slope;
    const Real bend = w_next * rate;
    const Real above_bar = -w * (above.slope * c.limit.stiffness) - bend * above.curvature;
    const Real below_bar = w * (below.slope * c.limit.stiffness) - bend * below.curvature;
    bar.q += above_bar - below_bar;
    damping += touch * rate;
    if (gradient) {
      gradient->limit.upper -= above_bar;
      gradient->limit.lower += below_bar;
      gradient->limit.stiffness -= w * (above.value - below.value) + dt * touch * w_next;
      gradient->limit.damping -= touch * w_next;
    }
  }
  bar.qd -= w * damping;
  if (joint.acts.speed) {
    const SpeedLimit<Real> over(c, in.qd);
    const Real along = w * over.sign, late = dt * resisted;
    const Real excess_bar = -((along * over.ramp.slope + late * over.ramp.curvature) * c.limit.velocity_damping);
    bar.qd += over.sign * excess_bar;
    if (gradient) {
      gradient->limit.velocity -= excess_bar;
      gradient->limit.velocity_damping -= along * over.ramp.value + late * over.ramp.slope;
    }
  }
  return bar;
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
