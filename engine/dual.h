#pragma once
// Dual numbers: the exact directional derivative of the very source that computes the value.
#include <type_traits>

#include "engine/real.h"

namespace backdrive {

/// value + dot·ε with ε² = 0.
template <class T>
struct Dual {
  T value{};
  T dot{};

  Dual() = default;
  BACKDRIVE_HD Dual(T v) : value(v), dot(0) {}  // NOLINT: a number is a dual with zero derivative
  BACKDRIVE_HD Dual(T v, T d) : value(v), dot(d) {}

  BACKDRIVE_HD Dual& operator+=(const Dual& b) { return *this = *this + b; }
  BACKDRIVE_HD Dual& operator-=(const Dual& b) { return *this = *this - b; }
  BACKDRIVE_HD Dual& operator*=(const Dual& b) { return *this = *this * b; }
  BACKDRIVE_HD Dual& operator/=(const Dual& b) { return *this = *this / b; }

  BACKDRIVE_HD friend Dual operator-(const Dual& a) { return {-a.value, -a.dot}; }
  BACKDRIVE_HD friend Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.dot + b.dot}; }
  BACKDRIVE_HD friend Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.dot - b.dot}; }
  BACKDRIVE_HD friend Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.dot * b.value + a.value * b.dot};
  }
  BACKDRIVE_HD friend Dual operator/(const Dual& a, const Dual& b) {
    const T quotient = a.value / b.value;
    return {quotient, (a.dot - quotient * b.dot) / b.value};
  }
};

template <class Real>
constexpr bool kIsDual = false;
template <class T>
constexpr bool kIsDual<Dual<T>> = true;

template <class T>
struct RealTraits<Dual<T>> {
  using Storage = Dual<T>;
  using Scalar = ScalarOf<T>;
  static constexpr int lanes = 1;
};

/// Of a dual of duals the innermost.
template <class T>
BACKDRIVE_INLINE const auto& value_of(const Dual<T>& x) {
  return value_of(x.value);
}
/// Duals of packs are chosen by the masks of their values.
template <class T, class Mask>
requires(!std::is_same_v<Mask, bool>) BACKDRIVE_INLINE Dual<T> select(const Mask& mask, const Dual<T>& yes,
                                                                      const Dual<T>& no) {
  return {select(mask, yes.value, no.value), select(mask, yes.dot, no.dot)};
}
template <class T>
BACKDRIVE_INLINE Dual<T> square_root(const Dual<T>& x) {
  const T root = square_root(x.value), zero = constant<T>(0), one = constant<T>(1);
  const auto vanishes = value_of(root) == value_of(zero);
  return {root, select(vanishes, zero, x.dot / (constant<T>(2) * select(vanishes, one, root)))};
}

/// The derivative part; zero for plain numbers.
BACKDRIVE_INLINE double dot_of(double) {
  return 0;
}
BACKDRIVE_INLINE double dot_of(const Dual<double>& x) {
  return x.dot;
}

}  // namespace backdrive
