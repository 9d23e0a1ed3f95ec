// Compiled with BACKDRIVE_KERNELS=device: the functors named here are those of device_kernels.cu.
#include "integrators/featherstone/launch.h"

#include <algorithm>

#include "engine/parallel.h"
#include "integrators/block_launch.h"
#include "integrators/featherstone/device_kernels.h"
#include "integrators/semi_implicit/kernels.h"
#include "integrators/semi_implicit/launch.h"

namespace backdrive {
namespace {

/// Runs a kernel of the table over all lane groups, each thread with its own scratch.
template <class Table, class Arguments>
void on_threads(const Table& table, void (*kernel)(const Arguments&, int, int, std::byte*), const Arguments& arguments,
                int threads, Memory& memory) {
  const int groups = (arguments.launch.worlds + table.lanes - 1) / table.lanes;
  const int parts = std::min(threads, groups);
  const std::size_t bytes = (table.scratch_bytes(arguments.launch) + 4095) / 4096 * 4096;
  const std::shared_ptr<std::byte> scratch = memory.allocate(bytes * parts);
  parallel_for(threads, groups,
               [&](Range range, int part) { kernel(arguments, range.begin, range.end, scratch.get() + bytes * part); });
}

/// Calls visit with the table of the integrator that the launch is of.
template <class T, class Visit>
void with_table(const Launch<T>& launch, Visit&& visit) {
  if (launch.bodies) return visit(semi_implicit::kernels<T>());
  visit(kernels<T>());
}

/// A thread to each world. `tree` is the functor's topology where the host reads it.
template <class Functor>
void on_device(const Functor& functor, const TopologyView& tree, bool in_blocks, Memory& memory) {
  launch_in_blocks(functor, in_blocks ? Functor::block_bytes(tree) : 0, memory);
}

/// Calls visit(bucket) where `memory` is of a device, with the size of working sets that holds the tree.
template <class T, class Visit>
void with_bucket(const TopologyView& tree, Memory& memory, Visit&& visit) {
  if constexpr (std::is_same_v<T, Dual<double>>) {
    refuse_duals(memory);
  } else {
    featherstone::visit_bucket(tree, visit);
  }
}
template <class T, class Visit>
void with_rollout_bucket(const TopologyView& tree, Memory& memory, Visit&& visit) {
  if constexpr (std::is_same_v<T, Dual<double>>) {
    with_bucket<T>(tree, memory, visit);
  } else {
    featherstone::visit_rollout_bucket(tree, visit);
  }
}

}  // namespace

bool needs_memory(const TopologyView& tree, bool steps_bodies) {
  bool any = steps_bodies;
  featherstone::visit_rollout_bucket(tree, [&](auto n) { any = any || featherstone::in_blocks(n()); });
  return any;
}

template <class T>
void launch_rollout(const RolloutArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory) {
  if (!memory.backend()) {
    return with_table(arguments.launch,
                      [&](const auto& table) { on_threads(table, table.rollout, arguments, threads, memory); });
  }
  if (arguments.launch.bodies) return semi_implicit::rollout_on_device(arguments, memory);
  with_rollout_bucket<T>(tree, memory, [&](auto n) {
    on_device(featherstone::RolloutWorld<T, n()>{arguments}, tree, featherstone::in_blocks(n()), memory);
  });
}

template <class T>
void launch_rollout_adjoint(const RolloutAdjointArguments<T>& arguments, const TopologyView& tree, int threads,
                            Memory& memory) {
  if (!memory.backend()) {
    return with_table(arguments.launch,
                      [&](const auto& table) { on_threads(table, table.rollout_adjoint, arguments, threads, memory); });
  }
  if (arguments.launch.bodies) return semi_implicit::rollout_adjoint_on_device(arguments, memory);
  with_rollout_bucket<T>(tree, memory, [&](auto n) {
    constexpr bool contact = n() == featherstone::kContactLinks;  // one functor, with or without parameters
    constexpr bool in_blocks = featherstone::in_blocks(n());
    contact || arguments.constants_bar
        ? on_device(featherstone::RolloutAdjointWorld<T, n(), true>{arguments}, tree, in_blocks, memory)
        : on_device(featherstone::RolloutAdjointWorld<T, n(), contact>{arguments}, tree, in_blocks, memory);
  });
}

template <class T>
void launch_poses(const PoseArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory) {
  if (!memory.backend()) {
    return with_table(arguments.launch,
                      [&](const auto& table) { on_threads(table, table.poses, arguments, threads, memory); });
  }
  if (arguments.launch.bodies) return semi_implicit::poses_on_device(arguments, memory);
  with_bucket<T>(tree, memory, [&](auto n) {
    on_device(featherstone::PosesWorld<T, n()>{arguments}, tree, n() == featherstone::kAnyLinks, memory);
  });
}

template <class T>
void launch_poses_adjoint(const PoseArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory) {
  if (!memory.backend()) {
    return with_table(arguments.launch,
                      [&](const auto& table) { on_threads(table, table.poses_adjoint, arguments, threads, memory); });
  }
  if (arguments.launch.bodies) return semi_implicit::poses_adjoint_on_device(arguments, memory);
  with_bucket<T>(tree, memory, [&](auto n) {
    const bool in_blocks = n() == featherstone::kAnyLinks;
    arguments.constants_bar
        ? on_device(featherstone::PosesAdjointWorld<T, n(), true>{arguments}, tree, in_blocks, memory)
        : on_device(featherstone::PosesAdjointWorld<T, n(), false>{arguments}, tree, in_blocks, memory);
  });
}

template <class T>
void launch_place(const semi_implicit::PlaceArguments<T>& arguments, int threads, Memory& memory) {
  if (memory.backend()) return semi_implicit::place_on_device(arguments, memory);
  const auto& table = semi_implicit::kernels<T>();
  on_threads(table, table.place, arguments, threads, memory);
}

template <class T>
void launch_place_adjoint(const semi_implicit::PlaceArguments<T>& arguments, int threads, Memory& memory) {
  if (memory.backend()) return semi_implicit::place_adjoint_on_device(arguments, memory);
  const auto& table = semi_implicit::kernels<T>();
  on_threads(table, table.place_adjoint, arguments, threads, memory);
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                 \
  template void launch_rollout<T>(const RolloutArguments<T>&, const TopologyView&, int, Memory&);                \
  template void launch_rollout_adjoint<T>(const RolloutAdjointArguments<T>&, const TopologyView&, int, Memory&); \
  template void launch_poses<T>(const PoseArguments<T>&, const TopologyView&, int, Memory&);                     \
  template void launch_poses_adjoint<T>(const PoseArguments<T>&, const TopologyView&, int, Memory&);             \
  template void launch_place<T>(const semi_implicit::PlaceArguments<T>&, int, Memory&);                          \
  template void launch_place_adjoint<T>(const semi_implicit::PlaceArguments<T>&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
