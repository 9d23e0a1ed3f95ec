// Tickets go stale with what they look at and never come back; views of buffers say so, and cost nothing without
// guards.
#include "engine/generation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/dual.h"
#include "engine/memory.h"
#include "engine/view.h"
#include "tests/engine/allocation_count.h"
#include "tests/support/errors.h"

namespace backdrive {
namespace {

using test::expect_usage_error;

/// What can only be seen with guards on.
class Guarded : public testing::Test {
 protected:
  void SetUp() override {
    if (!kGuards) GTEST_SKIP() << "built with BACKDRIVE_GUARDS=0: nothing looks for stale views";
  }
};

class SeedsGeneration : public Guarded {};
class SeedsStaleView : public Guarded {};

TEST_F(SeedsGeneration, TicketsAreGoodUntilToldOtherwise) {
  Generation owner;
  const Ticket first = owner.ticket();
  const Ticket second = owner.ticket();
  EXPECT_TRUE(first.valid());
  EXPECT_TRUE(second.valid());
  owner.invalidate();
  EXPECT_FALSE(first.valid());
  EXPECT_FALSE(second.valid());
  EXPECT_TRUE(owner.ticket().valid());
  EXPECT_TRUE(Ticket().valid()) << "nothing cannot go stale";
}

TEST_F(SeedsGeneration, DestructionMakesStale) {
  std::optional<Generation> owner(std::in_place);
  const Ticket ticket = owner->ticket();
  owner.reset();
  EXPECT_FALSE(ticket.valid());
  owner.emplace();
  const Ticket next = owner->ticket();
  EXPECT_TRUE(next.valid());
  EXPECT_FALSE(ticket.valid()) << "an owner in the same place is another one";
}

TEST_F(SeedsGeneration, CopiesAreTheirOwn) {
  Generation owner;
  const Ticket ticket = owner.ticket();
  Generation copy = owner;
  const Ticket of_copy = copy.ticket();
  EXPECT_TRUE(ticket.valid());
  copy.invalidate();
  EXPECT_FALSE(of_copy.valid());
  EXPECT_TRUE(ticket.valid());
  const Ticket again = copy.ticket();
  owner.invalidate();
  EXPECT_FALSE(ticket.valid());
  EXPECT_TRUE(again.valid());
}

TEST_F(SeedsGeneration, MovesAndAssignmentsMakeStale) {
  Generation a, b, c;
  const Ticket of_a = a.ticket();
  Generation moved = std::move(a);
  EXPECT_FALSE(of_a.valid());
  const Ticket of_moved = moved.ticket(), of_b = b.ticket(), of_c = c.ticket();
  moved = b;
  EXPECT_FALSE(of_moved.valid());
  EXPECT_TRUE(of_b.valid()) << "copied from";
  c = std::move(b);
  EXPECT_FALSE(of_c.valid());
  EXPECT_FALSE(of_b.valid()) << "moved from";
  const Ticket last = c.ticket();
  const Generation& same = c;
  c = same;
  EXPECT_TRUE(last.valid()) << "assigned to itself, nothing moved";
}

TEST_F(SeedsGeneration, OwnersNobodyLooksAtTakeNoSlot) {
  const auto in_use = generation_counters().in_use;
  Generation owner;
  Generation copy = owner;
  copy = owner;
  EXPECT_EQ(generation_counters().in_use, in_use);
  owner.ticket();
  EXPECT_EQ(generation_counters().in_use, in_use + 1);
}

TEST_F(SeedsGeneration, RecycledSlotsNeitherGrowTheTableNorRevive) {
  constexpr int times = 100000;
  Generation warm;
  warm.ticket();
  const GenerationCounters before = generation_counters();
  const std::uint64_t system = test::system_allocations();
  std::optional<Generation> planted(std::in_place);
  const Ticket stale = planted->ticket();
  planted.reset();
  Ticket previous = stale;
  int revived = 0;
  for (int i = 0; i < times; ++i) {
    Generation owner;
    const Ticket ticket = owner.ticket();
    revived += stale.valid() + previous.valid() + !ticket.valid();
    previous = ticket;
  }
  EXPECT_EQ(revived, 0);
  EXPECT_EQ(generation_counters().slots, before.slots);
  EXPECT_EQ(generation_counters().in_use, before.in_use);
  EXPECT_EQ(test::system_allocations(), system);
}

TEST_F(SeedsGeneration, ManyOwnersAtOnce) {
  const GenerationCounters before = generation_counters();
  std::vector<Ticket> tickets;
  {
    std::vector<Generation> owners(2000);
    for (Generation& owner : owners) tickets.push_back(owner.ticket());
    EXPECT_EQ(generation_counters().in_use, before.in_use + 2000);
    owners[7].invalidate();
    for (std::size_t i = 0; i < tickets.size(); ++i) EXPECT_EQ(tickets[i].valid(), i != 7) << i;
  }
  for (const Ticket& ticket : tickets) EXPECT_FALSE(ticket.valid());
  EXPECT_EQ(generation_counters().in_use, before.in_use);
}

TEST_F(SeedsGeneration, ThreadsShareTheTable) {
  constexpr int threads = 4, rounds = 2000;
  const auto in_use = generation_counters().in_use;
  std::atomic<int> wrong{0};
  std::vector<std::vector<Ticket>> dead(threads);
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&wrong, &mine = dead[static_cast<std::size_t>(t)]] {
        for (int i = 0; i < rounds; ++i) {
          Generation owner;
          mine.push_back(owner.ticket());
          if (!mine.back().valid()) ++wrong;
          if (!mine.empty() && i > 0 && mine[static_cast<std::size_t>(i) / 2].valid()) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  for (const auto& tickets : dead) {
    for (const Ticket& ticket : tickets) EXPECT_FALSE(ticket.valid());
  }
  EXPECT_EQ(generation_counters().in_use, in_use);
}

/// The first ticket takes the slot: threads that ask at once must get the same one.
TEST_F(SeedsGeneration, ThreadsTakeTheFirstTicketAtOnce) {
  constexpr int threads = 4;
  const auto in_use = generation_counters().in_use;
  for (int round = 0; round < 200; ++round) {
    Generation owner;
    std::vector<Ticket> tickets(threads);
    std::atomic<int> waiting{threads};
    {
      std::vector<std::jthread> running;
      for (Ticket& ticket : tickets) {
        running.emplace_back([&owner, &ticket, &waiting] {
          for (--waiting; waiting > 0;) std::this_thread::yield();
          ticket = owner.ticket();
        });
      }
    }
    EXPECT_EQ(generation_counters().in_use, in_use + 1);
    for (const Ticket& ticket : tickets) ASSERT_TRUE(ticket.valid());
    owner.invalidate();
    for (const Ticket& ticket : tickets) ASSERT_FALSE(ticket.valid());
  }
}

// ---- views of buffers

/// Tries every access of a view.
template <class T>
void expect_stale(const View<T>& view, const char* quoted_name) {
  const auto words = {"stale view of", quoted_name, "freed, moved, or resized", "make a new view"};
  EXPECT_FALSE(view.valid());
  expect_usage_error([&] { static_cast<void>(view[0]); }, words);
  expect_usage_error([&] { static_cast<void>(view.data()); }, words);
  expect_usage_error(
      [&] {
        for (const auto& number : view) static_cast<void>(number);
      },
      words);
}

TEST_F(SeedsStaleView, OfABufferWhoseMemorySomebodyElseHas) {
  Memory memory;
  Buffer<double> dropped(memory, 3, 4);
  const double* const place = dropped.row(0);
  const View<const double> view = dropped.view("state/q");
  dropped = {};
  Buffer<double> other(memory, 3, 4);
  other.fill(7);
  ASSERT_EQ(other.row(0), place) << "the memory was not handed out again, so this shows nothing";
  expect_stale(view, "'state/q'");
  expect_stale(View<const double>(view), "'state/q'");
  EXPECT_EQ(other.view("other")[0], 7);
}

TEST_F(SeedsStaleView, OfABufferThatWasReplaced) {
  Buffer<float> buffer(2, 3);
  const View<const float> view = buffer.view("control/u");
  buffer = Buffer<float>(5, 6);
  expect_stale(view, "'control/u'");
}

TEST_F(SeedsStaleView, OutlivesThePool) {
  std::optional<Memory> memory(std::in_place);
  std::optional<Buffer<Dual<double>>> buffer(std::in_place, *memory, 2, 3);
  const View<const Dual<double>> view = buffer->view("q");
  memory.reset();
  EXPECT_EQ(value_of(view[0]), 0) << "the buffer keeps its pool";
  buffer.reset();
  expect_stale(view, "'q'");
}

TEST_F(SeedsStaleView, KeepsItsName) {
  Buffer<double> buffer(1, 1);
  std::string name = "shapes/ball/geometry/scale, long enough to live on the heap";
  const View<const double> view = buffer.view(name);
  const std::string quoted = "'" + name + "'";
  name.assign(name.size(), '#');
  buffer = {};
  expect_stale(view, quoted.c_str());
}

TEST_F(SeedsStaleView, PastTheEndIsNamedToo) {
  const Buffer<double> buffer(1, 1);
  const View<const double> view = buffer.view("state/q");
  ASSERT_EQ(view.size(), 8u);  // one pack
  EXPECT_NO_THROW(static_cast<void>(view[7]));
  expect_usage_error([&] { static_cast<void>(view[8]); }, {"'state/q'", "number 8", "expected one of 8"});
  expect_usage_error([&] { static_cast<void>(View<double>()[0]); }, {"expected one of 0"});
}

TEST(SeedsView, LooksAtTheNumbers) {
  Buffer<double> buffer(2, 3);
  const View<const double> view = buffer.view("state/q");
  buffer.set(1, 2, 5);
  EXPECT_EQ(view[static_cast<std::size_t>(buffer.stride()) + 2], 5);
  EXPECT_EQ(view.data(), buffer.row(0));
  EXPECT_EQ(view.size(), 2u * static_cast<std::size_t>(buffer.stride()));
  EXPECT_EQ(view.name(), kGuards ? "state/q" : "");
  double sum = 0;
  for (double number : view) sum += number;
  EXPECT_EQ(sum, 5);
}

TEST(SeedsView, StaysGoodWhileAnyHandleLives) {
  Memory memory;
  Buffer<double> buffer(memory, 2, 3);
  const View<const double> view = buffer.view("state/q");
  Buffer<double> handle = buffer;
  Buffer<double> moved = std::move(buffer);
  moved = moved.clone(memory);
  handle.set(0, 1, 4);
  EXPECT_TRUE(view.valid());
  EXPECT_EQ(view[1], 4);
}

TEST(SeedsView, OfNothingIsEmpty) {
  const View<const double> view = Buffer<double>().view("none");
  EXPECT_TRUE(view.valid());
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.begin(), view.end());
}

TEST(SeedsView, LoopStaysFlat) {
  Memory memory;
  const auto iteration = [&] {
    const Buffer<double> buffer(memory, 3, 3);
    const View<const double> view = buffer.view("shapes/ball/geometry/scale");
    return view[0] + static_cast<double>(view.size());
  };
  iteration();
  const auto system = test::system_allocations();
  for (int i = 0; i < 100; ++i) iteration();
  EXPECT_EQ(test::system_allocations(), system);
}

TEST(SeedsView, FreeWithoutGuards) {
  EXPECT_EQ(kGuards, !std::is_empty_v<Generation>);
  EXPECT_EQ(kGuards, !std::is_empty_v<Ticket>);
  EXPECT_EQ(kGuards, !std::is_empty_v<ViewGuard>);
  if (kGuards) GTEST_SKIP() << "built with BACKDRIVE_GUARDS=1: sizes are those of a checking build";
  struct Bare {
    double* data;
    std::size_t count;
    std::string_view name;
  };
  EXPECT_LE(sizeof(View<double>), sizeof(Bare));
  EXPECT_EQ(sizeof(View<double>), sizeof(double*) + sizeof(std::size_t));
  EXPECT_TRUE(std::is_trivially_copyable_v<View<double>>);
  EXPECT_EQ(generation_counters().slots, 0u);
}

}  // namespace
}  // namespace backdrive
