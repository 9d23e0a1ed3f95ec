#pragma once
// The law of contact along one normal: a spring that sets in softly, averaged over the path of a step, with
// Hunt-Crossley dissipation. docs/contact.md, section 1; depths are positive in penetration.
//
//   Φ′/k = 0, d²/2w, d − w/2                      for d < 0, < w, ≥ w
//   N(d₀, d₁) = k F h(z)     F = (Φ(d₁) − Φ(d₀)) / (k (d₁ − d₀))     z = 1 + α (d₁ − d₀)/Δt
//
// F is an average of Φ′ and is computed as one, from the shares of the path outside, on the ramp and beyond it: no
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
};

/// D of pairs that have no second spring: out of reach.
constexpr double kNoCore = 1e6;

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

/// The average of φ over the path and its derivatives by d₀, d₁ and w. Each is an average over σ ∈ [0, 1] of φ′ or φ″
/// times a power of σ.
template <class Real>
struct PathAverage {
  Real mean;
  Real by_start, by_end, by_width;
  Real by_start_end, by_end_end, by_end_width;
};

template <class Real>
BACKDRIVE_INLINE PathAverage<Real> path_average(const Real& start, const Real& end, const Real& width) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), half = constant<Real>(0.5);
  const auto deepens = !(value_of(end) < value_of(start));
  const Real low = select(deepens, start, end), high = select(deepens, end, start);
  const Real length = high - low + constant<Real>(1e-30);
  const Real outside = share(-low / length), beyond = share((high - width) / length);
  const Real on_ramp = one - outside - beyond, inside = one - beyond;
  const Real inverse = one / width;
  const Real c0 = clamped(low, zero, width), c1 = clamped(high, zero, width);
  const Real e0 = positive_part(low - width), e1 = positive_part(high - width);
  const Real g0 = c0 * inverse, g1 = c1 * inverse;
  const Real third = constant<Real>(1. / 3), sixth = constant<Real>(1. / 6);
  const Real slope = on_ramp * half * (g0 + g1);  // of the ramp's part, by both ends together
  const Real ramp_high = on_ramp * (outside * half * (g0 + g1) + on_ramp * (sixth * g0 + third * g1));
  const Real ramp_low = slope - ramp_high;
  const Real by_high = ramp_high + beyond * (one - half * beyond);
  const Real by_low = slope + beyond - by_high;
  const Real q2 = on_ramp * (inside * inside + inside * outside + outside * outside) * third * inverse;
  const Real q1 = on_ramp * (inside + outside) * half * inverse;
  const Real q0 = on_ramp * inverse;
  const Real low_low = q0 - q1 - q1 + q2;
  return {on_ramp * (c0 * c0 + c0 * c1 + c1 * c1) * sixth * inverse + beyond * half * (width + e0 + e1),
          select(deepens, by_low, by_high),
          select(deepens, by_high, by_low),
          -(on_ramp * (g0 * g0 + g0 * g1 + g1 * g1) * sixth) - half * beyond,
          q1 - q2,
          select(deepens, q2, low_low),
          -(select(deepens, ramp_high, ramp_low) * inverse)};
}

/// The depths d₀ and d₁ that a step leads from and to. Also the cotangents of both.
template <class Real>
struct DepthPath {
  Real start, end;
};

/// F and its derivatives: by w of the first spring, by D and H of the second.
template <class Real>
struct ForcePath {
  PathAverage<Real> sum;
  Real by_core, by_end_core;
  Real by_hardening, by_end_hardening;
};

/// Whether a path reaches the second spring in any lane.
template <class Real>
BACKDRIVE_INLINE bool reaches_core(const PairMaterial<Real>& m, const DepthPath<Real>& d) {
  return any(value_of(d.start) > value_of(m.core) || value_of(d.end) > value_of(m.core));
}

/// The average of φ(d − D; D).
template <class Real>
BACKDRIVE_CALLED PathAverage<Real> core_average(const PairMaterial<Real>& m, const DepthPath<Real>& d) {
  return path_average<Real>(d.start - m.core, d.end - m.core, m.core);
}

template <class Real>
BACKDRIVE_INLINE ForcePath<Real> force_path(const PairMaterial<Real>& m, const DepthPath<Real>& d) {
  const Real zero = constant<Real>(0), &H = m.hardening;
  ForcePath<Real> path{path_average(d.start, d.end, m.width), zero, zero, zero, zero};
  // A lane that is not deep adds zeros: its bits are those of a world by itself.
  if (!reaches_core(m, d)) return path;
  const PathAverage<Real> core = core_average(m, d);
  PathAverage<Real>& sum = path.sum;
  sum.mean += H * core.mean;
  sum.by_start += H * core.by_start;
  sum.by_end += H * core.by_end;
  sum.by_start_end += H * core.by_start_end;
  sum.by_end_end += H * core.by_end_end;
  path.by_core = H * (core.by_width - core.by_start - core.by_end);
  path.by_end_core = H * (core.by_end_width - core.by_start_end - core.by_end_end);
  path.by_hardening = core.mean;
  path.by_end_hardening = core.by_end;
  return path;
}

/// N and κ = ∂N/∂d₁ ≥ 0; N is convex and grows with d₁.
template <class Real>
struct NormalForce {
  ForcePath<Real> path;
  /// h: z for z ≥ ½, ½ (z + ½)² for |z| < ½, else 0, and its derivatives: no pull, and no jump where it lets go.
  Real factor, factor_slope, factor_bend;
  Real value, stiffness;
};
/// Cotangents of N and κ.
template <class Real>
struct NormalForceBar {
  Real value, stiffness;
};

template <class Real>
BACKDRIVE_INLINE NormalForce<Real> normal_force(const PairMaterial<Real>& m, const DepthPath<Real>& d, const Real& dt) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), half = constant<Real>(0.5);
  NormalForce<Real> n;
  n.path = force_path(m, d);
  const PathAverage<Real>& F = n.path.sum;
  const Real rate = m.dissipation / dt, z = one + rate * (d.end - d.start);
  n.factor_slope = clamped(z + half, zero, one);
  n.factor = select(value_of(z) > value_of(half), z, half * n.factor_slope * n.factor_slope);
  n.factor_bend = select(value_of(z) > value_of(half) || value_of(z) < value_of(-half), zero, one);
  n.value = m.stiffness * F.mean * n.factor;
  n.stiffness = m.stiffness * (F.by_end * n.factor + F.mean * n.factor_slope * rate);
  return n;
}

/// Adjoint at `n`, the result: returns the cotangents of the depths and adds to those of the material (L1).
template <class Real>
BACKDRIVE_INLINE DepthPath<Real> adj_normal_force(const PairMaterial<Real>& m, const NormalForce<Real>& n,
                                                  const DepthPath<Real>& d, const Real& dt,
                                                  const NormalForceBar<Real>& bar, PairMaterial<Real>& m_bar) {
  const Real &value_bar = bar.value, &stiffness_bar = bar.stiffness;
  const PathAverage<Real>& F = n.path.sum;
  const Real rate = m.dissipation / dt;
  const Real mean_bar = m.stiffness * (value_bar * n.factor + stiffness_bar * n.factor_slope * rate);
  const Real slope_bar = m.stiffness * stiffness_bar * n.factor;
  const Real z_bar = m.stiffness * (value_bar * F.mean * n.factor_slope +
                                    stiffness_bar * (F.by_end * n.factor_slope + F.mean * n.factor_bend * rate));
  m_bar.stiffness += (value_bar * n.value + stiffness_bar * n.stiffness) / m.stiffness;
  m_bar.width += mean_bar * F.by_width + slope_bar * F.by_end_width;
  m_bar.core += mean_bar * n.path.by_core + slope_bar * n.path.by_end_core;
  m_bar.hardening += mean_bar * n.path.by_hardening + slope_bar * n.path.by_end_hardening;
  m_bar.dissipation += (z_bar * (d.end - d.start) + stiffness_bar * m.stiffness * F.mean * n.factor_slope) / dt;
  return {mean_bar * F.by_start + slope_bar * F.by_start_end - z_bar * rate,
          mean_bar * F.by_end + slope_bar * F.by_end_end + z_bar * rate};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
