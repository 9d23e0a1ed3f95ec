#pragma once
// What the pair functions work on: a shape's pose and scale, the points of contact, and the cotangents of both.
//
// All pair functions are smooth where the features (vertex, edge, face) that are nearest stay the same, and their
// adjoints differentiate gap, point and normal in full. Which features are nearest is a choice, made by masks, that no
// gradient goes through.
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
#include <utility>

#include "engine/real.h"
#include "engine/spatial.h"
#include "integrators/contact/geometry.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Columns are the shape's axes in the world; the origin is measured from the frame's origin O.
template <class Real>
struct ShapePose {
  Mat3<Real> axes;
  Vec3<Real> origin;
};
template <class Real>
struct Shape {
  ShapePose<Real> pose;
  Vec3<Real> scale;
};
/// With what all worlds share of it.
template <class Real>
struct GeometricShape {
  const Geometry<ScalarOf<Real>>& geometry;
  const Shape<Real>& shape;
};
/// `pose` is the cotangent of the motion [θ; t] that moves a material point x of the shape by θ × x + t.
template <class Real>
struct ShapeBar {
  Spatial<Real> pose;
  Vec3<Real> scale;
};

/// Also the cotangents of one, member by member.
template <class Real>
struct ContactPoint {
  Real gap;           ///< negative: depth of penetration
  Vec3<Real> point;   ///< from O, half-way between the witness points on the two surfaces
  Vec3<Real> normal;  ///< unit, from shape B towards shape A
};

/// Gap of a point that has nothing to say. Its normal is +z and its derivatives are zero.
constexpr double kFarGap = 1e6;

template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> far_point() {
  const Real o = constant<Real>(0);
  return {constant<Real>(kFarGap), {o, o, o}, {o, o, constant<Real>(1)}};
}

// ---- masks ----------------------------------------------------------------------------------------------------------

/// What comparisons are made with: the number itself, a dual's innermost value.
template <class Real>
using ValueOf = std::decay_t<decltype(value_of(std::declval<const Real&>()))>;
template <class Real>
using MaskOf = std::decay_t<decltype(value_of(std::declval<const Real&>()) < value_of(std::declval<const Real&>()))>;

template <class Real>
BACKDRIVE_INLINE MaskOf<Real> less(const Real& a, const Real& b) {
  return value_of(a) < value_of(b);
}
template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> choose(const MaskOf<Real>& mask, const ContactPoint<Real>& yes,
                                           const ContactPoint<Real>& no) {
  return {select(mask, yes.gap, no.gap), choose(mask, yes.point, no.point), choose(mask, yes.normal, no.normal)};
}
/// Of two masks.
template <class Mask>
BACKDRIVE_INLINE Mask chosen(const Mask& mask, const Mask& yes, const Mask& no) {
  return (mask && yes) || (!mask && no);
}
/// x where the mask is set, else 0.
template <class Real>
BACKDRIVE_INLINE Real only(const MaskOf<Real>& mask, const Real& x) {
  return select(mask, x, constant<Real>(0));
}
template <class Real>
BACKDRIVE_INLINE Spatial<Real> only(const MaskOf<Real>& mask, const Spatial<Real>& x) {
  return choose(mask, x, zero6<Real>());
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> only(const MaskOf<Real>& mask, const Vec3<Real>& x) {
  return {only(mask, x.x), only(mask, x.y), only(mask, x.z)};
}
template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> only(const MaskOf<Real>& mask, const ContactPoint<Real>& x) {
  return {only(mask, x.gap), only(mask, x.point), only(mask, x.normal)};
}

// ---- vectors --------------------------------------------------------------------------------------------------------

template <class A, class B>
BACKDRIVE_INLINE auto times(const Vec3<A>& a, const Vec3<B>& b) -> Vec3<decltype(a.x * b.x)> {
  return {a.x * b.x, a.y * b.y, a.z * b.z};
}

/// Squared lengths below this count as zero: nothing divides by them.
constexpr double kTinySquare = 1e-30;

/// |v|, with a floor that keeps what is divided by it finite.
template <class Real>
BACKDRIVE_INLINE Real length(const Vec3<Real>& v) {
  return square_root(maximum(dot(v, v), constant<Real>(kTinySquare)));
}

/// v/|v|; +z where v vanishes.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> direction(const Vec3<Real>& v) {
  const Real square = dot(v, v), o = constant<Real>(0);
  const MaskOf<Real> vanishes = less(square, constant<Real>(kTinySquare));
  const Real inverse = constant<Real>(1) / square_root(maximum(square, constant<Real>(kTinySquare)));
  return choose(vanishes, Vec3<Real>{o, o, constant<Real>(1)}, v * inverse);
}
/// n = v/|v|:  v̄ += (n̄ − n (n·n̄)) / |v|
template <class Real>
BACKDRIVE_INLINE void adj_direction(const Vec3<Real>& v, const Vec3<Real>& n, const Vec3<Real>& n_bar,
                                    Vec3<Real>& v_bar) {
  const Real square = dot(v, v);
  const MaskOf<Real> there = !less(square, constant<Real>(kTinySquare));
  const Real inverse = constant<Real>(1) / square_root(maximum(square, constant<Real>(kTinySquare)));
  v_bar += only(there, (n_bar - n * dot(n, n_bar)) * inverse);
}

// ---- points and directions that a shape carries ---------------------------------------------------------------------

/// x = o + R q
template <class Real>
BACKDRIVE_INLINE Vec3<Real> carried_point(const ShapePose<Real>& pose, const Vec3<Real>& q) {
  return plus_times(pose.origin, pose.axes, q);
}
template <class Real>
BACKDRIVE_INLINE void adj_carried_point(const ShapePose<Real>& pose, const Vec3<Real>& x, const Vec3<Real>& x_bar,
                                        Spatial<Real>& pose_bar, Vec3<Real>& q_bar) {
  pose_bar.ang += cross(x, x_bar);
  pose_bar.lin += x_bar;
  q_bar += transposed_times(pose.axes, x_bar);
}

/// u = R q
template <class Real>
BACKDRIVE_INLINE void adj_carried_direction(const ShapePose<Real>& pose, const Vec3<Real>& u, const Vec3<Real>& u_bar,
                                            Spatial<Real>& pose_bar, Vec3<Real>& q_bar) {
  pose_bar.ang += cross(u, u_bar);
  q_bar += transposed_times(pose.axes, u_bar);
}

/// m = Rᵀ n with n given in the world
template <class Real>
BACKDRIVE_INLINE void adj_local_direction(const ShapePose<Real>& pose, const Vec3<Real>& n, const Vec3<Real>& m_bar,
                                          Spatial<Real>& pose_bar, Vec3<Real>& n_bar) {
  const Vec3<Real> turned = pose.axes * m_bar;
  n_bar += turned;
  pose_bar.ang -= cross(n, turned);
}

/// q = Rᵀ (x − o) with x given in the world
template <class Real>
BACKDRIVE_INLINE Vec3<Real> local_point(const ShapePose<Real>& pose, const Vec3<Real>& x) {
  return transposed_times(pose.axes, x - pose.origin);
}
template <class Real>
BACKDRIVE_INLINE void adj_local_point(const ShapePose<Real>& pose, const Vec3<Real>& x, const Vec3<Real>& q_bar,
                                      Spatial<Real>& pose_bar, Vec3<Real>& x_bar) {
  const Vec3<Real> turned = pose.axes * q_bar;
  x_bar += turned;
  pose_bar.ang -= cross(x, turned);
  pose_bar.lin -= turned;
}

// ---- rounded polyhedra ----------------------------------------------------------------------------------------------

/// A point, segment or polyhedron with all points within `radius` of it: its points are extents ∘ ξ, where ξ (unit
/// coordinates) is the same in all worlds.
template <class Real>
struct Core {
  ShapePose<Real> pose;
  Vec3<Real> extents;
  Real radius;
};
/// With the mesh whose vertices ξ are.
template <class Real>
struct MeshCore {
  const Core<Real>& core;
  const MeshView<ScalarOf<Real>>& mesh;
};
template <class Real>
struct CoreBar {
  Spatial<Real> pose;
  Vec3<Real> extents;
  Real radius;
};

template <class Real>
BACKDRIVE_INLINE CoreBar<Real> zero_core_bar() {
  return {zero6<Real>(), zero3<Real>(), constant<Real>(0)};
}

template <ShapeKind kind, class Real>
BACKDRIVE_INLINE Core<Real> core_of(const Shape<Real>& s) {
  const Real o = constant<Real>(0);
  if constexpr (kind == ShapeKind::sphere) {
    return {s.pose, {o, o, o}, s.scale.x};
  } else if constexpr (kind == ShapeKind::capsule) {
    return {s.pose, {o, o, s.scale.y}, s.scale.x};
  } else {
    return {s.pose, s.scale, o};
  }
}
template <ShapeKind kind, class Real>
BACKDRIVE_INLINE void adj_core_of(const CoreBar<Real>& core_bar, ShapeBar<Real>& s_bar) {
  s_bar.pose += core_bar.pose;
  if constexpr (kind == ShapeKind::sphere) {
    s_bar.scale.x += core_bar.radius;
  } else if constexpr (kind == ShapeKind::capsule) {
    s_bar.scale.x += core_bar.radius;
    s_bar.scale.y += core_bar.extents.z;
  } else {
    s_bar.scale += core_bar.extents;
  }
}

/// o + R (extents ∘ ξ)
template <class Real>
BACKDRIVE_INLINE Vec3<Real> core_point(const Core<Real>& c, const Vec3<Real>& xi) {
  return carried_point(c.pose, times(c.extents, xi));
}
template <class Real>
BACKDRIVE_INLINE void adj_core_point(const Core<Real>& c, const Vec3<Real>& xi, const Vec3<Real>& x,
                                     const Vec3<Real>& x_bar, CoreBar<Real>& c_bar) {
  Vec3<Real> q_bar = zero3<Real>();
  adj_carried_point(c.pose, x, x_bar, c_bar.pose, q_bar);
  c_bar.extents += times(xi, q_bar);
}
/// R (extents ∘ ξ)
template <class Real>
BACKDRIVE_INLINE Vec3<Real> core_direction(const Core<Real>& c, const Vec3<Real>& xi) {
  return c.pose.axes * times(c.extents, xi);
}
template <class Real>
BACKDRIVE_INLINE void adj_core_direction(const Core<Real>& c, const Vec3<Real>& xi, const Vec3<Real>& u,
                                         const Vec3<Real>& u_bar, CoreBar<Real>& c_bar) {
  Vec3<Real> q_bar = zero3<Real>();
  adj_carried_direction(c.pose, u, u_bar, c_bar.pose, q_bar);
  c_bar.extents += times(xi, q_bar);
}

/// Unit coordinates of a mesh's vertex.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> vertex(const MeshView<ScalarOf<Real>>& mesh, int i) {
  const ScalarOf<Real>* const v = mesh.vertices + 3 * i;
  return {Real(v[0]), Real(v[1]), Real(v[2])};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
