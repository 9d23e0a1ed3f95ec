#pragma once
// Which points of which pairs may touch within a step: docs/contact.md, "Out of reach".
//
// Points that cannot come to touch in this step are left out, group by group; lane by lane they count as far apart, so
// that a world's numbers do not depend on those beside it.
#include "engine/magnitude.h"
#include "integrators/contact/space.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Depth of what is out of reach, m.
constexpr double kOutOfReach = -1e6;
/// Beyond what they move by themselves, points come closer by being pushed: by no more than this, m/s, half of it for
/// each of two shapes.
constexpr double kPush = 10;

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
      const Vec3<Real> half{s.x * geometry.half[0], s.y * geometry.half[1], s.z * geometry.half[2]};
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

/// From a shape's centre to the middle of its end, in the axes that it is placed in; zero of all but capsules.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> half_length(const Geometry<ScalarOf<Real>>& geometry, const Mat3<Real>& axes,
                                        const Vec3<Real>& scale) {
  return geometry.kind == GeometryType::capsule ? axes.cz * scale.y : zero3<Real>();
}

/// About a shape where it is; it reaches nothing beyond.
template <class Real>
BACKDRIVE_INLINE ShapeBall<Real> ball_of(const Geometry<ScalarOf<Real>>& geometry, const Shape<Real>& shape) {
  const Real extent = bounding_radius(geometry, shape.scale);
  return {shape.pose.origin, half_length(geometry, shape.pose.axes, shape.scale),
          geometry.kind == GeometryType::capsule ? shape.scale.x : extent, extent, constant<Real>(0)};
}

/// What of balls and pairs no step changes; the balls of the world's shapes are done with that. Once per rollout.
template <class Space>
BACKDRIVE_HD void plan_contacts(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  for (int k = 0; k < space.shape_count; ++k) {
    const auto& c = space.constants[k];
    space.balls[k] = ball_of<Real>(
        space.geometry[k], {{broadcast<Real>(c.rotation), broadcast<Real>(c.position)}, broadcast<Real>(c.scale)});
    space.balls[k].reach = broadcast<Real>(c.margin) + ws.dt * constant<Real>(kPush / 2);
  }
  int root_a = -1, root_b = -1;
  for (int k = 0; k < space.pair_count; ++k) {
    const ContactPair& pair = space.pairs[k];
    const int of_a = carrier_of(ws, pair.a).root, of_b = carrier_of(ws, pair.b).root;
    space.plans[k] = {space.geometry[pair.b].kind == GeometryType::plane, of_a != root_a || of_b != root_b};
    root_a = of_a, root_b = of_b;
  }
}

/// Where the ball of one shape is. Its points move by no more than what the link's twists, before and after the smooth
/// motion, make of its farthest point from O: |v| + |ω| (|c| + r), in sums of magnitudes. O(1).
template <class Space>
BACKDRIVE_INLINE void move_ball(Space& ws, int shape) {
  using Real = typename Space::Real;
  const int link = carrier_of(ws, shape).link;
  if (link < 0) return;
  const auto& c = ws.contact.constants[shape];
  const auto& pose = pose_of(ws, link);
  const Spatial<Real>&start = velocity_of(ws, link), &smooth = ws.contact.link[link].smooth;
  ShapeBall<Real>& ball = ws.contact.balls[shape];
  ball.centre = plus_times(pose.origin, pose.axes, c.position);
  if (ws.contact.geometry[shape].kind == GeometryType::capsule) {
    ball.half = pose.axes * (broadcast<Real>(c.rotation).cz * c.scale.y);
  }
  const Real turning = sum_of_magnitudes(start.ang) + sum_of_magnitudes(smooth.ang);
  ball.reach =
      c.margin + ws.dt * (constant<Real>(kPush / 2) + sum_of_magnitudes(start.lin) + sum_of_magnitudes(smooth.lin) +
                          turning * (ball.extent + sum_of_magnitudes(ball.centre)));
}

/// Whether points of two shapes may come as near as `reach` in any lane: a ball or capsule about the first against one
/// about the second, or against its plane of this normal. Two capsules are no nearer than along the line between their
/// centres, d/|d|: d·d − |d·half_a| − |d·half_b| over |d|, less the radii. O(1).
template <class Real>
BACKDRIVE_INLINE bool may_meet(const ShapeBall<Real>& a, const ShapeBall<Real>& b, const Vec3<Real>& apart,
                               const Vec3<Real>* plane_normal, const Real& reach) {
  const Real near = a.radius + reach;
  if (plane_normal) {
    const Real lowest = dot(*plane_normal, apart) - magnitude(dot(*plane_normal, a.half));
    return any(!(value_of(lowest) > value_of(near)));
  }
  const Real zero = constant<Real>(0), sum = near + b.radius, square = dot(apart, apart);
  const Real along = square - magnitude(dot(apart, a.half)) - magnitude(dot(apart, b.half));
  const auto boundless = value_of(b.radius) < value_of(zero);
  const auto apart_by_more = value_of(along) > value_of(zero) && value_of(along * along) > value_of(sum * sum * square);
  return any(boundless || !apart_by_more);
}

/// The points of one pair that are in reach, appended.
template <class Space>
BACKDRIVE_CALLED void find_points_of(Space& ws, int number, const Vec3<typename Space::Real>& shift,
                                     const typename Space::Real& reach) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const ContactPair& shapes = space.pairs[number];
  const auto &ga = space.geometry[shapes.a], &gb = space.geometry[shapes.b];
  const TurningShape<Real> A = turning_shape(ws, shapes.a, zero3<Real>()), B = turning_shape(ws, shapes.b, shift);
  contact_points<Real>({ga, A.end}, {gb, B.end}, space.points);
  const int count = contact_count(ga, gb);
  for (int k = 0; k < count; ++k) {
    // The gap that half the turns lead to, less what they make of it.
    ContactPoint<Real>& p = space.points[k];
    p.gap = p.gap - dot(p.normal, A.turn.shift_of(p.point) - B.turn.shift_of(p.point));
  }
  const auto near = [&](int k) { return value_of(space.points[k].gap) < value_of(reach); };
  int first = 0;
  while (first < count && !any(near(first))) ++first;
  if (first == count) return;
  TouchingPair<Real>& pair = space.touching[space.touching_count];
  pair = touching_pair(ws, number, shift);
  const Real margin = space.constants[pair.a].margin + space.constants[pair.b].margin;
  const Spatial<Real> start = relative(pair, [&](int i) { return start_of(ws, i); });
  const Spatial<Real> smooth = relative(pair, [&](int i) { return space.link[i].smooth; });
  for (int k = first; k < count; ++k) {
    const ContactPoint<Real>& p = space.points[k];
    const auto in_reach = near(k);
    if (!any(in_reach)) continue;
    Contact<Real>& c = space.contacts[space.contact_count++];
    c.point = k;
    c.position = p.point;
    c.state = {select(in_reach, margin - p.gap, constant<Real>(kOutOfReach)), p.normal, twist_at(start, p.point),
               twist_at(smooth, p.point)};
    c.idle = c.still = false;
    ++pair.count;
  }
  ++space.touching_count;
  space.link[pair.i].touched = true;
  if (pair.j >= 0) space.link[pair.j].touched = true;
}

/// The same of a pair that may be far apart. shift: from O of the second body's tree to that of the first's.
template <class Space>
BACKDRIVE_INLINE void find_contacts_of(Space& ws, int number, const Vec3<typename Space::Real>& shift) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const ContactPair& pair = space.pairs[number];
  const ShapeBall<Real>&a = space.balls[pair.a], &b = space.balls[pair.b];
  const Real reach = a.reach + b.reach;
  const Vec3<Real> normal = broadcast<Real>(space.constants[pair.b].rotation).cz;  // planes belong to the world
  if (may_meet(a, b, a.centre - b.centre + shift, space.plans[number].plane ? &normal : nullptr, reach)) {
    find_points_of(ws, number, shift, reach);
  }
}

/// Where a contact is one: it may be in the list for other lanes.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> in_reach(const Contact<Real>& c) {
  return value_of(c.state.depth) > value_of(constant<Real>(0.5 * kOutOfReach));
}

/// Contacts of this step. False: there are none in any lane.
template <class Space>
BACKDRIVE_HD bool find_contacts(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  space.touching_count = space.contact_count = 0;
  for (int i = 0; i < space.link_count; ++i) space.link[i].touched = false;
  for (int k = 0; k < space.shape_count; ++k) move_ball(ws, k);
  Vec3<Real> shift = zero3<Real>();  // between the two trees
  for (int k = 0; k < space.pair_count; ++k) {
    if (space.plans[k].new_trees) {
      const int of_a = carrier_of(ws, space.pairs[k].a).root, of_b = carrier_of(ws, space.pairs[k].b).root;
      shift = of_a == of_b ? zero3<Real>() : tree_origin(ws, of_a) - tree_origin(ws, of_b);
    }
    find_contacts_of(ws, k, shift);
  }
  return space.contact_count > 0;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
