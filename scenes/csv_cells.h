#pragma once
// Cells of CSV text (RFC 4180).
#include <algorithm>
#include <string>
#include <string_view>

namespace backdrive::scene {

/// A name without the ' before it that keeps spreadsheets from taking it for a formula (apps/csv.h).
inline std::string_view unmarked(std::string_view cell) {
  const bool marked =
      cell.size() > 1 && cell[0] == '\'' && std::string_view("=+-@\t\r").find(cell[1]) != std::string_view::npos;
  return marked ? cell.substr(1) : cell;
}

/// The next cell of a row, without the spaces around it and unmarked(); `row` becomes what follows, data() null at its
/// end. `storage` holds cells that stood in quotes.
inline std::string_view next_cell(std::string_view& row, std::string& storage) {
  constexpr std::string_view kSpaces = " \t\r";
  const auto skip_to = [&](std::size_t comma) {
    row = comma == std::string_view::npos ? std::string_view() : row.substr(comma + 1);
  };
  const std::size_t first = row.find_first_not_of(kSpaces);
  if (first != std::string_view::npos && row[first] == '"') {
    storage.clear();
    std::size_t i = first + 1;
    for (; i < row.size(); ++i) {
      if (row[i] == '"' && (i + 1 == row.size() || row[i + 1] != '"')) break;
      if (row[i] == '"') ++i;
      storage += row[i];
    }
    skip_to(row.find(',', std::min(i, row.size())));
    return unmarked(storage);
  }
  const std::size_t comma = row.find(',');
  std::string_view cell = row.substr(0, comma);
  skip_to(comma);
  const std::size_t begin = cell.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return unmarked(cell.substr(begin, cell.find_last_not_of(kSpaces) - begin + 1));
}

}  // namespace backdrive::scene
