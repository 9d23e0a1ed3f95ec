// Stands in for cuda_backend.cu in builds without CUDA.
#include "engine/cuda_backend.h"

namespace backdrive {

int cuda_device_count(std::string* why_none) {
  if (why_none) *why_none = "this build has no CUDA (scripts/setup --cuda brings a toolkit)";
  return 0;
}

DeviceBackend* cuda_backend(int) {
  return nullptr;
}

}  // namespace backdrive
