#pragma once
// Adjoint of contact_step.h: (A1)-(A8) of docs/contact.md on loose bodies; docs/semi_implicit.md, (15).
//
// Twists are the velocities of the state themselves and do not turn with their bodies, so (A9) is not needed: a
// contact acts on the pose of a body by the places of its shapes alone. Of (A8) −w·(M + Gᵀ A G) Δv is left, where M
// turns with the bodies, and the rows G with their joints.
#include "integrators/semi_implicit/contact_step.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// What contact passes to an O, the com of a body.
template <class Real>
BACKDRIVE_INLINE void adj_tree_origin(Touching<Real, true>& s, int body, const Vec3<Real>& origin_bar,
                                      const StepBar<Real>&) {
  if (body >= 0) s.ws.bar[body].centre += origin_bar;
}

/// Cotangents of v⁺ and v_d of one body.
template <class Real>
struct TouchFlightBar {
  Spatial<Real> carried, moving;
};

/// (A1): from the cotangents of the state after the step and of the reported velocity; sets `bar`'s turn and centre.
template <class Real>
BACKDRIVE_PART TouchFlightBar<Real> adj_touch_flight(const FlightStart<Real>& start, const TouchFlight<Real>& t,
                                                     const BodyStateBar<Real>& after, const Spatial<Real>& reported,
                                                     BodyBar<Real>& bar, BodyGradient<Real>* gradient) {
  const FreeFlight<Real>& d = t.flight;
  // p⁺ = c⁺ − lever, ṗ⁺ = v_c − ω × lever, and the same of what is reported
  const Vec3<Real>&carried_bar = after.velocity.lin, &moving_bar = reported.lin;
  const Vec3<Real> lever_bar =
      -after.position - cross(carried_bar, d.axes * t.spin.omega) - cross(moving_bar, d.axes * d.omega);
  if (gradient) gradient->com += transposed_times(d.axes, lever_bar);
  TurnBar<Real> turn_bar{after.turn + cross(d.lever, lever_bar), zero3<Real>()};
  const Vec3<Real> of_carried =
      adj_spin_after(start.body, d, t.spin, after.velocity.ang - cross(d.lever, carried_bar), turn_bar, gradient);
  const Vec3<Real> of_reported =
      adj_spin_after<Real>(start.body, d, d, reported.ang - cross(d.lever, moving_bar), turn_bar, gradient);
  const Vec3<Real> of_turn = adj_turn(start, d, turn_bar, gradient);
  TouchFlightBar<Real> result;
  result.carried = {start.axes * of_carried, carried_bar};
  result.moving = {start.axes * (of_reported + of_turn), after.position * start.dt + moving_bar};
  bar.turn = turn_bar.axes - cross(t.carried.ang, result.carried.ang) - cross(t.moving.ang, result.moving.ang);
  bar.centre = after.position;
  return result;
}

/// (A3)-(A6), and (C12): from the cotangents of Δv in body[].u; adds to those of v_s, which from
/// here on is that of the smooth motion.
template <class Real>
BACKDRIVE_HD void adj_contact_kick(Touching<Real, true>& s, const StepBar<Real>& bar) {
  const int bodies = s.system.body_count;
  for (int i = 0; i < bodies; ++i) s.kick_bar[i] = s.ws.body[i].u;
  const auto solve_for_w = [&](bool anew) {
    for (int i = 0; i < bodies; ++i) {
      const auto& touch = s.contact.link[i];
      s.ws.body[i].u = s.kick_bar[i];
      if (touch.touched) s.ws.body[i].u += touch.load;
    }
    solve_with_blocks(s, anew, &CoupledStep<Real>::kick_bar);
    for (int i = 0; i < bodies; ++i) s.contact.link[i].w = s.ws.body[i].u;
  };
  contact::begin_adjoint(s, bar);
  factor_with_blocks(s);
  solve_for_w(true);
  contact::refine_adjoint(s, BodySolver<Touching<Real, true>>{s});
  solve_for_w(false);
  keep_rates(
      s, [](auto& rows) -> auto& { return rows.w; });
  contact::adj_forces(s, bar);
  for (int i = 0; i < bodies; ++i) {
    const auto& touch = s.contact.link[i];
    if (touch.touched) s.smooth_bar[i] += touch.load;
  }
  if (!contact::begins_supported(s)) return;
  contact::each_loose_tree(s, [&](int i) { s.contact.support_bars[i].rise = zero3<Real>(); });
  for (int i = 0; i < bodies; ++i) {
    if (s.loose[i] >= 0) s.contact.support_bars[s.loose[i]].rise += s.smooth_bar[i].lin;
  }
  contact::adj_support(s, bar);
  add_rises(s, constant<Real>(-1));
}

/// −w·M Δv of one body: to its turn, mass and inertia.
template <class Real>
BACKDRIVE_PART void adj_kick_momentum(const Touching<Real, true>& s, int i, const StepBar<Real>& out) {
  const BodyScratch<Real>& body = s.ws.body[i];
  const Spatial<Real>&X = s.contact.link[i].w, &Y = s.contact.link[i].kick;
  const Vec3<Real> turn = cross(body.inertia * Y.ang, X.ang) + cross(body.inertia * X.ang, Y.ang);
  s.ws.bar[i].turn -= turn;
  if (!out.bodies) return;
  BodyGradient<Real>& g = out.bodies[i];
  add_bilinear(g.inertia, -transposed_times(body.pose.axes, X.ang), transposed_times(body.pose.axes, Y.ang));
  g.mass -= dot(X.lin, Y.lin);
}

/// −w·Gᵀ A G Δv of a joint's rows, for adj_joint; nothing where no bodies are `touching`. One type for both: what takes
/// it is compiled once.
template <class Real>
struct KicksOfContact {
  const Touching<Real, true>& s;
  bool touching;

  BACKDRIVE_INLINE void resisted(int j, Real (&sum)[kRows]) const {
    if (!touching) return NoKicks<Real>().resisted(j, sum);
    const TouchRows<Real>& rows = s.rows[j];
    for (int row = 0; row < kRows; ++row) {
      sum[row] = rows.w[row] * rows.kick[row];
    }
  }
  BACKDRIVE_INLINE void add_directions(int j, DirectionBars<Real>& direction) const {
    using Touch = contact::TouchAdjointLink<Real>;
    if (!touching) return;
    const Joint& joint = s.system.joints[j];
    const JointScratch<Real>& of = s.ws.joint[j];
    const TouchRows<Real>& rows = s.rows[j];
    const auto add = [&](const Real(&rates)[kRows], const auto& twist_of,  // of the one, and twists of the other
                         CoupledPush<Real> push) {
      const auto twist = [&](int body) -> const Spatial<Real>& {
        const Touch& touch = s.contact.link[body];
        return twist_of(touch);
      };
      Real f[kRows];
      for (int row = 0; row < kRows; ++row) f[row] = -(of.inertia[row] * rates[row]);
      if (is_coupled(s.system)) add_pushes(j, push, f);
      direction.add(of.geometry, f, twist(joint.child), joint.parent >= 0 ? &twist(joint.parent) : nullptr);
    };
    add(
        rows.kick, [](const Touch& t) -> auto& { return t.w; }, &CoupledStep<Real>::kick);
    add(
        rows.w, [](const Touch& t) -> auto& { return t.kick; }, &CoupledStep<Real>::kick_bar);
  }
  /// What couplings push the rows of a joint with.
  BACKDRIVE_CALLED void add_pushes(int joint, CoupledPush<Real> push, Real (&f)[kRows]) const {
    for (int c = 0; c < s.system.couplings.count; ++c) {
      each_term(s.system, c, [&](int t, int j, int row) {
        if (j == joint) f[row] += s.ws.coupled[c].*push * s.system.couplings.ratios[t];
      });
    }
  }
  BACKDRIVE_INLINE Real resisted_of_coupling(int c) const {
    if (!touching) return constant<Real>(0);
    return sum_of_terms(s.system, c, [&](int j, int row) { return s.rows[j].w[row]; }) *
           sum_of_terms(s.system, c, [&](int j, int row) { return s.rows[j].kick[row]; });
  }
  BACKDRIVE_INLINE Real of_ratio(int c, int j, int row) const {
    if (!touching) return constant<Real>(0);
    const CoupledStep<Real>& of = s.ws.coupled[c];
    return of.kick * s.rows[j].w[row] + of.kick_bar * s.rows[j].kick[row];
  }
};

/// Of what the velocities of a body that flies alone are short of in the middle: the load is the cotangent of v_s as
/// contact takes it, `start` that of the velocity.
template <class Real>
BACKDRIVE_PART void adj_late_spin(const Touching<Real, true>& s, int i, const StepBar<Real>& out) {
  const BodyScratch<Real>& body = s.ws.body[i];
  const auto& touch = s.contact.link[i];
  const LateSpin<Real> late(s, i);
  const Vec3<Real>&omega = late.turn.omega, &phi = late.turn.phi;
  const Vec3<Real> change_bar = -(touch.load.ang + touch.bar.start.ang);
  const Vec3<Real> lambda = body.inverse_inertia * change_bar, pull = cross(lambda, phi);
  const Vec3<Real> phi_bar = cross(late.momentum, lambda), omega_bar = body.inertia * pull;
  BodyBar<Real>& own = s.ws.bar[i];
  own.velocity.ang += omega_bar + late.turn.adj_phi(phi_bar);
  // A couple that turns with all that it is made of changes nothing.
  own.turn += cross(late.change, change_bar) - cross(phi, phi_bar) - cross(omega, omega_bar);
  if (!out.bodies) return;
  const auto in_link = [&](const Vec3<Real>& x) { return transposed_times(body.pose.axes, x); };
  add_bilinear(out.bodies[i].inertia, in_link(pull), in_link(omega));
  add_bilinear(out.bodies[i].inertia, in_link(-lambda), in_link(late.change));
}

/// (A6): what contacts pass to velocities, poses and coms.
template <class Real>
BACKDRIVE_HD void adj_places(Touching<Real, true>& s, const StepBar<Real>& bar) {
  contact::adj_contact_places(s, bar);
  for (int i = 0; i < s.system.body_count; ++i) {
    const auto& touch = s.contact.link[i];
    if (!touch.touched) continue;
    s.ws.bar[i].velocity -= touch.bar.v + touch.bar.start;
    if (s.alone[i]) adj_late_spin(s, i, bar);
    s.ws.bar[i].turn += touch.bar.turn.ang;
    // What is on the body is at −R com from O.
    if (bar.bodies) bar.bodies[i].com -= transposed_times(s.ws.body[i].pose.axes, touch.bar.turn.lin);
  }
}

/// The step before its adjoint: all that it needs stays in the working set. False: nothing is in reach.
template <class Real>
BACKDRIVE_HD bool recompute_with_contact(Touching<Real, true>& s, const BodyState<Real>* state,
                                         const StepInputs<Real>& in) {
  kick(s.system, state, in, s.ws);
  const bool touching = contact_kick(s);
  for (int i = 0; i < s.system.body_count; ++i) {
    const BodyScratch<Real>& b = s.ws.body[i];
    s.contact.link[i].kick = b.u;
    const TouchFlight<Real> d(flight_start(s.system, state, s.ws, i), b, b.u);
    s.reported[i] = velocity_after<Real>(d.flight, d.flight, d.moving.lin);
  }
  return touching;
}

/// As step_adjoint, after recompute_with_contact, which said whether bodies are `touching`. bar.reported holds the
/// cotangents of the velocities reported.
template <class Real>
BACKDRIVE_HD void step_adjoint_with_contact(Touching<Real, true>& s, const BodyState<Real>* state,
                                            const StepInputs<Real>& in, const StepBar<Real>& bar, bool touching) {
  const System<Real>& system = s.system;
  Workspace<Real>& ws = s.ws;
  const auto gradient = [&](int i) { return bar.bodies ? bar.bodies + i : nullptr; };
  for (int i = 0; i < system.body_count; ++i) {
    BodyBar<Real>& own = ws.bar[i];
    const FlightStart<Real> start = flight_start(system, state, ws, i);
    const TouchFlight<Real> flight(start, ws.body[i], s.contact.link[i].kick);
    const TouchFlightBar<Real> d = adj_touch_flight(start, flight, bar.state[i], bar.reported[i], own, gradient(i));
    own.predicted_turn = own.predicted_centre = zero3<Real>();
    own.predicted_velocity = zero6<Real>();
    s.smooth_bar[i] = d.carried + d.moving;  // (A2)
    ws.body[i].u = d.carried + d.moving * constant<Real>(0.5);
  }
  if (touching) adj_contact_kick(s, bar);
  for (int i = 0; i < system.body_count; ++i) ws.body[i].u = s.smooth_bar[i];
  const KicksOfContact<Real> kicks{s, touching};
  solve_for_u(system, state, ws, kicks, bar);
  for (int i = 0; i < system.body_count; ++i) {
    adj_momentum(system, i, ws.body[i], ws.bar[i], bar);
    if (touching) adj_kick_momentum(s, i, bar);
  }
  if (touching) adj_places(s, bar);
  for (int j = 0; j < system.joint_count; ++j) adj_joint(system, ws, j, in.joints[j], kicks, bar);
  for (int i = 0; i < system.body_count; ++i) {
    adj_prepare_body(flight_start(system, state, ws, i), ws.body[i], ws.bar[i], bar.state[i], gradient(i));
  }
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
