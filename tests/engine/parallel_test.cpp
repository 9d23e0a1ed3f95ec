#include "engine/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/error.h"
#include "tests/engine/allocation_count.h"

namespace backdrive {
namespace {

TEST(Share, PartsCoverTheCountInOrder) {
  for (int count : {0, 1, 2, 7, 16, 1000}) {
    for (int parts : {1, 2, 3, 7, 8, 64}) {
      int next = 0, largest = 0, smallest = count;
      for (int part = 0; part < parts; ++part) {
        const Range range = share(count, parts, part);
        EXPECT_EQ(range.begin, next);
        next = range.end;
        largest = std::max(largest, range.size());
        smallest = std::min(smallest, range.size());
      }
      EXPECT_EQ(next, count);
      EXPECT_LE(largest - smallest, 1);
    }
  }
  EXPECT_EQ(share(2147483647, 3, 2).end, 2147483647);
}

TEST(ParallelFor, EveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    for (int count : {0, 1, 5, 100}) {
      std::vector<int> hits(100, 0);
      parallel_for(threads, count, [&](int i) { ++hits[i]; });
      for (int i = 0; i < 100; ++i) EXPECT_EQ(hits[i], i < count ? 1 : 0);
    }
  }
}

TEST(ParallelFor, RangesAreTheShares) {
  std::vector<Range> ranges(4);
  parallel_for(4, 10, [&](Range range, int part) { ranges[part] = range; });
  for (int part = 0; part < 4; ++part) {
    EXPECT_EQ(ranges[part].begin, share(10, 4, part).begin);
    EXPECT_EQ(ranges[part].end, share(10, 4, part).end);
  }
  std::atomic<int> sum{0};
  parallel_for(3, 2, [&](Range range) { sum += range.size(); });
  EXPECT_EQ(sum, 2);
}

TEST(ParallelFor, RunsOnSeveralThreads) {
  std::vector<std::thread::id> ids(3);
  parallel_for(3, 3, [&](int i) { ids[i] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[1]);
  std::vector<std::thread::id> own(3);
  parallel_for(1, 3, [&](int i) { own[i] = std::this_thread::get_id(); });
  for (const auto& id : own) EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ParallelFor, ExceptionOfTheLowestPartArrives) {
  std::atomic<int> done{0};
  for (int repeat = 0; repeat < 20; ++repeat) {
    try {
      parallel_for(4, 4, [&](int i) {
        ++done;
        if (i >= 2) throw std::runtime_error(std::to_string(i));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "2");
    }
  }
  EXPECT_EQ(done, 80) << "the other parts run to their end";
  parallel_for(4, 4, [&](int) { ++done; });
  EXPECT_EQ(done, 84);
}

TEST(ParallelFor, NestedCallsRunInline) {
  std::vector<int> hits(12, 0);
  parallel_for(3, 3, [&](int outer) {
    const auto thread = std::this_thread::get_id();
    parallel_for(4, 4, [&](Range range, int part) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      EXPECT_EQ(range.begin, part);
      ++hits[outer * 4 + part];
    });
  });
  for (int h : hits) EXPECT_EQ(h, 1);
}

TEST(ParallelFor, CallersTakeTurns) {
  std::atomic<long> sum{0};
  {
    std::vector<std::jthread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&] {
        for (int k = 0; k < 100; ++k) parallel_for(3, 10, [&](int i) { sum += i; });
      });
    }
  }
  EXPECT_EQ(sum, 4 * 100 * 45);
}

TEST(ParallelFor, AllocatesNothingOnceWarm) {
  std::vector<double> out(64);
  const auto body = [&](int i) { out[i] += i; };
  parallel_for(3, 64, body);
  const auto before = test::system_allocations();
  for (int k = 0; k < 200; ++k) parallel_for(3, 64, body);
  EXPECT_EQ(test::system_allocations(), before);
  EXPECT_EQ(out[63], 63 * 201);
}

TEST(ParallelFor, NoThreadsIsAnError) {
  EXPECT_THROW(parallel_for(0, 5, [](int) {}), Error);
  EXPECT_THROW(parallel_for(-2, 5, [](int) {}), Error);
}

TEST(HardwareThreads, IsPositive) {
  EXPECT_GE(hardware_threads(), 1);
}

}  // namespace
}  // namespace backdrive
