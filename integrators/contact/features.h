#pragma once
// Nearest points of two features (vertex, line or plane each) of rounded polyhedra: the one formula, and the one
// adjoint, behind all pairs of spheres, capsules and meshes. With a on A's feature, b on B's, and up to two
// directions w_i along which A's (α_i = 1) or B's (α_i = 0) nearest point may move,
//
//   r = a − b     e = r + Σ s_i w_i     (1) F_i = w_i·e + β_i |w_i|² (s_i − s°_i) = 0
//   x_A = a + Σ α_i s_i w_i     x_B = b − Σ (1 − α_i) s_i w_i     so that e = x_A − x_B
//
// β = 0 gives the nearest points. A small β draws a point towards s° where the features are nearly parallel and the
// nearest point would be ill-defined. The normal is e/|e|, or, where two directions span the plane that separates the
// bodies, ±w₁×w₂/|w₁×w₂|, which has no trouble at e = 0 and goes on into penetration.
#include "integrators/contact/shapes.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// One w_i; `xi` in the unit coordinates of the shape that it belongs to.
template <class Real>
struct FeatureDirection {
  Vec3<Real> xi;
  Real of_a;          ///< α: 1, 0
  MaskOf<Real> free;  ///< the nearest point may move along it
  Real pull;          ///< β
  Real target;        ///< s°
};

template <class Real>
struct FeaturePair {
  Vec3<Real> a, b;  ///< unit coordinates of a point of each feature
  FeatureDirection<Real> d[2];
  MaskOf<Real> crossed;  ///< the normal is sign·w₁×w₂
  Real sign;
};

template <class Real>
BACKDRIVE_INLINE FeatureDirection<Real> no_direction() {
  const Real o = constant<Real>(0);
  return {{o, o, o}, o, MaskOf<Real>(false), o, o};
}
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> vertex_pair(const Vec3<Real>& a, const Vec3<Real>& b) {
  return {a, b, {no_direction<Real>(), no_direction<Real>()}, MaskOf<Real>(false), constant<Real>(1)};
}

template <class Real>
BACKDRIVE_INLINE FeatureDirection<Real> choose(const MaskOf<Real>& mask, const FeatureDirection<Real>& yes,
                                               const FeatureDirection<Real>& no) {
  return {choose(mask, yes.xi, no.xi), select(mask, yes.of_a, no.of_a), chosen(mask, yes.free, no.free),
          select(mask, yes.pull, no.pull), select(mask, yes.target, no.target)};
}
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> choose(const MaskOf<Real>& mask, const FeaturePair<Real>& yes,
                                          const FeaturePair<Real>& no) {
  return {choose(mask, yes.a, no.a),
          choose(mask, yes.b, no.b),
          {choose(mask, yes.d[0], no.d[0]), choose(mask, yes.d[1], no.d[1])},
          chosen(mask, yes.crossed, no.crossed),
          select(mask, yes.sign, no.sign)};
}

/// (1) in numbers: what both directions of differentiation need.
template <class Real>
struct FeatureMotion {
  Vec3<Real> a, b, r, w[2];
  Real g11, g22, g12, inverse;  ///< Gram matrix of (1), rows that are not free replaced by those of 1; 1/determinant
  Real s[2];
  Vec3<Real> e, area, normal;

  BACKDRIVE_INLINE void solve(const Real& h1, const Real& h2, Real& x1, Real& x2) const {
    x1 = (g22 * h1 - g12 * h2) * inverse;
    x2 = (g11 * h2 - g12 * h1) * inverse;
  }
};

template <class Real>
BACKDRIVE_INLINE FeatureMotion<Real> feature_motion(const Core<Real>& A, const Core<Real>& B,
                                                    const FeaturePair<Real>& f) {
  const Real one = constant<Real>(1), tiny = constant<Real>(kTinySquare);
  FeatureMotion<Real> m;
  m.a = core_point(A, f.a);
  m.b = core_point(B, f.b);
  m.r = m.a - m.b;
  for (int i = 0; i < 2; ++i) {
    const FeatureDirection<Real>& d = f.d[i];
    const Vec3<Real> of_a = core_direction(A, d.xi), of_b = core_direction(B, d.xi);
    m.w[i] = only(d.free, of_a * d.of_a + of_b * (one - d.of_a));
  }
  const Real w11 = dot(m.w[0], m.w[0]), w22 = dot(m.w[1], m.w[1]);
  const Real p1 = f.d[0].pull, p2 = f.d[1].pull;
  const MaskOf<Real> both = f.d[0].free && f.d[1].free;
  m.area = cross(m.w[0], m.w[1]);
  m.g11 = select(f.d[0].free, maximum(w11 * (one + p1), tiny), one);
  m.g22 = select(f.d[1].free, maximum(w22 * (one + p2), tiny), one);
  m.g12 = dot(m.w[0], m.w[1]);
  // |w₁|²|w₂|² − (w₁·w₂)² = |w₁×w₂|²: no cancellation where the two are nearly parallel
  const Real shared = maximum(dot(m.area, m.area) + w11 * w22 * (p1 + p2 + p1 * p2), tiny);
  m.inverse = one / select(both, shared, m.g11 * m.g22);
  m.solve(p1 * w11 * f.d[0].target - dot(m.w[0], m.r), p2 * w22 * f.d[1].target - dot(m.w[1], m.r), m.s[0], m.s[1]);
  m.e = m.r + m.w[0] * m.s[0] + m.w[1] * m.s[1];
  m.normal = choose<Real>(f.crossed, direction(m.area) * f.sign, direction(m.e));
  return m;
}

template <class Real>
BACKDRIVE_CALLED ContactPoint<Real> witness(const Core<Real>& A, const Core<Real>& B, const FeaturePair<Real>& f) {
  const Real one = constant<Real>(1), half = constant<Real>(0.5);
  const FeatureMotion<Real> m = feature_motion(A, B, f);
  const Vec3<Real> x_a = m.a + m.w[0] * (f.d[0].of_a * m.s[0]) + m.w[1] * (f.d[1].of_a * m.s[1]);
  const Vec3<Real> x_b = m.b - m.w[0] * ((one - f.d[0].of_a) * m.s[0]) - m.w[1] * ((one - f.d[1].of_a) * m.s[1]);
  const Real gap = dot(m.normal, m.e) - A.radius - B.radius;
  return {gap, (x_a + x_b + m.normal * (B.radius - A.radius)) * half, m.normal};
}

/// With e = x_A − x_B and n = n(e) or n(w₁, w₂); λ = G⁻¹ s̄ takes s back through (1).
template <class Real>
BACKDRIVE_CALLED void adj_witness(const Core<Real>& A, const Core<Real>& B, const FeaturePair<Real>& f,
                                  const ContactPoint<Real>& bar, CoreBar<Real>& A_bar, CoreBar<Real>& B_bar) {
  const Real one = constant<Real>(1), half = constant<Real>(0.5), two = constant<Real>(2);
  const FeatureMotion<Real> m = feature_motion(A, B, f);
  const Real along = half * dot(m.normal, bar.point);
  A_bar.radius -= bar.gap + along;
  B_bar.radius += along - bar.gap;
  const Vec3<Real> n_bar = bar.normal + bar.point * (half * (B.radius - A.radius)) + m.e * bar.gap;
  Vec3<Real> of_e = zero3<Real>(), area_bar = zero3<Real>(), w_bar[2] = {zero3<Real>(), zero3<Real>()};
  adj_direction(m.e, m.normal, n_bar, of_e);
  adj_direction(m.area, m.normal * f.sign, n_bar * f.sign, area_bar);
  const Vec3<Real> e_bar = m.normal * bar.gap + only(!f.crossed, of_e);
  adj_cross(m.w[0], m.w[1], only(f.crossed, area_bar), w_bar[0], w_bar[1]);

  const Vec3<Real> half_point = bar.point * half;  // the cotangent of x_A and that of x_B
  Real s_bar[2], lambda[2];
  for (int i = 0; i < 2; ++i) {
    const Vec3<Real> x_bar = e_bar + half_point * (two * f.d[i].of_a - one);
    s_bar[i] = dot(m.w[i], x_bar);
    w_bar[i] += x_bar * m.s[i];
  }
  m.solve(s_bar[0], s_bar[1], lambda[0], lambda[1]);
  const Vec3<Real> back = m.w[0] * lambda[0] + m.w[1] * lambda[1];
  const Vec3<Real> r_bar = e_bar - back;
  adj_core_point(A, f.a, m.a, half_point + r_bar, A_bar);
  adj_core_point(B, f.b, m.b, half_point - r_bar, B_bar);
  for (int i = 0; i < 2; ++i) {
    const FeatureDirection<Real>& d = f.d[i];
    const Vec3<Real> pulled = m.w[i] * (two * d.pull * (m.s[i] - d.target));
    const Vec3<Real> bar_i = only(d.free, w_bar[i] - (m.e + pulled) * lambda[i] - back * m.s[i]);
    adj_core_direction(A, d.xi, m.w[i], bar_i * d.of_a, A_bar);
    adj_core_direction(B, d.xi, m.w[i], bar_i * (one - d.of_a), B_bar);
  }
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
