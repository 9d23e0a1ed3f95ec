// As kernels_isa.cpp, for models in which something can touch something.
#include "engine/pack.h"

#include "integrators/semi_implicit/contact_kernels.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template struct ContactKernels<NativePack<float>>;
template struct ContactKernels<NativePack<double>>;

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
