#include "apps/history_file.h"

#include <cmath>
#include <string>

namespace backdrive::app {
namespace {

constexpr const char* kHistory = "history.csv";

void add_check(CsvWriter& csv, const ContactCheck& check) {
  if (check.done) {
    csv.cell(check.changes.made).cell(check.changes.broken);
  } else {
    csv.blank().blank();
  }
  std::isnan(check.slope_ratio) ? csv.blank() : csv.cell(check.slope_ratio);
}

}  // namespace

HistoryFile::HistoryFile(OutputFolder& folder) : folder_(folder), stream_(folder.file(kHistory)), csv_(stream_) {
  for (const char* name : {"iteration", "loss", "gradient_norm", "evaluations", "running", "world_steps_per_second",
                           "seconds", "clipped_windows"}) {
    csv_.cell(name);
  }
  csv_.end_row();
}

void HistoryFile::add(const OptimizeProgress& row) {
  csv_.cell(row.iteration).cell(row.best_loss).cell(row.gradient_norm).cell(row.evaluations).cell(row.running);
  csv_.cell(row.world_steps_per_second).cell(row.seconds).cell(static_cast<double>(row.windows.clipped));
  csv_.end_row();
  const auto now = std::chrono::steady_clock::now();
  if (now < next_flush_) return;
  stream_.flush();
  next_flush_ = now + std::chrono::seconds(1);
}

void HistoryFile::finish(const OptimizeResult& result, const std::vector<ContactCheck>& checks) {
  if (checks.empty()) return;
  std::ifstream rows = folder_.take_back(kHistory);
  std::ostream& stream = folder_.file(kHistory);
  std::string line;
  std::getline(rows, line);
  stream << line << ",contacts_made,contacts_broken,slope_ratio\n";
  std::size_t next = 0;
  for (std::int64_t row = 0; std::getline(rows, line); ++row) {
    const bool checked = next < checks.size() && result.history[next].row == row;
    stream << line << ',';
    CsvWriter csv(stream);
    add_check(csv, checked ? checks[next++] : ContactCheck{});
    csv.end_row();
  }
}

}  // namespace backdrive::app
