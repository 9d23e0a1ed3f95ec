// The kernels with contact for dual numbers.
#include "integrators/semi_implicit/contact_kernels.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template struct ContactKernels<Dual<double>>;

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
