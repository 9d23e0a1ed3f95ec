#include "engine/subnormals.h"

#include <gtest/gtest.h>

#include <limits>

namespace backdrive {
namespace {

/// Half of the smallest number that is no subnormal, when it is run.
template <class T>
T half_of_least() {
  volatile T least = std::numeric_limits<T>::min();
  return least / 2;
}

#if defined(__SSE2__)
TEST(SubnormalsAsZero, WhileItLives) {
  EXPECT_GT(half_of_least<float>(), 0);
  {
    const SubnormalsAsZero outer;
    EXPECT_EQ(half_of_least<float>(), 0);
    EXPECT_EQ(half_of_least<double>(), 0);
    volatile float subnormal = std::numeric_limits<float>::denorm_min();
    volatile float many = 1e30f;
    EXPECT_EQ(subnormal * many, 0);
    { const SubnormalsAsZero inner; }
    EXPECT_EQ(half_of_least<float>(), 0);
  }
  EXPECT_GT(half_of_least<float>(), 0);
  EXPECT_GT(half_of_least<double>(), 0);
}
#endif

}  // namespace
}  // namespace backdrive
