#pragma once
// Order-independent sums on a device: the same bits as order_independent_sum of the same numbers.
#include "engine/exact_sum.h"

namespace backdrive {

/// Threads of a block of sum_rows.
constexpr int kSumThreads = 256;

/// Joins what the threads of a block hold, by halves: afterwards the first thread's slot has it all.
template <class X, class Join>
__device__ void join_block(X* slots, const X& own, const Join& join) {
  slots[threadIdx.x] = own;
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) join(slots[threadIdx.x], slots[threadIdx.x + half]);
  }
  __syncthreads();
}

/// sums[r] of row r, a block to each row, kSumThreads threads to a block: grid (rows), block (kSumThreads). `row` is
/// the first; others lie `row_stride` numbers apart. All pointers are of the device. T is float or double.
template <class T>
__global__ void __launch_bounds__(kSumThreads) sum_rows(Summands<T> row, std::size_t row_stride, double* sums) {
  __shared__ SumScale scales[kSumThreads];
  __shared__ Int128 parts[kSumThreads];
  row.first += blockIdx.x * row_stride;
  join_block(scales, row.scale(threadIdx.x, kSumThreads), [](SumScale& to, const SumScale& from) { to.join(from); });
  const SumUnits units(scales[0]);
  join_block(parts, row.sum(units, threadIdx.x, kSumThreads), [](Int128& to, const Int128& from) { to += from; });
  if (threadIdx.x == 0) sums[blockIdx.x] = units.value(parts[0]);
}

}  // namespace backdrive
