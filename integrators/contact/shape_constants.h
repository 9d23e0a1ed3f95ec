#pragma once
// What the kernels know of a shape that may touch others, and its cotangent: rows of Launch::constants.
#include "engine/spatial.h"
#include "integrators/rollout/numbers.h"
#include "models/parameter_table.h"

namespace backdrive {

#define BACKDRIVE_NUMBER_MEMBER(at, name, ...) C name;

/// Of a shape that may touch others: its frame in the axes of its link, which featherstone turns by A
/// (link_constants.h), or in the world.
template <class C>
struct ShapeConstants {
  Mat3<C> rotation;  ///< Aᵀ R
  Vec3<C> position;  ///< Aᵀ p
  Vec3<C> scale;
  C auto_mass;  ///< of the tree that carries it, kg, where its stiffness is auto, which then is 0; else 0
  C margin;
  BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_NUMBER_MEMBER, )
};
template <class C>
constexpr int kShapeConstants = kNumbers<C, ShapeConstants<C>>;

/// Cotangent of ShapeConstants; the rotation's as a tangent on the right.
template <class C>
struct ShapeGradient {
  Vec3<C> rotation, position, scale;
  C auto_mass;
  C margin;
  BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_NUMBER_MEMBER, )
};
template <class C>
constexpr int kShapeGradients = kNumbers<C, ShapeGradient<C>>;
#undef BACKDRIVE_NUMBER_MEMBER

}  // namespace backdrive
