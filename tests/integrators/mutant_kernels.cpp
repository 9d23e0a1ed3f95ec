// Compiled with BACKDRIVE_MUTATIONS and in its own namespace, BACKDRIVE_KERNELS = mutant.
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

void plant(featherstone::Mutation mutation) {
  featherstone::mutant::planted_mutation = mutation;
}

}  // namespace backdrive::test
