#include "engine/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace backdrive {
namespace {

std::uint64_t bits(double x) {
  return std::bit_cast<std::uint64_t>(x);
}

double sum(const std::vector<double>& values) {
  return order_independent_sum(values.data(), values.size());
}

/// Values of either sign whose exponents spread over `spread` powers of two.
std::vector<double> scattered(size_t n, int spread, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-spread, 0);
  std::vector<double> values(n);
  for (double& x : values) x = std::ldexp(mantissa(random), exponent(random));
  return values;
}

TEST(ExactSum, BitsDoNotDependOnTheOrder) {
  for (int spread : {0, 30, 200, 1000}) {
    std::vector<double> values = scattered(1001, spread, 3);
    const double first = sum(values);
    std::mt19937 random(5);
    bool plain_differs = false;
    double plain = 0;
    for (double x : values) plain += x;
    for (int k = 0; k < 50; ++k) {
      std::shuffle(values.begin(), values.end(), random);
      EXPECT_EQ(bits(sum(values)), bits(first)) << "spread " << spread;
      double again = 0;
      for (double x : values) again += x;
      plain_differs |= bits(again) != bits(plain);
    }
    EXPECT_TRUE(plain_differs) << "the test would not notice a plain sum";
  }
}

TEST(ExactSum, ErrorIsWithinTheBound) {
  for (int spread : {0, 20, 60, 300}) {
    for (size_t n : {1u, 2u, 17u, 4096u}) {
      std::vector<double> values = scattered(n, spread, 11 + static_cast<unsigned>(n));
      // The reference adds in quadruple precision from the smallest to the largest.
      std::sort(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
      __extension__ __float128 exact = 0;
      for (double x : values) exact += x;
      const double result = sum(values);
      const double ulp = std::nextafter(std::abs(result), INFINITY) - std::abs(result);
      const int width = static_cast<int>(std::bit_width(n));
      const double bound = 0.5 * ulp + static_cast<double>(n) * std::ldexp(std::abs(values.back()), width - 125);
      // The reference itself errs by a few units of 2^-113.
      EXPECT_LE(std::abs(static_cast<double>(result - exact)), bound * (1 + 1e-9)) << n << ", spread " << spread;
    }
  }
}

TEST(ExactSum, CancellationIsExact) {
  EXPECT_EQ(sum({1e16, 1, -1e16}), 1);
  EXPECT_EQ(sum({1, 1e20, 1, -1e20}), 2);
  EXPECT_EQ(sum({0.1, 0.2, 0.3, -0.3, -0.2, -0.1}), 0);
  const double big = std::numeric_limits<double>::max();
  EXPECT_EQ(sum({big, big, -big, -big}), 0);
  EXPECT_EQ(sum({big, -big, 5e-324}), 0) << "below the unit: cut";
}

TEST(ExactSum, Extremes) {
  const double inf = std::numeric_limits<double>::infinity(), big = std::numeric_limits<double>::max();
  EXPECT_EQ(bits(sum({})), bits(0.0));
  EXPECT_EQ(bits(sum({-0.0, 0.0, -0.0})), bits(0.0));
  EXPECT_EQ(sum({5e-324, 5e-324}), 1e-323);
  EXPECT_EQ(sum({-5e-324}), -5e-324);
  EXPECT_EQ(sum({std::numeric_limits<double>::min(), -5e-324}), std::numeric_limits<double>::min() - 5e-324);
  EXPECT_EQ(sum({big}), big);
  EXPECT_EQ(sum({big, big}), inf);
  EXPECT_EQ(sum({-big, -big}), -inf);
  EXPECT_TRUE(std::isnan(sum({1, inf})));
  EXPECT_TRUE(std::isnan(sum({inf, -inf})));
  EXPECT_TRUE(std::isnan(sum({1, NAN, 2})));
}

TEST(ExactSum, ManyEqualValuesDoNotOverflow) {
  const double x = std::nextafter(1.0, 0.0);
  const std::vector<double> values(1 << 20, x);
  EXPECT_EQ(sum(values), std::ldexp(x, 20));
  // A stride of 0 reads one value 2^26 times.
  EXPECT_EQ(order_independent_sum(&x, std::size_t{1} << 26, 0), std::ldexp(x, 26));
  const double negative = -x;
  EXPECT_EQ(order_independent_sum(&negative, std::size_t{1} << 26, 0), -std::ldexp(x, 26));
}

TEST(ExactSum, StridedFloats) {
  std::vector<float> values;
  std::vector<double> same;
  std::mt19937 random(2);
  std::uniform_real_distribution<float> u(-1, 1);
  for (int i = 0; i < 300; ++i) {
    values.push_back(u(random));
    if (i % 3 == 0) same.push_back(values.back());
  }
  EXPECT_EQ(bits(order_independent_sum(values.data(), 100, 3)), bits(sum(same)));
  values[3] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(order_independent_sum(values.data(), 100, 3)));
  EXPECT_FALSE(std::isnan(order_independent_sum(values.data() + 1, 99, 3)));
}

}  // namespace
}  // namespace backdrive
