#pragma once
// Random numbers that are the same everywhere.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <utility>

namespace backdrive {

/// Mixes numbers into a seed, so that nearby ones give unrelated generators (SplitMix64).
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Normal numbers by Box and Muller from a generator whose bits the standard fixes; std::normal_distribution's differ
/// from library to library. One sequence for each seed and two numbers beside it.
class NormalNumbers {
 public:
  NormalNumbers(std::uint64_t seed, std::uint64_t first, std::uint64_t second)
      : generator_(mixed(mixed(mixed(seed) ^ first) ^ second)) {}

  double next() {
    if (kept_) return *std::exchange(kept_, std::nullopt);
    const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
    kept_ = radius * std::sin(angle);
    return radius * std::cos(angle);
  }

 private:
  /// In (0, 1).
  double uniform() { return (static_cast<double>(generator_() >> 11) + 0.5) * 0x1p-53; }

  std::mt19937_64 generator_;
  std::optional<double> kept_;
};

}  // namespace backdrive
