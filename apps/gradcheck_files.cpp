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

/// Takes the rows as the text goes by: a document of it would take seventy times the room of what is no baseline.
class BaselineReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  BaselineRows rows;
  bool has_rows = false;
  std::string error;

  bool null() override { return take(NAN); }  // as JSON has what is no number
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t x) override { return take(static_cast<double>(x)); }
  bool number_unsigned(number_unsigned_t x) override { return take(static_cast<double>(x)); }
  bool number_float(number_float_t x, const string_t&) override { return take(x); }
  bool string(string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool start_object(std::size_t) override { return descend(depth_ > 1); }
  bool end_object() override { return ascend(); }
  bool start_array(std::size_t) override { return descend(depth_ != 2); }
  bool end_array() override { return ascend(); }
  bool key(string_t& name) override {
    if (depth_ == 1) in_rows_ = name == "rows";
    has_rows = has_rows || in_rows_;
    if (in_rows_ && depth_ == 2) row_ = &rows[name];
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& what) override {
    return fail(what.what());
  }

 private:
  bool fail(const std::string& why) {
    if (error.empty()) error = why;
    return false;
  }
  bool other() { return in_rows_ ? fail("rows of other than numbers") : true; }
  bool take(double number) {
    if (!in_rows_) return true;
    if (depth_ != 3) return other();
    row_->push_back(number);
    return true;
  }
  /// `elsewhere`: in rows no such thing begins here.
  bool descend(bool elsewhere) {
    constexpr int kDeepest = 8;
    if (in_rows_ && elsewhere) return other();
    return ++depth_ <= kDeepest ? true : fail("nested more than " + std::to_string(kDeepest) + " deep");
  }
  bool ascend() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  bool in_rows_ = false;
  std::vector<double>* row_ = nullptr;
};

/// Adds the row to those that changed, and takes it out of the baseline.
void compare_row(const std::string& name, const GradientCheckRow& row, double tolerance, BaselineRows& before,
                 std::vector<ChangedRow>& changed) {
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

std::vector<ChangedRow> changed_rows(BaselineRows before, const std::vector<CheckedPlace>& places, double tolerance) {
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

BaselineRows read_baseline(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) input_error(file.string() + ": expected a file of gradcheck --record that can be read");
  BaselineReader reader;
  if (nlohmann::json::sax_parse(stream, &reader) && !reader.has_rows) reader.error = "no rows";
  if (!reader.error.empty()) {
    input_error(file.string() + ": expected a file of gradcheck --record (" + reader.error + ")");
  }
  return std::move(reader.rows);
}

}  // namespace backdrive::app
