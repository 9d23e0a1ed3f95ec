#pragma once
// What contact adds to a step, after the accelerations of everything else: (C1)-(C7) of docs/contact.md, but for the
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
#include "engine/dual.h"
#include "integrators/contact/find_contacts.h"
#include "integrators/contact/report.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Real>
constexpr bool kIsDual = false;
template <class T>
constexpr bool kIsDual<Dual<T>> = true;

/// What comparisons are made with: the number itself, a dual's value.
template <class Real>
using ValueOf = std::decay_t<decltype(value_of(constant<Real>(0)))>;

/// Of what a solve takes its inner products. Duals are solved for by parts, values first (solve_derivatives.h).
enum class Part { values, derivatives };

template <Part part, class Real>
BACKDRIVE_INLINE ValueOf<Real> inner(const Spatial<Real>& x, const Spatial<Real>& y) {
  if constexpr (part == Part::derivatives) {
    const auto of = [](const Vec3<Real>& a, const Vec3<Real>& b) {
      return a.x.dot * b.x.dot + a.y.dot * b.y.dot + a.z.dot * b.z.dot;
    };
    return of(x.ang, y.ang) + of(x.lin, y.lin);
  } else {
    return value_of(dot(x, y));
  }
}

/// When a solve is good enough, relative to the impulses; how often it may try. One more Newton step follows.
template <class Real>
struct SolveLimits {
  static constexpr bool narrow = sizeof(ScalarOf<Real>) == 4;
  static constexpr double trusted = 1e-3;  ///< beyond which a step that took all its tries counts as unsolved
  static constexpr double tolerance = kIsDual<Real> ? 1e-13 : narrow ? 1e-5 : 1e-13;
  /// Rounding of velocities, which stiff contacts magnify: some ulps.
  static constexpr double rounding = narrow ? 3e-8 : 5e-17;
  /// In float32, of impulses: what may be left where no body will move by it.
  static constexpr double shares = 5e-3;
  /// Of the velocities: slips below it count as this long in the slope of friction.
  static constexpr double least_slip = 3e-4;
  /// After which a step that helps little is not taken without looking where it leads.
  static constexpr int bold_steps = 6;
  static constexpr int newton_steps = kIsDual<Real> ? 200 : 60;
  /// Of the energy of the residual, by which conjugate gradients end.
  static constexpr double gradients_tolerance = narrow ? 1e-6 : 1e-12;
  static constexpr int gradients_steps = 300;
  static constexpr int search_steps = 20;
  static constexpr int adjoint_steps = kIsDual<Real> ? 200 : 100;
  static constexpr int derivative_steps = 1000;
  static constexpr double adjoint_tolerance = narrow ? 1e-5 : 1e-13;
};

/// Calls visit(pair, contact, its number) for all contacts.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_contact(Space& ws, const Visit& visit) {
  auto& space = ws.contact;
  for (int k = 0; k < space.touching_count; ++k) {
    const auto& pair = space.touching[k];
    for (int c = pair.first; c < pair.first + pair.count; ++c) visit(pair, space.contacts[c], c);
  }
}

/// And visit(pair, contact, side) for those of their sides that move: 0 of the first body, 1 of the second.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_side(Space& ws, const Visit& visit) {
  each_contact(ws, [&](const auto& pair, auto& contact, int) {
    for (int side = 0; side < 2; ++side) {
      if (pair.moves[side]) visit(pair, contact, side);
    }
  });
}

/// Whether a contact has no part in a solve but for the twists that come of it. Of duals it may have, by derivatives.
template <class Real>
BACKDRIVE_INLINE bool left_out(const Contact<Real>& c) {
  return c.idle && !kIsDual<Real>;
}

/// x of the first body minus x of the second, of a vector of each side.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> difference(const TouchingPair<Real>& pair, const Contact<Real>& c,
                                          Spatial<Real> ContactSide<Real>::*x) {
  if (!pair.moves[1]) return c.side[0].*x;
  if (!pair.moves[0]) return zero6<Real>() - c.side[1].*x;
  return c.side[0].*x - c.side[1].*x;
}

/// What acts on the first body, on either.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> of_side(int side, const Spatial<Real>& wrench) {
  return side == 0 ? wrench : zero6<Real>() - wrench;
}
/// Far below any impulse, N·s; its square must be far above the smallest number.
template <class Real>
BACKDRIVE_INLINE Real no_impulse() {
  return constant<Real>(sizeof(ScalarOf<Real>) == 4 ? 1e-15 : 1e-30);
}
template <class Real, class Mask>
BACKDRIVE_INLINE Spatial<Real> where(const Mask& mask, const Spatial<Real>& x) {
  const Real o = constant<Real>(0);
  return {{select(mask, x.ang.x, o), select(mask, x.ang.y, o), select(mask, x.ang.z, o)},
          {select(mask, x.lin.x, o), select(mask, x.lin.y, o), select(mask, x.lin.z, o)}};
}

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

template <class Space>
BACKDRIVE_CALLED void load_blocks(Space& ws, Blocks which = Blocks::all) {
  using Real = typename Space::Real;
  for (int i = 0; i < ws.contact.link_count; ++i) {
    if (ws.contact.link[i].touched) ws.contact.link[i].block = zero_block<Real>();
  }
  each_side(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    if (c.idle || (which == Blocks::unshared && pair.shared())) return;
    add_block(pair.theta[side], c.block, pair.arm(c, side), pair.law.resists_turns,
              ws.contact.link[pair.link(side)].block);
  });
}

/// Loads of the links: wrench_of(pair, contact, side) at every contact.
template <class Space, class WrenchOf>
BACKDRIVE_INLINE void load_wrenches(Space& ws, const WrenchOf& wrench_of, bool no_idle = false) {
  using Real = typename Space::Real;
  for (int i = 0; i < ws.contact.link_count; ++i) {
    if (ws.contact.link[i].touched) ws.contact.link[i].load = zero6<Real>();
  }
  each_side(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    if (no_idle && c.idle) return;
    ws.contact.link[pair.link(side)].load += from_point(pair.arm(c, side), wrench_of(pair, c, side));
  });
}
template <class Space>
BACKDRIVE_CALLED void load_residuals(Space& ws) {
  using Real = typename Space::Real;
  load_wrenches(
      ws, [](const auto&, const Contact<Real>& c, int side) { return c.side[side].residual; }, true);
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

/// Sums over the contacts of a world, by parts of the numbers: values, and for duals their derivatives.
template <class Real>
struct Balance {
  static constexpr int parts = kIsDual<Real> ? 2 : 1;
  ValueOf<Real> residual[parts], impulse[parts], noise[parts];  ///< sums of squares
  ValueOf<Real> shared[parts];                                  ///< residual of contacts between bodies that both move
  ValueOf<Real> slope;                                          ///< of the objective along the last step, at its end
  ValueOf<Real> moved;  ///< in float32: by how much the last step changed what pairs do to bodies, see PairChange

  /// What the residual may be.
  BACKDRIVE_INLINE ValueOf<Real> allowed(int part, double tolerance) const {
    const auto times = [](double x, const ValueOf<Real>& y) { return y * value_of(constant<Real>(x * x)); };
    ValueOf<Real> sum = times(tolerance, impulse[part]) + times(SolveLimits<Real>::rounding, noise[part]);
    if (part == 1) sum += times(tolerance * 1e-3, impulse[0]);
    return sum;
  }
  /// Whether it is, or is no number.
  BACKDRIVE_INLINE MaskOf<Real> settled(double tolerance, int part = 0) const {
    return !(residual[part] > allowed(part, tolerance));
  }
  /// Whether it will be after one more step of Newton's, if that helps as the last one did; between two bodies the last
  /// step is none, and it must be so already; and so must what derivatives are taken at. From far away, where float32's
  /// tolerance would let it end, what slides may begin to stick in that step, of which the last one knew nothing.
  /// There it is enough, too, that one more step will move no body: what is left then is how contacts share what they
  /// hold against each other, which softened blocks are slow to find.
  BACKDRIVE_INLINE MaskOf<Real> will_settle(double tolerance, const Balance& last) const {
    if constexpr (parts == 2) return settled(tolerance) && last.settled(tolerance);
    const auto most = allowed(0, tolerance);
    // The quotient first: in float32 squares of squares leave its range from milligrams to megatonnes.
    const auto zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
    const auto next = [&](const ValueOf<Real>& now, const ValueOf<Real>& before) {
      return now * (now / select(before > zero, before, one));
    };
    const auto apart = !(shared[0] > most);
    const auto foreseen = !(next(residual[0], last.residual[0]) > most);
    if constexpr (!SolveLimits<Real>::narrow) return apart && foreseen;
    const auto moves_no_more = !(next(moved, last.moved) > most);
    return apart &&
           ((foreseen && settled(SolveLimits<Real>::trusted)) || (moves_no_more && settled(SolveLimits<Real>::shares)));
  }
};
template <class Real>
BACKDRIVE_INLINE ValueOf<Real> square_of_part(const Spatial<Real>& x, [[maybe_unused]] int part) {
  if constexpr (kIsDual<Real>) {
    if (part == 1) {
      const auto d = [](const Vec3<Real>& v) { return v.x.dot * v.x.dot + v.y.dot * v.y.dot + v.z.dot * v.z.dot; };
      return d(x.ang) + d(x.lin);
    }
  }
  return value_of(dot(x, x));
}

template <class Real>
BACKDRIVE_INLINE ValueOf<Real> size_of_part(const Real& x, [[maybe_unused]] int part) {
  if constexpr (kIsDual<Real>) {
    if (part == 1) return magnitude(x.dot);
  }
  return magnitude(value_of(x));
}
template <class Real>
BACKDRIVE_INLINE ValueOf<Real> size_of_part(const Vec3<Real>& v, int part) {
  return size_of_part(v.x, part) + size_of_part(v.y, part) + size_of_part(v.z, part);
}
/// What a block makes of velocities whose ulp is 1: sum_of(of) sums of(twist) over those that a slip is the sum of.
template <class Real, class SumOf>
BACKDRIVE_INLINE ValueOf<Real> noise_of_part(const ContactBlock<Real>& b, bool turns, int part, const SumOf& sum_of) {
  const auto sizes = [&](Vec3<Real> Spatial<Real>::*half, const Real& stiffness) {
    const auto of = [&](int p) {
      return sum_of([&](const Spatial<Real>& twist) { return size_of_part(twist.*half, p); });
    };
    ValueOf<Real> noise = size_of_part(stiffness, 0) * of(part);
    if (part == 1) noise += size_of_part(stiffness, 1) * of(0);
    return noise;
  };
  const auto slid = sizes(&Spatial<Real>::lin, b.normal + b.tangential);
  return turns ? slid + sizes(&Spatial<Real>::ang, b.torsion + b.rolling) : slid;
}

/// The direction of a slip that is short enough to stick, else zero.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> where_short(const Vec3<Real>& direction) {
  const auto sticks = value_of(dot(direction, direction)) < value_of(constant<Real>(0.5));
  return choose(sticks, direction, zero3<Real>());
}

/// Takes the slip of a contact that sticks from the impulse that x makes it carry, not from x: where friction is stiff
/// the bodies' balance knows it well, and a slip that is off by ε would change all of it. Returns by how much the slip
/// is then another. p: the impulse on the first body.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> slip_from_impulse(const PairLaw<Real>& law, const Vec3<Real>& n, const Vec3<Real>& p,
                                              const MaskOf<Real>& wanted, ContactForce<Real>& f) {
  const Real one = constant<Real>(1), least = no_impulse<Real>();
  const Real bound = law.dt * law.material.friction * f.normal.value;
  const Vec3<Real> direction = tangential(n, p) * (-one / (bound + least));
  const Real square = dot(direction, direction);
  const auto sticks = wanted && value_of(square) < value_of(constant<Real>(0.96)) && value_of(bound) > value_of(least);
  const Real speed = law.material.creep / square_root(select(sticks, one - square, one));
  const Vec3<Real> gap = direction * speed - f.slide.direction * f.slide.speed;
  const Vec3<Real> drag = direction * law.material.friction;
  f.slide = {choose(sticks, direction, f.slide.direction), select(sticks, speed, f.slide.speed)};
  f.wrench.lin = choose(sticks, (n - drag) * f.normal.value, f.wrench.lin);
  f.drag.lin = choose(sticks, drag, f.drag.lin);
  return choose(sticks, gap, zero3<Real>());
}

/// Whether soften() does anything.
template <class Real>
constexpr bool softens() {
  return SolveLimits<Real>::narrow && !kIsDual<Real>;
}

/// In float32, K_t of a contact that sticks is no more than what the bound of friction makes of a small part of the
/// velocities: some thousand times the mass that it stops. What K_t is beyond that changes no impulse that the balance
/// of the bodies tells, as slips come from these, but would leave nothing of the inertia of a light body in the sum.
/// How contacts of one body share what they hold against each other is told by their K_t alone, though: each step makes
/// good only that part of what is wrong with it that is left of their 1/(Σ 1/K_t). See Balance::moved.
template <class Real>
BACKDRIVE_INLINE void soften(const PairLaw<Real>& law, const ContactState<Real>& s, const ContactForce<Real>& force,
                             ContactBlock<Real>& block) {
  if constexpr (softens<Real>()) {
    const Real slip = constant<Real>(SolveLimits<Real>::least_slip) *
                      square_root(dot(s.start.lin, s.start.lin) + dot(s.smooth.lin, s.smooth.lin));
    const Real most = law.dt * force.normal.value * law.material.friction / (slip + no_impulse<Real>());
    block.tangential = minimum(block.tangential, most);
  }
}

/// Whether a contact's path is outside in all lanes, where force and slopes are zero; as contact_force has it.
template <class Real>
BACKDRIVE_INLINE bool stays_apart(const PairLaw<Real>& law, const ContactState<Real>& s, const Spatial<Real>& e) {
  const Real end = s.depth - law.dt * dot(s.normal, s.smooth.lin + e.lin * constant<Real>(0.5));
  const auto zero = value_of(constant<Real>(0));
  return !any(!(value_of(s.depth) < zero && value_of(end) < zero));
}
template <class Real>
BACKDRIVE_INLINE ContactBlock<Real> no_block(const Vec3<Real>& n) {
  const Real o = constant<Real>(0);
  return {n, o, o, zero3<Real>(), o, o, zero3<Real>(), zero6<Real>()};
}

/// By how much the last step changed what a pair's contacts do to the body that moves: the sum of their wrenches about
/// the middle of the first shape, whose moments count by forces at its farthest point.
template <class Real>
struct PairChange {
  Vec3<Real> middle;
  Real size;
  Spatial<Real> sum;

  template <class Space>
  BACKDRIVE_INLINE PairChange(const Space& ws, const TouchingPair<Real>& pair)
      : middle(ws.contact.balls[pair.a].centre),
        size(maximum(ws.contact.balls[pair.a].extent, constant<Real>(1e-9))),
        sum(zero6<Real>()) {}

  BACKDRIVE_INLINE void add(const Contact<Real>& c, int side) {
    if (!c.still) sum += from_point(c.position - middle, c.side[side].step_wrench);
  }
  BACKDRIVE_INLINE ValueOf<Real> square() const {
    return value_of(dot(sum.lin, sum.lin) + dot(sum.ang, sum.ang) / (size * size));
  }
};

/// What is left of a contact's equations on both sides, and what it adds to the sums.
template <bool Start, class Real>
BACKDRIVE_INLINE void balance_sides(const TouchingPair<Real>& pair, Contact<Real>& c, const MaskOf<Real>& active,
                                    Balance<Real>& sum, [[maybe_unused]] PairChange<Real>& change) {
  c.idle = !any(value_of(c.block.normal + c.block.tangential) > value_of(constant<Real>(0)));
  for (int side = 0; side < 2; ++side) {
    if (!pair.moves[side]) continue;
    ContactSide<Real>& s = c.side[side];
    if constexpr (Start) s.twist = s.wrench = zero6<Real>();
    s.residual = where(active, of_side(side, c.impulse) - s.wrench);
    for (int p = 0; p < sum.parts; ++p) {
      const auto square = square_of_part(s.residual, p);
      sum.residual[p] += square;
      c.idle = c.idle && !any(square > value_of(constant<Real>(0)));
      if (pair.shared()) sum.shared[p] += square;
    }
    if constexpr (Start) continue;
    sum.slope -= value_of(dot(s.step, s.residual));
    if constexpr (softens<Real>()) {
      if (!pair.shared()) change.add(c, side);
    }
  }
}

/// evaluate() of one contact.
template <bool Start, class Real>
BACKDRIVE_INLINE void evaluate_contact(const TouchingPair<Real>& pair, Contact<Real>& c, const MaskOf<Real>& active,
                                       const MaskOf<Real>& bold, Balance<Real>& sum, PairChange<Real>& change) {
  Spatial<Real> e;
  if constexpr (Start) {
    e = c.state.start - c.state.smooth;
  } else {
    e = difference(pair, c, &ContactSide<Real>::twist);
  }
  if (stays_apart(pair.law, c.state, e)) {
    if (c.still && left_out(c)) return;
    c.block = no_block(c.state.normal);
    c.wrench = c.impulse = zero6<Real>();
    balance_sides<Start>(pair, c, active, sum, change);
    return;
  }
  ContactForce<Real> force = contact_force(pair.law, c.state, e);
  [[maybe_unused]] Vec3<Real> gap = zero3<Real>();
  if (!Start && any(bold)) {
    const Spatial<Real> p = pair.moves[0] ? c.side[0].wrench : zero6<Real>() - c.side[1].wrench;
    gap = slip_from_impulse(pair.law, c.state.normal, p.lin, bold, force);
  }
  c.block = block_of(pair.law, c.state.normal, force);
  soften(pair.law, c.state, force, c.block);
  if constexpr (Start) {
    // Where it slips, the secant: it is stiffer than the objective anywhere, and so is never too bold.
    c.block.slide = where_short(c.block.slide);
    c.block.roll = where_short(c.block.roll);
  }
  c.wrench = force.wrench;
  c.impulse = force.wrench * pair.law.dt;
  if constexpr (Start) {
    c.impulse += block_times(c.block, e);
  } else {
    c.impulse += block_times(c.block, {zero3<Real>(), gap});
  }
  for (int p = 0; p < sum.parts; ++p) {
    sum.impulse[p] += square_of_part(c.impulse, p);
    const auto noise = noise_of_part(c.block, pair.law.resists_turns, p,
                                     [&](auto of) { return of(c.state.start) + of(c.state.smooth) + of(e); });
    sum.noise[p] += noise * noise;
  }
  balance_sides<Start>(pair, c, active, sum, change);
}

/// Forces, blocks and residuals at x. At the start x is 0, and forces are those of the path at the centred velocity,
/// e = a − b, that a body at rest takes; the residual says how far Newton's step leads from there. bold: where slips
/// come from impulses.
template <bool Start, class Space>
BACKDRIVE_CALLED Balance<typename Space::Real> evaluate(Space& ws, const MaskOf<typename Space::Real>& active,
                                                        const MaskOf<typename Space::Real>& bold) {
  using Real = typename Space::Real;
  Balance<Real> sum{};
  for (int k = 0; k < ws.contact.touching_count; ++k) {
    const TouchingPair<Real>& pair = ws.contact.touching[k];
    PairChange<Real> change(ws, pair);
    for (int c = pair.first; c < pair.first + pair.count; ++c) {
      evaluate_contact<Start>(pair, ws.contact.contacts[c], active, bold, sum, change);
    }
    if constexpr (softens<Real>() && !Start) sum.moved += change.square();
  }
  return sum;
}

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

/// Goes back along the last step to where the objective falls no more, lane by lane where the step went too far: its
/// slope was −fall at the start, and the step is not a bold one. Returns the balance there.
template <class Space>
BACKDRIVE_CALLED Balance<typename Space::Real> search_line(Space& ws, const MaskOf<typename Space::Real>& active,
                                                           const MaskOf<typename Space::Real>& bold,
                                                           const ValueOf<typename Space::Real>& fall,
                                                           Balance<typename Space::Real> at_end) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  const auto number = [](double x) -> Value { return value_of(constant<Real>(x)); };
  const Value near = fall * number(0.5);
  Value low = number(0), high = number(1), low_slope = -fall, high_slope = at_end.slope, at = high;
  auto too_far = active && !bold && at_end.slope > near &&
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

template <class Space, class Solver>
BACKDRIVE_HD void solve_derivatives(Space& ws, const Solver& solver);

/// (C1)-(C6): solves for what the contacts do, up to the last solve, whose matrix and right-hand side it leaves in the
/// links. False: nothing is in reach of anything.
template <class Space, class Solver>
BACKDRIVE_HD bool solve_contacts(Space& ws, const Solver& solver) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  ws.contact.any_unsolved = false;
  if (!find_contacts(ws)) return false;
  const Value zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
  auto active = zero < one, bold = active;
  Balance<Real> last = evaluate<true>(ws, active, bold);
  for (int p = 0; p < last.parts; ++p) last.residual[p] = last.impulse[p];
  last.moved = last.impulse[0];
  for (int k = 1; k <= SolveLimits<Real>::newton_steps; ++k) {
    load_blocks(ws);
    load_residuals(ws);
    solver.factor_and_solve();
    const Value fall = finish_solve(ws, solver);
    advance(ws, one);
    Balance<Real> balance = evaluate<false>(ws, active, bold);
    if (k > SolveLimits<Real>::bold_steps) {
      // Stiff contact that a fast body meets takes some ten steps, each of which halves what is left.
      const auto halves = balance.residual[0] < last.residual[0] * value_of(constant<Real>(0.25));
      const auto stalls = active && bold && !halves;
      if (any(stalls)) {
        bold = bold && !stalls;
        balance = evaluate<false>(ws, active, bold);
      }
      if (any(active && !bold)) balance = search_line(ws, active, bold, fall, balance);
    }
    active = active && !balance.will_settle(SolveLimits<Real>::tolerance, last);
    last = balance;
    if (!any(active)) break;
    each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
      if (!left_out(c)) c.side[side].residual = where(active, c.side[side].residual);
    });
  }
  if constexpr (kIsDual<Real>) solve_derivatives(ws, solver);
  const auto unsolved = active && !last.settled(SolveLimits<Real>::trusted);
  ws.contact.any_unsolved = any(unsolved);
  ws.contact.unsolved = select(unsolved, constant<Real>(1), constant<Real>(0));
  return true;
}

/// The last step, as the integrator solves it for all coordinates. Against what does not move it is one more of
/// Newton's, with K among the masses: rounding of x does not become one of stiff forces. Between two bodies it is Δt f,
/// the same on both: no momentum comes of it.
template <class Space>
BACKDRIVE_CALLED void load_last_step(Space& ws) {
  using Real = typename Space::Real;
  load_blocks(ws, Blocks::unshared);
  const auto wrench_of = [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    if (pair.shared()) return of_side(side, c.wrench * ws.dt);
    return of_side(side, c.impulse) + block_times(c.block, c.side[side].twist);
  };
  load_wrenches(ws, wrench_of, !kIsDual<Real>);
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
