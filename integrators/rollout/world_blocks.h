#pragma once
#include <cstddef>

namespace backdrive {

/// Working sets of worlds on a device, where arrays of a thread do not hold them: world w's begins at first + w·bytes.
/// Both are multiples of 64.
struct WorldBlocks {
  std::byte* first = nullptr;
  std::size_t bytes = 0;  ///< of one world
};

}  // namespace backdrive
