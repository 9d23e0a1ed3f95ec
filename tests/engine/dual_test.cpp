// The rules of dual numbers, against derivatives known in closed form.
#include "engine/dual.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/sincos.h"

namespace backdrive {
namespace {

using D = Dual<double>;

void expect_dual(const D& x, double value, double dot) {
  EXPECT_DOUBLE_EQ(x.value, value);
  EXPECT_DOUBLE_EQ(x.dot, dot);
}

TEST(Dual, Rules) {
  const D a(3, 0.5), b(-2, 0.25);
  expect_dual(a + b, 1, 0.75);
  expect_dual(a - b, 5, 0.25);
  expect_dual(-a, -3, -0.5);
  expect_dual(a * b, -6, 0.5 * -2 + 3 * 0.25);
  expect_dual(a / b, -1.5, (0.5 * -2 - 3 * 0.25) / 4);
  expect_dual(2.0 * a, 6, 1);
  expect_dual(a - 1.0, 2, 0.5);
  expect_dual(1.0 / a, 1.0 / 3, -0.5 / 9);
}

TEST(Dual, CompoundAssignment) {
  D x(3, 1);
  x += D(1, 2);
  expect_dual(x, 4, 3);
  x -= D(2, 1);
  expect_dual(x, 2, 2);
  const D& same = x;  // under another name, as compilers warn of x /= x
  x *= same;
  expect_dual(x, 4, 8);
  x /= same;
  expect_dual(x, 1, 0);
}

TEST(Dual, Functions) {
  expect_dual(square_root(D(9, 3)), 3, 0.5);
  expect_dual(square_root(D(0, 3)), 0, 0);
  D s, c;
  sincos(D(0.7, 2), s, c);
  expect_dual(s, std::sin(0.7), 2 * std::cos(0.7));
  expect_dual(c, std::cos(0.7), -2 * std::sin(0.7));
}

TEST(Dual, BranchesOnTheValue) {
  expect_dual(minimum(D(1, 5), D(2, 7)), 1, 5);
  expect_dual(maximum(D(1, 5), D(2, 7)), 2, 7);
  expect_dual(clamped(D(3, 5), D(0), D(2, 7)), 2, 7);
  expect_dual(clamped(D(1, 5), D(0), D(2, 7)), 1, 5);
  EXPECT_TRUE(is_finite(D(1, 5)));
  EXPECT_FALSE(is_finite(D(INFINITY, 0)));
  EXPECT_FALSE(is_finite(D(NAN, 0)));
  EXPECT_EQ(dot_of(D(1, 5)), 5);
  EXPECT_EQ(dot_of(1.0), 0);
  EXPECT_EQ(RealTraits<D>::lanes, 1);
}

}  // namespace
}  // namespace backdrive
