#pragma once
// A motion that was recorded, for losses that follow it.
#include <array>
#include <vector>

namespace backdrive {

/// One quantity over time: a row for each time, linear between two.
struct MotionRecord {
  std::vector<double> times;                  ///< [row], s from the start of the run, increasing
  std::vector<std::array<double, 4>> values;  ///< [row], as LossTerm::target

  bool empty() const { return times.empty(); }
  bool operator==(const MotionRecord&) const = default;

  /// The value at a time; before the first and after the last row that row's. Of a record with rows. O(log rows).
  std::array<double, 4> at(double time) const;
  /// The same of quaternions, which stay unit: the straight line between two, on the shorter way, drawn onto the
  /// sphere.
  std::array<double, 4> orientation_at(double time) const;
};

}  // namespace backdrive
