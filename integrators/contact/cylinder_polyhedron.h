#pragma once
// Cylinder and convex polyhedron (a mesh, or a box as box_mesh()): fourteen points, of which those that do not apply
// are far.
//   0-5    samples of the cylinder's ends on the polyhedron's reference face, within it sideways
//   6-9    the deepest vertices at the cylinder's end face or side
//   10-13  the deepest edges at its side or rims
// As of two meshes (mesh_mesh.h) the reference face is the one whose plane separates best, and the axis of the pair is
// the normal that separates best of that face's, the end faces', and those of all vertices at the side and edges; what
// is more than kAlignment off it is left out. Where none of these touches though one is deep in the other (a vertex in
// the cylinder, or a place of its axis in the polyhedron), the lowest sample speaks for the reference face, or the
// deepest vertex for the end face, wherever they are sideways. O(vertices² + faces · samples + edges).
//
// Smooth while the reference face and the points in use stay.
#include "integrators/contact/cylinder_features.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

constexpr int kCylinderPolyhedronPoints = kSamples + 2 * kDeepest;

/// A vertex and the part of the cylinder that it meets.
template <class Real>
struct VertexTouch {
  Vec3<Real> xi;
  MaskOf<Real> at_side;
  Real end;
};
template <class Real>
BACKDRIVE_INLINE VertexTouch<Real> choose(const MaskOf<Real>& mask, const VertexTouch<Real>& yes,
                                          const VertexTouch<Real>& no) {
  return {choose(mask, yes.xi, no.xi), chosen(mask, yes.at_side, no.at_side), select(mask, yes.end, no.end)};
}
/// An edge, in unit coordinates.
template <class Real>
struct EdgeTouch {
  Vec3<Real> xi, along;
  LineTouch<Real> touch;
};
template <class Real>
BACKDRIVE_INLINE EdgeTouch<Real> choose(const MaskOf<Real>& mask, const EdgeTouch<Real>& yes,
                                        const EdgeTouch<Real>& no) {
  return {choose(mask, yes.xi, no.xi), choose(mask, yes.along, no.along), choose(mask, yes.touch, no.touch)};
}

/// What touches what, in plain numbers.
template <class Real>
struct CylinderPolyhedronFeatures {
  Triangle<Real> face;
  Real end;  ///< of the cylinder, that faces it
  MaskOf<Real> sampled[kSamples];
  Deepest<VertexTouch<Real>, Real, kDeepest> vertices;
  Deepest<EdgeTouch<Real>, Real, kDeepest> edges;

  BACKDRIVE_INLINE CylinderPolyhedronFeatures()
      : vertices({zero3<Real>(), MaskOf<Real>(false), constant<Real>(1)}),
        edges({zero3<Real>(), {constant<Real>(1), constant<Real>(0), constant<Real>(0)}, no_line()}) {}

 private:
  static BACKDRIVE_INLINE LineTouch<Real> no_line() {
    const Real one = constant<Real>(1);
    return {MaskOf<Real>(false), {one, one, constant<Real>(0)}, one};
  }
};

/// A cylinder and a polyhedron while their features are sought. Normals lead from the polyhedron to the cylinder, but
/// those of candidates.
template <class Real>
struct CylinderPolyhedronSearch {
  const Shape<Real>& c;
  const MeshCore<Real>& p;
  SeparatingAxis<Real> axis{c.pose.axes.cz};

  /// The face that separates best.
  BACKDRIVE_HD Triangle<Real> reference_face() {
    Triangle<Real> reference = mesh_face<Real>(p.mesh, 0);
    for (int i = 0; i < p.mesh.face_count; ++i) {
      const Triangle<Real> t = mesh_face<Real>(p.mesh, i);
      const FacePlane<Real> plane = face_plane(p.core.extents, t);
      const Vec3<Real> n = p.core.pose.axes * plane.normal;
      const Real gap = dot(n, c.pose.origin - carried_point(p.core.pose, plane.corner)) - cylinder_half_width(c, n);
      reference = choose(less(axis.gap, gap), t, reference);
      axis.consider(MaskOf<Real>(true), gap, n);
    }
    return reference;
  }
  /// Of the two ends the one whose face separates best, −1 or 1, and how far.
  BACKDRIVE_HD Real reference_end(Real& gap) const {
    const Real one = constant<Real>(1);
    Real above = constant<Real>(kFarGap), below = above;
    for (int i = 0; i < p.mesh.vertex_count; ++i) {
      const Real z = vertex_in_cylinder(i).z;
      above = minimum(above, z), below = minimum(below, -z);
    }
    gap = maximum(above, below) - c.scale.y;
    return select(less(above, below), -one, one);
  }

  BACKDRIVE_INLINE Vec3<Real> vertex_in_cylinder(int i) const {
    return local_point(c.pose, core_point(p.core, vertex<Real>(p.mesh, i)));
  }
  /// visit(vertex, its place in the cylinder's axes, its direction from the axis, whether it and nothing else stands
  /// against the side).
  template <class Visit>
  BACKDRIVE_INLINE void each_vertex(const Visit& visit) const {
    const Real slack = constant<Real>(kSupportSlack), o = constant<Real>(0);
    for (int i = 0; i < p.mesh.vertex_count; ++i) {
      const Vec3<Real> q = vertex_in_cylinder(i), off{q.x, q.y, o}, out = direction(off);
      MaskOf<Real> stands = !less(c.scale.y, magnitude(q.z)) && less(constant<Real>(kTinySquare), dot(off, off));
      for (int k = 0; k < p.mesh.vertex_count; ++k) {
        const Vec3<Real> to = vertex_in_cylinder(k) - q;
        stands = stands && !less(dot(out, to), -slack * length(to));
      }
      visit(i, q, out, stands);
    }
  }
  /// Whether the middle of the cylinder is outside of a face at this edge. Where it is not, the cylinder is in by more
  /// than half of what it takes along any normal of the edge: others separate better, but for a flat one that deep.
  BACKDRIVE_INLINE MaskOf<Real> looks_at(const MeshEdge<Real>& e) const {
    const Vec3<Real> x = c.pose.origin - e.start;
    const Real least = constant<Real>(kSupportSlack * kSupportSlack);
    MaskOf<Real> looks(false);
    for (int k = 0; k < 2; ++k) {
      const Vec3<Real>&under = e.third[1 - k], n = cross(e.way, e.third[k]);
      const Real of_x = dot(n, x), of_under = dot(n, under), square = dot(n, n) * least;
      const MaskOf<Real> is_sharp = less(square * dot(under, under), of_under * of_under);
      const MaskOf<Real> is_below = less(constant<Real>(0), of_x * of_under) && less(square * dot(x, x), of_x * of_x);
      looks = looks || !(is_sharp && is_below);
    }
    return looks;
  }
  /// visit(edge, where it may touch the cylinder): at its side, and at two places of each rim if they are two.
  template <class Visit>
  BACKDRIVE_INLINE void each_edge(const Visit& visit) const {
    const Real slack = constant<Real>(kSupportSlack), one = constant<Real>(1);
    for (int i = 0; i < p.mesh.edge_count; ++i) {
      const MeshEdge<Real> e = mesh_edge(p, i);
      const MaskOf<Real> looks = looks_at(e);
      if (!any(looks)) continue;
      const ThickLine<Real> line{e.start, e.way, constant<Real>(0)};
      LineCandidate<Real> found = line_at_side(c, line);
      for (int k = 0; k < 5; ++k) {
        const LineCandidate<Real> before = found;
        if (k > 0) found = line_at_rim(c, line, k < 3 ? -one : one, k % 2 ? -1 : 1);
        found.valid = found.valid && looks;
        if (k == 2 || k == 4)
          found.valid = found.valid && !(before.valid && is_same_place(found.touch.place, before.touch.place));
        found.valid = found.valid && is_on_top(e, -found.normal, slack);
        visit(e, found);
      }
    }
  }

  /// Whether a place of the axis is in the polyhedron, or a vertex in the cylinder.
  BACKDRIVE_HD MaskOf<Real> is_deep() const {
    MaskOf<Real> deep(false);
    for (int k = 0; k < 3; ++k) {
      const Vec3<Real> x = local_point(p.core.pose, place_on_axis(c, k));
      MaskOf<Real> inside(true);
      for (int i = 0; i < p.mesh.face_count; ++i) {
        const FacePlane<Real> face = face_plane(p.core.extents, mesh_face<Real>(p.mesh, i));
        inside = inside && less(dot(face.normal, x - face.corner), constant<Real>(0));
      }
      deep = deep || inside;
    }
    for (int i = 0; i < p.mesh.vertex_count; ++i) deep = deep || is_inside(c, vertex_in_cylinder(i));
    return deep;
  }
};

/// `c`: the cylinder.
template <class Real>
BACKDRIVE_CALLED void cylinder_polyhedron_features(const Shape<Real>& c, const MeshCore<Real>& p,
                                                   CylinderPolyhedronFeatures<Real>& f) {
  const Real far = constant<Real>(kFarGap), zero = constant<Real>(0);
  CylinderPolyhedronSearch<Real> search{c, p};
  // the axis that separates best
  f.face = search.reference_face();
  const Vec3<Real> face_normal = search.axis.normal;
  const Real face_gap = search.axis.gap;
  f.end = end_facing(c, face_normal);
  Real end_gap;
  const Real end = search.reference_end(end_gap);
  const Vec3<Real> end_normal = c.pose.axes.cz * -end;
  search.axis.consider(MaskOf<Real>(true), end_gap, end_normal);
  const auto consider_vertex = [&](int, const Vec3<Real>& q, const Vec3<Real>& out, const MaskOf<Real>& stands)
      __attribute__((always_inline)) {
    search.axis.consider(stands, dot(q, out) - c.scale.x, -(c.pose.axes * out));
  };
  const auto consider_edge = [&](const MeshEdge<Real>&, const LineCandidate<Real>& found)
      __attribute__((always_inline)) {
    search.axis.consider(found.valid, found.gap, -found.normal);
  };
  search.each_vertex(consider_vertex);
  search.each_edge(consider_edge);

  // what touches along it
  const FacePlane<Real> plane = face_plane(p.core.extents, f.face);
  const Real sideways = constant<Real>(kSidewaysSlack) * length(plane.u);
  const Vec3<Real> origin = carried_point(p.core.pose, plane.corner);
  const MaskOf<Real> face_used = search.axis.aligned(face_normal), end_used = search.axis.aligned(end_normal);
  Real least = far;
  for (int k = 0; k < kSamples; ++k) {
    const Vec3<Real> place = sample_place(c, face_normal, f.end, k);
    f.sampled[k] = face_used && within_sideways(p, plane, local_point(p.core.pose, place), sideways);
    least = minimum(least, select(f.sampled[k], dot(face_normal, place - origin), far));
  }
  VertexTouch<Real> deepest{zero3<Real>(), MaskOf<Real>(false), end};
  Real depth = far;
  const auto offer_vertex = [&](int i, const Vec3<Real>& q, const Vec3<Real>& out, const MaskOf<Real>& stands)
      __attribute__((always_inline)) {
    const Vec3<Real> xi = vertex<Real>(p.mesh, i);
    const Real off = dot(q, out), gap = end * q.z - c.scale.y;
    const MaskOf<Real> at_side = stands && search.axis.aligned(-(c.pose.axes * out));
    const MaskOf<Real> at_end = end_used && less(off, c.scale.x * constant<Real>(1 + kSupportSlack));
    f.vertices.offer(select(at_side, off - c.scale.x, far), {xi, MaskOf<Real>(true), end});
    f.vertices.offer(select(at_end, gap, far), {xi, MaskOf<Real>(false), end});
    deepest.xi = choose(less(gap, depth), xi, deepest.xi);
    depth = minimum(depth, gap);
  };
  const auto offer_edge = [&](const MeshEdge<Real>& e, const LineCandidate<Real>& found)
      __attribute__((always_inline)) {
    const MaskOf<Real> used = found.valid && search.axis.aligned(-found.normal);
    f.edges.offer(select(used, found.gap, far), {e.xi, e.along, found.touch});
  };
  search.each_vertex(offer_vertex);
  search.each_edge(offer_edge);

  least = minimum(least, minimum(f.vertices.gap[0], f.edges.gap[0]));
  const MaskOf<Real> missed = search.is_deep() && !less(least, zero), by_face = less(end_gap, face_gap);
  f.sampled[0] = f.sampled[0] || (missed && by_face);
  f.vertices.offer(select(missed && !by_face, depth, far), deepest);
}

/// Point i; normals from the polyhedron to the cylinder.
template <class N>
BACKDRIVE_CALLED ContactPoint<N> cylinder_polyhedron_point(const Shape<N>& c, const Core<N>& p,
                                                           const CylinderPolyhedronFeatures<ValueOf<N>>& f, int i) {
  if (i < kSamples) {
    const FacePlane<N> plane = face_plane(p.extents, lifted<N>(f.face));
    return choose(f.sampled[i],
                  sample_on_plane(c, p.pose.axes * plane.normal, carried_point(p.pose, plane.corner), N(f.end), i),
                  far_point<N>());
  }
  const int k = (i - kSamples) % kDeepest;
  ContactPoint<N> out;
  if (i < kSamples + kDeepest) {
    const auto& v = f.vertices.feature[k];
    out = choose(f.vertices.used(k), point_at_cylinder(c, core_point(p, lifted<N>(v.xi)), v.at_side, N(v.end)),
                 far_point<N>());
  } else {
    const auto& e = f.edges.feature[k];
    const ThickLine<N> line{core_point(p, lifted<N>(e.xi)), core_direction(p, lifted<N>(e.along)), constant<N>(0)};
    out = choose(f.edges.used(k), line_at_cylinder(c, line, e.touch), far_point<N>());
  }
  return turned(out);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
