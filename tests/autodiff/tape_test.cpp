// The rules of a tape: one backward, what was recorded is what counts, and every misuse is an error that says so.
#include "autodiff/tape/tape.h"

#include <gtest/gtest.h>

#include <thread>

#include "autodiff/tape/rollout.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/policy.h"

namespace backdrive {
namespace {

using test::expect_usage_error;

constexpr int kWorlds = 3, kSteps = 4;

/// A recorded rollout with poses, and everything that belongs to it.
struct Recording {
  Model model = [] {
    Model m = test::chain(3);
    test::require_all(m);
    return m;
  }();
  test::Batch<double> batch = test::random_batch<double>(model, kSteps, test::first_worlds(kWorlds), 1);
  RolloutOptions options = [] {
    RolloutOptions o;
    o.steps = kSteps;
    return o;
  }();
  Tape<double> tape;
  Trajectory<double> trajectory = rollout(tape, model, batch.state, batch.control, options);
  std::vector<int> bodies{2};
  Buffer<double> poses = body_poses(&tape, model, trajectory.q, bodies, options, tape.memory());

  Seeds<double> seeds() const {
    Seeds<double> s;
    for (const Buffer<double>& b : {trajectory.q, trajectory.final.qd, poses}) s.add(b, b);
    return s;
  }
};

TEST(SeedsTape, ASecondBackwardIsAnError) {
  Recording r;
  const Seeds<double> seeds = r.seeds();
  std::move(r.tape).backward(seeds);
  expect_usage_error([&] { std::move(r.tape).backward(seeds); }, {"tape", "spent", "one backward"});
  expect_usage_error([&] { rollout(r.tape, r.model, r.batch.state, r.batch.control, r.options); }, {"spent", "fresh"});
  EXPECT_EQ(r.tape.nodes(), 0u);
}

TEST(SeedsTape, AMovedFromTapeIsAnError) {
  Recording r;
  Tape<double> other = std::move(r.tape);
  expect_usage_error([&] { std::move(r.tape).backward(r.seeds()); }, {"moved from"});  // NOLINT: on purpose
  expect_usage_error([&] { rollout(r.tape, r.model, r.batch.state, r.batch.control, r.options); }, {"moved from"});
  EXPECT_EQ(other.nodes(), 2u);
  EXPECT_TRUE(std::move(other).backward(r.seeds()).has(r.batch.state.q));
}

TEST(SeedsTape, SeedsOfAnotherTapeAreAnError) {
  Recording r, other;
  expect_usage_error([&] { std::move(r.tape).backward(other.seeds()); }, {"seed", "did not record"});
  // It was spent all the same: half a backward is none.
  expect_usage_error([&] { std::move(r.tape).backward(r.seeds()); }, {"spent"});
  std::move(other.tape).backward(other.seeds());
}

TEST(SeedsTape, SeedsHaveTheShapeOfTheirTarget) {
  Recording r;
  Seeds<double> seeds;
  expect_usage_error([&] { seeds.add(r.trajectory.q, Buffer<double>(2, kWorlds)); }, {"seed", "2 x 3", "15 x 3"});
  expect_usage_error([&] { seeds.add(r.trajectory.q, Buffer<double>(15, 1)); }, {"15 x 1", "15 x 3"});
  EXPECT_TRUE(seeds.entries().empty());
}

// A buffer that a recording read or made and that was written to since would give the gradient of other numbers.
TEST(SeedsTape, ARecordedBufferMayNotBeWrittenBeforeBackward) {
  const auto targets = [](Recording& r) {
    return std::vector<Buffer<double>>{r.batch.state.q, r.batch.state.qd,     r.batch.control.u,     r.trajectory.q,
                                       r.trajectory.qd, r.trajectory.final.q, r.trajectory.final.qd, r.poses};
  };
  Recording sample;
  for (std::size_t k = 0; k < targets(sample).size(); ++k) {
    Recording r;
    const Seeds<double> seeds = r.seeds();
    Buffer<double> target = targets(r)[k];
    target.set(0, 0, target(0, 0));
    expect_usage_error([&] { std::move(r.tape).backward(seeds); }, {"written to between record and backward"});
  }
  // Reading is no writing.
  const double sum = sample.batch.state.q(0, 0) + sample.trajectory.q.row(1)[0];
  EXPECT_NE(sum, 0);
  std::move(sample.tape).backward(sample.seeds());
}

TEST(SeedsTape, OnlyInputsHaveAGradient) {
  Recording r;
  const Gradients<double> g = std::move(r.tape).backward(r.seeds());
  EXPECT_TRUE(g.has(r.batch.state.qd));
  EXPECT_FALSE(g.has(r.trajectory.q));
  expect_usage_error([&] { g.of(r.trajectory.q); }, {"no gradient of this buffer"});
  expect_usage_error([&] { g.of(Buffer<double>(3, kWorlds)); }, {"no input of the tape"});
}

// Gradients are those of what was asked for, and of the numbers, when the recording was made.
TEST(SeedsTape, TheModelOfTheRecordingCounts) {
  Recording plain;
  const Gradients<double> want = std::move(plain.tape).backward(plain.seeds());
  Recording r;
  set_requires_grad(r.model, "*", false);
  r.model.bodies.mass.set(0, 0, 77);
  r.model.gravity.set(0, 2, 0);
  const Seeds<double> seeds = r.seeds();
  r.model = Model();
  const Gradients<double> got = std::move(r.tape).backward(seeds);
  EXPECT_TRUE(test::same_bits(got.of(r.batch.state.q), want.of(plain.batch.state.q)));
  for (const Field& field : fields()) {
    const Parameter &a = field.in(got.parameters()), &b = field.in(want.parameters());
    ASSERT_EQ(a.items(), b.items());
    for (int i = 0; i < a.items(); ++i) {
      EXPECT_EQ(a.requires_grad(i), b.requires_grad(i));
      for (int k = 0; k < a.components(); ++k) EXPECT_EQ(a(i, k), b(i, k)) << field.leaf;
    }
  }
  EXPECT_NE(got.parameters().bodies.mass(1), 0);
}

TEST(SeedsTape, AskingAfterRecordingIsTooLate) {
  Model model = test::chain(3);
  const auto batch = test::random_batch<double>(model, kSteps, test::first_worlds(kWorlds), 1);
  RolloutOptions options;
  options.steps = kSteps;
  Tape<double> tape;
  const auto t = rollout(tape, model, batch.state, batch.control, options);
  test::require_all(model);
  Seeds<double> seeds;
  seeds.add(t.q, t.q);
  const Gradients<double> g = std::move(tape).backward(seeds);
  EXPECT_EQ(g.parameters().bodies.mass(1), 0);
  EXPECT_FALSE(g.parameters().bodies.mass.requires_grad(1));
}

// Two rollouts on one tape add up; what each asks for is what it contributes.
TEST(SeedsTape, RolloutsOfOneModelShareATape) {
  const auto gradient = [](bool first, bool second) {
    Recording r;
    r.tape = Tape<double>();
    Model half = r.model;
    set_requires_grad(half, "bodies", false);
    const auto a = rollout(r.tape, r.model, r.batch.state, r.batch.control, r.options);
    const auto b = rollout(r.tape, half, r.batch.state, r.batch.control, r.options);
    Seeds<double> seeds;
    if (first) seeds.add(a.q, a.q);
    if (second) seeds.add(b.q, b.q);
    // What only the first recording asks for is disconnected from a loss of the second.
    const Gradients<double> g = std::move(r.tape).backward(seeds, first ? Disconnected::error : Disconnected::zero);
    EXPECT_EQ(g.disconnected().empty(), first);
    return std::array<double, 3>{g.of(r.batch.state.q)(0, 0), g.parameters().bodies.mass(1),
                                 g.parameters().joints.damping(1)};
  };
  const auto a = gradient(true, false), b = gradient(false, true), both = gradient(true, true);
  EXPECT_EQ(both[0], 2 * a[0]);
  EXPECT_EQ(a[0], b[0]);
  EXPECT_EQ(both[1], a[1]);
  EXPECT_EQ(b[1], 0);
  EXPECT_EQ(both[2], 2 * a[2]);
}

TEST(SeedsTape, ModelsOfDifferentShapeOnOneTapeAreAnError) {
  Recording r;
  Model other = test::chain(4);
  test::require_all(other);
  const auto batch = test::random_batch<double>(other, kSteps, test::first_worlds(kWorlds), 1);
  rollout(r.tape, other, batch.state, batch.control, r.options);
  expect_usage_error([&] { std::move(r.tape).backward(r.seeds()); }, {"two models", "mass", "3 items", "4"});
  // Allowed where at most one of them asks.
  Recording s;
  set_requires_grad(other, "*", false);
  const auto t = rollout(s.tape, other, batch.state, batch.control, s.options);
  Seeds<double> seeds = s.seeds();
  seeds.add(t.q, t.q);
  const Gradients<double> g = std::move(s.tape).backward(seeds);
  EXPECT_EQ(g.parameters().bodies.mass.items(), 3);
  EXPECT_TRUE(g.has(batch.state.q));
}

// ---- custom operations ----------------------------------------------------------------------------------------------

/// y = a + b, whose adjoint hands the very same cotangent to both.
Buffer<double> recorded_sum(Tape<double>& tape, const Buffer<double>& a, const Buffer<double>& b) {
  Buffer<double> y(a.rows(), a.worlds());
  for (int r = 0; r < a.rows(); ++r) {
    for (int w = 0; w < a.worlds(); ++w) y.set(r, w, a(r, w) + b(r, w));
  }
  tape.record({{a, b}, {y}, [=](Cotangents<double>& bars) {
                 bars.add(a, *bars.find(y));
                 bars.add(b, *bars.find(y));
               }});
  return y;
}

// Handing one cotangent to several inputs must not tie their cotangents together: y = (a + b) + a has ∂y/∂a = 2, ∂y/∂b
// = 1.
TEST(SeedsCustom, OneCotangentHandedToSeveralInputs) {
  for (const bool first : {false, true}) {
    Tape<double> tape;
    Buffer<double> a(2, 2), b(2, 2), seed(2, 2);
    seed.fill(1);
    const Buffer<double> s = recorded_sum(tape, a, b);
    const Buffer<double> y = first ? recorded_sum(tape, s, a) : recorded_sum(tape, a, s);
    Seeds<double> seeds;
    seeds.add(y, seed);
    const Gradients<double> g = std::move(tape).backward(seeds);
    EXPECT_EQ(g.of(a)(1, 1), 2);
    EXPECT_EQ(g.of(b)(1, 1), 1);
    EXPECT_EQ(seed(1, 1), 1);
  }
}

TEST(SeedsCustom, MisuseIsAnError) {
  Tape<double> tape;
  Buffer<double> a(2, 2), b(2, 2), wide(2, 5);
  expect_usage_error([&] { tape.record({{a}, {b}, nullptr}); }, {"custom operation", "adjoint"});
  EXPECT_EQ(tape.nodes(), 0u);
  // A cotangent of another shape.
  tape.record({{a}, {b}, [&](Cotangents<double>& bars) { bars.add(a, wide); }});
  Seeds<double> seeds;
  seeds.add(b, b);
  expect_usage_error([&] { std::move(tape).backward(seeds); }, {"cotangent", "2 x 5", "2 x 2"});
  // In place: the cotangent before and after would be one.
  Tape<double> in_place;
  in_place.record({{b}, {b}, [](Cotangents<double>&) {}});
  expect_usage_error([&] { std::move(in_place).backward(seeds); }, {"puts out", "of its own"});
  Tape<double> twice;
  twice.record({{a}, {b}, [](Cotangents<double>&) {}});
  twice.record({{a}, {b}, [](Cotangents<double>&) {}});
  expect_usage_error([&] { std::move(twice).backward(seeds); }, {"puts out"});
}

TEST(SeedsCustom, BuffersAreWatchedToo) {
  Tape<double> tape;
  Buffer<double> a(2, 2), b(2, 2);
  tape.record({{a}, {b}, [](Cotangents<double>&) {}});
  a.set(0, 0, 1);
  Seeds<double> seeds;
  seeds.add(b, b);
  expect_usage_error([&] { std::move(tape).backward(seeds); }, {"written to"});
}

TEST(SeedsCustom, AnErrorInTheAdjointIsPassedOn) {
  Recording r;
  const Buffer<double> x = r.trajectory.final.q;
  Buffer<double> y(1, kWorlds);
  r.tape.record({{x}, {y}, [](Cotangents<double>&) { throw std::runtime_error("mine"); }});
  Seeds<double> seeds = r.seeds();
  seeds.add(y, y);
  EXPECT_THROW(std::move(r.tape).backward(seeds), std::runtime_error);
  expect_usage_error([&] { std::move(r.tape).backward(seeds); }, {"spent"});
}

TEST(SeedsTape, MayBeRecordedAndWalkedOnDifferentThreads) {
  Recording here;
  const Gradients<double> want = std::move(here.tape).backward(here.seeds());
  auto r = std::make_unique<Recording>();
  std::unique_ptr<Gradients<double>> got;
  std::thread([&] {
    Tape<double> tape = std::move(r->tape);
    got = std::make_unique<Gradients<double>>(std::move(tape).backward(r->seeds()));
  }).join();
  EXPECT_TRUE(test::same_bits(got->of(r->batch.state.q), want.of(here.batch.state.q)));
}

}  // namespace
}  // namespace backdrive
