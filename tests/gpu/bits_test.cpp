// The same bits from run to run, for any order of the worlds, and for any number of devices.
#include <algorithm>
#include <random>

#include "autodiff/optimize/optimize.h"
#include "autodiff/tape/rollout.h"
#include "engine/error.h"
#include "models/parameter_list.h"
#include "tests/autodiff/optimize_cases.h"
#include "tests/gpu/devices.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

constexpr int kSteps = 12, kWorlds = kSanitized ? 40 : 300, kRuns = kSanitized ? 6 : 20;

BACKDRIVE_ON_DEVICES(GpuBits);

struct Outcome {
  Buffer<float> final_q, q0_bar, control_bar;
  double mass_bar, damping_bar;
};

Outcome run(const Model& model, const std::vector<int>& worlds, Memory& memory) {
  const Batch<float> batch = random_batch<float>(model, kSteps, worlds, 3);
  RolloutOptions options;
  options.steps = kSteps;
  Tape<float> tape(memory);
  const State<float> state = detach(batch.state, memory);
  const Control<float> control = detach(batch.control, memory);
  const Trajectory<float> t = rollout(tape, model, state, control, options);
  Seeds<float> seeds;
  seeds.add(t.q, t.q);
  const Gradients<float> g = std::move(tape).backward(seeds);
  return {on_host(t.final.q), on_host(g.of(state.q)), on_host(g.of(control.u)), g.parameters().bodies.mass(1),
          g.parameters().joints.damping(0)};
}

TEST_P(GpuBits, RunsAndOrdersOfWorlds) {
  Memory there = memory();
  Model model = random_tree(8, {.links = 9, .fixed = false, .forces = true});
  require_all(model);
  std::vector<int> worlds = first_worlds(kWorlds);
  const Outcome first = run(model, worlds, there);
  EXPECT_NE(first.mass_bar, 0);
  std::mt19937 random(1);
  for (int k = 0; k < kRuns; ++k) {
    const Outcome again = run(model, worlds, there);
    for (int w = 0; w < kWorlds; ++w) {
      ASSERT_TRUE(same_bits(again.final_q, w, first.final_q, worlds[w])) << "run " << k;
      ASSERT_TRUE(same_bits(again.q0_bar, w, first.q0_bar, worlds[w])) << "run " << k;
      ASSERT_TRUE(same_bits(again.control_bar, w, first.control_bar, worlds[w])) << "run " << k;
    }
    // Sums over all worlds.
    ASSERT_EQ(again.mass_bar, first.mass_bar) << "run " << k;
    ASSERT_EQ(again.damping_bar, first.damping_bar) << "run " << k;
    if (k >= kRuns / 2) std::shuffle(worlds.begin(), worlds.end(), random);
  }
}

// A batch split over devices: gradients of what all worlds share, added shard by shard, are those of the whole up to
// the rounding of one addition, and the same every time.
TEST_P(GpuBits, ShardsAddUp) {
  const int devices = std::min(device_count(GetParam()), 2);
  if (devices < 2) GTEST_SKIP() << "only one device";
  Model model = chain(6);
  require_all(model);
  const auto gradient = [&](const std::vector<int>& worlds, Memory shard) {
    const Batch<double> batch = random_batch<double>(model, kSteps, worlds, 3);
    RolloutOptions options;
    options.steps = kSteps;
    Tape<double> tape(shard);
    const auto t = rollout(tape, model, detach(batch.state, shard), detach(batch.control, shard), options);
    Seeds<double> seeds;
    seeds.add(t.final.q, t.final.q);
    return std::move(tape).backward(seeds).parameters();
  };
  const std::vector<int> all = first_worlds(kWorlds);
  const Parameters whole = gradient(all, memory());
  const auto in_shards = [&] {
    Parameters sum = gradient({all.begin(), all.begin() + kWorlds / 3}, Memory(device(0)));
    add_numbers(gradient({all.begin() + kWorlds / 3, all.end()}, Memory(device(1))), sum);
    return sum;
  };
  const Parameters sum = in_shards(), again = in_shards();
  for (const Field& field : fields()) {
    const Parameter &a = field.in(whole), &b = field.in(sum), &c = field.in(again);
    for (int item = 0; item < a.items(); ++item) {
      for (int k = 0; k < a.components(); ++k) {
        EXPECT_NEAR(b(item, k), a(item, k), 1e-12 * (1 + std::abs(a(item, k)))) << field.leaf;
        EXPECT_EQ(b(item, k), c(item, k)) << field.leaf;
      }
    }
  }
  EXPECT_NE(sum.bodies.mass(2), 0);
  Parameters other = whole;
  EXPECT_THROW(add_numbers(zero_parameters(chain(2)), other), Error);
}

class GpuOptimize : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, GpuOptimize, testing::Values(DeviceKind::emulated, DeviceKind::cuda), device_name);

Problem problem(OptimizeMethod method) {
  Problem p = cases::pendulum();
  p.optimize.method = method;
  p.optimize.iterations = 15;
  return p;
}

void expect_same_starts(const OptimizeResult& a, const OptimizeResult& b) {
  ASSERT_EQ(a.starts.size(), b.starts.size());
  EXPECT_EQ(a.best, b.best);
  for (std::size_t k = 0; k < a.starts.size(); ++k) {
    EXPECT_EQ(a.starts[k].x, b.starts[k].x) << k;
    EXPECT_EQ(a.starts[k].loss, b.starts[k].loss) << k;
    EXPECT_EQ(a.starts[k].iterations, b.starts[k].iterations) << k;
    EXPECT_EQ(a.starts[k].stopped_by, b.starts[k].stopped_by) << k;
  }
}

TEST_P(GpuOptimize, WorldsSplitOverDevices) {
  const int devices = std::min(device_count(GetParam()), 3);
  if (devices < 2) GTEST_SKIP() << "only one device";
  for (const OptimizeMethod method : {OptimizeMethod::adam, OptimizeMethod::lbfgs}) {
    const Problem p = problem(method);
    ExecutionOptions one{.seed = 3, .worlds = 20, .devices = {device()}}, several = one;
    several.devices.clear();
    for (int k = 0; k < devices; ++k) several.devices.push_back(device(k));
    expect_same_starts(optimize(p, one), optimize(p, several));
  }
}

// As the processor, up to rounding; starts that stop early leave the batch without a trace.
TEST_P(GpuOptimize, FindsWhatTheProcessorFinds) {
  for (const OptimizeMethod method : {OptimizeMethod::adam, OptimizeMethod::lbfgs}) {
    Problem p = problem(method);
    p.optimize.tolerance = 0.5;  // some starts reach it soon
    const ExecutionOptions here{.seed = 3, .worlds = 20};
    ExecutionOptions there = here;
    there.devices = {device()};
    const OptimizeResult a = optimize(p, here), b = optimize(p, there);
    for (int k = 0; k < 20; ++k) {
      EXPECT_NEAR(b.starts[k].loss, a.starts[k].loss, 1e-6 * (1 + a.starts[k].loss)) << to_string(method) << " " << k;
      EXPECT_EQ(b.starts[k].stopped_by, a.starts[k].stopped_by) << to_string(method) << " " << k;
    }
    ASSERT_FALSE(b.history.empty());
    EXPECT_EQ(b.history.back().running, 0);
  }
}

TEST_P(GpuOptimize, ManyStartsAtOnce) {
  Problem p = problem(OptimizeMethod::automatic);
  p.optimize.iterations = 2;
  ExecutionOptions few{.worlds = 256, .devices = {device()}}, many = few;
  many.worlds = 257;
  EXPECT_EQ(chosen_method(p, few), OptimizeMethod::lbfgs);
  EXPECT_EQ(chosen_method(p, many), OptimizeMethod::adam);
  EXPECT_EQ(batch_worlds(p, many), 257);
  EXPECT_EQ(chosen_method(p, {.worlds = 257}), OptimizeMethod::lbfgs) << "on the processor";
  int reports = 0;
  const OptimizeResult result = optimize(p, many, [&](const OptimizeProgress& progress) {
    EXPECT_EQ(progress.evaluations, 257 * ++reports);
    return true;
  });
  EXPECT_EQ(result.starts.size(), 257u);
  EXPECT_EQ(reports, 3);
}

TEST_P(GpuOptimize, ParametersToo) {
  for (const OptimizeMethod method : {OptimizeMethod::adam, OptimizeMethod::lbfgs}) {
    Problem p = cases::varied_cart_pole();
    p.optimize.method = method;
    p.optimize.learning_rate = 1e-3;
    p.optimize.iterations = 5;
    const ExecutionOptions here{.worlds = 3};
    ExecutionOptions there = here;
    there.devices = {device()};
    const OptimizeResult a = optimize(p, here), b = optimize(p, there);
    const std::vector<std::vector<double>> begin = initial_points(p, 3, 0);
    for (int k = 0; k < 3; ++k) {
      EXPECT_NEAR(b.starts[k].loss, a.starts[k].loss, 1e-9 * a.starts[k].loss) << to_string(method) << " " << k;
      for (std::size_t i = 0; i < a.starts[k].x.size(); ++i) {
        EXPECT_NEAR(b.starts[k].x[i], a.starts[k].x[i], 1e-7) << to_string(method) << " " << k << " " << i;
        EXPECT_NE(b.starts[k].x[i], begin[k][i]) << to_string(method) << " " << k << " " << i << ": was not moved";
      }
    }
    EXPECT_NEAR(cases::final_loss(b.problem), b.starts[b.best].loss, 1e-9 * a.starts[0].loss) << to_string(method);
  }
}

using Points = std::vector<std::vector<double>>;

struct Evaluation {
  std::vector<double> loss;
  Points gradient;
};

Evaluation evaluate(const Problem& problem, const Points& points, const Device& device) {
  Evaluation result;
  make_objective(problem, {}, device)->evaluate(points, result.loss, result.gradient);
  return result;
}

// Computed on the device from the first number to the last: not zero, not what differences are, but equal to them.
TEST_P(GpuOptimize, GradientsOfParametersEqualDifferences) {
  const Problem p = cases::varied_cart_pole();
  const std::vector<double> x = initial_points(p, 2, 5)[1];
  Points points{x};
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const double h : {1e-5, -1e-5}) {
      points.push_back(x);
      points.back()[i] += h;
    }
  }
  const Evaluation there = evaluate(p, points, device());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = (there.loss[1 + 2 * i] - there.loss[2 + 2 * i]) / 2e-5, g = there.gradient[0][i];
    EXPECT_NE(g, 0) << i;
    EXPECT_NE(g, difference) << i;
    EXPECT_NEAR(g, difference, 1e-6 * (1 + std::abs(difference))) << i;
  }
}

TEST_P(GpuOptimize, GradientsOfParametersDoNotAccumulate) {
  const Problem p = cases::varied_cart_pole();
  const Points points = initial_points(p, 5, 5), others = initial_points(p, 5, 6);
  const auto objective = make_objective(p, {}, device());
  Evaluation first, between, second;
  objective->evaluate(points, first.loss, first.gradient);
  objective->evaluate(others, between.loss, between.gradient);
  objective->evaluate(points, second.loss, second.gradient);
  EXPECT_EQ(second.loss, first.loss);
  EXPECT_EQ(second.gradient, first.gradient);
  EXPECT_NE(between.gradient, first.gradient);
}

/// The same worlds are refused, and the others have the same losses.
void expect_same_refusals(const Problem& problem, const Points& points, const Device& device, int at_least) {
  const Evaluation here = evaluate(problem, points, Device{}), there = evaluate(problem, points, device);
  int refused = 0;
  for (std::size_t k = 0; k < points.size(); ++k) {
    refused += std::isinf(here.loss[k]);
    if (std::isinf(here.loss[k])) {
      EXPECT_TRUE(std::isinf(there.loss[k])) << k;
      EXPECT_EQ(there.gradient[k], std::vector<double>(points[k].size())) << k;
    } else {
      EXPECT_NEAR(there.loss[k], here.loss[k], 1e-9 * (1 + here.loss[k])) << k;
    }
  }
  EXPECT_GE(refused, at_least);
  EXPECT_LE(refused, static_cast<int>(points.size()) - at_least);
}

TEST_P(GpuOptimize, ModelsThatCannotBeAreRefusedThere) {
  const Problem p = cases::impossible_cart_pole();
  expect_same_refusals(p, cases::impossible_points(p, 300), device(), 50);
  // More worlds whose joints may move nothing than are looked at side by side.
  const Problem weightless = cases::weightless_pendulum();
  Points points;
  for (int k = 0; k < 2500; ++k) points.push_back({k % 3 == 0 ? 0.0 : 1.0, 0, k % 2 == 0 ? 0.0 : 1e-3});
  expect_same_refusals(weightless, points, device(), 400);
}

}  // namespace
}  // namespace backdrive::test
