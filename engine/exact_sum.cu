// Order-independent sums of rows, for both number types.
#include "engine/exact_sum.cuh"

namespace backdrive {

template __global__ void sum_rows<float>(Summands<float>, std::size_t, double*);
template __global__ void sum_rows<double>(Summands<double>, std::size_t, double*);

}  // namespace backdrive
