// The three faults that this engine exists to rule out: gradients that accumulate, memory that leaks, storage that
// dangles.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>
#include <tuple>

#include "autodiff/problem/objective.h"
#include "autodiff/problem/variables.h"
#include "autodiff/tape/rollout.h"
#include "models/parameter_list.h"
#include "tests/support/batch.h"
#include "tests/support/models.h"
#include "tests/support/policy.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

// ---- the story of Warp #249: an inverted pendulum, whose gradient is taken again and again
// ------------------------------

/// Standing on its hinge, with a torque: loss ½ Σ (θ_T − π/2)².
struct InvertedPendulum {
  static constexpr int steps = 60, worlds = 2;
  Memory memory;
  Model model = [] {
    Model m = test::pendulum();
    test::require_all(m);
    return m;
  }();
  State<double> start{model, worlds, memory};
  Control<double> torque{model, steps, worlds, memory};
  RolloutOptions options;

  InvertedPendulum() {
    options.steps = steps;
    start.q.fill(3.14);
    for (int k = 0; k < steps; ++k) torque.u.set(k, 1, 0.1 * k);
  }

  struct Result {
    Buffer<double> q, qd, torque;
    Parameters parameters;
  };
  Trajectory<double> record(Tape<double>& tape) const { return rollout(tape, model, start, torque, options); }
  Buffer<double> seed_of(const Trajectory<double>& t) {
    Buffer<double> seed(memory, 1, worlds);
    for (int w = 0; w < worlds; ++w) seed.set(0, w, t.final.q(0, w) - M_PI / 2);
    return seed;
  }
  Result backward(Tape<double>&& tape, const Trajectory<double>& t, const Buffer<double>& seed) const {
    Seeds<double> seeds;
    seeds.add(t.final.q, seed);
    const Gradients<double> g = std::move(tape).backward(seeds);
    return {g.of(start.q), g.of(start.qd), g.of(torque.u), g.parameters()};
  }
  Result gradient() {
    Tape<double> tape(memory);
    const Trajectory<double> t = record(tape);
    return backward(std::move(tape), t, seed_of(t));
  }
};

testing::AssertionResult same_parameters(const Parameters& a, const Parameters& b) {
  for (const Field& field : fields()) {
    const Parameter &x = field.in(a), &y = field.in(b);
    for (int i = 0; i < x.items(); ++i) {
      for (int k = 0; k < x.components(); ++k) {
        if (x(i, k) != y(i, k)) return testing::AssertionFailure() << field.leaf << " " << x(i, k) << " " << y(i, k);
      }
    }
  }
  return testing::AssertionSuccess();
}

void expect_same(const InvertedPendulum::Result& a, const InvertedPendulum::Result& b) {
  ASSERT_TRUE(test::same_bits(a.q, b.q));
  ASSERT_TRUE(test::same_bits(a.qd, b.qd));
  ASSERT_TRUE(test::same_bits(a.torque, b.torque));
  ASSERT_TRUE(same_parameters(a.parameters, b.parameters));
}

TEST(SeedsAccumulation, AThousandFreshTapesGiveTheSameBits) {
  InvertedPendulum p;
  const auto first = p.gradient();
  EXPECT_NE(first.torque(0, 0), 0);
  EXPECT_NE(first.parameters.bodies.mass(0), 0);
  for (int i = 0; i < 1000; ++i) expect_same(p.gradient(), first);
}

// Scratch, tapes and states of its own, or those that others have used and left full of numbers: the same bits.
TEST(SeedsAccumulation, NothingOfAnEarlierRolloutIsLeftInMemory) {
  InvertedPendulum shared;
  const auto first = shared.gradient();
  for (int k = 0; k < 50; ++k) {
    std::vector<Buffer<double>> dirt;
    for (const int rows : {1, 2, 8, 31, 60, 61, 122, 500, 4000}) {
      dirt.emplace_back(shared.memory, rows, InvertedPendulum::worlds);
      dirt.back().fill(k % 2 ? 1e300 : std::numeric_limits<double>::quiet_NaN());
    }
    dirt.clear();
    expect_same(shared.gradient(), first);
    InvertedPendulum own;
    expect_same(own.gradient(), first);
  }
}

TEST(SeedsAccumulation, SeedsAreReadOnlyAndMayBeUsedAgain) {
  InvertedPendulum p;
  const auto want = p.gradient();
  Tape<double> sample(p.memory);
  const Buffer<double> seed = p.seed_of(p.record(sample));
  const std::uint64_t version = seed.version();
  const std::array<double, 2> bytes{seed(0, 0), seed(0, 1)};
  for (int i = 0; i < 20; ++i) {
    Tape<double> tape(p.memory);
    const Trajectory<double> t = p.record(tape);
    expect_same(p.backward(std::move(tape), t, seed), want);
    EXPECT_EQ(seed.version(), version);
    EXPECT_EQ(std::memcmp(seed.row(0), bytes.data(), sizeof bytes), 0);
  }
}

// A seed may be the very buffer it is a seed of, and one may be added twice.
TEST(SeedsAccumulation, SeedsMayAliasWhatWasRecorded) {
  InvertedPendulum p;
  const auto run = [&](int times, bool alias) {
    Tape<double> tape(p.memory);
    const Trajectory<double> t = p.record(tape);
    const Buffer<double> before = t.q.clone(p.memory);
    Seeds<double> seeds;
    for (int i = 0; i < times; ++i) seeds.add(t.q, alias ? t.q : before);
    const Gradients<double> g = std::move(tape).backward(seeds);
    EXPECT_TRUE(test::same_bits(t.q, before));
    return g.of(p.start.q)(0, 1);
  };
  EXPECT_EQ(run(1, true), run(1, false));
  EXPECT_EQ(run(2, true), 2 * run(1, false));
}

TEST(SeedsAccumulation, GradientsOfAFirstRolloutOutliveASecond) {
  InvertedPendulum p, reference;
  const auto want = reference.gradient();
  const auto first = p.gradient();
  Tape<double> held(p.memory);
  const Trajectory<double> t = p.record(held);
  for (int i = 0; i < 5; ++i) p.gradient();
  p.torque.u.clone(p.memory);
  expect_same(first, want);
  // And those of a recording made before others, walked after them.
  expect_same(p.backward(std::move(held), t, p.seed_of(t)), want);
}

TEST(SeedsAccumulation, ExplicitSumsAreExact) {
  InvertedPendulum p;
  const auto one = p.gradient();
  Buffer<double> sum(InvertedPendulum::steps, InvertedPendulum::worlds);
  for (int i = 0; i < 8; ++i) {
    const auto again = p.gradient();
    for (int r = 0; r < sum.rows(); ++r) {
      for (int w = 0; w < sum.worlds(); ++w) sum.write(r)[w] += again.torque(r, w);
    }
  }
  for (int r = 0; r < sum.rows(); ++r) {
    // 2x and 4x are exact, 3x, 5x, 6x and 7x round: eight sums of at most half an ulp each.
    EXPECT_NEAR(sum(r, 1), 8 * one.torque(r, 1), 4 * 2.3e-16 * std::abs(8 * one.torque(r, 1)));
  }
}

// ---- leaks
// -------------------------------------------------------------------------------------------------------------

struct Live {
  std::size_t live, pooled, nodes, heap;
  std::uint64_t allocations;
  /// All but the heap, which includes malloc's own rounding.
  bool operator==(const Live& b) const {
    return std::tie(live, pooled, nodes, allocations) == std::tie(b.live, b.pooled, b.nodes, b.allocations);
  }
};
void PrintTo(const Live& l, std::ostream* out) {
  *out << l.live << " bytes live, " << l.pooled << " pooled, " << l.nodes << " nodes, " << l.heap
       << " bytes on the heap, " << l.allocations << " allocations";
}

Live live(const Memory& memory) {
  const MemoryCounters own = memory.counters(), shared = default_memory().counters();
  return {own.live_bytes + shared.live_bytes, own.pooled_bytes + shared.pooled_bytes, tape_counters().nodes,
          mallinfo2().uordblks, own.allocations + shared.allocations};
}

constexpr int kIterations = test::kSlowBuild ? 200 : 10'000;
constexpr bool kResidentIsTelling = !test::kSlowBuild;  // allocators of slow builds have habits of their own

constexpr double kHeapSlack = 1024;

/// Bytes of this process that are in memory.
long resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Counters after every iteration from the tenth to the last are equal; resident memory stays within a few pages that
/// the system's own bookkeeping takes.
void expect_flat(const InvertedPendulum& p, const std::function<void()>& iteration) {
  for (int i = 0; i < 10; ++i) iteration();
  const long resident = resident_bytes();
  const Live before = live(p.memory);
  for (int i = 10; i < kIterations; ++i) {
    iteration();
    const Live now = live(p.memory);
    ASSERT_EQ(now, before) << "iteration " << i;
    // malloc may hand out a chunk 16 or 32 bytes larger than another time, when what would be left of it is too small
    // to stand alone; a leak of one allocation an iteration would be past this within the first thirty.
    ASSERT_NEAR(static_cast<double>(now.heap), static_cast<double>(before.heap), kHeapSlack) << "iteration " << i;
  }
  EXPECT_EQ(tape_counters().nodes, 0u);
  if (kResidentIsTelling) {
    EXPECT_LE(resident_bytes() - resident, 256 * 1024);
  }
}

// What the test is worth: 24 bytes kept in each iteration are seen in the next.
TEST(SeedsLeak, AKeptHandleIsSeen) {
  InvertedPendulum p;
  std::vector<Buffer<double>> kept;
  kept.reserve(100);
  const Live before = live(p.memory);
  kept.emplace_back(p.memory, 1, 1);
  EXPECT_FALSE(live(p.memory) == before);
}
TEST(SeedsLeak, Optimise) {
  InvertedPendulum p;
  Problem problem;
  problem.model = test::pendulum();
  problem.simulation.steps = InvertedPendulum::steps;
  problem.initial_position = {3.14};
  problem.initial_velocity = {0};
  LossTerm term;
  term.target[0] = M_PI / 2;
  problem.loss.push_back(term);
  for (const bool parameter : {false, true}) {
    Variable variable;
    variable.name = parameter ? "joints/hinge/damping" : "control/hinge";
    variable.kind = parameter ? VariableKind::parameter : VariableKind::control;
    if (parameter) variable.parameter = select_fields(problem.model, variable.name).at(0);
    variable.knots = parameter ? 0 : 5;
    problem.variables.push_back(variable);
  }
  const auto objective = make_objective(problem, {});
  std::vector<std::vector<double>> x = initial_points(problem, 2, 1), gradient;
  std::vector<double> loss;
  expect_flat(p, [&] {
    objective->evaluate(x, loss, gradient);
    for (size_t w = 0; w < x.size(); ++w) {
      for (size_t k = 0; k < x[w].size(); ++k) x[w][k] = std::max(0.0, x[w][k] - 1e-3 * gradient[w][k]);
    }
  });
}
TEST(SeedsLeak, InspectParametersOnly) {
  InvertedPendulum p;
  std::size_t sum = 0;
  expect_flat(p, [&] {
    for (const Field& field : fields()) {
      const Parameter& values = field.in(p.model);
      for (int i = 0; i < values.items(); ++i) sum += (values(i) != 0) + values.requires_grad(i);
    }
    for (const FieldSelection& s : select_fields(p.model, "bodies/*")) sum += path_of(p.model, s).size();
    const Parameters copy = p.model;
    sum += copy.bodies.mass(0) > 0;
  });
  EXPECT_GT(sum, 0u);
}
TEST(SeedsLeak, ForwardKeepsNothingButItsResult) {
  InvertedPendulum p;
  set_requires_grad(p.model, "*", false);
  p.options.keep_states = false;
  { rollout(p.model, p.start, p.torque, p.options, p.memory); }
  const std::size_t before = p.memory.counters().live_bytes;
  {
    const Trajectory<double> t = rollout(p.model, p.start, p.torque, p.options, p.memory);
    EXPECT_EQ(tape_counters().nodes, 0u);
    const State<double> same(p.model, InvertedPendulum::worlds, p.memory);
    const std::size_t state_bytes = [&] {
      Memory other;
      const State<double> alone(p.model, InvertedPendulum::worlds, other);
      return other.counters().live_bytes;
    }();
    EXPECT_EQ(p.memory.counters().live_bytes - before, 2 * state_bytes);
  }
  EXPECT_EQ(p.memory.counters().live_bytes, before);
}
TEST(SeedsLeak, ForwardAndBackward) {
  InvertedPendulum p;
  expect_flat(p, [&] { p.gradient(); });
}
TEST(SeedsLeak, ForwardOnly) {
  InvertedPendulum p;
  expect_flat(p, [&] { rollout(p.model, p.start, p.torque, p.options, p.memory); });
}
TEST(SeedsLeak, TapeDroppedWithoutBackward) {
  InvertedPendulum p;
  expect_flat(p, [&] {
    Tape<double> tape(p.memory);
    p.record(tape);
    EXPECT_EQ(tape_counters().nodes, 1u);
  });
}
TEST(SeedsLeak, EveryParameterReplacedEachIteration) {
  InvertedPendulum p;
  const Model original = p.model;
  double mass = 1;
  expect_flat(p, [&] {
    for (const Field& field : fields()) {
      Parameter fresh(field.components);
      const Parameter& values = field.in(original);
      fresh.resize(values.items());
      for (int i = 0; i < values.items(); ++i) {
        for (int c = 0; c < field.components; ++c) fresh.set(i, c, values(i, c));
        fresh.requires_grad(i, values.requires_grad(i));
      }
      field.of(p.model) = std::move(fresh);
    }
    p.model.bodies.mass.set(0, 0, mass += 0.001);
    p.start.q = Buffer<double>(p.memory, 1, InvertedPendulum::worlds);
    p.gradient();
  });
}
TEST(SeedsLeak, TwoTapesInEitherOrder) {
  InvertedPendulum p;
  bool turn = false;
  expect_flat(p, [&] {
    Tape<double> a(p.memory), b(p.memory);
    const Trajectory<double> ta = p.record(a), tb = p.record(b);
    turn = !turn;
    if (turn) p.backward(std::move(a), ta, p.seed_of(ta));
    p.backward(std::move(b), tb, p.seed_of(tb));
    if (!turn) p.backward(std::move(a), ta, p.seed_of(ta));
  });
}
TEST(SeedsLeak, ErrorsInMidRollout) {
  InvertedPendulum p;
  const Buffer<double> gains = test::policy_gains<double>(p.model, InvertedPendulum::worlds);
  RolloutOptions one;
  expect_flat(p, [&] {
    Tape<double> tape(p.memory);
    State<double> state = p.start;
    try {
      for (int k = 0;; ++k) {
        state = step(tape, p.model, state, test::apply_policy(&tape, p.model, gains, state), one);
        if (k == 5) throw std::runtime_error("the policy gave up");
      }
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(tape_counters().nodes, 12u);
  });
}
TEST(SeedsLeak, ErrorsInMidBackward) {
  InvertedPendulum p;
  expect_flat(p, [&] {
    Tape<double> tape(p.memory);
    Buffer<double> leaf(p.memory, 1, 2), made(p.memory, 1, 2);
    tape.record({{leaf}, {made}, [](Cotangents<double>&) { throw std::runtime_error("mine"); }});
    const Trajectory<double> t = p.record(tape);
    Seeds<double> seeds;
    seeds.add(t.final.q, p.seed_of(t));
    EXPECT_THROW(std::move(tape).backward(seeds), std::runtime_error);
  });
}
TEST(SeedsLeak, UsageErrors) {
  InvertedPendulum p;
  expect_flat(p, [&] {
    Tape<double> tape(p.memory);
    const Trajectory<double> t = p.record(tape);
    Seeds<double> foreign;
    foreign.add(p.start.qd.clone(p.memory), p.start.qd);
    EXPECT_THROW(std::move(tape).backward(foreign), Error);
    RolloutOptions wrong = p.options;
    wrong.steps = 1;
    Tape<double> other(p.memory);
    EXPECT_THROW(rollout(other, p.model, p.start, p.torque, wrong), Error);
  });
}
// Threads have arenas of their own, which malloc's counter of the main one does not see: pool and nodes must be flat.
TEST(SeedsLeak, RecordingsThatChangeThreads) {
  InvertedPendulum p;
  const auto iteration = [&] {
    Tape<double> tape(p.memory);
    const Trajectory<double> t = p.record(tape);
    std::thread([&, moved = std::move(tape)]() mutable { p.backward(std::move(moved), t, p.seed_of(t)); }).join();
  };
  for (int i = 0; i < 10; ++i) iteration();
  const long resident = resident_bytes();
  const MemoryCounters before = p.memory.counters();
  for (int i = 10; i < kIterations; ++i) {
    iteration();
    const MemoryCounters now = p.memory.counters();
    ASSERT_EQ(now.live_bytes, before.live_bytes) << "iteration " << i;
    ASSERT_EQ(now.allocations, before.allocations) << "iteration " << i;
  }
  if (kResidentIsTelling) {
    EXPECT_LE(resident_bytes() - resident, 1024 * 1024);
  }
  EXPECT_EQ(tape_counters().nodes, 0u);
}

// ---- the story of Warp #720: requires_grad of a nested parameter is switched off under a recording
// ----------------------

/// A pole that takes its mass from a shape, so that geometry.scale has a gradient.
Model scaled_model() {
  ModelBuilder builder;
  builder.add_body("ball", {});
  builder.add_shape("ball", 0,
                    {.type = GeometryType::sphere, .scale = {0.1, 0, 0}, .frame = {{0, 0, -0.5}}, .density = 500});
  JointOptions hinge;
  hinge.axis = {0, 1, 0};
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, 0, hinge);
  return builder.build();
}

/// Somebody else's memory, taken from the pool that the tape uses, with a pattern that must survive.
struct Others {
  std::vector<Buffer<double>> blocks;
  void take(Memory& memory) {
    for (const int rows : {1, 2, 3, 8, 31, 60, 61, 62, 120}) {
      for (int k = 0; k < 4; ++k) {
        blocks.emplace_back(memory, rows, 2);
        blocks.back().fill(-77.25);
      }
    }
  }
  void expect_unchanged() const {
    for (const Buffer<double>& b : blocks) {
      for (int r = 0; r < b.rows(); ++r) {
        for (int w = 0; w < b.stride(); ++w) ASSERT_EQ(b.row(r)[w], -77.25);
      }
    }
  }
};

// Whatever happens to the model after the recording, in whatever order, the backward gives the recording's gradient and
// writes to nothing that is not its own.
TEST(SeedsDangling, AnyOrderOfEventsBetweenRecordAndBackward) {
  const auto gradient = [](const std::vector<int>& events) {
    Memory memory;
    auto model = std::make_unique<Model>(scaled_model());
    set_requires_grad(*model, "shapes/ball/geometry/scale", true);
    State<double> start(*model, 2, memory);
    start.q.fill(1);
    RolloutOptions options;
    options.steps = 60;
    Tape<double> tape(memory);
    Trajectory<double> t = rollout<double>(tape, *model, start, {}, options);
    Others others;
    Seeds<double> seeds;
    seeds.add(t.final.q, t.final.q);
    const Buffer<double> leaf = start.q;
    for (const int event : events) {
      switch (event) {
        case 0:
          if (model) set_requires_grad(*model, "shapes", false);
          break;
        case 1:
          if (model) model->shapes.geometry.scale = model->shapes.geometry.scale.zeros(3, 1);
          break;
        case 2:
          if (model) model->shapes = scaled_model().shapes;
          break;
        case 3:
          model.reset();
          break;
        case 4:
          start = State<double>();
          t = Trajectory<double>();
          break;
        case 5:
          others.take(memory);
          break;
      }
    }
    const Gradients<double> g = std::move(tape).backward(seeds);
    others.expect_unchanged();
    return std::array<double, 2>{g.of(leaf)(0, 1), g.parameters().shapes.geometry.scale(0, 0)};
  };
  const auto want = gradient({});
  EXPECT_NE(want[1], 0);
  std::vector<int> events{0, 1, 2, 3, 4, 5};
  int orders = 0;
  do {
    ASSERT_EQ(gradient(events), want);
    ++orders;
  } while (std::next_permutation(events.begin(), events.end()));
  EXPECT_EQ(orders, 720);
}

// Nothing is asked for, allocated or written for a path from the first recording after it was switched off.
TEST(SeedsDangling, SwitchedOffAPathCostsNothing) {
  const auto requests = [](InvertedPendulum& p) {
    const std::uint64_t before = p.memory.counters().requests;
    const InvertedPendulum::Result result = p.gradient();
    bool any = false;
    for (const Field& field : fields()) any = any || field.in(result.parameters).any_requires_grad();
    return std::pair(p.memory.counters().requests - before, any);
  };
  InvertedPendulum switched, never;
  set_requires_grad(never.model, "*", false);
  const auto on = requests(switched);
  set_requires_grad(switched.model, "*", false);
  EXPECT_EQ(requests(switched), requests(never));
  EXPECT_GT(on.first, requests(never).first);
  EXPECT_TRUE(on.second);
  EXPECT_FALSE(requests(switched).second);
}

// Copies of a model, and of its parts, share nothing.
TEST(SeedsDangling, CopiesOfAModelShareNothing) {
  Model a = scaled_model();
  set_requires_grad(a, "shapes/ball/geometry/scale", true);
  Model b = a;
  ShapeParameters shapes = a.shapes;
  set_requires_grad(b, "*", false);
  b.shapes.geometry.scale.set(0, 0, 9);
  EXPECT_TRUE(a.shapes.geometry.scale.requires_grad(0));
  EXPECT_TRUE(shapes.geometry.scale.requires_grad(0));
  EXPECT_EQ(a.shapes.geometry.scale(0, 0), 0.1);
  a = Model();
  EXPECT_EQ(shapes.geometry.scale(0, 0), 0.1);
}

}  // namespace
}  // namespace backdrive
