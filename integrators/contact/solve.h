#pragma once
// What contact adds to a step, after the accelerations of everything else: (C1)-(C9) of docs/contact.md, but for the
// linear solves, which are the integrator's. The unknown x is the change of velocity Δv:
//
//   M̃ x = Δt Σ Jᵀ f(J x)
//
// Newton's method, whose matrix M̃ + Σ Jᵀ K J is solved for with that of M̃ + Σ θ J_bᵀ K J_b, body by body: exact where
// one of the two bodies does not move, else a preconditioner of conjugate gradients. All vectors are known by what
// contacts see of them (ContactSide), so that line searches and residuals ask nothing of the integrator.
//
// A `Solver` has factor_and_solve() and solve_again(): of M̃ + blocks of the links, with their loads as right-hand side;
// the twists of the solution of links that are touched go into link[].change.
//
// Lanes that have settled stay as they are while others go on: a world's bits do not depend on those beside it.
#include "integrators/contact/balance.h"
#include "integrators/contact/report.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

// ---- blocks and loads -----------------------------------------------------------------------------------------------

template <class Real>
BACKDRIVE_INLINE ArticulatedInertia<Real> zero_block() {
  ArticulatedInertia<Real> block;
  const Real o = constant<Real>(0);
  block.aa = block.ll = {o, o, o, o, o, o};
  block.al = {{o, o, o}, {o, o, o}, {o, o, o}};
  return block;
}

/// Adds θ Jᵀ K J of a contact at x: a point mass of K_t there, less it along s, K_n − K_t along n; and what turns meet.
template <class Real>
BACKDRIVE_INLINE void add_block(const Real& theta, const ContactBlock<Real>& b, const Vec3<Real>& x, bool turns,
                                ArticulatedInertia<Real>& block) {
  const Real o = constant<Real>(0);
  RigidInertia<Real> mass;
  set(mass, theta * b.tangential, x, Sym3<Real>{o, o, o, o, o, o});
  ArticulatedInertia<Real> point;
  set(point, mass);
  const Spatial<Real> of[] = {wrench_at(x, b.axis), wrench_at(x, b.slide)};
  const Spatial<Real> less[] = {of[0] * (theta * (b.tangential - b.normal)), of[1] * (theta * b.tangential)};
  add_less_outer<2>(block, point, less, of);
  if (!turns) return;
  const Real across = theta * b.rolling;
  const Vec3<Real> along = b.axis * (theta * (b.torsion - b.rolling)), rolled = b.roll * across;
  Sym3<Real>& aa = block.aa;
  aa.xx += across + along.x * b.axis.x - rolled.x * b.roll.x;
  aa.yy += across + along.y * b.axis.y - rolled.y * b.roll.y;
  aa.zz += across + along.z * b.axis.z - rolled.z * b.roll.z;
  aa.xy += along.x * b.axis.y - rolled.x * b.roll.y;
  aa.xz += along.x * b.axis.z - rolled.x * b.roll.z;
  aa.yz += along.y * b.axis.z - rolled.y * b.roll.z;
}

/// Whose blocks go onto the links: all, or those of contacts of which one body does not move.
enum class Blocks { all, unshared };

/// Of links without contacts, which is what M̃ is solved with.
template <class Space>
BACKDRIVE_INLINE void begin_blocks(Space& ws) {
  for (int i = 0; i < ws.contact.link_count; ++i) {
    auto& touch = ws.contact.link[i];
    if (!touch.touched) continue;
    touch.block = zero_block<typename Space::Real>();
    touch.block.aa = touch.kicked;
  }
}

template <class Space>
BACKDRIVE_CALLED void load_blocks(Space& ws, Blocks which = Blocks::all) {
  using Real = typename Space::Real;
  begin_blocks(ws);
  each_side(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    if (c.idle || (which == Blocks::unshared && pair.shared())) return;
    add_block(pair.theta[side], c.block, pair.arm(c, side), pair.law.resists_turns,
              ws.contact.link[pair.link(side)].block);
  });
}

/// Loads of the links: wrench_of(pair, contact, side) at every contact that is not left out, of which it is zero.
template <class Space, class WrenchOf>
BACKDRIVE_INLINE void load_wrenches(Space& ws, const WrenchOf& wrench_of) {
  using Real = typename Space::Real;
  for (int i = 0; i < ws.contact.link_count; ++i) {
    if (ws.contact.link[i].touched) ws.contact.link[i].load = zero6<Real>();
  }
  each_side(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    if (left_out(c)) return;
    ws.contact.link[pair.link(side)].load += from_point(pair.arm(c, side), wrench_of(pair, c, side));
  });
}
template <class Space>
BACKDRIVE_CALLED void load_residuals(Space& ws) {
  using Real = typename Space::Real;
  load_wrenches(ws, [](const auto&, const Contact<Real>& c, int side) { return c.side[side].residual; });
}

// ---- linear solves --------------------------------------------------------------------------------------------------

/// (M̃ + Σ Jᵀ K J) step = residual, from the preconditioner's first solution in link[].change; the residual that is left
/// stays. Returns residual·step: by how fast the objective falls along the step.
template <Part part = Part::values, class Space, class Solver>
BACKDRIVE_CALLED ValueOf<typename Space::Real> finish_solve(Space& ws, const Solver& solver) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  const Value zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
  // z = P⁻¹ r, M̃ z = r − θ K z.
  const auto solution_at = [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    return twist_at(ws.contact.link[pair.link(side)].change, pair.arm(c, side));
  };
  Value energy = zero;
  bool any_shared = false;
  auto coupled = zero < zero;
  each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
    ContactSide<Real>& s = c.side[side];
    const Spatial<Real> z = solution_at(pair, c, side);
    s.step = s.search = z;
    c.still = left_out(c);
    if (c.still) return;
    s.step_wrench = s.search_wrench = s.residual - block_times(c.block, z) * pair.theta[side];
    energy += inner<part>(s.residual, z);
    if (pair.shared()) {
      any_shared = true;
      coupled = coupled || value_of(c.block.normal + c.block.tangential) > zero;
    }
  });
  if (!any_shared || !any(coupled)) return energy;
  Value fall = zero, last = energy;
  const Value enough = energy * value_of(constant<Real>(SolveLimits<Real>::gradients_tolerance));
  auto running = energy > zero;
  each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
    c.side[side].step = zero6<Real>();
    if (!c.still) c.side[side].step_wrench = zero6<Real>();
  });
  for (int k = 1;; ++k) {
    Value held = zero, carried = zero;  // p·Σ Jᵀ K J p and p·M̃ p
    each_contact(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int) {
      if (c.idle) return;
      const Spatial<Real> p = difference(pair, c, &ContactSide<Real>::search);
      held += inner<part>(p, block_times(c.block, p));
      for (int side = 0; side < 2; ++side) {
        if (pair.moves[side]) carried += inner<part>(c.side[side].search, c.side[side].search_wrench);
      }
    });
    // Where rounding leaves nothing of M̃, far below θ K, only the preconditioner's own step is known to lead down,
    // which is 1 of the first direction. Exactly 1, too, where nothing is shared: the preconditioner is exact there.
    const auto known = carried > zero && held + carried > zero;
    const Value own = k == 1 ? one : zero;
    const Value share =
        select(running, select(coupled, select(known, last / select(known, held + carried, one), own), one), zero);
    running = running && known;
    fall += share * last;
    each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int) {
      const Spatial<Real> pull =
          c.idle ? zero6<Real>() : block_times(c.block, difference(pair, c, &ContactSide<Real>::search));
      for (int side = 0; side < 2; ++side) {
        if (!pair.moves[side]) continue;
        ContactSide<Real>& s = c.side[side];
        s.step += s.search * share;
        if (c.idle) continue;
        s.step_wrench += s.search_wrench * share;
        s.residual -= (s.search_wrench + of_side(side, pull)) * share;
      }
    });
    running = running && coupled;
    if (k == SolveLimits<Real>::gradients_steps || !any(running)) break;
    load_residuals(ws);
    solver.solve_again();
    Value next = zero;
    each_side(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
      if (!c.idle) next += inner<part>(c.side[side].residual, solution_at(pair, c, side));
    });
    running = running && next > enough;
    if (!any(running)) break;
    const Value turn = select(running, next / last, zero);
    last = next;
    each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
      ContactSide<Real>& s = c.side[side];
      const Spatial<Real> z = solution_at(pair, c, side);
      s.search = z + s.search * turn;
      if (c.idle) return;
      s.search_wrench = s.residual - block_times(c.block, z) * pair.theta[side] + s.search_wrench * turn;
    });
  }
  return fall;
}

// ---- Newton's method ------------------------------------------------------------------------------------------------

/// x += share · step
template <class Space>
BACKDRIVE_CALLED void advance(Space& ws, const ValueOf<typename Space::Real>& share) {
  using Real = typename Space::Real;
  each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
    ContactSide<Real>& s = c.side[side];
    s.twist += s.step * share;
    if (!c.still) s.wrench += s.step_wrench * share;
  });
}

/// Goes back along the last step to where the objective falls no more, in those `lanes` where the step went too far:
/// its slope was −fall at the start. Returns the balance there.
template <class Space>
BACKDRIVE_CALLED Balance<typename Space::Real> search_line(Space& ws, const MaskOf<typename Space::Real>& lanes,
                                                           const MaskOf<typename Space::Real>& active,
                                                           const MaskOf<typename Space::Real>& bold,
                                                           const ValueOf<typename Space::Real>& fall,
                                                           Balance<typename Space::Real> at_end) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  const auto number = [](double x) -> Value { return value_of(constant<Real>(x)); };
  const Value near = fall * number(0.5);
  Value low = number(0), high = number(1), low_slope = -fall, high_slope = at_end.slope, at = high;
  auto too_far = lanes && at_end.slope > near &&
                 at_end.residual[0] > at_end.allowed(0, SolveLimits<Real>::tolerance) * number(100);
  for (int k = 0; k < SolveLimits<Real>::search_steps && any(too_far); ++k) {
    const Value width = high - low, span = high_slope - low_slope;
    Value share = -low_slope / select(span > number(0), span, number(1));
    share = clamped(share, number(0.05), number(0.95));
    const Value next = select(too_far, low + share * width, at);
    advance(ws, next - at);
    at = next;
    at_end = evaluate<false>(ws, active, bold);
    const auto beyond = at_end.slope > number(0);
    // Illinois: the end that stays counts half as much.
    const Value halved_low = low_slope * number(0.5), halved_high = high_slope * number(0.5);
    high = select(beyond, at, high);
    low = select(beyond, low, at);
    high_slope = select(beyond, at_end.slope, halved_high);
    low_slope = select(beyond, halved_low, at_end.slope);
    too_far = too_far && (at_end.slope > near || at_end.slope < -near);
  }
  return at_end;
}

/// In which lanes of a hard step two bodies that both move may touch.
template <class Space>
BACKDRIVE_CALLED void find_shared(Space& ws) {
  using Real = typename Space::Real;
  ws.contact.shared = value_of(constant<Real>(1)) < value_of(constant<Real>(0));
  each_contact(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int) {
    if (pair.shared()) ws.contact.shared = ws.contact.shared || in_reach(c);
  });
}

/// x = 0 in some lanes.
template <class Space>
BACKDRIVE_CALLED void start_anew(Space& ws, const MaskOf<typename Space::Real>& lanes) {
  using Real = typename Space::Real;
  each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
    ContactSide<Real>& s = c.side[side];
    s.twist = only(!lanes, s.twist);
    s.wrench = only(!lanes, s.wrench);
  });
}

/// Twists anew from the wrenches that make them up, in some lanes. Where steps were far longer than what they end in,
/// rounding leaves sums that are no longer solutions of each other.
template <class Space, class Solver>
BACKDRIVE_CALLED void renew_twists(Space& ws, const Solver& solver, const MaskOf<typename Space::Real>& lanes) {
  using Real = typename Space::Real;
  begin_blocks(ws);
  load_wrenches(ws, [](const auto&, const Contact<Real>& c, int side) { return c.side[side].wrench; });
  solver.factor_and_solve();
  each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
    const Spatial<Real> twist = twist_at(ws.contact.link[pair.link(side)].change, pair.arm(c, side));
    c.side[side].twist = choose(lanes, twist, c.side[side].twist);
  });
}

/// Newton's steps in the `active` lanes from x, whose forces and blocks were evaluated last, until they settle; leaves
/// those that do not, are lost, and returns what is left. `bold` lanes take whole steps, and slips from impulses;
/// those that this helps no more are taken away, and search along lines. In float32 these search with a smoother
/// friction between bodies, and are bold again once they are near.
template <class Space, class Solver>
BACKDRIVE_CALLED Balance<typename Space::Real> newton(Space& ws, const Solver& solver,
                                                      MaskOf<typename Space::Real>& active,
                                                      MaskOf<typename Space::Real>& bold,
                                                      Balance<typename Space::Real> last) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  const auto number = [](double x) -> Value { return value_of(constant<Real>(x)); };
  const double tolerance = ws.contact.any_held ? SolveLimits<Real>::held_tolerance : SolveLimits<Real>::tolerance;
  Value patience = number(SolveLimits<Real>::bold_steps), most = number(0);
  for (int p = 0; p < last.parts; ++p) last.residual[p] = last.impulse[p];  // nothing is known of a step before
  last.moved = last.impulse[0];
  auto failed = number(1) < number(0), again = failed;
  const int steps = ws.contact.any_held ? SolveLimits<Real>::held_steps : SolveLimits<Real>::newton_steps;
  for (int k = 1; k <= steps; ++k) {
    load_blocks(ws);
    load_residuals(ws);
    solver.factor_and_solve();
    const Value fall = finish_solve(ws, solver);
    advance(ws, number(1));
    Balance<Real> balance = evaluate<false>(ws, active, bold);
    // Stiff contact that a fast body meets takes some ten steps, each of which halves what is left.
    const auto halves = balance.residual[0] < last.residual[0] * number(0.25);
    const auto stalls = active && bold && !halves && number(k) > patience;
    most = select(active, maximum(most, maximum(balance.impulse[0], balance.residual[0])), most);
    const auto wild = most > balance.impulse[0] * number(SolveLimits<Real>::wild * SolveLimits<Real>::wild);
    const auto anew = stalls && (wild || balance.residual[0] > balance.impulse[0]);
    if (any(stalls)) {
      if constexpr (softens<Real>()) find_shared(ws);
      bold = bold && !stalls;
      failed = failed || (stalls && again);
      active = active && !failed;
      most = select(anew, number(0), most);
      start_anew(ws, anew);
      balance = evaluate<false>(ws, active, bold);
    }
    const auto careful = active && !bold && !anew;
    if (any(careful)) balance = search_line(ws, careful, active, bold, fall, balance);
    auto settles = !anew && balance.will_settle(tolerance, last);
    failed = failed || (active && settles && !balance.finite());
    const auto rough = active && wild && !anew && balance.settled(SolveLimits<Real>::trusted) && balance.finite();
    if (any(rough)) {
      renew_twists(ws, solver, rough);
      most = select(rough, number(0), most);
      settles = settles && !rough;
      balance = evaluate<false>(ws, active, bold);
    }
    if constexpr (softens<Real>()) {
      if (!ws.contact.any_held) {
        const auto smooth = !bold && ws.contact.shared;
        settles = settles && !smooth;
        const auto near = active && smooth && balance.settled(SolveLimits<Real>::trusted);
        if (any(near)) {
          bold = bold || near;
          again = again || near;
          patience = select(near, number(k + SolveLimits<Real>::bold_again), patience);
          balance = evaluate<false>(ws, active, bold);
        }
      }
    }
    active = active && !settles;
    last = balance;
    if (!any(active)) break;
    each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
      if (!left_out(c)) c.side[side].residual = only(active, c.side[side].residual);
    });
  }
  active = failed || (active && !last.settled(SolveLimits<Real>::trusted));
  return last;
}

/// In `lanes`, whose step has not been solved, where what was found would give bodies more energy than the contacts'
/// first springs have stored at the start: only so much of it acts as takes nothing of what they have. With p the
/// impulses and s the share that acts, b = Σ p·J v_s and a = Σ p·J M̃⁻¹ Jᵀ p, their energy changes by s b + ½ s² a,
/// which is zero at s = −2b/a; the way that bodies go along p, by v_s + ½ Δv, is zero there, too.
template <class Space, class Solver>
BACKDRIVE_CALLED void feed_nothing(Space& ws, const Solver& solver, const MaskOf<typename Space::Real>& lanes) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  const auto impulse = [](const TouchingPair<Real>& pair, const Contact<Real>& c) { return c.wrench * pair.law.dt; };
  const auto keep = [&](Spatial<Real> ContactSide<Real>::*from, Spatial<Real> ContactSide<Real>::*to) {
    each_side(ws, [&](const auto&, Contact<Real>& c, int side) { c.side[side].*to = c.side[side].*from; });
  };
  keep(&ContactSide<Real>::twist, &ContactSide<Real>::step);
  keep(&ContactSide<Real>::wrench, &ContactSide<Real>::step_wrench);
  each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
    c.side[side].wrench = choose(lanes, of_side(side, impulse(pair, c)), c.side[side].wrench);
  });
  renew_twists(ws, solver, lanes);
  const Value zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
  Value along = zero, kicked = zero, stored = zero;
  each_contact(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int) {
    if (left_out(c)) return;
    const Spatial<Real> p = impulse(pair, c);
    along += value_of(dot(p, c.state.smooth));
    kicked += value_of(dot(p, difference(pair, c, &ContactSide<Real>::twist)));
    stored += value_of(stored_energy(pair.law.material, c.state.depth));
  });
  const auto fed = lanes && !(along + kicked * value_of(constant<Real>(0.5)) <= stored);
  const auto acts = along < zero && kicked > zero;
  const Value bounced = along * value_of(constant<Real>(-2)) / select(acts, kicked, one);
  const Value share = select(acts, minimum(bounced, one), zero);
  const auto part_of = [&](const Spatial<Real>& x, const Spatial<Real>& otherwise) {
    return choose(fed, choose(acts, x * share, zero6<Real>()), otherwise);
  };
  each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int) {
    if (left_out(c)) return;
    c.wrench = part_of(c.wrench, c.wrench);
    c.impulse = part_of(impulse(pair, c), c.impulse);
    for (Real* k : {&c.block.normal, &c.block.tangential, &c.block.torsion, &c.block.rolling}) {
      *k = select(fed, constant<Real>(0), *k);
    }
  });
  each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
    ContactSide<Real>& s = c.side[side];
    s.twist = part_of(s.twist, s.step);
    s.wrench = part_of(s.wrench, s.step_wrench);
  });
}

/// (C9), in `lanes`: friction's bounds are held at what the normal forces came to the time before, at first none. Takes
/// from `lanes` those where they have come to agree with each other. The others stay as they are, with the slips that
/// they had: `bold`.
template <class Space, class Solver>
BACKDRIVE_CALLED void solve_with_held_bounds(Space& ws, const Solver& solver, MaskOf<typename Space::Real>& lanes,
                                             MaskOf<typename Space::Real> bold) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  const Value zero = value_of(constant<Real>(0));
  bold = bold && !lanes;
  ws.contact.any_held = true;
  ws.contact.held = lanes;
  each_contact(ws, [&](TouchingPair<Real>& pair, Contact<Real>& c, int) {
    c.bound = constant<Real>(0);
    if constexpr (softens<Real>()) smooth(c.state, lanes && in_reach(c), pair.law);
  });
  start_anew(ws, lanes);
  auto open = lanes;
  for (int round = 0;; ++round) {
    each_contact(ws, [](const auto&, Contact<Real>& c, int) { c.still = false; });  // who waited for others goes on
    auto active = open;
    const Balance<Real> balance = newton(ws, solver, active, bold, evaluate<false>(ws, active, bold));
    const auto normal_force = [](const Contact<Real>& c) {
      return maximum(dot(c.state.normal, c.wrench.lin), constant<Real>(0));
    };
    Value left = zero;
    each_contact(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int) {
      if (left_out(c)) return;
      const Real more = (normal_force(c) - c.bound) * pair.law.dt;
      left += value_of(more * more * dot(c.block.drag, c.block.drag));
    });
    lanes = open && (active || left > balance.allowed(0, SolveLimits<Real>::trusted));
    open = open && (active || left > balance.allowed(0, SolveLimits<Real>::held_tolerance));
    if (round == SolveLimits<Real>::held_rounds || !any(open)) break;
    each_contact(ws, [&](const auto&, Contact<Real>& c, int) { c.bound = select(open, normal_force(c), c.bound); });
  }
  if constexpr (!kIsDual<Real>) {
    if (any(lanes)) feed_nothing(ws, solver, lanes);
  }
}

template <class Space, class Solver>
BACKDRIVE_HD void solve_derivatives(Space& ws, const Solver& solver);

/// (C1)-(C6): solves for what the contacts do, up to the last solve, whose matrix and right-hand side it leaves in the
/// links. False: nothing is in reach of anything.
template <class Space, class Solver>
BACKDRIVE_HD bool solve_contacts(Space& ws, const Solver& solver) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  ws.contact.any_unsolved = ws.contact.any_held = false;
  if (ws.contact.contact_count == 0) return false;
  for (int i = 0; i < ws.contact.link_count; ++i) {
    if (ws.contact.link[i].touched) ws.contact.link[i].kicked = kicked_inertia(ws, i);
  }
  const Value zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
  auto active = zero < one, bold = active;
  ws.contact.shared = one < zero;
  newton(ws, solver, active, bold, evaluate<true>(ws, active, bold));
  if (any(active)) solve_with_held_bounds(ws, solver, active, bold);
  if constexpr (kIsDual<Real>) {
    ws.contact.any_held = any(active);  // derivatives of what is solved are those of the law
    solve_derivatives(ws, solver);
  }
  ws.contact.any_unsolved = any(active);
  ws.contact.unsolved = select(active, constant<Real>(1), constant<Real>(0));
  return true;
}

/// In float32, of contacts with what does not move: K_t of the last step is of the size of the body's own mass. The
/// impulse of what sticks is told by the bodies' balance, so that any K_t has the same solution; a large one leaves
/// nothing of the inertias of light links in the sum with theirs, and what solves the step would be off by as much.
template <class Space>
BACKDRIVE_CALLED void ease_sticking(Space& ws) {
  using Real = typename Space::Real;
  each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
    if (c.idle || pair.shared()) return;
    const Real most = broadcast<Real>(mass_of(ws, pair.link(side))) * constant<Real>(SolveLimits<Real>::sticking_last);
    const Real eased = minimum(c.block.tangential, most);
    const Spatial<Real> force = c.wrench * pair.law.dt;
    c.impulse = force + (c.impulse - force) * (eased / (c.block.tangential + no_impulse<Real>()));
    c.block.tangential = eased;
  });
}

/// The last step, as the integrator solves it for all coordinates. Against what does not move it is one more of
/// Newton's, with K among the masses: rounding of x does not become one of stiff forces. Between two bodies it is Δt f,
/// the same on both: no momentum comes of it.
template <class Space>
BACKDRIVE_CALLED void load_last_step(Space& ws) {
  using Real = typename Space::Real;
  if constexpr (softens<Real>()) ease_sticking(ws);
  load_blocks(ws, Blocks::unshared);
  load_wrenches(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    if (pair.shared()) return of_side(side, c.wrench * ws.dt);
    return of_side(side, c.impulse) + block_times(c.block, c.side[side].twist);
  });
}

/// Takes the constants of the shapes, whose rows begin at first_row, for the worlds from first_world on.
template <class T, class Space>
BACKDRIVE_HD void prepare_shapes(const Launch<T>& launch, int first_row, int first_world, Arena& arena, Space& ws) {
  using Real = typename Space::Real;
  const int count = launch.topology.contact_shape_count;
  ShapeConstants<Real>* const constants = arena.take<ShapeConstants<Real>>(count);
  ws.contact.constants = constants;
  ws.contact.geometry = launch.geometry;
  if (arena.only_counts()) return;
  load_constants(launch, first_row, first_world, numbers_of<Real>(constants),
                 static_cast<std::size_t>(count) * kShapeConstants<Real>);
  plan_contacts(ws);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS

#include "integrators/contact/solve_derivatives.h"
