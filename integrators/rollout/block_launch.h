#pragma once
// Launches on devices of functors that carry arguments and, where arrays of a thread do not hold a world's working set,
// blocks of memory for them.
#include <memory>
#include <string>

#include "engine/error.h"
#include "engine/launch.h"
#include "engine/memory.h"
#include "integrators/rollout/world_blocks.h"

namespace backdrive {

/// A thread to each world of functor.arguments.launch, whose working set takes so many bytes: a block, or what a thread
/// has of its own.
template <class Functor>
void launch_in_blocks(Functor functor, std::size_t bytes, Memory& memory) {
  const int worlds = functor.arguments.launch.worlds;
  std::shared_ptr<std::byte> blocks;  // back to the pool at the end: what comes next comes after
  if (bytes <= kOwnBlock) bytes = 0;
  if (bytes > 0) blocks = memory.allocate(bytes * worlds);
  functor.blocks = {blocks.get(), bytes};
  launch_on_device(*memory.backend(), worlds, functor);
}

[[noreturn]] inline void refuse_duals(const Memory& memory) {
  usage_error("dual numbers on " + to_string(memory.device()) + ", expected buffers of the host");
}

}  // namespace backdrive
