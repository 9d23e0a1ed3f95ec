#pragma once
// What gradcheck leaves for others: a report that CI reads, and gradients to be held against later ones.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/gradcheck_places.h"

namespace backdrive::app {

/// A place with what was found there.
struct CheckedPlace {
  CheckPlace place;
  GradientCheck check;
};

/// JUnit XML: a test suite for each place, in it a test case for each row that is used.
std::string junit_xml(const std::string& scene, const std::vector<CheckedPlace>& places);

/// Every number of the gradient, as JSON: {"scene", "made_by", "loss": {place: number},
/// "rows": {"place: name": [numbers]}}.
std::string gradient_baseline(const std::string& scene, const nlohmann::json& made_by,
                              const std::vector<CheckedPlace>& places);

/// A row whose gradient is not that of the baseline.
struct ChangedRow {
  std::string name;
  double before = 0, now = 0;  ///< of the number that changed most
  double change = 0;           ///< its size, of the largest of the row
  std::string what;            ///< "new", "gone", or empty
};

/// Rows of a baseline by their names.
using BaselineRows = std::map<std::string, std::vector<double>>;
/// Those of a file of gradient_baseline(). Throws Error (input) naming a file that is none.
BaselineRows read_baseline(const std::filesystem::path& file);

/// Rows that differ from the baseline by more than `tolerance` of the row's largest number and their rounding, the most
/// changed first.
std::vector<ChangedRow> changed_rows(BaselineRows before, const std::vector<CheckedPlace>& places, double tolerance);

}  // namespace backdrive::app
