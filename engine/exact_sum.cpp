#include "engine/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace backdrive {
namespace {

__extension__ typedef __int128 Int128;

constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;

/// |x| = mantissa·2^exponent, from the bits; subnormals share the lowest exponent.
struct Decomposed {
  std::uint64_t mantissa;
  int exponent;
};

inline std::uint64_t magnitude_bits(double x) {
  return std::bit_cast<std::uint64_t>(x) & ~(std::uint64_t{1} << 63);
}

inline Decomposed decompose(std::uint64_t bits) {
  const int biased = static_cast<int>(bits >> 52);
  if (biased == 0) return {bits & kMantissa, -1074};
  return {(bits & kMantissa) | (kMantissa + 1), biased - 1075};
}

}  // namespace

template <class T>
double order_independent_sum(const T* values, std::size_t n, std::size_t stride) {
  // Magnitudes compare as their bits do.
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, magnitude_bits(values[i * stride]));
  if (largest >= magnitude_bits(std::numeric_limits<double>::infinity())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (largest == 0) return 0;

  // The largest mantissa (below 2^53) moves up by `head`; n of them stay below 2^126.
  const int head = 126 - std::bit_width(n) - 53;
  const int unit = decompose(largest).exponent - head;
  Int128 sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = values[i * stride];
    const Decomposed part = decompose(magnitude_bits(x));
    const int shift = part.exponent - unit;
    // Below one unit the value is cut towards zero, whatever its neighbours.
    const Int128 units = shift >= 0    ? static_cast<Int128>(part.mantissa) << shift
                         : shift > -64 ? static_cast<Int128>(part.mantissa >> -shift)
                                       : 0;
    sum += std::signbit(x) ? -units : units;
  }
  return std::ldexp(static_cast<double>(sum), unit);
}

template double order_independent_sum(const float*, std::size_t, std::size_t);
template double order_independent_sum(const double*, std::size_t, std::size_t);

}  // namespace backdrive
