#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// What kernels do for the sake of packs and compilers.
#include "engine/spatial.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// Values used after this are read from memory again. Without it GCC keeps all that it has seen in registers, runs out
/// of them, and spills to the stack what lies in the workspace already.
BACKDRIVE_INLINE void compiler_barrier() {
#if !defined(__CUDA_ARCH__)
  asm volatile("" ::: "memory");
#endif
}

/// A constant as the Real of a group of worlds.
template <class Real, class Const>
BACKDRIVE_INLINE Real broadcast(const Const& c) {
  if constexpr (std::is_same_v<Real, Const>) {
    return c;
  } else {
    return constant<Real>(0) + c;
  }
}
template <class Real, class Const>
BACKDRIVE_INLINE Vec3<Real> broadcast(const Vec3<Const>& c) {
  return {broadcast<Real>(c.x), broadcast<Real>(c.y), broadcast<Real>(c.z)};
}
template <class Real, class Const>
BACKDRIVE_INLINE Mat3<Real> broadcast(const Mat3<Const>& c) {
  return {broadcast<Real>(c.cx), broadcast<Real>(c.cy), broadcast<Real>(c.cz)};
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
