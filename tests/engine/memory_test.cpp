// The pool counts honestly and stays flat; buffers share, version and outlive as they say.
#include "engine/memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "engine/dual.h"
#include "engine/error.h"
#include "tests/engine/allocation_count.h"

namespace backdrive {
namespace {

TEST(Memory, BlocksAreAlignedAndCounted) {
  Memory memory;
  EXPECT_EQ(memory.counters().live_bytes, 0u);
  {
    std::vector<std::shared_ptr<std::byte>> blocks;
    std::size_t asked = 0;
    for (std::size_t bytes : {0u, 1u, 64u, 65u, 511u, 513u, 1000u, 4097u, 100000u, 1u << 20}) {
      blocks.push_back(memory.allocate(bytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().get()) % 64, 0u);
      std::memset(blocks.back().get(), 1, bytes);
      asked += bytes;
    }
    const MemoryCounters counters = memory.counters();
    EXPECT_GE(counters.live_bytes, asked);
    EXPECT_LE(counters.live_bytes, asked + asked / 8 + 10 * 256);  // classes and control blocks
    EXPECT_EQ(counters.peak_bytes, counters.live_bytes);
    EXPECT_EQ(counters.pooled_bytes, 0u);
    EXPECT_EQ(counters.allocations, counters.requests);
  }
  const MemoryCounters counters = memory.counters();
  EXPECT_EQ(counters.live_bytes, 0u);
  EXPECT_EQ(counters.pooled_bytes, counters.peak_bytes);
  memory.trim();
  EXPECT_EQ(memory.counters().pooled_bytes, 0u);
}

/// A block of each size around the borders of the classes holds what was asked for and comes back
/// to its own class.
TEST(Memory, EverySizeComesBackToItsClass) {
  Memory memory;
  for (std::size_t base = 512; base <= (std::size_t{1} << 16); base *= 2) {
    for (std::size_t eighth = 8; eighth < 16; ++eighth) {
      for (std::ptrdiff_t off : {-1, 0, 1}) {
        const std::size_t bytes = base * eighth / 8 + static_cast<std::size_t>(off);
        std::byte* first = nullptr;
        {
          const auto block = memory.allocate(bytes);
          first = block.get();
          std::memset(first, 7, bytes);
        }
        const auto before = memory.counters().allocations;
        EXPECT_EQ(memory.allocate(bytes).get(), first);
        EXPECT_EQ(memory.counters().allocations, before);
      }
    }
  }
  EXPECT_EQ(memory.counters().live_bytes, 0u);
}

TEST(Memory, LoopStaysFlat) {
  Memory memory;
  const auto iteration = [&] {
    std::vector<Buffer<double>> kept;
    kept.reserve(8);
    for (int k = 0; k < 8; ++k) kept.emplace_back(memory, 3 + 5 * k, 17 * k + 1);
    const Buffer<float> f(memory, 100, 33);
    const Buffer<Dual<double>> d(memory, 4, 4);
    const Buffer<float> copy = f.clone(memory);
    return kept[3].id() + copy.id();
  };
  iteration();
  const MemoryCounters warm = memory.counters();
  const std::uint64_t system = test::system_allocations();
  for (int k = 0; k < 100; ++k) iteration();
  const MemoryCounters after = memory.counters();
  EXPECT_EQ(after.allocations, warm.allocations);
  EXPECT_EQ(after.peak_bytes, warm.peak_bytes);
  EXPECT_EQ(after.pooled_bytes, warm.pooled_bytes);
  EXPECT_EQ(after.live_bytes, 0u);
  EXPECT_EQ(after.requests, 101 * warm.requests);
  EXPECT_EQ(test::system_allocations() - system, 100u) << "only the test's own vector, once per iteration";
}

TEST(Memory, BlockOutlivesItsMemory) {
  std::shared_ptr<std::byte> block;
  Buffer<double> buffer;
  {
    Memory memory;
    block = memory.allocate(1000);
    buffer = Buffer<double>(memory, 2, 3);
  }
  std::memset(block.get(), 3, 1000);
  buffer.set(1, 2, 5);
  EXPECT_EQ(buffer(1, 2), 5);
}

TEST(Memory, CopiesShareThePool) {
  Memory memory;
  Memory same = memory;
  const auto block = same.allocate(100);
  EXPECT_EQ(memory.counters().live_bytes, same.counters().live_bytes);
  EXPECT_GT(memory.counters().live_bytes, 0u);
}

TEST(Memory, AnyThreadMayReturnABlock) {
  Memory memory;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memory, t] {
      for (int k = 0; k < 300; ++k) {
        Buffer<float> buffer(memory, 1 + (k + t) % 7, 20);
        buffer.fill(static_cast<float>(t));
        ASSERT_EQ(buffer(0, 19), static_cast<float>(t));
        if (k % 50 == 0) memory.trim();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(memory.counters().live_bytes, 0u);
}

TEST(Memory, TooMuchIsAnErrorWithTheSize) {
  Memory memory;
  try {
    memory.allocate(std::numeric_limits<std::size_t>::max());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("18446744073709551615"), std::string::npos);
  }
  EXPECT_EQ(memory.counters().live_bytes, 0u);
  EXPECT_THROW(Buffer<double>(memory, 2000000000, 2000000000), Error);
  EXPECT_THROW(Buffer<double>(memory, -1, 1), Error);
  EXPECT_THROW(Buffer<double>(memory, 1, -1), Error);
  EXPECT_THROW(Buffer<double>(memory, 1, std::numeric_limits<int>::max()), Error);
}

#if !defined(NDEBUG)
TEST(Memory, DebugBlocksHoldNaN) {
  Memory memory;
  const auto block = memory.allocate(64);
  double value;
  std::memcpy(&value, block.get(), sizeof value);
  EXPECT_TRUE(std::isnan(value));
}
#endif

// ---- buffers
// --------------------------------------------------------------------------------------------------------

template <class T>
class BufferOf : public testing::Test {};
using Numbers = testing::Types<float, double, Dual<double>>;
TYPED_TEST_SUITE(BufferOf, Numbers);

template <class T>
double number(const T& x) {
  return static_cast<double>(value_of(x));
}

TYPED_TEST(BufferOf, RowsArePaddedAlignedAndZero) {
  Memory memory;
  {
    Buffer<TypeParam> dirty(memory, 3, 18);
    dirty.fill(TypeParam(9));
    EXPECT_EQ(number(dirty.row(2)[dirty.stride() - 1]), 9) << "padding is filled too";
  }
  const Buffer<TypeParam> buffer(memory, 3, 18);
  EXPECT_EQ(buffer.rows(), 3);
  EXPECT_EQ(buffer.worlds(), 18);
  EXPECT_EQ(buffer.stride(), row_stride<TypeParam>(18));
  EXPECT_GE(buffer.stride(), 18);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.row(r)) % 64, 0u);
    for (int w = 0; w < buffer.stride(); ++w) EXPECT_EQ(number(buffer(r, w)), 0);
  }
}

TYPED_TEST(BufferOf, CopiesShareNumbersAndVersion) {
  Buffer<TypeParam> a(2, 5);
  Buffer<TypeParam> b = a;
  EXPECT_EQ(a.id(), b.id());
  const auto version = a.version();
  b.set(1, 3, TypeParam(4));
  EXPECT_EQ(number(a(1, 3)), 4);
  EXPECT_GT(a.version(), version);
  EXPECT_EQ(a.version(), b.version());
  EXPECT_EQ(a.version(), a.version()) << "reading does not raise it";
}

TYPED_TEST(BufferOf, ClonesAreTheirOwn) {
  Memory memory;
  Buffer<TypeParam> a(memory, 2, 5);
  a.set(0, 4, TypeParam(3));
  Buffer<TypeParam> b = a.clone(memory);
  EXPECT_NE(a.id(), b.id());
  b.set(0, 4, TypeParam(8));
  EXPECT_EQ(number(a(0, 4)), 3);
  EXPECT_EQ(number(b(0, 4)), 8);
}

TYPED_TEST(BufferOf, StridesAreWholePacksAndAnOddNumberOfThem) {
  constexpr int pack = kPackWorlds<TypeParam>;
  EXPECT_EQ(row_stride<TypeParam>(0), 0);
  for (int worlds : {1, 4, 8, 16, 17, 32, 64, 1000, 4096}) {
    EXPECT_EQ(row_stride<TypeParam>(worlds) % (2 * pack), pack) << worlds;
    EXPECT_GE(row_stride<TypeParam>(worlds), worlds);
    EXPECT_LT(row_stride<TypeParam>(worlds), worlds + 2 * pack);
  }
}

TEST(Buffer, RowsAreCountedWithoutOverflow) {
  EXPECT_EQ(row_count(0, 7), 0);
  EXPECT_EQ(row_count(46340, 46340), 2147395600);
  EXPECT_EQ(row_count(2147483647, 1), 2147483647);
  for (const auto& [items, each] : {std::pair<std::int64_t, std::int64_t>{65536, 32768}, {46341, 46341}, {1 << 30, 4},
                                    {std::int64_t{1} << 62, 4}, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {-1, 1}}) {
    EXPECT_THROW(row_count(items, each), Error) << items << " x " << each;
  }
}

TEST(Buffer, EmptyOnes) {
  Buffer<double> none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.id(), 0u);
  EXPECT_EQ(none.version(), 0u);
  EXPECT_THROW(none.write(), Error);
  none.fill(1);
  EXPECT_TRUE(none.clone(default_memory()).empty());
  Buffer<double> no_rows(0, 4);
  EXPECT_TRUE(no_rows.empty());
  EXPECT_NE(no_rows.id(), 0u);
  EXPECT_NO_THROW(no_rows.write());
  EXPECT_THROW(Buffer<double>(2, 4).write(3), Error);
}

TEST(Buffer, IdsAreNeverUsedAgain) {
  std::set<std::uint64_t> seen;
  for (int k = 0; k < 100; ++k) EXPECT_TRUE(seen.insert(Buffer<float>(1, 1).id()).second);
}

TEST(Buffer, LastHandleReturnsTheStorage) {
  Memory memory;
  Buffer<double> a(memory, 10, 100);
  Buffer<double> b = a;
  const auto live = memory.counters().live_bytes;
  a = {};
  EXPECT_EQ(memory.counters().live_bytes, live);
  b = {};
  EXPECT_EQ(memory.counters().live_bytes, 0u);
}

}  // namespace
}  // namespace backdrive
