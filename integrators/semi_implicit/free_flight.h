#pragma once
// How a body moves on by itself for a step, its momentum kept: docs/semi_implicit.md, equations (5) and (6).
//
// In its own axes, with Π = J Ω the angular momentum that it has at the start,
//
//   (1 + τ [φ]×) J Ω_m = Π,  φ = ½ Δt Ω_m,  τ = tan|φ|/|φ|,   R⁺ = R exp(Δt Ω_m)
//
// J Ω_m is the mean of the momentum in the body's axes before and after: the implicit midpoint, which keeps the energy
// as it keeps the momentum, to rounding, whatever the moments of inertia. (The half turn of exp(φ) makes τ the tangent;
// with 1 in its place it would be that of Cayley's map, which turns by 2 atan|φ|.)
#include <type_traits>
#include <utility>

#include "integrators/semi_implicit/system.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Of Newton's method, at most: bodies of any shape take five up to a radian a step, and seven up to one and a half.
constexpr int kTurnSteps = 20;
/// cos|φ| is taken to be no less in τ, which grows without bound towards half a turn a step: two radians.
constexpr double kLeastCosine = 0.5403023058681398;

/// exp(φ) x and Jl(φ) x = Jr(φ)ᵀ x.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> turned_by(const Vec3<Real>& phi, const Vec3<Real>& x) {
  const TurnCoefficients<Real> turn(phi);
  const Vec3<Real> first = cross(phi, x), second = cross(phi, first);
  return x + first * turn.a + second * turn.b;
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> left_jacobian_times(const Vec3<Real>& phi, const Vec3<Real>& x) {
  const TurnCoefficients<Real> turn(phi);
  const Vec3<Real> first = cross(phi, x), second = cross(phi, first);
  return x + first * turn.b + second * turn.c;
}

/// s += of the six stored numbers of J in xᵀ J y.
template <class Real>
BACKDRIVE_INLINE void add_bilinear(Sym3<Real>& s, const Vec3<Real>& x, const Vec3<Real>& y) {
  s.xx += x.x * y.x, s.yy += x.y * y.y, s.zz += x.z * y.z;
  s.xz += x.x * y.z + x.z * y.x;
  s.yz += x.y * y.z + x.z * y.y;
  s.xy += x.x * y.y + x.y * y.x;
}

/// The equation of Ω_m at some Ω, in units of angular velocity whatever the body weighs: J⁻¹ G, and its derivative.
template <class Real>
class MidpointAt {
 public:
  BACKDRIVE_INLINE MidpointAt(const BodyConstants<Real>& body, const Vec3<Real>& omega, const Real& half)
      : body_(body), phi_(omega * half), momentum_(body.inertia * omega) {
    const TurnCoefficients<Real> turn(phi_);
    const Real zero = constant<Real>(0), one = constant<Real>(1), least = constant<Real>(kLeastCosine);
    const Real cosine = one - dot(phi_, phi_) * turn.b;
    const auto within = value_of(cosine) > value_of(least);
    const Real inverse = one / select(within, cosine, least);
    tau_ = turn.a * inverse;
    const Real slope = select(within, tau_ * tau_, zero) - (turn.b - turn.c) * inverse;  // ∂τ = slope φ·∂φ
    couple_ = cross(phi_, momentum_);
    const Sym3<Real>& J = body.inertia;
    const auto column = [&](const Vec3<Real>& e, const Vec3<Real>& Je, const Real& along)
        __attribute__((always_inline)) {
      const Vec3<Real> carried = (cross(e, momentum_) * half + cross(phi_, Je)) * tau_;
      return e + body.inverse_inertia * (carried + couple_ * (slope * along * half));
    };
    const Vec3<Real> a = column({one, zero, zero}, {J.xx, J.xy, J.xz}, phi_.x);
    const Vec3<Real> b = column({zero, one, zero}, {J.xy, J.yy, J.yz}, phi_.y);
    const Vec3<Real> c = column({zero, zero, one}, {J.xz, J.yz, J.zz}, phi_.z);
    const Vec3<Real> bc = cross(b, c);
    const Real scale = one / dot(a, bc);
    rows_ = {bc * scale, cross(c, a) * scale, cross(a, b) * scale};
  }

  /// Newton's step.
  BACKDRIVE_INLINE Vec3<Real> step(const Vec3<Real>& momentum) const {
    return transposed_times(rows_, body_.inverse_inertia * (momentum - momentum_ - couple_ * tau_));
  }
  /// J λ of the cotangent λ of Π, from that of Ω_m.
  BACKDRIVE_INLINE Vec3<Real> adj_solution(const Vec3<Real>& omega_bar) const { return rows_ * omega_bar; }
  /// What J receives with Ω_m, less: λ + τ λ × φ.
  BACKDRIVE_INLINE Vec3<Real> adj_momentum(const Vec3<Real>& lambda) const {
    return lambda + cross(lambda, phi_) * tau_;
  }

 private:
  const BodyConstants<Real>& body_;
  Vec3<Real> phi_, momentum_, couple_;  ///< momentum J Ω; couple φ × J Ω
  Real tau_;
  Mat3<Real> rows_;  ///< of the derivative's inverse
};

/// The angular velocities of a free flight, body axes.
template <class Real>
struct Turn {
  Vec3<Real> start, omega;                                                           ///< Ω and Ω_m
  Vec3<Real> angle;                                                                  ///< Δt Ω_m
  decltype(value_of(std::declval<Real>()) < value_of(std::declval<Real>())) solved;  ///< else Ω_m is Ω
};

template <class Real>
BACKDRIVE_INLINE auto size_of(const Vec3<Real>& v) {
  const auto of = [](const Real& x) { return value_of(maximum(x, -x)); };
  return of(v.x) + of(v.y) + of(v.z);
}
template <class Real, class Mask>
BACKDRIVE_INLINE Vec3<Real> one_of(const Mask& mask, const Vec3<Real>& yes, const Vec3<Real>& no) {
  return {select(mask, yes.x, no.x), select(mask, yes.y, no.y), select(mask, yes.z, no.z)};
}

/// Beyond some 1.5 radians a step there may be no solution, or none that Newton's method finds: Ω is taken then, by
/// which momentum is kept all the same.
template <class Real>
BACKDRIVE_PART Turn<Real> turn_of(const BodyConstants<Real>& body, const Vec3<Real>& omega, const Real& dt) {
  using Value = std::decay_t<decltype(value_of(dt))>;
  const Vec3<Real> momentum = body.inertia * omega;
  const Real half = constant<Real>(0.5) * dt;
  // What is left of the momentum after a step is what the step turns times what it adds.
  const Value allowed = size_of(momentum) * value_of(constant<Real>(sizeof(ScalarOf<Real>) == 4 ? 3e-8 : 1e-16));
  Vec3<Real> at = omega;
  auto running = !(value_of(half) < value_of(constant<Real>(0)));
  for (int k = 0; k < kTurnSteps && any(running); ++k) {
    const Vec3<Real> step = MidpointAt<Real>(body, at, half).step(momentum);
    at = one_of(running, at + step, at);
    running = running && size_of(step * half) * size_of(body.inertia * step) > allowed;
  }
  Turn<Real> t;
  t.solved = !running && is_finite(at.x + at.y + at.z);
  if constexpr (!std::is_same_v<Value, Real>) {
    at += MidpointAt<Real>(body, at, half).step(momentum);  // derivatives, of what values have come to
  }
  t.start = omega;
  t.omega = one_of(t.solved, at, omega);
  t.angle = t.omega * dt;
  return t;
}

/// Adjoint of turn_of, by the implicit function theorem: the cotangent of Δt Ω_m to that of Ω, returned, and of J,
/// added to unless null. docs/semi_implicit.md, (7).
template <class Real>
BACKDRIVE_PART Vec3<Real> adj_turn_of(const BodyConstants<Real>& body, const Turn<Real>& t, const Real& dt,
                                      const Vec3<Real>& angle_bar, Sym3<Real>* inertia_bar) {
  const MidpointAt<Real> at(body, t.omega, constant<Real>(0.5) * dt);
  const Vec3<Real> middle_bar = angle_bar * dt;
  const Vec3<Real> start_bar = one_of(t.solved, at.adj_solution(middle_bar), middle_bar);
  if (inertia_bar) {
    const Vec3<Real> lambda = one_of(t.solved, body.inverse_inertia * start_bar, zero3<Real>());
    add_bilinear(*inertia_bar, -at.adj_momentum(lambda), t.omega);
    add_bilinear(*inertia_bar, lambda, t.start);
  }
  return start_bar;
}

/// Where a free flight begins.
template <class Real>
struct FlightStart {
  const BodyConstants<Real>& body;
  const Quaternion<Real>& rotation;
  const Mat3<Real>& axes;  ///< R: the rotation's matrix
  const Real& dt;
};

/// How a body turns after a free flight, in axes of R⁺.
template <class Real>
struct Spin {
  Vec3<Real> start;     ///< Ω, in axes of R
  Vec3<Real> momentum;  ///< Π⁺ = exp(−φ) J Ω
  Vec3<Real> omega;     ///< J⁻¹ Π⁺
};
/// What the free flight of a body comes to; its spin is of the angular velocity that turned it.
template <class Real>
struct FreeFlight : Spin<Real> {
  Turn<Real> turn;
  Quaternion<Real> rotation;
  Mat3<Real> axes;   ///< R⁺
  Vec3<Real> lever;  ///< R⁺ com
};

/// What an angular velocity, in axes of R, is after the turn φ.
template <class Real>
BACKDRIVE_INLINE Spin<Real> spin_after(const BodyConstants<Real>& body, const Vec3<Real>& phi,
                                       const Vec3<Real>& omega) {
  const Vec3<Real> momentum = turned_by(-phi, body.inertia * omega);
  return {omega, momentum, body.inverse_inertia * momentum};
}

/// (5)-(6): with the angular velocity `velocity` of the world's axes.
template <class Real>
BACKDRIVE_PART FreeFlight<Real> flight_of(const FlightStart<Real>& start, const Vec3<Real>& velocity) {
  FreeFlight<Real> d;
  const Vec3<Real> omega = transposed_times(start.axes, velocity);
  d.turn = turn_of(start.body, omega, start.dt);
  d.rotation = turned<TurnSide::right>(start.rotation, d.turn.angle);
  d.axes = rotation_matrix(d.rotation);
  d.lever = d.axes * start.body.com;
  static_cast<Spin<Real>&>(d) = spin_after(start.body, d.turn.angle, omega);
  return d;
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
