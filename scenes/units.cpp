#include "scenes/units.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <optional>
#include <vector>

#include "models/fields.h"

namespace backdrive::scene {
namespace {

/// SI value = written value · times / over. Two numbers, so that 5 ms is 5/1000 and not 5·0.001.
struct UnitSymbol {
  std::string_view symbol;
  UnitPowers powers;
  double times = 1, over = 1;
};

constexpr double kPi = std::numbers::pi;

constexpr UnitSymbol kSymbols[] = {
    {"s", {0, 0, 1, 0}},
    {"ms", {0, 0, 1, 0}, 1, 1e3},
    {"us", {0, 0, 1, 0}, 1, 1e6},
    {"min", {0, 0, 1, 0}, 60},
    {"m", {0, 1, 0, 0}},
    {"cm", {0, 1, 0, 0}, 1, 1e2},
    {"mm", {0, 1, 0, 0}, 1, 1e3},
    {"um", {0, 1, 0, 0}, 1, 1e6},
    {"km", {0, 1, 0, 0}, 1e3},
    {"rad", {0, 0, 0, 1}},
    {"mrad", {0, 0, 0, 1}, 1, 1e3},
    {"deg", {0, 0, 0, 1}, kPi, 180},
    {"turn", {0, 0, 0, 1}, 2 * kPi},
    {"rpm", {0, 0, -1, 1}, 2 * kPi, 60},
    {"kg", {1, 0, 0, 0}},
    {"g", {1, 0, 0, 0}, 1, 1e3},
    {"mg", {1, 0, 0, 0}, 1, 1e6},
    {"t", {1, 0, 0, 0}, 1e3},
    {"N", {1, 1, -2, 0}},
    {"mN", {1, 1, -2, 0}, 1, 1e3},
    {"kN", {1, 1, -2, 0}, 1e3},
    {"MN", {1, 1, -2, 0}, 1e6},
    {"Nm", {1, 2, -2, 0}},
    {"mNm", {1, 2, -2, 0}, 1, 1e3},
    {"kNm", {1, 2, -2, 0}, 1e3},
    {"MNm", {1, 2, -2, 0}, 1e6},
    {"W", {1, 2, -3, 0}},
    {"mW", {1, 2, -3, 0}, 1, 1e3},
    {"kW", {1, 2, -3, 0}, 1e3},
    {"MW", {1, 2, -3, 0}, 1e6},
};

const UnitSymbol* find_symbol(std::string_view name) {
  for (const UnitSymbol& symbol : kSymbols) {
    if (symbol.symbol == name) return &symbol;
  }
  return nullptr;
}

/// `name` raised to a power: "^2", "²", "³" or nothing. Returns 0 when it is not one, and takes it
/// off the text.
int take_power(std::string_view& text) {
  if (text.starts_with("²")) return text.remove_prefix(2), 2;
  if (text.starts_with("³")) return text.remove_prefix(2), 3;
  if (!text.starts_with("^")) return 1;
  text.remove_prefix(1);
  if (text.empty() || text[0] < '1' || text[0] > '3') return 0;
  const int power = text[0] - '0';
  text.remove_prefix(1);
  return power;
}

std::string nearest_unit(std::string_view name) {
  std::vector<std::string> known;
  for (const UnitSymbol& symbol : kSymbols) known.emplace_back(symbol.symbol);
  return nearest_name(name, known);
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Products and quotients of symbols: "N*m*s/rad", "kg·m²", "m/s^2".
QuantityError parse_unit(std::string_view text, Quantity& quantity) {
  int sign = 1;  // −1 after a '/'
  int factors = 0;
  while (true) {
    size_t length = 0;
    while (length < text.size() && is_letter(text[length])) ++length;
    const std::string_view name = text.substr(0, length);
    const UnitSymbol* symbol = find_symbol(name);
    if (!symbol) {
      if (name.empty()) return {"a number, or a number and a unit, like 5 ms", ""};
      return {"a known unit instead of '" + std::string(name) + "'", nearest_unit(name)};
    }
    if (++factors > 8) return {"a unit of at most 8 factors", ""};
    text.remove_prefix(length);
    const int power = take_power(text);
    if (power == 0) return {"a unit with powers ^2 or ^3", ""};
    for (int i = 0; i < power; ++i) {
      const double times = sign > 0 ? symbol->times : symbol->over;
      const double over = sign > 0 ? symbol->over : symbol->times;
      quantity.value = quantity.value * times / over;
    }
    quantity.unit.kg += sign * power * symbol->powers.kg;
    quantity.unit.m += sign * power * symbol->powers.m;
    quantity.unit.s += sign * power * symbol->powers.s;
    quantity.unit.rad += sign * power * symbol->powers.rad;
    if (text.empty()) break;
    const bool times = text.starts_with("*") || text.starts_with("·");
    if (times && sign < 0) return {"a unit with its quotient last, like N*s/m", ""};
    if (times) {
      text.remove_prefix(text[0] == '*' ? 1 : 2);
    } else if (text.starts_with("/")) {
      sign = -1;
      text.remove_prefix(1);
    } else {
      return {"a number, or a number and a unit, like 5 ms", ""};
    }
  }
  quantity.has_unit = true;
  if (!std::isfinite(quantity.value)) return {"a finite number", ""};
  return {};
}

/// Length of the decimal number at the start of `text`, 0 when there is none.
size_t number_length(std::string_view text) {
  const auto digits = [&](size_t i) {
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i;
  };
  size_t i = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const size_t whole = digits(i);
  size_t count = whole - i;
  i = whole;
  if (i < text.size() && text[i] == '.') {
    const size_t end = digits(i + 1);
    count += end - (i + 1);
    i = end;
  }
  if (count == 0) return 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    size_t exponent = i + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const size_t end = digits(exponent);
    if (end > exponent) i = end;
  }
  return i;
}

bool is_non_finite_word(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (!text.empty() && text[0] == '.') text.remove_prefix(1);
  for (const std::string_view word : {"inf", "Inf", "INF", "nan", "NaN", "NAN", "infinity", "Infinity"}) {
    if (text == word) return true;
  }
  return false;
}

/// The units of a dimension in SI, and whether an angle may be left out of them (N·m/rad is often
/// written N·m).
struct DimensionRow {
  UnitPowers powers;
  bool radian_optional;
  const char* si;
  const char* words;
};

DimensionRow row_of(Dimension dimension, bool rotates) {
  switch (dimension) {
    case Dimension::none:
      return {{}, false, "1", "a number without a unit"};
    case Dimension::varied:
      return {{}, false, "that of what is varied or scored", "a number"};
    case Dimension::time:
      return {{0, 0, 1, 0}, false, "s", "a time (s, ms, us, min)"};
    case Dimension::length:
      return {{0, 1, 0, 0}, false, "m", "a length (m, cm, mm, km)"};
    case Dimension::angle:
      return {{0, 0, 0, 1}, false, "rad", "an angle (rad, mrad, deg, turn)"};
    case Dimension::mass:
      return {{1, 0, 0, 0}, false, "kg", "a mass (kg, g, t)"};
    case Dimension::velocity:
      return row_of(Dimension::joint_velocity, false);
    case Dimension::acceleration:
      return {{0, 1, -2, 0}, false, "m/s²", "an acceleration (m/s^2)"};
    case Dimension::inertia:
      return {{1, 2, 0, 0}, false, "kg·m²", "an inertia (kg*m^2)"};
    case Dimension::density:
      return {{1, -3, 0, 0}, false, "kg/m³", "a density (kg/m^3, g/cm^3)"};
    case Dimension::contact_stiffness:
      return {{1, 0, -2, 0}, false, "N/m", "a stiffness (N/m, N/mm)"};
    case Dimension::dissipation:
      return {{0, -1, 1, 0}, false, "s/m", "a dissipation (s/m)"};
    case Dimension::damping:
      return row_of(Dimension::joint_damping, false);
    case Dimension::angular_stiffness:
      return row_of(Dimension::joint_stiffness, true);
    case Dimension::angular_damping:
      return row_of(Dimension::joint_damping, true);
    case Dimension::angular_velocity:
      return row_of(Dimension::joint_velocity, true);
    case Dimension::power:
      return {{1, 2, -3, 0}, false, "W", "a power (W, mW, kW)"};
    case Dimension::joint_position:
      return rotates ? row_of(Dimension::angle, true) : row_of(Dimension::length, false);
    case Dimension::joint_velocity:
      return rotates ? DimensionRow{{0, 0, -1, 1}, false, "rad/s", "an angular velocity (rad/s, deg/s, rpm)"}
                     : DimensionRow{{0, 1, -1, 0}, false, "m/s", "a velocity (m/s, cm/s, mm/s)"};
    case Dimension::joint_effort:
      return rotates ? DimensionRow{{1, 2, -2, 0}, false, "N·m", "a torque (N*m, Nm, mNm)"}
                     : DimensionRow{{1, 1, -2, 0}, false, "N", "a force (N, mN, kN)"};
    case Dimension::joint_stiffness:
      return rotates ? DimensionRow{{1, 2, -2, -1}, true, "N·m/rad", "a stiffness (N*m/rad)"}
                     : DimensionRow{{1, 0, -2, 0}, false, "N/m", "a stiffness (N/m)"};
    case Dimension::joint_damping:
      return rotates ? DimensionRow{{1, 2, -1, -1}, true, "N·m·s/rad", "a damping (N*m*s/rad)"}
                     : DimensionRow{{1, 0, -1, 0}, false, "N·s/m", "a damping (N*s/m)"};
    case Dimension::joint_inertia:
      return rotates ? row_of(Dimension::inertia, true) : row_of(Dimension::mass, false);
  }
  return {{}, false, "", ""};
}

bool depends_on_joint(Dimension dimension) {
  return dimension >= Dimension::joint_position;
}

bool fits(const UnitPowers& unit, const DimensionRow& row) {
  if (unit == row.powers) return true;
  UnitPowers without = row.powers;
  without.rad = 0;
  return row.radian_optional && unit == without;
}

}  // namespace

QuantityError parse_quantity(std::string_view text, Quantity& quantity) {
  quantity = {};
  if (is_non_finite_word(text)) return {"a finite number", ""};
  const size_t length = number_length(text);
  if (length == 0) return {"a number", ""};
  std::string_view digits = text.substr(0, length);
  std::string_view rest = text.substr(length);
  const std::string_view unsigned_digits = digits[0] == '+' || digits[0] == '-' ? digits.substr(1) : digits;
  if (unsigned_digits.size() > 1 && unsigned_digits[0] == '0' && unsigned_digits[1] >= '0' &&
      unsigned_digits[1] <= '9') {
    std::string plain(unsigned_digits.substr(unsigned_digits.find_first_not_of('0') == std::string_view::npos
                                                 ? unsigned_digits.size() - 1
                                                 : unsigned_digits.find_first_not_of('0')));
    return {"a decimal number without leading zeros (YAML reads them as octal): write " + plain, ""};
  }
  if (digits[0] == '+') digits.remove_prefix(1);
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), quantity.value);
  if (code == std::errc::result_out_of_range) {
    return {"a finite number (magnitude from 1e-307 to 1e308)", ""};
  }
  if (code != std::errc{} || end != digits.data() + digits.size()) return {"a number", ""};
  if (rest.empty()) return {};
  const size_t unit_start = rest.find_first_not_of(' ');
  if (unit_start == std::string_view::npos) return {};
  rest.remove_prefix(unit_start);
  if (unit_start == 0 && !is_letter(rest[0])) return {"a number", ""};
  if (unit_start == 0 && (rest[0] == 'x' || rest[0] == 'o' || rest[0] == 'b')) {
    return {"a decimal number", ""};
  }
  return parse_unit(rest, quantity);
}

bool unit_fits(const Quantity& quantity, Dimension dimension, const JointType* joint) {
  if (!quantity.has_unit || dimension == Dimension::varied) return true;
  if (!joint && depends_on_joint(dimension)) {
    return fits(quantity.unit, row_of(dimension, true)) || fits(quantity.unit, row_of(dimension, false));
  }
  return fits(quantity.unit, row_of(dimension, !joint || *joint != JointType::prismatic));
}

std::string si_unit(Dimension dimension, const JointType* joint) {
  if (!joint && depends_on_joint(dimension)) {
    return std::string(row_of(dimension, true).si) + " or " + row_of(dimension, false).si;
  }
  return row_of(dimension, !joint || *joint != JointType::prismatic).si;
}

std::string dimension_words(Dimension dimension, const JointType* joint) {
  if (!joint && depends_on_joint(dimension)) {
    return std::string(row_of(dimension, true).words) + " or " + row_of(dimension, false).words;
  }
  return row_of(dimension, !joint || *joint != JointType::prismatic).words;
}

std::string units_markdown() {
  std::string out;
  for (const UnitSymbol& symbol : kSymbols) {
    if (!out.empty()) out += ", ";
    out += "`" + std::string(symbol.symbol) + "`";
  }
  return out;
}

const char* quantity_pattern() {
  return "^[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)? *[A-Za-z][A-Za-z0-9*/^·²³]*$";
}

}  // namespace backdrive::scene
