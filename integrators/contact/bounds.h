#pragma once
// Bounds that leave a pair of shapes out of a step before its points are sought: a ball about each shape, or a capsule
// itself, and an oriented box about what is neither. docs/contact.md, "Out of reach".
#include "engine/magnitude.h"
#include "integrators/contact/space.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Beyond what they move by themselves, points come closer by being pushed: by no more than this, m/s, half of it for
/// each of two shapes.
constexpr double kPush = 10;

/// Whether a shape that is no ball and no capsule has a box that holds it, about its centre and along its axes.
BACKDRIVE_HD constexpr bool has_box(GeometryType kind) {
  return kind == GeometryType::box || kind == GeometryType::cylinder || kind == GeometryType::ellipsoid ||
         kind == GeometryType::mesh;
}
/// Half the edges of that, of scale s.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> half_edges(const Geometry<ScalarOf<Real>>& geometry, const Vec3<Real>& s) {
  if (geometry.kind == GeometryType::cylinder) return {s.x, s.x, s.y};
  if (geometry.kind != GeometryType::mesh) return s;
  return {s.x * geometry.half[0], s.y * geometry.half[1], s.z * geometry.half[2]};
}

/// Radius of a ball about the shape's centre that holds it; negative: none does.
template <class Real>
BACKDRIVE_INLINE Real bounding_radius(const Geometry<ScalarOf<Real>>& geometry, const Vec3<Real>& s) {
  switch (geometry.kind) {
    case GeometryType::sphere:
      return s.x;
    case GeometryType::capsule:
      return s.x + s.y;
    case GeometryType::cylinder:
      return square_root(s.x * s.x + s.y * s.y);
    case GeometryType::ellipsoid:
      return maximum(s.x, maximum(s.y, s.z));
    case GeometryType::box:
      return square_root(dot(s, s));
    case GeometryType::mesh: {
      const Vec3<Real> half = half_edges<Real>(geometry, s);
      return square_root(dot(half, half));
    }
    case GeometryType::plane:
    case GeometryType::height_field:
      break;
  }
  return constant<Real>(-1);
}

template <class Real>
BACKDRIVE_INLINE Real sum_of_magnitudes(const Vec3<Real>& v) {
  return magnitude(v.x) + magnitude(v.y) + magnitude(v.z);
}

/// About a shape that nothing has moved. `next`: on its link.
template <class Real, class Const>
BACKDRIVE_INLINE ShapeBall<Real> ball_of(const Geometry<ScalarOf<Real>>& geometry, const ShapeConstants<Const>& c,
                                         const Real& dt, int next) {
  const Vec3<Real> scale = broadcast<Real>(c.scale);
  ShapeBall<Real> ball;
  ball.capsule = geometry.kind == GeometryType::capsule;
  ball.boxed = ball.meets_own = false;
  ball.next = next;
  ball.extent = bounding_radius(geometry, scale);
  ball.radius = ball.capsule ? scale.x : ball.extent;
  ball.lever = constant<Real>(0);
  ball.centre = ball.place = broadcast<Real>(c.position);
  ball.half = ball.axis = ball.capsule ? broadcast<Real>(c.rotation).cz * scale.y : zero3<Real>();
  ball.reach = ball.still_reach = broadcast<Real>(c.margin) + dt * constant<Real>(kPush / 2);
  return ball;
}

/// visit(shape, its ball) of the shapes on a link.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_ball_on(Space& ws, int link, const Visit& visit) {
  auto* const balls = ws.contact.balls;
  for (int k = ws.contact.first_shape[link]; k >= 0;) {
    const int shape = k;
    k = balls[shape].next;
    visit(shape, balls[shape]);
  }
}

/// How fast points of a shape may be at most, with this twist.
template <class Real>
BACKDRIVE_INLINE Real greatest_speed(const ShapeBall<Real>& ball, const Spatial<Real>& twist) {
  return sum_of_magnitudes(twist.lin) + sum_of_magnitudes(twist.ang) * ball.lever;
}
/// Where balls of a link's shapes are, from its pose and its twist v at the step's start. Points move by no more than
/// what the twists before and after the smooth motion make of the farthest one from O, |v| + |ω| (|c| + r), in sums of
/// magnitudes: here twice the start's, in widen_balls() what that motion adds. Towards shapes of the same tree what all
/// of it does alike, ContactSpace::common, brings them no closer. O(shapes on it).
template <class Space, class Pose>
BACKDRIVE_INLINE void place_balls(Space& ws, int link, const Pose& pose, const Spatial<typename Space::Real>& v) {
  using Real = typename Space::Real;
  if (!ws.contact.sought) return;
  const Real time = ws.dt * constant<Real>(2);
  each_ball_on(
      ws, link, [&](int shape, ShapeBall<Real>& ball) __attribute__((always_inline)) {
        ball.centre = plus_times(pose.origin, pose.axes, ball.place);
        ball.lever = ball.extent + sum_of_magnitudes(ball.centre);
        ball.reach = ball.still_reach + time * greatest_speed(ball, v);
        if (ball.capsule) ball.half = pose.axes * ball.axis;
        if (ball.boxed) ws.contact.box_axes[shape] = pose.axes * ws.contact.constants[shape].rotation;
        if (ball.meets_own) ball.own_reach = ball.still_reach + time * greatest_speed(ball, v - ws.contact.common);
      });
}
/// `change`: of the link's twist, in the smooth motion; ContactSpace::common: of its tree's root.
template <class Space>
BACKDRIVE_INLINE void widen_balls(Space& ws, int link, const Spatial<typename Space::Real>& change) {
  using Real = typename Space::Real;
  if (!ws.contact.sought) return;
  each_ball_on(
      ws, link, [&](int, ShapeBall<Real>& ball) __attribute__((always_inline)) {
        ball.reach += ws.dt * greatest_speed(ball, change);
        if (ball.meets_own) ball.own_reach += ws.dt * greatest_speed(ball, change - ws.contact.common);
      });
}

/// In which lanes balls of these radii, whose centres are `apart`, may be nearer than `reach` to each other; negative
/// `other`: to what has no bound. halves(direction): by how much more both go there than balls. O(1).
template <class Real, class Halves>
BACKDRIVE_INLINE MaskOf<Real> may_meet(const Real& radius, const Real& other, const Vec3<Real>& apart,
                                       const Real& reach, const Halves& halves) {
  const Real zero = constant<Real>(0), sum = radius + reach + other, square = dot(apart, apart);
  const Real along = square - halves(apart);
  const auto boundless = value_of(other) < value_of(zero);
  const auto apart_by_more = value_of(along) > value_of(zero) && value_of(along * along) > value_of(sum * sum * square);
  return boundless || !apart_by_more;
}
/// The same of two shapes by their balls or capsules. `capsules`: there are some. Two are no nearer than along the line
/// between their centres, d/|d|: d·d − |d·half_a| − |d·half_b| over |d|, less the radii.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> may_meet(const ShapeBall<Real>& a, const ShapeBall<Real>& b, const Vec3<Real>& apart,
                                       const Real& reach, bool capsules) {
  return may_meet(
      a.radius, b.radius, apart, reach, [&](const Vec3<Real>& way) __attribute__((always_inline)) {
        return capsules ? magnitude(dot(way, a.half)) + magnitude(dot(way, b.half)) : constant<Real>(0);
      });
}
/// A plane as a tree sees it.
template <class Real>
struct PlaneBelow {
  Vec3<Real> normal;
  Real height;  ///< of the tree's O above it

  /// In which lanes a ball or capsule of the tree may be nearer than `reach` to it. O(1).
  BACKDRIVE_INLINE MaskOf<Real> may_meet(const ShapeBall<Real>& a, const Real& reach, bool capsule) const {
    const Real centre = dot(normal, a.centre) + height;
    const Real lowest = capsule ? centre - magnitude(dot(normal, a.half)) : centre;
    return !(value_of(lowest) > value_of(a.radius + reach));
  }
};

/// Of a plane; they belong to the world.
template <class Space>
BACKDRIVE_INLINE Vec3<typename Space::Real> plane_normal(const Space& ws, int shape) {
  return broadcast<typename Space::Real>(ws.contact.constants[shape].rotation).cz;
}

/// A box about a shape: its axes are columns.
template <class Real>
struct ShapeBox {
  Mat3<Real> axes;
  Vec3<Real> half;
};
template <class Space>
BACKDRIVE_INLINE ShapeBox<typename Space::Real> box_of(const Space& ws, int shape) {
  using Real = typename Space::Real;
  return {ws.contact.box_axes[shape],
          half_edges<Real>(ws.contact.geometry[shape], broadcast<Real>(ws.contact.constants[shape].scale))};
}

template <class Real>
BACKDRIVE_INLINE Vec3<Real> magnitudes(const Vec3<Real>& v) {
  return {magnitude(v.x), magnitude(v.y), magnitude(v.z)};
}
/// How far a box, a ball or a capsule goes from its centre along the axes of another box.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> extents(const ShapeBall<Real>& ball, const ShapeBox<Real>* box, const Mat3<Real>& axes) {
  if (!box) {
    const Vec3<Real> half = magnitudes(transposed_times(axes, ball.half));
    return {half.x + ball.radius, half.y + ball.radius, half.z + ball.radius};
  }
  return magnitudes(transposed_times(axes, box->axes.cx)) * box->half.x +
         magnitudes(transposed_times(axes, box->axes.cy)) * box->half.y +
         magnitudes(transposed_times(axes, box->axes.cz)) * box->half.z;
}
/// How far a box is from another shape along one of its axes, at best; negative: along none.
template <class Real>
BACKDRIVE_INLINE Real gap_along(const ShapeBox<Real>& box, const Vec3<Real>& apart, const ShapeBall<Real>& other,
                                const ShapeBox<Real>* other_box) {
  const Vec3<Real> gap = magnitudes(transposed_times(box.axes, apart)) - box.half - extents(other, other_box, box.axes);
  return maximum(gap.x, maximum(gap.y, gap.z));
}

/// How far the boxes about two shapes, of which one has one at least, are apart along an axis of theirs; negative: they
/// may overlap. O(1).
template <class Space>
BACKDRIVE_CALLED typename Space::Real gap_of_boxes(const Space& ws, int a, int b,
                                                   const Vec3<typename Space::Real>& apart) {
  using Real = typename Space::Real;
  const ShapeBall<Real>&of_a = ws.contact.balls[a], &of_b = ws.contact.balls[b];
  if (of_a.boxed && of_b.boxed) {
    const ShapeBox<Real> box_a = box_of(ws, a), box_b = box_of(ws, b);
    return maximum(gap_along(box_a, apart, of_b, &box_b), gap_along(box_b, apart, of_a, &box_a));
  }
  if (of_a.boxed) return gap_along<Real>(box_of(ws, a), apart, of_b, nullptr);
  return gap_along<Real>(box_of(ws, b), apart, of_a, nullptr);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
