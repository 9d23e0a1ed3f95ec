#pragma once
// Friction against one kind of motion: sliding, turning about the normal (torsion), or turning about tangents
// (rolling). V is a vector, or a number for the one direction of torsion; ε is the speed at which what sticks carries
// all that friction can. docs/contact.md, (C3), (C5a), (C6) and (L4), (L4a); by itself it knows no normal.
#include "integrators/contact/shapes.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Real>
BACKDRIVE_INLINE Real inner(const Real& a, const Real& b) {
  return a * b;
}
template <class Real>
BACKDRIVE_INLINE Real inner(const Vec3<Real>& a, const Vec3<Real>& b) {
  return dot(a, b);
}

/// √(|u|² + ε²)
template <class Real, class V>
BACKDRIVE_INLINE Real smoothed_speed(const V& u, const Real& creep) {
  return square_root(inner(u, u) + creep * creep);
}

/// min(x, 1), rounded off over 1 ± δ; never more than 1. x ≥ 0.
template <class Real>
struct Saturation {
  static constexpr double delta = 0.02;
  Real value, slope;

  BACKDRIVE_INLINE explicit Saturation(const Real& x) {
    const Real zero = constant<Real>(0), one = constant<Real>(1);
    const Real t = clamped(x - constant<Real>(1 - delta), zero, constant<Real>(2 * delta));
    value = clamped(x, zero, constant<Real>(1 + delta)) - t * t * constant<Real>(0.25 / delta);
    slope = one - t * constant<Real>(0.5 / delta);
  }
};

/// Far below any force, N; its square must be far above the smallest number.
template <class Real>
BACKDRIVE_INLINE Real no_force() {
  return constant<Real>(sizeof(ScalarOf<Real>) == 4 ? 1e-15 : 1e-30);
}

/// (C5a): by what the drag of the second predictor is lifted, g. Friction asks for bound · g/ν₁ times the slip. What
/// moves fast is to reach the bound beyond the rounded corner, at 1 + δ; what sticks is not lifted.
template <class Real, class V>
struct Lift {
  V e_slip, end_slip;       ///< what the first predictor changes the slip by, and u₁ = u₀ + that
  Real end_speed, e_speed;  ///< ν₁ = √(|u₁|² + ε²) and ν_e = √(|e|² + ε²)
  Real value;               ///< g = 1 + rise ν₁/(ν_e + ½ ν₁)
};

template <class Real, class V>
BACKDRIVE_INLINE Lift<Real, V> lift_of(const V& slip, const V& e_slip, const Real& creep, double rise) {
  const Real half = constant<Real>(0.5);
  Lift<Real, V> t;
  t.e_slip = e_slip;
  t.end_slip = slip + t.e_slip;
  t.end_speed = smoothed_speed(t.end_slip, creep);
  t.e_speed = smoothed_speed(t.e_slip, creep);
  t.value = constant<Real>(1) + constant<Real>(rise) * t.end_speed / (t.e_speed + half * t.end_speed);
  return t;
}

/// Cotangents of ½ (|u₁|² + ε²) and ½ (|e|² + ε²): both times their vector, and both times ε, are what those receive.
template <class Real>
struct LiftBar {
  Real end, change;
};
/// Adjoint of c₂ = bound · g/ν₁ in what g and ν₁ depend on (L4a), given c̄₂ · bound and c̄₂ c₂.
template <class Real, class V>
BACKDRIVE_INLINE LiftBar<Real> adj_lift(const Lift<Real, V>& t, const Real& of_bound, const Real& of_drag,
                                        double rise) {
  const Real half = constant<Real>(0.5);
  const Real lift_bar = of_bound / t.end_speed;
  const Real sum = t.e_speed + half * t.end_speed, share = constant<Real>(rise) * lift_bar / (sum * sum);
  return {(share * t.e_speed - of_drag / t.end_speed) / t.end_speed, -(share * t.end_speed / t.e_speed)};
}

/// (C6): what the predictor asks for, λ, within the bound F: ψ λ with ψ = F s(|λ|/F)/|λ|, so that |ψ λ| ≤ F.
template <class Real, class V>
struct Bounded {
  V drag;            ///< λ
  Real size, bound;  ///< |λ|, F
  Real share;        ///< ψ
};

template <class Real, class V>
BACKDRIVE_INLINE Bounded<Real, V> bounded(const V& drag, const Real& bound) {
  const Real least = no_force<Real>();
  Bounded<Real, V> t;
  t.drag = drag;
  t.size = square_root(inner(t.drag, t.drag) + least);
  t.bound = bound;
  t.share = t.bound * Saturation<Real>(t.size / (t.bound + least)).value / t.size;
  return t;
}

template <class Real, class V>
struct BoundedBar {
  V drag;
  Real bound;
};
/// Adjoint of −ψ λ (L4).
template <class Real, class V>
BACKDRIVE_INLINE BoundedBar<Real, V> adj_bounded(const Bounded<Real, V>& t, const V& result_bar) {
  const Real least = no_force<Real>();
  const Saturation<Real> s(t.size / (t.bound + least));
  const Real share_bar = -inner(t.drag, result_bar);
  const Real rest = (s.value - t.size / (t.bound + least) * s.slope) / t.size;
  return {result_bar * -t.share - t.drag * (share_bar * t.bound * rest / (t.size * t.size)), share_bar * rest};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
