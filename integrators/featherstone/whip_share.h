#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// How fast trees turn, and by what shares that counts: μ and λ of docs/theory.md, (22) and (24).
#include "engine/real.h"
#include "models/model.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// |ω|² Δt of a joint, in 1/s, from which velocity terms are those of a step's middle, and from which wholly: what
/// those of its start change of a motion's energy in a second is some times it. What all but rests is spared the second
/// solve.
constexpr double kMiddleFrom = 1e-5, kMiddleTo = 1e-4;
/// |ω|² Δt² of one, in rad², from which they are again those of the start, and from which wholly: turns of 1.4 and 2.8
/// rad in a step, of which half a step says nothing.
constexpr double kLostFrom = 2, kLostTo = 8;
/// |ω|² Δt² of two adjoining joints that turn alike, in rad², from which they whip, and from which wholly: turns of 0.1
/// and 0.14 rad in a step.
constexpr double kWhipFrom = 0.01, kWhipTo = 0.02;
/// Of trees that may touch something, the least length of a step, s, that |ω|² Δt is multiplied with: what a kick feeds
/// a motion, since it acts where the step begins, is of first order.
constexpr double kWhipTime = 0.05;

/// What |ω|² is multiplied with.
template <class Real>
BACKDRIVE_INLINE Real whip_time(const Real& time_step, bool touches) {
  return time_step * (touches ? maximum(time_step, constant<Real>(kWhipTime)) : time_step);
}

BACKDRIVE_INLINE int turning_dofs(const Link& link) {
  if (link.type == JointType::revolute) return 1;
  return link.type == JointType::ball || link.type == JointType::free ? 3 : 0;
}

/// h of (22), from |ω|² of two joints, and its derivatives.
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

constexpr double fourth_power(double x) {
  return x * x * x * x;
}

/// Whether what sums to y⁴ is more than `from`, by lane.
template <class Real>
BACKDRIVE_INLINE auto more_than(const Real& turns, double from) {
  return value_of(turns) > value_of(constant<Real>(fourth_power(from)));
}
/// Lanes whose tree whips.
template <class Real>
BACKDRIVE_INLINE auto whips(const Real& turns) {
  return more_than(turns, kWhipFrom);
}

/// x² (3 − 2 x) of x = (y − from)/(to − from) from 0 to 1, and its derivative by y⁴.
template <class Real>
struct TurnShare {
  Real share, by_turns;

  BACKDRIVE_INLINE TurnShare(const Real& turns, double from, double to) {
    const double width = to - from;
    const Real zero = constant<Real>(0), one = constant<Real>(1);
    const auto on = more_than(turns, from);
    const Real safe = select(on, turns, one), most = square_root(square_root(safe));
    const Real x = (most - constant<Real>(from)) * constant<Real>(1 / width);
    const auto whole = value_of(x) > value_of(one);
    share = select(on, select(whole, one, x * x * (constant<Real>(3) - constant<Real>(2) * x)), zero);
    by_turns = select(whole, zero, constant<Real>(1.5 / width) * x * (one - x) * most / safe);
    by_turns = select(on, by_turns, zero);
  }
};
/// λ, of Σ h⁴ over a tree's pairs.
template <class Real>
BACKDRIVE_INLINE TurnShare<Real> whip_share(const Real& turns) {
  return {turns, kWhipFrom, kWhipTo};
}
/// What μ is where nothing whips, of Σ (|ω|² Δt)⁴ over a tree's joints.
template <class Real>
BACKDRIVE_INLINE TurnShare<Real> middle_share_of_joints(const Real& turns, const Real& time_step) {
  const Real by = (time_step * time_step) * (time_step * time_step), one = constant<Real>(1);
  TurnShare<Real> found{turns, kMiddleFrom, kMiddleTo};
  const TurnShare<Real> lost{turns * by, kLostFrom, kLostTo};
  found.by_turns = found.by_turns * (one - lost.share) - found.share * lost.by_turns * by;
  found.share = found.share * (one - lost.share);
  return found;
}

/// Whether State::ways() has it of a tree, by lane.
template <class Real>
BACKDRIVE_INLINE auto is_way_known(const Real& way) {
  return value_of(way) >= value_of(constant<Real>(0));
}

/// How fast a tree turns, or the cotangents of that.
template <class Real>
struct TreeTurns {
  Real joints, pairs;  ///< Σ (|ω|² Δt)⁴ over its joints, Σ h⁴ over its pairs
};
/// μ, and its adjoint.
template <class Real>
BACKDRIVE_INLINE Real middle_share(const TreeTurns<Real>& turns, const Real& time_step) {
  return middle_share_of_joints(turns.joints, time_step).share * (constant<Real>(1) - whip_share(turns.pairs).share);
}
template <class Real>
BACKDRIVE_INLINE TreeTurns<Real> adj_middle_share(const TreeTurns<Real>& turns, const Real& time_step,
                                                  const Real& bar) {
  const TurnShare<Real> middle = middle_share_of_joints(turns.joints, time_step), whip = whip_share(turns.pairs);
  return {bar * middle.by_turns * (constant<Real>(1) - whip.share), -(bar * middle.share * whip.by_turns)};
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
