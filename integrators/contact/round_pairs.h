#pragma once
// Spheres and capsules among themselves, as points and segments with a radius.
//
// Sphere-sphere 1, sphere-capsule 1, capsule-capsule 2 points. Smooth where the nearest features stay; the gap is C¹
// also where a nearest point passes from a segment's inside to its end, where normal and point have a kink. Not defined
// where centres or core segments meet (the normal is then +z and has no derivative).
#include "integrators/contact/features.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// β of the two points of capsules: they lie where the nearest points of two segments would be if each were drawn
/// towards one pair of ends by a spring of this relative stiffness. Parallel capsules touch at both ends of their
/// overlap, others twice at their nearest points, and the way from one to the other, within about √β = 3e-3 rad of
/// parallel, is continuous. The gap exceeds the exact one by no more than β (|u|² + |v|²) / 2(gap + r_A + r_B), u and v
/// the segments, and by second order in β away from parallel.
constexpr double kSegmentPull = 1e-5;

/// ξ of a capsule's end; twice that leads there from the other end.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> capsule_end(double sign) {
  const Real o = constant<Real>(0);
  return {o, o, constant<Real>(sign)};
}

template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> sphere_sphere_feature() {
  return vertex_pair(zero3<Real>(), zero3<Real>());
}

/// Sphere A with segment B: s = w·r / w·w within [0, 1].
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> sphere_capsule_feature(const Core<Real>& A, const Core<Real>& B) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  FeaturePair<Real> f = vertex_pair(zero3<Real>(), capsule_end<Real>(-1));
  f.d[0].xi = capsule_end<Real>(2);
  const Vec3<Real> w = core_direction(B, f.d[0].xi), r = A.pose.origin - core_point(B, f.b);
  const Real along = dot(w, r), square = dot(w, w);
  const MaskOf<Real> beyond = !less(along, square);
  f.d[0].free = less(zero, along) && !beyond;
  f.b = choose(beyond && less(zero, along), capsule_end<Real>(1), f.b);
  f.d[0].of_a = zero, f.d[0].pull = zero, f.d[0].target = one;
  return f;
}

/// Segments a + s u and b + t v over [0, 1]²: minimises ½|e|² + ½ β_s|u|² (s − s°)² + ½ β_t |v|² (t − t°)², a strictly
/// convex function, by the clamps of Ericson, Real-Time Collision Detection, section 5.1.9.
template <class Real>
struct SegmentProblem {
  Vec3<Real> u, v, r;  ///< r = a − b
  Real pull_s, pull_t, target_s, target_t;
};
template <class Real>
BACKDRIVE_INLINE void nearest_on_segments(const SegmentProblem<Real>& p, Real& s, Real& t) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), tiny = constant<Real>(kTinySquare);
  const Real uu = dot(p.u, p.u), vv = dot(p.v, p.v), uv = dot(p.u, p.v);
  const Vec3<Real> area = cross(p.u, p.v);
  const Real a = maximum(uu * (one + p.pull_s), tiny), c = maximum(vv * (one + p.pull_t), tiny);
  const Real g = p.pull_s * uu * p.target_s - dot(p.u, p.r), h = p.pull_t * vv * p.target_t + dot(p.v, p.r);
  const Real determinant = maximum(dot(area, area) + uu * vv * (p.pull_s + p.pull_t + p.pull_s * p.pull_t), tiny);
  s = clamped((g * c + uv * h) / determinant, zero, one);
  t = (h + uv * s) / c;
  const MaskOf<Real> outside = less(t, zero) || less(one, t);
  t = clamped(t, zero, one);
  s = select(outside, clamped((g + uv * t) / a, zero, one), s);
}

/// A segment in unit coordinates.
template <class Real>
struct Segment {
  Vec3<Real> start, way;

  BACKDRIVE_INLINE Vec3<Real> end() const { return start + way; }
};
template <class Real>
BACKDRIVE_INLINE Segment<Real> capsule_segment() {
  return {capsule_end<Real>(-1), capsule_end<Real>(2)};
}
/// The feature pair of the solution: clamped ends are vertices; x_B runs against its direction.
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> segment_feature(const Segment<Real>& a, const Segment<Real>& b,
                                                   const SegmentProblem<Real>& p, const Real& s, const Real& t) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  FeaturePair<Real> f = vertex_pair(a.start, b.start);
  const MaskOf<Real> s_end = !less(s, one), t_end = !less(t, one);
  f.d[0] = {a.way, one, less(zero, s) && !s_end, p.pull_s, p.target_s};
  f.d[1] = {-b.way, zero, less(zero, t) && !t_end, p.pull_t, p.target_t};
  f.a = choose(s_end, a.end(), a.start);
  f.b = choose(t_end, b.end(), b.start);
  return f;
}

/// Point `which` (0, 1) of two capsules. B's segment is run through in the direction of A's.
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> capsule_capsule_feature(const Core<Real>& A, const Core<Real>& B, int which) {
  const Real one = constant<Real>(1), pull = constant<Real>(kSegmentPull), target = constant<Real>(which);
  const MaskOf<Real> against = less(dot(A.pose.axes.cz, B.pose.axes.cz), constant<Real>(0));
  const Vec3<Real> flip{one, one, select(against, -one, one)};
  const Segment<Real> a = capsule_segment<Real>(), b{times(a.start, flip), times(a.way, flip)};
  const Vec3<Real> r = core_point(A, a.start) - core_point(B, b.start);
  const SegmentProblem<Real> p{core_direction(A, a.way), core_direction(B, b.way), r, pull, pull, target, target};
  Real s, t;
  nearest_on_segments(p, s, t);
  return segment_feature(a, b, p, s, t);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
