// What a device computes against what the processor's packs compute.
#include <limits>

#include "autodiff/problem/loss.h"
#include "autodiff/tape/rollout.h"
#include "autodiff/tape/world_parameters.h"
#include "models/parameter_list.h"
#include "tests/autodiff/optimize_cases.h"
#include "tests/gpu/devices.h"
#include "tests/gpu/parity.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

constexpr int kSteps = 8, kWorlds = kSanitized ? 11 : 37;

BACKDRIVE_ON_DEVICES(GpuParity);

std::vector<Model> models() {
  std::vector<Model> all;
  all.push_back(chain(7));
  all.push_back(random_tree(3, {.links = 12, .forces = true, .shapes = true}));
  all.push_back(random_tree(4, {.links = 30, .forces = true}));
  all.push_back(random_tree(5, {.links = 50}));
  all.push_back(random_tree(6, {.links = 9, .forces = true, .shapes = true, .rotations = true}));
  all.push_back(chain(70));  // larger than any working set that a thread can hold
  for (Model& model : all) require_all(model);
  return all;
}

template <class T>
void expect_same_rollout(Memory memory) {
  for (const Model& model : models()) {
    const Batch<T> batch = random_batch<T>(model, kSteps, first_worlds(kWorlds), 7, {0.3, 0.5, 0.5, 0.3});
    RolloutOptions options;
    options.steps = kSteps;
    const std::vector<int> bodies = {0, static_cast<int>(model.body_names.size()) - 1};
    const Batch<double> exact_batch =
        random_batch<double>(model, kSteps, first_worlds(kWorlds), 7, {0.3, 0.5, 0.5, 0.3});
    const Trajectory<double> exact = rollout(model, exact_batch.state, exact_batch.control, options);
    const Trajectory<T> here = rollout(model, batch.state, batch.control, options);
    const Trajectory<T> there =
        rollout(model, detach(batch.state, memory), detach(batch.control, memory), options, memory);
    const double bound = bound_for(kBound<T>, here.q, exact.q);
    EXPECT_LE(relative_error(there.q, here.q), bound);
    EXPECT_LE(relative_error(there.qd, here.qd), bound_for(kBound<T>, here.qd, exact.qd));
    EXPECT_LE(relative_error(there.final.q, here.final.q), bound);
    EXPECT_LE(relative_error(body_poses<T>(nullptr, model, there.q, bodies, options, memory),
                             body_poses<T>(nullptr, model, here.q, bodies, options)),
              bound);
    EXPECT_FALSE(there.any_stopped());
  }
}
TEST_P(GpuParity, RolloutsInDouble) {
  expect_same_rollout<double>(memory());
}
TEST_P(GpuParity, RolloutsInFloat) {
  expect_same_rollout<float>(memory());
}

template <class T>
void expect_same_gradient(Memory memory) {
  for (Model& model : models()) {
    for (const bool own_parameters : {false, true}) {
      if (own_parameters) {
        model.bodies.mass.spread(kWorlds);
        model.joints.axis.spread(kWorlds);
        for (int w = 0; w < kWorlds; ++w) model.bodies.mass.at(0, 0, w) *= 1 + 0.01 * w;
      }
      const GradientCase c = make_case(model, kSteps, 1.0 / 240, kWorlds, 5, {0.3, 0.5, 0.5, 0.3});
      const CaseGradient here = gradient_by_tape<T>(c), there = gradient_by_tape<T>(c, memory);
      const CaseGradient exact = gradient_by_tape<double>(c), single = gradient_by_tape<float>(c);
      // Of all at once: the same sweeps make them, and one may be lucky.
      const double bound = gradient_bound<T>(std::max(
          {relative_error(single.q0, exact.q0), relative_error(single.qd0, exact.qd0),
           relative_error(single.control, exact.control), parameter_error(single.parameters, exact.parameters)}));
      EXPECT_LE(relative_error(there.q0, here.q0), bound);
      EXPECT_LE(relative_error(there.qd0, here.qd0), bound);
      EXPECT_LE(relative_error(there.control, here.control), bound);
      EXPECT_LE(parameter_error(there.parameters, here.parameters), bound);
    }
  }
}
TEST_P(GpuParity, GradientsInDouble) {
  expect_same_gradient<double>(memory());
}
TEST_P(GpuParity, GradientsInFloat) {
  expect_same_gradient<float>(memory());
}

// What kernels read of a model lies where they run. The emulated device could read the host's as well, a GPU cannot.
TEST_P(GpuParity, AModelOfADeviceHasNoPointersOfTheHost) {
  static_assert(sizeof(ModelStructure) == 11 * sizeof(void*), "a new member: is it placed, and compared here?");
  Memory there = memory();
  const Model model = random_tree(3, {.links = 12, .forces = true, .shapes = true, .contact = true});
  const ModelStructure here = structure_of(model);
  const PlacedModel placed(model, there);
  const ModelStructure& away = placed.structure;
  EXPECT_NE(away.links, here.links);
  EXPECT_NE(away.shape_types, here.shape_types);
  EXPECT_NE(away.shape_bodies, here.shape_bodies);
  EXPECT_NE(away.shape_moments, here.shape_moments);
  EXPECT_NE(away.contact_shapes, here.contact_shapes);
  EXPECT_NE(away.joint_types, here.joint_types);
  ParametersView here_numbers = view_of(model), away_numbers = placed.parameters;
  for (const Field& field : fields()) {
    if (field.in(model).items() == 0) continue;
    EXPECT_NE(field.of(away_numbers).first, field.of(here_numbers).first) << field.leaf;
  }
}

// A wrong device would show: the bound is far below the difference that one part in a thousand makes.
TEST_P(GpuParity, CanFail) {
  const Model model = models()[0];
  Memory there = memory();
  Batch<double> batch = random_batch<double>(model, kSteps, first_worlds(kWorlds), 7);
  RolloutOptions options;
  options.steps = kSteps;
  const Trajectory<double> right = rollout(model, batch.state, batch.control, options);
  batch.control.u.set(0, 3, batch.control.u(0, 3) * 1.001);
  const Trajectory<double> wrong =
      rollout(model, detach(batch.state, there), detach(batch.control, there), options, there);
  EXPECT_GT(relative_error(wrong.q, right.q), 1e3 * kBound<double>);
}

TEST_P(GpuParity, LossesOfEveryKind) {
  Memory there = memory();
  Problem problem = cases::cart_pole();
  for (LossTerm term : std::vector<LossTerm>(problem.loss)) {  // over a part of the run, of two of them on record
    if (term.terminal) continue;
    term.first_step = 20;
    term.last_step = 35;
    if (!term.is_control()) term.record = {{0.1, 0.4}, {{0, 0, 0.6, 0.8}, {0.8, 0, 0, 0.6}}};
    problem.loss.push_back(term);
  }
  const int last = static_cast<int>(problem.model.body_names.size()) - 1;
  problem.loss.push_back({.name = "velocity", .quantity = LossQuantity::body_velocity, .index = last});
  problem.loss.back().upper = {0.1, kNoRange, std::numeric_limits<double>::infinity()};
  problem.loss.push_back({.name = "turning", .quantity = LossQuantity::body_angular_velocity, .index = last});
  problem.loss.push_back({.name = "apart", .quantity = LossQuantity::distance, .terminal = false, .index = last});
  problem.loss.back().over = OverTime::least;
  problem.loss.back().measure = ErrorMeasure::absolute;
  for (const EffortPart part : {EffortPart::total, EffortPart::actuator, EffortPart::damping}) {
    problem.loss.push_back({.name = "effort", .quantity = LossQuantity::joint_effort, .terminal = false, .part = part});
    problem.loss.push_back({.name = "power", .quantity = LossQuantity::joint_power, .terminal = false, .part = part});
  }
  RolloutOptions options;
  options.steps = problem.simulation.steps;
  options.time_step = problem.simulation.time_step;
  const auto losses = [&](Memory& memory) {
    Tape<double> tape(memory);
    const State<double> state = initial_state<double>(problem, kWorlds, memory);
    const Control<double> control = initial_control<double>(problem, kWorlds, memory);
    const auto trajectory = rollout(tape, problem.model, state, control, options);
    const LossResult<double> loss = evaluate_loss(problem, trajectory, control, options, &tape);
    const Gradients<double> g = std::move(tape).backward(loss.seeds);
    return std::array<Buffer<double>, 3>{on_host(loss.terms), on_host(g.of(control.u)), on_host(g.of(state.qd))};
  };
  const auto here = losses(default_memory()), away = losses(there);
  for (int k = 0; k < 3; ++k) EXPECT_LE(relative_error(away[k], here[k]), 1e-10) << "60 steps into a limit: " << k;
}

// A world that stops does so at the same step, for the same joint, and leaves the others alone.
TEST_P(GpuParity, WorldsThatStop) {
  Memory there = memory();
  const Model model = chain(7);
  Batch<float> batch = random_batch<float>(model, kSteps, first_worlds(kWorlds), 7);
  batch.control.u.set(3 * model.topology.nu + 2, 5, std::numeric_limits<float>::infinity());
  batch.state.qd.set(1, 8, std::numeric_limits<float>::quiet_NaN());
  RolloutOptions options;
  options.steps = kSteps;
  const Trajectory<float> a = rollout(model, batch.state, batch.control, options);
  const Trajectory<float> b = rollout(model, detach(batch.state, there), detach(batch.control, there), options, there);
  for (int w = 0; w < kWorlds; ++w) {
    EXPECT_EQ((*b.status)[w].stopped_step, (*a.status)[w].stopped_step) << w;
    EXPECT_EQ((*b.status)[w].joint, (*a.status)[w].joint) << w;
  }
  EXPECT_EQ((*b.status)[5].stopped_step, 3);
  EXPECT_EQ((*b.status)[8].stopped_step, 0);
  EXPECT_EQ(b.status->count_stopped(), 2);
  // NaN where there is no gradient, numbers elsewhere.
  Tape<float> tape(there);
  const State<float> state = detach(batch.state, there);
  const Trajectory<float> t = rollout(tape, model, state, detach(batch.control, there), options);
  Seeds<float> seeds;
  seeds.add(t.final.q, t.final.q);
  const Gradients<float> g = std::move(tape).backward(seeds);
  const Buffer<float> bar = on_host(g.of(state.q));
  EXPECT_EQ(g.stopped_worlds(), 2);
  for (int w = 0; w < kWorlds; ++w) EXPECT_EQ(std::isnan(bar(0, w)), w == 5 || w == 8) << w;
}

TEST_P(GpuParity, ClippedWindowsAndCheckpoints) {
  Memory there = memory();
  const Model model = chain(5);
  const Batch<double> batch = random_batch<double>(model, 24, first_worlds(kWorlds), 7);
  const auto gradient = [&](Memory& memory, const GradientWindow& window, const MemoryPlan& plan) {
    RolloutOptions options;
    options.steps = 24;
    options.window = window;
    options.plan = plan;
    Tape<double> tape(memory);
    const State<double> state = detach(batch.state, memory);
    const Control<double> control = detach(batch.control, memory);
    const Trajectory<double> t = rollout(tape, model, state, control, options);
    Seeds<double> seeds;
    seeds.add(t.final.qd, t.final.qd);
    const Gradients<double> g = std::move(tape).backward(seeds);
    return std::pair{on_host(g.of(control.u)), g.windows()};
  };
  const GradientWindow window{6, false, 0.5};
  const auto [here, here_windows] = gradient(default_memory(), window, {});
  const auto [away, away_windows] = gradient(there, window, {});
  EXPECT_LE(relative_error(away, here), 1e-11);
  EXPECT_EQ(away_windows.clipped, here_windows.clipped);
  EXPECT_GT(away_windows.clipped, 0);
  // The plan leaves no trace in the bits.
  for (const MemoryPlan& plan : {MemoryPlan{6, 100}, MemoryPlan{6, 1}, MemoryPlan{12, 0}}) {
    EXPECT_TRUE(same_bits(gradient(there, window, plan).first, away)) << plan.piece;
  }
}

TEST_P(GpuParity, BuffersOfDifferentDevicesDoNotMix) {
  Memory there = memory();
  const Model model = chain(3);
  const Batch<double> batch = random_batch<double>(model, kSteps, first_worlds(4), 7);
  RolloutOptions options;
  options.steps = kSteps;
  Memory of_host;
  expect_usage_error(
      [&] { rollout(model, detach(batch.state, there), detach(batch.control, there), options, of_host); },
      {to_string(device()).c_str(), "memory of cpu"});
  expect_usage_error([&] { rollout(model, detach(batch.state, there), batch.control, options, there); },
                     {"control", to_string(device()).c_str()});
  expect_usage_error(
      [&] {
        Tape<double> tape;
        rollout(tape, model, detach(batch.state, there), detach(batch.control, there), options);
      },
      {to_string(device()).c_str(), "memory of cpu"});
  // In place of the default memory that of the state's device serves.
  EXPECT_EQ(rollout(model, detach(batch.state, there), detach(batch.control, there), options).final.q.backend(),
            there.backend());
}

}  // namespace
}  // namespace backdrive::test
