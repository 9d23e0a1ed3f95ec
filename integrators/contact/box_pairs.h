#pragma once
// Sphere (1 point) and capsule (2 points) as shape A on a box (shape B), in the box's axes with half extents h:
//
//   x = c + s u               sphere's centre (u = 0), or a point of the capsule's segment
//   d_k = x_k − σ_k h_k       where x is past the face σ_k of axis k, else 0; x − d is the box's nearest point
//   (1) F(s) = Σ u_k d_k + β |u|² (s − s°) = 0      or s at an end
//   n = d/|d|, dist = |d|     (2) x in the box: d along the axis of least depth alone, n = σ_k e_k, dist = n·d < 0
//   gap = dist − r            point = x − ½ (d + r n)
//
// Smooth within a region of the box's faces, edges and vertices; across their borders the gap is C¹ and normal and
// point continuous, but for (2), where the normal jumps between faces that are equally near. A capsule has one point
// drawn to either end (see kSegmentPull): on a face its two ends, across an edge twice the crossing. Where its very
// segment pierces the box, the points stay at the surface or at an end inside.
#include "integrators/contact/round_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Real>
struct BoxNearest {
  Vec3<Real> p, w;           ///< world: end s = 0 of the segment, and the way to the other end
  Vec3<Real> c, u, x, d, n;  ///< in the box's axes
  Vec3<Real> side;           ///< σ_k where axis k takes part in d, else 0
  Real s, slope;             ///< slope: dF/ds
  MaskOf<Real> inside, free;
};

template <class Real>
BACKDRIVE_INLINE Real excess(const Real& x, const Real& h) {
  return x - clamped(x, -h, h);
}
template <class Real>
BACKDRIVE_INLINE Real side_of(const Real& x, const Real& h) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  return select(less(h, x), one, select(less(x, -h), -one, zero));
}

/// Where F, which grows with s and is linear between the points at which the segment passes a face's plane, is zero.
template <class Real>
BACKDRIVE_INLINE Real zero_of_pull(const Vec3<Real>& c, const Vec3<Real>& u, const Vec3<Real>& h, const Real& stiffness,
                                   const Real& target) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const auto force = [&](const Real& s) __attribute__((always_inline)) {
    return u.x * excess(c.x + s * u.x, h.x) + u.y * excess(c.y + s * u.y, h.y) + u.z * excess(c.z + s * u.z, h.z) +
           stiffness * (s - target);
  };
  Real low = zero, high = one;
  Real at_low = force(zero), at_high = force(one);
  const auto narrow = [&](const Real& s) __attribute__((always_inline)) {
    const Real f = force(s);
    const MaskOf<Real> below = less(f, zero);
    const MaskOf<Real> rises = below && less(low, s), falls = !below && less(s, high);
    low = select(rises, s, low), at_low = select(rises, f, at_low);
    high = select(falls, s, high), at_high = select(falls, f, at_high);
  };
  const auto narrow_axis = [&](const Real& ck, const Real& uk, const Real& hk) __attribute__((always_inline)) {
    const MaskOf<Real> flat = less(uk * uk, constant<Real>(kTinySquare));
    const Real inverse = one / select(flat, one, uk);
    narrow(clamped((-hk - ck) * inverse, zero, one));
    narrow(clamped((hk - ck) * inverse, zero, one));
  };
  narrow_axis(c.x, u.x, h.x);
  narrow_axis(c.y, u.y, h.y);
  narrow_axis(c.z, u.z, h.z);
  const Real rise = maximum(at_high - at_low, constant<Real>(kTinySquare));
  const Real between = clamped(low - at_low * (high - low) / rise, low, high);
  return select(!less(at_low, zero), low, select(!less(zero, at_high), high, between));
}

template <ShapeKind kind, class Real>
BACKDRIVE_INLINE BoxNearest<Real> box_nearest(const Core<Real>& A, const Core<Real>& B, int which) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const Vec3<Real>& h = B.extents;
  BoxNearest<Real> m;
  m.s = zero, m.slope = one, m.free = MaskOf<Real>(false);
  if constexpr (kind == ShapeKind::capsule) {
    const Real target = constant<Real>(which);
    m.p = core_point(A, capsule_end<Real>(-1));
    m.w = core_direction(A, capsule_end<Real>(2));
    m.c = local_point(B.pose, m.p);
    m.u = transposed_times(B.pose.axes, m.w);
    const Real pull = constant<Real>(kSegmentPull) * dot(m.u, m.u);
    const Real near = zero_of_pull(m.c, m.u, h, pull, target);
    m.free = less(zero, near) && less(near, one);
    const Vec3<Real> x = m.c + m.u * near;
    const Vec3<Real> side{side_of(x.x, h.x), side_of(x.y, h.y), side_of(x.z, h.z)};
    // (1) once more with the faces known: exact, and what a dual number differentiates
    const Vec3<Real> active = times(times(side, side), m.u);
    m.slope = select(m.free, dot(active, m.u) + pull, one);
    const Real free = (pull * target - dot(active, m.c - times(side, h))) / m.slope;
    m.s = select(m.free, free, near);
  } else {
    m.p = A.pose.origin;
    m.w = m.u = zero3<Real>();
    m.c = local_point(B.pose, m.p);
  }
  m.x = m.c + m.u * m.s;
  const Vec3<Real> past{side_of(m.x.x, h.x), side_of(m.x.y, h.y), side_of(m.x.z, h.z)};
  m.inside = less(dot(past, past), constant<Real>(0.5));
  const auto depth = [&](const Real& x, const Real& half) __attribute__((always_inline)) {
    return half - maximum(x, -x);
  };
  const Real dx = depth(m.x.x, h.x), dy = depth(m.x.y, h.y), dz = depth(m.x.z, h.z);
  const auto sign = [&](const Real& x) __attribute__((always_inline)) {
    return select(less(x, zero), -one, one);
  };
  const MaskOf<Real> z_least = !less(dx, dz) && !less(dy, dz), y_least = !z_least && !less(dx, dy);
  const Vec3<Real> face{select(z_least || y_least, zero, sign(m.x.x)), select(y_least, sign(m.x.y), zero),
                        select(z_least, sign(m.x.z), zero)};
  m.side = choose(m.inside, face, past);
  m.d = times(times(m.side, m.side), m.x - times(m.side, h));
  m.n = choose(m.inside, m.side, direction(m.d));
  return m;
}

/// `kind`: sphere or capsule; `which` as there.
template <ShapeKind kind, class Real>
BACKDRIVE_HD ContactPoint<Real> round_on_box(const Core<Real>& A, const Core<Real>& B, int which) {
  const BoxNearest<Real> m = box_nearest<kind>(A, B, which);
  const Vec3<Real> point = m.x - (m.d + m.n * A.radius) * constant<Real>(0.5);
  return {dot(m.n, m.d) - A.radius, carried_point(B.pose, point), B.pose.axes * m.n};
}

template <ShapeKind kind, class Real>
BACKDRIVE_HD void adj_round_on_box(const Core<Real>& A, const Core<Real>& B, int which, const ContactPoint<Real>& bar,
                                   CoreBar<Real>& A_bar, CoreBar<Real>& B_bar) {
  const Real half = constant<Real>(0.5);
  const BoxNearest<Real> m = box_nearest<kind>(A, B, which);
  const Vec3<Real> local = m.x - (m.d + m.n * A.radius) * half;
  Vec3<Real> q_bar = zero3<Real>(), n_bar = zero3<Real>(), of_d = zero3<Real>();
  adj_carried_point(B.pose, carried_point(B.pose, local), bar.point, B_bar.pose, q_bar);
  adj_carried_direction(B.pose, B.pose.axes * m.n, bar.normal, B_bar.pose, n_bar);
  A_bar.radius -= bar.gap + half * dot(m.n, q_bar);
  n_bar -= q_bar * (half * A.radius);
  adj_direction(m.d, m.n, n_bar, of_d);
  const Vec3<Real> used = times(m.side, m.side);
  const Vec3<Real> d_bar = times(used, m.n * bar.gap - q_bar * half + only(!m.inside, of_d));
  Vec3<Real> c_bar = q_bar + d_bar, p_bar = zero3<Real>();
  B_bar.extents -= times(m.side, d_bar);
  if constexpr (kind == ShapeKind::capsule) {
    const Real pull = constant<Real>(kSegmentPull), target = constant<Real>(which);
    const Vec3<Real> active = only(!m.inside, times(used, m.u));
    const Real lambda = only(m.free, dot(m.u, c_bar) / m.slope);
    const Vec3<Real> u_bar = c_bar * m.s - (only(!m.inside, m.d) + active * m.s) * lambda -
                             m.u * (constant<Real>(2) * pull * (m.s - target) * lambda);
    c_bar -= active * lambda;
    B_bar.extents += times(m.side, active) * lambda;
    Vec3<Real> w_bar = zero3<Real>();
    adj_local_direction(B.pose, m.w, u_bar, B_bar.pose, w_bar);
    adj_core_direction(A, capsule_end<Real>(2), m.w, w_bar, A_bar);
  }
  adj_local_point(B.pose, m.p, c_bar, B_bar.pose, p_bar);
  const Vec3<Real> xi = kind == ShapeKind::capsule ? capsule_end<Real>(-1) : zero3<Real>();
  adj_core_point(A, xi, m.p, p_bar, A_bar);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
