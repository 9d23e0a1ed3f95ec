#pragma once
// Numbers as people write them in a scene: "180 deg", "5 ms", "2.5 N*m/rad"; values come out in SI
// units.
#include <string>
#include <string_view>

#include "models/model.h"

namespace backdrive::scene {

/// What a number measures. `varied` is that of the variable or channel it stands with, known only
/// when read. The joint_ ones depend on the joint: angles and torques of revolute joints, lengths
/// and forces of prismatic ones.
enum class Dimension {
  none,
  varied,
  time,
  length,
  angle,
  mass,
  velocity,
  acceleration,
  inertia,
  density,
  contact_stiffness,
  dissipation,
  damping,
  angular_stiffness,
  angular_damping,
  angular_velocity,
  power,
  joint_position,
  joint_velocity,
  joint_effort,
  joint_stiffness,
  joint_damping,
  joint_inertia,
};

/// Powers of the base units; the radian counts as one, so that an angle is not a bare number.
struct UnitPowers {
  int kg = 0, m = 0, s = 0, rad = 0;
  bool operator==(const UnitPowers&) const = default;
};

struct Quantity {
  double value = 0;  ///< in SI units
  bool has_unit = false;
  UnitPowers unit;
};

/// Why a text is not a quantity: what was expected instead, and perhaps the nearest known unit.
struct QuantityError {
  std::string expected;  ///< empty: no error
  std::string hint;
};

/// Reads a decimal number and its optional unit. Refuses .inf, .nan, numbers past the range of a
/// double, octal (010), hexadecimal, digit separators.
QuantityError parse_quantity(std::string_view text, Quantity& quantity);

/// Whether a quantity can be what is asked for; a bare number always can. Without a joint type the
/// joint_ dimensions accept the units of either type.
bool unit_fits(const Quantity& quantity, Dimension dimension, const JointType* joint);

/// "rad or m"; with a joint type "rad".
std::string si_unit(Dimension dimension, const JointType* joint = nullptr);

/// "a time (s, ms, min)"
std::string dimension_words(Dimension dimension, const JointType* joint = nullptr);

/// Units for the documentation and the JSON schema: "`s`, `ms`, `us`, `min`".
std::string units_markdown();

/// A JSON Schema (ECMA 262) pattern of texts that can be quantities with a unit; parse_quantity is
/// stricter.
const char* quantity_pattern();

}  // namespace backdrive::scene
