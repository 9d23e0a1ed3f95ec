// As kernels_isa.cpp, for models in which something can touch something.
#include "engine/pack.h"

#include "integrators/semi_implicit/contact_kernels.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template struct ContactKernels<stdx::native_simd<float>>;
template struct ContactKernels<stdx::native_simd<double>>;

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
