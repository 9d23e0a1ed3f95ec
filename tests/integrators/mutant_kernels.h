#pragma once
// A copy of the double kernels in which faults of the adjoint can be planted (see mutations.h). For one thread.
#include "integrators/featherstone/mutations.h"
#include "integrators/rollout/kernel_table.h"

namespace backdrive::test {

const KernelTable<double>& mutant_kernels();
/// The same copy as a GPU thread would run it.
const KernelTable<double>& mutant_device_table();
void plant(featherstone::Mutation mutation);

}  // namespace backdrive::test
