#pragma once
// What an algorithm may ask of its number type `Real`: float, double, a pack of worlds, or a dual number.
// Algorithms are written once against these functions; masks are bool for scalars and a lane mask for packs.
#include <cmath>
#include <cstddef>
#if !defined(__CUDACC__)  // a GPU thread has one world, and nvcc need not read packs
#include <experimental/simd>
#endif

#if defined(__CUDACC__)
#define BACKDRIVE_HD __host__ __device__
#else
#define BACKDRIVE_HD
#endif
// Always inlined: the same header is compiled once per instruction set, and an out-of-line copy of one set must never
// be linked into the code of another. Builds with sanitizers have one set, and what their instrumentation makes of whole
// kernels in one function, compilers need ten minutes for: there, functions stay functions.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BACKDRIVE_INLINE BACKDRIVE_HD inline
#define BACKDRIVE_PART BACKDRIVE_HD __attribute__((noinline))
#else
#define BACKDRIVE_INLINE BACKDRIVE_HD inline __attribute__((always_inline))
#define BACKDRIVE_PART BACKDRIVE_INLINE
#endif

namespace backdrive {

/// Storage is what lies in a buffer, Scalar what a literal is rounded to, lanes how many worlds one Real carries.
template <class Real>
struct RealTraits;

template <>
struct RealTraits<float> {
  using Storage = float;
  using Scalar = float;
  static constexpr int lanes = 1;
};
template <>
struct RealTraits<double> {
  using Storage = double;
  using Scalar = double;
  static constexpr int lanes = 1;
};
#if !defined(__CUDACC__)
namespace stdx = std::experimental;

template <class T, class Abi>
struct RealTraits<stdx::simd<T, Abi>> {
  using Storage = T;
  using Scalar = T;
  static constexpr int lanes = static_cast<int>(stdx::simd<T, Abi>::size());
  static constexpr auto aligned = stdx::vector_aligned;
};

template <class T, class Abi>
BACKDRIVE_INLINE stdx::simd<T, Abi> select(const stdx::simd_mask<T, Abi>& mask, stdx::simd<T, Abi> yes,
                                           const stdx::simd<T, Abi>& no) {
  stdx::where(!mask, yes) = no;
  return yes;
}
template <class T, class Abi>
BACKDRIVE_INLINE bool any(const stdx::simd_mask<T, Abi>& mask) {
  return stdx::any_of(mask);
}
template <class T, class Abi>
BACKDRIVE_INLINE bool lane(const stdx::simd_mask<T, Abi>& mask, int i) {
  return mask[i];
}
template <class T, class Abi>
BACKDRIVE_INLINE stdx::simd<T, Abi> square_root(const stdx::simd<T, Abi>& x) {
  return stdx::sqrt(x);
}
#endif

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
    return Real(from, RealTraits<Real>::aligned);
  }
}
template <class Real>
BACKDRIVE_INLINE void store(StorageOf<Real>* to, const Real& x) {
  if constexpr (RealTraits<Real>::lanes == 1) {
    *to = x;
  } else {
    x.copy_to(to, RealTraits<Real>::aligned);
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
template <class Real>
BACKDRIVE_INLINE Real clamp(const Real& x, const Real& lower, const Real& upper) {
  return minimum(maximum(x, lower), upper);
}

}  // namespace backdrive
