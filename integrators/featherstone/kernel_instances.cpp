// The kernels for one instruction set and number type (rollout/instance.h), but for those with contact.
#include "integrators/rollout/instance.h"

#include "integrators/featherstone/kernels.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

extern template struct ContactKernels<featherstone::Kernels<InstanceReal>>;

}  // namespace backdrive::inline BACKDRIVE_KERNELS

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

// A constant: nothing of an instruction set may run before it is known that the processor has it.
static constinit const KernelTable<StorageOf<InstanceReal>> kTable = make_kernel_table<Kernels<InstanceReal>>();

template <>
const KernelTable<StorageOf<InstanceReal>>& table<StorageOf<InstanceReal>>() {
  return kTable;
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
