// Gradients whose states are computed again, and gradients in windows.
#include "autodiff/tape/checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "autodiff/problem/loss.h"
#include "autodiff/tape/rollout.h"
#include "models/parameter_list.h"
#include "tests/support/batch.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

/// An arm with everything that a step may do, under controls, with every kind of loss term.
Problem busy_problem(int steps) {
  Problem problem;
  test::TreeOptions features;
  features.forces = true;
  features.shapes = true;
  problem.model = test::random_tree(5, features);
  test::require_all(problem.model);
  problem.simulation.time_step = 0.01;
  problem.simulation.steps = steps;
  const Topology& t = problem.model.topology;
  problem.initial_position.assign(t.nq, 0.3);
  problem.initial_velocity.assign(t.nv, -0.2);
  int joint = 0;
  while (joint_size(problem.model.joint_types[joint]).nv == 0) ++joint;
  problem.controls.push_back({joint, ControlChannel::effort, {0.5, -1.0, 2.0}, false});
  const int body = static_cast<int>(problem.model.body_names.size()) - 1;
  const auto add = [&](LossQuantity quantity, bool terminal, int index) {
    LossTerm term;
    term.quantity = quantity;
    term.terminal = terminal;
    term.index = index;
    term.target = {0.1, 0.2, 0.3, 0.9};
    if (quantity == LossQuantity::body_orientation) term.target = {0, 0, 0.6, 0.8};
    term.weight = 0.7;
    problem.loss.push_back(term);
  };
  for (const bool terminal : {true, false}) {
    add(LossQuantity::joint_position, terminal, joint);
    add(LossQuantity::joint_velocity, terminal, joint);
    add(LossQuantity::body_position, terminal, body);
    add(LossQuantity::body_orientation, terminal, body);
  }
  add(LossQuantity::control, false, joint);
  for (std::size_t k = 4; k < 9; ++k) {  // a window that begins and ends within pieces, and one step
    LossTerm term = problem.loss[k];
    term.first_step = steps / 3;
    term.last_step = steps - 3;
    if (!term.is_control()) {
      term.record.times = {0, 0.01 * steps / 2, 0.01 * steps};
      term.record.values = {{0, 0, 0, 1}, {0.6, 0, 0, 0.8}, {0, 0.8, 0, 0.6}};
    }
    problem.loss.push_back(term);
    term.record = {};
    term.first_step = term.last_step = steps / 2;
    term.integral = false;
    problem.loss.push_back(term);
  }
  // Of bodies' velocities, efforts and distances, and of the step where an error is least or greatest.
  add(LossQuantity::body_velocity, false, body);
  add(LossQuantity::body_angular_velocity, true, body);
  add(LossQuantity::distance, false, body);
  problem.loss.back().other_point = {0.4, -0.3, 0.2};
  add(LossQuantity::joint_effort, false, joint);
  problem.loss.back().part = EffortPart::total;
  add(LossQuantity::joint_power, false, joint);
  for (const std::size_t k : {std::size_t{5}, problem.loss.size() - 3, problem.loss.size() - 2}) {
    for (const OverTime over : {OverTime::least, OverTime::greatest}) {
      LossTerm term = problem.loss[k];
      term.over = over;
      term.measure = ErrorMeasure::absolute;
      problem.loss.push_back(term);
    }
  }
  return problem;
}

template <class T>
struct Result {
  Buffer<T> terms, q, qd, control;
  Parameters parameters;
  WindowCounts windows;
};

/// `passed`: as RolloutOptions says.
template <class T>
Result<T> gradient(const Problem& problem, const MemoryPlan& plan, const GradientWindow& window = {}, int threads = 1,
                   int worlds = 3, const std::function<void(std::int64_t)>& passed = {}) {
  Memory memory;
  RolloutOptions options;
  options.passed = passed;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  options.threads = threads;
  options.plan = plan;
  options.window = window;
  State<T> state = initial_state<T>(problem, worlds, memory);
  for (int w = 0; w < worlds; ++w) state.q.set(0, w, T(0.1 * w));
  const Control<T> control = initial_control<T>(problem, worlds, memory);
  Tape<T> tape(memory);
  std::shared_ptr<LossObserver<T>> observer;
  if (!plan.keeps_all()) observer = observe_loss<T>(problem, control, options, worlds, memory);
  const Trajectory<T> trajectory = rollout(tape, problem.model, state, control, options, observer);
  const LossResult<T> loss = evaluate_loss(problem, trajectory, control, options, &tape, observer.get());
  const Gradients<T> g = std::move(tape).backward(loss.seeds);
  return {loss.terms, g.of(state.q), g.of(state.qd), g.of(control.u), g.parameters(), g.windows()};
}

template <class T>
void expect_same(const Result<T>& a, const Result<T>& b) {
  EXPECT_TRUE(test::same_bits(a.terms, b.terms));
  EXPECT_TRUE(test::same_bits(a.q, b.q));
  EXPECT_TRUE(test::same_bits(a.qd, b.qd));
  EXPECT_TRUE(test::same_bits(a.control, b.control));
  EXPECT_TRUE(test::expect_equal_parameters(a.parameters, b.parameters));
}

/// Ends an evaluation.
struct Ended {};

template <class T>
class SeedsCheckpoints : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(SeedsCheckpoints, Precisions);

// Between the parts of a long rollout there is somebody who may end it; what is told adds up to what is done.
TYPED_TEST(SeedsCheckpoints, TellOfTheirParts) {
  const Problem problem = busy_problem(9001);
  const Result<TypeParam> all = gradient<TypeParam>(problem, {}, {}, 1, 1);
  for (const MemoryPlan& plan : {MemoryPlan{64, 2}, MemoryPlan{4500, 2}, MemoryPlan{}}) {
    std::int64_t steps = 0, longest = 0;
    const auto count = [&](std::int64_t part) {
      steps += part;
      longest = std::max(longest, part);
    };
    expect_same(all, gradient<TypeParam>(problem, plan, {}, 1, 1, count));
    RolloutSize size;
    size.steps = 9001;
    size.worlds = 1;
    EXPECT_NEAR(static_cast<double>(steps), 9001 * (2 + cost_of(size, plan).recomputed), plan.piece + 1) << plan.piece;
    EXPECT_LE(longest, plan.keeps_all() ? 9001 : std::max(plan.piece, 4096)) << plan.piece;
  }
  int parts = 0;
  const auto end = [&](std::int64_t) {
    if (++parts == 150) throw Ended{};
  };
  EXPECT_THROW(gradient<TypeParam>(problem, {64, 2}, {}, 1, 1, end), Ended);
  EXPECT_EQ(parts, 150);
}

TEST(MemoryPlans, OfLongRolloutsHavePieces) {
  RolloutSize size;
  size.worlds = 256;
  size.state_rows = 2;
  size.steps = 60'000;
  EXPECT_TRUE(plan_in_pieces(size).keeps_all());
  size.steps = 8'388'608;
  MemoryPlan plan = plan_in_pieces(size);
  EXPECT_EQ(plan.piece, 65'536);
  EXPECT_EQ(plan.slots, 127) << "each step is repeated once at most";
  EXPECT_LE(cost_of(size, plan).recomputed, 1);
  size.window = 50'000;
  EXPECT_EQ(plan_in_pieces(size).piece, 50'000) << "whole windows";
  size.window = size.steps;
  EXPECT_TRUE(plan_in_pieces(size).keeps_all());
}

// The promise: whatever is kept, the gradient has the same bits.
TYPED_TEST(SeedsCheckpoints, SameBitsForEveryPlan) {
  const Problem problem = busy_problem(41);
  const Result<TypeParam> all = gradient<TypeParam>(problem, {});
  const MemoryPlan plans[] = {{41, 0}, {100, 0}, {7, 5}, {7, 2}, {7, 1},  {7, 0},
                              {1, 40}, {1, 6},   {1, 3}, {1, 0}, {40, 1}, {6, 3}};
  for (const MemoryPlan& plan : plans) {
    SCOPED_TRACE(testing::Message() << "pieces of " << plan.piece << ", " << plan.slots << " slots");
    expect_same(all, gradient<TypeParam>(problem, plan));
    expect_same(all, gradient<TypeParam>(problem, plan, {}, 2));
  }
}

TYPED_TEST(SeedsCheckpoints, SameBitsWithWindows) {
  const Problem problem = busy_problem(41);
  for (const GradientWindow& window : {GradientWindow{6, true, 0}, GradientWindow{6, false, 0.05},
                                       GradientWindow{6, true, 0.05}, GradientWindow{0, false, 0.01}}) {
    SCOPED_TRACE(testing::Message() << window.steps << " " << window.cut << " " << window.clip);
    const Result<TypeParam> all = gradient<TypeParam>(problem, {}, window);
    const int piece = window.steps > 0 ? 12 : 41;
    for (const MemoryPlan& plan : {MemoryPlan{piece, 3}, MemoryPlan{piece, 1}, MemoryPlan{piece, 0}}) {
      const Result<TypeParam> pieces = gradient<TypeParam>(problem, plan, window);
      expect_same(all, pieces);
      EXPECT_EQ(all.windows.all, pieces.windows.all);
      EXPECT_EQ(all.windows.clipped, pieces.windows.clipped);
    }
    EXPECT_EQ(all.windows.all, 3 * (window.steps > 0 ? 7 : 1));
    if (window.clip > 0) {
      EXPECT_GT(all.windows.clipped, 0);
    }
  }
}

TEST(SeedsAccumulation, AnObserverIsForOneRollout) {
  const Problem problem = busy_problem(12);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = 12;
  options.plan = {5, 1};
  const State<double> state = initial_state<double>(problem, 1);
  const Control<double> control = initial_control<double>(problem, 1);
  const auto observer = observe_loss<double>(problem, control, options, 1, default_memory());
  Tape<double> tape;
  rollout(tape, problem.model, state, control, options, observer);
  EXPECT_THROW(rollout(tape, problem.model, state, control, options, observer), Error);
}

// The memory that an observer was made with may go before the tape does.
TEST(SeedsDangling, AnObserverKeepsItsMemory) {
  const Problem problem = busy_problem(12);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = 12;
  options.plan = {5, 1};
  const State<double> state = initial_state<double>(problem, 1);
  const Control<double> control = initial_control<double>(problem, 1);
  auto memory = std::make_unique<Memory>();
  const auto observer = observe_loss<double>(problem, control, options, 1, *memory);
  Tape<double> tape;
  const Trajectory<double> t = rollout(tape, problem.model, state, control, options, observer);
  memory.reset();
  const LossResult<double> loss = evaluate_loss(problem, t, control, options, &tape, observer.get());
  const Gradients<double> g = std::move(tape).backward(loss.seeds);
  EXPECT_TRUE(std::isfinite(g.of(state.q)(0, 0)));
}

// A cut after every K steps is the gradient of rollouts of K steps whose starts are detached.
TEST(Windows, ACutIsADetachedState) {
  Problem problem = busy_problem(24);
  problem.loss.erase(
      std::remove_if(problem.loss.begin(), problem.loss.end(),
                     [](const LossTerm& term) { return term.is_of_steps() || term.over != OverTime::sum; }),
      problem.loss.end());
  for (LossTerm& term : problem.loss) term.record = {};  // times that are moved are rounded anew
  const Result<double> cut = gradient<double>(problem, {}, {8, true, 0});
  const Result<double> whole = gradient<double>(problem, {});
  Memory memory;
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = 8;
  State<double> state = initial_state<double>(problem, 3, memory);
  for (int w = 0; w < 3; ++w) state.q.set(0, w, 0.1 * w);
  const Control<double> control = initial_control<double>(problem, 3, memory);
  const int nu = problem.model.topology.nu;
  for (int window = 0; window < 3; ++window) {
    Problem part = problem;
    part.simulation.steps = 8;
    if (window < 2) std::erase_if(part.loss, [](const LossTerm& term) { return term.terminal; });
    for (LossTerm& term : part.loss) {
      term.first_step -= 8 * window;
      if (term.last_step <= problem.simulation.steps) term.last_step -= 8 * window;
      if (term.last_step < 1) term.weight = 0;
      term.first_step = std::max(term.first_step, 1);
      term.last_step = std::max(term.last_step, term.first_step);
    }
    Control<double> own;
    own.u = Buffer<double>(memory, 8 * nu, 3);
    for (int r = 0; r < 8 * nu; ++r) {
      for (int w = 0; w < 3; ++w) own.u.set(r, w, control.u(window * 8 * nu + r, w));
    }
    Tape<double> tape(memory);
    const State<double> start = detach(state, memory);
    const Trajectory<double> trajectory = rollout(tape, part.model, start, own, options);
    const LossResult<double> loss = evaluate_loss(part, trajectory, own, options, &tape);
    const Gradients<double> g = std::move(tape).backward(loss.seeds);
    for (int r = 0; r < 8 * nu; ++r) {
      for (int w = 0; w < 3; ++w)
        EXPECT_EQ(g.of(own.u)(r, w), cut.control(window * 8 * nu + r, w)) << window << " " << r;
    }
    if (window == 0) {
      EXPECT_TRUE(test::same_bits(g.of(start.q), cut.q));
    }
    state = trajectory.final;
  }
  EXPECT_FALSE(test::same_bits(cut.q, whole.q));
}

// The definition, computed from unclipped gradients of one window.
TEST(Windows, AClipBoundsTheNormOfAWindow) {
  const Problem problem = busy_problem(20);
  const Result<double> free = gradient<double>(problem, {});
  const auto norm = [](const Result<double>& g, int world) {
    double sum = 0;
    for (const Buffer<double>* b : {&g.q, &g.qd, &g.control}) {
      for (int r = 0; r < b->rows(); ++r) sum += (*b)(r, world) * (*b)(r, world);
    }
    return std::sqrt(sum);
  };
  // The control's own term is added outside of the rollout: without it the norms are those of the window.
  Problem bare = problem;
  std::erase_if(bare.loss, [](const LossTerm& term) { return term.is_of_steps(); });
  const Result<double> loose = gradient<double>(bare, {});
  const double clip = 0.5 * norm(loose, 1);
  const Result<double> tight = gradient<double>(bare, {}, {0, false, clip});
  for (int w = 0; w < 3; ++w) {
    const double before = norm(loose, w), factor = before > clip ? clip / before : 1;
    // The seed of the initial state itself comes after the window: none here.
    EXPECT_NEAR(norm(tight, w), before * factor, 1e-12 * before);
    for (int r = 0; r < tight.control.rows(); ++r) {
      EXPECT_NEAR(tight.control(r, w), factor * loose.control(r, w), 1e-14 * before);
    }
  }
  EXPECT_GE(tight.windows.clipped, 1);
  EXPECT_EQ(tight.windows.all, 3);
  const Result<double> wide = gradient<double>(bare, {}, {0, false, 1e9});
  EXPECT_EQ(wide.windows.clipped, 0);
  expect_same(loose, wide);
  EXPECT_FALSE(test::same_bits(free.control, loose.control));
}

TEST(Windows, MisuseIsAnError) {
  const Problem problem = busy_problem(12);
  EXPECT_THROW(gradient<double>(problem, {}, {-1, false, 0}), Error);
  EXPECT_THROW(gradient<double>(problem, {}, {0, true, 0}), Error);
  EXPECT_THROW(gradient<double>(problem, {}, {4, false, -1}), Error);
  EXPECT_THROW(gradient<double>(problem, {5, 1}, {4, false, 1}), Error);
  EXPECT_THROW(gradient<double>(problem, {-2, 1}), Error);
}

// ---- the schedule

/// Least forward steps to reverse l steps with c checkpoints, by trying every split: the definition.
double least_cost(int l, int c) {
  static std::map<std::pair<int, int>, double> known;
  if (l <= 1) return 0;
  if (c <= 1) return l * (l - 1) / 2.0;
  const auto found = known.find({l, c});
  if (found != known.end()) return found->second;
  double least = INFINITY;
  for (int m = 1; m < l; ++m) least = std::min(least, m + least_cost(m, c) + least_cost(l - m, c - 1));
  return known[{l, c}] = least;
}

TEST(ReversalSchedule, CostIsTheLeastThereIs) {
  for (int l = 1; l <= 60; ++l) {
    for (int c = 1; c <= 12; ++c) {
      EXPECT_EQ(reversal_cost(l, c), least_cost(l, std::min(l, c))) << l << " pieces, " << c << " checkpoints";
      if (l < 2 || c < 2) continue;
      const int m = static_cast<int>(reversal_split(l, c));
      EXPECT_EQ(m + reversal_cost(m, c) + reversal_cost(l - m, c - 1), reversal_cost(l, c))
          << l << " " << c << " " << m;
    }
  }
  // All starts kept: each piece but the last is passed once.
  EXPECT_EQ(reversal_cost(1000, 1000), 999);
}

TEST(MemoryPlans, KeepToTheirBudgetWithLeastWork) {
  RolloutSize size;
  size.steps = 1'000'000;
  size.worlds = 1;
  size.state_rows = 2;
  const std::size_t everything = cost_of(size, {}).total_bytes;
  EXPECT_TRUE(plan_memory(size, everything).keeps_all());
  double work = 0;
  for (std::size_t budget = everything - 1; budget > 20'000; budget = budget * 3 / 4) {
    const MemoryPlan plan = plan_memory(size, budget);
    const MemoryCost cost = cost_of(size, plan);
    EXPECT_FALSE(plan.keeps_all());
    EXPECT_LE(cost.total_bytes, budget);
    EXPECT_GE(cost.recomputed, work - 0.02) << budget;  // less memory, more work
    work = cost.recomputed;
  }
  EXPECT_GT(work, 1.5);
  EXPECT_THROW(plan_memory(size, 100), Error);
  size.window = 1000;
  EXPECT_EQ(plan_memory(size, everything / 2).piece % 1000, 0);
}

constexpr int kManySteps = test::kSlowBuild ? 50'000 : 1'000'000;

// A million steps of a pendulum in 256 MiB: what is live never passes what the plan said.
TEST(SeedsMemoryBudget, AMillionStepsStayWithinIt) {
  Problem problem;
  problem.model = test::pendulum();
  test::require_all(problem.model);
  problem.simulation.steps = kManySteps;
  problem.simulation.time_step = 1e-4;
  problem.initial_position = {3};
  problem.initial_velocity = {0};
  LossTerm term;
  term.index = 0;
  problem.loss.push_back(term);
  RolloutSize size;
  size.steps = problem.simulation.steps;
  size.worlds = 1;
  size.state_rows = 2;
  size.control_rows = problem.model.topology.nu;
  constexpr std::size_t budget = (std::size_t{256} << 20) / 1'000'000 * kManySteps;
  const MemoryPlan plan = plan_memory(size, budget);
  EXPECT_FALSE(plan.keeps_all());
  Memory memory;
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = size.steps;
  options.plan = plan;
  const State<double> state = initial_state<double>(problem, 1, memory);
  const Control<double> control(problem.model, size.steps, 1, memory);
  Tape<double> tape(memory);
  const Trajectory<double> trajectory = rollout(tape, problem.model, state, control, options);
  const LossResult<double> loss = evaluate_loss(problem, trajectory, control, options, &tape);
  const Gradients<double> g = std::move(tape).backward(loss.seeds);
  EXPECT_NE(g.of(state.q)(0, 0), 0);
  EXPECT_TRUE(std::isfinite(g.of(control.u)(0, 0)));
  EXPECT_LE(memory.counters().peak_bytes, budget);
  // The plan's own estimate, with room for scratch and constants.
  EXPECT_LE(memory.counters().peak_bytes, cost_of(size, plan).total_bytes + (std::size_t{1} << 16));
}

}  // namespace
}  // namespace backdrive
