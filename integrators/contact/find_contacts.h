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

/// About a shape that nothing has moved. `next`: on its link.
template <class Real, class Const>
BACKDRIVE_INLINE ShapeBall<Real> ball_of(const Geometry<ScalarOf<Real>>& geometry, const ShapeConstants<Const>& c,
                                         const Real& dt, int next) {
  const Vec3<Real> scale = broadcast<Real>(c.scale);
  ShapeBall<Real> ball;
  ball.capsule = geometry.kind == GeometryType::capsule;
  ball.next = next;
  ball.extent = bounding_radius(geometry, scale);
  ball.radius = ball.capsule ? scale.x : ball.extent;
  ball.lever = constant<Real>(0);
  ball.centre = ball.place = broadcast<Real>(c.position);
  ball.half = ball.axis = ball.capsule ? broadcast<Real>(c.rotation).cz * scale.y : zero3<Real>();
  ball.reach = ball.still_reach = broadcast<Real>(c.margin) + dt * constant<Real>(kPush / 2);
  return ball;
}

/// What of balls and pairs no step changes; the balls of the world's shapes are done with that. Once per rollout.
template <class Space>
BACKDRIVE_HD void plan_contacts(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  space.touching_count = space.contact_count = 0;
  for (int i = 0; i < space.link_count; ++i) {
    space.first_shape[i] = -1;
    space.link[i].touched = false;
  }
  for (int k = space.shape_count - 1; k >= 0; --k) {
    const int link = carrier_of(ws, k).link;
    space.balls[k] =
        ball_of<Real>(space.geometry[k], space.constants[k], ws.dt, link < 0 ? -1 : space.first_shape[link]);
    if (link >= 0) space.first_shape[link] = k;
  }
  int root_a = -1, root_b = -1;
  for (int k = 0; k < space.pair_count; ++k) {
    const ContactPair& pair = space.pairs[k];
    const int of_a = carrier_of(ws, pair.a).root, of_b = carrier_of(ws, pair.b).root;
    space.plans[k] = {space.geometry[pair.b].kind == GeometryType::plane,
                      space.balls[pair.a].capsule || space.balls[pair.b].capsule, of_a != root_a || of_b != root_b};
    root_a = of_a, root_b = of_b;
  }
}

/// visit(ball) of the shapes on a link.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_ball_on(Space& ws, int link, const Visit& visit) {
  auto* const balls = ws.contact.balls;
  for (int k = ws.contact.first_shape[link]; k >= 0;) {
    auto& ball = balls[k];
    k = ball.next;
    visit(ball);
  }
}

/// Where balls of a link's shapes are, from its pose and its twist v at the step's start. Points move by no more than
/// what the twists before and after the smooth motion make of the farthest one from O, |v| + |ω| (|c| + r), in sums of
/// magnitudes: here twice the start's, in widen_balls() what that motion adds. O(shapes on it).
template <class Space, class Pose>
BACKDRIVE_INLINE void place_balls(Space& ws, int link, const Pose& pose, const Spatial<typename Space::Real>& v) {
  using Real = typename Space::Real;
  const Real time = ws.dt * constant<Real>(2);
  each_ball_on(
      ws, link, [&](ShapeBall<Real> & ball) __attribute__((always_inline)) {
        ball.centre = plus_times(pose.origin, pose.axes, ball.place);
        ball.lever = ball.extent + sum_of_magnitudes(ball.centre);
        ball.reach = ball.still_reach + time * (sum_of_magnitudes(v.lin) + sum_of_magnitudes(v.ang) * ball.lever);
        if (ball.capsule) ball.half = pose.axes * ball.axis;
      });
}
/// `change`: of the link's twist, in the smooth motion.
template <class Space>
BACKDRIVE_INLINE void widen_balls(Space& ws, int link, const Spatial<typename Space::Real>& change) {
  using Real = typename Space::Real;
  each_ball_on(
      ws, link, [&](ShapeBall<Real> & ball) __attribute__((always_inline)) {
        ball.reach += ws.dt * (sum_of_magnitudes(change.lin) + sum_of_magnitudes(change.ang) * ball.lever);
      });
}

/// Whether points of two shapes may come to touch within the step in any lane: a ball or capsule about the first
/// against one about the second, or against its plane of this normal. `capsules`: there are some. Two are no nearer
/// than along the line between their centres, d/|d|: d·d − |d·half_a| − |d·half_b| over |d|, less the radii. O(1).
template <class Real>
BACKDRIVE_INLINE bool may_meet(const ShapeBall<Real>& a, const ShapeBall<Real>& b, const Vec3<Real>& apart,
                               bool capsules, const Vec3<Real>* plane_normal) {
  const Real near = a.radius + (a.reach + b.reach);
  if (plane_normal) {
    Real lowest = dot(*plane_normal, apart);
    if (capsules) lowest -= magnitude(dot(*plane_normal, a.half));
    return any(!(value_of(lowest) > value_of(near)));
  }
  const Real zero = constant<Real>(0), sum = near + b.radius, square = dot(apart, apart);
  Real along = square;
  if (capsules) along -= magnitude(dot(apart, a.half)) + magnitude(dot(apart, b.half));
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
    // The gap that half the step leads to, less what that makes of it.
    ContactPoint<Real>& p = space.points[k];
    p.gap = p.gap - dot(p.normal, A.shift_of(p.point) - B.shift_of(p.point));
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

/// Where a contact is one: it may be in the list for other lanes.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> in_reach(const Contact<Real>& c) {
  return value_of(c.state.depth) > value_of(constant<Real>(0.5 * kOutOfReach));
}

/// For how many steps links keep what contacts are made of after balls met.
constexpr int kStaysClose = 8;

/// Contacts of this step, of which balls say where the shapes are; prepare() is called before the first is sought.
/// False: some may come to touch, but the links have not kept what contacts are made of. They do from now on, and the
/// step has to begin anew.
template <class Space, class Prepare>
BACKDRIVE_HD bool find_contacts(Space& ws, const Prepare& prepare) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  for (int k = 0; k < space.touching_count; ++k) {
    const TouchingPair<Real>& pair = space.touching[k];
    space.link[pair.i].touched = false;
    if (pair.j >= 0) space.link[pair.j].touched = false;
  }
  space.touching_count = space.contact_count = 0;
  const bool kept = keeps_for_contact(ws);
  bool prepared = false;
  if (space.close > 0) --space.close;
  Vec3<Real> shift = zero3<Real>();  // between the two trees
  for (int k = 0; k < space.pair_count; ++k) {
    if (space.plans[k].new_trees) {
      const int of_a = carrier_of(ws, space.pairs[k].a).root, of_b = carrier_of(ws, space.pairs[k].b).root;
      shift = of_a == of_b ? zero3<Real>() : tree_origin(ws, of_a) - tree_origin(ws, of_b);
    }
    const ContactPair& pair = space.pairs[k];
    const ShapeBall<Real>&a = space.balls[pair.a], &b = space.balls[pair.b];
    const PairPlan& plan = space.plans[k];
    const Vec3<Real> normal = broadcast<Real>(space.constants[pair.b].rotation).cz;  // planes belong to the world
    if (!may_meet(a, b, a.centre - b.centre + shift, plan.capsules, plan.plane ? &normal : nullptr)) continue;
    space.close = kStaysClose;
    if (!kept) return false;
    if (!prepared) prepare();
    prepared = true;
    find_points_of(ws, k, shift_on_way(ws, carrier_of(ws, pair.a).root, carrier_of(ws, pair.b).root),
                   a.reach + b.reach);
  }
  return true;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
