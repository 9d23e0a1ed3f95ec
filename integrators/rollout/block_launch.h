#pragma once
// Launches on devices of functors that carry arguments and, where arrays of a thread do not hold a world's working set,
// blocks of memory for them.
#include <memory>
#include <string>

#include "engine/error.h"
#include "engine/launch.h"
#include "engine/memory.h"

namespace backdrive {

/// A thread to each world of functor.arguments.launch, with a block of so many bytes each; 0: none.
template <class Functor>
void launch_in_blocks(Functor functor, std::size_t bytes, Memory& memory) {
  const int worlds = functor.arguments.launch.worlds;
  std::shared_ptr<std::byte> blocks;  // back to the pool at the end: what comes next comes after
  if (bytes > 0) blocks = memory.allocate(bytes * worlds);
  functor.blocks = {blocks.get(), bytes};
  launch_on_device(*memory.backend(), worlds, functor);
}

[[noreturn]] inline void refuse_duals(const Memory& memory) {
  usage_error("dual numbers on " + to_string(memory.device()) + ", expected buffers of the host");
}

}  // namespace backdrive
