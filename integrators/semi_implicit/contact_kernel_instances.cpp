// As kernel_instances.cpp, for models in which something can touch something.
#include "integrators/instance.h"

#include "integrators/contact/point_instances.h"
#include "integrators/semi_implicit/contact_kernels.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template struct ContactKernels<InstanceReal>;

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
