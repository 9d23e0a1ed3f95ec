#pragma once
// GPUs by the CUDA runtime. A build without CUDA has none, and says so.
#include "engine/built_devices.h"
#include "engine/device.h"

namespace backdrive {

/// 0 also where there is no driver; `why_none` then says what is missing.
int cuda_device_count(std::string* why_none);
DeviceBackend* cuda_backend(int index);

}  // namespace backdrive
