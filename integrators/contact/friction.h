#pragma once
// Friction against one kind of motion: sliding, turning about the normal (torsion), or turning about tangents
// (rolling). V is a vector, or a number for the one direction of torsion; ε is the speed at which what sticks carries
// 1/√2 of all that friction can. docs/contact.md, (C4) and (L4); by itself it knows no normal.
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

/// û = u/√(|u|² + ε²), shorter than 1: friction is −bound · û, the slope of the convex −bound · √(|u|² + ε²).
template <class Real, class V>
struct Slip {
  V direction;  ///< û
  Real speed;   ///< √(|u|² + ε²)
};

template <class Real, class V>
BACKDRIVE_INLINE Slip<Real, V> slip_of(const V& u, const Real& creep) {
  const Real speed = square_root(inner(u, u) + creep * creep);
  return {u * (constant<Real>(1) / speed), speed};
}

/// Adjoint (L4): from the cotangent of û returns that of u, and adds that of ε.
template <class Real, class V>
BACKDRIVE_INLINE V adj_slip(const Slip<Real, V>& slip, const Real& creep, const V& direction_bar, Real& creep_bar) {
  const Real along = inner(slip.direction, direction_bar), inverse = constant<Real>(1) / slip.speed;
  creep_bar -= along * creep * inverse * inverse;
  return (direction_bar - slip.direction * along) * inverse;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
