// The kernels for one instruction set and number type (rollout/instance.h), but for those with contact.
#include "integrators/rollout/instance.h"

#include "integrators/semi_implicit/kernels.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

extern template struct ContactKernels<semi_implicit::Kernels<InstanceReal>>;

}  // namespace backdrive::inline BACKDRIVE_KERNELS

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

// A constant: nothing of an instruction set may run before it is known that the processor has it.
static constinit const KernelTable<StorageOf<InstanceReal>> kTable = make_kernel_table<Kernels<InstanceReal>>();

template <>
const KernelTable<StorageOf<InstanceReal>>& table<StorageOf<InstanceReal>>() {
  return kTable;
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
