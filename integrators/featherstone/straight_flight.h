#pragma once
// Trees that whip, and that nothing holds, fly on straight as a whole: equation (27) of docs/theory.md.
//
// Velocities are those of where links are at the start of a step, and q ⊕ Δt v_d carries links round on arcs: where one
// turns by φ in it, all that hangs on it comes out ½ φ² of its length off the way that momentum takes. In chains that
// whip that adds up, as they turn the same way for long, and lifts them. So the root is put where the common centre of
// mass has gone as v_d says, by the share λ.
#include "integrators/featherstone/whip.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// visit(root, end) for each tree that whips in some lane, and that nothing holds.
template <class Layout, class Visit>
BACKDRIVE_INLINE void each_straight_flight(const Workspace<Layout>& ws, const Visit& visit) {
  if (!ws.middle.whips) return;
  each_tree(ws, [&](int root, int end) {
    if (ws.links[root].way < 0 || ws.links[root].type != JointType::free) return;
    if (any(value_of(ws.middle.whip[root]) > value_of(constant<typename Layout::Real>(0)))) visit(root, end);
  });
}

/// One link, from its parent's; v_d of its joint in `rates`.
template <class Joint, class Layout>
BACKDRIVE_PART void fly_link(const Workspace<Layout>& ws, int i, const typename Layout::Real* rates,
                             const FlyingLink<typename Layout::Real>& parent, FlyingLink<typename Layout::Real>& own) {
  using Real = typename Layout::Real;
  const JointPosition<Joint, Real> at(ws.q + ws.links[i].q);
  PlacedLink<Real> placed;
  place_link<Joint>(ws, i, at, parent.start, placed);
  own.start.axes = placed.axes, own.start.origin = placed.origin;
  own.v = moved_by<Joint>(parent.v, placed, rates);
  if (Joint::fixed_in_world) own.v.lin = zero3<Real>();  // O goes along
  place_link<Joint>(ws, i, at.moved(rates, ws.dt), parent.end, placed);
  own.end.axes = placed.axes, own.end.origin = placed.origin;
}

/// What a body's centre of mass comes to lie short of where its velocity at the start leads.
template <class Real, class Const>
BACKDRIVE_INLINE Vec3<Real> short_of_flight(const FlyingLink<Real>& link, const LinkConstants<Const>& c,
                                            const Real& dt) {
  const Vec3<Real> start = plus_times(link.start.origin, link.start.axes, c.com);
  const Vec3<Real> end = plus_times(link.end.origin, link.end.axes, c.com);
  return start - end + plus_cross(link.v.lin, link.v.ang, start) * dt;
}

/// Of a tree, Σ m and Σ m (c + Δt ċ − c⁺), world axes; `moved`: v_d; visit(i, link).
template <class Real>
struct TreeFlight {
  Real mass;
  Vec3<Real> moment;

  /// What the common centre of mass is short of.
  BACKDRIVE_INLINE Vec3<Real> shift() const { return moment * (constant<Real>(1) / mass); }
};
template <class Layout, class Visit>
BACKDRIVE_HD TreeFlight<typename Layout::Real> fly_tree(const Workspace<Layout>& ws, int root, int end,
                                                        const typename Layout::Real* moved, const Visit& visit) {
  using Real = typename Layout::Real;
  static_assert(sizeof(FlyingLink<Real>) <= kStackNumbers<Real> * sizeof(Real));
  const Pose<Real> at_rest{identity3<Real>(), zero3<Real>()};
  FlyingLink<Real> parent{at_rest, at_rest, zero6<Real>()};
  TreeFlight<Real> flight{constant<Real>(0), zero3<Real>()};
  Stack<FlyingLink<Real>> branchings(ws.stack);
  for (int i = root; i < end; ++i) {
    const Link& link = ws.links[i];
    if (i > root && link.parent != i - 1) parent = link.last_child ? branchings.pop() : branchings.last();
    FlyingLink<Real> own;
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          fly_link<decltype(joint)>(ws, i, moved + link.v, parent, own);
        });
    const auto& c = ws.constants[i];
    flight.mass += c.mass;
    flight.moment += short_of_flight(own, c, ws.dt) * c.mass;
    visit(i, own);
    if (branches(ws.links, i)) branchings.push(own);
    parent = own;
  }
  return flight;
}

/// (27), into the rows of middle.rates that are of the roots' own way, in their joints' axes, before a step moves q on;
/// velocity.reported(row): v_d.
template <class Layout, class Velocity>
BACKDRIVE_CALLED void find_flight_shifts(Workspace<Layout>& ws, const Velocity& velocity) {
  using Real = typename Layout::Real;
  Real* const moved = ws.middle.rates;
  for (int v = 0; v < ws.nv; ++v) moved[v] = velocity.reported(v);
  each_straight_flight(ws, [&](int root, int end) {
    const TreeFlight<Real> flight = fly_tree(ws, root, end, moved, [](int, const FlyingLink<Real>&) {});
    const Vec3<Real> shift = flight.shift() * ws.middle.whip[root];
    const Vec3<Real> local = transposed_times(broadcast<Real>(ws.constants[root].rotation), shift);
    Real* const to = moved + ws.links[root].v + 3;
    to[0] = local.x, to[1] = local.y, to[2] = local.z;
  });
}
/// visit(row of q, what is to be added there, the lanes that whip), after that.
template <class Layout, class Visit>
BACKDRIVE_INLINE void each_flight_shift(const Workspace<Layout>& ws, const Visit& visit) {
  each_straight_flight(ws, [&](int root, int) {
    const Link& link = ws.links[root];
    const auto on = value_of(ws.middle.whip[root]) > value_of(constant<typename Layout::Real>(0));
    for (int k = 0; k < 3; ++k) visit(link.q + 4 + k, ws.middle.rates[link.v + 3 + k], on);
  });
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
