#pragma once
// A step with contact: (C1)-(C7) of docs/contact.md on loose bodies, with M̃ = M + Gᵀ A G. docs/semi_implicit.md, (14).
//
//   kick (3)     v_s        contact/solve.h, and its last step     Δv
//   free flight (5)    turned and moved on by v_d = v_s + ½ Δv; the momentum that is carried is that of v⁺ = v_s + Δv
#include "integrators/semi_implicit/contact_space.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// The loads of the bodies as right-hand side of a solve.
template <class Space>
BACKDRIVE_INLINE void take_loads(Space& s) {
  for (int i = 0; i < s.system.body_count; ++i) {
    const auto& touch = s.contact.link[i];
    s.ws.body[i].u = touch.touched ? touch.load : zero6<typename Space::Real>();
  }
}

/// Factors of M̃ + Σ θ Jᵀ K J, from the blocks of the bodies. All bodies take part, touched or not: a world's bits must
/// not depend on what those beside it touch.
template <class Space>
BACKDRIVE_CALLED void factor_with_blocks(Space& s) {
  using Real = typename Space::Real;
  const auto none = contact::zero_block<Real>();
  const auto& factors = s.with_blocks;
  for (int i = 0; i < s.system.body_count; ++i) {
    const auto& touch = s.contact.link[i];
    factor_six(s.ws.body[i].inertia, s.system.bodies[i].mass, touch.touched ? touch.block : none, factors.body[i]);
  }
  assemble(s.system, s.ws, MassesWithBlocks<Real>{factors.body}, factors.rows);
  factor(s.system, s.ws, factors.rows);
}

/// A solve with them: right-hand side and result in body[].u, rates in joint[].rate. `anew`: the first with these
/// factors; f of couplings into coupled[].*f.
template <class Space>
BACKDRIVE_CALLED void solve_with_blocks(Space& s, bool anew, CoupledPush<typename Space::Real> f) {
  const MassesWithBlocks<typename Space::Real> masses{s.with_blocks.body};
  if (!is_coupled(s.system)) return solve(s.system, s.ws, masses, s.with_blocks.rows);
  solve_coupled(s.system, s.ws, masses, s.with_blocks.rows, {s.response, f, anew, false});
}

/// contact/solve.h's linear solves.
template <class Space>
struct BodySolver {
  Space& s;

  BACKDRIVE_HD void factor_and_solve() const {
    factor_with_blocks(s);
    solve(true);
  }
  BACKDRIVE_HD void solve_again() const { solve(false); }

 private:
  BACKDRIVE_CALLED void solve(bool anew) const {
    take_loads(s);
    solve_with_blocks(s, anew, &CoupledStep<typename Space::Real>::trial);
    for (int i = 0; i < s.system.body_count; ++i) {
      if (s.contact.link[i].touched) s.contact.link[i].change = s.ws.body[i].u;
    }
  }
};

/// What an adjoint wants to know of a solve: the rates by row.
template <class Space, class RowsOf>
BACKDRIVE_INLINE void keep_rates(Space& s, const RowsOf& rows_of) {
  if constexpr (Space::adjoint) {
    for (int j = 0; j < s.system.joint_count; ++j) {
      auto& to = rows_of(s.rows[j]);
      for (int row = 0; row < kRows; ++row) to[row] = s.ws.joint[j].rate[row];
    }
  }
}

/// Moves v_s by what (C12) gives the trees; `sign`: 1, or −1 to take it away.
template <class Space>
BACKDRIVE_CALLED void add_rises(Space& s, const typename Space::Real& sign) {
  for (int i = 0; i < s.system.body_count; ++i) {
    if (s.loose[i] >= 0) s.ws.body[i].next.lin += s.contact.supports[s.loose[i]].rise * sign;
  }
}

/// (C1)-(C7) after the kick: Δv into body[].u. False: nothing is in reach of anything, and Δv is zero.
template <class Space>
BACKDRIVE_CALLED bool contact_kick(Space& s) {
  using Real = typename Space::Real;
  find_alone(s);
  for (int i = 0; i < s.system.body_count; ++i) {
    const BodyScratch<Real>& body = s.ws.body[i];
    Spatial<Real>& smooth = s.contact.link[i].smooth;
    smooth = body.next;
    s.start[i] = body.velocity;
    if (s.alone[i]) {
      const LateSpin<Real> late(s, i);
      smooth.ang -= late.change;
      s.start[i].ang += late.change;
    }
    contact::place_balls(s, i, pose_of(s, i), body.velocity);
    contact::widen_balls(s, i, smooth - body.velocity);
  }
  contact::find_contacts(s, [] {});
  if (contact::begins_supported(s)) {
    find_loose(s);
    contact::support(s);
    add_rises(s, constant<Real>(1));
  }
  if (!contact::solve_contacts(s, BodySolver<Space>{s})) {
    for (int i = 0; i < s.system.body_count; ++i) s.ws.body[i].u = zero6<Real>();
    return false;
  }
  contact::load_last_step(s);
  factor_with_blocks(s);
  take_loads(s);
  solve_with_blocks(s, true, &CoupledStep<Real>::kick);
  if constexpr (Space::adjoint) {
    for (int i = 0; i < s.system.body_count; ++i) s.contact.link[i].kick = s.ws.body[i].u;
    keep_rates(
        s, [](auto& rows) -> auto& { return rows.kick; });
  }
  return true;
}

/// The free flight of a body with contact: v_s in `next`, Δv in `u`.
template <class Real>
struct TouchFlight {
  Spatial<Real> moving, carried;  ///< v_d and v⁺
  FreeFlight<Real> flight;        ///< with v_d
  Spin<Real> spin;                ///< of v⁺

  BACKDRIVE_INLINE TouchFlight(const FlightStart<Real>& start, const BodyScratch<Real>& s, const Spatial<Real>& kick)
      : moving(s.next + kick * constant<Real>(0.5)),
        carried(s.next + kick),
        flight(flight_of(start, moving.ang)),
        spin(spin_after(start.body, flight.turn.angle, transposed_times(start.axes, carried.ang))) {}
};

/// One step with contact, as step(). What moved the bodies is in s.reported, of the lanes that are not halted.
template <class Space>
BACKDRIVE_HD void step_with_contact(Space& s, const BodyState<typename Space::Real>* state,
                                    const StepInputs<typename Space::Real>& in, BodyState<typename Space::Real>* next,
                                    typename Space::Real& halted) {
  using Real = typename Space::Real;
  kick(s.system, state, in, s.ws);
  contact_kick(s);
  for (int i = 0; i < s.system.body_count; ++i) {
    BodyScratch<Real>& b = s.ws.body[i];
    const TouchFlight<Real> d(flight_start(s.system, state, s.ws, i), b, b.u);
    b.after = {d.flight.rotation, b.pose.centre + d.moving.lin * s.dt - d.flight.lever,
               velocity_after(d.flight, d.spin, d.carried.lin)};
    s.reported[i] = velocity_after<Real>(d.flight, d.flight, d.moving.lin);
  }
  accept(s.system, state, s.ws, next, halted);
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
