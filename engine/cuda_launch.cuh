#pragma once
// The CUDA side of launch.h, for .cu files.
#include "engine/cuda_stream.cuh"
#include "engine/launch.h"

namespace backdrive {

constexpr int kThreadsPerBlock = 128;

/// How many blocks of threads a functor wants on a multiprocessor at least, by which registers are allotted; 0: as the
/// compiler thinks best.
template <class F>
constexpr int least_blocks_of() {
  if constexpr (requires { F::least_blocks; }) {
    return F::least_blocks;
  } else {
    return 0;
  }
}

template <class F>
__global__ void __launch_bounds__(kThreadsPerBlock, least_blocks_of<F>())
    each_index(const __grid_constant__ F f, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) f(i);
}

/// What a functor says that its arrays take, in the units of a stack frame.
template <class F>
constexpr std::size_t array_bytes_of() {
  if constexpr (requires { F::array_bytes; }) {
    return (F::array_bytes + 7) / 8 * 8;
  } else {
    return 0;
  }
}

template <class F>
inline const CudaKernel cuda_kernel_of{typeid(F), reinterpret_cast<const void*>(&each_index<F>), kThreadsPerBlock,
                                       array_bytes_of<F>()};

template <class F>
void launch_cuda(DeviceBackend& backend, std::int64_t count, const F& f) {
  CudaLaunch launch(backend);
  const std::int64_t blocks = (count + kThreadsPerBlock - 1) / kThreadsPerBlock;
  each_index<F><<<static_cast<unsigned>(blocks), kThreadsPerBlock, 0, launch.stream()>>>(f, count);
  launch.check(cuda_kernel_of<F>);
}

#define BACKDRIVE_INSTANTIATE_LAUNCH(...) \
  template void backdrive::launch_cuda<__VA_ARGS__>(backdrive::DeviceBackend&, std::int64_t, const __VA_ARGS__&);

}  // namespace backdrive
