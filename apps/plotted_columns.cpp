#include "apps/plotted_columns.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/column_units.h"
#include "apps/result_motion.h"
#include "engine/error.h"
#include "models/parameter_list.h"
#include "scenes/scene.h"

namespace backdrive::app {
namespace {

namespace fs = std::filesystem;

/// A table of a folder.
struct PlottedTable {
  fs::path path;
  CsvTable csv;
  bool sweep;

  /// Columns with numbers that a pattern names.
  std::vector<std::size_t> matching(const std::string& pattern) const {
    std::vector<std::size_t> found;
    for (std::size_t c = 0; c < csv.columns.size(); ++c) {
      const std::string& name = csv.columns[c];
      if (name == pattern) return {c};
      if (c != first_column() && ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0 && has_number(c)) found.push_back(c);
    }
    return found;
  }
  /// What its rows are counted by; none of a sweep.
  std::size_t first_column() const { return sweep ? csv.columns.size() : 0; }
  bool has_number(std::size_t column) const {
    for (std::size_t r = 0; r < csv.rows.size(); ++r) {
      if (std::isfinite(csv.number(r, column))) return true;
    }
    return false;
  }
};

PlottedTable plotted_table(const fs::path& path) {
  CsvTable csv(path);
  // Where a point is, how it ended, and then what came of it.
  const bool sweep = !csv.columns.empty() && std::ranges::find(csv.columns, "status") != csv.columns.end();
  return {path, std::move(csv), sweep};
}

std::vector<PlottedTable> tables_of(const fs::path& result) {
  std::vector<PlottedTable> tables;
  if (fs::is_regular_file(result)) return {plotted_table(result)};
  for (const char* const name : {"trajectory.csv", "history.csv", "sweep.csv"}) {
    if (fs::exists(result / name)) tables.push_back(plotted_table(result / name));
  }
  if (tables.empty()) {
    input_error(result.string() +
                ": expected a result folder of simctl run, optimize or sweep, with trajectory.csv, history.csv or "
                "sweep.csv, or such a file");
  }
  return tables;
}

/// That a table was made of, beside it; none where it stands alone.
std::optional<Scene> scene_beside(const fs::path& table) {
  for (const char* const name : {"result.yaml", "scene.yaml"}) {
    const fs::path file = table.parent_path() / name;
    if (fs::exists(file)) return load_scene(file);
  }
  return {};
}

[[noreturn]] void no_such_column(const std::string& option, const std::string& pattern,
                                 const std::vector<const PlottedTable*>& tables) {
  std::string files;
  std::vector<std::string> known;
  for (const PlottedTable* table : tables) {
    files += (files.empty() ? "" : " or ") + table->path.string();
    known.insert(known.end(), table->csv.columns.begin(), table->csv.columns.end());
  }
  std::string words = option + " '" + pattern + "': no such column in " + files + ": expected ";
  const std::string near = nearest_name(pattern, known);
  constexpr std::size_t kMostNamed = 12;
  for (std::size_t k = 0; k < known.size() && k < kMostNamed; ++k) words += (k ? ", " : "") + known[k];
  if (known.size() > kMostNamed) words += ", ... (" + std::to_string(known.size()) + " in all)";
  usage_error(words + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

/// A number with a unit behind it, as scenes have it.
struct PlottedNumber {
  double value;
  std::string unit;
};
std::optional<PlottedNumber> number_of(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc()) return {};
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' '));
  return PlottedNumber{value, unit};
}

/// What one table shows.
class PlottedPart {
 public:
  PlottedPart(const PlottedTable& table, const ColumnUnits& units, const std::string& over)
      : table_(table), csv_(table.csv), units_(units) {
    if (table.sweep) {
      while (parameters_ < csv_.columns.size() && csv_.columns[parameters_] != "status") ++parameters_;
    }
    over_ = column_over(over);
    read_over();
  }

  PlottedColumns::Quantity quantity(std::size_t column) const {
    PlottedColumns::Quantity result{csv_.columns[column], units_(csv_.columns[column]), {}};
    for (std::size_t r = 0; r < csv_.rows.size(); ++r) {
      const std::string label = others(r);
      auto curve = std::ranges::find(result.curves, label, &FigureCurve::label);
      if (curve == result.curves.end()) curve = result.curves.insert(curve, {label, {}, {}});
      curve->x.push_back(x_[r]);
      curve->y.push_back(csv_.number(r, column));
    }
    return result;
  }
  std::string over() const { return csv_.columns[over_]; }
  const std::string& over_unit() const { return over_unit_; }

 private:
  std::size_t column_over(const std::string& name) const {
    if (name.empty()) {
      for (std::size_t c = 0; c < parameters_; ++c) {
        if (varies(c)) return c;
      }
      return 0;
    }
    const auto found = std::ranges::find(csv_.columns, name);
    if (found == csv_.columns.end()) no_such_column("--over", name, {&table_});
    return static_cast<std::size_t>(found - csv_.columns.begin());
  }
  bool varies(std::size_t column) const {
    return std::ranges::any_of(csv_.rows, [&](const auto& row) { return row[column] != csv_.rows[0][column]; });
  }
  void read_over() {
    for (std::size_t r = 0; r < csv_.rows.size(); ++r) {
      const std::string& cell = csv_.rows[r][over_];
      const std::optional<PlottedNumber> number = number_of(cell);
      if (!number && !cell.empty()) {
        input_error(table_.path.string() + ":" + std::to_string(r + 2) + ": '" + cell + "' in column '" + over() +
                    "': expected a number to draw over, or another column at --over");
      }
      x_.push_back(number ? number->value : NAN);
      if (!number) continue;
      if (r > 0 && number->unit != over_unit_) {
        input_error(table_.path.string() + ":" + std::to_string(r + 2) + ": '" + cell + "' in column '" + over() +
                    "': expected the unit of the rows before, " + (over_unit_.empty() ? "none" : over_unit_));
      }
      over_unit_ = number->unit;
    }
    if (over_unit_.empty()) over_unit_ = units_(over());
  }
  /// Where a row of a sweep stands in the parameters that it is not drawn over.
  std::string others(std::size_t row) const {
    std::string words;
    for (std::size_t c = 0; c < parameters_; ++c) {
      if (c != over_ && varies(c)) words += (words.empty() ? "" : ", ") + csv_.columns[c] + " = " + csv_.rows[row][c];
    }
    return words;
  }

  const PlottedTable& table_;
  const CsvTable& csv_;
  const ColumnUnits& units_;
  std::size_t parameters_ = 0;  ///< columns of a sweep that say which point it is
  std::size_t over_ = 0;
  std::vector<double> x_;
  std::string over_unit_;
};

}  // namespace

PlottedColumns plotted_columns(const fs::path& result, const std::vector<std::string>& patterns,
                               const std::string& over) {
  const std::vector<PlottedTable> tables = tables_of(result);
  std::vector<const PlottedTable*> all;
  for (const PlottedTable& table : tables) all.push_back(&table);
  const PlottedTable* table = nullptr;
  std::vector<std::size_t> columns;
  for (const std::string& pattern : patterns) {
    const auto has = [&](const PlottedTable* one) { return !one->matching(pattern).empty(); };
    const auto found = std::ranges::find_if(all, has);
    if (found == all.end()) no_such_column("--quantity", pattern, all);
    if (!table) table = *found;
    if (!has(table)) {
      usage_error("--quantity '" + pattern + "' is a column of " + (*found)->path.string() + ", '" + patterns[0] +
                  "' one of " + table->path.string() + ": expected columns of one table");
    }
    for (const std::size_t c : table->matching(pattern)) {
      if (std::ranges::find(columns, c) == columns.end()) columns.push_back(c);
    }
  }
  const std::optional<Scene> scene = scene_beside(table->path);
  const ColumnUnits units = scene ? ColumnUnits(scene->problem.model) : ColumnUnits();
  const PlottedPart part(*table, units, over);
  PlottedColumns picked;
  picked.over = part.over();
  picked.over_unit = part.over_unit();
  for (const std::size_t c : columns) picked.quantities.push_back(part.quantity(c));
  return picked;
}

}  // namespace backdrive::app
