// Bodies that spin fast on joints: (12) of docs/theory.md keeps their energy, where ω × J ω of a step's start lets it
// grow without bound (a top 6e4-fold and a rotor in a gimbal likewise in the two seconds here).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "autodiff/tape/rollout.h"
#include "integrators/reference/inverse_dynamics.h"
#include "models/builder.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr double kTimeStep = 1.0 / 240;

/// What energy a run lost and gained at most, over the kinetic energy and the largest difference of potential energies
/// that it began with; infinite where it became non-finite.
struct EnergyRange {
  double lost = 0, gained = 0;
};

template <class T>
EnergyRange energies(const Model& model, const std::vector<double>& q0, const std::vector<double>& qd0, int steps,
                     double time_step = kTimeStep) {
  const Topology& t = model.topology;
  State<T> state(model, 1);
  for (int k = 0; k < t.nq; ++k) state.q.set(k, 0, static_cast<T>(q0[k]));
  for (int k = 0; k < t.nv; ++k) state.qd.set(k, 0, static_cast<T>(qd0[k]));
  RolloutOptions options;
  options.time_step = time_step;
  options.steps = steps;
  const Trajectory<T> run = rollout<T>(model, state, {}, options);
  if (run.any_stopped()) return {INFINITY, INFINITY};
  EnergyRange range;
  double start = 0, whole = 0;
  for (int step = 0; step <= steps; ++step) {
    std::vector<double> q, qd;
    for (int k = 0; k < t.nq; ++k) q.push_back(run.q(step * t.nq + k, 0));
    for (int k = 0; k < t.nv; ++k) qd.push_back(run.qd(step * t.nv + k, 0));
    const double energy = reference::kinetic_energy(model, q, qd) + reference::potential_energy(model, q);
    if (step == 0) {
      start = energy;
      whole = reference::kinetic_energy(model, q, qd) + 2 * std::abs(reference::potential_energy(model, q));
    }
    range.lost = std::max(range.lost, (start - energy) / whole);
    range.gained = std::max(range.gained, (energy - start) / whole);
  }
  return range;
}

/// A top whose pivot is `lever` below its centre of mass; its radius of gyration is 10 cm times its size.
Model top(const Numbers6& inertia, double lever, double size, double gravity) {
  ModelBuilder builder;
  builder.set_gravity({0, 0, -gravity});
  Numbers6 scaled = inertia;
  for (double& x : scaled) x *= std::pow(size, 5);
  builder.add_body("top", {std::pow(size, 3), {0, 0, lever * size}, scaled});
  builder.add_joint("pivot", JointType::ball, ModelBuilder::world, 0);
  return builder.build();
}

// Of any shape, on any lever, of 1 mm, 10 cm and 10 m. Under gravity, whose torque a step takes where it begins while
// the body turns by 0.2 rad, long levers gain to the first order.
TEST(Spin, ATopOnABallJointKeepsItsEnergy) {
  EnergyRange all, heavy;
  const auto widen = [](EnergyRange& most, const EnergyRange& one) {
    most = {std::max(most.lost, one.lost), std::max(most.gained, one.gained)};
  };
  for (const Numbers6& inertia : {Numbers6{0.01, 0.012, 0.02, 0, 0, 0}, Numbers6{0.02, 0.018, 0.005, 0.001, 0, 0.002},
                                  Numbers6{0.01, 0.02, 0.028, 0, 0, 0}}) {
    for (const double lever : {0.0, 0.1, 0.5}) {
      for (const double size : {0.01, 1.0, 100.0}) {
        widen(all, energies<double>(top(inertia, lever, size, 0), {0, 0, 0, 1}, {3, 2, 50}, 480));
      }
      widen(heavy, energies<double>(top(inertia, lever, 1, 9.81), {0, 0, 0, 1}, {3, 2, 50}, 480));
    }
  }
  EXPECT_LT(all.gained, 1e-2);
  EXPECT_LT(all.lost, 1e-2);
  EXPECT_LT(heavy.gained, 0.2);
  EXPECT_LT(heavy.lost, 0.2);
  std::printf("tops at 50 rad/s, 1/240 s, 2 s: of their energy lost %.1e, gained %.1e, under gravity %.1e, %.1e\n",
              all.lost, all.gained, heavy.lost, heavy.gained);
}

/// A rotor in two rings.
Model gimbal(bool spins) {
  ModelBuilder builder;
  builder.set_gravity({0, 0, 0});
  builder.add_body("outer", {0.1, {0, 0, 0}, {1e-4, 1e-4, 2e-4, 0, 0, 0}});
  builder.add_body("inner", {0.1, {0, 0, 0}, {1e-4, 2e-4, 1e-4, 0, 0, 0}});
  builder.add_body("rotor", {1, {0, 0, 0}, {1e-3, 1e-3, 2e-3, 0, 0, 0}});
  builder.add_joint("yaw", JointType::revolute, ModelBuilder::world, 0, {.axis = {1, 0, 0}});
  builder.add_joint("pitch", JointType::revolute, 0, 1, {.axis = {0, 1, 0}});
  builder.add_joint("spin", JointType::revolute, 1, 2, {.axis = {0, 0, 1}, .spins = spins});
  return builder.build();
}

TEST(Spin, ARotorInAGimbalKeepsItsEnergyWhereItIsSaidToSpin) {
  for (const double speed : {30.0, 100.0, 200.0}) {
    const EnergyRange range = energies<double>(gimbal(true), {0, 0.2, 0}, {1, -2, speed}, 480);
    EXPECT_LT(range.gained, 0.01) << speed;
    EXPECT_LT(range.lost, 0.01) << speed;
    EXPECT_LT(energies<float>(gimbal(true), {0, 0.2, 0}, {1, -2, speed}, 480).gained, 0.01) << speed;
    // What the flag is for: fed by the couples of steps the rings would come to whip, which is damped.
    if (speed < 100) continue;
    EXPECT_GT(energies<double>(gimbal(false), {0, 0.2, 0}, {1, -2, speed}, 480).lost, 0.5) << speed;
  }
}

// To the order of the step it is the same motion: of the second, but for a start whose q̇ is not half a step ahead.
TEST(Spin, TheMotionIsThatOfTheEquations) {
  const auto end_at = [](double dt, bool spins) {
    const Model model = gimbal(spins);
    State<double> state(model, 1);
    const double q[] = {0, 0.2, 0}, qd[] = {1, -2, 20};
    for (int k = 0; k < 3; ++k) state.q.set(k, 0, q[k]), state.qd.set(k, 0, qd[k]);
    RolloutOptions options;
    options.time_step = dt;
    options.steps = static_cast<int>(std::lround(0.25 / dt));
    return rollout<double>(model, state, {}, options).final.q(0, 0);
  };
  const double exact = end_at(1e-6, false);
  const double coarse = std::abs(end_at(2e-4, true) - exact), fine = std::abs(end_at(1e-4, true) - exact);
  EXPECT_GT(std::log2(coarse / fine), 0.9);
  EXPECT_LT(fine, 1e-2);
}

// A blade fixed to the rotor, a ball on the blade: gradients of everything, by the adjoint and by dual numbers.
TEST(Spin, GradientsAgreeWithDuals) {
  ModelBuilder builder;
  const auto body = [&](const char* name) {
    builder.add_body(name, {0.8, {0.05, -0.02, 0.03}, {0.01, 0.012, 0.015, 0.001, -0.002, 0.0015}});
  };
  for (const char* const name : {"ring", "rotor", "blade", "tip", "cross"}) body(name);
  const Frame frame{{0.02, 0.05, -0.1}, {0.1, 0.2, -0.3, 0.9}};
  builder.add_joint("pitch", JointType::revolute, ModelBuilder::world, 0, {.axis = {0, 1, 0}});
  builder.add_joint("spin", JointType::revolute, 0, 1, {.frame = frame, .axis = {0.3, 0.1, 1}, .spins = true});
  builder.add_joint("weld", JointType::fixed, 1, 2, {.frame = frame});
  builder.add_joint("socket", JointType::ball, 2, 3, {.frame = frame});
  builder.add_joint("gimbal", JointType::universal, 3, 4, {.frame = frame, .spins = true});
  Model model = builder.build();
  test::require_all(model);
  test::BatchScale scale;
  scale.qd = 15;
  const test::GradientCase c = test::make_case(std::move(model), 10, 4e-3, 2, 3, scale);
  const test::CaseGradient gradient = test::gradient_by_tape<double>(c);
  for (const test::BlockError& e : test::compare_blocks(c, gradient, 4)) {
    EXPECT_LT(e.error, 1e-13) << e.block;  // ten steps of 1e-15
  }
}

}  // namespace
}  // namespace backdrive
