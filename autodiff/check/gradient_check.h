#pragma once
// Every gradient a problem can ask for, against differences and against the exact derivative.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autodiff/problem/problem.h"
#include "engine/device.h"

namespace backdrive {

struct GradientCheckOptions {
  int threads = 1;
  Device device{};         ///< of the adjoint and of the losses; dual numbers run on the processor
  std::uint64_t seed = 0;  ///< which controls are checked, and along which direction all of them
  int controls = 64;       ///< numbers of all controls that are checked one by one
  int differences = -1;    ///< numbers that are held against differences, a seeded sample of all; −1: every one
  bool float32 = false;    ///< check the adjoint in float32 as well, against the same dual numbers
  /// How far a user would move a number, as a part of its size (of its variable's `scale`, where it has one): over that
  /// distance to each side the loss's slope is taken. 0: not.
  double distance = 0.05;
  /// For tests of the check itself: the adjoint's gradients in the row of this name are multiplied
  /// by the factor, those in float32 by their own.
  std::string fault_row;
  double fault_factor = 1, fault_factor_float32 = 1;
  /// Called now and then with rollouts done and about how many there are.
  std::function<void(long long done, long long all)> progress;
};

/// The adjoint in float32 against the dual number: of the row's worst component by this measure.
struct Float32Check {
  bool done = false;
  int worst = 0;
  double adjoint = 0, dual = 0, error = 0;
  /// Four times how far it, or the adjoint in float64, moves when all inputs are disturbed by some 45 ulp of float32.
  double resolution = 0;
  double tolerance = 0;  ///< that and a tenth of the row's largest: what is more is no rounding
  bool passed = true;
  bool unresolved = false;  ///< not zero, and the resolution is above a tenth of the gradient
};

/// The loss's slope over a distance that a user would move, to both sides (to the upper one alone where the lower one
/// is out of bounds), beside the derivative: of the component where they part most.
struct MacroscopicSlope {
  bool done = false;
  int worst = 0;
  double distance = 0, slope = 0, derivative = 0;
  /// The slope is not between half and twice the derivative, and that changes the loss by more than rounding, and by
  /// more than a millionth of what it changes anywhere. NaN slopes part: the run stops there.
  bool parts = false;
};

/// A parameter of one item, a component of the initial state, or a control channel. Numbers are
/// those of its worst component, the one with the largest error in units of its tolerance.
struct GradientCheckRow {
  std::string name;  ///< "joints/hinge/damping", "initial_state/hinge/position",
                     ///< "control/hinge/effort", ...
  std::string unit;
  int count = 0;  ///< numbers checked
  int total = 0;  ///< numbers there are
  int worst = 0;  ///< index of the worst: component, or step of a control
  double adjoint = 0;
  double differences = 0;  ///< NaN: not taken of this number
  double dual = 0;
  double step = 0;  ///< h of the differences (f(x + h) − f(x − h)) / 2h
  double differences_error = 0, differences_tolerance = 0;
  double truncation = 0, round_off = 0;  ///< parts of the differences' tolerance
  double dual_error = 0, dual_tolerance = 0;
  std::string tolerance_source;  ///< what the two tolerances were measured from
  /// "zero: the loss does not depend on it", why it is not used, or what went wrong.
  std::string note;
  /// False: no motion can depend on it, and its gradient is zero by construction.
  bool used = true;
  bool zero = false;  ///< all three agree that every number is zero
  bool passed = false;
  /// Adjoint and dual agree, and the differences do not converge as their step shrinks: the loss changes from one step
  /// of the ladder to the next, and they are no measure of its gradient.
  bool rough = false;
  /// Adjoint and dual agree, and the differences settle on another slope: over the distance h the loss does not go on
  /// as it does at the point itself, as where a contact comes or goes.
  bool parted = false;
  /// Not zero, and the differences' tolerance is above a tenth of the gradient: the duals alone say anything.
  bool unresolved = false;
  /// Nor do they: one of its numbers differs, by less than what rounding was measured to make of it, which is above a
  /// tenth of the row's largest.
  bool undecided = false;
  Float32Check float32;
  MacroscopicSlope macroscopic;
  std::vector<double> gradient;  ///< the adjoint's, of each number checked
};

struct GradientCheck {
  double loss = 0;
  std::vector<GradientCheckRow> rows;
  int numbers = 0;  ///< checked in all
  int zero_rows = 0, unresolved_rows = 0, undecided_rows = 0, rough_rows = 0, parted_rows = 0;
  int float32_unresolved_rows = 0;
  int macroscopic_rows = 0;  ///< whose slopes over the user's distance part from their derivatives
  bool passed = false;
  /// Where adjoint and dual were further apart than the rounding of the adjoint: how far steps in their two kinds of
  /// numbers end from one another, at most (relative to max(1, |x|)), as each solves contact to its own limits.
  double step_defect = 0;
  double seconds = 0;
};

/// Checks the adjoint's gradient of the problem's loss, in float64, with respect to initial
/// positions and velocities, controls (a seeded sample of them one by one, and one random direction
/// of all) and every parameter of every item:
///
/// - against central differences at six steps h, a factor of 8 apart, each number's perturbations
///   being worlds of one batch. The step is the one with the least estimated error, so that it
///   suits numbers of any size; the tolerance is four times that estimate: truncation, measured by
///   comparing h with 8h, plus round-off, measured by how far the loss moves when all inputs are
///   disturbed in their 14th digit, over h. At a kink of the loss, the difference to one side.
/// - against the rollout of a dual number along that direction, which has no truncation. The
///   tolerance is four times the rounding, measured by how far the gradient
///   itself moves under the same disturbance, or 1e-9 of the derivative, whichever is
///   more. Where they are further apart, what both of them move by is added, under a disturbance as large as what steps
///   in float64 and in dual numbers differ by: contact that sticks is solved to less than the last digits. A row where
///   that is more than a tenth of its largest number is undecided: neither an agreement nor a failure.
///
/// - with options.float32 the adjoint in float32 against the same dual. The tolerance is four times how far that
///   gradient, or that in float64, moves when all inputs are disturbed by some 45 ulp of float32, and a tenth of the
///   row's largest.
/// - beside the derivative stands the slope over a distance that a user would move (options.distance). It says nothing
///   of the gradient, and does not fail.
///
/// A row fails where adjoint and dual differ. Where they agree and the differences do not, the adjoint is the
/// derivative, and the row says so (rough, parted): differences over h are then no measure of it, or tell of a loss
/// that bends.
///
/// Orientations vary along exp(θ), axes on the unit sphere. Throws Error: non_finite when the
/// rollout itself stops, input when the problem has no loss. O(numbers) rollouts.
GradientCheck check_gradients(const Problem& problem, const GradientCheckOptions& options = {});

}  // namespace backdrive
