// Instantiates the kernels for devices, a thread per world. To see what they need of a thread:
//   nvcc -std=c++20 -arch=sm_90 -O3 --expt-relaxed-constexpr --extended-lambda -DBACKDRIVE_KERNELS=device
//        -Xptxas -v -cubin -I. -o kernels.cubin integrators/featherstone/device_kernels.cu
#include "integrators/featherstone/device_kernels.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <class F>
__global__ __launch_bounds__(128) void run(F f, int count) {
  const int world = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (world < count) f(world);
}

#define BACKDRIVE_INSTANTIATE(...) template __global__ void run(__VA_ARGS__, int);
BACKDRIVE_DEVICE_FUNCTORS(BACKDRIVE_INSTANTIATE)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
