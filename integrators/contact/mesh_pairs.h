#pragma once
// Sphere (1 point) and capsule (2 points) as shape A on a convex mesh (shape B). O(faces + edges).
//
// A point outside meets the nearest face, edge or vertex, a point inside the face of least depth. Smooth within a
// feature's region; across the regions' borders the gap is C¹ and the normal continuous outside, and the normal jumps
// where two faces are equally near inside.
//
// A capsule has one point drawn to either end (see kSegmentPull), chosen among its ends over faces and its segment with
// every edge. Where it lies on a face and is tilted by about √β, a point jumps between an end and an edge; where its
// segment pierces the mesh with both ends outside, what is reported is the distance from the edges.
#include "integrators/contact/nearest.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Offers all faces to the point q. Inside, cost is −depth² + extra, with the face of least depth.
template <class Real>
BACKDRIVE_INLINE void offer_faces(const Vec3<Real>& q, const Vec3<Real>& xi, const Vec3<Real>& extents,
                                  const MeshView<ScalarOf<Real>>& mesh, const Real& extra, NearestFeature<Real>& best) {
  Real top = constant<Real>(-kFarGap);
  FeaturePair<Real> least = vertex_pair(xi, zero3<Real>());
  for (int i = 0; i < mesh.face_count; ++i) {
    const Triangle<Real> t = mesh_face<Real>(mesh, i);
    const Real distance = offer_face(q, xi, extents, t, extra, best);
    const MaskOf<Real> higher = less(top, distance);
    top = select(higher, distance, top);
    least = choose(higher, face_feature(xi, t), least);
  }
  const Real cost = extra - top * top;
  const MaskOf<Real> inside = less(top, constant<Real>(0)) && less(cost, best.cost);
  best.cost = select(inside, cost, best.cost);
  best.feature = choose(inside, least, best.feature);
}

template <class Real>
BACKDRIVE_CALLED FeaturePair<Real> sphere_mesh_feature(const Core<Real>& A, const Core<Real>& B,
                                                       const MeshView<ScalarOf<Real>>& mesh) {
  const Vec3<Real> xi = zero3<Real>(), q = local_point(B.pose, A.pose.origin);
  NearestFeature<Real> best = nothing_nearest(xi);
  for (int i = 0; i < mesh.edge_count; ++i) {
    const int* const e = mesh.edges + 4 * i;
    offer_edge(q, xi, B.extents, vertex<Real>(mesh, e[0]), vertex<Real>(mesh, e[1]), best);
  }
  offer_faces(q, xi, B.extents, mesh, constant<Real>(0), best);
  return best.feature;
}

/// Point `which` (0, 1): the least of |e|² + β |u|² (s − which)².
template <class Real>
BACKDRIVE_CALLED FeaturePair<Real> capsule_mesh_feature(const Core<Real>& A, const Core<Real>& B,
                                                        const MeshView<ScalarOf<Real>>& mesh, int which) {
  const Real zero = constant<Real>(0), pull = constant<Real>(kSegmentPull), target = constant<Real>(which);
  const Segment<Real> capsule = capsule_segment<Real>();
  const Vec3<Real> p = local_point(B.pose, core_point(A, capsule.start));
  const Vec3<Real> u = transposed_times(B.pose.axes, core_direction(A, capsule.way));
  const Real stiffness = pull * dot(u, u);
  NearestFeature<Real> best = nothing_nearest(capsule.start);
  for (int i = 0; i < mesh.edge_count; ++i) {
    const int* const ends = mesh.edges + 4 * i;
    const Vec3<Real> start = vertex<Real>(mesh, ends[0]);
    const Segment<Real> edge{start, vertex<Real>(mesh, ends[1]) - start};
    const Vec3<Real> v = times(B.extents, edge.way);
    const SegmentProblem<Real> problem{u, v, p - times(B.extents, start), pull, zero, target, zero};
    Real s, t;
    nearest_on_segments(problem, s, t);
    const Vec3<Real> e = problem.r + u * s - v * t;
    const Real off = s - target, cost = dot(e, e) + stiffness * off * off;
    const MaskOf<Real> better = less(cost, best.cost);
    best.cost = select(better, cost, best.cost);
    best.feature = choose(better, segment_feature(capsule, edge, problem, s, t), best.feature);
  }
  for (int end = 0; end < 2; ++end) {
    const Real off = constant<Real>(end) - target;
    offer_faces(p + u * constant<Real>(end), capsule_end<Real>(2 * end - 1), B.extents, mesh, stiffness * off * off,
                best);
  }
  return best.feature;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
