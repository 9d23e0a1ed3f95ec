#include "integrators/launch.h"

#include <algorithm>

#include "engine/launch.h"
#include "engine/parallel.h"
#include "engine/subnormals.h"
#include "integrators/featherstone/device_launch.h"
#include "integrators/kernels.h"
#include "integrators/rollout/block_launch.h"
#include "integrators/rollout/effort_kernel.h"
#include "integrators/semi_implicit/device_launch.h"

namespace backdrive {
namespace {

/// Runs a kernel of the launch's integrator over all lane groups, each thread with its own scratch.
template <class T, class Arguments>
void on_threads(typename KernelTable<T>::template Kernel<Arguments> KernelTable<T>::*kernel, const Arguments& arguments,
                int threads, Memory& memory) {
  const KernelTable<T>& table =
      kernels<T>(arguments.launch.bodies ? Integrator::semi_implicit : Integrator::featherstone);
  const int groups = (arguments.launch.worlds + table.lanes - 1) / table.lanes;
  const int parts = std::min(threads, groups);
  const std::size_t bytes = (table.scratch_bytes(arguments.launch) + 4095) / 4096 * 4096;
  const std::shared_ptr<std::byte> scratch = memory.allocate(bytes * parts);
  parallel_for(threads, groups, [&](Range range, int part) {
    const SubnormalsAsZero fast;
    (table.*kernel)(arguments, range.begin, range.end, scratch.get() + bytes * part);
  });
}

template <template <class> class Functor, class T>
void on_device(const EffortArguments<T>& arguments, Memory& memory) {
  if constexpr (std::is_same_v<T, Dual<double>>) {
    refuse_duals(memory);
  } else {
    launch_on_device(*memory.backend(), arguments.launch.worlds, Functor<T>{arguments});
  }
}

}  // namespace

template <class T>
void launch_rollout(const RolloutArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory) {
  if (!memory.backend()) return on_threads(&KernelTable<T>::rollout, arguments, threads, memory);
  arguments.launch.bodies ? semi_implicit::rollout_on_device(arguments, memory)
                          : featherstone::rollout_on_device(arguments, tree, memory);
}

template <class T>
void launch_rollout_adjoint(const RolloutAdjointArguments<T>& arguments, const TopologyView& tree, int threads,
                            Memory& memory) {
  if (!memory.backend()) return on_threads(&KernelTable<T>::rollout_adjoint, arguments, threads, memory);
  arguments.launch.bodies ? semi_implicit::rollout_adjoint_on_device(arguments, memory)
                          : featherstone::rollout_adjoint_on_device(arguments, tree, memory);
}

template <class T>
void launch_poses(const PoseArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory) {
  if (!memory.backend()) return on_threads(&KernelTable<T>::poses, arguments, threads, memory);
  arguments.launch.bodies ? semi_implicit::poses_on_device(arguments, memory)
                          : featherstone::poses_on_device(arguments, tree, memory);
}

template <class T>
void launch_poses_adjoint(const PoseArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory) {
  if (!memory.backend()) return on_threads(&KernelTable<T>::poses_adjoint, arguments, threads, memory);
  arguments.launch.bodies ? semi_implicit::poses_adjoint_on_device(arguments, memory)
                          : featherstone::poses_adjoint_on_device(arguments, tree, memory);
}

template <class T>
void launch_efforts(const EffortArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? on_device<EffortsWorld>(arguments, memory)
                   : on_threads(&KernelTable<T>::efforts, arguments, threads, memory);
}

template <class T>
void launch_efforts_adjoint(const EffortArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? on_device<EffortsAdjointWorld>(arguments, memory)
                   : on_threads(&KernelTable<T>::efforts_adjoint, arguments, threads, memory);
}

template <class T>
void launch_place(const PlaceArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? semi_implicit::place_on_device(arguments, memory)
                   : on_threads(&KernelTable<T>::place, arguments, threads, memory);
}

template <class T>
void launch_place_adjoint(const PlaceArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? semi_implicit::place_adjoint_on_device(arguments, memory)
                   : on_threads(&KernelTable<T>::place_adjoint, arguments, threads, memory);
}

template <class T>
void launch_step_jacobian(const StepJacobianArguments<T>& arguments, int threads, Memory& memory) {
  on_threads(&KernelTable<T>::step_jacobian, arguments, threads, memory);
}

template <class T>
void launch_dynamics(const DynamicsArguments<T>& arguments, int threads, Memory& memory) {
  on_threads(&KernelTable<T>::dynamics, arguments, threads, memory);
}

template <class T>
void launch_dynamics_adjoint(const DynamicsArguments<T>& arguments, int threads, Memory& memory) {
  on_threads(&KernelTable<T>::dynamics_adjoint, arguments, threads, memory);
}

bool needs_memory(const TopologyView& tree, bool steps_bodies) {
  return steps_bodies || featherstone::needs_blocks(tree);
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                 \
  template void launch_rollout<T>(const RolloutArguments<T>&, const TopologyView&, int, Memory&);                \
  template void launch_rollout_adjoint<T>(const RolloutAdjointArguments<T>&, const TopologyView&, int, Memory&); \
  template void launch_poses<T>(const PoseArguments<T>&, const TopologyView&, int, Memory&);                     \
  template void launch_poses_adjoint<T>(const PoseArguments<T>&, const TopologyView&, int, Memory&);             \
  template void launch_efforts<T>(const EffortArguments<T>&, int, Memory&);                                      \
  template void launch_efforts_adjoint<T>(const EffortArguments<T>&, int, Memory&);                              \
  template void launch_place<T>(const PlaceArguments<T>&, int, Memory&);                                         \
  template void launch_place_adjoint<T>(const PlaceArguments<T>&, int, Memory&);                                 \
  template void launch_dynamics<T>(const DynamicsArguments<T>&, int, Memory&);                                   \
  template void launch_dynamics_adjoint<T>(const DynamicsArguments<T>&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

template void launch_step_jacobian<float>(const StepJacobianArguments<float>&, int, Memory&);
template void launch_step_jacobian<double>(const StepJacobianArguments<double>&, int, Memory&);

}  // namespace backdrive
