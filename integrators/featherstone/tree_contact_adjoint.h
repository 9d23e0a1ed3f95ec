#pragma once
// Adjoint of tree_contact.h: (A1)-(A4), (A7)-(A9) of docs/contact.md.
//
// Everything is linear in cotangents, so what contact adds is apart from (7)-(8): with the twists Y of v (of q̇), v_s,
// Δv and w, and G^Y = ∂φ/∂Y of the subtree, the turn of a subtree together with the twists that carry it changes φ by
// no more than what its contacts see of the world, R. So
//
//   Z = R + Σ_Y Y_p ×* G^Y        q̄ += Sᵀ Z        q̇̄ −= Sᵀ G^v        R = Σ (pose̅ + Y ×* y̅)  over its contacts.
//
// Where a tree is in the world enters nowhere but in the places of shapes of the world and of other trees.
#include "integrators/contact/support_adjoint.h"
#include "integrators/featherstone/dynamics_adjoint.h"
#include "integrators/featherstone/straight_flight_adjoint.h"
#include "integrators/featherstone/tree_contact.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// (1)-(4) for the adjoint, (C1)-(C7) for all contacts.
template <class Layout>
BACKDRIVE_HD void recompute_with_contact(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  smooth_motion(
      ws, &Layout::Dof::qdd, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
        keep_acceleration(ws.link[i], delta);
      });
  take_whip_out(ws);
  contact_kick(
      ws, [](auto& dof, const Real& x) __attribute__((always_inline)) { dof.kick = x; },
      [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) { ws.contact.link[i].kick = delta; });
}

/// Adds Jᵀ of the loads to bar.qd (A5).
template <class Layout>
BACKDRIVE_CALLED void project_loads(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  Spatial<Real> load = zero6<Real>();
  Stack<Spatial<Real>> stack(ws.stack);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    if (link.leaf) load = zero6<Real>();
    if (ws.contact.link[i].touched) load += ws.contact.link[i].load;
    const int dofs = joint_size(link.type).nv;
    for (int v = link.v; v < link.v + dofs; ++v) bar.qd[v] += dot(ws.dof[v].S, load);
    if (link.parent < 0) continue;
    if (!link.last_child) load += stack.pop();
    if (link.parent != i - 1) stack.push(load);
  }
}

/// A solve with blocks, the cotangents of Δv in dof[].x and the loads as right-hand side: into dof[].w, and twists.
template <class Layout>
BACKDRIVE_HD void solve_for_w(Workspace<Layout>& ws, [[maybe_unused]] bool anew) {
  using Real = typename Layout::Real;
  solve_inwards_with(
      ws, FactorsWithBlocks<Layout>(ws),
      [&](int i, Spatial<Real>& force) __attribute__((always_inline)) {
        const auto& touch = ws.contact.link[i];
        if (touch.touched) force -= touch.load;
      },
      [](const auto& dof, const Real& carried) __attribute__((always_inline)) { return dof.x - carried; });
  const auto keep = [](auto& dof, const Real& x) __attribute__((always_inline)) {
    dof.w = x;
  };
  const auto visit = [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
    ws.contact.link[i].w = delta;
  };
  if (is_coupled(ws)) return solve_coupled_with_blocks(ws, anew, &CouplingStep<Real>::kick_bar, keep, visit);
  solve_outwards_with(ws, FactorsWithBlocks<Layout>(ws), keep, visit);
}

/// (A3)-(A6): with the cotangents of Δv in dof[].x and those of v_s in bar.qd; adds to the latter.
template <class Layout>
BACKDRIVE_HD void adj_kick(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  contact::begin_adjoint(ws, bar);
  articulate_system(ws, SystemWithBlocks<Layout>{ws});
  solve_for_w(ws, true);
  contact::refine_adjoint(ws, TreeSolver<Layout>{ws});
  solve_for_w(ws, false);
  contact::adj_forces(ws, bar);
  project_loads(ws, bar);
}

template <class Layout>
BACKDRIVE_INLINE void add_mass_bar(const StepBar<Layout>& bar, int link, const typename Layout::Real& mass_bar,
                                   const typename Layout::Real& lift_bar) {
  bar.constants[link].mass += mass_bar;
  bar.constants[link].lift += lift_bar;
}
/// What moves a free root along, of the cotangents of its rates; world axes.
template <class Layout>
BACKDRIVE_INLINE Vec3<typename Layout::Real> linear_bar(const Workspace<Layout>& ws, int root,
                                                        const StepBar<Layout>& bar) {
  Vec3<typename Layout::Real> sum = zero3<typename Layout::Real>();
  for (int v = ws.links[root].v + 3; v < ws.links[root].v + 6; ++v) sum += ws.dof[v].S.lin * bar.qd[v];
  return sum;
}
/// What the axes of free joints receive, in which v_s has the rises of (C12), before contacts add to the cotangents of
/// v_s in bar.qd: these have the rises as they are in the world.
template <class Layout>
BACKDRIVE_CALLED void adj_rise_axes(const Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  if (!bar.wants_parameters()) return;
  contact::each_loose_tree(ws, [&](int i) {
    const Vec3<Real> turn = cross(linear_bar(ws, i, bar), ws.contact.supports[i].rise);
    bar.constants[i].rotation += transposed_times(broadcast<Real>(ws.constants[i].rotation), turn);
  });
}
/// (A11), with the cotangents of v_s in bar.qd. From here on q̈ is that of the smooth motion.
template <class Layout>
BACKDRIVE_CALLED void adj_rises(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  contact::each_loose_tree(ws, [&](int i) { ws.contact.support_bars[i].rise = linear_bar(ws, i, bar); });
  contact::adj_support(ws, bar);
  add_rises(ws, &Layout::Dof::qdd, constant<typename Layout::Real>(-1));
}

/// What a tree's origin receives: position of a free root, placement of its root joint.
template <class Layout>
BACKDRIVE_HD void adj_tree_origin(Workspace<Layout>& ws, int root, const Vec3<typename Layout::Real>& origin_bar,
                                  const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  if (root < 0) return;
  const Link& link = ws.links[root];
  const auto& c = ws.constants[root];
  Vec3<Real> turn = zero3<Real>();
  if (link.type == JointType::free) {
    const Vec3<Real> local = transposed_times(broadcast<Real>(c.rotation), origin_bar);
    Real* const q_bar = bar.q + link.q + 4;
    q_bar[0] += local.x, q_bar[1] += local.y, q_bar[2] += local.z;
    turn = cross(root_position_on_way(ws, root), local);
  }
  if (!bar.wants_parameters()) return;
  bar.constants[root].translation += origin_bar;
  bar.constants[root].rotation += turn;
}

// ---- (A8)-(A9) ------------------------------------------------------------------------------------------------------

/// ∂φ/∂Y of a subtree, and R; `way`: the part of `smooth` that (A5) knew nothing of.
template <class Real>
struct KickBar {
  Spatial<Real> v, smooth, kick, w, way;
  Spatial<Real> turn;
};
template <class Real>
BACKDRIVE_INLINE void operator+=(KickBar<Real>& a, const KickBar<Real>& b) {
  a.v += b.v, a.smooth += b.smooth, a.kick += b.kick, a.w += b.w, a.way += b.way, a.turn += b.turn;
}

/// Numbers of the largest that waits in a sweep with contact.
template <class Real>
constexpr int kContactStackNumbers = std::max<int>(sizeof(KickBar<Real>) / sizeof(Real), kStackNumbers<Real>);

/// Adds what one body brings: w·I Δv (A8), and its contacts.
template <class Real>
BACKDRIVE_INLINE void add_body(const contact::TouchAdjointLink<Real>& t, const RigidInertia<Real>& I,
                               KickBar<Real>& sum) {
  sum.kick = plus_times(sum.kick, I, t.w);
  sum.w = plus_times(sum.w, I, t.kick);
  if (!t.touched) return;
  const auto& b = t.bar;
  sum.v += b.v + b.start, sum.smooth += b.smooth + b.way, sum.kick += b.kick, sum.w += b.w, sum.turn += b.turn;
  sum.way += b.way;
}

/// Of a link in touch, what it passes on of a (start_of()) to v_s and to λ.
template <class Layout>
BACKDRIVE_CALLED void adj_start(Workspace<Layout>& ws, int i) {
  using Real = typename Layout::Real;
  const int root = root_of(ws.links, i);
  auto& t = ws.contact.link[i];
  const Real& share = ws.middle.whip[root];
  const auto on = value_of(share) > value_of(constant<Real>(0));
  const Spatial<Real> late = choose(on, t.bar.start * share, zero6<Real>());
  ws.whip[root].whip_bar -= select(on, dot(t.bar.start, t.smooth - velocity_of(ws, i)), constant<Real>(0));
  t.bar.start -= late;
  t.bar.way += late;
}

/// Σ Y ×* G^Y + R for the twists of one link, that carries the subtree.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> turned_with_twists(const KickBar<Real>& bar, const Spatial<Real>& v,
                                                  const contact::TouchAdjointLink<Real>& t) {
  Spatial<Real> Z = plus_cross_force(bar.turn, v, bar.v);
  Z = plus_cross_force(Z, t.smooth, bar.smooth);
  Z = plus_cross_force(Z, t.kick, bar.kick);
  return plus_cross_force(Z, t.w, bar.w);
}

/// What (A8) adds to mass, com and inertia: w·I Δv.
template <class Real, class Const>
BACKDRIVE_INLINE void kick_mass_adjoint(const ParameterLink<Real>& s, const LinkConstants<Const>& c,
                                        const Spatial<Real>& X, const Spatial<Real>& Y, LinkGradient<Real>& gradient) {
  const Mat3<Real>& axes = s.pose.axes;
  const Vec3<Real> com = plus_times(s.pose.origin, axes, c.com);
  const Vec3<Real> Xc = contact::velocity_at(X, com), Yc = contact::velocity_at(Y, com);
  gradient.mass -= dot(Xc, Yc);
  gradient.com -= transposed_times(axes, (cross(Yc, X.ang) + cross(Xc, Y.ang)) * c.mass);
  less_bilinear(transposed_times(axes, X.ang), transposed_times(axes, Y.ang), gradient.inertia);
}

/// What v_s receives beside (A5), to q̇ and q̈.
template <class Layout>
BACKDRIVE_INLINE void add_smooth_bar(Workspace<Layout>& ws, int v, const typename Layout::Real& x,
                                     const StepBar<Layout>& bar) {
  bar.qd[v] += x;
  ws.dof[v].x += ws.dt * x;
}

/// One joint of (A9).
template <class Layout>
BACKDRIVE_INLINE void kick_joint(Workspace<Layout>& ws, int i, const KickBar<typename Layout::Real>& own,
                                 const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const typename Layout::Dof* dof = ws.dof + link.v;
  const int dofs = joint_size(link.type).nv;
  const bool free = link.type == JointType::free;
  Spatial<Real> Z = own.turn;
  if (link.parent >= 0 || free) {
    const int carrier = free ? i : link.parent;
    Z = turned_with_twists(own, ws.link[carrier].v, ws.contact.link[carrier]);
  }
  for (int k = 0; k < dofs; ++k) bar.qd[link.v + k] -= dot(dof[k].S, own.v);
  for (int k = 0; k < dofs && (ws.middle.half_way || ws.middle.whips); ++k) {
    add_smooth_bar(ws, link.v + k, -dot(dof[k].S, own.way), bar);
  }
  const int turns = free ? 3 : dofs;  // the free root's position enters by the tree's origin
  for (int k = 0; k < turns; ++k) bar.q[link.q + k] += dot(dof[k].S, Z);
  if constexpr (Layout::parameters) {
    if (!bar.wants_parameters()) return;
    const auto& pose = ws.link[link.parent < 0 ? i : link.parent].pose;
    placement_adjoint(link, ws.constants[i], pose, free ? own.turn : Z, bar.constants[i]);
  }
}

/// Leaves to root: what the solve for Δv and the contacts add to q̄, q̇̄ and the parameters.
template <class Layout>
BACKDRIVE_CALLED void kick_sweep(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  KickBar<Real> top;
  Stack<KickBar<Real>> stack(ws.stack);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    const auto& t = ws.contact.link[i];
    if (link.leaf) top = KickBar<Real>{};
    if (ws.middle.whips && t.touched) adj_start(ws, i);
    add_body(t, ws.link[i].I, top);
    if constexpr (Layout::parameters) {
      if (bar.wants_parameters()) {
        kick_mass_adjoint(ws.link[i], ws.constants[i], t.w, t.kick, bar.constants[i]);
      }
    }
    kick_joint(ws, i, top, bar);
    if (link.parent < 0) continue;
    if (!link.last_child) top += stack.pop();
    if (link.parent != i - 1) stack.push(top);
  }
}

/// (A8) of what bodies that fly alone have more than their inertia at the start, −w·(J(φ) − J) Δω: to their attitude,
/// their velocity by φ, and J.
template <class Layout>
BACKDRIVE_CALLED void adj_kicked_inertia(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  for (int i = 0; i < ws.link_count; ++i) {
    const auto& t = ws.contact.link[i];
    if (!t.touched || !flies_alone(ws, i)) continue;
    const Link& link = ws.links[i];
    const typename Layout::Dof* const dof = ws.dof + link.v;
    const Vec3<Real>&w = t.w.ang, &kick = t.kick.ang;
    const auto turn = contact::HalfTurn<Real>::whole(velocity_of(ws, i).ang, ws.dt);
    const Sym3<Real> J = inertia_about_com(ws.link[i].I);
    Sym3<Real> late = J;
    late += t.kicked;
    // w·J Δω of a J that turns.
    const auto turned = [&](const Sym3<Real>& of) { return cross(of * kick, w) + cross(of * w, kick); };
    const Vec3<Real> turn_bar = turned(late), start_bar = turned(J) - turn.turned_back(turn_bar);
    const Vec3<Real> omega_bar = turn.adj_phi(turn.adj_turned(turn_bar));
    for (int k = 0; k < 3; ++k) {
      bar.q[link.q + k] += dot(dof[k].S.ang, start_bar);
      bar.qd[link.v + k] -= dot(dof[k].S.ang, omega_bar);
    }
    if constexpr (Layout::parameters) {
      if (!bar.wants_parameters()) continue;
      const auto in_link = [&](const Vec3<Real>& x) { return transposed_times(ws.link[i].pose.axes, x); };
      Sym3<Real>& inertia = bar.constants[i].inertia;
      less_bilinear(in_link(turn.turned_back(w)), in_link(turn.turned_back(kick)), inertia);
      less_bilinear(in_link(-w), in_link(kick), inertia);
    }
  }
}

/// μ of a link's tree receives that of what part of the way it is.
template <class Layout>
BACKDRIVE_INLINE void add_way_bar(Workspace<Layout>& ws, int link, const typename Layout::Real& bar) {
  ws.whip[root_of(ws.links, link)].half_way_bar += bar;
}

/// From the cotangents of q_m = q ⊕ ½ μ Δt v_s in middle.q_bar to those of q, v_s and μ.
template <class Layout>
BACKDRIVE_CALLED void adj_half_way(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Real half = constant<Real>(0.5) * ws.dt;
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.type == JointType::fixed) continue;
    const Real time = half * way_of(ws, i);
    Real* const from = ws.middle.q_bar + link.q;
    const Real* const rates = ws.middle.rates + link.v;
    Real time_bar = constant<Real>(0);
    const auto along = [&](int q, int v) __attribute__((always_inline)) {
      add_smooth_bar(ws, link.v + v, time * from[q], bar);
      time_bar += from[q] * rates[v];
    };
    const auto around = [&](auto side) __attribute__((always_inline)) {
      Vec3<Real> theta_bar = vector_at(from), phi_bar = zero3<Real>();
      adj_turned<side()>(vector_at(rates) * time, theta_bar, phi_bar);
      from[0] = theta_bar.x, from[1] = theta_bar.y, from[2] = theta_bar.z;
      add_smooth_bar(ws, link.v, time * phi_bar.x, bar);
      add_smooth_bar(ws, link.v + 1, time * phi_bar.y, bar);
      add_smooth_bar(ws, link.v + 2, time * phi_bar.z, bar);
      time_bar += dot(phi_bar, vector_at(rates));
    };
    if (link.type == JointType::ball) {
      around(TurnSideConstant<TurnSide::right>{});
    } else if (link.type == JointType::free) {
      around(TurnSideConstant<TurnSide::left>{});
      for (int k = 0; k < 3; ++k) along(4 + k, 3 + k);
    } else {
      along(0, 0);
    }
    add_way_bar(ws, i, half * time_bar);
  }
}

/// (A6), (A8), (A9): all of them of q_m.
template <class Layout>
BACKDRIVE_HD void adj_contacts(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  StepBar<Layout> there = bar;
  there.q = ws.middle.q_bar;
  for (int k = 0; k < ws.nq; ++k) there.q[k] = constant<Real>(0);
  contact::adj_contact_places(ws, there);
  kick_sweep(ws, there);
  adj_kicked_inertia(ws, there);
  if (ws.middle.half_way) adj_half_way(ws, bar);
  for (int k = 0; k < ws.nq; ++k) bar.q[k] += ws.middle.q_bar[k];
}

/// The cotangents of ways become those of this step's μ; those of μ⁻ are none yet.
template <class Layout>
BACKDRIVE_INLINE void hand_over_ways(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  for (int i = 0; i < ws.link_count; ++i) {
    const int way = ws.links[i].way;
    if (way < 0) continue;
    ws.whip[i].half_way_bar += bar.ways[way];
    bar.ways[way] = constant<typename Layout::Real>(0);
  }
}

/// Adjoint of one step with contact: as step_adjoint, after recompute_with_contact. bar.reported holds the cotangent of
/// the reported velocity v_d.
template <class Layout>
BACKDRIVE_HD void step_adjoint_with_contact(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Real half = constant<Real>(0.5);
  const bool kicked = in_touch(ws), straightened = ws.middle.whips;
  const auto moved = [&](int v) __attribute__((always_inline)) {
    const auto& dof = ws.dof[v];
    const Real smooth = ws.qd[v] + ws.dt * dof.qdd;
    return kicked ? smooth + half * dof.kick : smooth;
  };
  hand_over_ways(ws, bar);
  if (straightened) {
    Real* const rates = ws.middle.rates_bar;  // which is not needed yet
    for (int v = 0; v < ws.nv; ++v) rates[v] = moved(v);
    adj_straight_flights(ws, rates, bar);
  }
  adj_move(
      ws, bar, moved, [&](int v, const Real& x) __attribute__((always_inline)) { bar.reported[v] += x; });
  for (int k = 0; k < ws.nq && straightened; ++k) bar.q[k] += ws.middle.q_bar[k];
  for (int k = 0; k < ws.nv; ++k) {  // (A2)
    if (kicked) ws.dof[k].x = bar.qd[k] + half * bar.reported[k];
    bar.qd[k] += bar.reported[k];
    bar.reported[k] = constant<Real>(0);
  }
  const bool rises = contact::begins_supported(ws);
  if (rises) adj_rise_axes(ws, bar);
  if (kicked) adj_kick(ws, bar);
  if (rises) adj_rises(ws, bar);
  for (int k = 0; k < ws.nv; ++k) ws.dof[k].x = ws.dt * bar.qd[k];
  if (kicked) adj_contacts(ws, bar);
  go_back(ws);
  acceleration_adjoint(ws, bar);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
