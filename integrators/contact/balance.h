#pragma once
// What is left of the step's equations at a solution so far (solve.h): forces and blocks of every contact, residuals,
// and when they are small enough. Sums over contacts; nothing is asked of the integrator.
#include "engine/dual.h"
#include "integrators/contact/find_contacts.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

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

/// Calls visit(pair, contact, its number) for all contacts.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_contact(Space& ws, const Visit& visit) {
  auto& space = ws.contact;
  for (int k = 0; k < space.touching_count; ++k) {
    auto& pair = space.touching[k];
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
  BACKDRIVE_INLINE auto finite() const { return is_finite(residual[0] + impulse[0] + noise[0]); }
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

/// |û|² up to which friction counts as sticking, and up to which a known impulse tells the slip better than velocities.
constexpr double kSticks = 0.96, kToldByImpulse = 0.99;

/// The direction of a slip that is short enough to stick, else zero.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> where_short(const Vec3<Real>& direction) {
  const auto sticks = value_of(dot(direction, direction)) < value_of(constant<Real>(0.5));
  return choose(sticks, direction, zero3<Real>());
}

/// Takes the slip of a contact that sticks from the impulse that x makes it carry, not from x: where friction is stiff
/// the bodies' balance knows it well, and a slip that is off by ε would change all of it. Returns by how much the slip
/// is then another. p: the impulse on the first body; most: |û|² up to which it is told so.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> slip_from_impulse(const PairLaw<Real>& law, const Vec3<Real>& n, const Vec3<Real>& p,
                                              const MaskOf<Real>& wanted, double most, ContactForce<Real>& f) {
  const Real one = constant<Real>(1), least = no_impulse<Real>();
  const Real bound = law.dt * law.material.friction * f.normal.value;
  const Vec3<Real> direction = tangential(n, p) * (-one / (bound + least));
  const Real square = dot(direction, direction);
  const auto sticks = wanted && value_of(square) < value_of(constant<Real>(most)) && value_of(bound) > value_of(least);
  const Real speed = law.material.creep / square_root(select(sticks, one - square, one));
  const Vec3<Real> gap = direction * speed - f.slide.direction * f.slide.speed;
  const Vec3<Real> drag = direction * law.material.friction;
  f.slide = {choose(sticks, direction, f.slide.direction), select(sticks, speed, f.slide.speed)};
  f.wrench.lin = choose(sticks, (n - drag) * f.normal.value, f.wrench.lin);
  f.drag.lin = choose(sticks, drag, f.drag.lin);
  return choose(sticks, gap, zero3<Real>());
}

/// Whether soften() and smooth() do anything.
template <class Real>
constexpr bool softens() {
  return SolveLimits<Real>::narrow && !kIsDual<Real>;
}
/// A part of the velocities that a contact meets.
template <class Real>
BACKDRIVE_INLINE Real part_of_velocities(double part, const Vec3<Real>& start, const Vec3<Real>& smooth) {
  return constant<Real>(part) * square_root(dot(start, start) + dot(smooth, smooth));
}
template <class Real>
BACKDRIVE_INLINE Real least_slip(const Vec3<Real>& start, const Vec3<Real>& smooth) {
  return part_of_velocities(SolveLimits<Real>::least_slip, start, smooth);
}
/// In float32, where slips cannot be told by impulses (far from a solution) and differences of velocities know them to
/// some 1e-7 of these: stiction velocities are at least a small part of the velocities. Against the world, where the
/// last step is one more of Newton's, it ends without.
template <class Real>
BACKDRIVE_INLINE void smooth(const ContactState<Real>& s, const MaskOf<Real>& lanes, PairLaw<Real>& law) {
  Real &creep = law.material.creep, &turning = law.turning.creep;
  creep = select(lanes, maximum(creep, least_slip(s.start.lin, s.smooth.lin)), creep);
  turning = select(lanes, maximum(turning, least_slip(s.start.ang, s.smooth.ang)), turning);
}

/// In float32, K_t of a contact that sticks is no more than what the bound of friction makes of a small part of the
/// velocities: some thousand times the mass that it stops. What is squeezed by another's weight is at rest, and its own
/// mass says so. What K_t is beyond that changes no impulse that the balance of the bodies tells, as slips come from
/// these, but would leave nothing of the inertia of a light body in the sum.
/// How contacts of one body share what they hold against each other is told by their K_t alone, though: each step makes
/// good only that part of what is wrong with it that is left of their 1/(Σ 1/K_t). See Balance::moved.
template <class Real>
BACKDRIVE_INLINE void soften(const TouchingPair<Real>& pair, const ContactState<Real>& s,
                             const ContactForce<Real>& force, ContactBlock<Real>& block) {
  if constexpr (softens<Real>()) {
    const Real slip = least_slip(s.start.lin, s.smooth.lin) + no_impulse<Real>();
    const Real most = pair.law.dt * force.bound * pair.law.material.friction / slip;
    block.tangential = minimum(block.tangential, minimum(most, pair.sticking));
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
    s.residual = only(active, of_side(side, c.impulse) - s.wrench);
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

/// Which lanes a solve goes on in, and in which of them slips come from impulses.
template <class Real>
struct SolveLanes {
  const MaskOf<Real>&active, &bold;
  /// The step is hard to solve in some lane, where friction may be smooth() or have bounds that are held. Not a
  /// parameter of templates: compilers fuse products and sums in each instance in another way, and the bits of worlds
  /// would depend on those beside them.
  bool hard;
};

/// evaluate() of one contact.
template <bool Start, class Space, class Real>
BACKDRIVE_INLINE void evaluate_contact(const Space& ws, const TouchingPair<Real>& pair, Contact<Real>& c,
                                       const SolveLanes<Real>& lanes, Balance<Real>& sum, PairChange<Real>& change) {
  const auto &active = lanes.active, &bold = lanes.bold;
  Spatial<Real> e;
  if constexpr (Start) {
    e = c.state.start - c.state.smooth;
  } else {
    e = difference(pair, c, &ContactSide<Real>::twist);
  }
  const bool bounds_held = !Start && ws.contact.any_held;
  const bool held = bounds_held && any(ws.contact.held && value_of(c.bound) > value_of(constant<Real>(0)));
  if (!held && stays_apart(pair.law, c.state, e)) {
    if (c.still && left_out(c)) return;
    c.block = no_block(c.state.normal);
    c.wrench = c.impulse = zero6<Real>();
    balance_sides<Start>(pair, c, active, sum, change);
    return;
  }
  const PairLaw<Real>* law = &pair.law;
  [[maybe_unused]] PairLaw<Real> smoother;
  if constexpr (softens<Real>() && !Start) {
    if (lanes.hard) {
      smoother = pair.law;
      smooth(c.state, !bold && ws.contact.shared, smoother);
      law = &smoother;
    }
  }
  ContactForce<Real> force = contact_force(*law, c.state, e);
  if (bounds_held) hold_bound(c.state.normal, ws.contact.held, c.bound, force);
  [[maybe_unused]] Vec3<Real> gap = zero3<Real>();
  if (!Start && any(bold)) {
    const Spatial<Real> p = pair.moves[0] ? c.side[0].wrench : zero6<Real>() - c.side[1].wrench;
    gap = slip_from_impulse(*law, c.state.normal, p.lin, bold, kSticks, force);
  }
  c.block = block_of(*law, c.state.normal, force);
  soften(pair, c.state, force, c.block);
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
  const SolveLanes<Real> lanes{active, bold, !Start && (ws.contact.any_held || any(!bold && ws.contact.shared))};
  Balance<Real> sum{};
  for (int k = 0; k < ws.contact.touching_count; ++k) {
    const TouchingPair<Real>& pair = ws.contact.touching[k];
    PairChange<Real> change(ws, pair);
    for (int c = pair.first; c < pair.first + pair.count; ++c) {
      evaluate_contact<Start>(ws, pair, ws.contact.contacts[c], lanes, sum, change);
    }
    if constexpr (softens<Real>() && !Start) sum.moved += change.square();
  }
  return sum;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
