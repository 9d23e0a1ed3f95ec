#include "apps/devices.h"

#include "apps/console.h"
#include "apps/table.h"
#include "autodiff/tape/checkpoints.h"

namespace backdrive::app {

std::string device_description(const Device& device) {
  const DeviceInfo info = backend_of(device)->info();
  if (info.multiprocessors == 0) return info.name;
  return info.name + ", compute capability " + info.architecture + ", " + std::to_string(info.multiprocessors) +
         " multiprocessors with " + bytes_text(info.shared_bytes) + " shared memory, " + bytes_text(info.memory_bytes) +
         ", L2 " + bytes_text(info.cache_bytes);
}

std::string kernel_table(const Device& device) {
  Table table(
      {{"kernel", Table::Align::left}, {"registers"}, {"local bytes"}, {"spills"}, {"blocks/SM"}, {"occupancy"}});
  for (const KernelResources& k : backend_of(device)->kernels()) {
    table.add({k.name, std::to_string(k.registers), std::to_string(k.local_bytes), std::to_string(k.spill_bytes),
               std::to_string(k.blocks_per_multiprocessor), number(k.occupancy)});
  }
  return table.empty() ? "" : table.text();
}

nlohmann::json device_json(const Device& device) {
  const DeviceBackend& backend = *backend_of(device);
  const DeviceInfo info = backend.info();
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelResources& k : backend.kernels()) {
    kernels.push_back({{"name", k.name},
                       {"registers", k.registers},
                       {"local_bytes", k.local_bytes},
                       {"spill_bytes", k.spill_bytes},
                       {"shared_bytes", k.shared_bytes},
                       {"threads_per_block", k.threads_per_block},
                       {"blocks_per_multiprocessor", k.blocks_per_multiprocessor},
                       {"occupancy", k.occupancy}});
  }
  return {{"name", to_string(device)},
          {"description", info.name},
          {"compute_capability", info.architecture},
          {"multiprocessors", info.multiprocessors},
          {"threads_per_multiprocessor", info.threads_per_multiprocessor},
          {"memory_bytes", info.memory_bytes},
          {"l2_bytes", info.cache_bytes},
          {"shared_bytes_per_multiprocessor", info.shared_bytes},
          {"clock_khz", info.clock_khz},
          {"kernels", kernels}};
}

}  // namespace backdrive::app
