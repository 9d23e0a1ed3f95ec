#pragma once
// Adjoint of dynamics.h and middle.h: equations (6)-(8) and (25).
//
// With φ = Σ over bodies of δ·(force on the body), the loss's cotangents are −∂φ. Four derivatives are needed,
//
//   F = ∂φ/∂δ    A = ∂φ/∂a    V = ∂φ/∂v    Z = −∂φ/∂pose
//
// summed over the subtree of each joint, and two identities spare most of the work:
//
// * φ of a subtree does not change when the subtree and the motions δ, a, v of the link that carries it are turned and
//   moved together, so that Z follows from the rest:   Z = δ_p ×* F + a_p ×* A + v_p ×* V.
// * With T = ½ (V − v ×* A) in place of V, velocities drop out of what a body contributes, and one cross product out of
//   what a joint does: per body of inertia (m, h, J) about O, with the second moment Σ = ½ tr J 1 − J,
//
//     T = [h × (δ_lin × ω) + δ_ω × Σ ω; m δ_c × ω]                    from  Σa × b + a × Σb + Σ(a × b) = tr Σ (a × b).
//
// F is what the joint transmits: each body's own force, summed.
#include "integrators/featherstone/couplings_adjoint.h"
#include "integrators/featherstone/whip_adjoint.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// True acceleration and force of a body, from the bias and the motion δ that q̈ causes.
template <class Real>
BACKDRIVE_INLINE void keep_acceleration(AdjointLink<Real>& s, const Spatial<Real>& delta) {
  s.a += delta;
  s.force = plus_times(s.force, s.I, delta);
}

/// (1)-(4) for the adjoint: q̈ into dof[].qdd, and of each body the true acceleration and the force on it.
template <class Layout>
BACKDRIVE_HD void accelerations_and_forces(Workspace<Layout>& ws) {
  solve_step(
      ws, &Layout::Dof::qdd, [&](int i, const Spatial<typename Layout::Real>& delta) __attribute__((always_inline)) {
        keep_acceleration(ws.link[i], delta);
      });
  take_whip_out(ws);
}

/// Leaves-to-root half of (6), of dof[].x.
template <class Layout>
BACKDRIVE_HD void solve_inwards(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  solve_inwards_with(
      ws, OwnFactors{}, [](int, Spatial<Real>&) __attribute__((always_inline)){},
      [](const auto& dof, const Real& carried) __attribute__((always_inline)) { return dof.x - carried; });
}

/// Equation (6): M w = g with the factors of the forward step. g stands in dof[].x, and then w; δ per link.
template <class Layout>
BACKDRIVE_HD void solve_again(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  solve_inwards(ws);
  const auto keep = [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
    ws.link[i].delta = delta;
  };
  if constexpr (Layout::coupled) {
    if (is_coupled(ws)) return solve_coupled_again(ws, keep);
  }
  solve_outwards(ws, &Layout::Dof::x, keep);
}

/// What mass, com and inertia of one body receive; `lift`: the part of gravity that is taken off it.
template <class Real, class Const>
BACKDRIVE_PART void mass_properties_adjoint(const ParameterLink<Real>& s, const LinkConstants<Const>& c,
                                            const Vec3<Real>& lift, LinkGradient<Real>& gradient) {
  const Vec3<Real>&w = s.v.ang, &alpha = s.a.ang, &delta = s.delta.ang;
  const Mat3<Real>& axes = s.pose.axes;
  const Vec3<Real> com = s.pose.origin + axes * c.com;
  const Vec3<Real> v_c = s.v.lin + cross(w, com);
  const Vec3<Real> a_c = s.a.lin + cross(alpha, com) + cross(w, v_c) + lift;
  const Vec3<Real> delta_c = s.delta.lin + cross(delta, com);
  gradient.mass -= dot(delta_c, a_c);
  const Vec3<Real> Z = (cross(a_c, delta) + cross(delta_c, alpha) + cross(cross(delta_c, w), w)) * c.mass;
  gradient.com -= transposed_times(axes, Z);
  const auto turned = [&](const Vec3<Real>& v) __attribute__((always_inline)) {
    return transposed_times(axes, v);
  };
  const Vec3<Real> x = turned(delta), y = turned(alpha), z = turned(w), u = cross(x, z);
  Sym3<Real>& bar = gradient.inertia;
  bar.xx -= x.x * y.x + u.x * z.x;
  bar.yy -= x.y * y.y + u.y * z.y;
  bar.zz -= x.z * y.z + u.z * z.z;
  bar.xy -= x.x * y.y + x.y * y.x + u.x * z.y + u.y * z.x;
  bar.xz -= x.x * y.z + x.z * y.x + u.x * z.z + u.z * z.x;
  bar.yz -= x.y * y.z + x.z * y.y + u.y * z.z + u.z * z.y;
}

/// F, A and T of one body alone (7).
template <class Real>
BACKDRIVE_PART LinkBar<Real> body_adjoint(const AdjointLink<Real>& s) {
  const Vec3<Real>&w = s.v.ang, &delta = s.delta.ang;
  const RigidInertia<Real>& I = s.I;
  const Spatial<Real> A = I * s.delta;
  const Vec3<Real> second_moment = w * (constant<Real>(0.5) * (I.aa.xx + I.aa.yy + I.aa.zz)) - I.aa * w;  // Σ ω
  return {s.force, A, {cross(I.h, cross(s.delta.lin, w)) + cross(delta, second_moment), cross(A.lin, w)}};
}

template <class Real>
BACKDRIVE_INLINE LinkBar<Real> operator+(const LinkBar<Real>& a, const LinkBar<Real>& b) {
  return {a.F + b.F, a.A + b.A, a.T + b.T};
}

/// Z of a subtree that is carried with δ, a and v; H as in (8).
template <class Real>
BACKDRIVE_PART Spatial<Real> turned_with(const Spatial<Real>& delta, const Spatial<Real>& a, const Spatial<Real>& v,
                                         const LinkBar<Real>& bar, const Spatial<Real>& H) {
  const Spatial<Real> V = plus_cross_force(H + H, v, bar.A);
  Spatial<Real> Z = cross_force(delta, bar.F);
  Z = plus_cross_force(Z, a, bar.A);
  return plus_cross_force(Z, v, V);
}

/// Z of a tree that the world carries: at rest, with gravity as an acceleration upwards.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> turned_with_world(const LinkBar<Real>& bar, const Vec3<Real>& gravity) {
  return {cross(bar.A.lin, gravity), zero3<Real>()};
}

/// What gravity receives from a root, and the placement from any joint.
template <class Layout>
BACKDRIVE_PART void add_to_root_and_placement(Workspace<Layout>& ws, int i, const LinkBar<typename Layout::Real>& own,
                                              const Spatial<typename Layout::Real>& Z, const StepBar<Layout>& bar) {
  if constexpr (Layout::parameters) {
    if (!bar.wants_parameters()) return;
    const Link& link = ws.links[i];
    if (link.parent < 0) *bar.gravity += own.A.lin;
    const auto& pose = ws.link[link.parent < 0 ? i : link.parent].pose;
    placement_adjoint(link, ws.constants[i], pose, Z, bar.constants[i]);
  }
}

/// Equation (8) of one joint whose S is fixed in the child's axes: q̄, q̇̄, and the gradient of the placement. `own` is
/// summed over its subtree; `carried`: what T of the link that carries it receives beside that, (12). Returns H.
template <class Joint, class Layout>
BACKDRIVE_PART Spatial<typename Layout::Real> joint_adjoint(Workspace<Layout>& ws, int i,
                                                            const LinkBar<typename Layout::Real>& own,
                                                            const Vec3<typename Layout::Real>& carried,
                                                            const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  constexpr int K = Joint::dofs;
  const Link& link = ws.links[i];
  const typename Layout::Dof* dof = ws.dof + link.v;
  Spatial<Real> H = own.T;
  if constexpr (K > 0) {
    Spatial<Real> rate = dof[0].S * bar.rates[link.v];
    for (int k = 1; k < K; ++k) rate += dof[k].S * bar.rates[link.v + k];
    H = plus_cross_force(H, rate, own.A);
    const Spatial<Real> t = own.T + H;
    for (int k = 0; k < K; ++k) bar.qd[link.v + k] -= dot(dof[k].S, t);
  }
  if constexpr (K == 3) H.ang += carried;
  Spatial<Real> Z;
  const typename Layout::Link& parent = ws.link[link.parent < 0 ? i : link.parent];
  if (link.parent >= 0) {
    Z = turned_with(parent.delta, parent.a, parent.v, own, H);
  } else {
    Z = turned_with_world(own, ws.gravity);
  }
  for (int k = 0; k < K; ++k) bar.q[link.q + k] += dot(dof[k].S, Z);
  add_to_root_and_placement(ws, i, own, Z, bar);
  return H;
}

/// The same for a free root, whose S is fixed in the world: a turn about its origin takes the whole tree along but not
/// the motions δ, a and v that carry it, its own, and a shift changes nothing. With v = S q̇ and the bias [0; ṗ × ω]
/// the velocities' cotangent is −(V + [A_lin × ṗ; ω × A_lin]), V = 2 T + v ×* A: (11).
template <class Layout>
BACKDRIVE_PART Spatial<typename Layout::Real> free_root_adjoint(Workspace<Layout>& ws, int i,
                                                                const LinkBar<typename Layout::Real>& own,
                                                                const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const typename Layout::Dof* dof = ws.dof + link.v;
  const typename Layout::Link& s = ws.link[i];
  const Spatial<Real> bias{cross(own.A.lin, s.v.lin), cross(s.v.ang, own.A.lin)};
  const Spatial<Real> flow = plus_cross_force(own.T + own.T, s.v, own.A) + bias;
  const Spatial<Real> Z = turned_with(s.delta, s.a, s.v, own, own.T);
  for (int k = 0; k < 6; ++k) bar.qd[link.v + k] -= dot(dof[k].S, flow);
  for (int k = 0; k < 3; ++k) bar.q[link.q + k] += dot(dof[k].S, Z);
  add_to_root_and_placement(ws, i, own, turned_with_world(own, ws.gravity), bar);
  return own.T;
}

/// Of δ·(what (26) adds to the force on a root), to the bodies that fly with it and to where those are fixed. Returns
/// what the root's T receives, by which it turns along (8).
template <class Layout>
BACKDRIVE_CALLED Vec3<typename Layout::Real> adj_rigid_turn(Workspace<Layout>& ws, int root,
                                                            const StepBar<Layout>& bar) {
  const auto of = rigid_turn(ws, root).adj_correction(ws.link[root].delta, bar.wants_parameters());
  add_to_carried(ws, root, of.whole, bar);
  return of.omega * constant<typename Layout::Real>(0.5);
}

/// Equations (7)-(8), leaves to root. bar.q and bar.qd hold the cotangents of q⁺ and q̇⁺ in the sense of step_adjoint.
template <class Layout>
BACKDRIVE_HD void reverse_sweep(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  LinkBar<Real> top;
  Stack<LinkBar<Real>> stack(ws.stack);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    if (link.leaf) top = body_adjoint(ws.link[i]);
    if constexpr (Layout::parameters) {
      if (bar.wants_parameters()) {
        const Vec3<Real> lift = link.lifted ? lift_of(ws.constants[i], ws.gravity) : zero3<Real>();
        mass_properties_adjoint(ws.link[i], ws.constants[i], lift, bar.constants[i]);
      }
    }
    Vec3<Real> carried = zero3<Real>();
    if (link.spins) carried = adj_free_turn(ws, i, ws.link[i].delta.ang, bar, top.T.ang);
    if (link.rigid && bar.sweep != Sweep::start) top.T.ang += adj_rigid_turn(ws, i, bar);
    Spatial<Real> H;
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          if constexpr (decltype(joint)::fixed_in_world) {
            H = free_root_adjoint(ws, i, top, bar);
          } else {
            H = joint_adjoint<decltype(joint)>(ws, i, top, carried, bar);
          }
        });
    if (link.parent < 0) continue;
    top.T = H;
    if (link.last_child) {
      top = body_adjoint(ws.link[link.parent]) + top;
    } else {
      top = stack.pop() + top;
    }
    if (link.parent != i - 1) stack.push(top);
  }
}

/// What the increment of D of a degree of freedom is multiplied with: w q̈ of all solves.
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real resisted_by(const Workspace<Layout>& ws, int v) {
  const typename Layout::Dof& dof = ws.dof[v];
  typename Layout::Real resisted = dof.x * dof.qdd;
  if (ws.middle.on) resisted += ws.middle.w[v] * (ws.middle.qdd[v] - dof.qdd);
  if constexpr (Layout::contact) {
    if (in_touch(ws)) resisted += dof.resisted();
  }
  return resisted;
}

/// joint_forces_adjoint() of a ball whose components act as one.
template <class Layout>
BACKDRIVE_PART void ball_forces_adjoint(Workspace<Layout>& ws, int i, const StepBar<Layout>& bar,
                                        JointEfforts<typename Layout::Real>* gradient) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const typename Layout::Dof* const dof = ws.dof + link.v;
  const Vec3<Real> resisted{resisted_by(ws, link.v), resisted_by(ws, link.v + 1), resisted_by(ws, link.v + 2)};
  const BallInputBar<Real> in = adj_ball_force(link, ws.constants[i].efforts, ball_input(ws, link), ws.dt,
                                               {{dof[0].x, dof[1].x, dof[2].x}, resisted}, gradient);
  for (int k = 0; k < 3; ++k) {
    bar.q[link.q + k] += component(in.turn, k);
    bar.qd[link.v + k] += component(in.rate, k);
    bar.control.set(link.v + k, component(in.effort, k));
    if (link.target < 0) continue;
    bar.control.set(link.target + 2 * k, component(in.target_position, k));
    bar.control.set(link.target + 2 * k + 1, component(in.target_velocity, k));
  }
}

/// What gravity compensation adds to q̄, the placements, gravity and its own factors (20), leaves to root: gravity does
/// not turn with a subtree, so that Z of (8) lacks g × B, B = Σ m c δ_c.
template <class Layout>
BACKDRIVE_CALLED void lift_adjoint(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  Vec3<Real> top = zero3<Real>();
  Stack<Vec3<Real>> stack(ws.stack);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    const auto& c = ws.constants[i];
    if (link.leaf) top = zero3<Real>();
    if (link.lifted) {
      const auto& s = ws.link[i];
      // m δ_c is the momentum of δ.
      const Vec3<Real> moved = (s.I * s.delta).lin;
      top += moved * (constant<Real>(0) + c.lift);
      if constexpr (Layout::parameters) {
        if (bar.wants_parameters()) bar.constants[i].lift -= dot(moved, ws.gravity);
      }
    }
    const Spatial<Real> Z{cross(ws.gravity, top), zero3<Real>()};
    const int turns = link.type == JointType::free ? 3 : joint_size(link.type).nv;
    for (int k = 0; k < turns; ++k) bar.q[link.q + k] += dot(ws.dof[link.v + k].S, Z);
    if constexpr (Layout::parameters) {
      if (bar.wants_parameters()) {
        if (link.parent < 0) *bar.gravity -= top;
        placement_adjoint(link, c, ws.link[link.parent < 0 ? i : link.parent].pose, Z, bar.constants[i]);
      }
    }
    if (link.parent < 0) continue;
    if (!link.last_child) top += stack.pop();
    if (link.parent != i - 1) stack.push(top);
  }
}

/// Cotangents of command, targets and joint-force parameters, and their part of q̄ and q̇̄.
template <class Layout>
BACKDRIVE_HD void joint_forces_adjoint(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    const int dofs = joint_size(link.type).nv;
    JointEfforts<Real>* const gradient = bar.wants_parameters() ? &bar.constants[i].efforts : nullptr;
    if (turns_as_one(link.type, link.acts)) {
      ball_forces_adjoint(ws, i, bar, gradient);
      continue;
    }
    for (int k = 0; k < dofs; ++k) {
      const typename Layout::Dof& dof = ws.dof[link.v + k];
      const Real resisted = resisted_by(ws, link.v + k);
      const JointInputBar<Real> in =
          adj_joint_force(link, ws.constants[i].efforts, joint_input(ws, link, k), ws.dt, {dof.x, resisted}, gradient);
      if (dofs == 1) bar.q[link.q] += in.q;
      bar.qd[link.v + k] += in.qd;
      bar.control.set(link.v + k, in.effort);
      if (link.target >= 0) {
        bar.control.set(link.target, in.target_position);
        bar.control.set(link.target + 1, in.target_velocity);
      }
    }
  }
}

/// Adjoint of q⁺ = q ⊕ Δt v: bar.q from the cotangent of q⁺ to that of q; add(row, cotangent of velocity(row)).
template <class Layout, class Velocity, class Add>
BACKDRIVE_HD void adj_move(Workspace<Layout>& ws, const StepBar<Layout>& bar, const Velocity& velocity,
                           const Add& add) {
  using Real = typename Layout::Real;
  each_coordinate(
      ws.links, ws.link_count, ws.nq,
      ws.nv, [&](int q, int v) __attribute__((always_inline)) { add(v, ws.dt * bar.q[q]); },
      [&](auto side, int q, int v) __attribute__((always_inline)) {  // R⁺ = R exp φ or exp φ R, φ = Δt v
        const auto turn = [&](int k) { return ws.dt * velocity(v + k); };
        Vec3<Real> theta_bar{bar.q[q], bar.q[q + 1], bar.q[q + 2]}, phi_bar = zero3<Real>();
        adj_turned<side()>({turn(0), turn(1), turn(2)}, theta_bar, phi_bar);
        add(v, ws.dt * phi_bar.x), add(v + 1, ws.dt * phi_bar.y), add(v + 2, ws.dt * phi_bar.z);
        bar.q[q] = theta_bar.x, bar.q[q + 1] = theta_bar.y, bar.q[q + 2] = theta_bar.z;
        bar.q[q + 3] = constant<Real>(0);
      });
}

// ---- (25) -----------------------------------------------------------------------------------------------------------

/// Links from the motion with q̇ to that with z, and what (8) is then of. The cotangent of z is what it adds to that of
/// q̇, which is all that it does where μ = 0.
template <class Layout>
BACKDRIVE_CALLED void enter_middle(Workspace<Layout>& ws, StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  each_middle_change(ws, [&](int i, const MiddleChange<Real>& change) {
    auto& s = ws.link[i];
    s.v += change.v, s.a += change.a, s.force += change.force;
    ws.whip[i].spin = change.spin;
  });
  for (int v = 0; v < ws.nv; ++v) ws.middle.rates_bar[v] = bar.qd[v];
  bar.rates = ws.middle.rates;
  bar.sweep = Sweep::middle;
}

/// Of links with q̇, true accelerations and forces from those of the second solve to the first's, or back.
template <class Layout>
BACKDRIVE_INLINE void exchange_solves(Workspace<Layout>& ws, bool to_first) {
  using Real = typename Layout::Real;
  const auto change = [&](int v, const Spatial<Real>&) {
    const Real late = ws.middle.qdd[v] - ws.dof[v].qdd;
    return to_first ? late : -late;
  };
  spread_motion(ws, change, [&](int i, const Spatial<Real>& delta) { keep_acceleration(ws.link[i], delta); });
}

/// The cotangent of μ of a tree to the velocities of its joints, by λ too.
template <class Layout>
BACKDRIVE_INLINE void middle_share_adjoint(Workspace<Layout>& ws, int root, int end, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Real half = constant<Real>(0.5) * ws.dt;
  Real share_bar = ws.whip[root].half_way_bar;
  for (int i = root; i < end && !ws.links[root].rigid; ++i) {
    const Link& link = ws.links[i];
    for (int v = link.v; v < link.v + joint_size(link.type).nv; ++v) {
      share_bar += half * (ws.middle.rates_bar[v] * ws.middle.qdd[v]);
    }
    if (link.spins) share_bar -= dot(ws.whip[i].spin_bar, free_turn_of(ws, i, ws.qd).lost());
  }
  const TreeTurns<Real> turns_bar = adj_middle_share(ws.whip[root].turns, ws.dt, share_bar);
  const auto to_rates = [&](int v, const Real& x) __attribute__((always_inline)) {
    bar.qd[v] += x;
  };
  adj_tree_turns(ws, root, end, ws.qd, turns_bar, to_rates);
}

/// After the sweep of the second solve: the first one's, with what ½ μ Δt makes of the cotangent of z. Leaves the sum
/// of both w in dof[].x and its δ, for what both solves are alike in, and links in the motion of the first.
template <class Layout>
BACKDRIVE_CALLED void first_solve_adjoint(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  for (int v = 0; v < ws.nv; ++v) ws.middle.rates_bar[v] = bar.qd[v] - ws.middle.rates_bar[v];
  each_middle_change(ws, [&](int i, const MiddleChange<Real>& change) {
    auto& s = ws.link[i];
    s.v -= change.v, s.a -= change.a, s.force -= change.force;
  });
  exchange_solves(ws, true);
  each_tree(ws, [&](int root, int end) {
    middle_share_adjoint(ws, root, end, bar);
    const Real time = time_to_middle(ws, root);
    for (int i = root; i < end; ++i) {
      const Link& link = ws.links[i];
      for (int v = link.v; v < link.v + joint_size(link.type).nv; ++v) {
        ws.middle.w[v] = ws.dof[v].x;
        ws.dof[v].x = time * ws.middle.rates_bar[v];
      }
    }
  });
  const auto each_coupling = [&](const auto& visit) {
    if constexpr (Layout::coupled) {
      for (int c = 0; c < ws.coupling.count; ++c) visit(ws.coupling.now[c]);
    }
  };
  each_coupling([](auto& now) { now.first_bar = now.bar; });
  solve_again(ws);
  each_coupling([](auto& now) {
    const Real second = now.first_bar;
    now.first_bar = now.bar;
    now.bar = second;
  });
  StepBar<Layout> sweep = bar;
  sweep.sweep = Sweep::start;
  reverse_sweep(ws, sweep);
  for (int v = 0; v < ws.nv; ++v) {
    const Real second = ws.middle.w[v];
    ws.middle.w[v] = ws.dof[v].x;
    ws.dof[v].x += second;
  }
  bool wanted = ws.lifted;
  each_whipping_tree(ws, [&](int, int) { wanted = true; });
  if (!wanted) return;
  spread_motion(
      ws, [&](int v, const Spatial<Real>&) { return ws.dof[v].x; },
      [&](int i, const Spatial<Real>& delta) { ws.link[i].delta = delta; });
}

/// Adjoint of q̈, whose cotangent stands in dof[].x, after accelerations_and_forces: adds to bar.q and bar.qd what q and
/// q̇ receive, and sets and adds the rest as step_adjoint.
template <class Layout>
BACKDRIVE_INLINE void acceleration_adjoint(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  solve_again(ws);
  StepBar<Layout> sweep = bar;
  if (ws.middle.on) enter_middle(ws, sweep);
  reverse_sweep(ws, sweep);
  if (ws.middle.on) first_solve_adjoint(ws, bar);
  whip_adjoint(ws, bar);
  if (ws.lifted) lift_adjoint(ws, bar);
  joint_forces_adjoint(ws, bar);
  if constexpr (Layout::coupled) {
    if (is_coupled(ws)) couplings_adjoint(ws, bar);
  }
}

/// Adjoint of one step (5) after accelerations_and_forces: on entry bar.q, bar.qd hold the cotangents of q⁺, q̇⁺; on
/// return those of q, q̇. Sets bar.control; adds to bar.constants and bar.gravity.
template <class Layout>
BACKDRIVE_HD void step_adjoint(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  adj_move(
      ws, bar,
      [&](int v) __attribute__((always_inline)) {  // q̇⁺ = q̇ + Δt q̈
        return ws.qd[v] + ws.dt * ws.dof[v].qdd;
      },
      [&](int v, const Real& x) __attribute__((always_inline)) { bar.qd[v] += x; });
  for (int k = 0; k < ws.nv; ++k) ws.dof[k].x = ws.dt * bar.qd[k];  // q̇⁺ = q̇ + Δt q̈
  acceleration_adjoint(ws, bar);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
