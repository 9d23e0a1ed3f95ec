#pragma once
// Packs of worlds as number type: what real.h asks of one. To be included before anything else that includes real.h:
// templates find only functions declared before them. Apart from real.h, since few files need the second and a half
// that compilers take to read <experimental/simd>.
#include <experimental/simd>

#include "engine/real_traits.h"

namespace backdrive {

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
BACKDRIVE_INLINE stdx::simd<T, Abi> magnitude(const stdx::simd<T, Abi>& x) {
  return stdx::abs(x);
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

}  // namespace backdrive

#include "engine/real.h"  // after these: what it makes of them knows them then
