#pragma once
// The functors that GPUs run, called on the host one world after the other, behind the interface of the pack kernels.
#include <vector>

#include "engine/memory.h"
#include "integrators/featherstone/device_kernels.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <template <class, int> class Functor, class T, class Arguments>
void call_functor(const Arguments& a, int begin, int end, std::byte*) {
  const TopologyView& t = a.launch.topology;
  visit_bucket(t, [&](auto links) {
    Functor<T, links()> functor{a};
    std::shared_ptr<std::byte> blocks;
    if (links() == kAnyLinks) {
      const std::size_t bytes = working_set_bytes<T>(t);
      blocks = default_memory().allocate(bytes * a.launch.worlds);
      functor.blocks = {blocks.get(), bytes};
    }
    for (int world = begin; world < end; ++world) functor(world);
  });
}

template <class T>
KernelTable<T> make_device_table() {
  return {1,
          [](const TopologyView&) -> std::size_t { return 64; },
          call_functor<RolloutWorld, T, RolloutArguments<T>>,
          call_functor<RolloutAdjointWorld, T, RolloutAdjointArguments<T>>,
          call_functor<PosesWorld, T, PoseArguments<T>>,
          call_functor<PosesAdjointWorld, T, PoseArguments<T>>};
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
