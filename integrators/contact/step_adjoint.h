#pragma once
// Adjoint of solve.h: (A3)-(A6) of docs/contact.md, for any working set as there. It is that of the solution, not of
// the iterations that led there: one system with the last matrix (adjoint_solve.h), whose solution the integrator
// begins and ends. Where the cotangents of parameters go the integrator's `bar` says: shapes[], pair_forces; those of
// an O by adj_tree_origin(ws, root, bar of O, bar).
#include "integrators/contact/adjoint_solve.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Real>
BACKDRIVE_INLINE ContactState<Real> zero_state() {
  return {constant<Real>(0), zero3<Real>(), zero6<Real>(), zero6<Real>()};
}
template <class Real>
BACKDRIVE_INLINE PairLawBar<Real> zero_law_bar() {
  const Real o = constant<Real>(0);
  return {{o, o, o, o, o, o, o, o}, {o, o, o}};
}

template <class Real>
BACKDRIVE_INLINE Spatial<Real> relative_at(const TouchingPair<Real>& pair, const Contact<Real>& c,
                                           const Spatial<Real>& of_first, const Spatial<Real>* of_second) {
  const Spatial<Real> first = twist_at(of_first, pair.arm(c, 0));
  return of_second ? first - twist_at(*of_second, pair.arm(c, 1)) : first;
}
/// J Y of a contact, of a twist that links have.
template <class Space, class Twist>
BACKDRIVE_INLINE Spatial<typename Space::Real> relative_at(const Space& ws,
                                                           const TouchingPair<typename Space::Real>& pair,
                                                           const Contact<typename Space::Real>& c, Twist twist) {
  return relative_at(pair, c, ws.contact.link[pair.i].*twist,
                     pair.j >= 0 ? &(ws.contact.link[pair.j].*twist) : nullptr);
}
template <class Space>
BACKDRIVE_INLINE Spatial<typename Space::Real> change_of(const Space& ws,
                                                         const TouchingPair<typename Space::Real>& pair,
                                                         const Contact<typename Space::Real>& c) {
  return relative_at(ws, pair, c, &TouchAdjointLink<typename Space::Real>::kick);
}

/// What a loss says of the force of a pair, as a wrench's cotangent.
template <class Space, class Bar>
BACKDRIVE_INLINE Spatial<typename Space::Real> seed_of(const Space&, const TouchingPair<typename Space::Real>& pair,
                                                       const Bar& bar) {
  using Real = typename Space::Real;
  return {zero3<Real>(), bar.pair_forces ? bar.pair_forces[pair.number] : zero3<Real>()};
}

/// In float32: what contacts carried, from the last solve of the step (load_last_step()) and its solution in
/// link[].kick. Where friction sticks it says by how much, and a slip that is a difference of velocities does not: its
/// rounding, of some 1e-7 of these, is a good part of what friction at ε needs.
template <class Space>
BACKDRIVE_CALLED void keep_impulses(Space& ws) {
  using Real = typename Space::Real;
  each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int) {
    c.carried = c.wrench.lin * ws.dt;
    if (pair.shared() || left_out(c)) return;
    const Spatial<Real> moved = change_of(ws, pair, c) - difference(pair, c, &ContactSide<Real>::twist);
    c.carried = c.impulse.lin - block_times(c.block, moved).lin;
  });
}
/// The law's force at the solution; in float32 with the slips that impulses tell, where these are short and the step
/// was solved.
template <class Space>
BACKDRIVE_INLINE ContactForce<typename Space::Real> solved_force(const Space& ws,
                                                                 const TouchingPair<typename Space::Real>& pair,
                                                                 const Contact<typename Space::Real>& c) {
  using Real = typename Space::Real;
  ContactForce<Real> f = contact_force(pair.law, c.state, change_of(ws, pair, c));
  if constexpr (softens<Real>()) {
    const Real fast = part_of_velocities(SolveLimits<Real>::told_slip, c.state.start.lin, c.state.smooth.lin);
    const auto is_short = value_of(f.slide.speed) < value_of(fast + pair.law.material.creep * constant<Real>(10));
    const auto solved = !(value_of(ws.contact.unsolved) > value_of(constant<Real>(0)));
    slip_from_impulse(pair.law, c.state.normal, c.carried, solved && is_short, kToldByImpulse, f);
  }
  return f;
}

/// In float32: forces at the solution, and blocks of the law as it is, since a softer one would magnify cotangents by
/// the ratio in every step; but for E of eased(), the same for all points of a pair, so that it is K_t as it is by
/// which they share what they hold against each other.
template <class Space>
BACKDRIVE_CALLED void take_solved_forces(Space& ws) {
  using Real = typename Space::Real;
  for (int k = 0; k < ws.contact.touching_count; ++k) {
    TouchingPair<Real>& pair = ws.contact.touching[k];
    Real stiffest = constant<Real>(0);
    const auto each = [&](const auto& visit) {
      for (int n = pair.first; n < pair.first + pair.count; ++n) {
        if (!left_out(ws.contact.contacts[n])) visit(ws.contact.contacts[n]);
      }
    };
    each([&](Contact<Real>& c) {
      const ContactForce<Real> f = solved_force(ws, pair, c);
      c.block = block_of(pair.law, c.state.normal, f);
      c.wrench = f.wrench;
      stiffest = maximum(stiffest, c.block.tangential);
    });
    const Real one = constant<Real>(1), most = pair.sticking * constant<Real>(SolveLimits<Real>::sticking_adjoint);
    const auto stiff = value_of(stiffest) > value_of(most) && value_of(most) > value_of(no_impulse<Real>());
    pair.eased = select(stiff, most / select(stiff, stiffest, one), one);
    each([&](Contact<Real>& c) { c.block.tangential = c.block.tangential * pair.eased; });
  }
}

/// J w of a contact, for (A5). In float32 of what K_t is large for by λ = K J w, as refine_adjoint() has left it, and
/// not by the links' twists, whose rounding K_t magnifies: λ_t = K_t (x − s s·x) of x = T J w. What slides is free
/// along s, and twists tell that part.
template <class Space>
BACKDRIVE_INLINE Spatial<typename Space::Real> solution_at(const Space& ws,
                                                           const TouchingPair<typename Space::Real>& pair,
                                                           const Contact<typename Space::Real>& c) {
  using Real = typename Space::Real;
  Spatial<Real> w = relative_at(ws, pair, c, &TouchAdjointLink<Real>::w);
  if constexpr (softens<Real>()) {
    const Real one = constant<Real>(1), zero = constant<Real>(0);
    const Vec3<Real>&n = c.state.normal, &s = c.block.slide;
    const Real square = dot(s, s), stiffness = c.block.tangential;
    const auto stiff = value_of(pair.eased) < value_of(one) && value_of(stiffness) > value_of(zero);
    const auto sticks = value_of(square) < value_of(constant<Real>(kSticks));
    // λ_t/K_t: wrenches are −λ.
    const Vec3<Real> held = tangential(n, -opposed(pair, c)) * (pair.eased / select(stiff, stiffness, one));
    const Real slid = select(sticks, dot(s, held) / select(sticks, one - square, one),
                             (dot(s, w.lin) - dot(s, held)) / select(sticks, one, square));
    w.lin = choose(stiff, n * dot(n, w.lin) + held + s * slid, w.lin);
  }
  return w;
}

/// Forces and blocks at the solution, Δv's twists, whose matrix the integrator then factors; and as loads what the
/// forces' own cotangents make of those of Δv.
template <class Space, class Bar>
BACKDRIVE_CALLED void begin_adjoint(Space& ws, const Bar& bar) {
  using Real = typename Space::Real;
  if constexpr (softens<Real>()) keep_impulses(ws);
  each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
    c.side[side].twist = twist_at(ws.contact.link[pair.link(side)].kick, pair.arm(c, side));
    c.side[side].wrench = c.side[side].step = zero6<Real>();
  });
  const auto zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
  // The adjoint is of the law, with which (C9) ends where it could be solved.
  ws.contact.any_held = false;
  ws.contact.shared = one < zero;
  evaluate<false>(ws, zero < one, one < zero);
  if constexpr (softens<Real>()) take_solved_forces(ws);
  load_blocks(ws);
  each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int number) {
    ContactBar<Real>& own = ws.contact.bars[number];
    own = {zero_state<Real>(), zero6<Real>()};
    if (!bar.pair_forces || left_out(c)) return;
    PairLawBar<Real> unused = zero_law_bar<Real>();
    const ContactForce<Real> f = solved_force(ws, pair, c);
    ContactBar<Real> of_force = own;
    adj_contact_force(pair.law, c.state, f, seed_of(ws, pair, bar), of_force, unused);
    own.change = of_force.change;
  });
  load_wrenches(ws, [&](const TouchingPair<Real>&, const Contact<Real>& c, int side) {
    return of_side(side, bar_of(ws, c).change);
  });
}

/// From the cotangents of a pair's law to those of its shapes.
template <class Space, class Bar>
BACKDRIVE_CALLED void adj_pair_law(const Space& ws, const TouchingPair<typename Space::Real>& pair,
                                   const PairLawBar<typename Space::Real>& law_bar, const Bar& bar) {
  using Real = typename Space::Real;
  const auto& space = ws.contact;
  const ShapeConstants<Real> a = space.constants[pair.a], b = space.constants[pair.b];
  adj_pair_material<Real>(a, b, pair.law, law_bar.material, bar.shapes[pair.a], bar.shapes[pair.b]);
  if (has_core(ws, pair.a, pair.b)) {
    adj_core_depth<Real>({space.geometry[pair.a], a.scale, space.geometry[pair.b], b.scale}, law_bar.material.core,
                         bar.shapes[pair.a].scale, bar.shapes[pair.b].scale);
  }
  if (!pair.law.resists_turns) return;
  adj_turn_material(law_bar.turning, bar.shapes[pair.a]);
  adj_turn_material(law_bar.turning, bar.shapes[pair.b]);
}

/// (A5), from the twists of w to the cotangents of the contacts' changes, states and constants; those of v_s become
/// loads.
template <class Space, class Bar>
BACKDRIVE_CALLED void adj_forces(Space& ws, const Bar& bar) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  for (int k = 0; k < space.touching_count; ++k) {
    TouchingPair<Real>& pair = space.touching[k];
    const Spatial<Real> seed = seed_of(ws, pair, bar);
    PairLawBar<Real> law_bar = zero_law_bar<Real>();
    for (int n = pair.first; n < pair.first + pair.count; ++n) {
      const Contact<Real>& c = space.contacts[n];
      ContactBar<Real>& own = space.bars[n];
      own = {zero_state<Real>(), zero6<Real>()};
      if (left_out(c)) continue;
      const ContactForce<Real> f = solved_force(ws, pair, c);
      adj_contact_force(pair.law, c.state, f, solution_at(ws, pair, c) * ws.dt + seed, own, law_bar);
    }
    pair.turn_loss_bar = law_bar.material.turn_loss;
    if (bar.wants_parameters()) adj_pair_law(ws, pair, law_bar, bar);
  }
  load_wrenches(ws, [&](const TouchingPair<Real>&, const Contact<Real>& c, int side) {
    return of_side(side, bar_of(ws, c).state.smooth);
  });
}

// ---- what contacts do to twists and places --------------------------------------------------------------------------

/// Of the links in touch; nobody reads those of the others.
template <class Space>
BACKDRIVE_HD void clear_bars(Space& ws) {
  const auto o = zero6<typename Space::Real>();
  for (int i = 0; i < ws.contact.link_count; ++i) {
    auto& t = ws.contact.link[i];
    if (t.touched) t.bar = {o, o, o, o, o, o, o};
  }
}

/// One contact's cotangents onto one of its links: those of the twists of its point, `sign` (1 or −1) times what the
/// relative ones receive. Returns the turn of the point with them, Σ y̅ × Y_ang.
template <class Space>
BACKDRIVE_HD Vec3<typename Space::Real> adj_side(Space& ws, const TouchingPair<typename Space::Real>& pair,
                                                 const Contact<typename Space::Real>& c, int side) {
  using Real = typename Space::Real;
  const int link = pair.link(side);
  const Vec3<Real> x = pair.arm(c, side);
  auto& t = ws.contact.link[link];
  const ContactBar<Real>& own = bar_of(ws, c);
  Vec3<Real> turn = zero3<Real>();
  const auto add = [&](Spatial<Real> & bar, const Spatial<Real>& Y, const Spatial<Real>& y_bar)
      __attribute__((always_inline)) {
    const Spatial<Real> wrench = from_point(x, of_side(side, y_bar));
    bar -= wrench;
    if constexpr (Space::twists_turn) t.bar.turn = plus_cross_force(t.bar.turn, Y, wrench);
    turn = plus_cross(turn, wrench.lin, Y.ang);
  };
  add(t.bar.start, start_of(ws, link), own.state.start);
  add(t.bar.smooth, t.smooth, own.state.smooth);
  add(t.bar.kick, t.kick, own.change);
  add(t.bar.w, t.w, c.wrench * ws.dt);
  return turn;
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

/// What contacts on a shape pass to the pose that it has after the half turn of its link, and to the turn itself.
template <class Real>
struct TurningBar {
  ShapeBar<Real> shape;
  Vec3<Real> pivot, phi, omega;
  Spatial<Real> way;
};

/// (C11).
template <class Real>
BACKDRIVE_INLINE void adj_turn_loss(const TurningShape<Real>& s, const Geometry<ScalarOf<Real>>& geometry,
                                    const Real& dt, const Real& bar, TurningBar<Real>& shape_bar) {
  if (!TurnLoss<Real>::has(s, geometry)) return;
  const TurnLoss<Real> loss(s, geometry, dt);
  shape_bar.omega += loss.by_omega * bar;
  shape_bar.shape.scale += loss.weights * (loss.by_length * bar);
}

/// Makes the pose's cotangents those of the pose before the turn; those of pivot, φ, ω and way go onto the link.
template <class Space>
BACKDRIVE_HD void adj_half_turn(Space& ws, const TurningShape<typename Space::Real>& s,
                                const Vec3<typename Space::Real>& shift, TurningBar<typename Space::Real>& bar) {
  using Real = typename Space::Real;
  if (s.link < 0) return;
  const HalfTurn<Real>& turn = s.turn;
  Spatial<Real>& pose = bar.shape.pose;
  const Vec3<Real> lin = turn.turned_back(pose.lin);
  const Vec3<Real> own = turn.turned_back(pose.ang - cross(s.end.pose.origin, pose.lin));  // of the shape's axes
  bar.pivot += pose.lin - lin;
  bar.phi += turn.adj_turned(pose.ang - cross(turn.pivot, pose.lin));
  const Spatial<Real> couple{turn.adj_phi(bar.phi) + bar.omega, zero3<Real>()};
  auto& t = ws.contact.link[s.link];
  t.bar.v -= couple;
  if constexpr (Space::twists_turn) {  // and the pivot moves with the link; else it is O
    const Spatial<Real>& v = velocity_of(ws, s.link);
    const Spatial<Real>& moving = way_velocity_of(ws, s.link);
    const Spatial<Real> way = back(bar.way, shift), of_moving = way * (turn.half * (constant<Real>(1) - turn.rest));
    add_way_bar(ws, s.link, turn.half * dot(way, moving) - turn.adj_rest(bar.phi));
    t.bar.way -= of_moving;
    t.bar.turn = plus_cross_force(t.bar.turn, moving, of_moving);
    t.bar.turn += back(Spatial<Real>{cross(turn.pivot, bar.pivot), bar.pivot}, shift);
    t.bar.turn = plus_cross_force(t.bar.turn, v, couple);
  }
  pose = {plus_cross(own, s.start.pose.origin, lin), lin};
}

/// Of one pair: through the places of its points to those of its shapes.
template <class Space, class Bar>
BACKDRIVE_CALLED void adj_contacts_of(Space& ws, const TouchingPair<typename Space::Real>& pair, const Bar& bar) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const auto &ga = space.geometry[pair.a], &gb = space.geometry[pair.b];
  const int count = contact_count(ga, gb);
  const Vec3<Real> o = zero3<Real>();
  for (int k = 0; k < count; ++k) space.points[k] = {constant<Real>(0), o, o};
  Vec3<Real> shift_bar = o;
  Real margin_bar = constant<Real>(0);
  const TurningShape<Real> sides[2] = {turning_shape(ws, pair.a, o), turning_shape(ws, pair.b, pair.shift)};
  const ShapeBar<Real> none{zero6<Real>(), o};
  TurningBar<Real> shape_bars[2] = {{none, o, o, o, zero6<Real>()}, {none, o, o, o, zero6<Real>()}};
  for (int k = pair.first; k < pair.first + pair.count; ++k) {
    const Contact<Real>& c = space.contacts[k];
    Vec3<Real> x_bar = adj_side(ws, pair, c, 0);
    if (pair.j >= 0) {
      const Vec3<Real> of_second = adj_side(ws, pair, c, 1);
      x_bar += of_second;
      if (pair.apart) shift_bar += of_second;
    }
    const ContactState<Real>& state = space.bars[k].state;
    // depth = margin − gap + n·(φ_i × (x − pivot_i) − φ_j × (x − pivot_j)), and what moved both before
    const Vec3<Real> n_bar = c.state.normal * state.depth, x = c.position;
    for (int side = 0; side < 2; ++side) {
      const HalfTurn<Real>& turn = sides[side].turn;
      const Real sign = constant<Real>(side == 0 ? 1 : -1);
      const Vec3<Real> of_x = cross(n_bar, turn.phi) * sign;
      x_bar += of_x;
      shape_bars[side].pivot -= of_x;
      shape_bars[side].phi += cross(x - turn.pivot, n_bar) * sign;
      if constexpr (Space::twists_turn) {
        x_bar += cross(n_bar, sides[side].way.ang) * sign;
        shape_bars[side].way += wrench_at(x, n_bar * sign);
      }
    }
    const Vec3<Real> shifted = sides[0].shift_of(x) - sides[1].shift_of(x);
    space.points[c.point] = {-state.depth, x_bar, state.normal + shifted * state.depth};
    margin_bar += state.depth;
  }
  adj_contact_points<Real>({ga, sides[0].end}, {gb, sides[1].end}, space.points, shape_bars[0].shape,
                           shape_bars[1].shape);
  adj_turn_loss(sides[0], ga, ws.dt, pair.turn_loss_bar, shape_bars[0]);
  adj_turn_loss(sides[1], gb, ws.dt, pair.turn_loss_bar, shape_bars[1]);
  // The second shape, and what it turns about, are about O of the first body's tree by the shift.
  shift_bar -= shape_bars[1].shape.pose.lin + shape_bars[1].pivot;
  if constexpr (Space::twists_turn) shift_bar = plus_cross(shift_bar, shape_bars[1].way.lin, sides[1].way.ang);
  adj_half_turn(ws, sides[0], o, shape_bars[0]);
  adj_half_turn(ws, sides[1], pair.shift, shape_bars[1]);
  adj_placed_shape(ws, pair.a, shape_bars[0].shape, sides[0].start, o, bar);
  adj_placed_shape(ws, pair.b, shape_bars[1].shape, sides[1].start, pair.shift, bar);
  if (bar.wants_parameters()) {
    bar.shapes[pair.a].margin += margin_bar;
    bar.shapes[pair.b].margin += margin_bar;
  }
  const int root_a = carrier_of(ws, pair.a).root, root_b = carrier_of(ws, pair.b).root;
  if (root_a == root_b) return;
  adj_tree_origin(ws, root_a, shift_bar, bar);
  adj_tree_origin(ws, root_b, -shift_bar, bar);
}

/// (A6), of all.
template <class Space, class Bar>
BACKDRIVE_HD void adj_contact_places(Space& ws, const Bar& bar) {
  clear_bars(ws);
  for (int k = 0; k < ws.contact.touching_count; ++k) {
    const auto& pair = ws.contact.touching[k];
    bool idle = !ws.contact.begins;  // else (C12) may know of what no force acts in
    for (int c = pair.first; c < pair.first + pair.count; ++c) idle = idle && left_out(ws.contact.contacts[c]);
    if (!idle) adj_contacts_of(ws, pair, bar);
  }
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
