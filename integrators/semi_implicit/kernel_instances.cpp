// The kernels for one instruction set and number type (integrators/instance.h), but for those with contact.
#include "integrators/instance.h"

#include "integrators/semi_implicit/kernel_table.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

static const KernelTable<StorageOf<InstanceReal>> kTable = make_kernel_table<InstanceReal>();

template <>
const KernelTable<StorageOf<InstanceReal>>& table<StorageOf<InstanceReal>>() {
  return kTable;
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
