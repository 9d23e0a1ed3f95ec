#pragma once
// The law of one contact in one step: its force as a function of what contact changes the velocities by, the matrix of
// Newton's method, and the adjoint. docs/contact.md, (C2)-(C5) and (L1)-(L4).
//
// Everything is said of the point in touch, as twists [angular velocity; velocity of the point] of the first body minus
// the second's, and wrenches [moment; force] on the first body.
#include "integrators/contact/force_law.h"
#include "integrators/contact/friction.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// ε of turns is that of slips over this length, m.
constexpr double kTurnLength = 0.01;

/// Friction against turns that two shapes in touch have.
template <class Real>
struct TurnMaterial {
  Real torsional, rolling;  ///< μ_t, μ_r, m
  Real creep;               ///< ε_ω, rad/s: stiction velocity of turns
};

/// The constants of a contact's law.
template <class Real>
struct PairLaw {
  PairMaterial<Real> material;
  TurnMaterial<Real> turning;  ///< read only where resists_turns
  bool resists_turns;          ///< one of the two shapes does, in some world
  bool turns;                  ///< one of the two has a turn_loss, (C11), when its body turns
  Real dt;
};
template <class Real>
struct PairLawBar {
  PairMaterial<Real> material;
  TurnMaterial<Real> turning;
};

/// What a contact knows before the step is solved.
template <class Real>
struct ContactState {
  Real depth;            ///< d₀
  Vec3<Real> normal;     ///< n, from the second body to the first
  Spatial<Real> start;   ///< a: with q̇
  Spatial<Real> smooth;  ///< b: with q̇ + Δt q̈ of everything but contact
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

/// A contact's force and what its derivatives need.
template <class Real>
struct ContactForce {
  Spatial<Real> change;            ///< e: what contact changes the relative twist by
  DepthPath<Real> depth;           ///< d₀, d₁, d₂
  NormalForce<Real> normal;        ///< N, κ
  Spatial<Real> late;              ///< 3/2 b − ½ a + e
  Slip<Real, Vec3<Real>> slide;    ///< of T late.lin
  Slip<Real, Real> torsion;        ///< of n·late.ang, where turns are resisted
  Slip<Real, Vec3<Real>> rolling;  ///< and of T late.ang
  Spatial<Real> drag;              ///< D: what friction takes of each newton of N
  Real bound;                      ///< N, or what it is held at
  Spatial<Real> wrench;            ///< N [0; n] − bound D
};

/// (C2)-(C4).
template <class Real>
BACKDRIVE_INLINE ContactForce<Real> contact_force(const PairLaw<Real>& law, const ContactState<Real>& s,
                                                  const Spatial<Real>& e) {
  const Real half = constant<Real>(0.5);
  const PairMaterial<Real>& m = law.material;
  ContactForce<Real> f;
  f.change = e;
  f.depth.start = s.depth;
  f.depth.end = s.depth - law.dt * dot(s.normal, s.smooth.lin + e.lin * half);
  f.depth.late = law.turns ? s.depth - law.dt * dot(s.normal, s.smooth.lin + e.lin) : f.depth.end;
  f.normal = normal_force<Real>(m, f.depth, law.dt, law.turns);
  f.late = s.smooth * constant<Real>(1.5) - s.start * half + e;
  f.slide = slip_of(tangential(s.normal, f.late.lin), m.creep);
  f.drag = {zero3<Real>(), f.slide.direction * m.friction};
  if (law.resists_turns) {
    const TurnMaterial<Real>& t = law.turning;
    const Real about = dot(s.normal, f.late.ang);
    f.torsion = slip_of(about, t.creep);
    f.rolling = slip_of(f.late.ang - s.normal * about, t.creep);
    f.drag.ang = s.normal * (t.torsional * f.torsion.direction) + f.rolling.direction * t.rolling;
  }
  f.bound = f.normal.value;
  f.wrench = {f.drag.ang * -f.bound, (s.normal - f.drag.lin) * f.bound};
  return f;
}

/// (C9): friction with another bound than N, in some lanes; the others stay as they are.
template <class Real>
BACKDRIVE_INLINE void hold_bound(const Vec3<Real>& n, const MaskOf<Real>& lanes, const Real& bound,
                                 ContactForce<Real>& f) {
  f.bound = select(lanes, bound, f.bound);
  f.wrench.ang = f.drag.ang * -f.bound;
  f.wrench.lin = choose(lanes, n * f.normal.value - f.drag.lin * f.bound, f.wrench.lin);
}

/// Cotangents of a contact's state and of what its twist changes by.
template <class Real>
struct ContactBar {
  ContactState<Real> state;
  Spatial<Real> change;
};

/// (L4): adds the cotangents of e, of the state and of the constants for that of the wrench.
template <class Real>
BACKDRIVE_INLINE void adj_contact_force(const PairLaw<Real>& law, const ContactState<Real>& s,
                                        const ContactForce<Real>& f, const Spatial<Real>& wrench_bar,
                                        ContactBar<Real>& bar, PairLawBar<Real>& law_bar) {
  ContactState<Real>& s_bar = bar.state;
  const Real half = constant<Real>(0.5), &N = f.normal.value;
  const PairMaterial<Real>& m = law.material;
  const Real normal_bar = dot(s.normal, wrench_bar.lin) - dot(f.drag, wrench_bar);
  s_bar.normal += wrench_bar.lin * N;
  const Real slid = dot(f.slide.direction, wrench_bar.lin);
  law_bar.material.friction -= N * slid;
  const Vec3<Real> slide_bar = adj_slip(f.slide, m.creep, wrench_bar.lin * -(N * m.friction), law_bar.material.creep);
  Spatial<Real> late_bar = zero6<Real>();
  adj_tangential(s.normal, f.late.lin, slide_bar, s_bar.normal, late_bar.lin);
  if (law.resists_turns) {
    const TurnMaterial<Real>& t = law.turning;
    TurnMaterial<Real>& t_bar = law_bar.turning;
    const Real about = dot(s.normal, wrench_bar.ang);
    t_bar.torsional -= N * f.torsion.direction * about;
    t_bar.rolling -= N * dot(f.rolling.direction, wrench_bar.ang);
    s_bar.normal -= wrench_bar.ang * (N * t.torsional * f.torsion.direction);
    const Real torsion_bar = adj_slip<Real, Real>(f.torsion, t.creep, -(N * t.torsional * about), t_bar.creep);
    const Vec3<Real> rolling_bar = adj_slip(f.rolling, t.creep, wrench_bar.ang * -(N * t.rolling), t_bar.creep);
    s_bar.normal += f.late.ang * torsion_bar;
    late_bar.ang += s.normal * torsion_bar;
    adj_tangential(s.normal, f.late.ang, rolling_bar, s_bar.normal, late_bar.ang);
  }
  const DepthPath<Real> depth_bar = adj_normal_force<Real>(m, f.normal, f.depth, law.dt, normal_bar, law_bar.material);
  s_bar.depth += depth_bar.start + depth_bar.end + depth_bar.late;
  const Real end_bar = -(law.dt * depth_bar.end), late_end_bar = -(law.dt * depth_bar.late);
  const Real rate_bar = end_bar + late_end_bar, change_bar = half * end_bar + late_end_bar;  // of n·b and n·e
  s_bar.normal += s.smooth.lin * rate_bar + f.change.lin * change_bar;
  s_bar.start -= late_bar * half;
  s_bar.smooth += late_bar * constant<Real>(1.5);
  s_bar.smooth.lin += s.normal * rate_bar;
  bar.change += late_bar;
  bar.change.lin += s.normal * change_bar;
}

/// (C5): K ≥ 0 of Newton's method, −Δt ∂wrench/∂e with the bound of friction held, and the rest of that: −K_n D nᵀ.
/// K = [K_o n nᵀ + K_r (T − r rᵀ), 0; 0, K_n n nᵀ + K_t (T − s sᵀ)].
template <class Real>
struct ContactBlock {
  Vec3<Real> axis;          ///< n
  Real normal, tangential;  ///< K_n, K_t, kg
  Vec3<Real> slide;         ///< s
  Real torsion, rolling;    ///< K_o, K_r, kg·m²
  Vec3<Real> roll;          ///< r
  Spatial<Real> drag;       ///< D
};

template <class Real>
BACKDRIVE_INLINE ContactBlock<Real> block_of(const PairLaw<Real>& law, const Vec3<Real>& n,
                                             const ContactForce<Real>& f) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), pressed = law.dt * f.bound;
  ContactBlock<Real> b{n,
                       constant<Real>(0.5) * law.dt * law.dt * f.normal.stiffness,
                       pressed * law.material.friction / f.slide.speed,
                       f.slide.direction,
                       zero,
                       zero,
                       zero3<Real>(),
                       f.drag};
  if (law.resists_turns) {
    const Real& along = f.torsion.direction;
    b.torsion = pressed * law.turning.torsional / f.torsion.speed * (one - along * along);
    b.rolling = pressed * law.turning.rolling / f.rolling.speed;
    b.roll = f.rolling.direction;
  }
  return b;
}

/// K e
template <class Real>
BACKDRIVE_INLINE Spatial<Real> block_times(const ContactBlock<Real>& b, const Spatial<Real>& e) {
  const Real along = dot(b.axis, e.lin), about = dot(b.axis, e.ang);
  const Vec3<Real> slide = (e.lin - b.axis * along) - b.slide * dot(b.slide, e.lin);
  const Vec3<Real> roll = (e.ang - b.axis * about) - b.roll * dot(b.roll, e.ang);
  return {roll * b.rolling + b.axis * (b.torsion * about), slide * b.tangential + b.axis * (b.normal * along)};
}
/// (−K_n D nᵀ)ᵀ w
template <class Real>
BACKDRIVE_INLINE Spatial<Real> coupling_transposed_times(const ContactBlock<Real>& b, const Spatial<Real>& w) {
  return {zero3<Real>(), b.axis * -(b.normal * dot(b.drag, w))};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
