#pragma once
// Effort of a ball joint on which more acts than a command, damping and friction, and its adjoint: all components
// together, since none of it knows of axes. With R the child's orientation against the joint, ω its angular velocity
// and u the command, both in the child's axes, R* = exp(target), ρ = log R, e = log(Rᵀ R*), r the ramp of limits:
//
//   (18) T = s x − s Δt (d + Δt k) ω̇ − κ_s ρ − (κ r(|ρ| − upper) + β a·ω) a − Δt β ω̇ − (b + μ/√(ω² + ε²)) ω⁺
//          − c_v (r(|ω| − v) ω/|ω| + Δt r′(|ω| − v) ω̇)
//        x = u + k (e − Δt ω) + d (ω* − ω)     s = min(1, L/|x|)     a = ρ/|ρ|     β = r′(|ρ| − upper) (Δt κ + c)
//
// (docs/theory.md): what multiplies ω̇ is a number, the same for all components, which goes into D of (2). Of a limit it
// resists turns that leave |ρ| as it is, too: an inertia of Δt β, of first order as the step is.
#include "engine/angle.h"
#include "engine/rotation.h"
#include "integrators/rollout/joint_forces.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// log of a unit quaternion, |ρ| ≤ π, and the inverse Jacobians there: of R exp θ it changes by Jr⁻¹ θ, of exp θ R by
/// Jl⁻¹ θ, and each is the other's transpose.
template <class Real>
struct RotationVector {
  Vec3<Real> vector;
  Real c;  ///< (1 − ½|ρ| cot ½|ρ|)/|ρ|²

  BACKDRIVE_INLINE explicit RotationVector(const Quaternion<Real>& q) {
    const Real zero = constant<Real>(0), one = constant<Real>(1);
    const auto other_side = value_of(q.w) < value_of(zero);
    const Real sign = select(other_side, -one, one), w = q.w * sign;
    const Vec3<Real> v = q.v * sign;
    const Real square = dot(v, v);
    const auto small = value_of(square) < value_of(constant<Real>(1e-4));
    const Real sine = square_root(select(small, one, square)), cosine = select(small, w, one);
    const Real half = angle_of(select(small, one, w), sine);
    const Real t = select(small, square, zero) / (cosine * cosine);  // tan² of half the angle
    const auto series =
        one + t * (constant<Real>(-1. / 3) +
                   t * (constant<Real>(1. / 5) + t * (constant<Real>(-1. / 7) + t * constant<Real>(1. / 9))));
    vector = v * (constant<Real>(2) * select(small, series / cosine, half / sine));
    const Real x = select(small, dot(vector, vector), zero);
    const Real near = constant<Real>(1. / 12) + x * (constant<Real>(1. / 720) + x * constant<Real>(1. / 30240));
    const Real far = (one - half * w / sine) / (constant<Real>(4) * half * half);
    c = select(small, near, far);
  }
  BACKDRIVE_INLINE Vec3<Real> right_inverse(const Vec3<Real>& x) const { return inverse(x, constant<Real>(0.5)); }
  BACKDRIVE_INLINE Vec3<Real> left_inverse(const Vec3<Real>& x) const { return inverse(x, constant<Real>(-0.5)); }

 private:
  BACKDRIVE_INLINE Vec3<Real> inverse(const Vec3<Real>& x, const Real& half) const {
    const Vec3<Real> first = cross(vector, x);
    return x + first * half + cross(vector, first) * c;
  }
};

/// Length and direction of a vector; of none a direction of length zero.
template <class Real>
struct Directed {
  Real length, inverse;
  Vec3<Real> direction;

  BACKDRIVE_INLINE explicit Directed(const Vec3<Real>& v) {
    const Real square = dot(v, v), one = constant<Real>(1);
    const auto none = value_of(square) < value_of(constant<Real>(1e-30));
    const Real safe = square_root(select(none, one, square));
    inverse = one / safe;
    length = select(none, constant<Real>(0), safe);
    direction = v * inverse;
  }
  /// Cotangent of the vector from those of length and direction.
  BACKDRIVE_INLINE Vec3<Real> bar(const Real& length_bar, const Vec3<Real>& direction_bar) const {
    return direction * (length_bar - dot(direction, direction_bar) * inverse) + direction_bar * inverse;
  }
};

template <class Real>
BACKDRIVE_INLINE const Real& component(const Vec3<Real>& v, int k) {
  return k == 0 ? v.x : k == 1 ? v.y : v.z;
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> by_component(const Vec3<Real>& a, const Vec3<Real>& b) {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}

template <class Real>
struct BallInput {
  Quaternion<Real> rotation;   ///< R
  Vec3<Real> rate, effort;     ///< ω, u
  Vec3<Real> target_position;  ///< rotation vector
  Vec3<Real> target_velocity;  ///< ω*
};

/// T at ω̇ = 0, and what to add to D.
template <class Real>
struct BallForce {
  Vec3<Real> effort, increment;
};

/// What a drive asks for.
template <class Real>
struct BallDrive {
  TurnCoefficients<Real> goal;  ///< of exp(target)
  RotationVector<Real> error;   ///< e
  Vec3<Real> effort;            ///< x
  Directed<Real> size;          ///< of x
  Real increment, share;        ///< Δt (d + Δt k), s
  decltype(value_of(std::declval<Real>()) < value_of(std::declval<Real>())) saturated;

  template <class Const>
  BACKDRIVE_INLINE BallDrive(const JointEfforts<Const>& c, const BallInput<Real>& in, const Real& dt)
      : goal(in.target_position),
        error(conjugate(in.rotation) * exponential(in.target_position, goal)),
        effort(in.effort + (error.vector - in.rate * dt) * stiffness(c) + (in.target_velocity - in.rate) * damping(c)),
        size(effort) {
    const Real bound = constant<Real>(0) + c.drive.effort_limit;
    increment = dt * (damping(c) + dt * stiffness(c));
    saturated = value_of(size.length) > value_of(bound);
    share = select(saturated, bound * size.inverse, constant<Real>(1));
  }
  template <class Const>
  BACKDRIVE_INLINE static Real stiffness(const JointEfforts<Const>& c) {
    return constant<Real>(0) + c.drive.stiffness;
  }
  template <class Const>
  BACKDRIVE_INLINE static Real damping(const JointEfforts<Const>& c) {
    return constant<Real>(0) + c.drive.damping;
  }

 private:
  BACKDRIVE_INLINE static Quaternion<Real> conjugate(const Quaternion<Real>& q) { return {-q.v, q.w}; }
  BACKDRIVE_INLINE static Quaternion<Real> exponential(const Vec3<Real>& phi, const TurnCoefficients<Real>& turn) {
    return {phi * turn.half_sine, turn.half_cosine};
  }
};

/// Of the components, each by itself: damping and friction.
template <class Real, class Joint, class Const>
BACKDRIVE_INLINE Vec3<Real> ball_damping(const Joint& joint, const JointEfforts<Const>& c, const Vec3<Real>& rate) {
  const Real viscous = constant<Real>(0) + c.damping;
  Vec3<Real> damping{viscous, viscous, viscous};
  if (joint.acts.friction) {
    damping.x += friction_factor(rate.x) * c.friction;
    damping.y += friction_factor(rate.y) * c.friction;
    damping.z += friction_factor(rate.z) * c.friction;
  }
  return damping;
}

template <class Joint, class Real, class Const>
BACKDRIVE_CALLED BallForce<Real> ball_force(const Joint& joint, const JointEfforts<Const>& c, const BallInput<Real>& in,
                                            const Real& dt) {
  const Real zero = constant<Real>(0);
  const Vec3<Real> damping = ball_damping<Real>(joint, c, in.rate);
  Vec3<Real> effort = in.effort - by_component(damping, in.rate);
  Real increment = zero + c.armature;  // of every component
  if (joint.acts.drive) {
    const BallDrive<Real> drive(c, in, dt);
    effort += drive.effort * drive.share - in.effort;
    increment += drive.share * drive.increment;
  }
  if (joint.acts.spring || joint.acts.limit) {
    const RotationVector<Real> turn(in.rotation);
    if (joint.acts.spring) effort -= turn.vector * (zero + c.spring.stiffness);
    if (joint.acts.limit) {
      const Directed<Real> way(turn.vector);
      const LimitRamp<Real> above(way.length - c.limit.upper);
      const Real beta = above.slope * (dt * c.limit.stiffness + c.limit.damping);
      effort -= way.direction * (above.value * c.limit.stiffness + beta * dot(way.direction, in.rate));
      increment += dt * beta;
    }
  }
  if (joint.acts.speed) {
    const Directed<Real> way(in.rate);
    const LimitRamp<Real> above(way.length - c.limit.velocity);
    effort -= way.direction * (above.value * c.limit.velocity_damping);
    increment += dt * (above.slope * c.limit.velocity_damping);
  }
  return {effort, Vec3<Real>{increment, increment, increment} + damping * dt};
}

/// Cotangents, as JointForceBar.
template <class Real>
struct BallForceBar {
  Vec3<Real> effort, resisted;
};
/// Cotangents of the inputs; `turn`: θ of R exp θ.
template <class Real>
struct BallInputBar {
  Vec3<Real> turn, rate, effort, target_position, target_velocity;
};
/// Those of its motion alone.
template <class Real>
struct BallMotionBar {
  Vec3<Real> turn, rate;
};

template <class Real, class Const>
BACKDRIVE_PART void adj_ball_drive(const JointEfforts<Const>& c, const BallInput<Real>& in, const Real& dt,
                                   const BallForceBar<Real>& of, BallInputBar<Real>& bar,
                                   JointEfforts<Real>* gradient) {
  const BallDrive<Real> drive(c, in, dt);
  const Real k = drive.stiffness(c), d = drive.damping(c), zero = constant<Real>(0);
  const Real resisted = of.resisted.x + of.resisted.y + of.resisted.z;
  // Saturated: s = L/|x|, whose change by x goes with s (w·x − b Σ resisted).
  const Real gain = (dot(of.effort, drive.effort) - drive.increment * resisted) * drive.size.inverse;
  const Vec3<Real> live =
      of.effort * drive.share - drive.size.direction * select(drive.saturated, gain * drive.share, zero);
  const Vec3<Real> error_bar = live * k, goal_bar = drive.error.left_inverse(error_bar);
  const Vec3<Real>& goal = in.target_position;
  const Vec3<Real> first = cross(goal, goal_bar), second = cross(goal, first);
  bar.effort += live;
  bar.turn -= drive.error.right_inverse(error_bar);
  bar.target_position += goal_bar + first * drive.goal.b + second * drive.goal.c;  // Jl of the target
  bar.target_velocity += live * d;
  bar.rate -= live * (d + dt * k);
  if (!gradient) return;
  const Real next = dt * resisted * drive.share;
  gradient->drive.stiffness += dot(live, drive.error.vector - in.rate * dt) - dt * next;
  gradient->drive.damping += dot(live, in.target_velocity - in.rate) - next;
  gradient->drive.effort_limit += select(drive.saturated, gain, zero);
}

template <class Real, class Const>
BACKDRIVE_PART BallMotionBar<Real> adj_ball_limit(const JointEfforts<Const>& c, const BallInput<Real>& in,
                                                  const Real& dt, const RotationVector<Real>& turn,
                                                  const BallForceBar<Real>& of, JointEfforts<Real>* gradient) {
  const Vec3<Real>& w = of.effort;
  const Directed<Real> way(turn.vector);
  const LimitRamp<Real> above(way.length - c.limit.upper);
  const Real rate = dt * c.limit.stiffness + c.limit.damping, beta = above.slope * rate;
  const Real along = dot(way.direction, w), speed = dot(way.direction, in.rate);
  const Real damped = along * speed + dt * (of.resisted.x + of.resisted.y + of.resisted.z);  // multiplies −β
  const Real angle_bar = -(above.slope * c.limit.stiffness * along) - above.curvature * rate * damped;
  const Vec3<Real> direction_bar = -(w * (above.value * c.limit.stiffness)) - (in.rate * along + w * speed) * beta;
  if (gradient) {
    gradient->limit.upper -= angle_bar;
    gradient->limit.stiffness -= above.value * along + dt * above.slope * damped;
    gradient->limit.damping -= above.slope * damped;
  }
  return {turn.left_inverse(way.bar(angle_bar, direction_bar)), way.direction * -(beta * along)};
}

/// Adjoint of ball_force with ω̇ held, as adj_joint_force.
template <class Joint, class Real, class Const>
BACKDRIVE_CALLED BallInputBar<Real> adj_ball_force(const Joint& joint, const JointEfforts<Const>& c,
                                                   const BallInput<Real>& in, const Real& dt,
                                                   const BallForceBar<Real>& of, JointEfforts<Real>* gradient) {
  const Vec3<Real> none = zero3<Real>();
  const Vec3<Real>& w = of.effort;
  BallInputBar<Real> bar{none, none, none, none, none};
  const Real resisted = of.resisted.x + of.resisted.y + of.resisted.z;
  const Vec3<Real> next = by_component(w, in.rate) + of.resisted * dt;  // of −(b + …) by component
  bar.rate -= by_component(ball_damping<Real>(joint, c, in.rate), w);
  if (gradient) {
    gradient->armature -= resisted;
    gradient->damping -= next.x + next.y + next.z;
  }
  if (joint.acts.friction) {
    const auto each = [&](const Real& rate, const Real& next_bar, Real& rate_bar) __attribute__((always_inline)) {
      const Real factor = friction_factor(rate);
      rate_bar += next_bar * rate * factor * factor * factor * c.friction;
      if (gradient) gradient->friction -= next_bar * factor;
    };
    each(in.rate.x, next.x, bar.rate.x);
    each(in.rate.y, next.y, bar.rate.y);
    each(in.rate.z, next.z, bar.rate.z);
  }
  if (joint.acts.drive) {
    adj_ball_drive(c, in, dt, of, bar, gradient);
  } else {
    bar.effort += w;
  }
  if (joint.acts.spring || joint.acts.limit) {
    const RotationVector<Real> turn(in.rotation);
    if (joint.acts.spring) {
      bar.turn -= turn.left_inverse(w * (constant<Real>(0) + c.spring.stiffness));
      if (gradient) gradient->spring.stiffness -= dot(w, turn.vector);
    }
    if (joint.acts.limit) {
      const BallMotionBar<Real> motion = adj_ball_limit(c, in, dt, turn, of, gradient);
      bar.turn += motion.turn;
      bar.rate += motion.rate;
    }
  }
  if (joint.acts.speed) {
    const Directed<Real> way(in.rate);
    const LimitRamp<Real> above(way.length - c.limit.velocity);
    const Real along = dot(way.direction, w);
    const Real excess_bar = -((along * above.slope + resisted * dt * above.curvature) * c.limit.velocity_damping);
    bar.rate += way.bar(excess_bar, -(w * (above.value * c.limit.velocity_damping)));
    if (gradient) {
      gradient->limit.velocity -= excess_bar;
      gradient->limit.velocity_damping -= along * above.value + resisted * dt * above.slope;
    }
  }
  return bar;
}

/// Those of one component, as joint_force has them.
template <class Real>
BACKDRIVE_INLINE JointInputBar<Real> component(const BallInputBar<Real>& bar, int k) {
  return {component(bar.turn, k), component(bar.rate, k), component(bar.effort, k), component(bar.target_position, k),
          component(bar.target_velocity, k)};
}

/// Whether what acts on a ball joint is for ball_force; else its components are, one by one, for joint_force.
BACKDRIVE_HD constexpr bool turns_as_one(JointType type, const EffortParts& acts) {
  return type == JointType::ball && (acts.drive || acts.spring || acts.limit || acts.speed);
}

template <class Real>
BACKDRIVE_INLINE Vec3<Real> vector_at(const Real* at) {
  return {at[0], at[1], at[2]};
}
}  // namespace backdrive::inline BACKDRIVE_KERNELS
