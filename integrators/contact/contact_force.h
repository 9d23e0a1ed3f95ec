#pragma once
// One contact in one step: what it adds to the linear-implicit predictor, and then its force; their adjoints.
// docs/contact.md, section 2, equations (C2)-(C6), and section 3, (L2)-(L6).
//
// Velocities are of the point in touch, the first body's minus the second's. The step is: smooth motion (b), predictor
// with K = K_n n nᵀ + K_t (1 − n nᵀ) added to the bodies' inertias and the impulse r (its velocity change is e), a
// second one with the drag that the first asks for, then the force with the second's e. The force is n f_n + f_t with
// f_n ≥ 0 and |f_t| ≤ μ f_n, whatever e is.
#include "integrators/contact/force_law.h"
#include "integrators/contact/friction.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// What a contact knows before the predictor.
template <class Real>
struct ContactState {
  Real depth;         ///< d₀
  Vec3<Real> normal;  ///< n, from the second body to the first
  Vec3<Real> start;   ///< a: with q̇
  Vec3<Real> smooth;  ///< b: with q̇ + Δt q̈ of everything but contact
};
template <class Real>
struct Predictor {
  Vec3<Real> impulse;       ///< r
  Real normal, tangential;  ///< K_n, K_t, kg
};

/// (C2)-(C3): the linear model of the normal force, r_n − ½ Δt κ n·e, and of friction, −c (u₀ + T e). The former is
/// exact for the path at the centred velocity ½ (a + b), so that rest stays rest.
template <class Real>
struct LinearModel {
  Real smooth_end;                   ///< d₁₀: depth that the path of b ends at
  Real centred_force, smooth_force;  ///< N_r and N_0
  Real stiffness;                    ///< κ = ½ (κ_r + κ_0)
  Real normal;                       ///< r_n
  Vec3<Real> slip;                   ///< u₀
  Real drag;                         ///< c = μ N_r/√(|u_r|² + ε²)
};
/// And what its adjoint needs beside that.
template <class Real>
struct LinearModelTrace : LinearModel<Real> {
  Real centred_end;                        ///< d_r
  NormalForce<Real> centred, smooth_path;  ///< N_r, κ_r and N_0, κ_0
  Real half_change;                        ///< ½ Δt n·(a − b)
  Vec3<Real> late, mid;                    ///< 3/2 b − ½ a and ½ (a + b), whose tangential parts are u₀ and
  Vec3<Real> mid_slip;                     ///< u_r
  Real mid_speed;                          ///< √(|u_r|² + ε²)
};

/// T x = x − n (n·x) and its adjoint (L2).
template <class Real>
BACKDRIVE_INLINE Vec3<Real> tangential(const Vec3<Real>& n, const Vec3<Real>& x) {
  return x - n * dot(n, x);
}
template <class Real>
BACKDRIVE_INLINE void adj_tangential(const Vec3<Real>& n, const Vec3<Real>& x, const Vec3<Real>& result_bar,
                                     Vec3<Real>& n_bar, Vec3<Real>& x_bar) {
  x_bar += tangential(n, result_bar);
  n_bar -= result_bar * dot(n, x) + x * dot(n, result_bar);
}

template <class Real>
BACKDRIVE_INLINE LinearModelTrace<Real> linear_model(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                                     const Real& dt) {
  const Real half = constant<Real>(0.5), three_halves = constant<Real>(1.5);
  LinearModelTrace<Real> l;
  const Real start_rate = dot(s.normal, s.start), smooth_rate = dot(s.normal, s.smooth);
  l.smooth_end = s.depth - dt * smooth_rate;
  l.centred_end = s.depth - half * dt * (start_rate + smooth_rate);
  l.centred = normal_force(m, s.depth, l.centred_end, dt);
  l.smooth_path = normal_force(m, s.depth, l.smooth_end, dt);
  l.centred_force = l.centred.value;
  l.smooth_force = l.smooth_path.value;
  l.stiffness = half * (l.centred.stiffness + l.smooth_path.stiffness);
  l.half_change = half * dt * (start_rate - smooth_rate);
  l.normal = l.centred.value + l.stiffness * l.half_change;
  l.late = s.smooth * three_halves - s.start * half;
  l.mid = (s.start + s.smooth) * half;
  l.slip = tangential(s.normal, l.late);
  l.mid_slip = tangential(s.normal, l.mid);
  l.mid_speed = smoothed_speed(l.mid_slip, m.creep);
  l.drag = m.friction * l.centred.value / l.mid_speed;
  return l;
}

/// (C4), with friction −drag (u₀ + T e).
template <class Real>
BACKDRIVE_INLINE Predictor<Real> predictor_of(const LinearModel<Real>& l, const ContactState<Real>& s, const Real& drag,
                                              const Real& dt) {
  return {(s.normal * l.normal - l.slip * drag) * dt, constant<Real>(0.5) * dt * dt * l.stiffness, dt * drag};
}

/// Cotangents of the linear model that come from elsewhere.
template <class Real>
struct LinearModelBar {
  Real smooth_end, centred_force, smooth_force, stiffness, normal, drag;
  Vec3<Real> slip;
};
template <class Real>
BACKDRIVE_INLINE LinearModelBar<Real> no_cotangents() {
  const Real o = constant<Real>(0);
  return {o, o, o, o, o, o, {o, o, o}};
}

/// Adjoint of linear_model (L5), (L6): adds to those of the state and of the material.
template <class Real>
BACKDRIVE_INLINE void adj_linear_model(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                       const LinearModelTrace<Real>& l, const Real& dt, LinearModelBar<Real> bar,
                                       ContactState<Real>& s_bar, PairMaterial<Real>& m_bar) {
  const Real half = constant<Real>(0.5), three_halves = constant<Real>(1.5);
  bar.stiffness += l.half_change * bar.normal;
  const Real change_bar = half * dt * l.stiffness * bar.normal;
  bar.centred_force += bar.normal + bar.drag * m.friction / l.mid_speed;
  m_bar.friction += bar.drag * l.centred.value / l.mid_speed;
  const Real speed_bar = -(bar.drag * l.drag / l.mid_speed);
  m_bar.creep += speed_bar * m.creep / l.mid_speed;
  Vec3<Real> late_bar = zero3<Real>(), mid_bar = zero3<Real>();
  adj_tangential(s.normal, l.late, bar.slip, s_bar.normal, late_bar);
  adj_tangential(s.normal, l.mid, l.mid_slip * (speed_bar / l.mid_speed), s_bar.normal, mid_bar);
  Real centred_end_bar = constant<Real>(0), smooth_end_bar = bar.smooth_end;
  adj_normal_force(m, l.centred, s.depth, l.centred_end, dt, bar.centred_force, half * bar.stiffness, s_bar.depth,
                   centred_end_bar, m_bar);
  adj_normal_force(m, l.smooth_path, s.depth, l.smooth_end, dt, bar.smooth_force, half * bar.stiffness, s_bar.depth,
                   smooth_end_bar, m_bar);
  s_bar.depth += centred_end_bar + smooth_end_bar;
  const Real start_rate_bar = change_bar - half * dt * centred_end_bar;
  const Real smooth_rate_bar = -change_bar - half * dt * centred_end_bar - dt * smooth_end_bar;
  s_bar.normal += s.start * start_rate_bar + s.smooth * smooth_rate_bar;
  s_bar.start += mid_bar * half - late_bar * half + s.normal * start_rate_bar;
  s_bar.smooth += mid_bar * half + late_bar * three_halves + s.normal * smooth_rate_bar;
}

/// Adjoint of predictor_of (L3): adds to the cotangents of the linear model, of its drag and of the state.
template <class Real>
BACKDRIVE_INLINE void adj_predictor(const ContactState<Real>& s, const LinearModel<Real>& l, const Real& drag,
                                    const Real& dt, const Predictor<Real>& bar, LinearModelBar<Real>& model,
                                    Real& drag_bar, ContactState<Real>& s_bar) {
  s_bar.normal += bar.impulse * (dt * l.normal);
  model.normal += dt * dot(s.normal, bar.impulse);
  model.slip -= bar.impulse * (dt * drag);
  model.stiffness += constant<Real>(0.5) * dt * dt * bar.normal;
  drag_bar += dt * (bar.tangential - dot(l.slip, bar.impulse));
}

/// Newton steps of (C5): each keeps below the exact force, since the law is convex.
constexpr int kForceSteps = 2;
/// Share of the linear model's force below which the first guess fades out, and the speed to which a predictor must
/// have changed the approach before its effective mass counts.
constexpr double kForceFade = 1e-3, kApproach = 1e-5;

/// The values on the way to the normal force that its adjoint needs.
template <class Real>
struct NormalTrace {
  Real change;              ///< n·e
  Real linear;              ///< f1: the predictor's force
  Real spread;              ///< denominator of F1
  Real guess;               ///< F1
  Real end;                 ///< d₁₁
  Real approach;            ///< p = (n·e)₊
  Real compliance;          ///< Q: effective inverse mass times ½ Δt²
  Real force[kForceSteps];  ///< before each Newton step
  Real depth[kForceSteps];  ///< X
  NormalForce<Real> law[kForceSteps];
  Real last;   ///< after the last
  Real value;  ///< f_n, its positive part
};

/// (C5): f_n by Newton's method on f = N(d₀, d₁(f)), with the effective mass that the predictor shows. e: what the
/// predictor changes the point's velocity by.
template <class Real>
BACKDRIVE_INLINE NormalTrace<Real> find_normal_force(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                                     const LinearModel<Real>& l, const Vec3<Real>& e, const Real& dt) {
  const Real half = constant<Real>(0.5), one = constant<Real>(1), least = no_force<Real>();
  NormalTrace<Real> t;
  t.change = dot(s.normal, e);
  t.linear = positive_part(l.normal - half * dt * l.stiffness * t.change);
  t.spread = t.linear + constant<Real>(kForceFade) * (l.centred_force + l.smooth_force) + least;
  t.guess = t.linear * t.linear / t.spread;
  t.end = l.smooth_end - half * dt * t.change;
  t.approach = positive_part(t.change);
  t.compliance = half * dt * t.approach * t.approach / ((t.approach + constant<Real>(kApproach)) * (t.guess + least));
  Real f = t.guess;
  for (int k = 0; k < kForceSteps; ++k) {
    t.force[k] = f;
    t.depth[k] = t.end - t.compliance * (f - t.linear);
    t.law[k] = normal_force(m, s.depth, t.depth[k], dt);
    f += (t.law[k].value - f) / (one + t.law[k].stiffness * t.compliance);
  }
  t.last = f;
  t.value = positive_part(f);
  return t;
}

/// Adjoint of find_normal_force (L4): f_bar, of f_n, to e, the linear model, the state and the material.
template <class Real>
BACKDRIVE_INLINE void adj_find_normal_force(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                            const LinearModel<Real>& l, const Vec3<Real>& e, const NormalTrace<Real>& t,
                                            const Real& dt, Real f_bar, Vec3<Real>& e_bar, LinearModelBar<Real>& model,
                                            ContactState<Real>& s_bar, PairMaterial<Real>& m_bar) {
  const Real half = constant<Real>(0.5), one = constant<Real>(1), zero = constant<Real>(0), least = no_force<Real>();
  f_bar = select(value_of(t.last) > value_of(zero), f_bar, zero);
  Real end_bar = zero, compliance_bar = zero, linear_bar = zero;
  for (int k = kForceSteps - 1; k >= 0; --k) {
    const Real share = one / (one + t.law[k].stiffness * t.compliance);
    const Real share_bar = f_bar * (t.law[k].value - t.force[k]);
    const Real stiffness_bar = -(share_bar * share * share * t.compliance);
    compliance_bar -= share_bar * share * share * t.law[k].stiffness;
    Real depth_bar = zero;
    adj_normal_force(m, t.law[k], s.depth, t.depth[k], dt, f_bar * share, stiffness_bar, s_bar.depth, depth_bar, m_bar);
    end_bar += depth_bar;
    compliance_bar -= depth_bar * (t.force[k] - t.linear);
    linear_bar += t.compliance * depth_bar;
    f_bar = f_bar * (one - share) - t.compliance * depth_bar;
  }
  const Real guess_bar = f_bar - compliance_bar * t.compliance / (t.guess + least);
  // ∂Q/∂p = ½ Δt (2 p (p + ν) − p²)/((p + ν)² (F1 + least)), ν = kApproach: no division by p.
  const Real sum = t.approach + constant<Real>(kApproach);
  const Real approach_bar = compliance_bar * half * dt * t.approach * (t.approach + constant<Real>(2 * kApproach)) /
                            (sum * sum * (t.guess + least));
  linear_bar += guess_bar * (constant<Real>(2) * t.linear - t.guess) / t.spread;
  const Real faded = -(guess_bar * t.guess / t.spread * constant<Real>(kForceFade));
  model.centred_force += faded;
  model.smooth_force += faded;
  const Real normal_bar = select(value_of(t.linear) > value_of(zero), linear_bar, zero);
  model.normal += normal_bar;
  model.stiffness -= half * dt * t.change * normal_bar;
  model.smooth_end += end_bar;
  const Real change_bar = select(value_of(t.change) > value_of(zero), approach_bar, zero) -
                          half * dt * (l.stiffness * normal_bar + end_bar);
  s_bar.normal += e * change_bar;
  e_bar += s.normal * change_bar;
}

/// g of sliding goes up to 2.
constexpr double kSlideRise = 0.5;

/// (C5a): the drag of the second predictor, c₂ = μ f_n g/ν₁, and what its adjoint needs.
template <class Real>
struct SecondDrag {
  NormalTrace<Real> normal;
  Lift<Real, Vec3<Real>> lift;
  Real value;  ///< c₂
};

/// e: of the first predictor.
template <class Real>
BACKDRIVE_INLINE SecondDrag<Real> second_drag(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                              const LinearModel<Real>& l, const Vec3<Real>& e, const Real& dt) {
  SecondDrag<Real> t;
  t.normal = find_normal_force(m, s, l, e, dt);
  t.lift = lift_of(l.slip, tangential(s.normal, e), m.creep, kSlideRise);
  t.value = m.friction * t.normal.value * t.lift.value / t.lift.end_speed;
  return t;
}

/// Adjoint of second_drag (L4a): drag_bar, of c₂, and normal_bar, of what else has its normal force, to e, the linear
/// model, the state and the material.
template <class Real>
BACKDRIVE_INLINE void adj_second_drag(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                      const LinearModel<Real>& l, const Vec3<Real>& e, const SecondDrag<Real>& t,
                                      const Real& dt, const Real& drag_bar, const Real& normal_bar, Vec3<Real>& e_bar,
                                      LinearModelBar<Real>& model, ContactState<Real>& s_bar,
                                      PairMaterial<Real>& m_bar) {
  const Real scale = t.lift.value / t.lift.end_speed;
  const LiftBar<Real> lift_bar =
      adj_lift(t.lift, drag_bar * m.friction * t.normal.value, drag_bar * t.value, kSlideRise);
  m_bar.friction += drag_bar * t.normal.value * scale;
  m_bar.creep += (lift_bar.end + lift_bar.change) * m.creep;
  const Vec3<Real> slip_bar = t.lift.end_slip * lift_bar.end;
  model.slip += slip_bar;
  adj_tangential(s.normal, e, slip_bar + t.lift.e_slip * lift_bar.change, s_bar.normal, e_bar);
  adj_find_normal_force(m, s, l, e, t.normal, dt, drag_bar * m.friction * scale + normal_bar, e_bar, model, s_bar,
                        m_bar);
}

/// The values on the way to the force that its adjoint needs.
template <class Real>
struct ForceTrace {
  NormalTrace<Real> normal;
  Vec3<Real> end_slip;                   ///< u₂ = u₀ + T e
  Bounded<Real, Vec3<Real>> tangential;  ///< c₂ u₂ within μ f_n
  Vec3<Real> result;
};

/// (C5)-(C6): the force. e and drag: of the second predictor.
template <class Real>
BACKDRIVE_INLINE ForceTrace<Real> contact_force(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                                const LinearModel<Real>& l, const Real& drag, const Vec3<Real>& e,
                                                const Real& dt) {
  ForceTrace<Real> t;
  t.normal = find_normal_force(m, s, l, e, dt);
  t.end_slip = l.slip + tangential(s.normal, e);
  t.tangential = bounded(t.end_slip * drag, m.friction * t.normal.value);
  t.result = s.normal * t.normal.value - t.tangential.drag * t.tangential.share;
  return t;
}

/// Adjoint of contact_force (L4): force_bar, and normal_bar of what else has its normal force, to the cotangents of e,
/// of the drag, the linear model, the state and the material.
template <class Real>
BACKDRIVE_INLINE void adj_contact_force(const PairMaterial<Real>& m, const ContactState<Real>& s,
                                        const LinearModel<Real>& l, const Real& drag, const Vec3<Real>& e,
                                        const ForceTrace<Real>& t, const Real& dt, const Vec3<Real>& force_bar,
                                        const Real& normal_bar, Vec3<Real>& e_bar, Real& drag_bar,
                                        LinearModelBar<Real>& model, ContactState<Real>& s_bar,
                                        PairMaterial<Real>& m_bar) {
  const BoundedBar<Real, Vec3<Real>> bar = adj_bounded(t.tangential, force_bar);
  s_bar.normal += force_bar * t.normal.value;
  m_bar.friction += t.normal.value * bar.bound;
  drag_bar += dot(bar.drag, t.end_slip);
  const Vec3<Real> slip_bar = bar.drag * drag;
  model.slip += slip_bar;
  adj_tangential(s.normal, e, slip_bar, s_bar.normal, e_bar);
  adj_find_normal_force(m, s, l, e, t.normal, dt, dot(s.normal, force_bar) + m.friction * bar.bound + normal_bar, e_bar,
                        model, s_bar, m_bar);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
