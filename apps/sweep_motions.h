#pragma once
// The motions of a sweep that its report replays: all where they are few, else those of a coarser grid, and the best.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/sweep_grid.h"
#include "apps/sweep_sheet.h"

namespace backdrive::app {

/// Which values of each axis a grid of at most `most` points keeps: spread evenly, the first and the last among them.
std::vector<std::vector<long long>> coarser(const std::vector<long long>& counts, long long most);

class SweepMotions {
 public:
  explicit SweepMotions(const Grid& grid) : grid_(grid) {}

  /// Takes what is needed of a point that is done; in the order of the points.
  void note(long long index, const SweepPoint& point);
  /// Simulates them again, in float64 or as `how` says: {"motions": [...], "shapes", "bodies", "of", "best"}. A motion
  /// has its "point" and "values", and is as to_json(ShownMotion) says.
  nlohmann::json motions(const ExecutionOptions& how) const;

 private:
  bool is_chosen(long long index) const;
  void choose(const Problem& first);

  const Grid& grid_;
  std::vector<std::vector<bool>> chosen_;  ///< by axis and value
  std::map<long long, Problem> points_;
  std::optional<long long> best_;
  std::optional<Problem> best_problem_;
  double best_loss_ = 0;
};

}  // namespace backdrive::app
