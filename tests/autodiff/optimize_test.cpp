#include "autodiff/optimize/optimize.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <limits>

#include "autodiff/optimize/lbfgs.h"
#include "autodiff/problem/loss.h"
#include "engine/error.h"
#include "tests/autodiff/optimize_cases.h"

namespace backdrive {
namespace {

using cases::final_loss;

struct Case {
  OptimizeMethod method;
  bool bounded;
};
class Optimize : public testing::TestWithParam<Case> {
 protected:
  static Problem problem() {
    Problem p = cases::pendulum();
    p.optimize.method = GetParam().method;
    if (p.optimize.method == OptimizeMethod::adam) p.optimize.iterations = 400;
    if (GetParam().bounded) {
      p.variables[0].lower = -8;
      p.variables[0].upper = 8;
    }
    return p;
  }
};

TEST_P(Optimize, LiftsAPendulum) {
  const OptimizeResult result = optimize(problem(), {});
  const StartResult& best = result.starts[result.best];
  EXPECT_LT(best.loss, 0.05);
  EXPECT_NEAR(final_loss(result.problem), best.loss, 1e-12);
  EXPECT_TRUE(result.reached_goal) << "no goal: any finite loss";
  for (const double u : result.problem.controls[0].values) {
    EXPECT_TRUE(!GetParam().bounded || std::abs(u) <= 8);
  }
  ASSERT_FALSE(result.history.empty());
  for (size_t i = 1; i < result.history.size(); ++i) {
    EXPECT_LE(result.history[i].best_loss, result.history[i - 1].best_loss);
    EXPECT_GE(result.history[i].evaluations, result.history[i - 1].evaluations);
  }
  EXPECT_EQ(result.history.back().best_loss, best.loss);
  EXPECT_EQ(result.history.back().running, 0);
}

// Somebody who takes the rows as they come gets the same ones, and nothing grows with them.
TEST_P(Optimize, TellsItsHistoryAsItGoes) {
  const OptimizeResult whole = optimize(problem(), {});
  std::vector<OptimizeProgress> told;
  const OptimizeResult result = optimize(problem(), {}, {}, [&](const OptimizeProgress& row) { told.push_back(row); });
  ASSERT_EQ(told.size(), whole.history.size());
  for (size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].row, static_cast<std::int64_t>(i));
    EXPECT_EQ(told[i].iteration, whole.history[i].iteration);
    EXPECT_EQ(told[i].best_loss, whole.history[i].best_loss);
  }
  ASSERT_EQ(result.history.size(), 1u);
  EXPECT_EQ(result.history[0].row, told.back().row);
  EXPECT_EQ(result.history[0].running, 0);
  EXPECT_EQ(result.starts[result.best].x, whole.starts[whole.best].x);
}

TEST_P(Optimize, SameBitsForAnyNumberOfThreadsAndRunToRun) {
  Problem p = problem();
  p.optimize.iterations = 25;
  const OptimizeResult one = optimize(p, {Precision::float64, 1, 3, 20});
  for (const int threads : {2, 3}) {
    const OptimizeResult more = optimize(p, {Precision::float64, threads, 3, 20});
    EXPECT_EQ(more.best, one.best);
    ASSERT_EQ(more.starts.size(), 20u);
    for (int k = 0; k < 20; ++k) {
      EXPECT_EQ(more.starts[k].x, one.starts[k].x);
      EXPECT_EQ(more.starts[k].loss, one.starts[k].loss);
      EXPECT_EQ(more.starts[k].iterations, one.starts[k].iterations);
      EXPECT_EQ(more.starts[k].stopped_by, one.starts[k].stopped_by);
    }
    ASSERT_EQ(more.history.size(), one.history.size());
    for (size_t i = 0; i < one.history.size(); ++i) {
      EXPECT_EQ(more.history[i].best_loss, one.history[i].best_loss);
      EXPECT_EQ(more.history[i].iteration, one.history[i].iteration);
    }
  }
}

TEST_P(Optimize, AStartDoesNotDependOnTheOthers) {
  Problem p = problem();
  p.optimize.iterations = 15;
  const OptimizeResult few = optimize(p, {Precision::float64, 1, 3, 3}),
                       many = optimize(p, {Precision::float64, 1, 3, 40});
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(few.starts[k].x, many.starts[k].x);
    EXPECT_EQ(few.starts[k].stopped_by, many.starts[k].stopped_by);
  }
}

TEST_P(Optimize, StopsAtTheGoal) {
  Problem p = problem();
  p.optimize.goal = 1;
  const OptimizeResult result = optimize(p, {Precision::float64, 1, 0, 4});
  EXPECT_TRUE(result.reached_goal);
  EXPECT_LE(result.starts[result.best].loss, 1);
  EXPECT_EQ(result.starts[result.best].stopped_by, StopReason::goal);
  for (const StartResult& start : result.starts) {
    EXPECT_EQ(start.stopped_by, start.loss <= 1 ? StopReason::goal : StopReason::goal_elsewhere);
  }
  p.optimize.goal = 1e-9;
  p.optimize.iterations = 5;
  EXPECT_FALSE(optimize(p, {}).reached_goal);
}

TEST_P(Optimize, CountsIterations) {
  Problem p = problem();
  p.optimize.iterations = 7;
  const OptimizeResult result = optimize(p, {Precision::float64, 1, 0, 3});
  for (const StartResult& start : result.starts) {
    EXPECT_EQ(start.iterations, 7);
    EXPECT_EQ(start.stopped_by, StopReason::iterations);
  }
  EXPECT_EQ(result.history.back().iterations, 7);
}

TEST_P(Optimize, StopsAtTheTolerance) {
  Problem p = problem();
  p.optimize.tolerance = p.optimize.method == OptimizeMethod::adam ? 0.3 : 1e-5;
  const OptimizeResult result = optimize(p, {});
  EXPECT_EQ(result.starts[0].stopped_by, StopReason::tolerance);
  EXPECT_LE(result.starts[0].gradient_norm, p.optimize.tolerance);
}

TEST_P(Optimize, EndsCleanlyWhenInterrupted) {
  int calls = 0;
  const auto interrupt = [&](const OptimizeProgress& now) {
    EXPECT_GT(now.evaluations, 0);
    return ++calls < 3;
  };
  const OptimizeResult result = optimize(problem(), {Precision::float64, 1, 0, 5}, interrupt);
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(result.starts.size(), 5u);
  for (const StartResult& start : result.starts) {
    EXPECT_EQ(start.stopped_by, StopReason::interrupted);
    EXPECT_TRUE(std::isfinite(start.loss));
    EXPECT_LE(start.iterations, 3);
  }
  EXPECT_NEAR(final_loss(result.problem), result.starts[result.best].loss, 1e-12);
}

TEST_P(Optimize, AnExceptionInProgressComesThrough) {
  const auto fail = [](const OptimizeProgress&) -> bool { throw std::runtime_error("disk full"); };
  EXPECT_THROW(optimize(problem(), {Precision::float64, 1, 0, 6}, fail), std::runtime_error);
}

TEST_P(Optimize, AStartThatIsNotFiniteDoesNotStopTheOthers) {
  Problem p = problem();
  Variable velocity;
  velocity.name = "initial_state/hinge/velocity";
  velocity.kind = VariableKind::initial_velocity;
  velocity.random = 1e200;
  p.variables.push_back(velocity);
  p.optimize.iterations = 10;
  const OptimizeResult result = optimize(p, {Precision::float64, 1, 0, 4});
  EXPECT_EQ(result.best, 0) << "the only one without a random part";
  EXPECT_TRUE(std::isfinite(result.starts[0].loss));
  for (int k = 1; k < 4; ++k) {
    EXPECT_EQ(result.starts[k].stopped_by, StopReason::non_finite);
    EXPECT_TRUE(result.starts[k].status.stopped());
    EXPECT_EQ(result.starts[k].iterations, 0);
  }
}

TEST_P(Optimize, ComesBackFromWhereTheLossIsNotFinite) {
  // A box that no longer exists beyond its triangle inequality; the loss would like it to.
  Problem p = cases::cart_pole();
  p.optimize.method = GetParam().method;
  p.variables = {cases::parameter(p.model, "bodies/pole/inertia/yy")};
  Variable& v = p.variables[0];
  v.scale = 1e-3;
  v.lower = GetParam().bounded ? 1e-4 : -std::numeric_limits<double>::infinity();
  p.optimize.iterations = 60;
  const OptimizeResult result = optimize(p, {});
  EXPECT_TRUE(std::isfinite(result.starts[0].loss));
  EXPECT_LE(result.starts[0].loss, final_loss(p));
  Model model = result.problem.model;
  EXPECT_NO_THROW(validate(model));
}

INSTANTIATE_TEST_SUITE_P(Methods, Optimize,
                         testing::Values(Case{OptimizeMethod::lbfgs, false}, Case{OptimizeMethod::lbfgs, true},
                                         Case{OptimizeMethod::adam, false}, Case{OptimizeMethod::adam, true}),
                         [](const auto& info) {
                           return std::string(to_string(info.param.method)) + (info.param.bounded ? "_bounded" : "");
                         });

TEST(OptimizeLbfgs, FindsParametersOfAKnownMotion) {
  // Identification: damping and mass of the pole from where it ends, with more data than unknowns.
  Problem truth = cases::cart_pole();
  RolloutOptions options;
  options.time_step = truth.simulation.time_step;
  options.steps = truth.simulation.steps;
  const auto trajectory =
      rollout(truth.model, initial_state<double>(truth, 1), initial_control<double>(truth, 1), options);
  Problem problem = truth;
  problem.loss.clear();
  for (int j = 0; j < 2; ++j) {
    for (const LossQuantity quantity : {LossQuantity::joint_position, LossQuantity::joint_velocity}) {
      const Link& link = problem.model.topology.links[problem.model.link_of_joint(j)];
      const bool position = quantity == LossQuantity::joint_position;
      const double end = position ? trajectory.final.q(link.q, 0) : trajectory.final.qd(link.v, 0);
      problem.loss.push_back(
          {.name = "end", .quantity = quantity, .index = j, .target = {end, 0, 0, 1}, .weight = 100});
    }
  }
  problem.variables = {cases::parameter(problem.model, "joints/hinge/damping"),
                       cases::parameter(problem.model, "bodies/pole/mass")};
  problem.variables[0].initial = {0.05};
  problem.variables[0].scale = 0.02;
  problem.variables[1].initial = {0.14};
  problem.variables[1].scale = 0.1;
  problem.optimize.tolerance = 1e-9;
  const OptimizeResult result = optimize(problem, {});
  EXPECT_NEAR(result.problem.model.joints.damping(truth.model.find_joint("hinge")), 0.02, 1e-6);
  EXPECT_NEAR(result.problem.model.bodies.mass(truth.model.find_body("pole")), 0.1, 1e-6);
}

TEST(OptimizeLbfgs, MoreStartsThanABatchHolds) {
  Problem p = cases::pendulum();
  p.simulation.steps = 10;
  p.simulation.time_step = 0.1;
  p.optimize.iterations = 2;
  const OptimizeResult result = optimize(p, {Precision::float32, 1, 0, 300});
  ASSERT_EQ(result.starts.size(), 300u);
  for (const StartResult& start : result.starts) EXPECT_EQ(start.iterations, 2);
}

/// A box of 10 kg that is thrown, spinning, and slides to where it should be: whichever edge it lands on, the loss has
/// a hollow of its own.
Problem thrown_box() {
  ModelBuilder builder;
  const int box = builder.add_body("box", {.mass = 10, .inertia = {0.0417, 0.0833, 0.108, 0, 0, 0}});
  ShapeOptions shape{.type = GeometryType::box, .scale = {0.15, 0.1, 0.05}};
  shape.friction = 0.5;
  builder.add_shape("box", box, shape);
  builder.add_joint("flight", JointType::free, ModelBuilder::world, box);
  ShapeOptions floor{.type = GeometryType::plane};
  floor.friction = 0.5;
  builder.add_shape("floor", ModelBuilder::world, floor);
  Problem p;
  p.model = builder.build();
  p.simulation = {0.52083333e-3, 1152};
  p.initial_position = {0, 0, 0, 1, 0, 0, 0.25};
  p.initial_velocity = {3, 5, 1, 1, 0.5, -1};
  p.loss.push_back({.name = "terminal/box/position",
                    .quantity = LossQuantity::body_position,
                    .index = box,
                    .target = {1, 0.3, 0.05, 0}});
  Variable speed;
  speed.name = "initial_state/flight/velocity";
  speed.kind = VariableKind::initial_velocity;
  for (int k = 0; k < 3; ++k) {
    speed.component = 3 + k;
    p.variables.push_back(speed);
  }
  p.optimize.method = OptimizeMethod::lbfgs;
  p.optimize.iterations = 30;
  return p;
}

// A descent alone ends in a hollow a thousand times above the goal.
TEST(OptimizeLbfgs, LooksAroundWhereADescentEndsShortOfItsGoal) {
  Problem p = thrown_box();
  const OptimizeResult alone = optimize(p, {Precision::float64, 1, 0, 1});
  EXPECT_GT(alone.starts[0].loss, 1e-4);
  EXPECT_LT(alone.starts[0].iterations, 30);
  EXPECT_EQ(alone.rounds_around, 0);
  p.optimize.goal = 1e-5;
  const OptimizeResult around = optimize(p, {Precision::float64, 1, 0, 1});
  EXPECT_LE(around.starts[0].loss, 1e-5);
  EXPECT_TRUE(around.reached_goal);
  EXPECT_GE(around.rounds_around, 1);
  EXPECT_GT(around.starts[0].iterations, alone.starts[0].iterations);
  EXPECT_LE(around.starts[0].iterations, 30);
  EXPECT_EQ(around.starts[0].stopped_by, StopReason::goal);
  EXPECT_EQ(optimize(p, {Precision::float64, 2, 0, 1}).starts[0].x, around.starts[0].x);
}

TEST(OptimizeLbfgs, LooksAroundNoLongerThanItsIterations) {
  Problem p = cases::pendulum();
  p.optimize.method = OptimizeMethod::lbfgs;
  p.optimize.tolerance = 1e-3;
  p.optimize.goal = 0;  // which effort that costs cannot reach
  p.optimize.iterations = 200;
  const OptimizeResult result = optimize(p, {Precision::float64, 1, 0, 2});
  EXPECT_FALSE(result.reached_goal);
  EXPECT_EQ(result.rounds_around, 8);
  EXPECT_EQ(result.starts[result.best].stopped_by, StopReason::tolerance);
  p.optimize.iterations = result.starts[0].iterations + 1;
  for (const StartResult& start : optimize(p, {Precision::float64, 1, 0, 2}).starts) {
    EXPECT_LE(start.iterations, p.optimize.iterations);
  }
  bool interrupt = false;
  p.optimize.iterations = 200;
  const OptimizeResult stopped = optimize(p, {Precision::float64, 1, 0, 1}, [&](const OptimizeProgress& now) {
    interrupt = interrupt || now.iteration > result.starts[0].iterations;
    return !interrupt;
  });
  EXPECT_EQ(stopped.starts[0].stopped_by, interrupt ? StopReason::interrupted : StopReason::tolerance);
}

TEST(OptimizeLbfgs, RespectsActiveBounds) {
  Problem p = cases::pendulum(2.5);
  p.variables[0].lower = -1;
  p.variables[0].upper = 1.5;
  const OptimizeResult result = optimize(p, {});
  int active = 0;
  for (const double u : result.problem.controls[0].values) {
    EXPECT_GE(u, -1 - 1e-15);
    EXPECT_LE(u, 1.5 + 1e-15);
    active += u == 1.5;
  }
  EXPECT_GT(active, 0);
  EXPECT_LE(result.starts[0].gradient_norm, 1e-4);
}

TEST(OptimizeMemory, NothingIsAllocatedAfterTheFirstEvaluations) {
  for (Problem p : {cases::pendulum(), cases::varied_cart_pole()}) {
    p.optimize.method = OptimizeMethod::adam;
    p.optimize.iterations = 30;
    p.optimize.learning_rate = 1e-3;
    std::vector<std::uint64_t> allocations;
    optimize(p, {Precision::float64, 1, 0, 8}, [&](const OptimizeProgress&) {
      allocations.push_back(default_memory().counters().allocations);
      return true;
    });
    ASSERT_GT(allocations.size(), 10u);
    EXPECT_EQ(allocations[2], allocations.back());
  }
}

/// Rosenbrock's valley in pairs of numbers, with its minimum at ones.
double valley(const std::vector<double>& x, std::vector<double>& gradient) {
  double sum = 0;
  for (std::size_t k = 0; k + 1 < x.size(); k += 2) {
    const double a = 1 - x[k], b = x[k + 1] - x[k] * x[k];
    sum += a * a + 100 * b * b;
    gradient[k] = -2 * a - 400 * x[k] * b;
    gradient[k + 1] = 200 * b;
  }
  return sum;
}

/// Asks and tells until it stops; what it stopped by.
StopReason run(LbfgsStart& search, StartResult& start) {
  std::vector<double> gradient(start.x.size());
  for (;;) {
    const double loss = valley(search.point(), gradient);
    if (loss < start.loss) start.loss = loss, start.x = search.point();
    if (const StopReason reason = search.tell(loss, gradient); reason != StopReason::none) return reason;
  }
}

TEST(OptimizeLbfgs, IsAskedAndTold) {
  OptimizeOptions options;
  options.tolerance = 1e-9;
  for (const bool bounded : {false, true}) {
    StartResult start;
    start.x = {-1.2, 1, 3, -2};
    start.loss = std::numeric_limits<double>::infinity();
    VariableBounds bounds;
    bounds.lower.assign(4, -std::numeric_limits<double>::infinity());
    bounds.upper.assign(4, std::numeric_limits<double>::infinity());
    if (bounded) bounds.upper[2] = 0.5;  // then x₃ = x₂² = 0.25
    LbfgsStart search(bounds, options, start);
    EXPECT_EQ(run(search, start), StopReason::tolerance);
    EXPECT_GT(start.iterations, 10);
    EXPECT_NEAR(start.x[0], 1, 1e-8);
    EXPECT_NEAR(start.x[1], 1, 1e-8);
    EXPECT_NEAR(start.x[2], bounded ? 0.5 : 1, 1e-8);
    EXPECT_NEAR(start.x[3], bounded ? 0.25 : 1, 1e-8);
  }
}

#if !defined(BACKDRIVE_SANITIZED)  // sanitizers have allocators of their own
// kept_vectors() without the best point, the batch and the objective.
TEST(OptimizeMemory, AStartOfLbfgsKeepsWhatTheBudgetCounts) {
  constexpr int kNumbers = 100'000, kStarts = 4;
  Problem p = cases::pendulum();
  p.optimize.method = OptimizeMethod::lbfgs;
  const int counted = kept_vectors(p, {}) - 1 - 2 - 4;
  VariableBounds bounds;
  bounds.lower.assign(kNumbers, -std::numeric_limits<double>::infinity());
  bounds.upper.assign(kNumbers, std::numeric_limits<double>::infinity());
  OptimizeOptions options;
  std::vector<StartResult> starts(kStarts);
  for (StartResult& start : starts) {
    start.x.assign(kNumbers, -1.2);
    start.loss = std::numeric_limits<double>::infinity();
  }
  const auto bytes = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  std::vector<double> gradient(kNumbers);
  std::vector<LbfgsStart> searches;
  searches.reserve(kStarts);
  const double before = bytes();
  for (StartResult& start : starts) {
    searches.emplace_back(bounds, options, start);
    for (int k = 0; k < 20; ++k) {
      const double loss = valley(searches.back().point(), gradient);
      ASSERT_EQ(searches.back().tell(loss, gradient), StopReason::none);
    }
  }
  const double kept = (bytes() - before) / (8.0 * kNumbers * kStarts);
  EXPECT_NEAR(kept, counted, 0.5);
}
#endif

TEST(OptimizeErrors, SayWhatIsMissing) {
  Problem p = cases::pendulum();
  p.loss.clear();
  EXPECT_THROW(optimize(p, {}), Error);
  p = cases::pendulum();
  p.variables.clear();
  EXPECT_THROW(optimize(p, {}), Error);
  EXPECT_THROW(with_values(cases::pendulum(), {1, 2, 3}), Error);
}

}  // namespace
}  // namespace backdrive
