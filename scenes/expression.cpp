#include "scenes/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "models/parameter_list.h"
#include "scenes/units.h"

namespace backdrive::scene {
namespace {

struct Function {
  std::string_view name;
  double (*of)(double);
};

constexpr Function kFunctions[] = {
    {"abs", [](double x) { return std::abs(x); }},     {"cos", [](double x) { return std::cos(x); }},
    {"floor", [](double x) { return std::floor(x); }}, {"sin", [](double x) { return std::sin(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
};

constexpr int kDeepestBrackets = 50;

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Recursive descent. After the first error nothing more is read.
class ExpressionReader {
 public:
  ExpressionReader(std::string_view text, std::span<const NamedValue> names) : text_(text), names_(names) {}

  ExpressionResult read() {
    const std::string_view name = next_name();
    if (const NamedValue* alone = find(name); alone && !alone->is_number) {
      text_.remove_prefix(name.size());
      skip_spaces();
      if (text_.empty()) return {*alone};
      return {{}, "'" + std::string(name) + "' alone, as it is no number"};
    }
    result_.value.number = sum();
    skip_spaces();
    if (!text_.empty()) expect("an operator (+ - * / % ^) before '" + std::string(text_.substr(0, 20)) + "'");
    if (!std::isfinite(result_.value.number)) expect("an expression whose value is finite");
    return result_;
  }

 private:
  double sum() {
    double value = product();
    while (true) {
      if (take('+')) {
        value += product();
      } else if (take('-')) {
        value -= product();
      } else {
        return value;
      }
    }
  }
  double product() {
    double value = signed_power();
    while (true) {
      if (take('*')) {
        value *= signed_power();
      } else if (take('/')) {
        value /= signed_power();
      } else if (take('%')) {
        const double divisor = signed_power();
        value -= divisor * std::floor(value / divisor);
      } else {
        return value;
      }
    }
  }
  double signed_power() {
    bool minus = false;
    while (true) {
      if (take('-')) {
        minus = !minus;
      } else if (!take('+')) {
        break;
      }
    }
    const double value = power();
    return minus ? -value : value;
  }
  double power() {
    const double base = operand();
    if (!take('^')) return base;
    if (++depth_ > kDeepestBrackets) return expect(too_deep());
    const double exponent = signed_power();
    --depth_;
    return std::pow(base, exponent);
  }
  double operand() {
    if (take('(')) return bracket();
    const std::string_view name = next_name();
    if (name.empty()) return number();
    text_.remove_prefix(name.size());
    for (const Function& function : kFunctions) {
      if (function.name != name) continue;
      if (!take('(')) return expect("'(' behind " + std::string(name));
      return function.of(bracket());
    }
    if (name == "pi") return std::numbers::pi;
    const NamedValue* const known = find(name);
    if (known && known->is_number) return known->number;
    if (known) return expect("numbers beside operators ('" + std::string(name) + "' is none)");
    std::vector<std::string> all;
    for (const NamedValue& other : names_) all.push_back(other.name);
    std::string list;
    for (const std::string& other : all) list += (list.empty() ? "" : ", ") + other;
    if (result_.expected.empty()) result_.hint = nearest_name(std::string(name.substr(0, 100)), all);
    return expect("one of the names that `repeat` gives (" + list + ") instead of '" + std::string(name.substr(0, 60)) +
                  "'");
  }
  /// Behind its '('.
  double bracket() {
    if (++depth_ > kDeepestBrackets) return expect(too_deep());
    const double value = sum();
    --depth_;
    if (!take(')')) return expect("')'");
    return value;
  }
  double number() {
    skip_spaces();
    std::size_t length = 0;
    while (length < text_.size() && (is_digit(text_[length]) || text_[length] == '.')) ++length;
    if (length > 0 && length < text_.size() && (text_[length] == 'e' || text_[length] == 'E')) {
      std::size_t exponent = length + 1;
      if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
      const std::size_t digits = exponent;
      while (exponent < text_.size() && is_digit(text_[exponent])) ++exponent;
      if (exponent > digits) length = exponent;
    }
    Quantity quantity;
    if (length == 0 || !parse_quantity(text_.substr(0, length), quantity).expected.empty()) {
      return expect(text_.empty() ? "a number or a name at its end"
                                  : "a number or a name at '" + std::string(text_.substr(0, 20)) + "'");
    }
    text_.remove_prefix(length);
    return quantity.value;
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }
  bool take(char c) {
    skip_spaces();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  std::string_view next_name() {
    skip_spaces();
    std::size_t length = 0;
    if (!text_.empty() && begins_name(text_[0])) {
      while (length < text_.size() && (begins_name(text_[length]) || is_digit(text_[length]))) ++length;
    }
    return text_.substr(0, length);
  }
  const NamedValue* find(std::string_view name) const {
    // Those of inner repetitions stand behind those of outer ones, and go before them.
    for (auto known = names_.rbegin(); known != names_.rend(); ++known) {
      if (known->name == name) return &*known;
    }
    return nullptr;
  }
  double expect(const std::string& what) {
    if (result_.expected.empty()) result_.expected = what;
    text_ = {};
    return 0;
  }
  static std::string too_deep() { return "brackets at most " + std::to_string(kDeepestBrackets) + " deep"; }

  std::string_view text_;
  std::span<const NamedValue> names_;
  ExpressionResult result_;
  int depth_ = 0;
};

}  // namespace

ExpressionResult evaluate(std::string_view expression, std::span<const NamedValue> names) {
  return ExpressionReader(expression, names).read();
}

bool can_be_named(std::string_view name) {
  if (name.empty() || name.size() > 100 || !begins_name(name[0]) || name == "pi") return false;
  return std::ranges::all_of(name, [](char c) { return begins_name(c) || is_digit(c); }) &&
         std::ranges::none_of(kFunctions, [&](const Function& function) { return function.name == name; });
}

std::string number_text(double number) {
  char text[40];
  if (number == std::floor(number) && std::abs(number) < 1e15) {
    return {text, std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(number)).ptr};
  }
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace backdrive::scene
