#pragma once
#include <filesystem>

namespace backdrive::app {

/// Writes report.html into a result folder; its path. Throws Error.
std::filesystem::path write_report(const std::filesystem::path& folder);

}  // namespace backdrive::app
