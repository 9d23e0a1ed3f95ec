// Compiled from the headers in which faults are planted, and in a namespace of its own, BACKDRIVE_KERNELS = mutant.
#include "tests/integrators/mutant_kernels.h"

#include "integrators/featherstone/kernels.h"
#include "tests/integrators/device_table.h"

namespace backdrive::test {

const KernelTable<double>& mutant_kernels() {
  static const KernelTable<double> table = make_kernel_table<featherstone::mutant::Kernels<double>>();
  return table;
}

const KernelTable<double>& mutant_device_table() {
  static const KernelTable<double> table = featherstone::mutant::make_device_table<double>();
  return table;
}

}  // namespace backdrive::test
