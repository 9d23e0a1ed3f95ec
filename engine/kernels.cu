// The engine's own kernels.
#include "engine/cuda_launch.cuh"
#include "engine/exact_sum.cuh"
#include "engine/status.h"

BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::MergeStatus)

namespace backdrive {

template <class T>
inline const CudaKernel sum_kernel_of{typeid(Summands<T>), reinterpret_cast<const void*>(&sum_rows<T>), kSumThreads};

template <class T>
void sum_rows_on_cuda(DeviceBackend& backend, const Summands<T>& row, std::size_t row_stride, int rows, double* sums) {
  CudaLaunch launch(backend);
  sum_rows<T><<<rows, kSumThreads, 0, launch.stream()>>>(row, row_stride, sums);
  launch.check(sum_kernel_of<T>);
}

template void sum_rows_on_cuda(DeviceBackend&, const Summands<float>&, std::size_t, int, double*);
template void sum_rows_on_cuda(DeviceBackend&, const Summands<double>&, std::size_t, int, double*);

}  // namespace backdrive
