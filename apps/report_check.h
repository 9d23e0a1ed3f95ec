#pragma once
// The gradient check of a result, for its report.
#include <filesystem>
#include <nlohmann/json.hpp>

namespace backdrive::app {

/// As gradcheck_json() has it, at the scene of a result folder, with "words" of what it says. Throws Error (input).
nlohmann::json report_check(const std::filesystem::path& folder, int threads, bool quiet);

}  // namespace backdrive::app
