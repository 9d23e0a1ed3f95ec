#pragma once
// What .cu files need of a CUDA device: its stream, errors as exceptions, and the list of kernels.
#include <cuda_runtime.h>

#include <string>
#include <typeinfo>

#include "engine/device.h"

namespace backdrive {

/// Throws Error (device) that says what failed and why, unless `code` is success.
void check_cuda(cudaError_t code, const char* what);

/// Notes a kernel for DeviceBackend::kernels(), by the type of its function object.
struct CudaKernel {
  CudaKernel(const std::type_info& functor, const void* kernel, int threads, std::size_t arrays = 0);
  std::string name() const;
  const std::type_info& type;
  const void* function;
  int threads_per_block;
  std::size_t array_bytes;  ///< of a thread's own arrays
  CudaKernel* next;
};

/// One launch on a device: makes it current and counts.
class CudaLaunch {
 public:
  explicit CudaLaunch(DeviceBackend& backend);
  cudaStream_t stream() const { return stream_; }
  /// Throws Error (device) when the launch of `kernel` was refused.
  void check(const CudaKernel& kernel) const;

 private:
  cudaStream_t stream_;
};

}  // namespace backdrive
