#pragma once
// Sphere (1 point) and capsule (2 points) as shape A on a cylinder (shape B), in the cylinder's axes:
//
//   x = c + s u               sphere's centre (u = 0), or a point of the capsule's segment
//   e = x − its nearest point of the cylinder: radially where x is past the side, along the axis where past an end face
//   (1) F(s) = u·e + β |u|² (s − s°) = 0      or s at an end
//   n = e/|e|, dist = |e|     (2) x inside: n of the side or end face that is nearest, dist < 0
//   gap = dist − r            point = x − ½ (dist + r) n
//
// Smooth within a region of side, end face or rim; across their borders the gap is C¹ and normal and point continuous,
// but for (2). A capsule has one point drawn to either end (see kSegmentPull), as on a box.
#include "integrators/contact/by_duals.h"
#include "integrators/contact/round_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// What of x is past the side and the end faces.
template <class N>
struct PastCylinder {
  Vec3<N> e;
  N stretch;  ///< R/ρ where past the side, else 1
  MaskOf<N> side, end;
};
template <class N>
BACKDRIVE_INLINE PastCylinder<N> past_cylinder(const Vec3<N>& x, const Vec3<N>& scale) {
  const N one = constant<N>(1), zero = constant<N>(0);
  const N off = length(Vec3<N>{x.x, x.y, zero});
  PastCylinder<N> p;
  p.side = less(scale.x, off);
  p.end = less(scale.y, magnitude(x.z));
  p.stretch = select(p.side, scale.x / off, one);
  p.e = {x.x * (one - p.stretch), x.y * (one - p.stretch), x.z - clamped(x.z, -scale.y, scale.y)};
  return p;
}

/// A segment c + s u, drawn to s°.
template <class N>
struct DrawnSegment {
  Vec3<N> c, u;
  N pull, target;  ///< β |u|², s°

  BACKDRIVE_INLINE Vec3<N> at(const N& s) const { return c + u * s; }
  /// F and dF/ds.
  BACKDRIVE_INLINE N force(const PastCylinder<N>& p, const N& s) const { return dot(u, p.e) + pull * (s - target); }
  BACKDRIVE_INLINE N slope(const PastCylinder<N>& p, const N& s) const {
    const N zero = constant<N>(0), one = constant<N>(1);
    const Vec3<N> x = at(s), radial = direction(Vec3<N>{x.x, x.y, zero});
    const N along = u.x * radial.x + u.y * radial.y;
    const N of_side = (one - p.stretch) * (u.x * u.x + u.y * u.y) + p.stretch * along * along;
    return select(p.side, of_side, zero) + select(p.end, u.z * u.z, zero) + pull;
  }
};

template <ShapeKind kind, class N>
BACKDRIVE_INLINE DrawnSegment<N> segment_in_cylinder(const Shape<N>& a, const Shape<N>& cylinder, int which) {
  const N two = constant<N>(2);
  const Vec3<N> way = kind == ShapeKind::capsule ? a.pose.axes.cz * (two * a.scale.y) : zero3<N>();
  const Vec3<N> start = a.pose.origin - way * constant<N>(0.5);
  DrawnSegment<N> s;
  s.c = local_point(cylinder.pose, start);
  s.u = transposed_times(cylinder.pose.axes, way);
  s.pull = constant<N>(kSegmentPull) * dot(s.u, s.u);
  s.target = constant<N>(which);
  return s;
}

/// s of (1), in plain numbers: F grows with s.
template <ShapeKind kind, class Real>
BACKDRIVE_CALLED Real nearest_to_cylinder(const Shape<Real>& a, const Shape<Real>& cylinder, int which) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), half = constant<Real>(0.5);
  if constexpr (kind == ShapeKind::sphere) return zero;
  const DrawnSegment<Real> segment = segment_in_cylinder<kind>(a, cylinder, which);
  Real low = zero, high = one, s = half;
  constexpr int halvings = 6, steps = 26;  // Newton's method within what is left; ends count as brackets
  for (int k = 0; k < steps; ++k) {
    const PastCylinder<Real> p = past_cylinder(segment.at(s), cylinder.scale);
    const Real f = segment.force(p, s);
    const MaskOf<Real> below = less(f, zero);
    low = select(below, s, low), high = select(below, high, s);
    const Real newton = s - f / maximum(segment.slope(p, s), constant<Real>(kTinySquare)), middle = half * (low + high);
    s = k < halvings ? middle : select(less(newton, low) || less(high, newton), middle, newton);
  }
  const Real at_low = segment.force(past_cylinder(segment.at(zero), cylinder.scale), zero);
  const Real at_high = segment.force(past_cylinder(segment.at(one), cylinder.scale), one);
  return select(!less(at_low, zero), zero, select(!less(zero, at_high), one, s));
}

/// `near`: nearest_to_cylinder().
template <ShapeKind kind, class N>
BACKDRIVE_CALLED ContactPoint<N> round_on_cylinder(const Shape<N>& a, const Shape<N>& cylinder, int which,
                                                   const ValueOf<N>& near) {
  const N zero = constant<N>(0), one = constant<N>(1), half = constant<N>(0.5);
  const DrawnSegment<N> segment = segment_in_cylinder<kind>(a, cylinder, which);
  N s = N(near);
  if constexpr (kind == ShapeKind::capsule) {
    const PastCylinder<N> p = past_cylinder(segment.at(s), cylinder.scale);
    const N nearer = s - segment.force(p, s) / maximum(segment.slope(p, s), constant<N>(kTinySquare));
    s = select(less(zero, s) && less(s, one), nearer, s);
  }
  const Vec3<N> x = segment.at(s);
  const PastCylinder<N> p = past_cylinder(x, cylinder.scale);
  const MaskOf<N> inside = !p.side && !p.end;
  const Vec3<N> off{x.x, x.y, zero};
  const N to_side = length(off) - cylinder.scale.x, to_end = magnitude(x.z) - cylinder.scale.y;
  const MaskOf<N> end_nearer = less(to_side, to_end);
  const Vec3<N> face = choose(end_nearer, Vec3<N>{zero, zero, select(less(x.z, zero), -one, one)}, direction(off));
  const Vec3<N> n = choose(inside, face, direction(p.e));
  const N dist = select(inside, maximum(to_side, to_end), length(p.e)), radius = a.scale.x;
  return {dist - radius, carried_point(cylinder.pose, x - n * ((dist + radius) * half)), cylinder.pose.axes * n};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
