#pragma once
// The law of contact along one normal: a spring that sets in softly, averaged over the path of a step, with
// Hunt-Crossley dissipation. docs/contact.md, section 1; depths are positive in penetration.
//
//   ψ′(d; w) = φ = 0, d²/2w, d − w/2              for d < 0, < w, ≥ w
//   F(d₀, d₁; w) = (ψ(d₁) − ψ(d₀)) / (d₁ − d₀)
//   N(d₀, d₁) = k F(d₀, d₁; w) h(z) + k H F(d₀ − D, d₁ − D; D) h(z_D)
//   z = 1 + α (d₁ − d₀)/Δt + α_φ (d₂ − d₀)/Δt     z_D likewise, with c α/Δt + 1/D for α/Δt
//
// d₂ is where the velocity of the step's end alone would have led. α takes out what the way of the step goes at, and
// so nothing of what one step throws back as fast as it came, whose way is none; α_φ takes that, too.
//
// F is an average of φ and is computed as one, from the shares of the path outside, on the ramp and beyond it: no
// difference of nearly equal numbers, and nothing special where d₁ → d₀.
#include "engine/dual.h"
#include "integrators/contact/shapes.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// What two shapes in touch have in common.
template <class Real>
struct PairMaterial {
  Real stiffness;    ///< k, N/m
  Real width;        ///< w, m: of the ramp on which the spring sets in
  Real dissipation;  ///< α, s/m
  Real friction;     ///< μ
  Real creep;        ///< ε, m/s: stiction velocity, at which a sticking contact carries all that friction can
  Real core;         ///< D, m: depth from which, and over which, the second spring sets in
  Real hardening;    ///< H: how much stiffer the second spring is than the first
  Real turn_loss;    ///< α_φ, s/m: dissipation by the velocity of a step's end (C11)
};

/// D of pairs that have no second spring: out of reach.
constexpr double kNoCore = 1e6;
/// c: how much more the second spring dissipates than the first.
constexpr double kCoreDissipation = 4;

template <class Real>
BACKDRIVE_INLINE Real positive_part(const Real& x) {
  return maximum(x, constant<Real>(0));
}

/// A number as a share, in [0, 1].
template <class Real>
BACKDRIVE_INLINE Real share(const Real& x) {
  return clamped(x, constant<Real>(0), constant<Real>(1));
}
/// Of a dual at an end of that range the derivative is zero, as beyond it: where the ramp's ends vary there, what goes
/// over the end would count twice. Bodies are often placed so that they just touch.
template <class T>
BACKDRIVE_INLINE Dual<T> share(const Dual<T>& x) {
  return x.value > T(0) && x.value < T(1) ? x : Dual<T>(clamped(x.value, T(0), T(1)));
}

/// The average of φ over the path and its derivatives by d₀, d₁ and w. Each is an average over σ ∈ [0, 1] of φ′ times a
/// power of σ.
template <class Real>
struct PathAverage {
  Real mean;
  Real by_start, by_end, by_width;
};

template <class Real>
BACKDRIVE_INLINE PathAverage<Real> path_average(const Real& start, const Real& end, const Real& width) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), half = constant<Real>(0.5);
  const auto deepens = !(value_of(end) < value_of(start));
  const Real low = select(deepens, start, end), high = select(deepens, end, start);
  const Real length = high - low + constant<Real>(1e-30);
  const Real outside = share(-low / length), beyond = share((high - width) / length);
  const Real on_ramp = one - outside - beyond;
  const Real inverse = one / width;
  const Real c0 = clamped(low, zero, width), c1 = clamped(high, zero, width);
  const Real e0 = positive_part(low - width), e1 = positive_part(high - width);
  const Real g0 = c0 * inverse, g1 = c1 * inverse;
  const Real third = constant<Real>(1. / 3), sixth = constant<Real>(1. / 6);
  const Real slope = on_ramp * half * (g0 + g1);  // of the ramp's part, by both ends together
  const Real ramp_high = on_ramp * (outside * half * (g0 + g1) + on_ramp * (sixth * g0 + third * g1));
  const Real by_high = ramp_high + beyond * (one - half * beyond);
  const Real by_low = slope + beyond - by_high;
  return {on_ramp * (c0 * c0 + c0 * c1 + c1 * c1) * sixth * inverse + beyond * half * (width + e0 + e1),
          select(deepens, by_low, by_high), select(deepens, by_high, by_low),
          -(on_ramp * (g0 * g0 + g0 * g1 + g1 * g1) * sixth) - half * beyond};
}

/// The depths d₀ and d₁ that a step leads from and to, and d₂. Also their cotangents.
template <class Real>
struct DepthPath {
  Real start, end, late;
};

/// F h(z) of one spring, and its derivative by d₁.
template <class Real>
struct SpringForce {
  PathAverage<Real> F;
  Real rate, late_rate;  ///< ∂z/∂d₁, ∂z/∂d₂
  /// h: z for z ≥ ½, ½ (z + ½)² for |z| < ½, else 0, and its derivative: no pull, and no jump where it lets go.
  Real factor, factor_slope;
  Real value;
  Real stiffness;  ///< by d₁, with which d₂ goes twice as far
};

/// z = 1 + rate (d₁ − d₀) + late_rate (d₂ − d₀)
template <class Real>
BACKDRIVE_INLINE SpringForce<Real> spring_force(const PathAverage<Real>& F, const DepthPath<Real>& d, const Real& rate,
                                                const Real& late_rate) {
  const Real half = constant<Real>(0.5);
  const Real z = constant<Real>(1) + rate * (d.end - d.start) + late_rate * (d.late - d.start);
  SpringForce<Real> s;
  s.F = F;
  s.rate = rate;
  s.late_rate = late_rate;
  s.factor_slope = clamped(z + half, constant<Real>(0), constant<Real>(1));
  s.factor = select(value_of(z) > value_of(half), z, half * s.factor_slope * s.factor_slope);
  s.value = F.mean * s.factor;
  s.stiffness = F.by_end * s.factor + F.mean * s.factor_slope * (rate + constant<Real>(2) * late_rate);
  return s;
}

/// Cotangents of what a spring's force depends on.
template <class Real>
struct SpringBar {
  DepthPath<Real> depth;
  Real width, rate, late_rate;
};
template <class Real>
BACKDRIVE_INLINE SpringBar<Real> adj_spring_force(const SpringForce<Real>& s, const DepthPath<Real>& d,
                                                  const Real& value_bar) {
  const Real mean_bar = value_bar * s.factor, z_bar = value_bar * s.F.mean * s.factor_slope;
  const Real way = z_bar * s.rate, late = z_bar * s.late_rate;
  return {{mean_bar * s.F.by_start - way - late, mean_bar * s.F.by_end + way, late},
          mean_bar * s.F.by_width,
          z_bar * (d.end - d.start),
          z_bar * (d.late - d.start)};
}

/// α_φ/Δt, of pairs that have it.
template <class Real>
BACKDRIVE_INLINE Real late_rate(const PairMaterial<Real>& m, const Real& dt, bool turns) {
  return turns ? m.turn_loss / dt : constant<Real>(0);
}

/// Whether a path reaches the second spring in any lane.
template <class Real>
BACKDRIVE_INLINE bool reaches_core(const PairMaterial<Real>& m, const DepthPath<Real>& d) {
  return any(value_of(d.start) > value_of(m.core) || value_of(d.end) > value_of(m.core));
}

/// Of the second spring, which begins at D. What leaves it by D in a step takes nothing along: of shapes that move so
/// far the nearest features change from step to step, and what a spring stores at one pair another would give back.
template <class Real>
BACKDRIVE_CALLED SpringForce<Real> core_force(const PairMaterial<Real>& m, const DepthPath<Real>& d, const Real& dt,
                                              bool turns) {
  return spring_force<Real>(path_average<Real>(d.start - m.core, d.end - m.core, m.core), d,
                            constant<Real>(kCoreDissipation) * m.dissipation / dt + constant<Real>(1) / m.core,
                            late_rate(m, dt, turns));
}

/// N and κ = ∂N/∂d₁ + 2 ∂N/∂d₂ ≥ 0; N is convex and grows with d₁.
template <class Real>
struct NormalForce {
  SpringForce<Real> spring;  ///< the first
  Real value, stiffness;     ///< of both
  bool turns;
};

/// `turns`: whether the pair may have α_φ; without, neither that nor d₂ is read.
template <class Real>
BACKDRIVE_INLINE NormalForce<Real> normal_force(const PairMaterial<Real>& m, const DepthPath<Real>& d, const Real& dt,
                                                bool turns = true) {
  NormalForce<Real> n;
  n.turns = turns;
  n.spring = spring_force<Real>(path_average(d.start, d.end, m.width), d, m.dissipation / dt, late_rate(m, dt, turns));
  n.value = m.stiffness * n.spring.value;
  n.stiffness = m.stiffness * n.spring.stiffness;
  // A lane that is not deep adds zeros: its bits are those of a world by itself.
  if (!reaches_core(m, d)) return n;
  const SpringForce<Real> core = core_force(m, d, dt, turns);
  const Real hard = m.stiffness * m.hardening;
  n.value += hard * core.value;
  n.stiffness += hard * core.stiffness;
  return n;
}

/// k ψ(d; w), J: what the first spring has stored at a depth, as the average force of the way there times that way. The
/// second gives back what one step moves, and of shapes that are found deep in each other nothing was ever put into it.
template <class Real>
BACKDRIVE_CALLED Real stored_energy(const PairMaterial<Real>& m, const Real& depth) {
  const Real zero = constant<Real>(0), in = positive_part(depth);
  return m.stiffness * (in * path_average(zero, in, m.width).mean);
}

/// Adjoint of N at `n`, the result: returns the cotangents of the depths and adds to those of the material (L1).
template <class Real>
BACKDRIVE_INLINE DepthPath<Real> adj_normal_force(const PairMaterial<Real>& m, const NormalForce<Real>& n,
                                                  const DepthPath<Real>& d, const Real& dt, const Real& bar,
                                                  PairMaterial<Real>& m_bar) {
  const SpringBar<Real> spring = adj_spring_force<Real>(n.spring, d, m.stiffness * bar);
  m_bar.stiffness += bar * n.value / m.stiffness;
  m_bar.width += spring.width;
  m_bar.dissipation += spring.rate / dt;
  m_bar.turn_loss += spring.late_rate / dt;
  if (!reaches_core(m, d)) return spring.depth;
  const SpringForce<Real> core = core_force(m, d, dt, n.turns);
  const SpringBar<Real> c = adj_spring_force<Real>(core, d, m.stiffness * m.hardening * bar);
  m_bar.hardening += m.stiffness * bar * core.value;
  m_bar.dissipation += c.rate * constant<Real>(kCoreDissipation) / dt;
  m_bar.turn_loss += c.late_rate / dt;
  // All are taken from D, over which the spring sets in; of z only a rate depends on D.
  m_bar.core += c.width - c.depth.start - c.depth.end - c.depth.late - c.rate / (m.core * m.core);
  return {spring.depth.start + c.depth.start, spring.depth.end + c.depth.end, spring.depth.late + c.depth.late};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
