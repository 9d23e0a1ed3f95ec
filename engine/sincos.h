#pragma once
// Sine and cosine of a pack at once, without a branch on the data: the library's own fall back to scalar code when one
// lane is large, so that a world's bits would depend on its neighbours in the pack.
#include "engine/dual.h"
#include "engine/real.h"

namespace backdrive {

/// sin(x) and cos(x). Error below 2 ulp for |x| up to 8e3 (float; where the result is below 2^-12, ulp of that) and 2.5
/// ulp up to 1e6 (double); beyond, at most what an ulp of x costs.
/// Cody-Waite reduction to [-π/4, π/4] with π/2 in three parts, then minimax polynomials. Constants: Moshier, Cephes
/// (float); Sun, fdlibm k_sin.c and k_cos.c (double).
template <class Real>
BACKDRIVE_INLINE void sincos(const Real& x, Real& sine, Real& cosine) {
  using Scalar = ScalarOf<Real>;
  constexpr bool single = sizeof(Scalar) == 4;
  const auto c = [](double v) __attribute__((always_inline)) {
    return constant<Real>(v);
  };
  // Adding and subtracting 1.5·2^(mantissa bits - 1) rounds to the nearest integer.
  const Real magic = c(single ? 12582912.0 : 6755399441055744.0);
  const Real n = (x * c(0.63661977236758134308) + magic) - magic;
  const Real r = single ? ((x - n * c(1.5703125)) - n * c(4.837512969970703125e-4)) - n * c(7.549789948768648e-8)
                        : ((x - n * c(1.57079632673412561417e+00)) - n * c(6.07710050630396597660e-11)) -
                              n * c(2.02226624879595063154e-21);
  const Real z = r * r;
  Real s, k;
  if constexpr (single) {
    s = r + r * z * (c(-1.6666654611e-1) + z * (c(8.3321608736e-3) + z * c(-1.9515295891e-4)));
    k = (c(1) - c(0.5) * z) +
        z * z * (c(4.166664568298827e-2) + z * (c(-1.388731625493765e-3) + z * c(2.443315711809948e-5)));
  } else {
    s = r + r * z *
                (c(-1.66666666666666324348e-01) +
                 z * (c(8.33333333332248946124e-03) +
                      z * (c(-1.98412698298579493134e-04) +
                           z * (c(2.75573137070700676789e-06) +
                                z * (c(-2.50507602534068634195e-08) + z * c(1.58969099521155010221e-10))))));
    k = (c(1) - c(0.5) * z) +
        z * z *
            (c(4.16666666666666019037e-02) +
             z * (c(-1.38888888888741095749e-03) +
                  z * (c(2.48015872894767294178e-05) +
                       z * (c(-2.75573143513906633035e-07) +
                            z * (c(2.08757232129817482790e-09) + z * c(-1.13596475577881948265e-11))))));
  }
  // m = n mod 4 in {-2, ..., 2}: odd quadrants swap sine and cosine.
  const Real m = n - c(4) * ((n * c(0.25) + magic) - magic);
  const Real square = m * m;
  const auto odd = square == c(1);
  const auto half_turn = square == c(4);
  const Real a = select(odd, k, s);
  const Real b = select(odd, s, k);
  sine = select(half_turn || m == c(-1), -a, a);
  cosine = select(half_turn || m == c(1), -b, b);
}

template <class T>
BACKDRIVE_INLINE void sincos(const Dual<T>& x, Dual<T>& sine, Dual<T>& cosine) {
  T s, c;
  sincos(x.value, s, c);
  sine = {s, c * x.dot};
  cosine = {c, -s * x.dot};
}

}  // namespace backdrive
