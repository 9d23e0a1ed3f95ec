#pragma once
// Numbers that are too small for a full mantissa, below 1.2e-38 of float32 and 2.2e-308 of float64.
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace backdrive {

/// While it lives, this thread's arithmetic takes subnormal numbers for zero, as operands and as results, on processors
/// whose control register says so (x86-64). What comes to rest, or falls without turning, has products of small numbers
/// that are subnormal in float32, and an operation on one of them takes a hundred times as long as on another.
class SubnormalsAsZero {
 public:
  SubnormalsAsZero(const SubnormalsAsZero&) = delete;
  SubnormalsAsZero& operator=(const SubnormalsAsZero&) = delete;
#if defined(__SSE2__)
  SubnormalsAsZero() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kOperands | kResults);
  }
  ~SubnormalsAsZero() {
    _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kOperands = 1u << 6, kResults = 1u << 15;  // DAZ and FTZ of MXCSR
  unsigned before_;
#else
  SubnormalsAsZero() {}
  ~SubnormalsAsZero() {}
#endif
};

}  // namespace backdrive
