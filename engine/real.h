#pragma once
// What an algorithm may ask of its number type `Real`: float, double, a pack of worlds, or a dual number.
// Algorithms are written once against these functions; masks are bool for scalars and a lane mask for packs (pack.h).
#include <cmath>
#include <cstddef>
#include <limits>

#include "engine/real_traits.h"

namespace backdrive {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Real>
using StorageOf = typename RealTraits<Real>::Storage;
template <class Real>
using ScalarOf = typename RealTraits<Real>::Scalar;

template <class Real>
BACKDRIVE_INLINE Real constant(double value) {
  return Real(static_cast<ScalarOf<Real>>(value));
}

template <class Real>
BACKDRIVE_INLINE Real select(bool mask, const Real& yes, const Real& no) {
  return mask ? yes : no;
}

BACKDRIVE_INLINE bool any(bool mask) {
  return mask;
}
BACKDRIVE_INLINE bool lane(bool mask, int) {
  return mask;
}

BACKDRIVE_INLINE float square_root(float x) {
  return std::sqrt(x);
}
BACKDRIVE_INLINE double square_root(double x) {
  return std::sqrt(x);
}

/// The part that decides a branch: a dual number branches on its value.
template <class Real>
BACKDRIVE_INLINE const Real& value_of(const Real& x) {
  return x;
}

/// True where x is neither infinite nor NaN: only then is x - x zero.
template <class Real>
BACKDRIVE_INLINE auto is_finite(const Real& x) {
  return value_of(x) - value_of(x) == value_of(constant<Real>(0));
}

/// Reads the Real of a group of worlds; `from` is aligned to the pack.
template <class Real>
BACKDRIVE_INLINE Real load(const StorageOf<Real>* from) {
  if constexpr (RealTraits<Real>::lanes == 1) {
    return *from;
  } else {
    return Real::load(from);
  }
}
template <class Real>
BACKDRIVE_INLINE void store(StorageOf<Real>* to, const Real& x) {
  if constexpr (RealTraits<Real>::lanes == 1) {
    *to = x;
  } else {
    x.store(to);
  }
}

template <class Real>
BACKDRIVE_INLINE Real minimum(const Real& a, const Real& b) {
  return select(value_of(b) < value_of(a), b, a);
}
template <class Real>
BACKDRIVE_INLINE Real maximum(const Real& a, const Real& b) {
  return select(value_of(a) < value_of(b), b, a);
}
/// NaN stays NaN. Not called clamp: of packs the standard library has one of that name, found first, that makes it
/// `upper`.
template <class Real>
BACKDRIVE_INLINE Real clamped(const Real& x, const Real& lower, const Real& upper) {
  return minimum(maximum(x, lower), upper);
}

}  // namespace backdrive
