#pragma once
// history.csv of an optimisation, written as it goes, so that memory does not grow with its iterations.
#include <chrono>
#include <vector>

#include "apps/atomic_output.h"
#include "apps/contact_check.h"
#include "apps/csv.h"
#include "autodiff/optimize/optimize.h"

namespace backdrive::app {

class HistoryFile {
 public:
  explicit HistoryFile(OutputFolder& folder);

  /// A row; on the disk within a second or two.
  void add(const OptimizeProgress& row);
  /// With contact, puts beside the rows how many contacts came and went, and how the loss's slope compares with its
  /// gradient. `checks`: of the rows that the result has (check_contacts).
  void finish(const OptimizeResult& result, const std::vector<ContactCheck>& checks);

 private:
  OutputFolder& folder_;
  std::ostream& stream_;
  CsvWriter csv_;
  std::chrono::steady_clock::time_point next_flush_;
};

}  // namespace backdrive::app
