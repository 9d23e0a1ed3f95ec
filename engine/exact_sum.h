#pragma once
// Sums whose bits do not depend on the order of what is added, so that threads, packs, blocks and devices may share
// them as they like.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/real.h"
#include "engine/status.h"

namespace backdrive {

__extension__ typedef __int128 Int128;

/// First pass: what sets the unit of a sum. Scales of parts, joined in any order, are that of the whole.
struct SumScale {
  std::uint64_t largest = 0;  ///< bits of the largest magnitude: magnitudes compare as their bits do
  std::uint64_t count = 0;

  BACKDRIVE_HD void add(double x) { join({std::bit_cast<std::uint64_t>(x) & ~(std::uint64_t{1} << 63), 1}); }
  BACKDRIVE_HD void join(const SumScale& other) {
    if (largest < other.largest) largest = other.largest;
    count += other.count;
  }
};

/// Bits that it takes to write n, 0 for 0. std::bit_width is 0 for any number in what nvcc compiles for GPUs (13.0,
/// without a word): it is made of a builtin of the host's compiler.
BACKDRIVE_HD constexpr int bits_of(std::uint64_t n) {
  int bits = 0;
  for (; n != 0; n >>= 1) ++bits;
  return bits;
}

/// Second pass: numbers as integer multiples of a unit, which add up exactly, and the number that a sum of them is.
class SumUnits {
 public:
  /// The largest mantissa (below 2^53) moves up by `head`; `count` of them stay below 2^126.
  BACKDRIVE_HD explicit SumUnits(const SumScale& scale)
      : largest_(scale.largest), unit_(decompose(scale.largest).exponent - (126 - bits_of(scale.count) - 53)) {}

  /// Below one unit the value is cut towards zero, whatever its neighbours.
  BACKDRIVE_HD Int128 of(double x) const {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x), sign = std::uint64_t{1} << 63;
    const Decomposed part = decompose(bits & ~sign);
    const int shift = part.exponent - unit_;
    const Int128 units = shift >= 0    ? static_cast<Int128>(part.mantissa) << shift
                         : shift > -64 ? static_cast<Int128>(part.mantissa >> -shift)
                                       : 0;
    return bits & sign ? -units : units;
  }
  BACKDRIVE_HD double value(Int128 sum) const {
    using Limits = std::numeric_limits<double>;
    if (largest_ >= std::bit_cast<std::uint64_t>(Limits::infinity())) return Limits::quiet_NaN();
    return std::ldexp(static_cast<double>(sum), unit_);
  }

 private:
  static constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;

  /// |x| = mantissa·2^exponent, from the bits; subnormals share the lowest exponent.
  struct Decomposed {
    std::uint64_t mantissa;
    int exponent;
  };
  BACKDRIVE_HD static Decomposed decompose(std::uint64_t bits) {
    const int biased = static_cast<int>(bits >> 52);
    if (biased == 0) return {bits & kMantissa, -1074};
    return {(bits & kMantissa) | (kMantissa + 1), biased - 1075};
  }

  std::uint64_t largest_;
  int unit_;  ///< exponent of the unit
};

/// What is added up: first[0], first[stride], ..., `count` of them, without those of worlds that have stopped. Both
/// passes over every step-th, from `begin` on, O(count / step). T is float or double.
template <class T>
struct Summands {
  const T* first;
  std::size_t count;
  std::size_t stride = 1;
  const WorldStatus* status = nullptr;  ///< [count]; null: all take part

  BACKDRIVE_HD SumScale scale(std::size_t begin = 0, std::size_t step = 1) const {
    SumScale scale;
    each(begin, step, [&](double x) { scale.add(x); });
    return scale;
  }
  BACKDRIVE_HD Int128 sum(const SumUnits& units, std::size_t begin = 0, std::size_t step = 1) const {
    Int128 sum = 0;
    each(begin, step, [&](double x) { sum += units.of(x); });
    return sum;
  }

 private:
  template <class Visit>
  BACKDRIVE_HD void each(std::size_t begin, std::size_t step, Visit&& visit) const {
    for (std::size_t i = begin; i < count; i += step) {
      if (!status || !status[i].stopped()) visit(static_cast<double>(first[i * stride]));
    }
  }
};

/// Sum of n summands whose bits do not depend on their order: every value becomes an integer multiple of one unit, set
/// by the largest magnitude and by n alone, and integers add up exactly.
///
/// The error is at most half an ulp of the result plus n·u with u = 2^-(125 - bits)·max|value|,
/// bits = ⌈log2(n + 1)⌉: 2^-72 of the largest value for 2^26 of them. Zeros of either sign sum to
/// +0; a sum past the largest double is infinite; NaN when any value is infinite or NaN. Two
/// passes, no allocation, O(n). T is float or double.
template <class T>
double order_independent_sum(const Summands<T>& summands);
/// Of values[0], values[stride], ..., n of them.
template <class T>
double order_independent_sum(const T* values, std::size_t n, std::size_t stride = 1) {
  return order_independent_sum(Summands<T>{values, n, stride});
}

/// sums[r] of rows r < rows, of which `row` is the first and which lie `row_stride` numbers apart, on a device: all
/// pointers are of it. Returns before it is done.
template <class T>
void sum_rows_on_device(DeviceBackend& backend, const Summands<T>& row, std::size_t row_stride, int rows, double* sums);

extern template double order_independent_sum(const Summands<float>&);
extern template double order_independent_sum(const Summands<double>&);

}  // namespace backdrive
