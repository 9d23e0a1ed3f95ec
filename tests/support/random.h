#pragma once
// Numbers that are the same on every machine: std::mt19937_64 is specified to the bit, the distributions of <random>
// are not.
#include <cstdint>
#include <random>

namespace backdrive::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// In [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  double symmetric(double bound) { return uniform(-bound, bound); }
  /// In [0, count).
  int index(int count) { return static_cast<int>(uniform(0, count)); }
  bool chance(double probability) { return uniform(0, 1) < probability; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace backdrive::test
