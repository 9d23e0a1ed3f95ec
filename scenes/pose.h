#pragma once
// Poses as scene and robot files state them, in the arithmetic of one place: the same words give the same bits.
#include <array>
#include <cmath>

#include "engine/rotation.h"
#include "models/parameters.h"

namespace backdrive::scene {

/// Unit quaternion (x, y, z, w).
using Turn = std::array<double, 4>;

inline Turn product(const Turn& a, const Turn& b) {
  return {a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1], a[3] * b[1] + a[1] * b[3] + a[2] * b[0] - a[0] * b[2],
          a[3] * b[2] + a[2] * b[3] + a[0] * b[1] - a[1] * b[0], a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]};
}

/// By `angle` (rad) about a unit axis, right-handed.
inline Turn turn_about(const Numbers3& unit_axis, double angle) {
  const double s = std::sin(angle / 2);
  return {s * unit_axis[0], s * unit_axis[1], s * unit_axis[2], std::cos(angle / 2)};
}

/// Roll about x, then pitch about y, then yaw about z, all about fixed axes (rad).
inline Turn turn_of_rpy(const Numbers3& rpy) {
  return product(turn_about({0, 0, 1}, rpy[2]), product(turn_about({0, 1, 0}, rpy[1]), turn_about({1, 0, 0}, rpy[0])));
}

inline Mat3<double> matrix_of(const Turn& q) {
  return rotation_matrix(q[0], q[1], q[2], q[3]);
}

/// Where a frame is in another: a point x of the frame is at position + R x there.
struct Pose {
  Numbers3 position{0, 0, 0};  ///< m
  Turn orientation{0, 0, 0, 1};
};

/// The pose of `b`, which is in `a`, in what `a` is in.
inline Pose operator*(const Pose& a, const Pose& b) {
  const Vec3<double> p = matrix_of(a.orientation) * Vec3<double>{b.position[0], b.position[1], b.position[2]};
  return {{a.position[0] + p.x, a.position[1] + p.y, a.position[2] + p.z}, product(a.orientation, b.orientation)};
}

}  // namespace backdrive::scene
