#include "apps/table.h"

#include <algorithm>

#include "apps/console.h"

namespace backdrive::app {
namespace {

/// Characters seen: colour codes and the continuation bytes of UTF-8 take no room.
size_t width(const std::string& text) {
  size_t n = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size() - 1);
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++n;
    }
  }
  return n;
}

}  // namespace

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string out;
  const auto line = [&](const auto& cell_of, bool heading) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string& cell = cell_of(c);
      const std::string padding(widths[c] - width(cell), ' ');
      const std::string shown = heading ? bold(cell) : cell;
      if (c > 0) out += "  ";
      if (columns_[c].align == Align::right) {
        out += padding + shown;
      } else {
        out += shown;
        if (c + 1 < columns_.size()) out += padding;
      }
    }
    out += '\n';
  };
  line([&](size_t c) -> const std::string& { return columns_[c].title; }, true);
  for (const auto& row : rows_) line([&](size_t c) -> const std::string& { return row[c]; }, false);
  return out;
}

}  // namespace backdrive::app
