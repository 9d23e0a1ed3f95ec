#pragma once
// The devices that the tests of this folder run on: the one that the processor plays, and a GPU where there is one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "autodiff/tape/tape.h"
#include "engine/memory.h"
#include "tests/support/batch.h"

namespace backdrive::test {

class OnDevice : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    std::string why;
    if (device_count(GetParam(), &why) == 0) GTEST_SKIP() << why;
  }
  static Device device(int index = 0) { return {GetParam(), index}; }
  static Memory memory() { return Memory(device()); }
};

inline std::string device_name(const testing::TestParamInfo<DeviceKind>& info) {
  return info.param == DeviceKind::cuda ? "Cuda" : "Emulated";
}

#define BACKDRIVE_ON_DEVICES(Suite) \
  using Suite = OnDevice;           \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite, testing::Values(DeviceKind::emulated, DeviceKind::cuda), device_name)

/// How often a loop of a leak story goes round: 1000 unless BACKDRIVE_TEST_ITERATIONS says otherwise, which sanitizers
/// need.
inline int iterations() {
  const char* const asked = std::getenv("BACKDRIVE_TEST_ITERATIONS");
  return asked ? std::atoi(asked) : 1000;
}

/// Calls `iteration`, whose result is to be the same number every time, and expects that after two rounds neither
/// `memory` nor the host's grows, nor the nodes of tapes.
template <class Iteration>
void expect_nothing_grows(Memory& memory, int rounds, const Iteration& iteration) {
  const double first = iteration();
  EXPECT_NE(first, 0);
  iteration();
  const MemoryCounters before = memory.counters(), host_before = default_memory().counters();
  const std::size_t nodes = tape_counters().nodes;
  for (int k = 0; k < rounds; ++k) ASSERT_EQ(iteration(), first) << k;
  const MemoryCounters after = memory.counters(), host_after = default_memory().counters();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(after.pooled_bytes, before.pooled_bytes);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(host_after.allocations, host_before.allocations);
  EXPECT_EQ(tape_counters().nodes, nodes);
}

/// Largest difference, relative to the largest number of b.
template <class T>
double relative_error(const Buffer<T>& a, const Buffer<T>& b) {
  const Buffer<T> x = on_host(a), y = on_host(b);
  EXPECT_EQ(x.rows(), y.rows());
  EXPECT_EQ(x.worlds(), y.worlds());
  double error = 0, size = 0;
  for (int r = 0; r < x.rows(); ++r) {
    for (int w = 0; w < x.worlds(); ++w) {
      error = std::max(error, std::abs(static_cast<double>(x(r, w)) - static_cast<double>(y(r, w))));
      if (std::isnan(x(r, w)) != std::isnan(y(r, w))) return INFINITY;
      size = std::max(size, std::abs(static_cast<double>(y(r, w))));
    }
  }
  EXPECT_GT(size, 0) << "nothing but zeros proves nothing";
  return error / size;
}

}  // namespace backdrive::test
