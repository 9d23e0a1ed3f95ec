#pragma once
// The small system of couplings, docs/theory.md (15), whichever integrator makes its matrix: one row a coupling. It
// needs no pivots, since it is a positive definite matrix whose rows are scaled.
#include "engine/real.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// Elimination of the rows in place: the pivots' inverses on the diagonal. O(n³).
template <class Real>
BACKDRIVE_HD void eliminate(Real* matrix, int n) {
  for (int k = 0; k < n; ++k) {
    const Real inverse = constant<Real>(1) / matrix[k * n + k];
    matrix[k * n + k] = inverse;
    for (int i = k + 1; i < n; ++i) {
      const Real factor = matrix[i * n + k] * inverse;
      matrix[i * n + k] = factor;
      for (int j = k + 1; j < n; ++j) matrix[i * n + j] -= factor * matrix[k * n + j];
    }
  }
}

/// From the right-hand side in f(0), ..., f(n − 1) to the solution there, by the eliminated matrix. O(n²).
template <class Real, class Row>
BACKDRIVE_INLINE void substitute(const Real* matrix, int n, const Row& f) {
  for (int i = 1; i < n; ++i) {
    for (int j = 0; j < i; ++j) f(i) -= matrix[i * n + j] * f(j);
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int j = i + 1; j < n; ++j) f(i) -= matrix[i * n + j] * f(j);
    f(i) = f(i) * matrix[i * n + i];
  }
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
