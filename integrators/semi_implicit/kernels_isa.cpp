// Compiled once per instruction set, with BACKDRIVE_KERNELS its name and the matching -march.
#include "engine/pack.h"

#include "integrators/semi_implicit/kernel_table.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

extern const KernelTable<float> table_float;
extern const KernelTable<double> table_double;
const KernelTable<float> table_float = make_kernel_table<NativePack<float>>();
const KernelTable<double> table_double = make_kernel_table<NativePack<double>>();

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
