#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// Memory for the working set of one lane group.
#include <cstddef>

#include "engine/real.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// Of records of a working set: a GPU thread reads and writes four floats of one at once then, and what a step touches
/// of those of packs, which is not all, takes no more cache lines than it fills.
template <class Real>
constexpr std::size_t kRecordAlignment = RealTraits<Real>::lanes == 1 ? 16 : (alignof(Real) < 64 ? 64 : alignof(Real));

/// Hands out arrays from a block, one behind the other, or only counts their bytes when the block is null.
class Arena {
 public:
  BACKDRIVE_HD explicit Arena(std::byte* block) : block_(block) {}
  /// Uninitialised; aligned to 64 bytes as the block is.
  template <class X>
  BACKDRIVE_HD X* take(std::size_t count) {
    X* at = reinterpret_cast<X*>(block_ ? block_ + used_ : nullptr);
    used_ += (count * sizeof(X) + 63) / 64 * 64;
    return at;
  }
  BACKDRIVE_HD std::size_t used() const { return used_; }
  BACKDRIVE_HD bool only_counts() const { return !block_; }

 private:
  std::byte* block_;
  std::size_t used_ = 0;
};

}  // namespace backdrive::inline BACKDRIVE_KERNELS
