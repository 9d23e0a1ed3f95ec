#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// Which trees whip, and by what share λ: equation (22) of docs/theory.md.
#include "engine/real.h"
#include "models/model.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// |ω|² Δt of two adjoining joints that turn alike, in 1/s, from which they whip, and from which wholly: λ goes from 0
/// to 1. What velocity terms of a step's start feed a motion in a second is some tenths of it.
constexpr double kWhipFrom = 0.09, kWhipTo = 1;
/// Of steps longer than this, s, what they feed it in a step counts: |ω|² is multiplied with more than Δt.
constexpr double kWhipStep = 1.0 / 60;

/// What |ω|² is multiplied with.
template <class Real>
BACKDRIVE_INLINE Real whip_time(const Real& time_step) {
  return time_step * maximum(constant<Real>(1), time_step * constant<Real>(1 / kWhipStep));
}

BACKDRIVE_INLINE int turning_dofs(const Link& link) {
  return link.type == JointType::revolute ? 1 : 3;
}

/// h of (22), from ω² Δt of two joints, and its derivatives.
template <class Real>
struct JointTurn {
  Real h, by_a, by_b;

  BACKDRIVE_INLINE JointTurn(const Real& a, const Real& b) {
    const Real two = constant<Real>(2), sum = a + b;
    const auto still = !(value_of(sum) > value_of(constant<Real>(1e-30)));
    const Real inverse = select(still, constant<Real>(0), constant<Real>(1) / select(still, two, sum));
    const Real x = a * inverse, y = b * inverse;
    h = two * a * y;
    by_a = two * y * y;
    by_b = two * x * x;
  }
};

/// Lanes whose tree whips.
template <class Real>
BACKDRIVE_INLINE auto whips(const Real& turns) {
  return value_of(turns) > value_of(constant<Real>(kWhipFrom * kWhipFrom * kWhipFrom * kWhipFrom));
}

/// λ of (22), and its derivative by the turns.
template <class Real>
struct WhipShare {
  Real share, by_turns;

  BACKDRIVE_INLINE explicit WhipShare(const Real& turns) {
    constexpr double from = kWhipFrom, width = kWhipTo - from;
    const Real zero = constant<Real>(0), one = constant<Real>(1);
    const auto on = whips(turns);
    const Real safe = select(on, turns, one), most = square_root(square_root(safe));
    const Real x = (most - constant<Real>(from)) * constant<Real>(1 / width);
    const auto whole = value_of(x) > value_of(one);
    share = select(on, select(whole, one, x * x * (constant<Real>(3) - constant<Real>(2) * x)), zero);
    by_turns = select(whole, zero, constant<Real>(1.5 / width) * x * (one - x) * most / safe);
    by_turns = select(on, by_turns, zero);
  }
};

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
