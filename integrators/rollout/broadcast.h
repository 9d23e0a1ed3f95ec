#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// What kernels do for the sake of packs and compilers.
#include "engine/spatial.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// Values used after this are read from memory again. Without it GCC keeps all that it has seen in registers, runs out
/// of them, and spills to the stack what lies in the workspace already.
BACKDRIVE_INLINE void read_again() {
#if !defined(__CUDA_ARCH__)
  asm volatile("" ::: "memory");
#endif
}

/// A constant as the Real of a group of worlds.
template <class Real, class Const>
BACKDRIVE_INLINE Real in_packs(const Const& c) {
  if constexpr (std::is_same_v<Real, Const>) {
    return c;
  } else {
    return constant<Real>(0) + c;
  }
}
template <class Real, class Const>
BACKDRIVE_INLINE Vec3<Real> in_packs(const Vec3<Const>& c) {
  return {in_packs<Real>(c.x), in_packs<Real>(c.y), in_packs<Real>(c.z)};
}
template <class Real, class Const>
BACKDRIVE_INLINE Mat3<Real> in_packs(const Mat3<Const>& c) {
  return {in_packs<Real>(c.cx), in_packs<Real>(c.cy), in_packs<Real>(c.cz)};
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
