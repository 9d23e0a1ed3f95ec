#pragma once
// What the kernels know of a shape that may touch others, and its cotangent: rows of Launch::constants.
#include "engine/spatial.h"

namespace backdrive {

/// Of a shape that may touch others: its frame in the axes of its link, which featherstone turns by A
/// (link_constants.h), or in the world.
template <class C>
struct ShapeConstants {
  Mat3<C> rotation;  ///< Aᵀ R
  Vec3<C> position;  ///< Aᵀ p
  Vec3<C> scale;
  C margin;
  C stiffness, width, dissipation, friction, creep, torsional_friction, rolling_friction;
};
template <class C>
constexpr int kShapeConstants = sizeof(ShapeConstants<C>) / sizeof(C);

/// Cotangent of ShapeConstants; the rotation's as a tangent on the right.
template <class C>
struct ShapeGradient {
  Vec3<C> rotation, position, scale;
  C margin;
  C stiffness, width, dissipation, friction, creep, torsional_friction, rolling_friction;
};
template <class C>
constexpr int kShapeGradients = sizeof(ShapeGradient<C>) / sizeof(C);

}  // namespace backdrive
