#pragma once
// How MuJoCo softens contacts and limits, and what of springs and dampers comes nearest to it.
#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {

/// `solref` and `solimp` (mujoco.readthedocs.io, "Modeling", solver parameters): the acceleration that a constraint
/// which is violated by r gives what it holds, one at rest, is spring·d(r)²·r/(1 − d(r)), with its impedance d.
class MjcfSoftness {
 public:
  /// Of an element's attributes, or MuJoCo's own where it has none; time constants of at least two steps, s, as there.
  /// Numbers of `reference` of which one is above 0 and the other is not are MuJoCo's own, as there, where they warn.
  /// Throws Error (input): what are no numbers.
  MjcfSoftness(const XmlValues& values, const XmlElement& element, const char* reference, const char* impedance,
               double time_step);

  /// Of two things in touch: the mean of all numbers, the first one's share of it being `share`.
  static MjcfSoftness mixed(const MjcfSoftness& a, const MjcfSoftness& b, double share);

  /// Acceleration at a violation, m or rad; m/s² or rad/s². It grows with it.
  double acceleration(double violation) const;
  /// The violation that is held by an acceleration above 0.
  double violation(double acceleration) const;
  /// Of the damper over velocity at a violation, 1/s.
  double damping(double violation) const;
  /// Whether the numbers that the file gives mean nothing, so that others stand here.
  bool is_replaced() const { return is_replaced_; }

 private:
  double impedance(double violation) const;

  bool is_replaced_ = false;
  bool is_direct_ = false;             ///< spring and damper are given, not a time constant and a damping ratio
  std::array<double, 2> reference_{};  ///< as in the file, without signs
  std::array<double, 5> impedance_{};  ///< least, greatest, width, its middle, power
  double spring() const;
  double damper() const;
};

/// A spring of unit mass that sets in over a width (docs/contact.md, section 1): acceleration rate·(x²/2w, x − w/2).
struct MjcfSpring {
  double rate;   ///< 1/s²
  double width;  ///< m
};
/// The one that carries an acceleration at the same depth, and as nearly as it can with the same slope.
MjcfSpring contact_spring(const MjcfSoftness& softness, double acceleration);

/// Finds how much bodies and joints give way to a force where the file shows them: MjcfBody::inverse_mass and
/// MjcfJoint::inverse_inertia. O(bodies + joints).
void find_mjcf_mobility(MjcfModel& model);

}  // namespace backdrive::scene
