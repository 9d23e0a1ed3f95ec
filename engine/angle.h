#pragma once
// The angle of a point in the plane, without a branch on the data.
#include "engine/dual.h"
#include "engine/real.h"

namespace backdrive {

/// atan(t) for t in [0, 1]; error below 2 ulp. Above tan(π/8) by atan t = π/4 + atan((t − 1)/(t + 1)); rational
/// approximation of Moshier, Cephes, atan.c.
template <class Real>
BACKDRIVE_INLINE Real arctangent_to_one(const Real& t) {
  const auto c = [](double v) __attribute__((always_inline)) {
    return constant<Real>(v);
  };
  const auto steep = t > c(0.41421356237309504880);
  const Real x = select(steep, (t - c(1)) / (t + c(1)), t), z = x * x;
  const Real p = c(-6.485021904942025371773e1) +
                 z * (c(-1.228866684490136173410e2) +
                      z * (c(-7.500855792314704667340e1) +
                           z * (c(-1.615753718733365076637e1) + z * c(-8.750608600031904122785e-1))));
  const Real q = c(1.945506571482613964425e2) +
                 z * (c(4.853903996359136964868e2) +
                      z * (c(4.328810604912902668951e2) +
                           z * (c(1.650270098316988542046e2) + z * (c(2.485846490142306297962e1) + z))));
  const Real r = x + x * (z * p / q);
  return select(steep, c(0.78539816339744830962) + r, r);
}

/// Angle of (x, y) from the x axis, in [−π, π]; 0 at the origin.
template <class Real>
BACKDRIVE_INLINE Real angle_of(const Real& x, const Real& y) {
  const Real zero = constant<Real>(0), pi = constant<Real>(3.14159265358979323846);
  const Real ax = select(x < zero, -x, x), ay = select(y < zero, -y, y);
  const auto steep = ay > ax;
  const Real larger = select(steep, ay, ax), smaller = select(steep, ax, ay);
  Real angle = arctangent_to_one(smaller / select(larger == zero, constant<Real>(1), larger));
  angle = select(steep, constant<Real>(0.5) * pi - angle, angle);
  angle = select(x < zero, pi - angle, angle);
  return select(y < zero, -angle, angle);
}
template <class T>
BACKDRIVE_INLINE Dual<T> angle_of(const Dual<T>& x, const Dual<T>& y) {
  return {angle_of(x.value, y.value), (x.value * y.dot - y.value * x.dot) / (x.value * x.value + y.value * y.value)};
}

/// The nearest whole number, for |x| below a fourth of what the mantissa holds; no derivative.
template <class Real>
BACKDRIVE_INLINE Real nearest_whole(const Real& x) {
  const Real magic = constant<Real>(sizeof(ScalarOf<Real>) == 4 ? 12582912.0 : 6755399441055744.0);
  return (Real(value_of(x)) + magic) - magic;
}

}  // namespace backdrive
