// A thread per world for each of the functors of parameter_kernel.h.
#include "integrators/featherstone/parameter_kernel.h"

namespace backdrive {

/// The functor stays where the launch put it: a copy of its own would cost every thread local memory.
template <class F>
__global__ void run(const __grid_constant__ F f, int count) {
  const int world = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (world < count) f(world);
}

#define BACKDRIVE_INSTANTIATE(F) template __global__ void run<F>(const __grid_constant__ F, int);
BACKDRIVE_PARAMETER_FUNCTORS(BACKDRIVE_INSTANTIATE)

}  // namespace backdrive
