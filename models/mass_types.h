#pragma once
// Masses as functions of parameters: what mass_properties.h and meshes/mesh_mass.h compute with, and the convention of
// their cotangents. C is double or Dual<double>.
//
// Every Sym3 cotangent is the derivative with respect to the six stored numbers: its off-diagonals are twice those of
// the gradient of the symmetric matrix, since each stands in two places (six_numbers).
#include "engine/dual.h"
#include "engine/spatial.h"
#include "models/meshes/solid_moments.h"
#include "models/model.h"

namespace backdrive {

/// kg; m from the link origin; kg·m² about the com; all in link axes.
template <class C>
struct MassProperties {
  C mass{};
  Vec3<C> com{};
  Sym3<C> inertia{};
};

/// The same body as sums over its particles about the link origin: mass, first moment m·com,
/// inertia.
template <class C>
struct MassMoments {
  C mass{};
  Vec3<C> first{};
  Sym3<C> inertia{};
};

/// A shape filled with matter: scale as GeometryType says, density in kg/m³, placed in the link's axes by position and
/// rotation.
template <class C>
struct SolidShape {
  GeometryType type;
  Vec3<C> scale;
  C density;
  Vec3<C> position;
  Mat3<C> rotation;
  SolidMoments<double> mesh{};  ///< of a mesh at scale 1
};

/// Cotangents of a SolidShape; `theta` is that of the tangent θ in rotation·exp(θ).
template <class C>
struct SolidShapeBar {
  Vec3<C> scale{};
  C density{};
  Vec3<C> position{};
  Vec3<C> theta{};
};

/// Derivative with respect to the six numbers, from the gradient of the symmetric matrix; and back.
template <class C>
BACKDRIVE_HD inline Sym3<C> six_numbers(const Sym3<C>& gradient) {
  const C two = constant<C>(2);
  return {gradient.xx, gradient.yy, gradient.zz, gradient.xy * two, gradient.xz * two, gradient.yz * two};
}
template <class C>
BACKDRIVE_HD inline Sym3<C> symmetric_gradient(const Sym3<C>& six) {
  const C half = constant<C>(0.5);
  return {six.xx, six.yy, six.zz, six.xy * half, six.xz * half, six.yz * half};
}

}  // namespace backdrive
