#pragma once
// Velocity terms of trees that whip: equations (21)-(22) of docs/theory.md.
//
// Those of a step's start (1), and of its middle (24), feed motions in which two joints that adjoin both turn far in a
// step. There, by a share λ that grows with these turns, the points of bodies are taken to fly on straight from where
// the step before left them their energy, its start or, where that did not whip or kicked them half way (half_way.h),
// its middle; and q̇⁺ is what the joints make of that: of all motions that they allow the nearest, in the metric of the
// masses, which for λ = 1 never has more kinetic energy than before.
#include "integrators/featherstone/dynamics.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// visit(first link, one past the last) for each tree.
template <class Layout, class Visit>
BACKDRIVE_INLINE void each_tree(const Workspace<Layout>& ws, const Visit& visit) {
  for (int root = 0, end; root < ws.link_count; root = end) {
    end = end_of_tree(ws, root);
    visit(root, end);
  }
}

/// |ω|² of a joint by `time`, a step's or its square; of the velocities `rates`, as below.
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real turning(const Workspace<Layout>& ws, int joint,
                                               const typename Layout::Real* rates, const typename Layout::Real& time) {
  using Real = typename Layout::Real;
  Real sum = constant<Real>(0);
  const Link& link = ws.links[joint];
  for (int k = 0; k < turning_dofs(link); ++k) sum += rates[link.v + k] * rates[link.v + k];
  return sum * time;
}

/// visit(link, link) for each two joints of a tree that turn and adjoin.
template <class Layout, class Visit>
BACKDRIVE_INLINE void each_adjoining_pair(const Workspace<Layout>& ws, int root, int end, const Visit& visit) {
  for (int i = root + 1; i < end; ++i) {
    if (ws.links[i].turns_with >= 0) visit(i, ws.links[i].turns_with);
  }
}

/// whip_time() of a tree.
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real whip_time_of_tree(const Workspace<Layout>& ws, int root, int end) {
  bool touches = false;
  for (int i = root; i < end; ++i) touches = touches || ws.links[i].touches;
  return whip_time(ws.dt, touches);
}

/// Σ h⁴ over the pairs of a tree. O(links).
template <class Layout>
BACKDRIVE_HD typename Layout::Real turns_of_pairs(const Workspace<Layout>& ws, int root, int end,
                                                  const typename Layout::Real* rates,
                                                  const typename Layout::Real& time) {
  using Real = typename Layout::Real;
  Real sum = constant<Real>(0);
  each_adjoining_pair(
      ws, root, end, [&](int own, int other) __attribute__((always_inline)) {
        const Real h = JointTurn<Real>(turning(ws, own, rates, time), turning(ws, other, rates, time)).h;
        sum += (h * h) * (h * h);
      });
  return sum;
}

/// Σ (|ω|² Δt)⁴ over the joints of a tree; 0 where only one of them moves and is no ball, as it has no velocity terms
/// but (12)'s or (26)'s; but for several bodies that fly as one and may touch something, which are kicked half way.
/// O(links).
template <class Layout>
BACKDRIVE_HD typename Layout::Real turns_of_joints(const Workspace<Layout>& ws, int root, int end,
                                                   const typename Layout::Real* rates) {
  using Real = typename Layout::Real;
  Real sum = constant<Real>(0);
  int moving = 0;
  for (int i = root; i < end; ++i) {
    const JointType type = ws.links[i].type;
    if (ws.links[root].rigid && ws.links[root].fixed_end >= 0 && ws.links[i].touches) moving = 2;
    moving += type == JointType::ball ? 2 : type != JointType::fixed;
    const Real turn = turning(ws, i, rates, ws.dt);
    sum += (turn * turn) * (turn * turn);
  }
  return moving > 1 ? sum : constant<Real>(0);
}

/// Both, of the velocities `rates`; of pairs 0 where no joint is fast enough. O(links).
template <class Layout>
BACKDRIVE_HD TreeTurns<typename Layout::Real> tree_turns(const Workspace<Layout>& ws, int root, int end,
                                                         const typename Layout::Real* rates) {
  using Real = typename Layout::Real;
  TreeTurns<Real> turns{turns_of_joints(ws, root, end, rates), constant<Real>(0)};
  const Real time = whip_time_of_tree(ws, root, end), by = time / ws.dt;
  // h of two joints is less than twice either's.
  if (any(more_than(turns.joints * ((by * by) * (by * by)), kWhipFrom / 2))) {
    turns.pairs = turns_of_pairs(ws, root, end, rates, time);
  }
  return turns;
}

/// How long after the start of the step before bodies had the momentum that they fly on with, ½ (μ⁻ − μ) Δt: where the
/// share λ of that step and of this one are alike, at its start; else as much later as that had it nearer to its
/// middle. 0 where nothing says what μ⁻ was.
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real whip_delay(const Workspace<Layout>& ws, int root) {
  using Real = typename Layout::Real;
  if constexpr (Layout::contact) {
    const int way = ws.links[root].way;
    if (way >= 0) {
      const Real zero = constant<Real>(0), &before = ws.ways[way];
      return select(is_way_known(before), constant<Real>(0.5) * ws.dt * (before - ws.middle.share[root]), zero);
    }
  }
  return constant<Real>(0);
}

/// Where a joint was at q⁻ = (q ⊖ Δt v_d) ⊕ delay · v_s, v_s = 2 v_d − q̇.
template <class Joint, class Layout>
BACKDRIVE_INLINE JointPosition<Joint, typename Layout::Real> position_before(const Workspace<Layout>& ws, int i,
                                                                             const typename Layout::Real& delay) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const Real* const moved = reported_of(ws) + link.v;
  const JointPosition<Joint, Real> start = JointPosition<Joint, Real>(ws.q + link.q).moved(moved, -ws.dt);
  if constexpr (!Layout::contact || Joint::dofs == 0) {
    return start;
  } else {
    Real smooth[Joint::dofs];
    for (int k = 0; k < Joint::dofs; ++k) smooth[k] = constant<Real>(2) * moved[k] - ws.qd[link.v + k];
    return start.moved(smooth, delay);
  }
}

/// (1) of one link at q⁻.
template <class Joint, class Layout>
BACKDRIVE_PART void move_link_before(const Workspace<Layout>& ws, int i, const typename Layout::Real& delay,
                                     const Before<typename Layout::Real>& parent, Before<typename Layout::Real>& own) {
  using Real = typename Layout::Real;
  PlacedLink<Real> placed;
  place_link<Joint>(ws, i, position_before<Joint>(ws, i, delay), parent, placed);
  own.axes = placed.axes;
  own.origin = placed.origin;
  own.v = moved_by<Joint>(parent.v, placed, ws.qd + ws.links[i].v);
}

/// (21) of one body: the force m d at its centre of mass c, and a couple.
template <class Real>
struct WhipBody {
  Sym3<Real> J;                ///< about c, in world axes
  Vec3<Real> com, com_before;  ///< c, from O
  Vec3<Real> velocity;         ///< ċ
  Vec3<Real> d;                ///< (ċ − ċ⁻)/Δt less the bias acceleration of c
  Mat3<Real> W;                ///< R⁻ Σ Rᵀ with the second moment Σ = ½ tr J 1 − J of the link's axes
  Vec3<Real> e;                ///< ω/Δt less the bias of ω̇

  template <class Const>
  BACKDRIVE_INLINE WhipBody(const LinkConstants<Const>& c, const Pose<Real>& pose, const Spatial<Real>& v,
                            const Spatial<Real>& a, const Before<Real>& before, const Real& dt)
      : J(rotated(pose.axes, c.inertia)),
        com(plus_times(pose.origin, pose.axes, c.com)),
        com_before(plus_times(before.origin, before.axes, c.com)),
        velocity(plus_cross(v.lin, v.ang, com)),
        W(before.axes * (second_moment(c.inertia) * transposed(pose.axes))) {
    const Real rate = constant<Real>(1) / dt;
    const Vec3<Real> velocity_before = plus_cross(before.v.lin, before.v.ang, com_before);
    d = (velocity - velocity_before) * rate - plus_cross(plus_cross(a.lin, a.ang, com), v.ang, velocity);
    e = v.ang * rate - a.ang;
  }

  /// Of the points of the body, that fly on straight, the angular momentum about c where they come to be: Σ r × ṙ⁻.
  BACKDRIVE_INLINE Vec3<Real> momentum(const Vec3<Real>& omega_before) const {
    return omega_before * trace() - W * omega_before;
  }
  BACKDRIVE_INLINE Real trace() const { return W.cx.x + W.cy.y + W.cz.z; }
  /// Beside what (12) has.
  BACKDRIVE_INLINE Vec3<Real> couple(const Vec3<Real>& omega, const Vec3<Real>& omega_before, const Real& dt) const {
    return J * e - momentum(omega_before) * (constant<Real>(1) / dt) - cross(omega, J * omega);
  }

 private:
  template <class Const>
  static BACKDRIVE_INLINE Mat3<Real> second_moment(const Sym3<Const>& j) {
    const Real half = constant<Real>(0.5) * (j.xx + j.yy + j.zz);
    const Real xy = broadcast<Real>(j.xy), xz = broadcast<Real>(j.xz), yz = broadcast<Real>(j.yz);
    return {{half - j.xx, -xy, -xz}, {-xy, half - j.yy, -yz}, {-xz, -yz, half - j.zz}};
  }
};

/// Whether a link hangs on a joint that is said to spin, and turns with it.
template <class Layout>
BACKDRIVE_INLINE bool is_rotor(const Workspace<Layout>& ws, const Link& link) {
  const Link& turning = link.carrier < 0 ? link : ws.links[link.carrier];
  return turning.spins && turning.type == JointType::revolute;
}

/// Adds (21) to the bias forces of a tree some lanes of which whip; the others' stay what they are to the last bit.
template <class Layout>
BACKDRIVE_CALLED void whip_tree(Workspace<Layout>& ws, int root, int end, const typename Layout::Real& turns) {
  using Real = typename Layout::Real;
  const Spatial<Real> rest = zero6<Real>();
  const Pose<Real> at_rest{identity3<Real>(), zero3<Real>()};
  const Real share = whip_share(turns).share;
  const auto on = whips(turns);
  const Real delay = whip_delay(ws, root);
  MotionAndBefore<Real> parent{{at_rest, rest, rest}, {at_rest, rest}};
  Stack<MotionAndBefore<Real>> branchings(ws.stack);
  for (int i = root; i < end; ++i) {
    const Link& link = ws.links[i];
    if (i > root && link.parent != i - 1) parent = link.last_child ? branchings.pop() : branchings.last();
    const auto& c = ws.constants[i];
    MotionAndBefore<Real> own;
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          move_link<decltype(joint)>(ws, link, c, parent.now, own.now);
          move_link_before<decltype(joint)>(ws, i, delay, parent.before, own.before);
        });
    const WhipBody<Real> body(c, own.now, own.now.v, own.now.a, own.before, ws.dt);
    const Vec3<Real> f = body.d * c.mass * share;
    Vec3<Real> couple = zero3<Real>();
    if (!is_rotor(ws, link)) {
      couple = body.couple(own.now.v.ang, own.before.v.ang, ws.dt);
      if (link.spins) couple -= free_turn(ws, link, own.now.v.ang, parent.now.v.ang, ws.qd).correction();
    }
    const Spatial<Real> force{plus_cross(couple * share, body.com, f), f};
    Spatial<Real>& sum = ws.link[i].force;
    sum = choose(on, sum + force, sum);
    if constexpr (kIsAdjoint<Layout>) {
      WhipLink<Real>& kept = ws.whip[i];
      kept.pose.axes = own.now.axes;
      kept.pose.origin = own.now.origin;
      kept.a = own.now.a;
      kept.before = own.before;
      kept.force = choose(on, force, rest);
    }
    if (branches(ws.links, i)) branchings.push(own);
    parent = own;
  }
}

/// Equation (1) of a step: kinematics(), of trees that whip (21), and the shares μ of (24).
template <class Layout>
BACKDRIVE_HD void step_kinematics(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  kinematics(ws);
  ws.middle.on = ws.middle.half_way = ws.middle.whips = false;
  each_tree(ws, [&](int root, int end) {
    const TreeTurns<Real> turns = tree_turns(ws, root, end, ws.qd);
    if constexpr (kIsAdjoint<Layout>) {
      ws.whip[root].turns = turns;
      ws.whip[root].half_way_bar = ws.whip[root].whip_bar = constant<Real>(0);
    }
    Real& share = ws.middle.share[root] = constant<Real>(0);
    if (any(more_than(turns.joints, kMiddleFrom))) {
      share = middle_share(turns, ws.dt);
      ws.middle.on = ws.middle.on || any(value_of(share) > value_of(constant<Real>(0)));
    }
    const bool on = any(whips(turns.pairs));
    if constexpr (Layout::contact) {
      ws.middle.whip[root] = on ? whip_share(turns.pairs).share : constant<Real>(0);
      ws.middle.whips = ws.middle.whips || on;
    }
    if (on) whip_tree(ws, root, end, turns.pairs);
  });
}

/// visit(root, end) for each tree some lane of which whips.
template <class Layout, class Visit>
BACKDRIVE_INLINE void each_whipping_tree(Workspace<Layout>& ws, const Visit& visit) {
  each_tree(ws, [&](int root, int end) {
    if (any(whips(ws.whip[root].turns.pairs))) visit(root, end);
  });
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
