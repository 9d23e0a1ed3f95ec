// As kernel_instances.cpp, for models in which something can touch something.
#include "integrators/rollout/instance.h"

#include "integrators/contact/point_instances.h"
#include "integrators/semi_implicit/kernels.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

template struct ContactKernels<semi_implicit::Kernels<InstanceReal>>;

}  // namespace backdrive::inline BACKDRIVE_KERNELS
