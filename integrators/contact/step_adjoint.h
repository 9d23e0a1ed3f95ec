#pragma once
// Adjoint of contact_step.h: (A4), (A5), (A7), (A8) and (A11) of docs/contact.md, for any working set as there. Where
// the cotangents of parameters go the integrator's `bar` says: mass(body), shapes[], pair_forces; those of an O by
// adj_tree_origin(ws, root, bar of O, bar).
#include "integrators/contact/step.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

// ---- (A3)-(A10): the solves -----------------------------------------------------------------------------------------

template <class Real>
BACKDRIVE_INLINE ContactState<Real> zero_state() {
  const Real o = constant<Real>(0);
  return {o, zero3<Real>(), zero3<Real>(), zero3<Real>()};
}
template <class Real>
BACKDRIVE_INLINE PairMaterial<Real> zero_material() {
  const Real o = constant<Real>(0);
  return {o, o, o, o, o};
}

template <class Real>
BACKDRIVE_INLINE ContactBar<Real> zero_bar() {
  return {zero_state<Real>(),
          {zero3<Real>(), zero3<Real>()},
          constant<Real>(0),
          no_cotangents<Real>(),
          zero_material<Real>()};
}

template <class Real>
BACKDRIVE_INLINE ContactTurnBar<Real> zero_turn_bar() {
  const Vec3<Real> v = zero3<Real>();
  const Real o = constant<Real>(0);
  return {{v, v}, v, {v, v}, {{o, o}, {o, o}}, {o, o, o}};
}
/// What a predictor changes the relative angular velocity by.
template <int Stage, class Space>
BACKDRIVE_INLINE Vec3<typename Space::Real> turn_change(const Space& ws, const PairInStep<Space>& pair) {
  return pair.relative([&](int i) { return ws.contact.link[i].change[Stage]; }).ang;
}

/// (A4)-(A5) of one contact's moment. w: relative twist; force: f_n, whose cotangent it returns.
template <class Space>
BACKDRIVE_CALLED typename Space::Real adj_moment(Space& ws, const PairInStep<Space>& pair,
                                                 const PairTwists<typename Space::Real>& twists,
                                                 const Spatial<typename Space::Real>& w, int number,
                                                 const typename Space::Real& force) {
  using Real = typename Space::Real;
  ContactTurnBar<Real>& own = ws.contact.turn_bars[number];
  own = zero_turn_bar<Real>();
  Real force_bar = constant<Real>(0);
  adj_turn_moment(pair.turning(ws), ws.contact.contacts[number].normal, late_turn(turn_rates(twists)),
                  ws.contact.turns[number].drag[1], turn_change<1>(ws, pair), force, w.ang * ws.dt,
                  ws.contact.bars[number].state.normal, own.late, own.drag[1], own.change[1], force_bar, own.material);
  add_load(ws, pair, couple(own.change[1]));
  return force_bar;
}

/// (A4)-(A5), with what the loss says of the forces: from the twists of w to the cotangents of the contacts' states, of
/// c₂, and of e₂, which become loads.
template <class Space, class Bar>
BACKDRIVE_CALLED void adj_forces(Space& ws, const Bar& bar) {
  using Real = typename Space::Real;
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
        const ContactState<Real> state = state_of(c, context);
        const auto trace = contact_force(pair.material, state, c.model, c.drag, c.change[1], ws.dt);
        const Vec3<Real> force_bar = velocity_at(context.w, c.position) * ws.dt + context.seed;
        ContactBar<Real>& own = ws.contact.bars[number];
        own = zero_bar<Real>();
        Real normal_bar = constant<Real>(0);
        if (pair.resists_turns) normal_bar = adj_moment(ws, pair, context, context.w, number, trace.normal.value);
        adj_contact_force(pair.material, state, c.model, c.drag, c.change[1], trace, ws.dt, force_bar, normal_bar,
                          own.change[1], own.drag, own.model, own.state, own.material);
        add_load(ws, pair, wrench_at(c.position, own.change[1]));
      });
}

/// x·K y's derivatives of one body's block θ K, by (A7); P and E are velocities at the contact of w1 and Δv1.
template <class Real>
BACKDRIVE_INLINE void adj_block(const Real& theta, const Predictor<Real>& p, const Vec3<Real>& n, const Vec3<Real>& P,
                                const Vec3<Real>& E, Predictor<Real>& p_bar, Vec3<Real>& n_bar, Real& theta_bar) {
  const Real nP = dot(n, P), nE = dot(n, E), along = nP * nE, across = dot(P, E) - along;
  p_bar.normal -= theta * along;
  p_bar.tangential -= theta * across;
  theta_bar -= p.normal * along + p.tangential * across;
  n_bar += (P * nE + E * nP) * (theta * (p.tangential - p.normal));
}

/// (A7)-(A8) of one contact: from the twists of its predictor's w to the cotangents of the model, of c₂ (of the model's
/// drag, for the first) and of the blocks' shares.
template <int Stage, class Space, class Bar>
BACKDRIVE_INLINE void adj_predictor_of(Space& ws, const PairInStep<Space>& pair,
                                       const ContactState<typename Space::Real>& state,
                                       const Contact<typename Space::Real>& c, ContactBar<typename Space::Real>& own,
                                       const Bar& bar) {
  using Real = typename Space::Real;
  const Real zero = constant<Real>(0), &drag = drag_of<Stage>(c);
  const Predictor<Real> p = predictor_of(c.model, state, drag, ws.dt);
  Predictor<Real> p_bar{zero3<Real>(), zero, zero};
  Vec3<Real>& n_bar = own.state.normal;
  const auto add_body = [&](int link, const Vec3<Real>& x, const Real& theta) {
    const auto& t = ws.contact.link[link];
    const Vec3<Real> P = velocity_at(t.w_predictor[Stage], x), E = velocity_at(t.change[Stage], x);
    Real theta_bar = zero;
    adj_block(theta, p, c.normal, P, E, p_bar, n_bar, theta_bar);
    p_bar.impulse = P - p_bar.impulse;
    return theta_bar;
  };
  Real theta_j_bar = zero;
  if (pair.j >= 0) theta_j_bar = add_body(pair.j, c.position + pair.shift, pair.theta_j);
  const Real theta_i_bar = add_body(pair.i, c.position, pair.theta_i);
  adj_predictor(state, c.model, drag, ws.dt, p_bar, own.model, Stage == 0 ? own.model.drag : own.drag, own.state);
  if (pair.shared && bar.wants_parameters()) {
    pair.masses(ws).adj(theta_i_bar, theta_j_bar, bar.mass(pair.i), bar.mass(pair.j));
  }
}

/// The same of its friction against turns: of the second to e₁, of the first to the rates and so to v_s, which become
/// loads. force: N_r or f_n as in load_turn_predictor, whose cotangent it returns.
template <int Stage, class Space, class Bar>
BACKDRIVE_CALLED typename Space::Real adj_turn_predictor_of(Space& ws, const PairInStep<Space>& pair,
                                                            const PairTwists<typename Space::Real>& twists, int number,
                                                            const typename Space::Real& force, const Bar& bar) {
  using Real = typename Space::Real;
  const Real zero = constant<Real>(0);
  const TurnMaterial<Real> m = pair.turning(ws);
  const TurnRates<Real> rates = turn_rates(twists);
  const Vec3<Real>&n = ws.contact.contacts[number].normal, late = late_turn(rates);
  const TurnDrag<Real>& drag = ws.contact.turns[number].drag[Stage];
  ContactTurnBar<Real>& own = ws.contact.turn_bars[number];
  Vec3<Real>& n_bar = ws.contact.bars[number].state.normal;
  const Predictor<Real> p = turn_predictor(m, n, late, drag, ws.dt);
  Predictor<Real> p_bar{zero3<Real>(), zero, zero};
  const auto add_body = [&](int link, const Real& theta) {
    const auto& t = ws.contact.link[link];
    Real theta_bar = zero;
    adj_block(theta, p, n, t.w_predictor[Stage].ang, t.change[Stage].ang, p_bar, n_bar, theta_bar);
    p_bar.impulse = t.w_predictor[Stage].ang - p_bar.impulse;
    return theta_bar;
  };
  Real theta_j_bar = zero;
  if (pair.j >= 0) theta_j_bar = add_body(pair.j, pair.theta_j);
  const Real theta_i_bar = add_body(pair.i, pair.theta_i);
  if (pair.shared && bar.wants_parameters()) {
    pair.masses(ws).adj(theta_i_bar, theta_j_bar, bar.mass(pair.i), bar.mass(pair.j));
  }
  adj_turn_predictor(m, n, late, drag, ws.dt, p_bar, n_bar, own.late, own.drag[Stage], own.material);
  Real force_bar = zero;
  if constexpr (Stage == 1) {
    adj_second_turn_drag(m, n, late, turn_change<0>(ws, pair), force, own.drag[1], n_bar, own.late, own.change[0],
                         force_bar, own.material);
    add_load(ws, pair, couple(own.change[0]));
  } else {
    adj_first_turn_drag(m, n, rates, force, own.drag[0], n_bar, own.rates, force_bar, own.material);
    adj_late_turn(own.late, own.rates);
    if (bar.wants_parameters()) {
      adj_turn_material(own.material, bar.shapes[pair.a]);
      adj_turn_material(own.material, bar.shapes[pair.b]);
    }
    add_load(ws, pair, couple(own.rates.smooth));
  }
  return force_bar;
}

/// (A7)-(A8) of a predictor. The second hands on to e₁ by (C5a), the first to the states, and so to v_s (A9) and the
/// materials; what goes on becomes loads.
template <int Stage, class Space, class Bar>
BACKDRIVE_CALLED void adj_predictors(Space& ws, const Bar& bar) {
  using Real = typename Space::Real;
  clear_loads(ws);
  each_contact(
      ws, [&](const auto& pair) { return contact_twists<0>(ws, pair); },
      [&](const auto& pair, const PairTwists<Real>& twists, const Contact<Real>& c, int number) {
        const ContactState<Real> state = state_of(c, twists);
        const auto& m = pair.material;
        ContactBar<Real>& own = ws.contact.bars[number];
        adj_predictor_of<Stage>(ws, pair, state, c, own, bar);
        if constexpr (Stage == 1) {
          const auto trace = second_drag(m, state, c.model, c.change[0], ws.dt);
          Real normal_bar = constant<Real>(0);
          if (pair.resists_turns) {
            normal_bar = adj_turn_predictor_of<1>(ws, pair, twists, number, trace.normal.value, bar);
          }
          adj_second_drag(m, state, c.model, c.change[0], trace, ws.dt, own.drag, normal_bar, own.change[0], own.model,
                          own.state, own.material);
          add_load(ws, pair, wrench_at(c.position, own.change[0]));
        } else {
          if (pair.resists_turns) {
            own.model.centred_force += adj_turn_predictor_of<0>(ws, pair, twists, number, c.model.centred_force, bar);
          }
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

// ---- (A11): what contacts do to twists and places -------------------------------------------------------------------

/// Of the links in touch; nobody reads those of the others.
template <class Space>
BACKDRIVE_HD void clear_bars(Space& ws) {
  const auto o = zero6<typename Space::Real>();
  for (int i = 0; i < ws.contact.link_count; ++i) {
    auto& t = ws.contact.link[i];
    if (t.touched) t.bar = {o, o, o, {o, o}, {o, o}, o};
  }
}

/// K u of a contact.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> block_times(const Predictor<Real>& p, const Vec3<Real>& n, const Vec3<Real>& u) {
  return u * p.tangential + n * ((p.normal - p.tangential) * dot(n, u));
}

/// One contact's cotangents onto one of its links, x from its O: those of the velocities of its point with the seven
/// twists, `sign` (1 or −1) times what the relative ones receive. Returns the turn of the point with them, Σ y̅ × Y_ang.
template <class Space>
BACKDRIVE_HD Vec3<typename Space::Real> adj_side(Space& ws, int link, double sign, const Vec3<typename Space::Real>& x,
                                                 const typename Space::Real& theta,
                                                 const Contact<typename Space::Real>& c,
                                                 const Predictor<typename Space::Real>* p,
                                                 const ContactBar<typename Space::Real>& own) {
  using Real = typename Space::Real;
  auto& t = ws.contact.link[link];
  Vec3<Real> turn = zero3<Real>();
  const auto add = [&](Spatial<Real> & bar, const Spatial<Real>& Y, const Vec3<Real>& y_bar)
      __attribute__((always_inline)) {
    const Spatial<Real> wrench = wrench_at(x, y_bar);
    bar -= wrench;
    if constexpr (Space::twists_turn) t.bar.turn = plus_cross_force(t.bar.turn, Y, wrench);
    turn = plus_cross(turn, y_bar, Y.ang);
  };
  const Real s = constant<Real>(sign);
  add(t.bar.v, velocity_of(ws, link), own.state.start * s);
  add(t.bar.smooth, t.smooth, own.state.smooth * s);
  add(t.bar.w, t.w, c.force * (s * ws.dt));
  for (int k = 0; k < kPredictors; ++k) {
    const auto block = [&](const Spatial<Real>& twist) __attribute__((always_inline)) {
      return block_times(p[k], c.normal, velocity_at(twist, x)) * theta;
    };
    const Vec3<Real> KP = block(t.w_predictor[k]), KE = block(t.change[k]);
    add(t.bar.change[k], t.change[k], own.change[k] * s - KP);
    add(t.bar.w_predictor[k], t.w_predictor[k], p[k].impulse * s - KE);
  }
  return turn;
}

/// Those of friction against turns, of the links' angular velocities.
template <class Space>
BACKDRIVE_CALLED void adj_turns(Space& ws, const PairInStep<Space>& pair,
                                const PairTwists<typename Space::Real>& twists, int number) {
  using Real = typename Space::Real;
  const TurnMaterial<Real> m = pair.turning(ws);
  const Vec3<Real>&n = ws.contact.contacts[number].normal, late = late_turn(turn_rates(twists));
  const ContactTurn<Real>& c = ws.contact.turns[number];
  const ContactTurnBar<Real>& own = ws.contact.turn_bars[number];
  const auto add_side = [&](int link, double sign, const Real& theta) {
    auto& t = ws.contact.link[link];
    const auto add = [&](Spatial<Real>& bar, const Spatial<Real>& Y, const Vec3<Real>& y_bar) {
      bar.ang -= y_bar;
      if constexpr (Space::twists_turn) t.bar.turn = plus_cross_force(t.bar.turn, Y, couple(y_bar));
    };
    const Real s = constant<Real>(sign);
    add(t.bar.v, velocity_of(ws, link), own.rates.start * s);
    add(t.bar.smooth, t.smooth, own.rates.smooth * s);
    add(t.bar.w, t.w, c.moment * (s * ws.dt));
    for (int k = 0; k < kPredictors; ++k) {
      const Predictor<Real> p = turn_predictor(m, n, late, c.drag[k], ws.dt);
      add(t.bar.change[k], t.change[k], own.change[k] * s - block_times(p, n, t.w_predictor[k].ang) * theta);
      add(t.bar.w_predictor[k], t.w_predictor[k], p.impulse * s - block_times(p, n, t.change[k].ang) * theta);
    }
  };
  add_side(pair.i, 1, pair.theta_i);
  if (pair.j >= 0) add_side(pair.j, -1, pair.theta_j);
}

/// One contact's cotangents onto its links; returns those of its gap, place and normal.
template <class Space>
BACKDRIVE_HD ContactPoint<typename Space::Real> adj_contact(Space& ws, const PairInStep<Space>& pair,
                                                            const PairTwists<typename Space::Real>& twists,
                                                            const Contact<typename Space::Real>& c,
                                                            const ContactBar<typename Space::Real>& own,
                                                            Vec3<typename Space::Real>& shift_bar) {
  using Real = typename Space::Real;
  const ContactState<Real> state = state_of(c, twists);
  const Predictor<Real> p[kPredictors] = {predictor_of(c.model, state, drag_of<0>(c), ws.dt),
                                          predictor_of(c.model, state, drag_of<1>(c), ws.dt)};
  Vec3<Real> x_bar = adj_side(ws, pair.i, 1, c.position, pair.theta_i, c, p, own);
  if (pair.j >= 0) {
    const Vec3<Real> own_bar = adj_side(ws, pair.j, -1, c.position + pair.shift, pair.theta_j, c, p, own);
    x_bar += own_bar;
    if (pair.apart) shift_bar += own_bar;
  }
  return {-own.state.depth, x_bar, own.state.normal};
}

/// A shape's cotangents onto its link, its constants, and, of the second shape, `shift`.
template <class Space, class Bar>
BACKDRIVE_HD void adj_placed_shape(Space& ws, int shape, const ShapeBar<typename Space::Real>& own,
                                   const Shape<typename Space::Real>& placed, const Vec3<typename Space::Real>& shift,
                                   const Bar& bar) {
  using Real = typename Space::Real;
  const int link = carrier_of(ws, shape).link;
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
    gradient.position += transposed_times(pose_of(ws, link).axes, own.pose.lin);
  }
}

/// (A11) of one pair.
template <class Space, class Bar>
BACKDRIVE_CALLED void adj_contacts_of(Space& ws, const TouchingPair<typename Space::Real>& touching, const Bar& bar) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const PairInStep<Space> pair(ws, touching);
  const PairTwists<Real> twists = contact_twists<0>(ws, pair);
  const auto &ga = space.geometry[pair.a], &gb = space.geometry[pair.b];
  const int count = contact_count(ga, gb);
  const Vec3<Real> o = zero3<Real>();
  for (int k = 0; k < count; ++k) space.points[k] = {constant<Real>(0), o, o};
  Vec3<Real> shift_bar = o;
  Real margin_bar = constant<Real>(0);
  for (int k = touching.first; k < touching.first + touching.count; ++k) {
    const Contact<Real>& c = space.contacts[k];
    ContactPoint<Real>& point_bar = space.points[c.point];
    point_bar = adj_contact(ws, pair, twists, c, space.bars[k], shift_bar);
    if (pair.resists_turns) adj_turns(ws, pair, twists, k);
    margin_bar -= point_bar.gap;
  }
  const Shape<Real> A = placed_shape(ws, pair.a, zero3<Real>()), B = placed_shape(ws, pair.b, pair.shift);
  ShapeBar<Real> A_bar{zero6<Real>(), o}, B_bar{zero6<Real>(), o};
  adj_contact_points(ga, A, gb, B, space.points, A_bar, B_bar);
  adj_placed_shape(ws, pair.a, A_bar, A, o, bar);
  adj_placed_shape(ws, pair.b, B_bar, B, pair.shift, bar);
  if (bar.wants_parameters()) {
    bar.shapes[pair.a].margin += margin_bar;
    bar.shapes[pair.b].margin += margin_bar;
  }
  const int root_a = carrier_of(ws, pair.a).root, root_b = carrier_of(ws, pair.b).root;
  if (root_a == root_b) return;
  shift_bar -= B_bar.pose.lin;
  adj_tree_origin(ws, root_a, shift_bar, bar);
  adj_tree_origin(ws, root_b, -shift_bar, bar);
}

/// (A11).
template <class Space, class Bar>
BACKDRIVE_HD void adj_contact_places(Space& ws, const Bar& bar) {
  clear_bars(ws);
  for (int k = 0; k < ws.contact.touching_count; ++k) adj_contacts_of(ws, ws.contact.touching[k], bar);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
