// Compiled with BACKDRIVE_KERNELS=device: the functors named here are those of device_kernels.cu.
#include "integrators/featherstone/device_launch.h"

#include "integrators/featherstone/device_kernels.h"
#include "integrators/rollout/block_launch.h"

namespace backdrive::featherstone {
namespace {

/// A thread to each world. `tree` is the functor's topology where the host reads it.
template <class Functor>
void launch(const Functor& functor, const TopologyView& tree, bool blocks, Memory& memory) {
  launch_in_blocks(functor, blocks ? Functor::block_bytes(tree) : 0, memory);
}

/// Calls visit(bucket), with the size of working sets that holds the tree; with kContactLinks where a rollout has
/// contact.
template <class T, bool Rollout, class Visit>
void with_bucket(const TopologyView& tree, Memory& memory, Visit&& visit) {
  if constexpr (std::is_same_v<T, Dual<double>>) {
    refuse_duals(memory);
  } else if constexpr (Rollout) {
    visit_rollout_bucket(tree, visit);
  } else {
    visit_bucket(tree, visit);
  }
}

}  // namespace

bool needs_blocks(const TopologyView& tree) {
  bool any = false;
  visit_rollout_bucket(tree, [&](auto n) { any = any || in_blocks(n()); });
  return any;
}

template <class T>
void rollout_on_device(const RolloutArguments<T>& arguments, const TopologyView& tree, Memory& memory) {
  with_bucket<T, true>(tree, memory,
                       [&](auto n) { launch(RolloutWorld<T, n()>{arguments}, tree, in_blocks(n()), memory); });
}

template <class T>
void rollout_adjoint_on_device(const RolloutAdjointArguments<T>& arguments, const TopologyView& tree, Memory& memory) {
  with_bucket<T, true>(tree, memory, [&](auto n) {
    constexpr bool contact = n() == kContactLinks;  // one functor, with or without parameters
    contact || arguments.constants_bar
        ? launch(RolloutAdjointWorld<T, n(), true>{arguments}, tree, in_blocks(n()), memory)
        : launch(RolloutAdjointWorld<T, n(), contact>{arguments}, tree, in_blocks(n()), memory);
  });
}

template <class T>
void poses_on_device(const PoseArguments<T>& arguments, const TopologyView& tree, Memory& memory) {
  with_bucket<T, false>(tree, memory,
                        [&](auto n) { launch(PosesWorld<T, n()>{arguments}, tree, in_blocks(n()), memory); });
}

template <class T>
void poses_adjoint_on_device(const PoseArguments<T>& arguments, const TopologyView& tree, Memory& memory) {
  with_bucket<T, false>(tree, memory, [&](auto n) {
    arguments.constants_bar ? launch(PosesAdjointWorld<T, n(), true>{arguments}, tree, in_blocks(n()), memory)
                            : launch(PosesAdjointWorld<T, n(), false>{arguments}, tree, in_blocks(n()), memory);
  });
}

#define BACKDRIVE_INSTANTIATE(T)                                                                               \
  template void rollout_on_device<T>(const RolloutArguments<T>&, const TopologyView&, Memory&);                \
  template void rollout_adjoint_on_device<T>(const RolloutAdjointArguments<T>&, const TopologyView&, Memory&); \
  template void poses_on_device<T>(const PoseArguments<T>&, const TopologyView&, Memory&);                     \
  template void poses_adjoint_on_device<T>(const PoseArguments<T>&, const TopologyView&, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive::featherstone
