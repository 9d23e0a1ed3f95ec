#include "apps/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "apps/result_motion.h"
#include "apps/sweep_motions.h"
#include "engine/error.h"
#include "scenes/csv_cells.h"
#include "scenes/units.h"

namespace backdrive::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMostNumbers = 400'000;
constexpr std::size_t kMostStatuses = 2000;

/// The axes of a grid as its table has them: of each the values in the order in which they come.
class SweepTable {
 public:
  explicit SweepTable(const fs::path& file) : table_(file), status_(table_.column("status")) {
    for (std::size_t a = 0; a < status_; ++a) {
      std::map<std::string, long long>& places = places_.emplace_back();
      std::vector<std::string>& values = values_.emplace_back();
      for (const auto& row : table_.rows) {
        const std::string value(scene::unmarked(row[a]));
        if (places.emplace(value, static_cast<long long>(values.size())).second) values.push_back(value);
      }
      counts_.push_back(static_cast<long long>(values.size()));
    }
    find_columns();
    long long points = 1;
    for (const long long count : counts_) points *= count;
    const std::size_t most = kMostNumbers / std::max<std::size_t>(1, columns_.size());
    kept_ = coarser(counts_, std::max<long long>(1, static_cast<long long>(most)));
    coarse_ = points > static_cast<long long>(most);
  }

  Json json() const {
    Json axes = Json::array(), names = Json::array(), status = Json::object();
    for (std::size_t a = 0; a < status_; ++a) axes.push_back(axis_json(a));
    for (const std::size_t c : columns_) names.push_back(table_.columns[c]);
    std::size_t points = 1;
    for (const auto& kept : kept_) points *= kept.size();
    std::vector<float> numbers(points * columns_.size(), std::nanf(""));
    for (std::size_t r = 0; r < table_.rows.size(); ++r) {
      const long long point = place_of(r);
      if (point < 0) continue;
      const auto first = static_cast<std::size_t>(point) * columns_.size();
      for (std::size_t c = 0; c < columns_.size(); ++c) numbers[first + c] = static_cast<float>(cell(r, columns_[c]));
      const std::string& words = table_.rows[r][status_];
      if (words != "ok" && status.size() < kMostStatuses) status[std::to_string(point)] = words;
    }
    return {{"axes", axes}, {"columns", names}, {"table", base64(numbers)}, {"status", status}, {"coarse", coarse_}};
  }

  /// Where a point with these values is in the table of the page; −1: nowhere.
  long long place_of(const std::vector<std::string>& values) const {
    long long point = 0;
    for (std::size_t a = 0; a < status_; ++a) {
      const auto place = a < values.size() ? places_[a].find(values[a]) : places_[a].end();
      if (place == places_[a].end()) return -1;
      const auto kept = std::ranges::lower_bound(kept_[a], place->second);
      if (kept == kept_[a].end() || *kept != place->second) return -1;
      point = point * static_cast<long long>(kept_[a].size()) + (kept - kept_[a].begin());
    }
    return point;
  }

 private:
  long long place_of(std::size_t row) const {
    std::vector<std::string> values;
    for (std::size_t a = 0; a < status_; ++a) values.emplace_back(scene::unmarked(table_.rows[row][a]));
    return place_of(values);
  }

  /// Those that hold numbers, or truths as 0 and 1.
  void find_columns() {
    for (std::size_t c = status_ + 1; c < table_.columns.size(); ++c) {
      bool any = false;
      for (std::size_t r = 0; r < table_.rows.size() && !any; ++r) any = !std::isnan(cell(r, c));
      if (any) columns_.push_back(c);
    }
  }
  double cell(std::size_t row, std::size_t column) const {
    const std::string& text = table_.rows[row][column];
    return text == "true" ? 1 : text == "false" ? 0 : table_.number(row, column);
  }

  Json axis_json(std::size_t a) const {
    Json values = Json::array(), numbers = Json::array();
    for (const long long k : kept_[a]) {
      const std::string& text = values_[a][static_cast<std::size_t>(k)];
      scene::Quantity quantity;
      values.push_back(text);
      if (scene::parse_quantity(text, quantity).expected.empty()) numbers.push_back(quantity.value);
    }
    Json axis{{"path", table_.columns[a]}, {"values", values}};
    if (numbers.size() == values.size()) axis["numbers"] = numbers;
    return axis;
  }

  CsvTable table_;
  std::size_t status_;  ///< its column: before it the axes, after it what came of them
  std::vector<std::map<std::string, long long>> places_;
  std::vector<std::vector<std::string>> values_;
  std::vector<long long> counts_;
  std::vector<std::size_t> columns_;
  std::vector<std::vector<long long>> kept_;
  bool coarse_ = false;
};

}  // namespace

void add_sweep(const fs::path& folder, Json& data) {
  const SweepTable table(folder / "sweep.csv");
  data["sweep"] = table.json();
  data["motions"] = Json::array();
  const fs::path file = folder / "motions.json";
  if (!fs::exists(file)) return;
  try {
    Json all = Json::parse(text_of_file(file));
    const long long best = all.value("best", -1LL);
    for (Json& motion : all.at("motions")) {
      const bool is_best = motion.at("point").get<long long>() == best;
      motion["point"] = table.place_of(motion.at("values").get<std::vector<std::string>>());
      motion["best"] = is_best;
      data["motions"].push_back(std::move(motion));
    }
    data["sweep"]["of"] = all.at("of");
    for (const char* const key : {"shapes", "bodies"}) {
      if (all.contains(key)) data[key] = all[key];
    }
  } catch (const Json::exception& error) {
    input_error(file.string() + ": expected a file that simctl sweep --report wrote (" + error.what() + ")");
  }
}

}  // namespace backdrive::app
