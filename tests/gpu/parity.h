#pragma once
// How near a device has to come to the processor's packs.
//
// Both run the same source; they differ in which products are fused into sums and in the order of a few of them, so
// that numbers differ by rounding, which a motion carries on: the bounds are those that the project promises for smooth
// motions of a few steps, 1e-12 in float64 and 1e-5 in float32, relative to the largest number of each kind. Where
// rounding alone goes further (measured: the chain of 70 links, in float32 2.6e-5 from the processor in position and
// 8.7e-4 in the gradient of controls, 1.9e-12 of the latter in float64; and the gradient of controls of the tree of 50,
// 2.3e-5), a device may be three times as far from the processor as float32 is from float64, counted in ulps.
#include <algorithm>
#include <limits>

#include "models/parameter_list.h"
#include "tests/gpu/devices.h"

namespace backdrive::test {

template <class T>
constexpr double kBound = sizeof(T) == 4 ? 1e-5 : 1e-12;
constexpr double kRoundingShare = 3;

template <class T>
Buffer<double> in_double(const Buffer<T>& from) {
  Buffer<double> to(from.rows(), from.worlds());
  for (int r = 0; r < from.rows(); ++r) {
    for (int w = 0; w < from.worlds(); ++w) to.set(r, w, static_cast<double>(from(r, w)));
  }
  return to;
}

/// The bound, or more where T itself is further from `exact`.
template <class T>
double bound_for(double bound, const Buffer<T>& here, const Buffer<double>& exact) {
  return std::max(bound, kRoundingShare * relative_error(in_double(here), exact));
}

/// That of a gradient. How far rounding alone carries one of T: float32's distance from float64, in ulps of T.
template <class T>
double gradient_bound(double float_error, double share = kRoundingShare) {
  const double ulps = std::numeric_limits<T>::epsilon() / double{std::numeric_limits<float>::epsilon()};
  return std::max(kBound<T>, share * ulps * float_error);
}

inline double parameter_error(const Parameters& a, const Parameters& b) {
  double error = 0, size = 0;
  for (const Field& field : fields()) {
    const Parameter &x = field.in(a), &y = field.in(b);
    for (int w = 0; w < x.worlds(); ++w) {
      for (int item = 0; item < x.items(); ++item) {
        for (int c = 0; c < x.components(); ++c) {
          error = std::max(error, std::abs(x(item, c, w) - y(item, c, w)));
          size = std::max(size, std::abs(y(item, c, w)));
        }
      }
    }
  }
  EXPECT_GT(size, 0);
  return error / size;
}

}  // namespace backdrive::test
