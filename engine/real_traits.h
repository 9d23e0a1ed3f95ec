#pragma once
// How functions are declared that run on processors and GPUs, and what is known of a number type `Real`.

#if defined(__CUDACC__)
#define BACKDRIVE_HD __host__ __device__
#else
#define BACKDRIVE_HD
#endif
// Always inlined: the same header is compiled once per instruction set, and an out-of-line copy of one set must never
// be linked into the code of another. Builds with sanitizers have one set, and what their instrumentation makes of
// whole kernels in one function, compilers need ten minutes for: there, functions stay functions, as with dual numbers
// and the emulated device (BACKDRIVE_CALL_PARTS), for which nothing but the plain set is compiled.
#if defined(BACKDRIVE_SANITIZED) || defined(BACKDRIVE_CALL_PARTS)
#define BACKDRIVE_INLINE BACKDRIVE_HD inline
#define BACKDRIVE_PART BACKDRIVE_HD __attribute__((noinline))
#else
#define BACKDRIVE_INLINE BACKDRIVE_HD inline __attribute__((always_inline))
#define BACKDRIVE_PART BACKDRIVE_INLINE
#endif

// Larger than what is worth inlining, or seldom called.
#define BACKDRIVE_CALLED BACKDRIVE_HD __attribute__((noinline))

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

}  // namespace backdrive
