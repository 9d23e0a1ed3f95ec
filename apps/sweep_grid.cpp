#include "apps/sweep_grid.h"

#include "apps/options.h"

namespace backdrive::app {
namespace {

constexpr long long kMaxPoints = 10'000'000;

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

}  // namespace

long long Grid::size() const {
  long long n = 1;
  for (const Axis& axis : axes) n *= static_cast<long long>(axis.values.size());
  return n;
}

std::vector<std::string> Grid::values(long long point) const {
  std::vector<std::string> result(axes.size());
  for (size_t a = axes.size(); a-- > 0;) {
    const long long n = static_cast<long long>(axes[a].values.size());
    result[a] = axes[a].values[point % n];
    point /= n;
  }
  return result;
}

std::string Grid::label(long long point) const {
  const std::vector<std::string> set = values(point);
  std::string text;
  for (size_t a = 0; a < set.size(); ++a) text += (a == 0 ? "" : ", ") + axes[a].path + "=" + set[a];
  return text;
}

Grid make_grid(const std::vector<std::string>& set) {
  Grid grid;
  long long points = 1;
  for (const Override& one : overrides(set)) {
    for (const Axis& axis : grid.axes) {
      if (axis.path == one.path) usage_error("--set '" + one.path + "' is given twice; expected all its values in one");
    }
    grid.axes.push_back({one.path, split(one.value)});
    for (const std::string& value : grid.axes.back().values) {
      if (value.empty()) usage_error("--set '" + one.path + "=" + one.value + "': a value is empty; expected A,B,C");
    }
    points *= static_cast<long long>(grid.axes.back().values.size());
    if (points > kMaxPoints) {
      usage_error("the sweep has more than " + std::to_string(kMaxPoints) + " points; expected fewer");
    }
  }
  return grid;
}

}  // namespace backdrive::app
