#include "engine/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/sanitized.h"

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

// std::bit_width is what nvcc makes zero of.
TEST(ExactSum, BitsOfACount) {
  for (std::uint64_t n : {0ull, 1ull, 2ull, 3ull, 255ull, 256ull, (1ull << 26) - 1, 1ull << 63, ~0ull}) {
    EXPECT_EQ(bits_of(n), std::bit_width(n)) << n;
  }
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
  constexpr int power = test::kSanitized ? 21 : 26;
  EXPECT_EQ(order_independent_sum(&x, std::size_t{1} << power, 0), std::ldexp(x, power));
  const double negative = -x;
  EXPECT_EQ(order_independent_sum(&negative, std::size_t{1} << power, 0), -std::ldexp(x, power));
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

/// The sum as blocks and devices make it: part p of `parts` takes every parts-th number, and both passes join what the
/// parts found in a random order. With `own_units` each part forgets the others' scale, which is wrong.
template <class T>
double split_sum(const Summands<T>& summands, size_t parts, std::mt19937_64& random, bool own_units = false) {
  std::vector<size_t> order(parts);
  for (size_t p = 0; p < parts; ++p) order[p] = p;
  SumScale scale;
  std::shuffle(order.begin(), order.end(), random);
  for (size_t p : order) scale.join(summands.scale(p, parts));
  const SumUnits units(scale);
  Int128 sum = 0;
  double wrong = 0;
  std::shuffle(order.begin(), order.end(), random);
  for (size_t p : order) {
    sum += summands.sum(units, p, parts);
    const SumUnits own(summands.scale(p, parts));
    wrong += own.value(summands.sum(own, p, parts));
  }
  return own_units ? wrong : units.value(sum);
}

constexpr size_t kParts[] = {1, 2, 3, 7, 64, 256, 1000};

TEST(ExactSum, AnySplitGivesTheSameBits) {
  std::mt19937_64 random(7);
  bool wrong_differs = false;
  for (int spread : {0, 40, 200, 1000, 2000}) {  // the last reaches below the subnormals
    for (size_t n : {0u, 1u, 2u, 5u, 255u, 256u, 257u, 2001u}) {
      const std::vector<double> values = scattered(n, spread, 17 + static_cast<unsigned>(n));
      for (size_t parts : kParts) {
        const Summands<double> summands{values.data(), n};
        EXPECT_EQ(bits(split_sum(summands, parts, random)), bits(sum(values))) << n << " in " << parts;
        wrong_differs |= bits(split_sum(summands, parts, random, true)) != bits(sum(values));
      }
    }
  }
  EXPECT_TRUE(wrong_differs) << "the test would not notice parts with units of their own";
}

TEST(ExactSum, SplitsOfExtremes) {
  const double inf = std::numeric_limits<double>::infinity(), big = std::numeric_limits<double>::max();
  const std::vector<double> cases[] = {{-0.0, 0.0, -0.0},
                                       {5e-324, -1e-323, 5e-324, 5e-324},
                                       {big, 5e-324, -big},
                                       {big, big, -big},
                                       {-big, -big, 1},
                                       {1, inf, 2, 3},
                                       {inf, -inf, 0, 5e-324},
                                       {1, NAN, 2},
                                       {NAN, inf}};
  std::mt19937_64 random(9);
  for (const std::vector<double>& values : cases) {
    const double whole = sum(values);
    for (size_t parts : kParts) {
      const double split = split_sum(Summands<double>{values.data(), values.size()}, parts, random);
      if (std::isnan(whole)) {
        EXPECT_TRUE(std::isnan(split)) << values[0] << " in " << parts;
      } else {
        EXPECT_EQ(bits(split), bits(whole)) << values[0] << " in " << parts;
      }
    }
  }
}

TEST(ExactSum, StoppedWorldsTakeNoPart) {
  std::mt19937_64 random(11);
  std::vector<float> values(300);
  WorldStatuses status(values.size());
  std::vector<double> going;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(static_cast<float>(random() % 1000) - 500, -static_cast<int>(random() % 140));
    if (i % 7 == 3) {
      status.write_address()[i].stopped_step = 2;
      values[i] = std::numeric_limits<float>::quiet_NaN();
    } else {
      going.push_back(values[i]);
    }
  }
  const Summands<float> summands{values.data(), values.size(), 1, status.address()};
  EXPECT_EQ(bits(order_independent_sum(summands)), bits(sum(going)));
  for (size_t parts : kParts) EXPECT_EQ(bits(split_sum(summands, parts, random)), bits(sum(going))) << parts;
  for (std::size_t i = 0; i < status.size(); ++i) status.write_address()[i].stopped_step = 0;
  EXPECT_EQ(bits(split_sum(summands, 7, random)), bits(0.0)) << "nobody takes part";
}

}  // namespace
}  // namespace backdrive
