#pragma once
// Arithmetic in the `$(…)` of repeated parts.
#include <span>
#include <string>
#include <string_view>

namespace backdrive::scene {

/// What a name stands for: a number, or a text to be put in as it is.
struct NamedValue {
  std::string name;
  bool is_number = true;
  double number = 0;
  std::string text = {};
};

/// Result of an expression, or what was expected in place of it.
struct ExpressionResult {
  NamedValue value = {};
  std::string expected = {};  ///< empty: no error
  std::string hint = {};
};

/// Numbers, names, `pi`, `+ - * / % ^`, brackets, and abs, cos, floor, sin, sqrt of one. `%` leaves a remainder of the
/// divisor's sign. A name alone may stand for a text. O(length).
ExpressionResult evaluate(std::string_view expression, std::span<const NamedValue> names);

/// Whether a name may be given to a value: letters, digits and '_', none of evaluate's own words.
bool can_be_named(std::string_view name);

/// As few digits as read back to the same number; whole numbers without an exponent.
std::string number_text(double number);

}  // namespace backdrive::scene
