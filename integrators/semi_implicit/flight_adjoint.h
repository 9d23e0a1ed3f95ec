#pragma once
// Adjoint of a body's free flight: docs/semi_implicit.md, (7).
#include "integrators/semi_implicit/step.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Cotangents of R⁺, in world axes, and of φ.
template <class Real>
struct TurnBar {
  Vec3<Real> axes, angle;
};

/// Adjoint of spin_after: the cotangent of the spin's angular velocity in world axes to that of the one at the start,
/// in axes of R; adds to that of the turn.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> adj_spin_after(const BodyConstants<Real>& body, const FreeFlight<Real>& d,
                                           const Spin<Real>& spin, const Vec3<Real>& omega_bar, TurnBar<Real>& turn_bar,
                                           BodyGradient<Real>* gradient) {
  turn_bar.axes += cross(d.axes * spin.omega, omega_bar);
  const Vec3<Real> momentum_bar = body.inverse_inertia * transposed_times(d.axes, omega_bar);
  turn_bar.angle -= cross(spin.momentum, momentum_bar);
  const Vec3<Real> start_bar = turned_by(d.turn.angle, momentum_bar);  // of J Ω
  if (gradient) {
    add_bilinear(gradient->inertia, -momentum_bar, spin.omega);
    add_bilinear(gradient->inertia, start_bar, spin.start);
  }
  return body.inertia * start_bar;
}
/// Adjoint of the turn: its cotangents to that of the angular velocity that turns, in axes of R.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> adj_turn(const FlightStart<Real>& start, const FreeFlight<Real>& d,
                                     const TurnBar<Real>& turn_bar, BodyGradient<Real>* gradient) {
  const Vec3<Real> phi_bar =
      left_jacobian_times(d.turn.angle, transposed_times(d.axes, turn_bar.axes) + turn_bar.angle);
  return adj_turn_of(start.body, d.turn, start.dt, phi_bar, gradient ? &gradient->inertia : nullptr);
}

/// Cotangents, in world axes, of the turn that a flight ends in and of its angular velocity there.
template <class Real>
struct FlightBar {
  Vec3<Real> turn, omega;
};
/// Adjoint of flight_of. Adds to the cotangent of the turn that it starts from and returns that of the angular
/// velocity.
template <class Real>
BACKDRIVE_PART Vec3<Real> adj_flight_of(const FlightStart<Real>& start, const Vec3<Real>& velocity,
                                        const FreeFlight<Real>& d, const FlightBar<Real>& bar,
                                        Vec3<Real>& start_turn_bar, BodyGradient<Real>* gradient) {
  TurnBar<Real> turn_bar{bar.turn, zero3<Real>()};
  const Vec3<Real> carried = adj_spin_after<Real>(start.body, d, d, bar.omega, turn_bar, gradient);
  const Vec3<Real> own = adj_turn(start, d, turn_bar, gradient);
  const Vec3<Real> velocity_bar = start.axes * (own + carried);  // Ω = Rᵀ ω
  start_turn_bar += turn_bar.axes - cross(velocity, velocity_bar);
  return velocity_bar;
}

/// Cotangent of the free flight and of the state that it ends in (7): of v⁺ into body.u, of the pose before into `bar`.
template <class Real>
BACKDRIVE_PART void adj_state_after(const FlightStart<Real>& start, const BodyStateBar<Real>& after,
                                    BodyScratch<Real>& s, BodyBar<Real>& bar, BodyGradient<Real>* gradient) {
  const FreeFlight<Real> d = flight_of(start, s.next.ang);
  // p⁺ = c⁺ − lever, ṗ⁺ = v_c − ω × lever
  const Vec3<Real>& velocity_bar = after.velocity.lin;
  const Vec3<Real> lever_bar = -after.position - cross(velocity_bar, d.axes * d.omega);
  if (gradient) gradient->com += transposed_times(d.axes, lever_bar);
  bar.turn = zero3<Real>();
  const FlightBar<Real> end{after.turn + cross(d.lever, lever_bar), after.velocity.ang - cross(d.lever, velocity_bar)};
  s.u.ang = adj_flight_of(start, s.next.ang, d, end, bar.turn, gradient);
  s.u.lin = after.position * start.dt + velocity_bar;
  bar.centre = after.position;
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
