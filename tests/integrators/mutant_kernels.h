#pragma once
// A copy of the double kernels in which faults of the adjoint can be planted (tests/faults). For one thread.
#include "integrators/rollout/kernel_table.h"
#include "tests/faults/planted.h"

namespace backdrive::test {

const KernelTable<double>& mutant_kernels();
/// The same copy as a GPU thread would run it.
const KernelTable<double>& mutant_device_table();

}  // namespace backdrive::test
