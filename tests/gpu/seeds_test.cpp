// The three faults on a device: gradients that dangle, leak or accumulate; and what an iteration asks of the host.
#include "autodiff/optimize/optimize.h"
#include "autodiff/tape/rollout.h"
#include "autodiff/tape/stepper.h"
#include "engine/view.h"
#include "models/parameter_list.h"
#include "tests/autodiff/optimize_cases.h"
#include "tests/gpu/devices.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

constexpr int kSteps = 10, kWorlds = kSanitized ? 11 : 64;

BACKDRIVE_ON_DEVICES(GpuSeeds);

struct Recording {
  explicit Recording(Memory m) : memory(m), tape(m) {
    require_all(model);
    const Batch<double> batch = random_batch<double>(model, kSteps, first_worlds(kWorlds), 2);
    state = detach(batch.state, memory);
    control = detach(batch.control, memory);
    options.steps = kSteps;
    record();
  }
  void record() {
    tape = Tape<double>(memory);
    trajectory = rollout(tape, model, state, control, options);
    seeds = {};
    seeds.add(trajectory.final.q, trajectory.final.q);
  }
  Memory memory;
  Model model = chain(4);
  State<double> state;
  Control<double> control;
  RolloutOptions options;
  Tape<double> tape;
  Trajectory<double> trajectory;
  Seeds<double> seeds;
};

// requires_grad goes off, the model and all handles go between record and backward: what is written to still is there.
TEST_P(GpuSeeds, NothingDangles) {
  Recording r(memory());
  const State<double> state = r.state;
  Tape<double> tape = std::move(r.tape);
  const Seeds<double> seeds = r.seeds;
  for (const Field& field : fields()) {
    Parameter& parameter = field.of(r.model);
    for (int item = 0; item < parameter.items(); ++item) parameter.requires_grad(item, false);
  }
  r.model = pendulum();
  r.control = {};
  r.trajectory = {};
  r.memory.trim();
  const Gradients<double> g = std::move(tape).backward(seeds);
  EXPECT_EQ(g.parameters().bodies.mass.items(), 4);
  EXPECT_NE(g.parameters().bodies.mass(0), 0);
  EXPECT_GT(std::abs(on_host(g.of(state.q))(0, 0)), 0);
}

TEST_P(GpuSeeds, NothingLeaks) {
  Recording r(memory());
  // Growth is seen in a part of the iterations, too.
  expect_nothing_grows(r.memory, iterations() / (kSanitized ? 10 : 1), [&] {
    r.record();
    return std::move(r.tape).backward(r.seeds).parameters().bodies.mass(0);
  });
  const std::size_t peak = r.memory.counters().peak_bytes;
  // Recordings that never go backward.
  for (int k = 0; k < (kSanitized ? 10 : 100); ++k) r.record();
  EXPECT_EQ(r.memory.counters().peak_bytes, peak);
}

TEST_P(GpuSeeds, NothingAccumulates) {
  Recording r(memory());
  const Buffer<double> seed = r.trajectory.final.q.clone(r.memory);
  Seeds<double> own;
  own.add(r.trajectory.final.q, seed);
  const Gradients<double> first = std::move(r.tape).backward(own);
  const Buffer<double> bar = on_host(first.of(r.state.q));
  r.record();
  own = {};
  own.add(r.trajectory.final.q, seed);
  const Gradients<double> second = std::move(r.tape).backward(own);
  EXPECT_TRUE(same_bits(on_host(second.of(r.state.q)), bar));
  EXPECT_TRUE(same_bits(on_host(first.of(r.state.q)), bar)) << "the first gradient is nobody else's";
  EXPECT_EQ(second.parameters().bodies.mass(0), first.parameters().bodies.mass(0));
  EXPECT_TRUE(same_bits(on_host(seed), on_host(r.trajectory.final.q))) << "seeds are read only";
  expect_usage_error([&] { static_cast<void>(std::move(r.tape).backward(own)); }, {"spent"});
}

// An iteration of Adam waits once, for the summary that has the loss, and asks for no memory: whatever is varied.
TEST_P(GpuSeeds, AnIterationWaitsOnce) {
  DeviceBackend& backend = *backend_of(device());
  for (Problem p : {cases::pendulum(), cases::varied_cart_pole()}) {
    p.optimize.method = OptimizeMethod::adam;
    p.optimize.iterations = kSanitized ? 12 : 60;
    p.optimize.learning_rate = 1e-3;
    struct Told {
      std::uint64_t waits, allocations, host_allocations, up, down;
    };
    std::vector<Told> told;
    optimize(p, {.worlds = kSanitized ? 20 : 200, .devices = {device()}}, [&](const OptimizeProgress&) {
      const DeviceCounters& c = backend.counters();
      told.push_back({c.synchronizations, default_memory(device()).counters().allocations,
                      default_memory().counters().allocations, c.bytes_up, c.bytes_down});
      return true;
    });
    ASSERT_GT(told.size(), kSanitized ? 10u : 50u);
    for (std::size_t k = 3; k < told.size(); ++k) {
      EXPECT_EQ(told[k].waits - told[k - 1].waits, 1u) << k;
      EXPECT_EQ(told[k].allocations, told[2].allocations) << k;
      EXPECT_EQ(told[k].host_allocations, told[2].host_allocations) << k;
      EXPECT_LT(told[k].up - told[k - 1].up, 8192u) << "tables of terms and links, nothing that grows with the worlds";
      EXPECT_LT(told[k].down - told[k - 1].down, 64u) << "the summary";
    }
  }
}

// A recorded step, told again and again, does what a rollout does.
TEST_P(GpuSeeds, StepsInPlace) {
  Memory there = memory();
  const Model model = random_tree(3, {.links = 9, .forces = true});
  const int nu = model.topology.nu;
  Batch<float> batch = random_batch<float>(model, kSteps, first_worlds(kWorlds), 2);
  batch.control.u.set(4 * nu, 7, std::numeric_limits<float>::infinity());
  RolloutOptions options;
  options.steps = kSteps;
  const Control<float> control = detach(batch.control, there);
  const Trajectory<float> whole = rollout(model, detach(batch.state, there), control, options, there);
  Stepper<float> stepper(model, detach(batch.state, there), Control<float>(model, 1, kWorlds, there), options.time_step,
                         there);
  for (int step = 0; step < kSteps; ++step) {
    stepper.control().copy_rows(0, control.u, step * nu, nu);
    stepper.step();
  }
  EXPECT_TRUE(same_bits(on_host(stepper.state().q), on_host(whole.final.q)));
  EXPECT_TRUE(same_bits(on_host(stepper.state().qd), on_host(whole.final.qd)));
  EXPECT_EQ(stepper.status()[7].stopped_step, 4);
  EXPECT_EQ((*whole.status)[7].stopped_step, 4);
  EXPECT_EQ(stepper.status().count_stopped(), 1);
}

TEST_P(GpuSeeds, TheHostLeavesADevicesNumbersAlone) {
  Memory there = memory();
  Buffer<float> buffer(there, 3, 5);
  buffer.fill(2.5f);
  expect_usage_error([&] { static_cast<void>(buffer(0, 0)); }, {to_string(device()).c_str(), "3 rows of 5", "clone()"});
  expect_usage_error([&] { buffer.write(); }, {to_string(device()).c_str()});
  expect_usage_error([&] { static_cast<void>(buffer.view("x")); }, {to_string(device()).c_str()});
  EXPECT_EQ(on_host(buffer)(2, 4), 2.5f);
  const Buffer<float> zeros(there, 3, 5);
  EXPECT_EQ(on_host(zeros)(1, 1), 0.0f);
  Buffer<float> copy = buffer.clone(there);
  EXPECT_NE(copy.id(), buffer.id());
  buffer.fill(1.0f);
  EXPECT_EQ(on_host(copy)(0, 0), 2.5f);
  copy.copy_rows(1, buffer, 0, 2);
  EXPECT_EQ(on_host(copy)(0, 0), 2.5f);
  EXPECT_EQ(on_host(copy)(2, 0), 1.0f);
}

TEST(GpuDevices, AreNamed) {
  EXPECT_EQ(parse_devices("cpu"), std::vector<Device>{Device{}});
  EXPECT_EQ(parse_devices("emulated"), (std::vector<Device>{{DeviceKind::emulated, 0}}));
  EXPECT_EQ(parse_devices("emulated:2,0"), (std::vector<Device>{{DeviceKind::emulated, 2}, {DeviceKind::emulated, 0}}));
  EXPECT_EQ(parse_devices("emulated:all").size(), 4u);
  for (const char* wrong : {"gpu", "cuda0", "cuda:", "cuda:x", "cuda:0,", "cuda:0,0", "cuda:-1", "emulated0", ""}) {
    expect_usage_error([&] { parse_devices(wrong); }, {"expected cpu, cuda"});
  }
  try {
    parse_devices("emulated:9");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
  }
  if (device_count(DeviceKind::cuda) > 0) return;
  try {
    parse_devices("cuda");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 5);
    EXPECT_NE(std::string(error.what()).find("expected --device cpu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace backdrive::test
