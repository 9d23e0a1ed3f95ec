#include "apps/csv.h"

#include <charconv>

#include "scenes/units.h"

namespace backdrive::app {

void CsvWriter::separate() {
  if (!first_) stream_.put(',');
  first_ = false;
}

namespace {

/// Whether spreadsheets would calculate what begins so.
bool looks_like_a_formula(std::string_view text) {
  scene::Quantity quantity;
  return !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
         !scene::parse_quantity(text, quantity).expected.empty();
}

}  // namespace

CsvWriter& CsvWriter::cell(std::string_view text) {
  separate();
  const char* const mark = looks_like_a_formula(text) ? "'" : "";
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    stream_ << mark << text;
    return *this;
  }
  stream_.put('"');
  stream_ << mark;
  for (const char c : text) {
    if (c == '"') stream_.put('"');
    stream_.put(c);
  }
  stream_.put('"');
  return *this;
}

CsvWriter& CsvWriter::cell(double value) {
  separate();
  char text[40];
  const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
  stream_.write(text, end - text);
  return *this;
}

CsvWriter& CsvWriter::blank() {
  separate();
  return *this;
}

void CsvWriter::end_row() {
  stream_.put('\n');
  first_ = true;
}

}  // namespace backdrive::app
