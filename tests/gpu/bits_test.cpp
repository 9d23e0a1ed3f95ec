// The same bits from run to run, for any order of the worlds, and for any number of devices.
#include <algorithm>
#include <random>

#include "autodiff/optimize.h"
#include "autodiff/rollout.h"
#include "engine/error.h"
#include "models/fields.h"
#include "tests/autodiff/optimize_cases.h"
#include "tests/gpu/devices.h"
#include "tests/support/models.h"

namespace backdrive::test {
namespace {

constexpr int kSteps = 12, kWorlds = 300, kRuns = 20;

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
    Parameters sum = gradient({all.begin(), all.begin() + 100}, Memory(device(0)));
    add_numbers(gradient({all.begin() + 100, all.end()}, Memory(device(1))), sum);
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

Problem problem(const char* method) {
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
  for (const char* method : {"adam", "lbfgs"}) {
    const Problem p = problem(method);
    ExecutionOptions one{.seed = 3, .worlds = 20, .devices = {device()}}, several = one;
    several.devices.clear();
    for (int k = 0; k < devices; ++k) several.devices.push_back(device(k));
    expect_same_starts(optimize(p, one), optimize(p, several));
  }
}

// As the processor, up to rounding; starts that stop early leave the batch without a trace.
TEST_P(GpuOptimize, FindsWhatTheProcessorFinds) {
  for (const char* method : {"adam", "lbfgs"}) {
    Problem p = problem(method);
    p.optimize.tolerance = 0.5;  // some starts reach it soon
    const ExecutionOptions here{.seed = 3, .worlds = 20};
    ExecutionOptions there = here;
    there.devices = {device()};
    const OptimizeResult a = optimize(p, here), b = optimize(p, there);
    for (int k = 0; k < 20; ++k) {
      EXPECT_NEAR(b.starts[k].loss, a.starts[k].loss, 1e-6 * (1 + a.starts[k].loss)) << method << " " << k;
      EXPECT_EQ(b.starts[k].stopped_by, a.starts[k].stopped_by) << method << " " << k;
    }
    ASSERT_FALSE(b.history.empty());
    EXPECT_EQ(b.history.back().running, 0);
  }
}

TEST_P(GpuOptimize, ManyStartsAtOnce) {
  Problem p = problem("auto");
  p.optimize.iterations = 2;
  ExecutionOptions few{.worlds = 256, .devices = {device()}}, many = few;
  many.worlds = 257;
  EXPECT_STREQ(chosen_method(p, few), "lbfgs");
  EXPECT_STREQ(chosen_method(p, many), "adam");
  EXPECT_EQ(batch_worlds(p, many), 257);
  EXPECT_STREQ(chosen_method(p, {.worlds = 257}), "lbfgs") << "on the processor";
  int reports = 0;
  const OptimizeResult result = optimize(p, many, [&](const OptimizeProgress& progress) {
    EXPECT_EQ(progress.evaluations, 257 * ++reports);
    return true;
  });
  EXPECT_EQ(result.starts.size(), 257u);
  EXPECT_EQ(reports, 3);
}

TEST_P(GpuOptimize, ParametersToo) {
  Problem p = cases::cart_pole();
  p.variables = {cases::parameter(p.model, "joints/hinge/damping"), cases::parameter(p.model, "joints/hinge/axis"),
                 cases::parameter(p.model, "shapes/box/density")};
  p.variables[0].random = 0.005;
  p.optimize.method = "adam";
  p.optimize.learning_rate = 1e-3;
  p.optimize.iterations = 5;
  const ExecutionOptions here{.worlds = 3};
  ExecutionOptions there = here;
  there.devices = {device()};
  const OptimizeResult a = optimize(p, here), b = optimize(p, there);
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(b.starts[k].loss, a.starts[k].loss, 1e-9 * a.starts[k].loss) << k;
    for (std::size_t i = 0; i < a.starts[k].x.size(); ++i) EXPECT_NEAR(b.starts[k].x[i], a.starts[k].x[i], 1e-7) << k;
  }
  EXPECT_NE(a.starts[0].x[1], 0) << "the axis was moved";
}

}  // namespace
}  // namespace backdrive::test
