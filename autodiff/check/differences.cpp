#include "autodiff/check/differences.h"

#include <algorithm>

namespace backdrive {
namespace {

/// The best of D(h) for all steps h. The truncation of a central D(h) is c h² + … where the loss is
/// smooth at that scale, 1/63 of |D(8h) − D(h)|. A rollout may have finer features (friction, a
/// limit's onset), so only first order is claimed, a seventh of that change, and this only when the
/// change to D(64h) is larger by `growth` as it should be. Where it is not and round-off does not
/// explain it, h is too large: no use (but for the smallest, if there is none better).
template <class Quotient>
Difference best_difference(const Ladder& ladder, double growth, Quotient quotient) {
  Difference best;
  bool settles = true, judged = false;
  for (int k = 0; k + 2 < Ladder::kSteps; ++k) {
    const double h = ladder.step(k), value = quotient(k);
    const double near = std::abs(quotient(k + 1) - value), far = std::abs(quotient(k + 2) - quotient(k + 1));
    const double round_off =
        (ladder.loss_rounding + std::numeric_limits<double>::epsilon() * ladder.scale * std::abs(value)) / h;
    const bool grows = far >= growth * near, explained = near <= Ladder::kRatio * round_off;
    if (!explained && !judged) {  // the smallest step that rounding leaves something of
      settles = grows;
      judged = true;
    }
    if (!grows && !explained && k > 0) continue;
    const double truncation =
        grows ? std::max(near, far / (Ladder::kRatio * Ladder::kRatio)) / (Ladder::kRatio - 1) : near;
    const Difference now{value, h, truncation, round_off};
    const bool finite = std::isfinite(now.value) && std::isfinite(now.truncation);
    if (finite && now.tolerance() < best.tolerance()) best = now;
  }
  best.settles = settles;
  return best;
}

}  // namespace

Difference difference_at(const Ladder& ladder, double f0, const Slopes& slopes) {
  const Difference central = best_difference(ladder, Ladder::kRatio, [&](int k) { return ladder.central(k); });
  if (central.agrees_with(slopes.dual)) return central;
  // One-sided quotients are of first order: changes grow by about the ratio itself.
  const auto side = [&](int sign) {
    return best_difference(ladder, Ladder::kRatio / 2, [&](int k) { return ladder.one_sided(k, f0, sign); });
  };
  Difference right = side(1), left = side(-1);
  if (std::abs(right.value - left.value) <= right.tolerance() + left.tolerance()) return central;
  right.kink = left.kink = true;
  right.other_slope = left.value;
  left.other_slope = right.value;
  if (right.agrees_with(slopes.adjoint)) return right;
  return left.agrees_with(slopes.adjoint) ? left : central;
}

}  // namespace backdrive
