#pragma once
// Adjoint of whip.h: equation (23) of docs/theory.md. With φ = λ Σ δ·(what (21) multiplies with λ), cotangents are −∂φ.
//
// Twists and biases now and before are sums of what joints add on the way from the root, so their cotangents are summed
// towards it; so are those of turns and shifts ξ of a subtree, which take the joints' axes along: an S that is part of
// a twist with cotangent F turns by ξ × S, and (ξ × S q̇)·F = ξ·(S q̇ ×* F).
#include "engine/magnitude.h"
#include "integrators/featherstone/step_bar.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Cotangents of a subtree: of twists with q̇, of biases, of δ, and of turns and shifts.
template <class Real>
struct WhipBar {
  Spatial<Real> v, a, delta, turn, v_before, turn_before;
};
template <class Real>
BACKDRIVE_INLINE void operator+=(WhipBar<Real>& a, const WhipBar<Real>& b) {
  a.v += b.v, a.a += b.a, a.delta += b.delta, a.turn += b.turn;
  a.v_before += b.v_before, a.turn_before += b.turn_before;
}

/// A force at a point, about O.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> at_point(const Vec3<Real>& point, const Vec3<Real>& force) {
  return {cross(point, force), force};
}

/// Σ e_k × M e_k over the three axes, by which tr M [r]× = −r · that.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> axial(const Mat3<Real>& m) {
  return {m.cy.z - m.cz.y, m.cz.x - m.cx.z, m.cx.y - m.cy.x};
}

/// J̄ += that of Σ = ½ tr J 1 − J, in link axes: of s·(tr W ω⁻ − W ω⁻) by W = R⁻ Σ Rᵀ.
template <class Real>
BACKDRIVE_INLINE void add_second_moment(const Mat3<Real>& axes, const Mat3<Real>& axes_before, const Vec3<Real>& s,
                                        const Vec3<Real>& omega_before, Sym3<Real>& bar) {
  const Vec3<Real> p = transposed_times(axes_before, s), r = transposed_times(axes, omega_before);
  const Real power = dot(s, omega_before);
  const auto column = [&](const Vec3<Real>& axis, const Real& by) __attribute__((always_inline)) {
    return transposed_times(axes_before, axis) * power - p * by;
  };
  const Vec3<Real> x = column(axes.cx, r.x), y = column(axes.cy, r.y), z = column(axes.cz, r.z);
  const Real half = constant<Real>(0.5) * (x.x + y.y + z.z);
  bar.xx += half - x.x, bar.yy += half - y.y, bar.zz += half - z.z;
  bar.xy -= x.y + y.x, bar.xz -= x.z + z.x, bar.yz -= y.z + z.y;
}

/// One body: adds to `sum` and to its own parameters, weighted. Returns δ·(what λ multiplies); `carried`: what the
/// angular velocity of the link that carries a ball receives beside, (12).
template <class Layout>
BACKDRIVE_PART typename Layout::Real whip_body_adjoint(Workspace<Layout>& ws, int i,
                                                       const typename Layout::Real& weight, const StepBar<Layout>& bar,
                                                       WhipBar<typename Layout::Real>& sum,
                                                       Vec3<typename Layout::Real>& carried) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const auto& c = ws.constants[i];
  const typename Layout::Link& s = ws.link[i];
  const WhipLink<Real>& kept = ws.whip[i];
  const Vec3<Real>&omega = s.v.ang, &omega_before = kept.before.v.ang, &delta = s.delta.ang;
  const Real rate = constant<Real>(1) / ws.dt, two = constant<Real>(2);
  const WhipBody<Real> body(c, kept.pose, s.v, kept.a, kept.before, ws.dt);

  const Vec3<Real> delta_c = plus_cross(s.delta.lin, delta, body.com);
  const Vec3<Real> f = body.d * (c.mass * weight), d_bar = delta_c * (c.mass * weight);
  const Vec3<Real> velocity_bar = plus_cross(d_bar * rate, omega, d_bar), before_bar = d_bar * -rate;
  const Vec3<Real> com_bar = cross(f, delta) + cross(velocity_bar, omega) - cross(d_bar, kept.a.ang);
  const Vec3<Real> com_before_bar = cross(before_bar, omega_before);
  sum.v += at_point(body.com, velocity_bar);
  sum.v.ang += cross(d_bar, body.velocity);
  sum.a -= at_point(body.com, d_bar);
  sum.delta += at_point(body.com, f);
  sum.turn += at_point(body.com, com_bar);
  sum.v_before += at_point(body.com_before, before_bar);
  sum.turn_before += at_point(body.com_before, com_before_bar);
  Real power = dot(delta_c, body.d) * c.mass;
  const bool parameters = bar.wants_parameters();
  if (parameters) {
    LinkGradient<Real>& gradient = bar.constants[i];
    gradient.mass += dot(delta_c, body.d) * weight;
    gradient.com += transposed_times(kept.pose.axes, com_bar) + transposed_times(kept.before.axes, com_before_bar);
  }
  if (is_rotor(ws, link)) return power;

  const Sym3<Real>& J = body.J;
  const Vec3<Real>& e = body.e;
  const Vec3<Real> Jd = J * delta, Je = J * e, Jw = J * omega, x = cross(delta, omega), Jx = J * x;
  Vec3<Real> couple = body.couple(omega, omega_before, ws.dt);
  sum.v.ang += (Jd * rate - cross(Jw, delta) - Jx) * weight;
  sum.a.ang -= Jd * weight;
  sum.turn.ang += (cross(Je, delta) + cross(Jd, e) - cross(Jw, x) - cross(Jx, omega)) * weight;
  const Vec3<Real> momentum_bar = delta * (-rate * weight), turned = transposed_times(body.W, momentum_bar);
  const Vec3<Real> axis = axial(body.W) * dot(momentum_bar, omega_before);
  sum.v_before.ang += momentum_bar * body.trace() - turned;
  sum.turn.ang += plus_cross(axis, omega_before, turned);
  sum.turn_before.ang += cross(momentum_bar, body.W * omega_before) - axis;
  if (parameters) {
    const auto in_link = [&](const Vec3<Real>& y) __attribute__((always_inline)) {
      return transposed_times(kept.pose.axes, y);
    };
    Sym3<Real>& inertia = bar.constants[i].inertia;
    less_bilinear(in_link(delta * -weight), in_link(e), inertia);
    less_bilinear(in_link(x * weight), in_link(omega), inertia);
    add_second_moment(kept.pose.axes, kept.before.axes, momentum_bar, omega_before, inertia);
  }
  if (link.spins) {
    const Vec3<Real> carrier = link.parent < 0 ? zero3<Real>() : ws.link[link.parent].v.ang;
    const Vec3<Real> correction = free_turn(ws, link, omega, carrier, ws.qd).correction(), late = delta * weight;
    Vec3<Real> T = zero3<Real>();
    carried = adj_free_turn(ws, i, late, bar, T) * -two;
    const Vec3<Real> omega_bar = T * -two;
    sum.v.ang += omega_bar;
    // Nothing changes when all is turned together.
    sum.turn.ang += plus_cross(cross(late, correction) - cross(omega, omega_bar), carried, carrier);
    couple -= correction;
  }
  sum.delta.ang += couple * weight;
  return power + dot(delta, couple);
}

/// whip_delay() of a tree, and its cotangent.
template <class Real>
struct WhipDelay {
  Real delay, bar;
};

/// Of one joint, with the cotangent of q⁻ in tangent rows, to q, v_d, q̇ and the delay.
template <class Joint, class Layout>
BACKDRIVE_PART void adj_position_before(Workspace<Layout>& ws, int i, Vec3<typename Layout::Real> theta_bar,
                                        WhipDelay<typename Layout::Real>& time, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const Real* const moved = reported_of(ws) + link.v;
  Real* const moved_bar = bar.before() + link.v;
  constexpr int turns = Joint::dofs == 1 ? 1 : 3;
  // Rotations take their cotangent to what they turn from, and to what they turn by.
  const auto adj_moved = [&](const Vec3<Real>& by) __attribute__((always_inline)) {
    Vec3<Real> by_bar = theta_bar;
    if constexpr (Joint::dofs > 1) {
      by_bar = zero3<Real>();
      adj_turned<Joint::fixed_in_world ? TurnSide::left : TurnSide::right>(by, theta_bar, by_bar);
    }
    return by_bar;
  };
  const auto vector_of = [](const auto& number) __attribute__((always_inline)) {
    if constexpr (turns == 1)
      return Vec3<Real>{number(0), constant<Real>(0), constant<Real>(0)};
    else
      return Vec3<Real>{number(0), number(1), number(2)};
  };
  const auto each = [](const Vec3<Real>& x, const auto& visit) __attribute__((always_inline)) {
    visit(0, x.x);
    if constexpr (turns == 3) visit(1, x.y), visit(2, x.z);
  };
  if constexpr (Layout::contact) {
    const Real two = constant<Real>(2);
    const Vec3<Real> smooth = vector_of([&](int k) { return two * moved[k] - ws.qd[link.v + k]; });
    const Vec3<Real> by_bar = adj_moved(smooth * time.delay);
    time.bar += dot(by_bar, smooth);
    each(by_bar * time.delay, [&](int k, const Real& x) { moved_bar[k] += two * x, bar.qd[link.v + k] -= x; });
  }
  const Vec3<Real> by_bar = adj_moved(vector_of([&](int k) { return moved[k]; }) * -ws.dt);
  each(by_bar * ws.dt, [&](int k, const Real& x) { moved_bar[k] -= x; });
  each(theta_bar, [&](int k, const Real& x) { bar.q[link.q + k] += x; });
}

/// One joint: q̄, q̇̄ and the gradient of its placement from the sums over its subtree, which become what its parent
/// receives.
template <class Joint, class Layout>
BACKDRIVE_PART void whip_joint_adjoint(Workspace<Layout>& ws, int i, WhipDelay<typename Layout::Real>& time,
                                       WhipBar<typename Layout::Real>& sum, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  constexpr int K = Joint::dofs;
  constexpr bool free = Joint::fixed_in_world;
  const Link& link = ws.links[i];
  const typename Layout::Dof* const dof = ws.dof + link.v;
  const WhipLink<Real>& kept = ws.whip[i];
  Spatial<Real> rate = zero6<Real>();
  if constexpr (K > 0) {
    Spatial<Real> before[K];
    Joint::subspace(broadcast<Real>(ws.constants[i].rotation), kept.before.axes, kept.before.origin, before);
    Spatial<Real> motion = zero6<Real>(), rate_before = zero6<Real>();
    for (int k = 0; k < K; ++k) {
      rate += dof[k].S * ws.qd[link.v + k];
      motion += dof[k].S * dof[k].x;
      rate_before += before[k] * ws.qd[link.v + k];
    }
    Spatial<Real> rate_bar = sum.v;  // of S q̇, which is also in the bias v_p × S q̇
    if constexpr (free) {
      rate_bar += Spatial<Real>{cross(sum.a.lin, rate.lin), cross(rate.ang, sum.a.lin)};
    } else {
      if (link.parent >= 0) rate_bar -= cross_force(ws.link[link.parent].v, sum.a);
      sum.turn = plus_cross_force(plus_cross_force(sum.turn, rate, rate_bar), motion, sum.delta);
      sum.turn_before = plus_cross_force(sum.turn_before, rate_before, sum.v_before);
    }
    for (int k = 0; k < K; ++k) bar.qd[link.v + k] += dot(dof[k].S, rate_bar) + dot(before[k], sum.v_before);
    constexpr int turns = free ? 3 : K;
    for (int k = 0; k < turns; ++k) bar.q[link.q + k] += dot(dof[k].S, sum.turn);
    Vec3<Real> theta_bar = zero3<Real>();
    theta_bar.x = dot(before[0], sum.turn_before);
    if constexpr (K > 1) theta_bar.y = dot(before[1], sum.turn_before), theta_bar.z = dot(before[2], sum.turn_before);
    adj_position_before<Joint>(ws, i, theta_bar, time, bar);
  }
  if (link.parent < 0) return;  // turning and shifting all of a tree changes nothing
  if (bar.wants_parameters()) {
    const WhipLink<Real>& parent = ws.whip[link.parent];
    placement_adjoint(link, ws.constants[i], parent.pose, sum.turn, bar.constants[i]);
    placement_adjoint(link, ws.constants[i], parent.before, sum.turn_before, bar.constants[i]);
  }
  sum.v = plus_cross_force(sum.v, rate, sum.a);
}

/// Of what (22) and (24) sum over a tree of the velocities `rates`: add(row, cotangent).
template <class Layout, class Add>
BACKDRIVE_PART void adj_tree_turns(Workspace<Layout>& ws, int root, int end, const typename Layout::Real* rates,
                                   const TreeTurns<typename Layout::Real>& turns_bar, const Add& add) {
  using Real = typename Layout::Real;
  const auto add_turning = [&](int joint, const Real& by) __attribute__((always_inline)) {
    const Link& link = ws.links[joint];
    for (int v = link.v; v < link.v + turning_dofs(link); ++v) add(v, by * rates[v]);
  };
  for (int i = root; i < end; ++i) {
    const Real turn = turning(ws, i, rates, ws.dt);
    add_turning(i, turns_bar.joints * (constant<Real>(8) * (turn * turn * turn) * ws.dt));
  }
  if (!any(more_than(magnitude(turns_bar.pairs), 0))) return;
  const Real time = whip_time_of_tree(ws, root, end), scale = time * turns_bar.pairs;
  each_adjoining_pair(
      ws, root, end, [&](int own, int other) __attribute__((always_inline)) {
        const JointTurn<Real> turn(turning(ws, own, rates, time), turning(ws, other, rates, time));
        const Real by_h = constant<Real>(8) * (turn.h * turn.h * turn.h) * scale;
        add_turning(own, by_h * turn.by_a);
        add_turning(other, by_h * turn.by_b);
      });
}

/// From the cotangent of whip_delay() to μ⁻; that of what μ is of is returned.
template <class Layout>
BACKDRIVE_INLINE TreeTurns<typename Layout::Real> adj_whip_delay(Workspace<Layout>& ws, int root,
                                                                 const typename Layout::Real& delay_bar,
                                                                 const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  const Real zero = constant<Real>(0);
  if constexpr (Layout::contact) {
    const int way = ws.links[root].way;
    if (way >= 0) {
      const Real way_bar = select(is_way_known(ws.ways[way]), constant<Real>(0.5) * ws.dt * delay_bar, zero);
      bar.ways[way] += way_bar;
      return adj_middle_share(ws.whip[root].turns, ws.dt, -way_bar);
    }
  }
  return {zero, zero};
}

template <class Layout>
BACKDRIVE_CALLED void whip_tree_adjoint(Workspace<Layout>& ws, int root, int end, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  static_assert(sizeof(WhipBar<Real>) <= kStackNumbers<Real> * sizeof(Real));
  const TurnShare<Real> share = whip_share(ws.whip[root].turns.pairs);
  const Real weight = -share.share;
  WhipDelay<Real> time{whip_delay(ws, root), constant<Real>(0)};
  Real share_bar = ws.whip[root].whip_bar;
  WhipBar<Real> top;
  Stack<WhipBar<Real>> stack(ws.stack);
  for (int i = end - 1; i >= root; --i) {
    const Link& link = ws.links[i];
    if (link.leaf) top = WhipBar<Real>{};
    Vec3<Real> carried = zero3<Real>();
    share_bar -= whip_body_adjoint(ws, i, weight, bar, top, carried);
    visit_joint(
        link.type, [&](auto joint)
                       __attribute__((always_inline)) { whip_joint_adjoint<decltype(joint)>(ws, i, time, top, bar); });
    if (i == root) break;
    top.v.ang += carried;
    if (!link.last_child) top += stack.pop();
    if (link.parent != i - 1) stack.push(top);
  }
  TreeTurns<Real> turns_bar = adj_whip_delay(ws, root, time.bar, bar);
  turns_bar.pairs += share_bar * share.by_turns;
  const auto to_rates = [&](int v, const Real& x) __attribute__((always_inline)) {
    bar.qd[v] += x;
  };
  adj_tree_turns(ws, root, end, ws.qd, turns_bar, to_rates);
}

/// After a solve (6), of all trees that whip.
template <class Layout>
BACKDRIVE_HD void whip_adjoint(Workspace<Layout>& ws, const StepBar<Layout>& bar) {
  each_whipping_tree(ws, [&](int root, int end) { whip_tree_adjoint(ws, root, end, bar); });
}

/// After the forward solve of an adjoint: takes (21) out of the forces on bodies, since it is not (8)'s to turn back.
template <class Layout>
BACKDRIVE_HD void take_whip_out(Workspace<Layout>& ws) {
  each_whipping_tree(ws, [&](int root, int end) {
    for (int i = root; i < end; ++i) ws.link[i].force -= ws.whip[i].force;
  });
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
