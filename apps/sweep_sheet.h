#pragma once
// The table of a sweep: one row a point.
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/csv.h"
#include "apps/sweep_batch.h"
#include "apps/sweep_grid.h"

namespace backdrive::app {

struct SweepPoint {
  Problem problem;
  PointResult result;
  bool done = false;
  // When it was optimised:
  int iterations = 0;
  StopReason stopped_by = StopReason::none;
  bool reached_goal = true;
  std::vector<double> variables;  ///< best values of those that are one number

  bool finite() const;
  /// "ok", or what became non-finite where.
  std::string status() const;
};

/// Makes the heading and the rows: arrays of text, numbers and nulls (nothing to say).
class SweepSheet {
 public:
  using Sink = std::function<void(const nlohmann::json& row)>;
  SweepSheet(const Grid& grid, bool optimised, Sink sink)
      : grid_(grid), optimised_(optimised), sink_(std::move(sink)) {}

  /// Throws Error (input) when the point has other columns than the first one.
  void add(long long index, const SweepPoint& point);

 private:
  nlohmann::json heading(const Problem& problem) const;

  const Grid& grid_;
  bool optimised_;
  Sink sink_;
  nlohmann::json heading_;
};

void write_row(CsvWriter& csv, const nlohmann::json& row);

}  // namespace backdrive::app
