#pragma once
// The grid of a sweep: all combinations of the values of its axes.
#include <string>
#include <vector>

namespace backdrive::app {

struct Axis {
  std::string path;
  std::vector<std::string> values;  ///< YAML text each
};

struct Grid {
  std::vector<Axis> axes;
  long long size() const;
  /// One value per axis; the last axis varies fastest.
  std::vector<std::string> values(long long point) const;
  /// "joints/hinge/damping=0.1, gravity=[0, 0, 0]"
  std::string label(long long point) const;
};

/// Splits "PATH=A,B,C" at the commas outside brackets and quotes. Throws Error (usage) for empty values, a path given
/// twice, or more than 10 million points.
Grid make_grid(const std::vector<std::string>& set);

}  // namespace backdrive::app
