#pragma once
// Adjoint of contact_step.h: (A1)-(A13) of docs/contact.md.
//
// Everything is linear in cotangents, so what contact adds is apart from (7)-(8): with the twists Y of v (of q̇), v_s,
// Δv, w, Δv1, w1, Δv2 and w2, and G^Y = ∂φ/∂Y of the subtree, the turn of a subtree together with the twists that carry
// it changes φ by no more than what its contacts see of the world, R. So
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
  smooth_motion(
      ws, [&](int i, const Spatial<Real>& delta)
              __attribute__((always_inline)) { keep_acceleration(ws.link[i], delta); });
  const bool touching = contact_kick(
      ws, &Layout::Dof::kick, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
        ws.contact.link[i].kick = delta;
      });
  if (touching) return true;
  for (int k = 0; k < ws.nv; ++k) {
    typename Layout::Dof& dof = ws.dof[k];
    dof.kick = dof.w = constant<Real>(0);
    for (int s = 0; s < kPredictors; ++s) dof.change[s] = dof.w_predictor[s] = constant<Real>(0);
  }
  return false;
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

template <class Real>
BACKDRIVE_INLINE ContactBar<Real> zero_bar() {
  return {zero_state<Real>(),
          {zero3<Real>(), zero3<Real>()},
          constant<Real>(0),
          contact::no_cotangents<Real>(),
          zero_material<Real>()};
}

/// (A4)-(A5), with what the loss says of the forces: from the twists of w to the cotangents of the contacts' states, of
/// c₂, and of e₂, which become loads.
template <class Layout>
BACKDRIVE_CALLED void adj_forces(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  clear_loads(ws);
  struct Context : PairTwists<Real> {
    Spatial<Real> w;
    Vec3<Real> seed;
  };
  each_contact(
      ws,
      [&](const auto& pair) {
        return Context{contact_twists<0>(ws, pair), pair.relative([&](int i) { return ws.contact.link[i].w; }),
                       bar.pair_forces ? bar.pair_forces[pair.number] : zero3<Real>()};
      },
      [&](const auto& pair, const Context& context, const Contact<Real>& c, int number) {
        const contact::ContactState<Real> state = state_of(c, context);
        const auto trace = contact_force(pair.material, state, c.model, c.drag, c.change[1], ws.dt);
        const Vec3<Real> force_bar = velocity_at(context.w, c.position) * ws.dt + context.seed;
        ContactBar<Real>& own = ws.contact.bars[number];
        own = zero_bar<Real>();
        adj_contact_force(pair.material, state, c.model, c.drag, c.change[1], trace, ws.dt, force_bar, own.change[1],
                          own.drag, own.model, own.state, own.material);
        own.change[1] = unless(Mutation::frozen_predictor, own.change[1]);
        add_load(ws, pair, wrench_at(c.position, own.change[1]));
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

/// (A7)-(A8) of one contact: from the twists of its predictor's w to the cotangents of the model, of c₂ (of the model's
/// drag, for the first) and of the blocks' shares.
template <int Stage, class Layout>
BACKDRIVE_INLINE void adj_predictor_of(Workspace<Layout>& ws, const PairInStep<Layout>& pair,
                                       const contact::ContactState<typename Layout::Real>& state,
                                       const Contact<typename Layout::Real>& c, ContactBar<typename Layout::Real>& own,
                                       const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Real zero = constant<Real>(0), &drag = drag_of<Stage>(c);
  const contact::Predictor<Real> p = predictor_of(c.model, state, drag, ws.dt);
  contact::Predictor<Real> p_bar{zero3<Real>(), zero, zero};
  Vec3<Real>& n_bar = own.state.normal;
  const auto add_body = [&](int link, const Vec3<Real>& x, const Real& theta, bool frozen) {
    const auto& t = ws.contact.link[link];
    const Vec3<Real> P = velocity_at(t.w_predictor[Stage], x), E = velocity_at(t.change[Stage], x);
    Real theta_bar = zero;
    if (!frozen) adj_block(theta, p, c.normal, P, E, p_bar, n_bar, theta_bar);
    p_bar.impulse = P - p_bar.impulse;
    return theta_bar;
  };
  Real theta_j_bar = zero;
  if (pair.j >= 0) theta_j_bar = add_body(pair.j, c.position + pair.shift, pair.theta_j, false);
  const Real theta_i_bar = add_body(pair.i, c.position, pair.theta_i, mutated(Mutation::frozen_block));
  adj_predictor(state, c.model, drag, ws.dt, p_bar, own.model, Stage == 0 ? own.model.drag : own.drag, own.state);
  if constexpr (Layout::parameters) {
    if (pair.shared && bar.wants_parameters()) {
      pair.masses(ws).adj(theta_i_bar, theta_j_bar, bar.constants[pair.i].mass, bar.constants[pair.j].mass);
    }
  }
}

/// (A7)-(A8) of a predictor. The second hands on to e₁ by (C5a), the first to the states, and so to v_s (A9) and the
/// materials; what goes on becomes loads.
template <int Stage, class Layout>
BACKDRIVE_CALLED void adj_predictors(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  clear_loads(ws);
  each_contact(
      ws, [&](const auto& pair) { return contact_twists<0>(ws, pair); },
      [&](const auto& pair, const PairTwists<Real>& twists, const Contact<Real>& c, int number) {
        const contact::ContactState<Real> state = state_of(c, twists);
        const auto& m = pair.material;
        ContactBar<Real>& own = ws.contact.bars[number];
        adj_predictor_of<Stage>(ws, pair, state, c, own, bar);
        if constexpr (Stage == 1) {
          const auto trace = second_drag(m, state, c.model, c.change[0], ws.dt);
          const Real drag_bar = unless(Mutation::frozen_drag, own.drag);
          adj_second_drag(m, state, c.model, c.change[0], trace, ws.dt, drag_bar, own.change[0], own.model, own.state,
                          own.material);
          add_load(ws, pair, wrench_at(c.position, own.change[0]));
        } else {
          adj_linear_model(m, state, linear_model(m, state, ws.dt), ws.dt, own.model, own.state, own.material);
          if (bar.wants_parameters()) {
            const auto& constants = ws.contact.constants;
            adj_pair_material<Real>(constants[pair.a], constants[pair.b], m, own.material, bar.shapes[pair.a],
                                    bar.shapes[pair.b]);
          }
          add_load(ws, pair, wrench_at(c.position, own.state.smooth));
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
    if (ws.contact.link[i].touched) load += ws.contact.link[i].load;
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

/// (A6): a solve with a predictor's factors and the loads as right-hand side.
template <int Stage, class Layout>
BACKDRIVE_HD void solve_predictor(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  solve_loads_inwards(ws, PredictorOf<Stage>());
  solve_outwards_with(
      ws, PredictorOf<Stage>(),
      [](auto& dof, const Real& x) __attribute__((always_inline)) { dof.w_predictor[Stage] = x; },
      [&](int i, const Spatial<Real>& delta)
          __attribute__((always_inline)) { ws.contact.link[i].w_predictor[Stage] = delta; });
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
  solve_predictor<1>(ws);
  adj_predictors<1>(ws, bar);
  solve_predictor<0>(ws);
  adj_predictors<0>(ws, bar);
  project_loads(ws);
}

// ---- (A11): what contacts do to twists and places -------------------------------------------------------------------

/// Of the links in touch; nobody reads those of the others.
template <class Layout>
BACKDRIVE_HD void clear_bars(Workspace<Layout>& ws) {
  const auto o = zero6<typename Layout::Real>();
  for (int i = 0; i < ws.link_count; ++i) {
    auto& t = ws.contact.link[i];
    if (t.touched) t.bar = {o, o, o, {o, o}, {o, o}, o};
  }
}

/// K u of a contact.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> block_times(const contact::Predictor<Real>& p, const Vec3<Real>& n, const Vec3<Real>& u) {
  return u * p.tangential + n * ((p.normal - p.tangential) * dot(n, u));
}

/// One contact's cotangents onto one of its links, x from its O: those of the velocities of its point with the seven
/// twists, `sign` (1 or −1) times what the relative ones receive. Returns the turn of the point with them, Σ y̅ × Y_ang.
template <class Layout>
BACKDRIVE_HD Vec3<typename Layout::Real> adj_side(Workspace<Layout>& ws, int link, double sign,
                                                  const Vec3<typename Layout::Real>& x,
                                                  const typename Layout::Real& theta,
                                                  const Contact<typename Layout::Real>& c,
                                                  const contact::Predictor<typename Layout::Real>* p,
                                                  const ContactBar<typename Layout::Real>& own) {
  using Real = typename Layout::Real;
  auto& t = ws.contact.link[link];
  Vec3<Real> turn = zero3<Real>();
  const auto add = [&](Spatial<Real> & bar, const Spatial<Real>& Y, const Vec3<Real>& y_bar)
      __attribute__((always_inline)) {
    const Spatial<Real> wrench = wrench_at(x, y_bar);
    bar -= wrench;
    t.bar.turn = plus_cross_force(t.bar.turn, Y, wrench);
    turn = plus_cross(turn, y_bar, Y.ang);
  };
  const Real s = constant<Real>(sign);
  add(t.bar.v, ws.link[link].v, unless(Mutation::contact_start, own.state.start * s));
  add(t.bar.smooth, t.smooth, own.state.smooth * s);
  add(t.bar.w, t.w, c.force * (s * ws.dt));
  for (int k = 0; k < kPredictors; ++k) {
    const auto block = [&](const Spatial<Real>& twist) __attribute__((always_inline)) {
      return block_times(p[k], c.normal, velocity_at(twist, x)) * theta;
    };
    const Vec3<Real> KP = unless(Mutation::block_of_change, block(t.w_predictor[k])), KE = block(t.change[k]);
    add(t.bar.change[k], t.change[k], own.change[k] * s - KP);
    add(t.bar.w_predictor[k], t.w_predictor[k], p[k].impulse * s - KE);
  }
  return turn;
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
  const contact::Predictor<Real> p[kPredictors] = {predictor_of(c.model, state, drag_of<0>(c), ws.dt),
                                                   predictor_of(c.model, state, drag_of<1>(c), ws.dt)};
  Vec3<Real> x_bar = adj_side(ws, pair.i, 1, c.position, pair.theta_i, c, p, own);
  if (pair.j >= 0) {
    const Vec3<Real> own_bar = adj_side(ws, pair.j, -1, c.position + pair.shift, pair.theta_j, c, p, own);
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
  const PairTwists<Real> twists = contact_twists<0>(ws, pair);
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
  Spatial<Real> v, smooth, kick, w;
  Spatial<Real> change[kPredictors], w_predictor[kPredictors];
  Spatial<Real> turn;
};
template <class Real>
BACKDRIVE_INLINE void operator+=(KickBar<Real>& a, const KickBar<Real>& b) {
  a.v += b.v, a.smooth += b.smooth, a.kick += b.kick, a.w += b.w, a.turn += b.turn;
  for (int s = 0; s < kPredictors; ++s) a.change[s] += b.change[s], a.w_predictor[s] += b.w_predictor[s];
}

/// Numbers of the largest that waits in a sweep with contact.
template <class Real>
constexpr int kContactWaitingNumbers = sizeof(KickBar<Real>) > sizeof(Articulated<Real>)
                                           ? sizeof(KickBar<Real>) / sizeof(Real)
                                           : kWaitingNumbers<Real>;

/// Adds what one body brings: Σ w·I Δv over the three solves (A12), and its contacts.
template <class Real>
BACKDRIVE_INLINE void add_body(const TouchAdjointLink<Real>& t, const RigidInertia<Real>& I, KickBar<Real>& sum) {
  sum.kick += unless(Mutation::kick_inertia, I * t.w);
  sum.w = plus_times(sum.w, I, t.kick);
  for (int s = 0; s < kPredictors; ++s) {
    sum.change[s] = plus_times(sum.change[s], I, unless(Mutation::kick_inertia, t.w_predictor[s]));
    sum.w_predictor[s] = plus_times(sum.w_predictor[s], I, t.change[s]);
  }
  if (!t.touched) return;
  const auto& b = t.bar;
  sum.v += b.v, sum.smooth += b.smooth, sum.w += b.w, sum.turn += b.turn;
  for (int s = 0; s < kPredictors; ++s) sum.change[s] += b.change[s], sum.w_predictor[s] += b.w_predictor[s];
}

/// Σ Y ×* G^Y + R for the twists of one link, that carries the subtree.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> turned_with_twists(const KickBar<Real>& bar, const Spatial<Real>& v,
                                                  const TouchAdjointLink<Real>& t) {
  Spatial<Real> Z = plus_cross_force(bar.turn, v, bar.v);
  Z = plus_cross_force(Z, t.smooth, bar.smooth);
  Z = plus_cross_force(Z, t.kick, bar.kick);
  Z = plus_cross_force(Z, t.w, bar.w);
  for (int s = 0; s < kPredictors; ++s) {
    Z = plus_cross_force(Z, t.change[s], bar.change[s]);
    Z = plus_cross_force(Z, t.w_predictor[s], bar.w_predictor[s]);
  }
  return Z;
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
    if (link.leaf) top = KickBar<Real>{};
    add_body(t, ws.link[i].I, top);
    if constexpr (Layout::parameters) {
      if (bar.wants_parameters()) {
        kick_mass_adjoint(ws.link[i], ws.constants[i], t.w, t.kick, bar.constants[i]);
        for (int s = 0; s < kPredictors; ++s) {
          kick_mass_adjoint(ws.link[i], ws.constants[i], t.w_predictor[s], t.change[s], bar.constants[i]);
        }
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
