#pragma once
// What tests of bodies in contact throw, and how they run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/tape/rollout.h"
#include "models/builder.h"

namespace backdrive::test::contact_bodies {

constexpr double kRate = 240;  ///< steps per second

template <class T>
Trajectory<T> simulate(const Model& model, const State<T>& state, double seconds, bool keep_states = false,
                       double rate = kRate) {
  RolloutOptions options;
  options.time_step = 1 / rate;
  options.steps = static_cast<int>(std::lround(seconds * rate));
  options.keep_states = keep_states;
  const Trajectory<T> t = rollout<T>(model, state, {}, options);
  EXPECT_FALSE(t.any_stopped());
  return t;
}

inline BodyOptions box_of(double mass, const Numbers3& h) {
  const auto about = [&](int j, int k) { return mass / 3 * (h[j] * h[j] + h[k] * h[k]); };
  return {mass, {0, 0, 0}, {about(1, 2), about(0, 2), about(0, 1), 0, 0, 0}};
}
inline BodyOptions ball_of(double mass, double radius) {
  const double inertia = 0.4 * mass * radius * radius;
  return {mass, {0, 0, 0}, {inertia, inertia, inertia, 0, 0, 0}};
}
inline ShapeOptions shape(GeometryType type, const Numbers3& scale = {0, 0, 0}) {
  ShapeOptions options;
  options.type = type;
  options.scale = scale;
  options.stiffness = 6e4;  // 3e4 of a pair: k/m = 3e3 of the box
  return options;
}

/// Of rows first to first + count of a world.
template <class T>
double largest(const Buffer<T>& buffer, int first, int count, int world = 0) {
  double result = 0;
  for (int r = first; r < first + count; ++r) result = std::max(result, std::abs(double(buffer(r, world))));
  return result;
}
inline double norm(const Vec3<double>& v) {
  return std::sqrt(dot(v, v));
}

}  // namespace backdrive::test::contact_bodies
