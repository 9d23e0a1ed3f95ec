#pragma once
// Adjoint of contact_step.h: (A1)-(A13) of docs/contact.md.
//
// Everything is linear in cotangents, so what contact adds is apart from (7)-(8): with the twists Y of v (of q̇), v_s,
// Δv1, Δv, w and w1, and G^Y = ∂φ/∂Y of the subtree, the turn of a subtree together with the twists that carry it
// changes φ by no more than what its contacts see of the world, R. So
//
//   Z = R + Σ_Y Y_p ×* G^Y        q̄ += Sᵀ Z        q̇̄ −= Sᵀ G^v        R = Σ (pose̅ + Y ×* y̅)  over its contacts.
//
// Where a tree is in the world enters nowhere but in the places of shapes of the world and of other trees.
#include "integrators/featherstone/contact_step.h"
#include "integrators/featherstone/dynamics_adjoint.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// (1)-(4) for the adjoint, (C1)-(C7) for all contacts. False: nothing is in reach.
template <class Layout>
BACKDRIVE_HD bool recompute_with_contact(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  kinematics(ws);
  articulate(ws);
  solve_outwards(
      ws, &Layout::Dof::qdd, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
        keep_smooth(ws, i, delta);
        keep_acceleration(ws.link[i], delta);
      });
  const bool touching = predict_forces(ws);
  if (!touching) {
    for (int k = 0; k < ws.nv; ++k) {
      typename Layout::Dof& dof = ws.dof[k];
      dof.kick = dof.change = dof.w = dof.w1 = constant<Real>(0);
    }
    return false;
  }
  solve_loads_inwards(
      ws, [](auto& dof) -> auto& { return dof; });
  solve_outwards(
      ws, &Layout::Dof::kick, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
        ws.contact.link[i].kick = delta;
      });
  return true;
}

// ---- (A3)-(A10): the solves -----------------------------------------------------------------------------------------

template <class Real>
BACKDRIVE_INLINE contact::ContactState<Real> zero_state() {
  const Real o = constant<Real>(0);
  return {o, zero3<Real>(), zero3<Real>(), zero3<Real>()};
}
template <class Real>
BACKDRIVE_INLINE contact::PairMaterial<Real> zero_material() {
  const Real o = constant<Real>(0);
  return {o, o, o, o, o};
}

template <class Layout>
BACKDRIVE_INLINE void add_material(Workspace<Layout>& ws, const PairInStep<Layout>& pair, const StepBar<Layout>& bar,
                                   const contact::PairMaterial<typename Layout::Real>& m_bar) {
  using Real = typename Layout::Real;
  if (!bar.wants_parameters()) return;
  adj_pair_material<Real>(ws.contact.constants[pair.a], ws.contact.constants[pair.b], pair.material, m_bar,
                          bar.shapes[pair.a], bar.shapes[pair.b]);
}

/// (A4)-(A5): from the twists of w to the cotangents of the contacts' states and of e, the latter as loads.
template <class Layout>
BACKDRIVE_CALLED void adj_forces(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  clear_loads(ws);
  struct Context {
    PairTwists<Real> twists;
    Spatial<Real> w;
  };
  each_contact(
      ws,
      [&](const auto& pair) {
        return Context{pair_twists(ws, pair), pair.relative([&](int i) { return ws.contact.link[i].w; })};
      },
      [&](const auto& pair, const Context& context, const Contact<Real>& c, int number) {
        const contact::ContactState<Real> state = state_of(c, context.twists);
        const auto model = linear_model(pair.material, state, ws.dt);
        const auto trace = contact_force(pair.material, state, model, c.change, ws.dt);
        ContactBar<Real>& own = ws.contact.bars[number];
        own = {zero_state<Real>(), zero3<Real>()};
        contact::PairMaterial<Real> m_bar = zero_material<Real>();
        adj_contact_force(pair.material, state, model, c.change, trace, ws.dt,
                          velocity_at(context.w, c.position) * ws.dt, own.change, own.state, m_bar);
        if (mutated(Mutation::frozen_predictor)) own.change = zero3<Real>();
        add_material(ws, pair, bar, m_bar);
        add_load(ws, pair, wrench_at(c.position, own.change));
      });
}

/// x·K y's derivatives of one body's block θ K, by (A7); P and E are velocities at the contact of w1 and Δv1.
template <class Real>
BACKDRIVE_INLINE void adj_block(const Real& theta, const contact::Predictor<Real>& p, const Vec3<Real>& n,
                                const Vec3<Real>& P, const Vec3<Real>& E, contact::Predictor<Real>& p_bar,
                                Vec3<Real>& n_bar, Real& theta_bar) {
  const Real nP = dot(n, P), nE = dot(n, E), along = nP * nE, across = dot(P, E) - along;
  p_bar.normal -= theta * along;
  p_bar.tangential -= theta * across;
  theta_bar -= p.normal * along + p.tangential * across;
  n_bar += unless(Mutation::block_normal, (P * nE + E * nP) * (theta * (p.tangential - p.normal)));
}

/// (A7)-(A8): from the twists of w1; the cotangents of v_s, as loads (A9).
template <class Layout>
BACKDRIVE_CALLED void adj_predictors(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  clear_loads(ws);
  each_contact(
      ws, [&](const auto& pair) { return pair_twists(ws, pair); },
      [&](const auto& pair, const PairTwists<Real>& twists, const Contact<Real>& c, int number) {
        const contact::ContactState<Real> state = state_of(c, twists);
        const auto model = linear_model(pair.material, state, ws.dt);
        const contact::Predictor<Real> p = predictor_of(model, state, ws.dt);
        ContactBar<Real>& own = ws.contact.bars[number];
        const Real zero = constant<Real>(0);
        const auto of = [&](const Spatial<Real>& twist, const Vec3<Real>& x) { return velocity_at(twist, x); };
        const auto &ti = ws.contact.link[pair.i], &tj = ws.contact.link[pair.j < 0 ? pair.i : pair.j];
        const Vec3<Real> x = c.position, y = x + pair.shift;
        contact::Predictor<Real> p_bar{of(ti.w1, x), zero, zero};
        Real theta_i_bar = zero, theta_j_bar = zero;
        Vec3<Real>& n_bar = own.state.normal;
        if (!mutated(Mutation::frozen_block)) {
          adj_block(pair.theta_i, p, c.normal, of(ti.w1, x), of(ti.change, x), p_bar, n_bar, theta_i_bar);
        }
        if (pair.j >= 0) {
          p_bar.impulse -= of(tj.w1, y);
          adj_block(pair.theta_j, p, c.normal, of(tj.w1, y), of(tj.change, y), p_bar, n_bar, theta_j_bar);
        }
        contact::PairMaterial<Real> m_bar = zero_material<Real>();
        adj_predictor(pair.material, state, model, ws.dt, p_bar, own.state, m_bar);
        add_material(ws, pair, bar, m_bar);
        add_load(ws, pair, wrench_at(x, own.state.smooth));
        if constexpr (Layout::parameters) {
          if (pair.j >= 0 && bar.wants_parameters()) {
            pair.masses(ws).adj(theta_i_bar, theta_j_bar, bar.constants[pair.i].mass, bar.constants[pair.j].mass);
          }
        }
      });
}

/// Adds Jᵀ of the loads to dof[].smooth_bar (A9).
template <class Layout>
BACKDRIVE_CALLED void project_loads(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  Spatial<Real> load = zero6<Real>();
  Waiting<Spatial<Real>> waiting(ws.waiting);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    if (link.leaf) load = zero6<Real>();
    load += ws.contact.link[i].load;
    const int dofs = joint_size(link.type).nv;
    for (int k = 0; k < dofs; ++k) {
      typename Layout::Dof& dof = ws.dof[link.v + k];
      dof.smooth_bar += unless(Mutation::smooth_of_contacts, dot(dof.S, load));
    }
    if (link.parent < 0) continue;
    if (!link.last_child) load += waiting.pop();
    if (link.parent != i - 1) waiting.push(load);
  }
}

/// (A3)-(A9): with the cotangents of Δv in dof[].x and those of v_s in dof[].smooth_bar; adds to the latter.
template <class Layout>
BACKDRIVE_HD void adj_kick(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  solve_inwards(ws);
  solve_outwards(
      ws, &Layout::Dof::w, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
        ws.contact.link[i].w = delta;
      });
  adj_forces(ws, bar);
  solve_loads_inwards(
      ws, [](auto& dof) -> auto& { return dof.predictor; });
  solve_predictor_outwards(
      ws, [](auto& dof, const Real& x) __attribute__((always_inline)) { dof.w1 = x; },
      [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) { ws.contact.link[i].w1 = delta; });
  adj_predictors(ws, bar);
  project_loads(ws);
}

// ---- (A11): what contacts do to twists and places -------------------------------------------------------------------

template <class Layout>
BACKDRIVE_HD void clear_bars(Workspace<Layout>& ws) {
  const auto o = zero6<typename Layout::Real>();
  for (int i = 0; i < ws.link_count; ++i) ws.contact.link[i].bar = {o, o, o, o, o, o};
}

/// The wrenches of one contact on one body: cotangents of the velocities of its point with five twists.
template <class Real>
struct PointBars {
  Vec3<Real> v, smooth, change, w, w1;
};
/// Notes them on a link, `x` from its O, and returns the turn of the point with them: Σ y̅ × Y_ang.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> add_point_bars(const PointBars<Real>& b, const Vec3<Real>& x, const Spatial<Real>& v,
                                           TouchAdjointLink<Real>& t) {
  const auto add = [&](Spatial<Real> & bar, const Vec3<Real>& y_bar, const Spatial<Real>& Y)
      __attribute__((always_inline)) {
    const Spatial<Real> wrench = wrench_at(x, y_bar);
    bar -= wrench;
    t.bar.turn = plus_cross_force(t.bar.turn, Y, wrench);
    return cross(y_bar, Y.ang);
  };
  return add(t.bar.v, b.v, v) + add(t.bar.smooth, b.smooth, t.smooth) + add(t.bar.change, b.change, t.change) +
         add(t.bar.w, b.w, t.w) + add(t.bar.w1, b.w1, t.w1);
}

/// K u of a contact.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> block_times(const contact::Predictor<Real>& p, const Vec3<Real>& n, const Vec3<Real>& u) {
  return u * p.tangential + n * ((p.normal - p.tangential) * dot(n, u));
}

/// One contact's cotangents onto its links; returns those of its gap, place and normal.
template <class Layout>
BACKDRIVE_HD contact::ContactPoint<typename Layout::Real> adj_contact(Workspace<Layout>& ws,
                                                                      const PairInStep<Layout>& pair,
                                                                      const PairTwists<typename Layout::Real>& twists,
                                                                      const Contact<typename Layout::Real>& c,
                                                                      const ContactBar<typename Layout::Real>& own,
                                                                      Vec3<typename Layout::Real>& shift_bar) {
  using Real = typename Layout::Real;
  const contact::ContactState<Real> state = state_of(c, twists);
  const contact::Predictor<Real> p = predictor_of(linear_model(pair.material, state, ws.dt), state, ws.dt);
  const Vec3<Real> impulse = c.force * ws.dt;
  auto& ti = ws.contact.link[pair.i];
  const auto push = [&](const TouchAdjointLink<Real>& t, const Vec3<Real>& x, const Real& theta,
                        const auto& with_sign) {
    const Vec3<Real> KP = block_times(p, c.normal, velocity_at(t.w1, x)) * theta;
    const Vec3<Real> KE = block_times(p, c.normal, velocity_at(t.change, x)) * theta;
    return PointBars<Real>{unless(Mutation::contact_start, with_sign(own.state.start)), with_sign(own.state.smooth),
                           with_sign(own.change) - unless(Mutation::block_of_change, KP), with_sign(impulse),
                           with_sign(p.impulse) - KE};
  };
  const auto plus = [](const Vec3<Real>& v) { return v; };
  const auto minus = [](const Vec3<Real>& v) { return -v; };
  Vec3<Real> x_bar = add_point_bars(push(ti, c.position, pair.theta_i, plus), c.position, ws.link[pair.i].v, ti);
  if (pair.j >= 0) {
    auto& tj = ws.contact.link[pair.j];
    const Vec3<Real> x = c.position + pair.shift;
    const Vec3<Real> own_bar = add_point_bars(push(tj, x, pair.theta_j, minus), x, ws.link[pair.j].v, tj);
    x_bar += own_bar;
    if (pair.apart) shift_bar += own_bar;
  }
  return {-own.state.depth, x_bar, unless(Mutation::contact_normal, own.state.normal)};
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
    const Vec3<Real> local = transposed_times(in_packs<Real>(c.rotation), origin_bar);
    Real* const q_bar = bar.q + link.q + 4;
    q_bar[0] += local.x, q_bar[1] += local.y, q_bar[2] += local.z;
    const Real* const q = ws.q + link.q + 4;
    turn = cross(Vec3<Real>{q[0], q[1], q[2]}, local);
  }
  if (!bar.wants_parameters()) return;
  bar.constants[root].translation += origin_bar;
  bar.constants[root].rotation += turn;
}

/// A shape's cotangents onto its link, its constants, and, of the second shape, `shift`.
template <class Layout>
BACKDRIVE_HD void adj_placed_shape(Workspace<Layout>& ws, int shape,
                                   const contact::ShapeBar<typename Layout::Real>& own,
                                   const contact::Shape<typename Layout::Real>& placed,
                                   const Vec3<typename Layout::Real>& shift, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const int link = ws.contact.shapes[shape].link;
  if (link >= 0) ws.contact.link[link].bar.turn += back(own.pose, shift);
  if (!bar.wants_parameters()) return;
  ShapeGradient<Real>& gradient = bar.shapes[shape];
  gradient.scale += own.scale;
  // pose̅ is about O of the first tree: about the shape's own origin it is what turns the shape.
  const Vec3<Real> moment = own.pose.ang - cross(placed.pose.origin, own.pose.lin);
  gradient.rotation += transposed_times(placed.pose.axes, moment);
  if (link < 0) {
    gradient.position += own.pose.lin;
  } else {
    gradient.position += transposed_times(ws.link[link].pose.axes, own.pose.lin);
  }
}

/// (A11) of one pair.
template <class Layout>
BACKDRIVE_CALLED void adj_contacts_of(Workspace<Layout>& ws, const TouchingPair<typename Layout::Real>& touching,
                                      const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  auto& space = ws.contact;
  const PairInStep<Layout> pair(ws, touching);
  const PairTwists<Real> twists = pair_twists(ws, pair);
  const auto &ga = space.geometry[pair.a], &gb = space.geometry[pair.b];
  const int count = contact::contact_count(ga, gb);
  const Vec3<Real> o = zero3<Real>();
  for (int k = 0; k < count; ++k) space.points[k] = {constant<Real>(0), o, o};
  Vec3<Real> shift_bar = o;
  Real margin_bar = constant<Real>(0);
  for (int k = touching.first; k < touching.first + touching.count; ++k) {
    const Contact<Real>& c = space.contacts[k];
    contact::ContactPoint<Real>& point_bar = space.points[c.point];
    point_bar = adj_contact(ws, pair, twists, c, space.bars[k], shift_bar);
    margin_bar -= point_bar.gap;
  }
  const contact::Shape<Real> A = placed_shape(ws, pair.a, zero3<Real>()), B = placed_shape(ws, pair.b, pair.shift);
  contact::ShapeBar<Real> A_bar{zero6<Real>(), o}, B_bar{zero6<Real>(), o};
  contact::adj_contact_points(ga, A, gb, B, space.points, A_bar, B_bar);
  adj_placed_shape(ws, pair.a, A_bar, A, o, bar);
  adj_placed_shape(ws, pair.b, B_bar, B, pair.shift, bar);
  if (bar.wants_parameters()) {
    bar.shapes[pair.a].margin += margin_bar;
    bar.shapes[pair.b].margin += margin_bar;
  }
  const int root_a = space.shapes[pair.a].root, root_b = space.shapes[pair.b].root;
  if (root_a == root_b) return;
  shift_bar -= B_bar.pose.lin;
  adj_tree_origin(ws, root_a, shift_bar, bar);
  adj_tree_origin(ws, root_b, -shift_bar, bar);
}

// ---- (A12)-(A13) ----------------------------------------------------------------------------------------------------

/// ∂φ/∂Y of a subtree, and R.
template <class Real>
struct KickBar {
  Spatial<Real> v, smooth, change, kick, w, w1, turn;
};
template <class Real>
BACKDRIVE_INLINE void operator+=(KickBar<Real>& a, const KickBar<Real>& b) {
  a.v += b.v, a.smooth += b.smooth, a.change += b.change, a.kick += b.kick;
  a.w += b.w, a.w1 += b.w1, a.turn += b.turn;
}

/// Numbers of the largest that waits in a sweep with contact.
template <class Real>
constexpr int kContactWaitingNumbers = sizeof(KickBar<Real>) > sizeof(Articulated<Real>)
                                           ? sizeof(KickBar<Real>) / sizeof(Real)
                                           : kWaitingNumbers<Real>;

/// Of one body: contacts, and w·I Δv + w1·I Δv1 (A12).
template <class Real>
BACKDRIVE_INLINE KickBar<Real> kick_of_body(const TouchAdjointLink<Real>& t, const RigidInertia<Real>& I) {
  const auto& b = t.bar;
  return {b.v,
          b.smooth,
          unless(Mutation::kick_inertia, plus_times(b.change, I, t.w1)),
          unless(Mutation::kick_inertia, I * t.w),
          plus_times(b.w, I, t.kick),
          plus_times(b.w1, I, t.change),
          b.turn};
}

/// Σ Y ×* G^Y + R for the twists of one link, that carries the subtree.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> turned_with_twists(const KickBar<Real>& bar, const Spatial<Real>& v,
                                                  const TouchAdjointLink<Real>& t) {
  Spatial<Real> Z = plus_cross_force(bar.turn, v, bar.v);
  Z = plus_cross_force(Z, t.smooth, bar.smooth);
  Z = plus_cross_force(Z, t.change, bar.change);
  Z = plus_cross_force(Z, t.kick, bar.kick);
  Z = plus_cross_force(Z, t.w, bar.w);
  return plus_cross_force(Z, t.w1, bar.w1);
}

/// What (A12) adds to mass, com and inertia: x·I y with both pairs of twists.
template <class Real, class Const>
BACKDRIVE_INLINE void kick_mass_adjoint(const ParameterLink<Real>& s, const LinkConstants<Const>& c,
                                        const Spatial<Real>& X, const Spatial<Real>& Y, LinkGradient<Real>& gradient) {
  const Mat3<Real>& axes = s.pose.axes;
  const Vec3<Real> com = plus_times(s.pose.origin, axes, c.com);
  const Vec3<Real> Xc = velocity_at(X, com), Yc = velocity_at(Y, com);
  gradient.mass -= dot(Xc, Yc);
  gradient.com -= transposed_times(axes, (cross(Yc, X.ang) + cross(Xc, Y.ang)) * c.mass);
  const Vec3<Real> x = transposed_times(axes, X.ang), y = transposed_times(axes, Y.ang);
  Sym3<Real>& bar = gradient.inertia;
  bar.xx -= x.x * y.x;
  bar.yy -= x.y * y.y;
  bar.zz -= x.z * y.z;
  bar.xy -= x.x * y.y + x.y * y.x;
  bar.xz -= x.x * y.z + x.z * y.x;
  bar.yz -= x.y * y.z + x.z * y.y;
}

/// One joint of (A13).
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
  const int turns = free ? 3 : dofs;  // the free root's position enters by the tree's origin
  for (int k = 0; k < turns; ++k) bar.q[link.q + k] += dot(dof[k].S, Z);
  if constexpr (Layout::parameters) {
    if (!bar.wants_parameters()) return;
    const auto& pose = ws.link[link.parent < 0 ? i : link.parent].pose;
    placement_adjoint(link, ws.constants[i], pose, free ? own.turn : Z, bar.constants[i]);
  }
}

/// Leaves to root: what the solves for Δv and Δv1 and the contacts add to q̄, q̇̄ and the parameters.
template <class Layout>
BACKDRIVE_CALLED void kick_sweep(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  KickBar<Real> top;
  Waiting<KickBar<Real>> waiting(ws.waiting);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    const auto& t = ws.contact.link[i];
    if (link.leaf) {
      top = kick_of_body(t, ws.link[i].I);
    } else {
      top += kick_of_body(t, ws.link[i].I);
    }
    if constexpr (Layout::parameters) {
      if (bar.wants_parameters()) {
        kick_mass_adjoint(ws.link[i], ws.constants[i], t.w, t.kick, bar.constants[i]);
        kick_mass_adjoint(ws.link[i], ws.constants[i], t.w1, t.change, bar.constants[i]);
      }
    }
    kick_joint(ws, i, top, bar);
    if (link.parent < 0) continue;
    if (!link.last_child) top += waiting.pop();
    if (link.parent != i - 1) waiting.push(top);
  }
}

/// (A11)-(A13).
template <class Layout>
BACKDRIVE_HD void adj_contacts(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  clear_bars(ws);
  for (int k = 0; k < ws.contact.touching_count; ++k) adj_contacts_of(ws, ws.contact.touching[k], bar);
  kick_sweep(ws, bar);
}

/// Adjoint of one step with contact: as step_adjoint, after recompute_with_contact. bar.drift holds the cotangent of
/// the reported velocity v_d.
template <class Layout>
BACKDRIVE_HD void step_adjoint_with_contact(Workspace<Layout>& ws, const StepBar<Layout>& bar, bool touching) {
  using Real = typename Layout::Real;
  const Real half = constant<Real>(0.5);
  for (int k = 0; k < ws.nv; ++k) ws.dof[k].smooth_bar = bar.drift[k];
  adj_drift(
      ws, bar,
      [&](int v) __attribute__((always_inline)) {
        const auto& dof = ws.dof[v];
        return ws.qd[v] + ws.dt * dof.qdd + half * dof.kick;
      },
      [&](int v, const Real& x) __attribute__((always_inline)) { ws.dof[v].smooth_bar += x; });
  for (int k = 0; k < ws.nv; ++k) {
    auto& dof = ws.dof[k];  // (A2)
    dof.x = bar.qd[k] + (mutated(Mutation::half_kick) ? dof.smooth_bar : half * dof.smooth_bar);
    dof.smooth_bar += bar.qd[k];
  }
  if (touching) adj_kick(ws, bar);
  for (int k = 0; k < ws.nv; ++k) {
    auto& dof = ws.dof[k];
    bar.qd[k] = dof.smooth_bar;
    dof.x = ws.dt * dof.smooth_bar;
  }
  solve_again(ws);
  reverse_sweep(ws, bar);
  joint_forces_adjoint(ws, bar);
  if (touching) adj_contacts(ws, bar);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
