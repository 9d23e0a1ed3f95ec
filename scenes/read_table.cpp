// Controls from a CSV file inside the scene's folder.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split_row(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  std::string cell;
  while (std::getline(stream, cell, ',')) {
    const size_t begin = cell.find_first_not_of(" \t\r");
    const size_t end = cell.find_last_not_of(" \t\r");
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  if (!line.empty() && line.back() == ',') cells.emplace_back();
  return cells;
}

/// A cell is named by its row and its number among the row's cells.
[[noreturn]] void refuse_cell(const Sources& sources, int row, size_t column, const std::string& value,
                              const std::string& expected, const std::string& hint = {}) {
  fail(sources, {0, row, static_cast<int>(column) + 1}, "", "value '" + excerpt(value) + "'", expected, hint);
}

void check_times(const std::vector<double>& times, const Sources& sources) {
  const size_t n = times.size();
  if (n < 2) return;
  const double step = (times.back() - times.front()) / static_cast<double>(n - 1);
  for (size_t i = 0; i < n; ++i) {
    const double expected = times.front() + step * static_cast<double>(i);
    if (!(step > 0) || std::abs(times[i] - expected) > 1e-3 * step) {
      refuse_cell(sources, static_cast<int>(i) + 2, 0, std::to_string(times[i]), "times that are evenly spaced");
    }
  }
}

}  // namespace

fs::path resolve_inside(const fs::path& directory, const View& file, std::size_t most_bytes) {
  const fs::path relative(file.text());
  const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (file.text().empty() || relative.is_absolute() || climbs || file.text().size() > 4000) {
    file.refuse("a file inside the scene's folder: a relative path without '..'");
  }
  std::error_code code;
  const fs::path folder = fs::canonical(directory.empty() ? fs::path(".") : directory, code);
  if (code) file.refuse("a scene whose folder exists (" + directory.string() + ")");
  const fs::path path = fs::canonical(folder / relative, code);
  if (code) file.refuse("an existing file in " + folder.string());
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (end != folder.end()) file.refuse("a file inside the scene's folder (the path leaves it through a link)");
  if (!fs::is_regular_file(path, code)) file.refuse("a regular file");
  if (fs::file_size(path, code) > most_bytes || code) {
    file.refuse("a file of at most " + std::to_string(most_bytes >> 20) + " MiB");
  }
  return path;
}

std::vector<double> ProblemReader::read_column(const View& file, const std::string& column, Dimension dimension,
                                               const JointType* joint) const {
  const fs::path path = resolve_inside(directory_, file, kMaxBytes);
  std::ifstream stream(path);
  if (!stream) file.refuse("a file that can be read");
  const Sources sources{(directory_ / file.text()).string(), {}};
  Schema any;
  any.kind = SchemaKind::number;
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> header = split_row(line);
  const auto found = std::find(header.begin(), header.end(), column);
  if (found == header.end()) {
    refuse_cell(sources, 1, 0, line, "a column '" + column + "'", nearest_name(column, header));
  }
  const size_t index = found - header.begin();
  const bool has_time = header[0] == "time";
  std::vector<double> values, times;
  for (int row = 2; std::getline(stream, line); ++row) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::vector<std::string> cells = split_row(line);
    if (cells.size() != header.size()) {
      refuse_cell(sources, row, cells.size() - 1, line, std::to_string(header.size()) + " cells, as in the header");
    }
    const auto read = [&](size_t i, Dimension what) {
      const NodePtr cell = make_scalar(cells[i], {0, row, static_cast<int>(i) + 1});
      return read_quantity(*cell, any, what, joint, sources, column);
    };
    values.push_back(read(index, dimension));
    if (has_time) times.push_back(read(0, Dimension::time));
  }
  if (values.empty()) refuse_cell(sources, 2, index, "", "at least one row");
  check_times(times, sources);
  return values;
}

}  // namespace backdrive::scene
