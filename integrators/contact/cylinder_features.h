#pragma once
// What a cylinder (radius R, half length h, axis z) is touched at by others than the ground, each in numbers of any
// type N: what touches what is found before, in plain numbers (by_duals.h). Normals lead out of the cylinder.
//
//   a point of another shape     at an end face or at the side
//   a line of another shape      at the side: the nearest points of two lines. At a rim: those of the line and the
//                                circle, where n is along tangent × line
//   samples of an end face       on a plane: the points by which it stands on the ground (plane_pairs.h)
//
// All but samples are nearest points, so that a force does the work by which the gap changes; samples act at the lever
// E for the same end.
#include "integrators/contact/by_duals.h"
#include "integrators/contact/mesh_mesh.h"
#include "integrators/contact/plane_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// The five of the end that faces the plane, and the lowest of the other, which it lies on.
constexpr int kSamples = 6;

/// Where sample k is on the cylinder, for a plane of that normal; `end`: −1 or 1, the end that faces it.
template <class N>
BACKDRIVE_INLINE Vec3<N> sample_place(const Shape<N>& c, const Vec3<N>& normal, const N& end, int k) {
  Vec3<N> xi = cylinder_point(transposed_times(c.pose.axes, normal), k < 5 ? k : 0);
  xi.z = k < 5 ? end : -end;
  return carried_point(c.pose, times(cylinder_extents(c.scale), xi));
}
/// Sample k on a plane through `origin`.
template <class N>
BACKDRIVE_INLINE ContactPoint<N> sample_on_plane(const Shape<N>& c, const Vec3<N>& normal, const Vec3<N>& origin,
                                                 const N& end, int k) {
  const Vec3<N> m = transposed_times(c.pose.axes, normal);
  const ShapePose<N> plane{{normal, normal, normal}, origin};
  const ContactPoint<N> p = point_on_plane<N>({sample_place(c, normal, end, k), constant<N>(0)}, plane);
  return moved_along_surface(p, CarriedLever<N>(c, m, k < 5 ? k : 0).lever);
}
/// The end of a cylinder that faces a plane below it.
template <class Real>
BACKDRIVE_INLINE Real end_facing(const Shape<Real>& c, const Vec3<Real>& normal) {
  const Real one = constant<Real>(1);
  return select(less(dot(c.pose.axes.cz, normal), constant<Real>(0)), one, -one);
}

/// Half of what a cylinder takes along a unit direction.
template <class Real>
BACKDRIVE_INLINE Real cylinder_half_width(const Shape<Real>& c, const Vec3<Real>& along) {
  const Vec3<Real> m = transposed_times(c.pose.axes, along);
  return c.scale.x * square_root(m.x * m.x + m.y * m.y) + c.scale.y * magnitude(m.z);
}

/// Point x at the side, or at the end face `end`.
template <class N, class Mask>
BACKDRIVE_INLINE ContactPoint<N> point_at_cylinder(const Shape<N>& c, const Vec3<N>& x, const Mask& at_side,
                                                   const N& end) {
  const N o = constant<N>(0), half = constant<N>(0.5);
  const Vec3<N> q = local_point(c.pose, x), off{q.x, q.y, o};
  const N gap = select(at_side, length(off) - c.scale.x, end * q.z - c.scale.y);
  const Vec3<N> n = c.pose.axes * choose(at_side, direction(off), Vec3<N>{o, o, end});
  return {gap, x - n * (gap * half), n};
}

/// A place of a rim: the end, and the direction from the axis.
template <class Real>
struct RimPlace {
  Real end, cos, sin;
};

template <class Real>
BACKDRIVE_INLINE RimPlace<Real> choose(const MaskOf<Real>& mask, const RimPlace<Real>& yes, const RimPlace<Real>& no) {
  return {select(mask, yes.end, no.end), select(mask, yes.cos, no.cos), select(mask, yes.sin, no.sin)};
}
template <class N, class Value>
BACKDRIVE_INLINE RimPlace<N> lifted(const RimPlace<Value>& p) {
  return {N(p.end), N(p.cos), N(p.sin)};
}

template <class N, class Value>
BACKDRIVE_INLINE Triangle<N> lifted(const Triangle<Value>& t) {
  return {{lifted<N>(t.v[0]), lifted<N>(t.v[1]), lifted<N>(t.v[2])}};
}

/// A line (from `start` along `way`) with a radius.
template <class N>
struct ThickLine {
  Vec3<N> start, way;
  N radius;
};

/// A point of a rim, and the rim there.
template <class N>
struct RimPoint {
  Vec3<N> radial, tangent, at;

  BACKDRIVE_INLINE RimPoint(const Shape<N>& c, const RimPlace<N>& place)
      : radial(c.pose.axes.cx * place.cos + c.pose.axes.cy * place.sin),
        tangent(c.pose.axes.cy * place.cos - c.pose.axes.cx * place.sin),
        at(c.pose.origin + c.pose.axes.cz * (c.scale.y * place.end) + radial * c.scale.x) {}

  /// Goes on by an angle, to second order, half a radian at most.
  BACKDRIVE_INLINE void turn(const Shape<N>& c, const N& angle) {
    const N one = constant<N>(1), half = constant<N>(0.5), by = clamped(angle, -half, half);
    const N scale = one / square_root(one + by * by);
    const Vec3<N> r = (radial + tangent * by) * scale;
    tangent = (tangent - radial * by) * scale;
    at += (r - radial) * c.scale.x;
    radial = r;
  }
  BACKDRIVE_INLINE RimPlace<N> place(const Shape<N>& c, const N& end) const {
    return {end, dot(radial, c.pose.axes.cx), dot(radial, c.pose.axes.cy)};
  }
};

/// One step of Newton's method for the point of the rim that is nearest to a line; the angle of the step.
template <class N>
BACKDRIVE_INLINE N approach(const Shape<N>& c, const ThickLine<N>& line, RimPoint<N>& on) {
  const N one = constant<N>(1), square = maximum(dot(line.way, line.way), constant<N>(kTinySquare));
  const Vec3<N> from = on.at - line.start, e = from - line.way * (dot(line.way, from) / square);
  const N along = dot(on.tangent, line.way);
  // D = ½|e|²:  D′ = R e·t,  D″ = R² (1 − (t·ŵ)²) − R e·r
  const N bend = c.scale.x * (one - along * along / square) - dot(e, on.radial);
  const N angle = -dot(e, on.tangent) / maximum(bend, constant<N>(1e-6) * c.scale.x);
  on.turn(c, angle);
  return angle;
}

/// What touches the cylinder along a line: where, and the sign of n along (axis or tangent) × line.
template <class Real>
struct LineTouch {
  MaskOf<Real> at_rim;
  RimPlace<Real> place;
  Real sign;
};

/// Of two at the same end: whether they are within a few milliradians.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> is_same_place(const RimPlace<Real>& a, const RimPlace<Real>& b) {
  return !less(a.cos * b.cos + a.sin * b.sin, constant<Real>(1 - 1e-5));
}

/// Two lines and their common perpendicular.
template <class N>
struct Perpendicular {
  Vec3<N> area, r;
  N square, on_first, on_second;  ///< |area|², and how far along each the nearest points are

  BACKDRIVE_INLINE Perpendicular(const Vec3<N>& from, const Vec3<N>& along, const Vec3<N>& start, const Vec3<N>& way)
      : area(cross(along, way)), r(from - start), square(maximum(dot(area, area), constant<N>(kTinySquare))) {
    // r + s u − t v along u × v:  s = (v × r)·(u × v)/|u × v|²,  t = (u × r)·(u × v)/|u × v|²
    on_first = dot(cross(way, r), area) / square;
    on_second = dot(cross(along, r), area) / square;
  }
};

template <class N>
BACKDRIVE_INLINE ContactPoint<N> line_at_cylinder(const Shape<N>& c, const ThickLine<N>& line,
                                                  const LineTouch<ValueOf<N>>& touch) {
  const N o = constant<N>(0), half = constant<N>(0.5);
  RimPoint<N> rim(c, lifted<N>(touch.place));
  approach(c, line, rim);
  const Vec3<N> along = choose(touch.at_rim, rim.tangent, c.pose.axes.cz);
  const Vec3<N> from = choose(touch.at_rim, rim.at, c.pose.origin);
  const N radius = select(touch.at_rim, o, c.scale.x);
  const Perpendicular<N> p(from, along, line.start, line.way);
  const Vec3<N> n = direction(p.area) * N(touch.sign);
  const N gap = -dot(n, p.r) - radius - line.radius;
  return {gap, line.start + line.way * p.on_second - n * (line.radius + gap * half), n};
}

/// With the normal that leads out of the other shape.
template <class N>
BACKDRIVE_INLINE ContactPoint<N> turned(const ContactPoint<N>& p) {
  return {p.gap, p.point, -p.normal};
}

/// Whether a point, in the cylinder's axes, is inside.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> is_inside(const Shape<Real>& c, const Vec3<Real>& q) {
  return less(q.x * q.x + q.y * q.y, c.scale.x * c.scale.x) && less(magnitude(q.z), c.scale.y);
}
/// Middle and ends of the axis.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> place_on_axis(const Shape<Real>& c, int k) {
  return c.pose.origin + c.pose.axes.cz * (c.scale.y * constant<Real>(k - 1));
}

// ---- found in plain numbers -----------------------------------------------------------------------------------------

/// A line that may touch: within its length and the cylinder's, with all of the cylinder on one side. Gap and normal as
/// those of line_at_cylinder().
template <class Real>
struct LineCandidate {
  MaskOf<Real> valid;
  Real gap;
  Vec3<Real> normal;
  LineTouch<Real> touch;
};

template <class Real>
BACKDRIVE_INLINE LineCandidate<Real> candidate(const ThickLine<Real>& line, const LineTouch<Real>& touch,
                                               const Perpendicular<Real>& p, const Real& radius) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  LineCandidate<Real> found;
  found.valid = !less(p.on_second, zero) && !less(one, p.on_second);
  found.touch = touch;
  found.normal = direction(p.area) * touch.sign;
  found.gap = -dot(found.normal, p.r) - radius - line.radius;
  return found;
}

template <class Real>
BACKDRIVE_INLINE LineCandidate<Real> line_at_side(const Shape<Real>& c, const ThickLine<Real>& line) {
  const Real one = constant<Real>(1), zero = constant<Real>(0), h = c.scale.y;
  const Perpendicular<Real> p(c.pose.origin, c.pose.axes.cz, line.start, line.way);
  // −r leads from the axis to the line
  const Real sign = select(less(zero, dot(p.area, p.r)), -one, one);
  LineCandidate<Real> found = candidate<Real>(line, {MaskOf<Real>(false), {one, one, zero}, sign}, p, c.scale.x);
  const Real least = constant<Real>(kLeastAngle * kLeastAngle) * dot(line.way, line.way);
  found.valid = found.valid && less(least, p.square) && !less(h, magnitude(p.on_first));
  return found;
}

/// Radians: what still moves by more in the last step of Newton's method is not found. Another step follows, in the
/// numbers of the point: an error of 1e-3 becomes one of 1e-6, then of 1e-12.
constexpr double kStillMoves = 1e-3;

/// `which`: −1, 1, the two places where a line passes over a rim; of a line along the axis, where it passes by. Both
/// may lead to the same place of the rim (is_same_place).
template <class Real>
BACKDRIVE_CALLED LineCandidate<Real> line_at_rim(const Shape<Real>& c, const ThickLine<Real>& line, const Real& end,
                                                 double which) {
  const Real one = constant<Real>(1), zero = constant<Real>(0), slack = constant<Real>(kSupportSlack);
  const Vec3<Real> q = local_point(c.pose, line.start), v = transposed_times(c.pose.axes, line.way);
  const Real flat = v.x * v.x + v.y * v.y, square = dot(line.way, line.way);
  const Real least = constant<Real>(kLeastAngle * kLeastAngle) * square;
  const MaskOf<Real> crosses = less(least, flat);
  // |q + s v| = R as seen along the axis, or where that is least
  const Real b = q.x * v.x + q.y * v.y, room = b * b - flat * (q.x * q.x + q.y * q.y - c.scale.x * c.scale.x);
  const Real over = (constant<Real>(which) * square_root(maximum(room, zero)) - b) / select(crosses, flat, one);
  const Real by = (end * c.scale.y - q.z) / select(crosses, one, v.z);
  const Real s = select(crosses, over, by);
  const Vec3<Real> out = direction(Vec3<Real>{q.x + s * v.x, q.y + s * v.y, zero});
  RimPoint<Real> rim(c, {end, out.x, out.y});
  constexpr int steps = 8;
  Real last = zero;
  for (int k = 0; k < steps; ++k) last = approach(c, line, rim);
  const Perpendicular<Real> p(rim.at, rim.tangent, line.start, line.way);
  const Vec3<Real> outward = rim.radial + c.pose.axes.cz * end;
  const Real sign = select(less(dot(p.area, outward), zero), -one, one);
  LineCandidate<Real> found = candidate<Real>(line, {MaskOf<Real>(true), rim.place(c, end), sign}, p, zero);
  found.valid = found.valid && less(magnitude(last), constant<Real>(kStillMoves)) && less(least, p.square) &&
                !less(dot(found.normal, rim.radial), -slack) && !less(end * dot(found.normal, c.pose.axes.cz), -slack);
  return found;
}

template <class Real>
BACKDRIVE_INLINE LineTouch<Real> choose(const MaskOf<Real>& mask, const LineTouch<Real>& yes,
                                        const LineTouch<Real>& no) {
  return {chosen(mask, yes.at_rim, no.at_rim), choose(mask, yes.place, no.place), select(mask, yes.sign, no.sign)};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
