#pragma once
// Which points of which pairs may touch within a step: docs/contact.md, "Out of reach".
//
// Points that cannot come to touch in this step are left out, group by group; lane by lane they count as far apart, so
// that a world's numbers do not depend on those beside it.
#include "integrators/contact/near_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Depth of what is out of reach, m.
constexpr double kOutOfReach = -1e6;

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
  for (int k = 0; k < space.pair_count; ++k) {
    const ContactPair& pair = space.pairs[k];
    const GeometryType of_a = space.geometry[pair.a].kind, of_b = space.geometry[pair.b].kind;
    const bool boxes = !is_ground(of_b) && (has_box(of_a) || has_box(of_b));
    const int root_a = carrier_of(ws, pair.a).root, root_b = carrier_of(ws, pair.b).root;
    const bool own = root_a == root_b, capsules = space.balls[pair.a].capsule || space.balls[pair.b].capsule;
    space.plans[k] = {of_b == GeometryType::plane, capsules, boxes, own, root_a, root_b};
    if (own) space.balls[pair.a].meets_own = space.balls[pair.b].meets_own = true;
    if (boxes) space.balls[pair.a].boxed = has_box(of_a), space.balls[pair.b].boxed = has_box(of_b);
  }
  for (int k = 0; k < space.shape_count; ++k) {
    if (space.balls[k].boxed) space.box_axes[k] = broadcast<Real>(space.constants[k].rotation);
  }
  begin_near_pairs(ws);
}

/// What a pair may touch within the step at most, and if nothing pushes it.
template <class Real>
struct PairReach {
  Real pushed, alone;

  BACKDRIVE_INLINE PairReach(const ShapeBall<Real>& a, const ShapeBall<Real>& b, bool own, const Real& dt)
      : pushed(own ? a.own_reach + b.own_reach : a.reach + b.reach), alone(pushed - dt * constant<Real>(kPush)) {}
};

/// The points of one pair that are in reach in the lanes where its bounds meet and something is `acting`, appended:
/// gaps of what is apart may be less than distances, and no lane may know of a pair by another. Whether one is, of a
/// pair that nothing pushes.
template <class Space>
BACKDRIVE_CALLED bool find_points_of(Space& ws, const MeetingPair<typename Space::Real>& meeting,
                                     const MaskOf<typename Space::Real>& acting) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const int number = meeting.number;
  const auto lanes = meeting.lanes && acting;
  const ContactPair& shapes = space.pairs[number];
  const Vec3<Real> shift = shift_on_way(ws, carrier_of(ws, shapes.a).root, carrier_of(ws, shapes.b).root);
  const auto &ga = space.geometry[shapes.a], &gb = space.geometry[shapes.b];
  const PairReach<Real> reach(space.balls[shapes.a], space.balls[shapes.b], space.plans[number].own, ws.dt);
  const TurningShape<Real> A = turning_shape(ws, shapes.a, zero3<Real>()), B = turning_shape(ws, shapes.b, shift);
  contact_points<Real>({ga, A.end}, {gb, B.end}, space.points);
  const int count = contact_count(ga, gb);
  for (int k = 0; k < count; ++k) {
    // The gap that half the step leads to, less what that makes of it.
    ContactPoint<Real>& p = space.points[k];
    p.gap = p.gap - dot(p.normal, A.shift_of(p.point) - B.shift_of(p.point));
  }
  const auto near = [&](int k) { return lanes && value_of(space.points[k].gap) < value_of(reach.pushed); };
  int first = 0;
  while (first < count && !any(near(first))) ++first;
  if (first == count) return false;
  TouchingPair<Real>& pair = space.touching[space.touching_count];
  pair = touching_pair(ws, number, shift);
  const Real margin = space.constants[pair.a].margin + space.constants[pair.b].margin;
  pair.law.turns = TurnLoss<Real>::has(A, ga) || TurnLoss<Real>::has(B, gb);
  if (pair.law.turns) pair.law.material.turn_loss = turn_loss(A, ga, ws.dt) + turn_loss(B, gb, ws.dt);
  const Spatial<Real> start = relative(pair, [&](int i) { return start_of(ws, i); });
  const Spatial<Real> smooth = relative(pair, [&](int i) { return space.link[i].smooth; });
  bool alone = false;
  for (int k = first; k < count; ++k) {
    const ContactPoint<Real>& p = space.points[k];
    const auto in_reach = near(k);
    if (!any(in_reach)) continue;
    alone = alone || any(in_reach && value_of(p.gap) < value_of(reach.alone));
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
  return alone;
}

/// Where a contact is one: it may be in the list for other lanes.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> in_reach(const Contact<Real>& c) {
  return value_of(c.state.depth) > value_of(constant<Real>(0.5 * kOutOfReach));
}

/// No contacts.
template <class Space>
BACKDRIVE_INLINE void forget_contacts(Space& ws) {
  auto& space = ws.contact;
  for (int k = 0; k < space.touching_count; ++k) {
    const TouchingPair<typename Space::Real>& pair = space.touching[k];
    space.link[pair.i].touched = false;
    if (pair.j >= 0) space.link[pair.j].touched = false;
  }
  space.touching_count = space.contact_count = 0;
}

/// Puts the pairs that may touch in this step into meeting[]. In which lanes some may though nothing pushes them: in
/// others none does, as nothing pushes anything there.
template <class Space>
BACKDRIVE_INLINE MaskOf<typename Space::Real> find_meeting_pairs(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  update_near_pairs(ws);
  space.meeting_count = 0;
  const Real zero = constant<Real>(0);
  auto acting = value_of(zero) < value_of(zero);
  int root_a = -1, root_b = -1, plane = -1;
  Vec3<Real> shift = zero3<Real>();  // between two trees
  PlaneBelow<Real> below{shift, zero};
  for (int n = 0; n < space.near_count; ++n) {
    const int k = space.near_pairs[n];
    const ContactPair& pair = space.pairs[k];
    const PairPlan& plan = space.plans[k];
    const ShapeBall<Real>&a = space.balls[pair.a], &b = space.balls[pair.b];
    if (!plan.own && (plan.root_a != root_a || plan.root_b != root_b)) {
      root_a = plan.root_a, root_b = plan.root_b, plane = -1;
      shift = tree_origin(ws, root_a) - tree_origin(ws, root_b);
    }
    if (plan.plane && pair.b != plane) {
      plane = pair.b;
      below.normal = plane_normal(ws, plane);
      below.height = dot(below.normal, shift - b.centre);
    }
    const PairReach<Real> reach(a, b, plan.own, ws.dt);
    if (plan.plane) {
      const auto lanes = below.may_meet(a, reach.pushed, plan.capsules);
      if (!any(lanes)) continue;
      space.meeting[space.meeting_count++] = {k, lanes};
      acting = acting || below.may_meet(a, reach.alone, plan.capsules);
      continue;
    }
    const Vec3<Real> between = a.centre - b.centre, apart = plan.own ? between : between + shift;
    auto lanes = may_meet(a, b, apart, reach.pushed, plan.capsules);
    if (!any(lanes)) continue;
    auto alone = may_meet(a, b, apart, reach.alone, plan.capsules);
    if (plan.boxes) {
      const Real gap = gap_of_boxes(ws, pair.a, pair.b, apart);
      lanes = lanes && !(value_of(gap) > value_of(reach.pushed));
      if (!any(lanes)) continue;
      alone = alone && !(value_of(gap) > value_of(reach.alone));
    }
    space.meeting[space.meeting_count++] = {k, lanes};
    acting = acting || alone;
  }
  return acting;
}

/// For how many steps links keep what contacts are made of after balls met.
constexpr int kStaysClose = 8;

/// Contacts of this step, of which balls say where the shapes are; prepare() is called before the first is sought.
/// False: some may come to touch, but the links have not kept what contacts are made of. They do from now on, and the
/// step has to begin anew.
template <class Space, class Prepare>
BACKDRIVE_HD bool find_contacts(Space& ws, const Prepare& prepare) {
  auto& space = ws.contact;
  forget_contacts(ws);
  const bool kept = keeps_for_contact(ws);
  if (space.close > 0) --space.close;
  if (!space.sought) return true;
  const auto acting = find_meeting_pairs(ws);
  if (!any(acting)) return true;
  space.close = kStaysClose;
  if (!kept) return false;
  prepare();
  bool alone = false;
  for (int n = 0; n < space.meeting_count; ++n) {
    alone = find_points_of(ws, space.meeting[n], acting) || alone;
  }
  if (!alone) forget_contacts(ws);
  return true;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
