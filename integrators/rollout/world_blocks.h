#pragma once
#include <cstddef>

#include "engine/real_traits.h"

namespace backdrive {

/// What a thread has of its own for a working set. In local memory the numbers of neighbouring threads lie side by
/// side, where those of blocks are kilobytes apart: steps with contact are up to three times as fast (docs/gpu.md).
constexpr std::size_t kOwnBlock = 32768;

/// Working sets of worlds on a device that their threads' own memory does not hold: world w's begins at first +
/// w·bytes. Both are multiples of 64.
struct WorldBlocks {
  std::byte* first = nullptr;
  std::size_t bytes = 0;  ///< of one world; 0: kOwnBlock holds it

  BACKDRIVE_HD std::byte* of(int world, std::byte* own) const { return bytes > 0 ? first + world * bytes : own; }
};

}  // namespace backdrive
