#pragma once
#include <filesystem>
#include <string>

namespace backdrive::app {

/// Writes report.html into a result folder; its path. Throws Error.
std::filesystem::path write_report(const std::filesystem::path& folder);
/// Says on stdout where the report of a result folder is.
void tell_report(const std::string& folder);

}  // namespace backdrive::app
