#pragma once
// When the solve of a step's contacts ends, and what it may do on the way.
#include "engine/dual.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// When a solve is good enough, relative to the impulses; how often it may try. One more Newton step follows.
template <class Real>
struct SolveLimits {
  static constexpr bool narrow = sizeof(ScalarOf<Real>) == 4;
  static constexpr double trusted = 1e-3;  ///< beyond which a step that took all its tries counts as unsolved
  static constexpr double tolerance = kIsDual<Real> ? 1e-13 : narrow ? 1e-5 : 1e-13;
  /// Rounding of velocities, which stiff contacts magnify: some ulps.
  static constexpr double rounding = narrow ? 3e-8 : 5e-17;
  /// In float32, of impulses: what may be left where no body will move by it.
  static constexpr double shares = 5e-3;
  /// Of the velocities: slips below it count as this long in the slope of friction.
  static constexpr double least_slip = 3e-4;
  /// How many times the mass of a body K_t is at most: while steps of Newton's lead somewhere, of bodies that fly alone
  /// and of links of trees, and in the last step.
  static constexpr double sticking_alone = 1e3, sticking = 3e3, sticking_last = 30;
  /// In the matrix of adjoints, what part it is of the first two: see eased().
  static constexpr double sticking_adjoint = 0.1;
  /// Of the velocities: slips below it are told by impulses in adjoints, as those of a solved step are known to a
  /// third.
  static constexpr double told_slip = 1e-3;
  /// After which a step that helps little is not taken without looking where it leads.
  static constexpr int bold_steps = 6;
  /// Impulses on the way, or what was left of them, over those at the end: beyond that rounding of the steps is not that
  /// of the solution.
  static constexpr double wild = narrow ? 1e3 : 1e5;
  static constexpr int bold_again = 4;  ///< and after which it gives up, when it has come near in steps with care
  static constexpr int newton_steps = 200;
  static constexpr int held_steps = kIsDual<Real> ? 200 : 60;  ///< of (C9), each time
  /// Of (C9): how far the bounds of friction may be from the forces, and how often they are taken anew.
  static constexpr double held_tolerance = narrow ? trusted : 1e-10;
  static constexpr int held_rounds = 30;
  /// Of the energy of the residual, by which conjugate gradients end.
  static constexpr double gradients_tolerance = narrow ? 1e-6 : 1e-12;
  static constexpr int gradients_steps = 300;
  static constexpr int search_steps = 20;
  static constexpr int adjoint_steps = kIsDual<Real> ? 200 : 100;
  static constexpr int adjoint_patience = 6;  ///< corrections after which each has to halve what is left
  static constexpr int derivative_steps = 1000;
  static constexpr double adjoint_tolerance = narrow ? 1e-5 : 1e-13;
};

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
