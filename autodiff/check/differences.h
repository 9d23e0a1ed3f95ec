#pragma once
// Difference quotients of a loss over steps of a geometric ladder: the best of them, and how far it may be trusted.
#include <cmath>
#include <limits>

#include "engine/real.h"

namespace backdrive {

/// Room around measured errors: they are estimates, and a maximum of sixteen draws is not the worst case.
constexpr double kSafety = 4;

/// A difference quotient with the least estimated error of all steps.
struct Difference {
  double value = std::numeric_limits<double>::quiet_NaN();
  double step = 0, truncation = kInfinity, round_off = kInfinity;
  bool taken = true;
  bool settles = true;  ///< as the step shrinks, until rounding takes over
  bool kink = false;    ///< one-sided, since the loss has another slope on the other side
  double other_slope = 0;
  double tolerance() const { return kSafety * (truncation + round_off); }
  bool agrees_with(double slope) const { return std::abs(value - slope) <= tolerance(); }
};

/// Losses of one probe at x ± h for each step of a ladder.
struct Ladder {
  static constexpr int kSteps = 6;
  static constexpr double kRatio = 8;  ///< of one step to the one before

  const double* losses;  ///< +h and −h for each step, in order
  double smallest;
  double scale;  ///< bounds x, whose own rounding makes h uncertain by ε·scale
  double loss_rounding;

  double step(int k) const { return smallest * std::pow(kRatio, k); }
  double central(int k) const { return (losses[2 * k] - losses[2 * k + 1]) / (2 * step(k)); }
  /// From x, where the loss is f0, to x + sign·h.
  double one_sided(int k, double f0, int sign) const { return sign * (losses[2 * k + (sign < 0)] - f0) / step(k); }
};

/// What the differences are to be compared with.
struct Slopes {
  double adjoint, dual;
};

/// The central difference; or, where that is not the exact derivative, the one-sided one that the
/// adjoint agrees with, if the other side has another slope: x stands on a kink, and the gradient
/// is that of one branch (not always the dual's).
Difference difference_at(const Ladder& ladder, double f0, const Slopes& slopes);

}  // namespace backdrive
