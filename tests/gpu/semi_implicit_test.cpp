// The semi-implicit integrator on a device against the processor's packs, and what every rollout promises there: bits,
// windows, checkpoints, stopped worlds, and that nothing dangles, leaks or accumulates.
#include <numeric>
#include <random>

#include "autodiff/tape/rollout.h"
#include "autodiff/tape/stepper.h"
#include "models/parameter_list.h"
#include "tests/gpu/parity.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

constexpr int kSteps = 8, kWorlds = kSanitized ? 11 : 37;
/// kRoundingShare of attachments, whose stiffness makes rounding grow: the emulated device, which fuses no products, is
/// up to 8 times as far from float32's packs as these are from float64.
constexpr double kShare = 12;
/// That of contact, which is solved to a tolerance: in ulps, devices are up to 36 times as far from the packs as
/// float32's are from float64 (an H200; the emulated device, beside packs of AVX2, 21).
constexpr double kContactShare = 50;

BACKDRIVE_ON_DEVICES(GpuSemiImplicit);

enum class Touch { nothing, everything };

/// Joints of every type with every force, some that close loops, some coupled, and attachments that are stiff but for
/// the step taken. Where everything touches, shapes lie softly in each other and in the floor.
Model mechanism(std::uint64_t seed, int links = 9, Touch touch = Touch::nothing) {
  TreeOptions options{.links = links,
                      .forces = true,
                      .shapes = true,
                      .contact = touch == Touch::everything,
                      .integrator = Integrator::semi_implicit};
  options.loops = seed % 2 ? 2 : 0;
  options.couplings = seed % 2 ? 1 + seed % 3 : 0;  // with springs, limits and a drive, and one that is held
  options.rotations = seed != 2;
  Model model = random_tree(seed, options);
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    if (model.joint_loops[j]) continue;
    const int joint = static_cast<int>(j);
    model.joints.attachment.stiffness.at(joint) = 2e4, model.joints.attachment.damping.at(joint) = 30;
    model.joints.attachment.angular_stiffness.at(joint) = 2e3, model.joints.attachment.angular_damping.at(joint) = 3;
  }
  require_all(model);
  return model;
}

RolloutOptions options_of(int steps) {
  RolloutOptions options;
  options.time_step = 0.005;
  options.steps = steps;
  return options;
}

/// Random weights, none in a quaternion's fourth row.
template <class T>
Buffer<T> weights_of(const Buffer<T>& like, const std::vector<int>& rows, int stride, Random& random) {
  Buffer<T> weights(like.rows(), like.worlds());
  for (int first = 0; first < like.rows(); first += stride) {
    for (const int row : rows) {
      for (int w = 0; w < like.worlds(); ++w) weights.set(first + row, w, constant<T>(random.symmetric(1)));
    }
  }
  return weights;
}

std::vector<int> first_numbers(int count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// All that comes out of worlds whose bodies are placed, stepped and looked at, on a tape.
template <class T>
struct Outcome {
  Buffer<T> placed_q, placed_qd, q, qd, poses, q_bar, qd_bar, control_bar;
  Buffer<T> reported, contact;  ///< empty where nothing touches
  Parameters parameters;
};

template <class T>
Outcome<T> outcome_of(const Model& model, const std::vector<int>& worlds, Memory memory = default_memory()) {
  const Batch<T> batch = random_batch<T>(model, kSteps, worlds, 7, {0.3, 0.5, 0.5, 0.3});
  RolloutOptions options = options_of(kSteps);
  options.keep_contact = true;
  const Topology& t = model.topology;
  const State<T> state = detach(batch.state, memory);
  const Control<T> control = detach(batch.control, memory);
  const std::vector<int> bodies = first_numbers(static_cast<int>(model.body_names.size()));
  Tape<T> tape(memory);
  const State<T> start = place_bodies(&tape, model, state, options, memory);
  const Trajectory<T> trajectory = rollout(tape, model, start, control, options);
  const Buffer<T> poses = body_poses<T>(&tape, model, trajectory.q, bodies, options, memory);
  EXPECT_FALSE(trajectory.any_stopped());
  Random random(3);
  Seeds<T> seeds;
  seeds.add(trajectory.q, weights_of(trajectory.q, tangent_rows(t), t.nq, random).clone(memory));
  seeds.add(trajectory.qd, weights_of(trajectory.qd, first_numbers(t.nv), t.nv, random).clone(memory));
  seeds.add(poses, weights_of(poses, first_numbers(12), 12, random).clone(memory));
  const bool touches = !t.contact_pairs.empty();
  if (touches) {
    seeds.add(trajectory.reported, weights_of(trajectory.reported, first_numbers(t.nv), t.nv, random).clone(memory));
    const Buffer<T> forces = weights_of(trajectory.contact, first_numbers(3), kContactRows, random);
    seeds.add(trajectory.contact, forces.clone(memory));
  }
  seeds.add(start.qd, weights_of(start.qd, first_numbers(t.nv), t.nv, random).clone(memory));
  const Gradients<T> g = std::move(tape).backward(seeds);
  return {on_host(start.q),
          on_host(start.qd),
          on_host(trajectory.q),
          on_host(trajectory.qd),
          on_host(poses),
          on_host(g.of(state.q)),
          on_host(g.of(state.qd)),
          on_host(g.of(control.u)),
          touches ? on_host(trajectory.reported) : Buffer<T>(),
          touches ? on_host(trajectory.contact) : Buffer<T>(),
          g.parameters()};
}

template <class T>
void expect_parity(const Model& model, Memory memory) {
  const std::vector<int> worlds = first_worlds(kWorlds);
  const Outcome<T> here = outcome_of<T>(model, worlds), there = outcome_of<T>(model, worlds, memory);
  const Outcome<double> exact = outcome_of<double>(model, worlds);
  const Outcome<float> single = outcome_of<float>(model, worlds);
  const bool touches = !model.topology.contact_pairs.empty();
  const double share = touches ? kContactShare : kShare;
#define EXPECT_NEAR_HERE(member)                       \
  EXPECT_LE(relative_error(there.member, here.member), \
            gradient_bound<T>(relative_error(in_double(single.member), exact.member), share))
  EXPECT_NEAR_HERE(placed_q);
  EXPECT_NEAR_HERE(placed_qd);
  EXPECT_NEAR_HERE(q);
  EXPECT_NEAR_HERE(qd);
  EXPECT_NEAR_HERE(poses);
  EXPECT_NEAR_HERE(q_bar);
  EXPECT_NEAR_HERE(qd_bar);
  EXPECT_NEAR_HERE(control_bar);
  if (touches) {
    EXPECT_NEAR_HERE(reported);
    EXPECT_NEAR_HERE(contact);
  }
#undef EXPECT_NEAR_HERE
  EXPECT_LE(parameter_error(there.parameters, here.parameters),
            gradient_bound<T>(parameter_error(single.parameters, exact.parameters), share));
}

template <class T>
void expect_parity_of_all(const Memory& memory) {
  for (const auto& [seed, touch] : {std::pair{1, Touch::nothing},
                                    {2, Touch::nothing},
                                    {3, Touch::nothing},
                                    {1, Touch::everything},
                                    {4, Touch::everything}}) {
    SCOPED_TRACE(testing::Message() << "mechanism " << seed << (touch == Touch::everything ? " that touches" : ""));
    Model model = mechanism(seed, seed == 2 ? 16 : 9, touch);
    expect_parity<T>(model, memory);
    for (Parameter* p : {&model.bodies.mass, &model.joints.axis, &model.joints.attachment.stiffness})
      p->spread(kWorlds);
    for (int w = 0; w < kWorlds; ++w) {
      model.bodies.mass.at(0, 0, w) *= 1 + 0.01 * w;
      model.joints.attachment.stiffness.at(1, 0, w) *= 1 + 0.01 * w;
    }
    expect_parity<T>(model, memory);
  }
}
TEST_P(GpuSemiImplicit, EverythingInDouble) {
  expect_parity_of_all<double>(memory());
}
TEST_P(GpuSemiImplicit, EverythingInFloat) {
  expect_parity_of_all<float>(memory());
}

// A wrong device would show: one part in a thousand of an effort makes far more than rounding may.
TEST_P(GpuSemiImplicit, CanFail) {
  Memory there = memory();
  const Model model = mechanism(1);
  Batch<double> batch = random_batch<double>(model, kSteps, first_worlds(kWorlds), 7);
  const auto end = [&](Memory& memory) {
    const State<double> start =
        place_bodies<double>(nullptr, model, detach(batch.state, memory), options_of(kSteps), memory);
    return rollout(model, start, detach(batch.control, memory), options_of(kSteps), memory).final.q;
  };
  const Buffer<double> right = end(default_memory());
  EXPECT_LE(relative_error(end(there), right), 1e-11);
  batch.control.u.set(0, 3, batch.control.u(0, 3) * 1.001);
  EXPECT_GT(relative_error(end(there), right), 1e-8);
}

// The same bits every time and for any order of the worlds, sums over them included.
TEST_P(GpuSemiImplicit, RunsAndOrdersOfWorlds) {
  Memory there = memory();
  const Model model = mechanism(1);
  struct Run {
    Buffer<float> q, qd_bar;
    double mass_bar, stiffness_bar;
  };
  const auto run = [&](const std::vector<int>& worlds) {
    const Batch<float> batch = random_batch<float>(model, kSteps, worlds, 7);
    const State<float> state = detach(batch.state, there);
    Tape<float> tape(there);
    const State<float> start = place_bodies(&tape, model, state, options_of(kSteps), there);
    const auto t = rollout(tape, model, start, detach(batch.control, there), options_of(kSteps));
    Seeds<float> seeds;
    seeds.add(t.final.qd, t.final.qd);
    const Gradients<float> g = std::move(tape).backward(seeds);
    return Run{on_host(t.final.q), on_host(g.of(state.qd)), g.parameters().bodies.mass(1),
               g.parameters().joints.attachment.stiffness(1)};
  };
  std::vector<int> worlds = first_worlds(kWorlds);
  const Run first = run(worlds);
  EXPECT_NE(first.mass_bar, 0);
  EXPECT_NE(first.stiffness_bar, 0);
  std::mt19937 random(1);
  for (int k = 0; k < 6; ++k) {
    const Run again = run(worlds);
    for (int w = 0; w < kWorlds; ++w) {
      ASSERT_TRUE(same_bits(again.q, w, first.q, worlds[w])) << "run " << k;
      ASSERT_TRUE(same_bits(again.qd_bar, w, first.qd_bar, worlds[w])) << "run " << k;
    }
    EXPECT_EQ(again.mass_bar, first.mass_bar) << "run " << k;
    EXPECT_EQ(again.stiffness_bar, first.stiffness_bar) << "run " << k;
    std::shuffle(worlds.begin(), worlds.end(), random);
  }
}

// A world that stops does so at the same step, for the same joint, and leaves the others alone.
TEST_P(GpuSemiImplicit, WorldsThatStop) {
  Memory there = memory();
  const Model model = mechanism(1);
  Batch<float> batch = random_batch<float>(model, kSteps, first_worlds(kWorlds), 7);
  const int joint = 1, row = model.topology.links[model.link_of_joint(joint)].v;  // without a drive, which saturates
  batch.control.u.set(3 * model.topology.nu + row, 5, std::numeric_limits<float>::infinity());
  batch.state.qd.set(row, 8, std::numeric_limits<float>::quiet_NaN());
  const RolloutOptions options = options_of(kSteps);
  const auto run = [&](Memory& memory, Buffer<float>* bar) {
    Tape<float> tape(memory);
    const State<float> state = detach(batch.state, memory);
    const State<float> start = place_bodies(&tape, model, state, options, memory);
    Trajectory<float> t = rollout(tape, model, start, detach(batch.control, memory), options);
    Seeds<float> seeds;
    Random random(2);
    seeds.add(t.final.q, weights_of(t.final.q, tangent_rows(model.topology), model.topology.nq, random).clone(memory));
    const Gradients<float> g = std::move(tape).backward(seeds);
    EXPECT_EQ(g.stopped_worlds(), 2);
    *bar = on_host(g.of(state.qd));
    return t;
  };
  Buffer<float> here_bar, there_bar;
  const Trajectory<float> a = run(default_memory(), &here_bar), b = run(there, &there_bar);
  for (int w = 0; w < kWorlds; ++w) {
    EXPECT_EQ((*b.status)[w].stopped_step, (*a.status)[w].stopped_step) << w;
    EXPECT_EQ((*b.status)[w].joint, (*a.status)[w].joint) << w;
    EXPECT_EQ(std::isnan(there_bar(0, w)), w == 5 || w == 8) << w;
    EXPECT_EQ(std::isnan(here_bar(0, w)), w == 5 || w == 8) << w;
  }
  EXPECT_EQ((*b.status)[5].stopped_step, 3);
  EXPECT_EQ((*b.status)[5].joint, joint);
  EXPECT_EQ((*b.status)[8].stopped_step, 0);
  EXPECT_EQ(b.status->count_stopped(), 2);
}

TEST_P(GpuSemiImplicit, ClippedWindowsAndCheckpoints) {
  Memory there = memory();
  const Model model = mechanism(3);
  const Batch<double> batch = random_batch<double>(model, 24, first_worlds(kWorlds), 7);
  const auto gradient = [&](Memory& memory, const GradientWindow& window, const MemoryPlan& plan) {
    RolloutOptions options = options_of(24);
    options.window = window;
    options.plan = plan;
    Tape<double> tape(memory);
    const State<double> start = place_bodies(&tape, model, detach(batch.state, memory), options, memory);
    const Control<double> control = detach(batch.control, memory);
    const Trajectory<double> t = rollout(tape, model, start, control, options);
    Seeds<double> seeds;
    seeds.add(t.final.qd, t.final.qd);
    const Gradients<double> g = std::move(tape).backward(seeds);
    return std::tuple{on_host(g.of(control.u)), g.windows(), g.parameters()};
  };
  const GradientWindow window{6, false, 0.5};
  const auto [here, here_windows, here_parameters] = gradient(default_memory(), window, {});
  const auto [away, away_windows, away_parameters] = gradient(there, window, {});
  EXPECT_LE(relative_error(away, here), 1e-11);
  EXPECT_LE(parameter_error(away_parameters, here_parameters), 1e-11);
  EXPECT_EQ(away_windows.clipped, here_windows.clipped);
  EXPECT_GT(away_windows.clipped, 0);
  // The plan leaves no trace in the bits.
  for (const MemoryPlan& plan : {MemoryPlan{6, 100}, MemoryPlan{6, 1}, MemoryPlan{12, 0}}) {
    const auto [pieces, windows, parameters] = gradient(there, window, plan);
    EXPECT_TRUE(same_bits(pieces, away)) << plan.piece;
    EXPECT_EQ(parameter_error(parameters, away_parameters), 0) << plan.piece;
  }
}

// A recorded step, told again and again, does what a rollout does.
TEST_P(GpuSemiImplicit, StepsInPlace) {
  Memory there = memory();
  const Model model = mechanism(3);
  const int nu = model.topology.nu;
  const Batch<float> batch = random_batch<float>(model, kSteps, first_worlds(kWorlds), 2);
  const RolloutOptions options = options_of(kSteps);
  const State<float> start = place_bodies<float>(nullptr, model, detach(batch.state, there), options, there);
  const Control<float> control = detach(batch.control, there);
  const Trajectory<float> whole = rollout(model, start, control, options, there);
  Stepper<float> stepper(model, detach(start, there), Control<float>(model, 1, kWorlds, there), options.time_step,
                         there);
  for (int step = 0; step < kSteps; ++step) {
    stepper.control().copy_rows(0, control.u, step * nu, nu);
    stepper.step();
  }
  EXPECT_TRUE(same_bits(on_host(stepper.state().q), on_host(whole.final.q)));
  EXPECT_TRUE(same_bits(on_host(stepper.state().qd), on_host(whole.final.qd)));
}

TEST_P(GpuSemiImplicit, DualNumbersAreTheProcessors) {
  Memory there = memory();
  const Model model = mechanism(2);
  const State<Dual<double>> state(model, 1, there);
  const RolloutOptions options = options_of(1);
  expect_usage_error([&] { place_bodies<Dual<double>>(nullptr, model, state, options, there); },
                     {"dual numbers on", to_string(device()).c_str(), "expected buffers of the host"});
  expect_usage_error([&] { rollout<Dual<double>>(model, state, {}, options, there); }, {"dual numbers on"});
}

// ---- the three faults -----------------------------------------------------------------------------------------------

/// Of few worlds and steps: what leaks does so by recordings.
struct Recording {
  static constexpr int steps = 2, worlds = 5;
  explicit Recording(Memory m, Touch touch = Touch::nothing) : memory(m), model(mechanism(1, 9, touch)), tape(m) {
    const Batch<double> batch = random_batch<double>(model, steps, first_worlds(worlds), 2);
    state = detach(batch.state, memory);
    control = detach(batch.control, memory);
    record();
  }
  void record() {
    tape = Tape<double>(memory);
    const RolloutOptions options = options_of(steps);
    trajectory = rollout(tape, model, place_bodies(&tape, model, state, options, memory), control, options);
    seeds = {};
    seeds.add(trajectory.final.qd, trajectory.final.qd);
  }
  Memory memory;
  Model model;
  State<double> state;
  Control<double> control;
  Tape<double> tape;
  Trajectory<double> trajectory;
  Seeds<double> seeds;
};

// The model, its tables and all handles go between record and backward.
TEST_P(GpuSemiImplicit, NothingDangles) {
  Recording r(memory());
  const State<double> state = r.state;
  Tape<double> tape = std::move(r.tape);
  const Seeds<double> seeds = r.seeds;
  r.model = pendulum();
  r.control = {};
  r.trajectory = {};
  r.memory.trim();
  const Gradients<double> g = std::move(tape).backward(seeds);
  EXPECT_EQ(g.parameters().bodies.mass.items(), 9);
  EXPECT_NE(g.parameters().bodies.mass(0), 0);
  EXPECT_GT(std::abs(on_host(g.of(state.qd))(0, 0)), 0);
}

// Growth is seen in a part of the iterations too; slow builds take less.
constexpr int kPart = kSlowBuild ? 50 : 10;

void expect_no_leak(Recording r) {
  expect_nothing_grows(r.memory, iterations() / kPart, [&] {
    r.record();
    return std::move(r.tape).backward(r.seeds).parameters().joints.attachment.stiffness(1);
  });
}
TEST_P(GpuSemiImplicit, NothingLeaksOrAccumulates) {
  expect_no_leak(Recording(memory()));
  expect_no_leak(Recording(memory(), Touch::everything));
}

}  // namespace
}  // namespace backdrive::test
