#pragma once
// The springs of two shapes in touch: numbers, or what auto makes of masses. docs/contact.md, section 1.
#include <cmath>

#include "integrators/contact/shape_constants.h"
#include "integrators/contact/shapes.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// What auto makes of a mass: k = ω² m against the world, so that a body at rest sinks in by g/ω² = 2 mm over the
/// number of its points, and an impact lasts π/ω = 44 ms; softer where that would not be kResolvedSteps steps. Between
/// two bodies 4 ω² m_i m_j/(m_i + m_j): half as long, and stiff enough for ten of a kind to stand on one another.
constexpr double kAutoRate = 5000;  ///< ω², 1/s²
constexpr double kResolvedSteps = 8;
template <class Real>
BACKDRIVE_INLINE Real auto_rate(const Real& dt) {
  const Real most = constant<Real>(M_PI / kResolvedSteps) / dt;
  return minimum(constant<Real>(kAutoRate), most * most);
}

/// The springs of two shapes, in series. Also the cotangents of both.
template <class Real>
struct PairSprings {
  Real a, b;
};

/// Whether neither is the world's auto, which has no spring of its own.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> both_have_springs(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b) {
  const auto zero = value_of(constant<Real>(0));
  return value_of(a.stiffness + a.auto_mass) > zero && value_of(b.stiffness + b.auto_mass) > zero;
}
/// Numbers as they are, 4 ω² m of auto; against the world's auto both the same, so that together they are the number,
/// or ω² m, and both count for the dissipation.
template <class Real>
BACKDRIVE_INLINE PairSprings<Real> pair_springs(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b,
                                                const Real& dt) {
  const Real rate = auto_rate(dt), one = constant<Real>(1), two = constant<Real>(2), four = constant<Real>(4);
  const auto spring = [&](const ShapeConstants<Real>& c, const Real& of_number, const Real& of_mass) {
    return of_number * c.stiffness + of_mass * rate * c.auto_mass;
  };
  const Real against_world = spring(a, two, two) + spring(b, two, two);
  const auto shared = both_have_springs(a, b);
  return {select(shared, spring(a, one, four), against_world), select(shared, spring(b, one, four), against_world)};
}
template <class Real>
BACKDRIVE_INLINE void adj_pair_springs(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b, const Real& dt,
                                       const PairSprings<Real>& bar, ShapeGradient<Real>& a_bar,
                                       ShapeGradient<Real>& b_bar) {
  const Real two = constant<Real>(2) * (bar.a + bar.b), four = constant<Real>(4), rate = auto_rate(dt);
  const auto shared = both_have_springs(a, b);
  a_bar.stiffness += select(shared, bar.a, two);
  a_bar.auto_mass += rate * select(shared, four * bar.a, two);
  b_bar.stiffness += select(shared, bar.b, two);
  b_bar.auto_mass += rate * select(shared, four * bar.b, two);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
