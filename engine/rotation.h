#pragma once
// Rotations as unit quaternions (x, y, z, w), turned by rotation vectors φ, and the adjoints of that in tangent space.
//
//   exp φ = 1 + a [φ]× + b [φ]×²     Jl(φ) = 1 + b [φ]× + c [φ]×²     Jr(φ) = Jl(−φ) = Jl(φ)ᵀ
//   a = sin|φ|/|φ|      b = (1 − cos|φ|)/|φ|²      c = (1 − a)/|φ|²
//
// exp(φ + δ) = exp(Jl(φ) δ) exp φ = exp φ exp(Jr(φ) δ) to first order in δ. (Solà et al., A micro Lie theory, 2018,
// equations 143-147.)
#include "engine/sincos.h"
#include "engine/spatial.h"

namespace backdrive {

/// On which side of a rotation its small turns θ stand.
enum class TurnSide {
  left,   ///< exp(θ) R: in the axes that R turns into
  right,  ///< R exp(θ): in the axes that R turns
};

template <class R>
struct Quaternion {
  Vec3<R> v;
  R w;
};

/// The rotation of a unit quaternion that lies in four numbers.
template <class R>
BACKDRIVE_INLINE Quaternion<R> load_quaternion(const R* q) {
  return {{q[0], q[1], q[2]}, q[3]};
}
template <class R>
BACKDRIVE_INLINE Mat3<R> rotation_matrix(const R& x, const R& y, const R& z, const R& w) {
  const R one = constant<R>(1), two = constant<R>(2);
  return {{one - two * (y * y + z * z), two * (x * y + z * w), two * (x * z - y * w)},
          {two * (x * y - z * w), one - two * (x * x + z * z), two * (y * z + x * w)},
          {two * (x * z + y * w), two * (y * z - x * w), one - two * (x * x + y * y)}};
}
template <class R>
BACKDRIVE_INLINE Mat3<R> rotation_matrix(const Quaternion<R>& q) {
  return rotation_matrix(q.v.x, q.v.y, q.v.z, q.w);
}
template <class R>
BACKDRIVE_INLINE Quaternion<R> operator*(const Quaternion<R>& a, const Quaternion<R>& b) {
  return {plus_cross(b.v * a.w + a.v * b.w, a.v, b.v), a.w * b.w - dot(a.v, b.v)};
}

/// The numbers of exp φ and its Jacobians. Below |φ| = 0.1 by their series, which leave out less than 1e-16 of each.
template <class R>
struct TurnCoefficients {
  R half_sine;    ///< sin(|φ|/2)/|φ|
  R half_cosine;  ///< cos(|φ|/2)
  R a, b, c;

  BACKDRIVE_INLINE explicit TurnCoefficients(const Vec3<R>& phi) {
    const R square = dot(phi, phi), one = constant<R>(1), half = constant<R>(0.5);
    const auto small = value_of(square) < value_of(constant<R>(0.01));
    const R safe = select(small, one, square);
    const R length = square_root(safe);
    R sine;
    sincos(half * length, sine, half_cosine);
    const auto series = [&](double c0, double c1, double c2, double c3, double c4) __attribute__((always_inline)) {
      const R x = select(small, square, constant<R>(0));
      return constant<R>(c0) +
             x * (constant<R>(c1) + x * (constant<R>(c2) + x * (constant<R>(c3) + x * constant<R>(c4))));
    };
    // In powers of |φ|²: sin(x/2)/x, cos(x/2), (x − sin x)/x³.
    half_sine = select(small, series(1. / 2, -1. / 48, 1. / 3840, -1. / 645120, 1. / 185794560), sine / length);
    half_cosine = select(small, series(1, -1. / 8, 1. / 384, -1. / 46080, 1. / 10321920), half_cosine);
    a = constant<R>(2) * half_sine * half_cosine;
    b = constant<R>(2) * half_sine * half_sine;
    c = select(small, series(1. / 6, -1. / 120, 1. / 5040, -1. / 362880, 1. / 39916800), (one - a) / safe);
  }
};

/// q turned by φ on one side; brought back to unit length, from which rounding leads it away by an ulp or two, by one
/// Newton step of 1/|q|.
template <TurnSide Side, class R>
BACKDRIVE_INLINE Quaternion<R> turned(const Quaternion<R>& q, const Vec3<R>& phi) {
  const TurnCoefficients<R> turn(phi);
  const Quaternion<R> e{phi * turn.half_sine, turn.half_cosine};
  const Quaternion<R> t = Side == TurnSide::left ? e * q : q * e;
  const R scale = constant<R>(1.5) - constant<R>(0.5) * (dot(t.v, t.v) + t.w * t.w);
  return {t.v * scale, t.w * scale};
}

/// Adjoint of turned in tangent space: the cotangent `theta_bar` of the result's turns, on the same side, becomes that
/// of q's; phi_bar receives its part. Left: θ̄ = exp(φ)ᵀ θ̄⁺, φ̄ += Jl(φ)ᵀ θ̄⁺; right: θ̄ = exp(φ) θ̄⁺, φ̄ += Jr(φ)ᵀ θ̄⁺
/// (docs/theory.md, (10)), which is the same with −φ in place of φ.
template <TurnSide Side, class R>
BACKDRIVE_INLINE void adj_turned(const Vec3<R>& phi, Vec3<R>& theta_bar, Vec3<R>& phi_bar) {
  const TurnCoefficients<R> turn(phi);
  const Vec3<R> f = Side == TurnSide::left ? -phi : phi;
  const Vec3<R> first = cross(f, theta_bar), second = cross(f, first);
  phi_bar += theta_bar + first * turn.b + second * turn.c;
  theta_bar += first * turn.a + second * turn.b;
}

}  // namespace backdrive
