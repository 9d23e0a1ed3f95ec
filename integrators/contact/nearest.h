#pragma once
// The feature of a triangulated surface (shape B) that is nearest to a point: faces and edges are offered one after the
// other, all in B's axes, and a mask keeps the best.
#include "integrators/contact/round_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Real>
struct Triangle {
  Vec3<Real> v[3];  ///< unit coordinates, counter-clockwise from outside
};

template <class Real>
struct NearestFeature {
  Real cost;  ///< squared distance, plus what the caller adds
  FeaturePair<Real> feature;
};

/// Point `xi` of A with a face of B.
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> face_feature(const Vec3<Real>& xi, const Triangle<Real>& t) {
  const Real zero = constant<Real>(0);
  FeaturePair<Real> f = vertex_pair(xi, t.v[0]);
  f.d[0] = {t.v[1] - t.v[0], zero, MaskOf<Real>(true), zero, zero};
  f.d[1] = {t.v[2] - t.v[0], zero, MaskOf<Real>(true), zero, zero};
  f.crossed = MaskOf<Real>(true);
  return f;
}
/// A face of A with point `xi` of B.
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> face_feature_of_a(const Triangle<Real>& t, const Vec3<Real>& xi) {
  FeaturePair<Real> f = face_feature(xi, t);
  f.b = f.a;
  f.a = t.v[0];
  f.d[0].of_a = f.d[1].of_a = constant<Real>(1);
  f.sign = constant<Real>(-1);  // from B to A is into A's face
  return f;
}

template <class Real>
struct FacePlane {
  Vec3<Real> corner, u, v, area, normal;  ///< scaled; u, v the sides at the corner, area = u × v
};
template <class Real>
BACKDRIVE_INLINE FacePlane<Real> face_plane(const Vec3<Real>& extents, const Triangle<Real>& t) {
  FacePlane<Real> p;
  p.corner = times(extents, t.v[0]);
  p.u = times(extents, t.v[1] - t.v[0]);
  p.v = times(extents, t.v[2] - t.v[0]);
  p.area = cross(p.u, p.v);
  p.normal = direction(p.area);
  return p;
}

/// How far, in parts of the face, a foot may lie outside and still count as on it: else rounding could lose a foot on
/// the line between two coplanar triangles, which is no edge.
constexpr double kFaceSlack = 1e-5;

/// The face's interior, for a point q in front of it. Returns the distance from the face's plane.
template <class Real>
BACKDRIVE_INLINE Real offer_face(const Vec3<Real>& q, const Vec3<Real>& xi, const Vec3<Real>& extents,
                                 const Triangle<Real>& t, const Real& extra, NearestFeature<Real>& best) {
  const FacePlane<Real> p = face_plane(extents, t);
  const Vec3<Real> from = q - p.corner;
  const Real distance = dot(p.normal, from), zero = constant<Real>(0);
  // areas of the triangles that the foot of q makes with the sides
  const Real at_v = dot(cross(p.u, from), p.normal), at_u = dot(cross(from, p.v), p.normal);
  const Real area = dot(p.area, p.normal), rest = area - at_u - at_v, slack = constant<Real>(-kFaceSlack) * area;
  const Real cost = distance * distance + extra;
  const MaskOf<Real> above = !less(distance, zero) && !less(at_u, slack) && !less(at_v, slack) && !less(rest, slack);
  const MaskOf<Real> better = above && less(cost, best.cost);
  best.cost = select(better, cost, best.cost);
  best.feature = choose(better, face_feature(xi, t), best.feature);
  return distance;
}

/// An edge with its ends.
template <class Real>
BACKDRIVE_INLINE void offer_edge(const Vec3<Real>& q, const Vec3<Real>& xi, const Vec3<Real>& extents,
                                 const Vec3<Real>& start, const Vec3<Real>& end, NearestFeature<Real>& best) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const Vec3<Real> w = times(extents, end - start), from = q - times(extents, start);
  const Real square = maximum(dot(w, w), constant<Real>(kTinySquare));
  const Real s = clamped(dot(w, from) / square, zero, one);
  const Vec3<Real> e = from - w * s;
  const Real cost = dot(e, e);
  const MaskOf<Real> better = less(cost, best.cost), at_end = !less(s, one);
  FeaturePair<Real> f = vertex_pair(xi, choose(at_end, end, start));
  f.d[0] = {end - start, zero, less(zero, s) && !at_end, zero, zero};
  best.cost = select(better, cost, best.cost);
  best.feature = choose(better, f, best.feature);
}

template <class Real>
BACKDRIVE_INLINE NearestFeature<Real> nothing_nearest(const Vec3<Real>& xi) {
  return {constant<Real>(kFarGap * kFarGap), vertex_pair(xi, zero3<Real>())};
}

template <class Real>
BACKDRIVE_INLINE Triangle<Real> mesh_face(const MeshView<ScalarOf<Real>>& mesh, int i) {
  const int* const f = mesh.faces + 3 * i;
  return {{vertex<Real>(mesh, f[0]), vertex<Real>(mesh, f[1]), vertex<Real>(mesh, f[2])}};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
