#pragma once
// Where an ellipsoid (radii e, centre o, axes R) is nearest to something, by its normal there. In numbers that may have
// derivatives, by one direction.
#include "integrators/contact/plane_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Two directions at right angles to a third and to each other.
template <class Real>
BACKDRIVE_INLINE void span_plane(const Vec3<Real>& n, Vec3<Real>& u, Vec3<Real>& v) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const MaskOf<Real> upright = less(constant<Real>(0.5), n.z * n.z);
  u = direction(cross(n, Vec3<Real>{select(upright, one, zero), zero, select(upright, zero, one)}));
  v = cross(n, u);
}

/// |E Rᵀ n|: half of what an ellipsoid takes along n.
template <class N>
BACKDRIVE_INLINE N ellipsoid_half_width(const Shape<N>& s, const Vec3<N>& n) {
  return length(times(s.scale, transposed_times(s.pose.axes, n)));
}
/// Of an ellipsoid, from its middle, the place furthest along n.
template <class N>
BACKDRIVE_INLINE Vec3<N> ellipsoid_place(const Shape<N>& s, const Vec3<N>& n) {
  return -(s.pose.axes * ellipsoid_support(s.scale, transposed_times(s.pose.axes, n)));
}

template <class Real>
BACKDRIVE_INLINE Real largest_of(const Vec3<Real>& v) {
  return maximum(v.x, maximum(v.y, v.z));
}
/// Radii with which normals are sought: none so short, beside the longest, that it would be lost in float32.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> thick_radii(const Vec3<Real>& e) {
  const Real least = maximum(largest_of(e) * constant<Real>(1e-4), constant<Real>(1e-9));
  return {maximum(e.x, least), maximum(e.y, least), maximum(e.z, least)};
}

/// The outward normal of an ellipsoid, in its axes, at its place nearest to y: y_k/(t + e_k²) for the t, greater than
/// all −e_k², with Σ (e_k y_k/(t + e_k²))² = 1. The inverse root of that sum bends little (Moré and Sorensen, Computing
/// a trust region step, SIAM J. Sci. Stat. Comput. 4, 1983): Newton's method from below takes three or four steps
/// outside; inside, near the rim of a flat one, it begins with up to ten that take t half as far again.
template <class Real>
BACKDRIVE_CALLED Vec3<Real> normal_towards(const Vec3<Real>& radii, const Vec3<Real>& place) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), unit = one / largest_of(radii);
  const Vec3<Real> e = radii * unit, to = place * unit;
  const Real least = minimum(e.x, minimum(e.y, e.z)), little = constant<Real>(1e-6) * least;
  // of the shortest axis some part: in its plane of symmetry, inside, either side is as near
  const auto off_plane = [&](const Real& y, const Real& radius) __attribute__((always_inline)) {
    const MaskOf<Real> lost = !less(least, radius) && less(magnitude(y), little);
    return select(lost, select(less(y, zero), -little, little), y);
  };
  const Vec3<Real> y{off_plane(to.x, e.x), off_plane(to.y, e.y), off_plane(to.z, e.z)};
  const auto more = [&](const Real& radius) __attribute__((always_inline)) {
    return (radius - least) * (radius + least);
  };
  const Vec3<Real> d{more(e.x), more(e.y), more(e.z)}, p = times(e, y);
  Real t = maximum(magnitude(p.x) - d.x, maximum(magnitude(p.y) - d.y, magnitude(p.z) - d.z));
  const auto shares = [&]() __attribute__((always_inline)) {
    return Vec3<Real>{one / (t + d.x), one / (t + d.y), one / (t + d.z)};
  };
  constexpr int steps = 16;
  for (int k = 0; k < steps; ++k) {
    const Vec3<Real> share = shares(), w = times(p, share);
    const Real square = dot(w, w);
    t += (square_root(square) - one) * square / dot(times(w, w), share);
  }
  return direction(times(y, shares()));
}

/// The same for a line through a place along w, a unit vector: of an ellipse and a point.
template <class Real>
BACKDRIVE_CALLED Vec3<Real> normal_towards_line(const Vec3<Real>& radii, const Vec3<Real>& place, const Vec3<Real>& w) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), half = constant<Real>(0.5);
  const Real unit = one / largest_of(radii);
  const Vec3<Real> e = radii * unit, y = place * unit;
  Vec3<Real> u, v;
  span_plane(w, u, v);
  const Vec3<Real> eu = times(e, u), ev = times(e, v), area = cross(eu, ev);
  const Real mean = half * (dot(eu, eu) + dot(ev, ev)), apart = half * (dot(eu, eu) - dot(ev, ev)), mixed = dot(eu, ev);
  const Real r = square_root(apart * apart + mixed * mixed);
  const MaskOf<Real> wide = !less(apart, zero);
  Real c = select(wide, apart + r, mixed), s = select(wide, mixed, r - apart);
  const Real size = c * c + s * s;
  const MaskOf<Real> round = less(size, constant<Real>(1e-12) * mean * mean);
  const Real inverse = one / square_root(select(round, one, size));
  c = select(round, one, c * inverse), s = select(round, zero, s * inverse);
  const Real longest = square_root(mean + r), shortest = length(area) / longest;
  const Real yu = dot(u, y), yv = dot(v, y);
  const Vec3<Real> m = normal_towards<Real>({longest, shortest, longest}, {c * yu + s * yv, c * yv - s * yu, zero});
  return direction(u * (c * m.x - s * m.y) + v * (s * m.x + c * m.y));
}

/// M = R E² Rᵀ, with h² = n·M n.
template <class Real>
BACKDRIVE_INLINE Mat3<Real> width_matrix(const Mat3<Real>& axes, const Vec3<Real>& e) {
  const Vec3<Real>&x = axes.cx, &y = axes.cy, &z = axes.cz;
  const Real ex = e.x * e.x, ey = e.y * e.y, ez = e.z * e.z;
  return {x * (ex * x.x) + y * (ey * y.x) + z * (ez * z.x), x * (ex * x.y) + y * (ey * y.y) + z * (ez * z.y),
          x * (ex * x.z) + y * (ey * y.z) + z * (ez * z.z)};
}
/// n of two ellipsoids, `way` from the middle of the second, which may be flat, to that of the first, where both scaled
/// alike touch (Perram and Wertheim, Statistical mechanics of hard ellipsoids, J. Comput. Phys. 58, 1985):
/// ((1 − λ) A + λ B) n = d with (1 − λ) h_A = λ h_B.
template <class Real>
BACKDRIVE_CALLED Vec3<Real> common_normal(const Mat3<Real>& A, const Mat3<Real>& B, const Vec3<Real>& way) {
  const Real half = constant<Real>(0.5), one = constant<Real>(1);
  const Real unit = one / (A.cx.x + A.cy.y + A.cz.z + B.cx.x + B.cy.y + B.cz.z);  // to numbers about 1
  const Vec3<Real> d = direction(way);
  Real low = constant<Real>(0), high = one;
  Vec3<Real> n = d;
  constexpr int halvings = 14;
  for (int k = 0; k < halvings; ++k) {
    const Real of_b = half * (low + high), of_a = one - of_b, a = of_a * unit, b = of_b * unit;
    const Vec3<Real> x = A.cx * a + B.cx * b, y = A.cy * a + B.cy * b, z = A.cz * a + B.cz * b;
    const Vec3<Real> along{dot(d, cross(y, z)), dot(d, cross(z, x)), dot(d, cross(x, y))};
    const Real size = magnitude(along.x) + magnitude(along.y) + magnitude(along.z);
    n = direction(along * (one / maximum(size, constant<Real>(kTinySquare))));
    const MaskOf<Real> more = less(of_b * of_b * dot(n, B * n), of_a * of_a * dot(n, A * n));
    low = select(more, of_b, low), high = select(more, high, of_b);
  }
  return n;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
