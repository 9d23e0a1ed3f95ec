#pragma once
// What gradcheck says: tables for people, an object for programs.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/gradcheck_files.h"

namespace backdrive::app {

/// Whether all of them passed.
bool all_passed(const std::vector<CheckedPlace>& places);
/// Rows that are used and zero at every place.
std::vector<std::string> zero_everywhere(const std::vector<CheckedPlace>& places);

nlohmann::json gradcheck_json(const Scene& scene, const std::vector<CheckedPlace>& places);

/// Tables and sums. `all`: every row at every place; else those of the first place, and of the others what failed and
/// what was zero before.
void print_gradcheck(const Scene& scene, const std::vector<CheckedPlace>& places, bool all);

}  // namespace backdrive::app
