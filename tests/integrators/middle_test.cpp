// Velocity terms of a step's middle: (24) of docs/theory.md. Gradients: whip_test.cpp and mutation_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

#include "autodiff/tape/dynamics.h"
#include "engine/pack.h"
#include "integrators/reference/inverse_dynamics.h"
#include "models/builder.h"
#include "tests/support/batch.h"
#include "tests/support/models.h"
#include "tests/support/thrown_chain.h"

namespace backdrive {
namespace {

/// An arm of three bodies on joints of the given types, which sits at the world or flies; its axes differ.
Model arm(JointType first, JointType other, double gravity) {
  ModelBuilder builder;
  builder.set_gravity({0, 0, -gravity});
  for (int i = 0; i < 3; ++i) {
    builder.add_body("link" + std::to_string(i), {0.5, {0.01, 0, -0.1}, {2e-3, 2.4e-3, 8e-4, 0, 0, 0}});
    JointOptions options{.axis = {i == 1 ? 0.6 : 0, 0.8, i == 1 ? 0 : 0.6}};
    if (i > 0) options.frame.position = {0, 0, -0.2};
    builder.add_joint("joint" + std::to_string(i), i == 0 ? first : other,
                      i == 0 ? ModelBuilder::world : BodyIndex(i - 1), i, options);
  }
  return builder.build();
}
template <class Visit>
void each_arm(double gravity, const Visit& visit) {
  for (const JointType first : {JointType::revolute, JointType::ball, JointType::free}) {
    for (const JointType other : {JointType::revolute, JointType::ball, JointType::prismatic}) {
      visit(arm(first, other, gravity), std::string(to_string(first)) + " and " + std::string(to_string(other)));
    }
  }
}

std::vector<double> numbers(const Buffer<double>& from, int rows, int first = 0) {
  std::vector<double> to;
  for (int k = 0; k < rows; ++k) to.push_back(from(first + k, 0));
  return to;
}

/// Joints at ±(0.5 to 1.5) times `speed`, slides at a tenth of that.
State<double> turning_state(const Model& model, double speed, unsigned seed) {
  test::Random random(seed);
  State<double> state(model, 1);
  for (int k = 0; k < model.topology.nv; ++k) {
    const double x = random.symmetric(speed);
    state.qd.set(k, 0, x + std::copysign(speed / 2, x));
  }
  for (const Link& link : model.topology.links) {
    if (link.type == JointType::prismatic) state.qd.set(link.v, 0, state.qd(link.v, 0) / 10);
  }
  return state;
}

/// The most that the energy of a tenth of a second strays from its start, over it: q̇⁺ and the positions in the middle
/// of its step.
double energy_error(const Model& model, double speed, double rate, unsigned seed) {
  const Topology& t = model.topology;
  RolloutOptions options;
  options.time_step = 1 / rate;
  options.steps = static_cast<int>(rate) / 10;
  const Trajectory<double> run = rollout<double>(model, turning_state(model, speed, seed), {}, options);
  double first = 0, most = 0;
  for (int step = 0; step < options.steps; ++step) {
    const std::vector<double> q = numbers(run.q, t.nq, step * t.nq), on = numbers(run.q, t.nq, (step + 1) * t.nq);
    const double energy =
        reference::kinetic_energy(model, test::between(t, q, on, 0.5), numbers(run.qd, t.nv, (step + 1) * t.nv)) +
        (reference::potential_energy(model, q) + reference::potential_energy(model, on)) / 2;
    if (step == 0) first = energy;
    most = std::max(most, std::abs(energy / first - 1));
  }
  return most;
}

// With the velocity terms of the start it would be some ω²Δt a second, 7 % at 480/s, and only halved.
TEST(Middle, EnergyStraysByTheSquareOfTheStep) {
  double most = 0;
  each_arm(0, [&](const Model& model, const std::string& words) {
    double coarse = 0, fine = 0;
    for (unsigned seed = 0; seed < 4; ++seed) {
      coarse += energy_error(model, 6, 480, seed);
      fine += energy_error(model, 6, 960, seed);
    }
    most = std::max(most, coarse / 4);
    EXPECT_NEAR(std::log2(coarse / fine), 2, 0.5) << words;
    EXPECT_LT(coarse / 4, 1e-3) << words;
  });
  std::printf("arms of three bodies at 6 rad/s, 480/s, 0.1 s: energy within %.1e of its start\n", most);
}

/// Of a run whose q̇ begins where it is half a step before, as that of every other state: its positions at `time`.
std::vector<double> end_of(const Model& model, double speed, double dt, double time) {
  State<double> state = turning_state(model, speed, 3);
  const Buffer<double> qdd = forward_dynamics<double>(nullptr, model, state, Buffer<double>(model.topology.nv, 1));
  for (int k = 0; k < model.topology.nv; ++k) state.qd.set(k, 0, state.qd(k, 0) - dt / 2 * qdd(k, 0));
  RolloutOptions options;
  options.time_step = dt;
  options.steps = static_cast<int>(std::lround(time / dt));
  return numbers(rollout<double>(model, state, {}, options).final.q, model.topology.nq);
}

TEST(Middle, MotionsAreOfSecondOrder) {
  each_arm(9.81, [](const Model& model, const std::string& words) {
    const auto end = [&](double dt) { return end_of(model, 6, dt, 0.12); };
    const std::vector<double> exact = end(1e-6), coarse = end(8e-3), fine = end(4e-3);
    double coarse_error = 0, fine_error = 0;
    for (std::size_t k = 0; k < exact.size(); ++k) {
      coarse_error = std::max(coarse_error, std::abs(coarse[k] - exact[k]));
      fine_error = std::max(fine_error, std::abs(fine[k] - exact[k]));
    }
    EXPECT_NEAR(std::log2(coarse_error / fine_error), 2, 0.35) << words;
    EXPECT_LT(fine_error, 1e-3) << words;
  });
}

/// Two links that fly at a floor without weight or friction, on which they bounce as on springs of 0.6 N/mm.
Model bouncing_links(JointType other) {
  return test::chain_of(2, JointType::free, other, [](ModelBuilder& builder) {
    const auto shape = [](GeometryType type) {
      ShapeOptions of{.type = type, .scale = {0.02, 0.05, 0.05}, .friction = 0};
      of.stiffness = 1200;
      of.width = 0.01;
      of.dissipation = 0;
      return of;
    };
    for (int i = 0; i < 2; ++i) {
      ShapeOptions capsule = shape(GeometryType::capsule);
      capsule.frame.position = {0, 0, -0.07};
      capsule.filter = {2, 1};
      builder.add_shape("link" + std::to_string(i), i, capsule);
    }
    builder.add_shape("floor", ModelBuilder::world, shape(GeometryType::plane));
  });
}

/// What a bounce changes of their energy, over it; nothing where they end in touch or did not.
std::optional<double> energy_of_bounce(const Model& model, double rate, unsigned seed) {
  const Topology& t = model.topology;
  State<double> state = turning_state(model, 1, seed);
  state.q.set(6, 0, 0.3);
  for (int k = 3; k < 6; ++k) state.qd.set(k, 0, k == 5 ? -0.2 : 0);
  RolloutOptions options;
  options.time_step = 1 / rate;
  options.steps = static_cast<int>(rate * 0.4);
  const Trajectory<double> run = rollout<double>(model, state, {}, options);
  const auto kicked = [&](int step) {
    for (int v = 0; v < t.nv; ++v) {
      if (run.reported((step + 1) * t.nv + v, 0) != run.qd((step + 1) * t.nv + v, 0)) return true;
    }
    return false;
  };
  const auto energy = [&](int step) {
    const std::vector<double> q = numbers(run.q, t.nq, step * t.nq), on = numbers(run.q, t.nq, (step + 1) * t.nq);
    return reference::kinetic_energy(model, test::between(t, q, on, 0.5), numbers(run.qd, t.nv, (step + 1) * t.nv));
  };
  bool bounced = false;
  for (int step = 0; step < options.steps; ++step) bounced = bounced || kicked(step);
  const int last = options.steps - 1;
  if (!bounced || kicked(0) || kicked(last)) return {};
  return std::abs(energy(last) / energy(0) - 1);
}

// With M̃ and J of a step's start, kicks change it by some ω Δt.
TEST(Middle, KicksKeepEnergyToTheSquareOfTheStep) {
  for (const JointType other : {JointType::revolute, JointType::ball}) {
    const Model model = bouncing_links(other);
    double coarse = 0, fine = 0;
    int bounces = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
      const auto at_half = energy_of_bounce(model, 480, seed), at_whole = energy_of_bounce(model, 960, seed);
      if (!at_half || !at_whole) continue;
      ++bounces;
      coarse += *at_half;
      fine += *at_whole;
    }
    std::printf("%d bounces of two links on a %s: energy within %.1e on average at 480/s, %.1e at 960/s\n", bounces,
                to_string(other), coarse / bounces, fine / bounces);
    EXPECT_GT(bounces, 10);
    EXPECT_NEAR(std::log2(coarse / fine), 2, 0.5);
  }
}

// Worlds that turn fast and worlds that do not share packs: each has the bits that it has alone, forwards and
// backwards. `height`: of free roots, on average.
template <class T>
void expect_bits_alone(const Model& model, double slow_speed = 0.2, double height = 0) {
  const int worlds = 2 * NativePack<T>::lanes;
  test::Batch<T> fast = test::random_batch<T>(model, 1, test::first_worlds(worlds), 5, {.qd = 8});
  test::Batch<T> slow = test::random_batch<T>(model, 1, test::first_worlds(worlds), 5, {.qd = slow_speed});
  State<T> mixed(model, worlds);
  for (int w = 0; w < worlds; ++w) {
    const State<T>& from = w % 3 == 1 ? fast.state : slow.state;
    for (int k = 0; k < model.topology.nq; ++k) mixed.q.set(k, w, from.q(k, w));
    for (int k = 0; k < model.topology.nv; ++k) mixed.qd.set(k, w, from.qd(k, w));
    if (height > 0) mixed.q.set(6, w, mixed.q(6, w) + static_cast<T>(height));
  }
  RolloutOptions options;
  options.steps = 12;
  const auto run = [&](const State<T>& start) {
    Tape<T> tape;
    const State<T> end = rollout<T>(tape, model, start, {}, options).final;
    Seeds<T> seeds;
    for (const Buffer<T>& of : {end.q, end.qd}) {
      Buffer<T> ones(of.rows(), of.worlds());
      ones.fill(1);
      seeds.add(of, ones);
    }
    const Gradients<T> g = std::move(tape).backward(seeds);
    return std::vector<Buffer<T>>{end.q, end.qd, g.of(start.q), g.of(start.qd)};
  };
  const std::vector<Buffer<T>> together = run(mixed);
  for (int w = 0; w < worlds; ++w) {
    State<T> one(model, 1);
    for (int k = 0; k < model.topology.nq; ++k) one.q.set(k, 0, mixed.q(k, w));
    for (int k = 0; k < model.topology.nv; ++k) one.qd.set(k, 0, mixed.qd(k, w));
    const std::vector<Buffer<T>> alone = run(one);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      for (int k = 0; k < alone[i].rows(); ++k) EXPECT_EQ(alone[i](k, 0), together[i](k, w)) << i << ", world " << w;
    }
  }
}

TEST(Middle, WorldsHaveTheirBitsInAnyPack) {
  each_arm(9.81, [](const Model& model, const std::string&) {
    expect_bits_alone<double>(model);
    expect_bits_alone<float>(model);
  });
}

// And where contact is solved in the middle for some of them.
TEST(Middle, KickedWorldsHaveTheirBitsInAnyPack) {
  for (const JointType other : {JointType::revolute, JointType::ball}) {
    const Model model = test::chain_on_floor(3, other);
    expect_bits_alone<double>(model, 0, 0.3);
    expect_bits_alone<float>(model, 0, 0.3);
  }
}

}  // namespace
}  // namespace backdrive
