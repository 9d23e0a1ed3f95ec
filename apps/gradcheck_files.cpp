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

std::string junit_xml(const std::string& scene, const GradientCheck& check) {
  std::string cases;
  int tests = 0, failures = 0;
  for (const GradientCheckRow& row : check.rows) {
    if (!row.used && row.passed) continue;
    ++tests;
    cases += "    <testcase classname=\"" + escaped(scene) + "\" name=\"" + escaped(row.name) + "\"";
    if (row.passed) {
      cases += "/>\n";
      continue;
    }
    ++failures;
    cases += "><failure message=\"" +
             escaped("adjoint " + exact(row.adjoint) + ", dual " + exact(row.dual) + ", differences " +
                     exact(row.differences) + (row.note.empty() ? "" : ": " + row.note)) +
             "\"/></testcase>\n";
  }
  const std::string counts = "tests=\"" + std::to_string(tests) + "\" failures=\"" + std::to_string(failures) +
                             "\" time=\"" + number(check.seconds) + "\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " + counts + ">\n  <testsuite name=\"gradcheck " +
         escaped(scene) + "\" " + counts + ">\n" + cases + "  </testsuite>\n</testsuites>\n";
}

std::string gradient_baseline(const std::string& scene, const nlohmann::json& made_by, const GradientCheck& check) {
  nlohmann::json rows = nlohmann::json::object();
  for (const GradientCheckRow& row : check.rows) {
    if (row.used) rows[row.name] = row.gradient;
  }
  const nlohmann::json all = {{"scene", scene}, {"made_by", made_by}, {"loss", check.loss}, {"rows", rows}};
  return all.dump(1) + "\n";
}

std::vector<ChangedRow> changed_rows(const std::filesystem::path& baseline, const GradientCheck& check,
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
  for (const GradientCheckRow& row : check.rows) {
    if (!row.used) continue;
    const auto found = before.find(row.name);
    if (found == before.end() || found->second.size() != row.gradient.size()) {
      changed.push_back({row.name, 0, row.adjoint, INFINITY, "new"});
      if (found != before.end()) before.erase(found);
      continue;
    }
    double largest = 0;
    ChangedRow worst{row.name, 0, 0, 0, ""};
    for (std::size_t k = 0; k < row.gradient.size(); ++k) {
      largest = std::max({largest, std::abs(row.gradient[k]), std::abs(found->second[k])});
      const double change = std::abs(row.gradient[k] - found->second[k]);
      if (!(change <= worst.change)) worst = {row.name, found->second[k], row.gradient[k], change, ""};
    }
    if (!(worst.change <= tolerance * largest + row.dual_tolerance)) {
      worst.change /= largest;
      changed.push_back(worst);
    }
    before.erase(found);
  }
  for (const auto& [name, numbers] : before) {
    changed.push_back({name, numbers.empty() ? 0 : numbers[0], 0, INFINITY, "gone"});
  }
  std::ranges::stable_sort(changed, std::greater{}, &ChangedRow::change);
  return changed;
}

}  // namespace backdrive::app
