#include "autodiff/problem/motion_record.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace backdrive {
namespace {

/// Two rows and the share of the second.
struct Between {
  std::size_t first, second;
  double share;
};

Between rows_at(const std::vector<double>& times, double time) {
  const auto after = std::ranges::upper_bound(times, time);
  if (after == times.begin()) return {0, 0, 0};
  const auto second = static_cast<std::size_t>(after - times.begin());
  const std::size_t first = second - 1;
  if (after == times.end()) return {first, first, 0};
  return {first, second, (time - times[first]) / (times[second] - times[first])};
}

std::array<double, 4> blend(const std::array<double, 4>& a, const std::array<double, 4>& b, double share) {
  std::array<double, 4> result;
  for (std::size_t k = 0; k < 4; ++k) result[k] = (1 - share) * a[k] + share * b[k];
  return result;
}

}  // namespace

std::array<double, 4> MotionRecord::at(double time) const {
  const Between rows = rows_at(times, time);
  return blend(values[rows.first], values[rows.second], rows.share);
}

std::array<double, 4> MotionRecord::orientation_at(double time) const {
  const Between rows = rows_at(times, time);
  const std::array<double, 4>& a = values[rows.first];
  std::array<double, 4> b = values[rows.second];
  // q and −q are the same turn.
  if (a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] < 0) {
    for (double& x : b) x = -x;
  }
  std::array<double, 4> q = blend(a, b, rows.share);
  const double norm = std::hypot(std::hypot(q[0], q[1]), std::hypot(q[2], q[3]));
  for (double& x : q) x /= norm;
  return q;
}

}  // namespace backdrive
