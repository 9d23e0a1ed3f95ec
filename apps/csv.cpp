#include "apps/csv.h"

#include <charconv>

namespace backdrive::app {

void CsvWriter::separate() {
  if (!first_) stream_.put(',');
  first_ = false;
}

CsvWriter& CsvWriter::cell(std::string_view text) {
  separate();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    stream_ << text;
    return *this;
  }
  stream_.put('"');
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
