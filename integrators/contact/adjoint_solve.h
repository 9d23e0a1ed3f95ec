#pragma once
// (A4) of docs/contact.md, the system of a step's adjoint, with the matrix of its solution, transposed:
//
//   (M̃ + Σ Jᵀ K J + Σ Jᵀ C J)ᵀ w = x̄,    C = −K_n D nᵀ: what friction owes to the normal force
//
// All but C is what solve.h solves for, P. So w is corrected by P⁻¹ of what is left, which ends where C is small
// against P: contact that is resolved gains a factor 30 each time. Where it gains on P (Painlevé's paradox, a core that
// is reached between several bodies), corrections would grow with each; there they are those of BiCGSTAB (van der
// Vorst, SIAM J. Sci. Stat. Comput. 13, 1992), with P as the preconditioner.
#include "integrators/contact/solve.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Space>
BACKDRIVE_INLINE ContactBar<typename Space::Real>& bar_of(const Space& ws, const Contact<typename Space::Real>& c) {
  return ws.contact.bars[&c - ws.contact.contacts];
}

/// (K + C)ᵀ J x, of w or of a step of it.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> held_back(const TouchingPair<Real>& pair, const Contact<Real>& c,
                                         Spatial<Real> ContactSide<Real>::*x = &ContactSide<Real>::twist) {
  const Spatial<Real> w = difference(pair, c, x);
  return block_times(c.block, w) + coupling_transposed_times(c.block, w);
}

/// Of the force parts of a contact's wrenches what acts on the first body, and on the second the other way.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> opposed(const TouchingPair<Real>& pair, const Contact<Real>& c,
                                    Spatial<Real> ContactSide<Real>::*wrench = &ContactSide<Real>::wrench) {
  const Vec3<Real> force = difference(pair, c, wrench).lin;
  return pair.shared() ? force * constant<Real>(0.5) : force;
}

/// What a contact's equation says with the part E of K_t that its block has: E (K + C)ᵀ J w = E λ, the same λ for any
/// E, whose tangential part it leaves E times. (M̃ + Jᵀ E K J) w = x̄ − (1 − E) Jᵀ λ is then solved for the next λ, by
/// which what is wrong with it falls to some m/(m + E K_t) of that: the method of multipliers. Of two bodies λ is what
/// their wrenches have opposed(). Returns it of a side: of its wrench, or what a step adds to that.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> eased(const TouchingPair<Real>& pair, const Contact<Real>& c, int side,
                                     Spatial<Real> ContactSide<Real>::*wrench) {
  const Spatial<Real>& own = c.side[side].*wrench;
  if constexpr (!softens<Real>()) return own;
  const Vec3<Real> less = tangential(c.block.axis, opposed(pair, c, wrench)) * (constant<Real>(1) - pair.eased);
  return {own.ang, side == 0 ? own.lin - less : own.lin + less};
}

/// What is left of the whole system at w, into residual, where `active`; and how large that is.
template <class Space>
BACKDRIVE_CALLED Balance<typename Space::Real> adjoint_balance(Space& ws, const MaskOf<typename Space::Real>& active) {
  using Real = typename Space::Real;
  Balance<Real> sum{};
  each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int) {
    if (left_out(c)) return;
    const Spatial<Real> back = held_back(pair, c);
    for (int side = 0; side < 2; ++side) {
      if (!pair.moves[side]) continue;
      ContactSide<Real>& s = c.side[side];
      s.residual = only(active, zero6<Real>() - eased(pair, c, side, &ContactSide<Real>::wrench) - of_side(side, back));
      for (int p = 0; p < sum.parts; ++p) {
        sum.residual[p] += square_of_part(s.residual, p);
        sum.impulse[p] += square_of_part(s.wrench, p) + square_of_part(back, p);
        const auto noise = noise_of_part(c.block, pair.law.resists_turns, p, [&](auto of) { return of(s.twist); });
        sum.noise[p] += noise * noise;
      }
    }
  });
  return sum;
}

/// The step of w that P makes of the residuals, which it uses up.
template <class Space, class Solver>
BACKDRIVE_CALLED void find_adjoint_step(Space& ws, const Solver& solver) {
  load_residuals(ws);
  solver.solve_again();
  finish_solve(ws, solver);
}

/// Into residual: what that step takes of it.
template <class Space>
BACKDRIVE_INLINE void apply_to_step(Space& ws) {
  using Real = typename Space::Real;
  each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int) {
    if (left_out(c)) return;
    const Spatial<Real> back = held_back(pair, c, &ContactSide<Real>::step);
    for (int side = 0; side < 2; ++side) {
      if (!pair.moves[side]) continue;
      c.side[side].residual = eased(pair, c, side, &ContactSide<Real>::step_wrench) + of_side(side, back);
    }
  });
}

/// Calls visit(residual, own) for the sides that take part.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_krylov_side(Space& ws, const Visit& visit) {
  using Real = typename Space::Real;
  each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int number) {
    for (int side = 0; side < 2; ++side) {
      if (pair.moves[side] && !left_out(c)) visit(c.side[side].residual, ws.contact.krylov[number].side[side]);
    }
  });
}

/// BiCGSTAB in the `active` lanes, from the w that is there. Takes away those that settle.
template <class Space, class Solver>
BACKDRIVE_CALLED void solve_adjoint_by_krylov(Space& ws, const Solver& solver, MaskOf<typename Space::Real>& active) {
  using Real = typename Space::Real;
  using Value = ValueOf<Real>;
  using Wrench = Spatial<Real>;
  using Own = KrylovSide<Real>;
  const Value zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
  const auto quotient = [&](const Value& a, const Value& b) {
    const auto some = active && b * b > zero;
    return select(some, a / select(some, b, one), zero);
  };
  const Wrench nothing = zero6<Real>();
  each_krylov_side(ws, [&](Wrench&, Own& own) { own = {nothing, nothing, nothing, nothing}; });
  Value rho = one, alpha = one, omega = one;
  auto anew = active;
  for (int k = 0; k < SolveLimits<Real>::adjoint_steps; ++k) {
    active = active && !adjoint_balance(ws, active).settled(SolveLimits<Real>::adjoint_tolerance);
    if (!any(active)) return;
    Value along = zero, rest = zero, shadow = zero;
    each_krylov_side(ws, [&](Wrench& residual, Own& own) {
      along += dot(own.shadow, residual);
      rest += dot(residual, residual);
      shadow += dot(own.shadow, own.shadow);
    });
    // Where what is left has nothing of its shadow any more, it begins with that.
    anew = anew || !(along * along > rest * shadow * value_of(constant<Real>(1e-12)));
    const Value turn = select(anew, zero, quotient(along, rho) * quotient(alpha, omega));
    rho = select(anew, rest, along);
    each_krylov_side(ws, [&](Wrench& residual, Own& own) {
      own.shadow = choose(anew, residual, own.shadow);
      own.rest = residual;
      own.search = residual + only(!anew, own.search - own.image * omega) * turn;
      residual = own.search;
    });
    anew = one < zero;
    find_adjoint_step(ws, solver);
    apply_to_step(ws);
    Value against = zero;
    each_krylov_side(ws, [&](Wrench& residual, Own& own) {
      own.image = residual;
      against += dot(own.shadow, residual);
    });
    alpha = quotient(rho, against);
    advance(ws, alpha);
    each_krylov_side(ws, [&](Wrench& residual, Own& own) {
      own.rest -= own.image * alpha;
      residual = own.rest;
    });
    find_adjoint_step(ws, solver);
    apply_to_step(ws);
    Value common = zero, square = zero;
    each_krylov_side(ws, [&](Wrench& residual, Own& own) {
      common += dot(residual, own.rest);
      square += dot(residual, residual);
    });
    omega = quotient(common, square);
    advance(ws, omega);
  }
}

/// From link[].w, P's solution for x̄ and the loads, to the whole system's at the contacts; leaves as loads what makes P
/// give that. In worlds where none is found they are no numbers: no gradient is better than one that is wrong.
template <class Space, class Solver>
BACKDRIVE_CALLED void refine_adjoint(Space& ws, const Solver& solver) {
  using Real = typename Space::Real;
  using Limits = SolveLimits<Real>;
  const auto zero = value_of(constant<Real>(0)), one = value_of(constant<Real>(1));
  // side.wrench makes up M̃ w − x̄.
  const auto begun = [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side)
      __attribute__((always_inline)) {
    const Spatial<Real> twist = twist_at(ws.contact.link[pair.link(side)].w, pair.arm(c, side));
    return Begun<Real>{twist, zero6<Real>() - block_times(c.block, twist) * pair.theta[side]};
  };
  const auto begin = [&](const MaskOf<Real>& lanes) {
    each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
      const Begun<Real> from = begun(pair, c, side);
      c.side[side].twist = choose(lanes, from.twist, c.side[side].twist);
      c.side[side].wrench = choose(lanes, from.wrench, c.side[side].wrench);
    });
  };
  begin(zero < one);
  auto active = zero < one, slow = one < zero;
  ValueOf<Real> last = zero;
  for (int k = 0; k < Limits::adjoint_steps; ++k) {
    const Balance<Real> balance = adjoint_balance(ws, active);
    active = active && !balance.settled(Limits::adjoint_tolerance);
    if constexpr (!kIsDual<Real>) {
      const auto stalls = active && !(balance.residual[0] < last * value_of(constant<Real>(0.25)));
      if (k > Limits::adjoint_patience) {
        slow = slow || stalls;
        active = active && !stalls;
      }
      last = balance.residual[0];
    }
    if (!any(active)) break;
    each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
      c.side[side].residual = only(active, c.side[side].residual);
    });
    find_adjoint_step(ws, solver);
    advance(ws, one);
  }
  if constexpr (kIsDual<Real>) {
    if (any_shared(ws)) forget_derivatives(ws, solver, begun);
    settle_derivatives(ws, solver, [&] { return adjoint_balance(ws, true).settled(Limits::adjoint_tolerance, 1); });
  } else if (any(slow)) {
    begin(slow);
    solve_adjoint_by_krylov(ws, solver, slow);
    slow = slow && !adjoint_balance(ws, slow).settled(Limits::trusted);
  }
  const Real none = select(slow, constant<Real>(NAN), constant<Real>(0));
  load_wrenches(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int side) {
    const Spatial<Real> held = block_times(c.block, c.side[side].twist) * pair.theta[side];
    Spatial<Real> load = held + of_side(side, bar_of(ws, c).change - held_back(pair, c));
    // −λ, where K J w would magnify the rounding of w.
    if constexpr (softens<Real>()) load = held + of_side(side, bar_of(ws, c).change) + c.side[side].wrench;
    return Spatial<Real>{{load.ang.x + none, load.ang.y, load.ang.z}, load.lin};
  });
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
