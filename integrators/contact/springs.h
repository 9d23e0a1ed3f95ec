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

/// The springs of two shapes, in series: numbers as they are, 4 ω² m of auto; against the world's auto both the same,
/// so that together they are the number, or ω² m, and both count for the dissipation.
template <class Real>
struct PairSprings {
  Real a, b;
  BACKDRIVE_INLINE PairSprings(const ShapeConstants<Real>& first, const ShapeConstants<Real>& second, const Real& dt) {
    const Real rate = auto_rate(dt), two = constant<Real>(2), four = constant<Real>(4);
    const auto spring = [&](const ShapeConstants<Real>& c, const Real& of_number, const Real& of_mass) {
      return of_number * c.stiffness + of_mass * rate * c.auto_mass;
    };
    const Real one = constant<Real>(1);
    const Real against_world = spring(first, two, two) + spring(second, two, two);
    const auto shared = both(first, second);
    a = select(shared, spring(first, one, four), against_world);
    b = select(shared, spring(second, one, four), against_world);
  }
  /// Adjoint: bars of a and b.
  BACKDRIVE_INLINE static void adj(const ShapeConstants<Real>& first, const ShapeConstants<Real>& second,
                                   const Real& dt, const Real& a_bar, const Real& b_bar, ShapeGradient<Real>& first_bar,
                                   ShapeGradient<Real>& second_bar) {
    const Real two = constant<Real>(2) * (a_bar + b_bar), four = constant<Real>(4), rate = auto_rate(dt);
    const auto shared = both(first, second);
    first_bar.stiffness += select(shared, a_bar, two);
    first_bar.auto_mass += rate * select(shared, four * a_bar, two);
    second_bar.stiffness += select(shared, b_bar, two);
    second_bar.auto_mass += rate * select(shared, four * b_bar, two);
  }

 private:
  /// Whether neither is the world's auto, which has no spring of its own.
  BACKDRIVE_INLINE static MaskOf<Real> both(const ShapeConstants<Real>& first, const ShapeConstants<Real>& second) {
    const auto zero = value_of(constant<Real>(0));
    return value_of(first.stiffness + first.auto_mass) > zero && value_of(second.stiffness + second.auto_mass) > zero;
  }
};

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
