#pragma once
// JSON of numbers and texts that may be anything.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace backdrive::app {

/// Null for what is not known or bounds nothing: JSON has no infinities.
inline nlohmann::json finite_or_null(double x) {
  return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json();
}

/// On one line; bytes that are no UTF-8 are replaced.
inline std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace backdrive::app
