#pragma once
// The functors that GPUs run, called on the host one world after the other, behind the interface of the pack kernels.
#include "engine/memory.h"
#include "integrators/featherstone/device_kernels.h"
#include "integrators/rollout/kernel_table.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Calls functor(world) for worlds [begin, end), with memory where its bucket needs some.
template <class Functor>
void call_functor(Functor functor, int begin, int end) {
  const auto& launch = functor.arguments.launch;
  const std::size_t bytes = Functor::block_bytes(launch.topology);
  const std::shared_ptr<std::byte> blocks = default_memory().allocate(bytes * launch.worlds);
  functor.blocks = {blocks.get(), bytes};
  for (int world = begin; world < end; ++world) functor(world);
}

/// As the pack kernels are called. Functors without Parameters run where constants_bar is null.
template <class T>
KernelTable<T> make_device_table() {
  KernelTable<T> table{};
  table.lanes = 1;
  table.scratch_bytes = [](const Launch<T>&) -> std::size_t { return 64; };
  table.rollout = [](const RolloutArguments<T>& a, int begin, int end, std::byte*) {
    visit_rollout_bucket(a.launch.topology, [&](auto n) { call_functor(RolloutWorld<T, n()>{a}, begin, end); });
  };
  table.rollout_adjoint = [](const RolloutAdjointArguments<T>& a, int begin, int end, std::byte*) {
    visit_rollout_bucket(a.launch.topology, [&](auto n) {
      constexpr bool contact = n() == kContactLinks;
      contact || a.constants_bar ? call_functor(RolloutAdjointWorld<T, n(), true>{a}, begin, end)
                                 : call_functor(RolloutAdjointWorld<T, n(), contact>{a}, begin, end);
    });
  };
  table.poses = [](const PoseArguments<T>& a, int begin, int end, std::byte*) {
    visit_bucket(a.launch.topology, [&](auto n) { call_functor(PosesWorld<T, n()>{a}, begin, end); });
  };
  table.poses_adjoint = [](const PoseArguments<T>& a, int begin, int end, std::byte*) {
    visit_bucket(a.launch.topology, [&](auto n) {
      a.constants_bar ? call_functor(PosesAdjointWorld<T, n(), true>{a}, begin, end)
                      : call_functor(PosesAdjointWorld<T, n(), false>{a}, begin, end);
    });
  };
  return table;
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
