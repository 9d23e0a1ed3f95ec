#pragma once
// The derivatives of what solve.h solves for, by dual numbers: once its values are those of the solution. There the
// same equations are linear in derivatives, and take steps and inner products of their own: conjugate gradients of the
// values would lead them astray, by more in every step, where several contacts hold one body.
#include "integrators/contact/solve.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class T>
BACKDRIVE_INLINE Spatial<Dual<T>> only_values(const Spatial<Dual<T>>& x) {
  return {{x.ang.x.value, x.ang.y.value, x.ang.z.value}, {x.lin.x.value, x.lin.y.value, x.lin.z.value}};
}
template <class T>
BACKDRIVE_INLINE Spatial<Dual<T>> only_derivatives(const Spatial<Dual<T>>& x) {
  const auto of = [](const Dual<T>& number) { return Dual<T>(T(0), number.dot); };
  return {{of(x.ang.x), of(x.ang.y), of(x.ang.z)}, {of(x.lin.x), of(x.lin.y), of(x.lin.z)}};
}

template <class T>
BACKDRIVE_INLINE ContactBlock<Dual<T>> only_values(const ContactBlock<Dual<T>>& b) {
  const auto vector = [](const Vec3<Dual<T>>& v) { return Vec3<Dual<T>>{v.x.value, v.y.value, v.z.value}; };
  return {vector(b.axis),  b.normal.value,  b.tangential.value, vector(b.slide),
          b.torsion.value, b.rolling.value, vector(b.roll),     only_values(b.drag)};
}

template <class Space>
BACKDRIVE_INLINE bool any_shared(const Space& ws) {
  for (int k = 0; k < ws.contact.touching_count; ++k) {
    if (ws.contact.touching[k].shared()) return true;
  }
  return false;
}

/// Twists and wrenches as begun(pair, contact, side) says, and in addition what the values have come to: of wrenches
/// without derivatives, and of twists with those of M̃ x = Σ Jᵀ wrench, whose M̃ and J have theirs.
template <class Space, class Solver, class Begun>
BACKDRIVE_CALLED void forget_derivatives(Space& ws, const Solver& solver, const Begun& begun) {
  using Real = typename Space::Real;
  each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
    ContactSide<Real>& s = c.side[side];
    s.wrench = only_values(s.wrench - begun(pair, c, side).wrench);
  });
  begin_blocks(ws);
  load_wrenches(ws, [](const auto&, const Contact<Real>& c, int side) { return c.side[side].wrench; });
  solver.factor_and_solve();
  each_side(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int side) {
    ContactSide<Real>& s = c.side[side];
    const auto from = begun(pair, c, side);
    const Spatial<Real> added = twist_at(ws.contact.link[pair.link(side)].change, pair.arm(c, side));
    s.twist = only_values(s.twist) + only_derivatives(from.twist + added);
    s.wrench += from.wrench;
  });
}

/// Steps until find() has said twice that what is left of the equations, which it puts into residual, is little.
/// Factors with blocks are left.
template <class Space, class Solver, class Find>
BACKDRIVE_CALLED void settle_derivatives(Space& ws, const Solver& solver, const Find& find) {
  using Real = typename Space::Real;
  bool before = false;
  for (int k = 0; k < SolveLimits<Real>::derivative_steps; ++k) {
    const bool settled = find();
    if (settled && before) return;
    before = settled;
    each_side(ws, [&](const auto&, Contact<Real>& c, int side) {
      c.side[side].residual = only_derivatives(c.side[side].residual);
    });
    if (k == 0) load_blocks(ws);
    load_residuals(ws);
    if (k == 0) {
      solver.factor_and_solve();
    } else {
      solver.solve_again();
    }
    finish_solve<Part::derivatives>(ws, solver);
    advance(ws, value_of(constant<Real>(1)));
  }
}

/// What a solution begins with: a twist and a wrench of a side.
template <class Real>
struct Begun {
  Spatial<Real> twist, wrench;
};

/// renew_twists() and a step of Newton's from there, twice. Where friction is stiff the first steps are a thousand
/// times as long as what they end in, and twists then off by 1e-12 m/s: 1e-7 of the slip, and of the slope, of what
/// sticks.
template <class Space, class Solver>
BACKDRIVE_CALLED void make_consistent(Space& ws, const Solver& solver) {
  using Real = typename Space::Real;
  for (int k = 0; k < 2; ++k) {
    renew_twists(ws, solver, true);
    evaluate<false>(ws, true, false);
    load_blocks(ws);
    load_residuals(ws);
    solver.factor_and_solve();
    finish_solve(ws, solver);
    advance(ws, value_of(constant<Real>(1)));
  }
}

/// (C6)'s, after its values.
template <class Space, class Solver>
BACKDRIVE_HD void solve_derivatives(Space& ws, const Solver& solver) {
  using Real = typename Space::Real;
  make_consistent(ws, solver);
  if (any_shared(ws)) {
    forget_derivatives(ws, solver, [](const auto&, const auto&, int) {
      return Begun<Real>{zero6<Real>(), zero6<Real>()};
    });
  }
  settle_derivatives(ws, solver,
                     [&] { return evaluate<false>(ws, true, false).settled(SolveLimits<Real>::tolerance, 1); });
  each_contact(ws, [](const auto&, Contact<Real>& c, int) { c.block = only_values(c.block); });
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
