#pragma once
#include <cstddef>

namespace backdrive {

/// Sum of values[0], values[stride], ..., n of them, whose bits do not depend on their order: every
/// value becomes an integer multiple of one unit, set by the largest magnitude and by n alone, and
/// integers add up exactly.
///
/// The error is at most half an ulp of the result plus n·u with u = 2^-(125 - bits)·max|value|,
/// bits = ⌈log2(n + 1)⌉: 2^-72 of the largest value for 2^26 of them. Zeros of either sign sum to
/// +0; a sum past the largest double is infinite; NaN when any value is infinite or NaN. Two
/// passes, no allocation, O(n). T is float or double.
template <class T>
double order_independent_sum(const T* values, std::size_t n, std::size_t stride = 1);

extern template double order_independent_sum(const float*, std::size_t, std::size_t);
extern template double order_independent_sum(const double*, std::size_t, std::size_t);

}  // namespace backdrive
