#pragma once
// Poses as scene and robot files state them, in the arithmetic of one place: the same words give the same bits.
#include <array>
#include <cmath>
#include <optional>
#include <span>

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

/// Of a quaternion of any length as (w, x, y, z), which most robot files have; none of one that is zero.
inline std::optional<Turn> turn_of_wxyz(std::span<const double, 4> q) {
  const double length = std::hypot(std::hypot(q[0], q[1]), std::hypot(q[2], q[3]));
  if (!(length > 1e-12)) return {};
  return Turn{q[1] / length, q[2] / length, q[3] / length, q[0] / length};
}

inline Mat3<double> matrix_of(const Turn& q) {
  return rotation_matrix(q[0], q[1], q[2], q[3]);
}

inline Numbers3 turned(const Turn& q, const Numbers3& x) {
  const Vec3<double> y = matrix_of(q) * Vec3<double>{x[0], x[1], x[2]};
  return {y.x, y.y, y.z};
}

/// Where a frame is in another: a point x of the frame is at position + R x there.
struct Pose {
  Numbers3 position{0, 0, 0};  ///< m
  Turn orientation{0, 0, 0, 1};
};

/// The pose of `b`, which is in `a`, in what `a` is in.
inline Pose operator*(const Pose& a, const Pose& b) {
  const Numbers3 p = turned(a.orientation, b.position);
  return {{a.position[0] + p[0], a.position[1] + p[1], a.position[2] + p[2]}, product(a.orientation, b.orientation)};
}

}  // namespace backdrive::scene
