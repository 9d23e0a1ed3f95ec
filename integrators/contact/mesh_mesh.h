#pragma once
// Two convex meshes, or a box (as box_mesh()) and a mesh: twelve points, of which those that do not apply are far.
//   0-3   the deepest vertices of A below B's reference face and within B sideways
//   4-7   the same the other way round
//   8-11  the deepest pairs of edges that cross and support each other: all of A's triangles at the edge lie on one
//   side
//         of the plane of the two edges, all of B's on the other
// The reference face is the one whose plane separates best from the other mesh's vertices: one for the whole mesh, so
// that a vertex near the rim of a face is not pushed out sideways. The axis of the pair is the normal that separates
// best of both reference faces' and all such pairs of edges' (that of least penetration); what is more than kAlignment
// off it is left out. O(faces · vertices + edges²).
//
// Smooth while the reference faces and the points in use stay. A point that leaves a face over its rim makes way for up
// to two pairs of edges at the same place, so that the number of points in use changes by jumps.
#include "integrators/contact/nearest.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

constexpr int kDeepest = 4;  ///< points kept of each sort
constexpr int kMeshMeshPoints = 3 * kDeepest;
/// How far sideways, in sides of the reference face, a vertex may be outside: equal faces that lie on each other are
/// in.
constexpr double kSidewaysSlack = 1e-3;
/// How far, in distances from the edge, a triangle may be on the wrong side: faces that lie on each other support.
constexpr double kSupportSlack = 0.02;
constexpr double kAlignment = 0.9;    ///< cosine
constexpr double kLeastAngle = 0.01;  ///< rad: below, edges count as parallel and vertices speak for them

/// The unit box [-1, 1]³ as a mesh; scaled by the half extents.
template <class T>
struct BoxMesh {
  T vertices[24]{};
  int faces[36]{};
  int edges[48]{};

  constexpr MeshView<T> view() const { return {vertices, faces, edges, 8, 12, 12}; }
};
template <class T>
constexpr BoxMesh<T> box_mesh() {
  BoxMesh<T> m;
  for (int i = 0; i < 24; ++i) m.vertices[i] = (i / 3) >> (i % 3) & 1 ? T(1) : T(-1);
  int* face = m.faces;
  int* edge = m.edges;
  for (int k = 0; k < 3; ++k) {
    const int x = 1 << (k + 1) % 3, y = 1 << (k + 2) % 3;
    for (int side = 0; side < 2; ++side) {
      const int o = side << k, first = side ? x : y, second = side ? y : x;
      for (int corner : {o, o + first, o + x + y, o, o + x + y, o + second}) *face++ = corner;
    }
    // edges along k: of each face at it any vertex off the edge is its third
    for (int corner : {0, x, y, x + y}) {
      for (int v : {corner, corner + (1 << k), corner ^ x, corner ^ y}) *edge++ = v;
    }
  }
  return m;
}

/// The deepest features of a sort so far, in order.
template <class Feature, class Real, int count>
struct Deepest {
  Real gap[count];
  Feature feature[count];

  /// `any`: what stands where there are fewer.
  BACKDRIVE_INLINE explicit Deepest(const Feature& any) {
    for (int i = 0; i < count; ++i) gap[i] = constant<Real>(kFarGap), feature[i] = any;
  }
  BACKDRIVE_INLINE void offer(Real g, Feature f) {
    for (int i = 0; i < count; ++i) {
      const MaskOf<Real> deeper = less(g, gap[i]);
      const Real moved = gap[i];
      const Feature moved_feature = feature[i];
      gap[i] = select(deeper, g, moved);
      feature[i] = choose(deeper, f, moved_feature);
      g = select(deeper, moved, g);
      f = choose(deeper, moved_feature, f);
    }
  }
  BACKDRIVE_INLINE MaskOf<Real> used(int i) const { return less(gap[i], constant<Real>(0.5 * kFarGap)); }
};
template <class Real>
struct DeepestFeatures : Deepest<FeaturePair<Real>, Real, kDeepest> {
  BACKDRIVE_INLINE DeepestFeatures()
      : Deepest<FeaturePair<Real>, Real, kDeepest>(vertex_pair(zero3<Real>(), zero3<Real>())) {}
};

/// The normal, from B to A, that separates best of those considered so far.
template <class Real>
struct SeparatingAxis {
  Vec3<Real> normal;
  Real gap = constant<Real>(-kFarGap);

  BACKDRIVE_INLINE void consider(const MaskOf<Real>& valid, const Real& other_gap, const Vec3<Real>& other) {
    const MaskOf<Real> better = valid && less(gap, other_gap);
    gap = select(better, other_gap, gap);
    normal = choose(better, other, normal);
  }
  BACKDRIVE_INLINE MaskOf<Real> aligned(const Vec3<Real>& other) const {
    return less(constant<Real>(kAlignment), dot(other, normal));
  }
};

template <class Real>
BACKDRIVE_INLINE Triangle<Real> choose(const MaskOf<Real>& mask, const Triangle<Real>& yes, const Triangle<Real>& no) {
  return {{choose(mask, yes.v[0], no.v[0]), choose(mask, yes.v[1], no.v[1]), choose(mask, yes.v[2], no.v[2])}};
}

/// The face of B with the greatest distance from the nearest of A's vertices.
template <class Real>
struct ReferenceFace {
  Triangle<Real> triangle;
  Real gap;
  Vec3<Real> normal;  ///< outward, in the world
};
template <class Real>
BACKDRIVE_HD ReferenceFace<Real> reference_face(const MeshCore<Real>& A, const MeshCore<Real>& B) {
  ReferenceFace<Real> best{mesh_face<Real>(B.mesh, 0), constant<Real>(-kFarGap), B.core.pose.axes.cz};
  const Vec3<Real> origin = local_point(B.core.pose, A.core.pose.origin);
  for (int i = 0; i < B.mesh.face_count; ++i) {
    const Triangle<Real> t = mesh_face<Real>(B.mesh, i);
    const FacePlane<Real> p = face_plane(B.core.extents, t);
    const Vec3<Real> normal = B.core.pose.axes * p.normal;
    const Vec3<Real> rise = times(A.core.extents, transposed_times(A.core.pose.axes, normal));
    Real lowest = constant<Real>(kFarGap);
    for (int k = 0; k < A.mesh.vertex_count; ++k) lowest = minimum(lowest, dot(rise, vertex<Real>(A.mesh, k)));
    const Real gap = lowest + dot(p.normal, origin - p.corner);
    const MaskOf<Real> better = less(best.gap, gap);
    best = {choose(better, t, best.triangle), select(better, gap, best.gap), choose(better, normal, best.normal)};
  }
  return best;
}

/// Whether x, in the mesh's axes, is within its faces but for those that look as `plane` does, to `slack` of length.
template <class Real>
BACKDRIVE_HD MaskOf<Real> within_sideways(const MeshCore<Real>& of, const FacePlane<Real>& plane, const Vec3<Real>& x,
                                          const Real& slack) {
  MaskOf<Real> within(true);
  for (int i = 0; i < of.mesh.face_count; ++i) {
    const FacePlane<Real> other = face_plane(of.core.extents, mesh_face<Real>(of.mesh, i));
    const MaskOf<Real> same = less(constant<Real>(1 - 1e-4), dot(other.normal, plane.normal));
    within = within && (same || less(dot(other.normal, x - other.corner), slack));
  }
  return within;
}

/// A's vertices below a face of B, where `allowed`. `swapped`: the roles of A and B in the features are exchanged.
template <bool swapped, class Real>
BACKDRIVE_HD void deepest_vertices(const MeshCore<Real>& A, const MeshCore<Real>& B, const Triangle<Real>& reference,
                                   const MaskOf<Real>& allowed, DeepestFeatures<Real>& deepest) {
  const FacePlane<Real> plane = face_plane(B.core.extents, reference);
  const Real slack = constant<Real>(kSidewaysSlack) * length(plane.u);
  for (int k = 0; k < A.mesh.vertex_count; ++k) {
    const Vec3<Real> xi = vertex<Real>(A.mesh, k), x = local_point(B.core.pose, core_point(A.core, xi));
    const MaskOf<Real> within = allowed && within_sideways(B, plane, x, slack);
    const Real gap = select(within, dot(plane.normal, x - plane.corner), constant<Real>(kFarGap));
    deepest.offer(gap, swapped ? face_feature_of_a(reference, xi) : face_feature(xi, reference));
  }
}

// ---- edges ----------------------------------------------------------------------------------------------------------

/// An edge in the world: start, way to its end, and from the start to the third vertices of its triangles.
template <class Real>
struct MeshEdge {
  Vec3<Real> xi, along;  ///< unit coordinates
  Vec3<Real> start, way, third[2];
};
template <class Real>
BACKDRIVE_INLINE MeshEdge<Real> mesh_edge(const MeshCore<Real>& of, int i) {
  const auto& [c, mesh] = of;
  const int* const e = mesh.edges + 4 * i;
  MeshEdge<Real> m;
  m.xi = vertex<Real>(mesh, e[0]);
  m.along = vertex<Real>(mesh, e[1]) - m.xi;
  m.start = core_point(c, m.xi);
  m.way = core_direction(c, m.along);
  for (int k = 0; k < 2; ++k) m.third[k] = core_direction(c, vertex<Real>(mesh, e[2 + k]) - m.xi);
  return m;
}

/// Whether along n neither triangle reaches beyond the edge by more than `slack`, in distances from it.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> is_on_top(const MeshEdge<Real>& e, const Vec3<Real>& n, const Real& slack) {
  MaskOf<Real> on_top(true);
  for (const Vec3<Real>& third : e.third) on_top = on_top && !less(slack * length(third), dot(n, third));
  return on_top;
}

/// Two edges: whether they cross and support each other, the gap and the normal from B to A, ±w₁×w₂.
template <class Real>
struct EdgeCrossing {
  MaskOf<Real> valid;
  Real gap, sign;
  Vec3<Real> normal;
};
template <class Real>
BACKDRIVE_INLINE EdgeCrossing<Real> crossing(const MeshEdge<Real>& a, const MeshEdge<Real>& b) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), slack = constant<Real>(kSupportSlack);
  const Vec3<Real> r = a.start - b.start, area = cross(a.way, b.way);
  const Real square = dot(area, area), least = constant<Real>(kLeastAngle * kLeastAngle);
  EdgeCrossing<Real> c;
  c.valid = less(least * dot(a.way, a.way) * dot(b.way, b.way), square);
  // r + s u − t v along u × v:  s = (v × r)·(u × v)/|u × v|²,  t = (u × r)·(u × v)/|u × v|²
  const Real inverse = one / select(c.valid, square, one);
  const Real s = dot(cross(b.way, r), area) * inverse, t = dot(cross(a.way, r), area) * inverse;
  c.valid = c.valid && !less(s, zero) && !less(one, s) && !less(t, zero) && !less(one, t);
  const Vec3<Real> n = direction(area);
  c.sign = select(less(dot(n, a.third[0] + a.third[1] - b.third[0] - b.third[1]), zero), -one, one);
  c.normal = n * c.sign;
  c.valid = c.valid && is_on_top(a, -c.normal, slack) && is_on_top(b, c.normal, slack);
  c.gap = dot(c.normal, r);
  return c;
}
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> crossing_feature(const MeshEdge<Real>& a, const MeshEdge<Real>& b,
                                                    const Real& sign) {
  const Real zero = constant<Real>(0);
  FeaturePair<Real> f = vertex_pair(a.xi, b.xi);
  f.d[0] = {a.along, constant<Real>(1), MaskOf<Real>(true), zero, zero};
  f.d[1] = {b.along, zero, MaskOf<Real>(true), zero, zero};
  f.crossed = MaskOf<Real>(true);
  f.sign = sign;
  return f;
}

/// visit(edge of A, edge of B) for all pairs.
template <class Real, class Visit>
BACKDRIVE_HD void each_two_edges(const MeshCore<Real>& A, const MeshCore<Real>& B, const Visit& visit) {
  for (int i = 0; i < A.mesh.edge_count; ++i) {
    const MeshEdge<Real> a = mesh_edge(A, i);
    for (int k = 0; k < B.mesh.edge_count; ++k) visit(a, mesh_edge(B, k));
  }
}

// ---- all together ---------------------------------------------------------------------------------------------------

/// The three sorts of features, each with its gaps; far where there are fewer.
template <class Real>
struct MeshMeshFeatures {
  DeepestFeatures<Real> sort[3];
};
template <class Real>
BACKDRIVE_CALLED void mesh_mesh_features(const MeshCore<Real>& A, const MeshCore<Real>& B, MeshMeshFeatures<Real>& f) {
  const ReferenceFace<Real> of_b = reference_face(A, B), of_a = reference_face(B, A);
  SeparatingAxis<Real> axis{of_b.normal, of_b.gap};
  axis.consider(MaskOf<Real>(true), of_a.gap, -of_a.normal);
  each_two_edges(
      A, B, [&](const MeshEdge<Real>& a, const MeshEdge<Real>& b) __attribute__((always_inline)) {
        const EdgeCrossing<Real> c = crossing(a, b);
        axis.consider(c.valid, c.gap, c.normal);
      });
  deepest_vertices<false>(A, B, of_b.triangle, axis.aligned(of_b.normal), f.sort[0]);
  deepest_vertices<true>(B, A, of_a.triangle, axis.aligned(-of_a.normal), f.sort[1]);
  each_two_edges(
      A, B, [&](const MeshEdge<Real>& a, const MeshEdge<Real>& b) __attribute__((always_inline)) {
        const EdgeCrossing<Real> c = crossing(a, b);
        const MaskOf<Real> used = c.valid && axis.aligned(c.normal);
        f.sort[2].offer(select(used, c.gap, constant<Real>(kFarGap)), crossing_feature(a, b, c.sign));
      });
}

template <class Real>
BACKDRIVE_CALLED void mesh_mesh(const MeshCore<Real>& A, const MeshCore<Real>& B, ContactPoint<Real>* out) {
  MeshMeshFeatures<Real> f;
  mesh_mesh_features(A, B, f);
  for (int i = 0; i < kMeshMeshPoints; ++i) {
    const DeepestFeatures<Real>& sort = f.sort[i / kDeepest];
    const MaskOf<Real> used = sort.used(i % kDeepest);
    out[i] = choose(used, witness(A.core, B.core, sort.feature[i % kDeepest]), far_point<Real>());
  }
}
template <class Real>
BACKDRIVE_CALLED void adj_mesh_mesh(const MeshCore<Real>& A, const MeshCore<Real>& B, const ContactPoint<Real>* bar,
                                    CoreBar<Real>& A_bar, CoreBar<Real>& B_bar) {
  MeshMeshFeatures<Real> f;
  mesh_mesh_features(A, B, f);
  for (int i = 0; i < kMeshMeshPoints; ++i) {
    const DeepestFeatures<Real>& sort = f.sort[i / kDeepest];
    const MaskOf<Real> used = sort.used(i % kDeepest);
    adj_witness(A.core, B.core, sort.feature[i % kDeepest], only(used, bar[i]), A_bar, B_bar);
  }
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
