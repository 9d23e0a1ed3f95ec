#include "apps/gradcheck_files.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/console.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

}  // namespace

std::string junit_xml(const std::string& scene, const std::vector<CheckedPlace>& places) {
  std::string suites;
  int all_tests = 0, all_failures = 0;
  double seconds = 0;
  const auto counts = [](int tests, int failures, double time) {
    return "tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failures) + "\" time=\"" +
           number(time) + "\"";
  };
  for (const CheckedPlace& p : places) {
    std::string cases;
    int tests = 0, failures = 0;
    for (const GradientCheckRow& row : p.check.rows) {
      if (!row.used && row.passed) continue;
      ++tests;
      cases += "    <testcase classname=\"" + escaped(scene + " at " + p.place.name) + "\" name=\"" +
               escaped(row.name) + "\"";
      if (row.passed) {
        cases += row.undecided ? "><skipped message=\"undecided: rounding\"/></testcase>\n" : "/>\n";
        continue;
      }
      ++failures;
      cases +=
          "><failure message=\"" +
          escaped("adjoint " + exact(row.adjoint) + ", dual " + exact(row.dual) + ", differences " +
                  exact(row.differences) + (row.float32.passed ? "" : ", in float32 " + exact(row.float32.adjoint)) +
                  (row.note.empty() ? "" : ": " + row.note)) +
          "\"/></testcase>\n";
    }
    suites += "  <testsuite name=\"gradcheck " + escaped(scene + " at " + p.place.name) + "\" " +
              counts(tests, failures, p.check.seconds) + ">\n" + cases + "  </testsuite>\n";
    all_tests += tests;
    all_failures += failures;
    seconds += p.check.seconds;
  }
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " + counts(all_tests, all_failures, seconds) + ">\n" +
         suites + "</testsuites>\n";
}

std::string gradient_baseline(const std::string& scene, const nlohmann::json& made_by,
                              const std::vector<CheckedPlace>& places) {
  nlohmann::json rows = nlohmann::json::object(), loss = nlohmann::json::object();
  for (const CheckedPlace& p : places) {
    loss[p.place.name] = p.check.loss;
    for (const GradientCheckRow& row : p.check.rows) {
      if (row.used) rows[p.place.name + ": " + row.name] = row.gradient;
    }
  }
  const nlohmann::json all = {{"scene", scene}, {"made_by", made_by}, {"loss", loss}, {"rows", rows}};
  return all.dump(1) + "\n";
}

namespace {

/// Adds the row to those that changed, and takes it out of the baseline.
void compare_row(const std::string& name, const GradientCheckRow& row, double tolerance,
                 std::map<std::string, std::vector<double>>& before, std::vector<ChangedRow>& changed) {
  const auto found = before.find(name);
  if (found == before.end() || found->second.size() != row.gradient.size()) {
    changed.push_back({name, 0, row.adjoint, INFINITY, "new"});
    if (found != before.end()) before.erase(found);
    return;
  }
  double largest = 0;
  ChangedRow worst{name, 0, 0, 0, ""};
  for (std::size_t k = 0; k < row.gradient.size(); ++k) {
    largest = std::max({largest, std::abs(row.gradient[k]), std::abs(found->second[k])});
    const double change = std::abs(row.gradient[k] - found->second[k]);
    if (!(change <= worst.change)) worst = {name, found->second[k], row.gradient[k], change, ""};
  }
  if (!(worst.change <= tolerance * largest + row.dual_tolerance)) {
    worst.change /= largest;
    changed.push_back(worst);
  }
  before.erase(found);
}

}  // namespace

std::vector<ChangedRow> changed_rows(const std::filesystem::path& baseline, const std::vector<CheckedPlace>& places,
                                     double tolerance) {
  std::ifstream stream(baseline);
  if (!stream) input_error(baseline.string() + ": expected a file of gradcheck --record that can be read");
  std::map<std::string, std::vector<double>> before;
  try {
    before = nlohmann::json::parse(stream).at("rows").get<decltype(before)>();
  } catch (const nlohmann::json::exception& error) {
    input_error(baseline.string() + ": expected a file of gradcheck --record (" + error.what() + ")");
  }
  std::vector<ChangedRow> changed;
  for (const CheckedPlace& p : places) {
    for (const GradientCheckRow& row : p.check.rows) {
      if (row.used) compare_row(p.place.name + ": " + row.name, row, tolerance, before, changed);
    }
  }
  for (const auto& [name, numbers] : before) {
    changed.push_back({name, numbers.empty() ? 0 : numbers[0], 0, INFINITY, "gone"});
  }
  std::ranges::stable_sort(changed, std::greater{}, &ChangedRow::change);
  return changed;
}

}  // namespace backdrive::app
