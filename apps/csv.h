#pragma once
#include <ostream>
#include <string>
#include <string_view>

namespace backdrive::app {

/// Writes CSV: comma, newline, text in quotes where it needs them, numbers that read back to the same bits. Text that
/// spreadsheets would take for a formula (it begins with =, +, - or @ and is no quantity) gets a ' before it.
class CsvWriter {
 public:
  explicit CsvWriter(std::ostream& stream) : stream_(stream) {}
  CsvWriter& cell(std::string_view text);
  CsvWriter& cell(double value);
  /// Nothing between two commas.
  CsvWriter& blank();
  void end_row();

 private:
  void separate();
  std::ostream& stream_;
  bool first_ = true;
};

}  // namespace backdrive::app
