#pragma once
// A material for tests of the law of contact by itself.
#include "integrators/contact/force_law.h"

namespace backdrive::test {

constexpr double kWidth = 1e-3;  ///< m: of the ramp on which the spring sets in

/// Without a second spring.
template <class Real>
contact::PairMaterial<Real> material(double k = 3e4, double w = kWidth, double alpha = 1, double mu = 0.8,
                                     double eps = 1e-4) {
  return {constant<Real>(k),  constant<Real>(w),   constant<Real>(alpha),
          constant<Real>(mu), constant<Real>(eps), constant<Real>(contact::kNoCore),
          constant<Real>(0),  constant<Real>(0)};
}

}  // namespace backdrive::test
