#pragma once
// The adjoint of a contact point by dual numbers: for pairs whose points have many a case and few of them touch.
//
// A pair says first, in plain numbers, what touches what (its features), and then gives the points of those in any
// number type. One dual evaluation for each number that a shape has, but for the place of the second: a rigid motion of
// both carries point and normal along and leaves the gap.
#include "engine/dual.h"
#include "integrators/contact/shapes.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Real>
BACKDRIVE_INLINE Vec3<ValueOf<Real>> values_of(const Vec3<Real>& v) {
  return {value_of(v.x), value_of(v.y), value_of(v.z)};
}
template <class Real>
BACKDRIVE_INLINE Shape<ValueOf<Real>> values_of(const Shape<Real>& s) {
  const Mat3<Real>& m = s.pose.axes;
  return {{{values_of(m.cx), values_of(m.cy), values_of(m.cz)}, values_of(s.pose.origin)}, values_of(s.scale)};
}

/// Plain numbers as numbers without derivative.
template <class N, class Value>
BACKDRIVE_INLINE Vec3<N> lifted(const Vec3<Value>& v) {
  return {N(v.x), N(v.y), N(v.z)};
}
template <class N, class Value>
BACKDRIVE_INLINE Shape<N> lifted(const Shape<Value>& s) {
  const Mat3<Value>& m = s.pose.axes;
  return {{{lifted<N>(m.cx), lifted<N>(m.cy), lifted<N>(m.cz)}, lifted<N>(s.pose.origin)}, lifted<N>(s.scale)};
}

template <class Real>
BACKDRIVE_INLINE Vec3<Dual<Real>> with_rates(const Vec3<Real>& v, const Vec3<Real>& dot) {
  return {{v.x, dot.x}, {v.y, dot.y}, {v.z, dot.z}};
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> rates_of(const Vec3<Dual<Real>>& v) {
  return {v.x.dot, v.y.dot, v.z.dot};
}

/// How many numbers say how large a shape is.
constexpr int size_numbers(ShapeKind kind) {
  return kind == ShapeKind::sphere ? 1 : kind == ShapeKind::capsule || kind == ShapeKind::cylinder ? 2 : 3;
}

/// A shape that changes by the number `which` of ShapeBar.
template <class Real>
BACKDRIVE_INLINE Shape<Dual<Real>> changing(const Shape<Real>& s, int which) {
  const auto unit = [&](int first) __attribute__((always_inline)) {
    return Vec3<Real>{constant<Real>(which == first), constant<Real>(which == first + 1),
                      constant<Real>(which == first + 2)};
  };
  const Vec3<Real> turn = unit(0);
  const Mat3<Real>& m = s.pose.axes;
  return {
      {{with_rates(m.cx, cross(turn, m.cx)), with_rates(m.cy, cross(turn, m.cy)), with_rates(m.cz, cross(turn, m.cz))},
       with_rates(s.pose.origin, plus_cross(unit(3), turn, s.pose.origin))},
      with_rates(s.scale, unit(6))};
}

template <class Real>
BACKDRIVE_INLINE Real rate_of(const ContactPoint<Real>& bar, const ContactPoint<Dual<Real>>& p) {
  return bar.gap * p.gap.dot + dot(bar.point, rates_of(p.point)) + dot(bar.normal, rates_of(p.normal));
}

/// Where any of a point's cotangents is not zero.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> says_something(const ContactPoint<Real>& bar) {
  const Real zero = constant<Real>(0);
  const auto other = [&](const Real& x) __attribute__((always_inline)) {
    return value_of(x) != value_of(zero);
  };
  const auto any_of = [&](const Vec3<Real>& v) __attribute__((always_inline)) {
    return other(v.x) || other(v.y) || other(v.z);
  };
  return other(bar.gap) || any_of(bar.point) || any_of(bar.normal);
}

/// point(a, b) of numbers of any type, with its cotangent `bar`. O(12) evaluations.
template <ShapeKind kind_a, ShapeKind kind_b, class Real, class Point>
BACKDRIVE_CALLED void adj_by_duals(const Shape<Real>& a, const Shape<Real>& b, const ContactPoint<Real>& bar,
                                   const Point& point, ShapeBar<Real>& a_bar, ShapeBar<Real>& b_bar) {
  const ContactPoint<Real> at = point(a, b);
  const MaskOf<Real> there = says_something(bar) && less(at.gap, constant<Real>(0.5 * kFarGap));
  if (!any(there)) return;
  using N = Dual<Real>;
  const Shape<N> still_a = lifted<N>(a), still_b = lifted<N>(b);
  Real of_a[9], of_b[3];
  for (int k = 0; k < 9; ++k) of_a[k] = constant<Real>(0);
  for (int k = 0; k < 3; ++k) of_b[k] = constant<Real>(0);
  for (int k = 0; k < 6 + size_numbers(kind_a); ++k) {
    of_a[k] = only(there, rate_of(bar, point(changing(a, k), still_b)));
  }
  for (int k = 0; k < size_numbers(kind_b); ++k) {
    of_b[k] = only(there, rate_of(bar, point(still_a, changing(b, 6 + k))));
  }
  const Spatial<Real> own{{of_a[0], of_a[1], of_a[2]}, {of_a[3], of_a[4], of_a[5]}};
  const Spatial<Real> both =
      only(there, Spatial<Real>{cross(at.point, bar.point) + cross(at.normal, bar.normal), bar.point});
  a_bar.pose += own;
  b_bar.pose += both - own;
  a_bar.scale += Vec3<Real>{of_a[6], of_a[7], of_a[8]};
  b_bar.scale += Vec3<Real>{of_b[0], of_b[1], of_b[2]};
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
