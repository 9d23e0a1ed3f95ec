#include "engine/exact_sum.h"

#include "engine/cuda_backend.h"

namespace backdrive {

template <class T>
double order_independent_sum(const Summands<T>& summands) {
  const SumUnits units(summands.scale());
  return units.value(summands.sum(units));
}

#if BACKDRIVE_HAS_CUDA
/// In kernels.cu.
template <class T>
void sum_rows_on_cuda(DeviceBackend& backend, const Summands<T>& row, std::size_t row_stride, int rows, double* sums);
#endif

template <class T>
void sum_rows_on_device(DeviceBackend& backend, const Summands<T>& row, std::size_t row_stride, int rows,
                        double* sums) {
  if (backend.device().kind == DeviceKind::emulated) {
    static_cast<EmulatedBackend&>(backend).launch([=] {
      for (int r = 0; r < rows; ++r) {
        Summands<T> own = row;
        own.first += r * row_stride;
        sums[r] = order_independent_sum(own);
      }
    });
    return;
  }
#if BACKDRIVE_HAS_CUDA
  sum_rows_on_cuda(backend, row, row_stride, rows, sums);
#endif
}

#define BACKDRIVE_INSTANTIATE(T)                             \
  template double order_independent_sum(const Summands<T>&); \
  template void sum_rows_on_device(DeviceBackend&, const Summands<T>&, std::size_t, int, double*);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)

}  // namespace backdrive
