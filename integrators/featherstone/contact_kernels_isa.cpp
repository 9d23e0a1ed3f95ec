// As kernels_isa.cpp, for models in which something can touch something.
#include "engine/pack.h"

#include "integrators/featherstone/contact_kernels.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template struct ContactKernels<NativePack<float>>;
template struct ContactKernels<NativePack<double>>;

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
