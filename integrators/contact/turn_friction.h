#pragma once
// Friction of one contact against turns: torsion about the normal, rolling about tangents; and the adjoint.
// docs/contact.md, section 2, (T1)-(T4), and section 3, (L7)-(L9).
//
// The pattern is that of sliding (contact_force.h) with the relative angular velocity in place of that of the point: a
// block K = K_n n nᵀ + K_t (1 − n nᵀ), here on the angular parts of the bodies' inertias, and an angular impulse for
// each predictor, then the moment with the second one's e. |moment about n| ≤ μ_t f_n and |the rest| ≤ μ_r f_n.
// Coefficients are lengths. They multiply drags and moments from outside, so that derivatives by them are right at 0.
#include "integrators/contact/contact_force.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// ε of turns is that of slips over this length, m.
constexpr double kTurnLength = 0.01;

/// g of turns goes up to 1.05: more than the corner needs would show as slip, since the predictor takes from what rolls
/// more than the final moment does, and lets sliding friction make up for it.
constexpr double kTurnRise = 0.025;

/// What two shapes in touch have in common.
template <class Real>
struct TurnMaterial {
  Real torsional, rolling;  ///< μ_t, μ_r, m
  Real creep;               ///< ε_ω, rad/s
};

/// Relative angular velocities, first body's minus second's, with q̇ and with q̇ + Δt q̈ of everything but contact.
template <class Real>
struct TurnRates {
  Vec3<Real> start, smooth;
};

/// Drags of a predictor over μ_t and μ_r.
template <class Real>
struct TurnDrag {
  Real torsional, rolling;
};

/// n·ω and T ω.
template <class Real>
struct TurnParts {
  Real along;
  Vec3<Real> across;

  BACKDRIVE_INLINE TurnParts(const Vec3<Real>& n, const Vec3<Real>& omega)
      : along(dot(n, omega)), across(tangential(n, omega)) {}
  BACKDRIVE_INLINE TurnParts() : along(constant<Real>(0)), across(zero3<Real>()) {}
  /// Adjoint, of the cotangents that this holds.
  BACKDRIVE_INLINE void adj(const Vec3<Real>& n, const Vec3<Real>& omega, Vec3<Real>& n_bar,
                            Vec3<Real>& omega_bar) const {
    adj_tangential(n, omega, across, n_bar, omega_bar);
    n_bar += omega * along;
    omega_bar += n * along;
  }
};

/// 3/2 b − ½ a, the rate at the end of the step but for what the predictors add.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> late_turn(const TurnRates<Real>& r) {
  return r.smooth * constant<Real>(1.5) - r.start * constant<Real>(0.5);
}
template <class Real>
BACKDRIVE_INLINE void adj_late_turn(const Vec3<Real>& late_bar, TurnRates<Real>& bar) {
  bar.smooth += late_bar * constant<Real>(1.5);
  bar.start -= late_bar * constant<Real>(0.5);
}

/// (T1): N_r/√(|½ (a + b)|² + ε_ω²), part by part; centred_force: N_r.
template <class Real>
BACKDRIVE_INLINE TurnDrag<Real> first_turn_drag(const TurnMaterial<Real>& m, const Vec3<Real>& n,
                                                const TurnRates<Real>& r, const Real& centred_force) {
  const TurnParts<Real> mid(n, (r.start + r.smooth) * constant<Real>(0.5));
  return {centred_force / smoothed_speed(mid.along, m.creep), centred_force / smoothed_speed(mid.across, m.creep)};
}
/// Its adjoint (L7).
template <class Real>
BACKDRIVE_INLINE void adj_first_turn_drag(const TurnMaterial<Real>& m, const Vec3<Real>& n, const TurnRates<Real>& r,
                                          const Real& centred_force, const TurnDrag<Real>& bar, Vec3<Real>& n_bar,
                                          TurnRates<Real>& r_bar, Real& centred_force_bar, TurnMaterial<Real>& m_bar) {
  const Real half = constant<Real>(0.5);
  const Vec3<Real> omega = (r.start + r.smooth) * half;
  const TurnParts<Real> mid(n, omega);
  TurnParts<Real> mid_bar;
  const auto part = [&](const auto& u, const Real& drag_bar, auto& u_bar) __attribute__((always_inline)) {
    const Real inverse = constant<Real>(1) / smoothed_speed(u, m.creep);
    const Real share = -(drag_bar * centred_force * inverse * inverse * inverse);
    centred_force_bar += drag_bar * inverse;
    m_bar.creep += share * m.creep;
    u_bar = u * share;
  };
  part(mid.along, bar.torsional, mid_bar.along);
  part(mid.across, bar.rolling, mid_bar.across);
  Vec3<Real> omega_bar = zero3<Real>();
  mid_bar.adj(n, omega, n_bar, omega_bar);
  r_bar.start += omega_bar * half;
  r_bar.smooth += omega_bar * half;
}

/// (T2): angular impulse −K ω₀ and K; late: ω₀.
template <class Real>
BACKDRIVE_INLINE Predictor<Real> turn_predictor(const TurnMaterial<Real>& m, const Vec3<Real>& n,
                                                const Vec3<Real>& late, const TurnDrag<Real>& drag, const Real& dt) {
  const Real normal = dt * m.torsional * drag.torsional, across = dt * m.rolling * drag.rolling;
  return {-(late * across + n * ((normal - across) * dot(n, late))), normal, across};
}
/// Its adjoint (L8).
template <class Real>
BACKDRIVE_INLINE void adj_turn_predictor(const TurnMaterial<Real>& m, const Vec3<Real>& n, const Vec3<Real>& late,
                                         const TurnDrag<Real>& drag, const Real& dt, const Predictor<Real>& bar,
                                         Vec3<Real>& n_bar, Vec3<Real>& late_bar, TurnDrag<Real>& drag_bar,
                                         TurnMaterial<Real>& m_bar) {
  const Predictor<Real> p = turn_predictor(m, n, late, drag, dt);
  const Real along = dot(n, late), pull = dot(n, bar.impulse), excess = p.normal - p.tangential;
  late_bar -= bar.impulse * p.tangential + n * (excess * pull);
  n_bar -= (bar.impulse * along + late * pull) * excess;
  const Real normal_bar = dt * (bar.normal - along * pull);
  const Real across_bar = dt * (bar.tangential - (dot(late, bar.impulse) - along * pull));
  m_bar.torsional += drag.torsional * normal_bar;
  m_bar.rolling += drag.rolling * across_bar;
  drag_bar.torsional += m.torsional * normal_bar;
  drag_bar.rolling += m.rolling * across_bar;
}

/// (T3): f_n g/ν₁, part by part; e: what the first predictor changes the rate by, force: its f_n.
template <class Real>
BACKDRIVE_INLINE TurnDrag<Real> second_turn_drag(const TurnMaterial<Real>& m, const Vec3<Real>& n,
                                                 const Vec3<Real>& late, const Vec3<Real>& e, const Real& force) {
  const TurnParts<Real> slip(n, late), change(n, e);
  const Lift<Real, Real> along = lift_of(slip.along, change.along, m.creep, kTurnRise);
  const Lift<Real, Vec3<Real>> across = lift_of(slip.across, change.across, m.creep, kTurnRise);
  return {force * along.value / along.end_speed, force * across.value / across.end_speed};
}
/// Its adjoint (L9).
template <class Real>
BACKDRIVE_INLINE void adj_second_turn_drag(const TurnMaterial<Real>& m, const Vec3<Real>& n, const Vec3<Real>& late,
                                           const Vec3<Real>& e, const Real& force, const TurnDrag<Real>& bar,
                                           Vec3<Real>& n_bar, Vec3<Real>& late_bar, Vec3<Real>& e_bar, Real& force_bar,
                                           TurnMaterial<Real>& m_bar) {
  const TurnParts<Real> slip(n, late), change(n, e);
  TurnParts<Real> slip_bar, change_bar;
  const auto part = [&](const auto& u, const auto& by, const Real& drag_bar, auto& u_bar, auto& by_bar)
      __attribute__((always_inline)) {
    const auto lift = lift_of(u, by, m.creep, kTurnRise);
    const Real scale = lift.value / lift.end_speed, of_bound = drag_bar * force;
    const LiftBar<Real> lift_bar = adj_lift(lift, of_bound, of_bound * scale, kTurnRise);
    force_bar += drag_bar * scale;
    m_bar.creep += (lift_bar.end + lift_bar.change) * m.creep;
    u_bar = lift.end_slip * lift_bar.end;
    by_bar = u_bar + lift.e_slip * lift_bar.change;
  };
  part(slip.along, change.along, bar.torsional, slip_bar.along, change_bar.along);
  part(slip.across, change.across, bar.rolling, slip_bar.across, change_bar.across);
  slip_bar.adj(n, late, n_bar, late_bar);
  change_bar.adj(n, e, n_bar, e_bar);
}

/// (T4): the moment on the first body. e, drag and force (f_n): of the second predictor.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> turn_moment(const TurnMaterial<Real>& m, const Vec3<Real>& n, const Vec3<Real>& late,
                                        const TurnDrag<Real>& drag, const Vec3<Real>& e, const Real& force) {
  const TurnParts<Real> end(n, late + e);
  const Bounded<Real, Real> along = bounded(end.along * drag.torsional, force);
  const Bounded<Real, Vec3<Real>> across = bounded(end.across * drag.rolling, force);
  return -(n * (m.torsional * along.share * along.drag) + across.drag * (m.rolling * across.share));
}
/// Its adjoint (L10).
template <class Real>
BACKDRIVE_INLINE void adj_turn_moment(const TurnMaterial<Real>& m, const Vec3<Real>& n, const Vec3<Real>& late,
                                      const TurnDrag<Real>& drag, const Vec3<Real>& e, const Real& force,
                                      const Vec3<Real>& moment_bar, Vec3<Real>& n_bar, Vec3<Real>& late_bar,
                                      TurnDrag<Real>& drag_bar, Vec3<Real>& e_bar, Real& force_bar,
                                      TurnMaterial<Real>& m_bar) {
  const TurnParts<Real> end(n, late + e);
  TurnParts<Real> end_bar;
  const auto part = [&](const auto& u, const Real& unit_drag, const Real& coefficient, const auto& result_bar,
                        Real& coefficient_bar, Real& unit_drag_bar, auto& u_bar) __attribute__((always_inline)) {
    const auto held = bounded(u * unit_drag, force);
    const auto bar = adj_bounded(held, result_bar);
    coefficient_bar -= held.share * inner(held.drag, result_bar);
    force_bar += coefficient * bar.bound;
    unit_drag_bar += coefficient * inner(bar.drag, u);
    u_bar = bar.drag * (coefficient * unit_drag);
    return held.share * coefficient;
  };
  const Real pull = dot(n, moment_bar);
  const Real share =
      part(end.along, drag.torsional, m.torsional, pull, m_bar.torsional, drag_bar.torsional, end_bar.along);
  // The direction of the moment about n is n itself.
  n_bar -= moment_bar * (share * end.along * drag.torsional);
  part(end.across, drag.rolling, m.rolling, moment_bar, m_bar.rolling, drag_bar.rolling, end_bar.across);
  Vec3<Real> omega_bar = zero3<Real>();
  end_bar.adj(n, late + e, n_bar, omega_bar);
  late_bar += omega_bar;
  e_bar += omega_bar;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
