// The kernels with contact for dual numbers.
#include "integrators/featherstone/contact_kernels.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template struct ContactKernels<Dual<double>>;

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
