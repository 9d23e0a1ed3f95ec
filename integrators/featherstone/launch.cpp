// Compiled with BACKDRIVE_KERNELS=device: the functors named here are those of device_kernels.cu.
#include "integrators/featherstone/launch.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/launch.h"
#include "engine/parallel.h"
#include "integrators/featherstone/device_kernels.h"

namespace backdrive {
namespace {

/// Runs a kernel over all lane groups, each thread with its own scratch.
template <class T, class Arguments>
void on_threads(void (*kernel)(const Arguments&, int, int, std::byte*), const Arguments& arguments, int threads,
                Memory& memory) {
  const KernelTable<T>& table = kernels<T>();
  const int groups = (arguments.launch.worlds + table.lanes - 1) / table.lanes;
  const int parts = std::min(threads, groups);
  const std::size_t bytes = (table.scratch_bytes(arguments.launch.topology) + 4095) / 4096 * 4096;
  const std::shared_ptr<std::byte> scratch = memory.allocate(bytes * parts);
  parallel_for(threads, groups,
               [&](Range range, int part) { kernel(arguments, range.begin, range.end, scratch.get() + bytes * part); });
}

/// A thread to each world, with the functor for the size of the tree.
template <template <class, int> class Functor, class T, class Arguments>
void on_device(const Arguments& arguments, Memory& memory) {
  if constexpr (std::is_same_v<T, Dual<double>>) {
    usage_error("dual numbers on " + to_string(memory.device()) + ", expected buffers of the host");
  } else {
    const TopologyView& t = arguments.launch.topology;
    featherstone::visit_bucket(t, [&](auto links) {
      Functor<T, links()> functor{arguments};
      std::shared_ptr<std::byte> blocks;  // back to the pool at the end: what comes next comes after
      if (links() == featherstone::kAnyLinks) {
        const std::size_t bytes = featherstone::working_set_bytes<T>(t);
        blocks = memory.allocate(bytes * arguments.launch.worlds);
        functor.blocks = {blocks.get(), bytes};
      }
      launch_on_device(*memory.backend(), arguments.launch.worlds, functor);
    });
  }
}

}  // namespace

template <class T>
void launch_rollout(const RolloutArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? on_device<featherstone::RolloutWorld, T>(arguments, memory)
                   : on_threads<T>(kernels<T>().rollout, arguments, threads, memory);
}
template <class T>
void launch_rollout_adjoint(const RolloutAdjointArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? on_device<featherstone::RolloutAdjointWorld, T>(arguments, memory)
                   : on_threads<T>(kernels<T>().rollout_adjoint, arguments, threads, memory);
}
template <class T>
void launch_poses(const PoseArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? on_device<featherstone::PosesWorld, T>(arguments, memory)
                   : on_threads<T>(kernels<T>().poses, arguments, threads, memory);
}
template <class T>
void launch_poses_adjoint(const PoseArguments<T>& arguments, int threads, Memory& memory) {
  memory.backend() ? on_device<featherstone::PosesAdjointWorld, T>(arguments, memory)
                   : on_threads<T>(kernels<T>().poses_adjoint, arguments, threads, memory);
}

#define BACKDRIVE_INSTANTIATE(T)                                                            \
  template void launch_rollout<T>(const RolloutArguments<T>&, int, Memory&);                \
  template void launch_rollout_adjoint<T>(const RolloutAdjointArguments<T>&, int, Memory&); \
  template void launch_poses<T>(const PoseArguments<T>&, int, Memory&);                     \
  template void launch_poses_adjoint<T>(const PoseArguments<T>&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
