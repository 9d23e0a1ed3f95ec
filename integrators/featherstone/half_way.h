#pragma once
// Where contact is solved for a tree that moves: half way along the step, (C10) of docs/contact.md.
//
// A kick changes q̇, which is that of a step's middle. With places and inertias of its start, energy is off by some Δt ω
// of what is kicked: a straight chain of 20 links that fell on one end at 4 rad/s and 120/s gained a tenth. So where
// velocity terms are those of the middle (middle.h), and by the same share μ, links are taken to q_m = q ⊕ ½ μ Δt v_s
// before contacts are sought; gaps found there are counted back to the start by the twists that lead there. What rests,
// or flies alone, has μ = 0 and stays where it is, to the last bit.
#include "integrators/contact/solve.h"
#include "integrators/featherstone/middle.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Where a link's motion is, v and pose, that contact sees: in rollouts of those that have shapes.
template <class Layout>
BACKDRIVE_INLINE auto& motion_of(const Workspace<Layout>& ws, int link) {
  if constexpr (kIsAdjoint<Layout>) {
    return ws.link[link];
  } else {
    return ws.contact.link[link];
  }
}

/// q_m of a link and its twists there.
template <class Real>
struct LinkHalfWay : Pose<Real> {
  Spatial<Real> v, smooth;  ///< with q̇ and with v_s
};

/// Of records of numbers, `from` in the lanes that are `on`.
template <class Real, class Mask, class Record>
BACKDRIVE_INLINE void put(const Mask& on, const Record& from, Record& to) {
  const Real* const source = numbers_of<const Real>(&from);
  Real* const target = numbers_of<Real>(&to);
  for (std::size_t k = 0; k < sizeof(Record) / sizeof(Real); ++k) target[k] = select(on, source[k], target[k]);
}

/// Inertia of one body.
template <class Real, class Const>
BACKDRIVE_INLINE void set_inertia(const Pose<Real>& pose, const LinkConstants<Const>& c, RigidInertia<Real>& I) {
  set(I, broadcast<Real>(c.mass), plus_times(pose.origin, pose.axes, c.com), rotated(pose.axes, c.inertia));
}

/// One link, from its parent's; q̈ in dof[].*x. S becomes that of q_m in the lanes that are `on`: those of others keep
/// what they have, since the same formulas, compiled a second time, may round otherwise.
template <class Joint, class Layout, class Solution, class Mask>
BACKDRIVE_PART void lead_link(Workspace<Layout>& ws, int i, Solution x, const Mask& on,
                              const LinkHalfWay<typename Layout::Real>& parent,
                              LinkHalfWay<typename Layout::Real>& own) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  Real* const smooth = ws.middle.rates + link.v;
  for (int k = 0; k < Joint::dofs; ++k) smooth[k] = ws.qd[link.v + k] + ws.dt * ws.dof[link.v + k].*x;
  const Real time = constant<Real>(0.5) * ws.dt * ws.middle.share[i];
  PlacedLink<Real> placed;
  place_link<Joint>(ws, i, JointPosition<Joint, Real>(ws.q + link.q).moved(smooth, time), parent, placed);
  own.axes = placed.axes;
  own.origin = placed.origin;
  own.v = moved_by<Joint>(parent.v, placed, ws.qd + link.v);
  own.smooth = moved_by<Joint>(parent.smooth, placed, smooth);
  for (int k = 0; k < Joint::dofs; ++k) put<Real>(on, placed.S[k], ws.dof[link.v + k].S);
}

/// Where links are at the start of the step, for the way back.
template <class Layout>
BACKDRIVE_INLINE void keep_start(Workspace<Layout>& ws) {
  for (int i = 0; i < ws.link_count; ++i) ws.middle.links[i] = {ws.link[i].pose, ws.link[i].v, ws.link[i].I};
  for (int v = 0; v < ws.nv; ++v) ws.middle.S[v] = ws.dof[v].S;
}
/// Links back to the start of the step, if they are half way: what solves of the smooth motion need.
template <class Layout>
BACKDRIVE_CALLED void go_back(Workspace<Layout>& ws) {
  if (!ws.middle.half_way) return;
  ws.middle.half_way = false;
  for (int i = 0; i < ws.link_count; ++i) {
    auto& link = ws.link[i];
    link.pose = ws.middle.links[i].pose, link.v = ws.middle.links[i].v, link.I = ws.middle.links[i].I;
  }
  for (int v = 0; v < ws.nv; ++v) ws.dof[v].S = ws.middle.S[v];
}

/// Takes links to q_m with all that contact needs of them: S, inertias, twists with q̇ and v_s, of which q̈ is in
/// dof[].*x, and poses. μ of all links into middle.share, v_s into middle.rates. O(links).
template <class Layout, class Solution>
BACKDRIVE_CALLED void go_half_way(Workspace<Layout>& ws, Solution x) {
  using Real = typename Layout::Real;
  static_assert(sizeof(LinkHalfWay<Real>) <= kStackNumbers<Real> * sizeof(Real));
  if constexpr (kIsAdjoint<Layout>) keep_start(ws);
  ws.middle.half_way = true;
  const LinkHalfWay<Real> world{{identity3<Real>(), zero3<Real>()}, zero6<Real>(), zero6<Real>()};
  LinkHalfWay<Real> parent = world;
  Stack<LinkHalfWay<Real>> branchings(ws.stack);
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.parent < 0) {
      parent = world;
    } else {
      ws.middle.share[i] = ws.middle.share[link.parent];
      if (link.parent != i - 1) parent = link.last_child ? branchings.pop() : branchings.last();
    }
    const auto on = value_of(ws.middle.share[i]) > value_of(constant<Real>(0));
    LinkHalfWay<Real> own;
    visit_joint(
        link.type, [&](auto joint)
                       __attribute__((always_inline)) { lead_link<decltype(joint)>(ws, i, x, on, parent, own); });
    RigidInertia<Real> inertia;
    set_inertia(own, ws.constants[i], inertia);
    put<Real>(on, inertia, ws.link[i].I);
    if (kIsAdjoint<Layout> || link.touches) {
      auto& moving = motion_of(ws, i);
      put<Real>(on, own.v, moving.v);
      put<Real>(on, static_cast<const Pose<Real>&>(own), moving.pose);
      put<Real>(on, own.smooth, ws.contact.link[i].smooth);
    }
    if (branches(ws.links, i)) branchings.push(own);
    parent = own;
  }
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
