// Compiled with BACKDRIVE_KERNELS=device: the functors named here are those of device_kernels.cu.
#include "integrators/semi_implicit/device_launch.h"

#include "integrators/rollout/block_launch.h"
#include "integrators/semi_implicit/device_kernels.h"

namespace backdrive::semi_implicit {
namespace {

template <template <class> class Functor, class T, template <class> class Arguments>
void on_device(const Arguments<T>& arguments, Memory& memory) {
  if constexpr (std::is_same_v<T, Dual<double>>) {
    refuse_duals(memory);
  } else {
    const Functor<T> functor{{arguments, *arguments.launch.bodies}};
    launch_in_blocks(functor, functor.block_bytes(), memory);
  }
}

}  // namespace

template <class T>
void rollout_on_device(const RolloutArguments<T>& arguments, Memory& memory) {
  arguments.launch.topology.contact_pair_count > 0 ? on_device<ContactRolloutWorld>(arguments, memory)
                                                   : on_device<RolloutWorld>(arguments, memory);
}
template <class T>
void rollout_adjoint_on_device(const RolloutAdjointArguments<T>& arguments, Memory& memory) {
  arguments.launch.topology.contact_pair_count > 0 ? on_device<ContactRolloutAdjointWorld>(arguments, memory)
                                                   : on_device<RolloutAdjointWorld>(arguments, memory);
}
template <class T>
void poses_on_device(const PoseArguments<T>& arguments, Memory& memory) {
  on_device<PosesWorld>(arguments, memory);
}
template <class T>
void poses_adjoint_on_device(const PoseArguments<T>& arguments, Memory& memory) {
  on_device<PosesAdjointWorld>(arguments, memory);
}
template <class T>
void place_on_device(const PlaceArguments<T>& arguments, Memory& memory) {
  on_device<PlaceWorld>(arguments, memory);
}
template <class T>
void place_adjoint_on_device(const PlaceArguments<T>& arguments, Memory& memory) {
  on_device<PlaceAdjointWorld>(arguments, memory);
}

#define BACKDRIVE_INSTANTIATE(T)                                                          \
  template void rollout_on_device<T>(const RolloutArguments<T>&, Memory&);                \
  template void rollout_adjoint_on_device<T>(const RolloutAdjointArguments<T>&, Memory&); \
  template void poses_on_device<T>(const PoseArguments<T>&, Memory&);                     \
  template void poses_adjoint_on_device<T>(const PoseArguments<T>&, Memory&);             \
  template void place_on_device<T>(const PlaceArguments<T>&, Memory&);                    \
  template void place_adjoint_on_device<T>(const PlaceArguments<T>&, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive::semi_implicit
