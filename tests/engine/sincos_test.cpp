// Accuracy of sincos over wide ranges, for scalars and packs, and that a lane's bits are its own.
#include "engine/pack.h"

#include "engine/sincos.h"

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

using FloatPack = NativePack<float>;
using DoublePack = NativePack<double>;

/// Where the result is smaller than this the error is compared with that ulp: what reduction leaves
/// is absolute there.
template <class T>
constexpr double kFloor = sizeof(T) == 4 ? 1.0 / 4096 : 0;

/// Error in ulp of T at the exact value (or at the floor).
template <class T>
double ulps(T value, long double exact) {
  const T nearest = std::max(static_cast<T>(std::abs(exact)), static_cast<T>(kFloor<T>));
  const T ulp = std::nextafter(nearest, std::numeric_limits<T>::infinity()) - nearest;
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / ulp);
}

/// Arguments over a range: random, multiples of π/4 and their neighbours, and tiny ones.
template <class T>
std::vector<T> arguments(double range, int count) {
  std::mt19937_64 random(23);
  std::uniform_real_distribution<double> uniform(-range, range), exponent(-30, std::log2(range));
  std::vector<T> all{T(0)};
  for (int i = 0; i < count; ++i) {
    all.push_back(static_cast<T>(uniform(random)));
    all.push_back(static_cast<T>(std::exp2(exponent(random))));
    const T corner = static_cast<T>(M_PI_4 * std::floor(uniform(random) / M_PI_4));
    for (T x : {corner, std::nextafter(corner, T(1e9)), std::nextafter(corner, T(-1e9))}) all.push_back(x);
  }
  return all;
}

struct Worst {
  double ulp = 0, at = 0;
  void take(double error, double x) {
    if (!(error <= ulp)) ulp = error, at = x;
  }
};

template <class T>
Worst worst_scalar(double range, int count) {
  Worst worst;
  for (T x : arguments<T>(range, count)) {
    T s, c;
    sincos(x, s, c);
    worst.take(ulps(s, std::sin(static_cast<long double>(x))), x);
    worst.take(ulps(c, std::cos(static_cast<long double>(x))), x);
  }
  return worst;
}

template <class Pack>
Worst worst_pack(double range, int count) {
  using T = StorageOf<Pack>;
  const auto all = arguments<T>(range, count);
  Worst worst;
  for (size_t first = 0; first + Pack::lanes <= all.size(); first += Pack::lanes) {
    Pack x;
    for (int l = 0; l < Pack::lanes; ++l) x.set(l, all[first + l]);
    Pack s, c;
    sincos(x, s, c);
    for (int l = 0; l < Pack::lanes; ++l) {
      worst.take(ulps(T(s[l]), std::sin(static_cast<long double>(all[first + l]))), all[first + l]);
      worst.take(ulps(T(c[l]), std::cos(static_cast<long double>(all[first + l]))), all[first + l]);
    }
  }
  return worst;
}

void expect_below(const Worst& worst, double bound) {
  EXPECT_LT(worst.ulp, bound) << "at " << worst.at;
}

TEST(SinCos, FloatWithinTwoUlp) {
  expect_below(worst_scalar<float>(10, 20000), 2);
  expect_below(worst_scalar<float>(8e3, 20000), 2);
}
TEST(SinCos, DoubleWithinTwoAndAHalfUlp) {
  expect_below(worst_scalar<double>(10, 20000), 2);
  expect_below(worst_scalar<double>(1e6, 20000), 2.5);
}
TEST(SinCos, FloatPackWithinTwoUlp) {
  expect_below(worst_pack<FloatPack>(8e3, 20000), 2);
}
TEST(SinCos, DoublePackWithinTwoAndAHalfUlp) {
  expect_below(worst_pack<DoublePack>(1e6, 20000), 2.5);
}

/// Beyond the stated range the error is at most what one ulp of the argument costs.
template <class T>
void expect_graceful(std::initializer_list<double> arguments) {
  for (double argument : arguments) {
    const T x = static_cast<T>(argument);
    T s, c;
    sincos(x, s, c);
    const double bound = std::numeric_limits<T>::epsilon() * argument;
    EXPECT_NEAR(static_cast<double>(s), std::sin(static_cast<double>(x)), bound) << argument;
    EXPECT_NEAR(static_cast<double>(c), std::cos(static_cast<double>(x)), bound) << argument;
  }
}

TEST(SinCos, DecaysGracefully) {
  expect_graceful<float>({2e4, 1e5, 3e5, 1e6});
  expect_graceful<double>({3e6, 1e7, 1e9, 1e11, 1e12});
}

TEST(SinCos, ExactAtZeroAndNaNBeyondNumbers) {
  double s, c;
  sincos(0.0, s, c);
  EXPECT_EQ(s, 0);
  EXPECT_EQ(c, 1);
  for (double x : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    sincos(x, s, c);
    EXPECT_TRUE(std::isnan(s));
    EXPECT_TRUE(std::isnan(c));
  }
}

/// sin(−x) = −sin(x) and cos(−x) = cos(x) in every bit.
TEST(SinCos, IsOddAndEven) {
  for (float x : arguments<float>(1000, 2000)) {
    float s, c, ms, mc;
    sincos(x, s, c);
    sincos(-x, ms, mc);
    EXPECT_EQ(ms, -s) << x;
    EXPECT_EQ(mc, c) << x;
  }
}

template <class T>
auto bits(T x) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(x);
}

/// Each lane among strangers (huge ones, NaN) has the bits it has among copies of itself.
template <class Pack>
void expect_lanes_independent() {
  using T = StorageOf<Pack>;
  const T strangers[] = {
      T(1e30), std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), T(0), T(-3e5), T(1e-30)};
  const auto all = arguments<T>(100, 200);
  for (size_t i = 0; i < all.size(); ++i) {
    Pack s, c;
    sincos(Pack(all[i]), s, c);
    const T s_alone = s[0], c_alone = c[0];
    for (int l = 0; l < Pack::lanes; ++l) {
      Pack mixed;
      for (int k = 0; k < Pack::lanes; ++k) mixed.set(k, strangers[(i + k) % std::size(strangers)]);
      mixed.set(l, all[i]);
      sincos(mixed, s, c);
      EXPECT_EQ(bits(T(s[l])), bits(s_alone)) << all[i] << " in lane " << l;
      EXPECT_EQ(bits(T(c[l])), bits(c_alone)) << all[i] << " in lane " << l;
    }
  }
}

TEST(SinCos, FloatLanesAreIndependent) {
  expect_lanes_independent<FloatPack>();
}
TEST(SinCos, DoubleLanesAreIndependent) {
  expect_lanes_independent<DoublePack>();
}

}  // namespace
}  // namespace backdrive
