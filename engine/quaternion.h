#pragma once
// Rotation matrices as quaternions, where files and tables ask for them.
#include <algorithm>
#include <array>
#include <cmath>

namespace backdrive {

/// Unit quaternion (x, y, z, w) of a rotation, column by column: of the four ways the one without cancellation
/// (Shepperd, 1978).
inline std::array<double, 4> quaternion_of(const std::array<double, 9>& R) {
  const double trace = R[0] + R[4] + R[8];
  const double t[4] = {R[0] - R[4] - R[8], R[4] - R[0] - R[8], R[8] - R[0] - R[4], trace};
  const int k = static_cast<int>(std::max_element(t, t + 4) - t);
  const double s = std::sqrt(1 + t[k]) * 2;
  const double xy = R[1] + R[3], xz = R[2] + R[6], yz = R[5] + R[7], x = R[5] - R[7], y = R[6] - R[2], z = R[1] - R[3];
  if (k == 0) return {s / 4, xy / s, xz / s, x / s};
  if (k == 1) return {xy / s, s / 4, yz / s, y / s};
  if (k == 2) return {xz / s, yz / s, s / 4, z / s};
  return {x / s, y / s, z / s, s / 4};
}

}  // namespace backdrive
