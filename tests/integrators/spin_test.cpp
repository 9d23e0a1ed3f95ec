// Bodies that spin fast on joints: (12) of docs/theory.md keeps their energy, where ω × J ω of a step's start lets it
// grow without bound (a top 6e4-fold and a rotor in a gimbal likewise in the two seconds here).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "autodiff/tape/rollout.h"
#include "integrators/reference/inverse_dynamics.h"
#include "models/builder.h"

namespace backdrive {
namespace {

constexpr double kTimeStep = 1.0 / 240;

/// Largest and smallest energy of a run over that of its start.
struct EnergyRange {
  double least = 1, most = 1;
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
  EXPECT_FALSE(run.any_stopped());
  EnergyRange range;
  double start = 0;
  for (int step = 0; step <= steps; ++step) {
    std::vector<double> q, qd;
    for (int k = 0; k < t.nq; ++k) q.push_back(run.q(step * t.nq + k, 0));
    for (int k = 0; k < t.nv; ++k) qd.push_back(run.qd(step * t.nv + k, 0));
    const double energy = reference::kinetic_energy(model, q, qd) + reference::potential_energy(model, q);
    if (step == 0) start = energy;
    range.least = std::min(range.least, energy / start);
    range.most = std::max(range.most, energy / start);
  }
  return range;
}

/// A top whose pivot is `lever` below its centre of mass.
Model top(const Numbers6& inertia, double lever, double size = 1) {
  ModelBuilder builder;
  Numbers6 scaled = inertia;
  for (double& x : scaled) x *= std::pow(size, 5);
  builder.add_body("top", {std::pow(size, 3), {0, 0, lever * size}, scaled});
  builder.add_joint("pivot", JointType::ball, ModelBuilder::world, 0);
  return builder.build();
}

// Of any shape, on any lever, at 1 mm, 10 cm and 10 m; a gyration radius of 10 cm times its size.
TEST(Spin, ATopOnABallJointKeepsItsEnergy) {
  double most = 1, least = 1;
  for (const Numbers6& inertia : {Numbers6{0.01, 0.012, 0.02, 0, 0, 0}, Numbers6{0.02, 0.018, 0.005, 0.001, 0, 0.002},
                                  Numbers6{0.01, 0.02, 0.028, 0, 0, 0}}) {
    for (const double lever : {0.0, 0.1, 0.5}) {
      for (const double size : {0.01, 1.0, 100.0}) {
        const EnergyRange range = energies<double>(top(inertia, lever, size), {0, 0, 0, 1}, {3, 2, 50}, 480);
        EXPECT_LT(range.most, 1.3) << lever << " " << size;
        EXPECT_GT(range.least, 0.5) << lever << " " << size;
        most = std::max(most, range.most), least = std::min(least, range.least);
      }
    }
  }
  std::printf("tops at 50 rad/s, 1/240 s, 2 s: energy %.3f to %.3f of the start\n", least, most);
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
  const EnergyRange range = energies<double>(gimbal(true), {0, 0.2, 0}, {1, -2, 100}, 480);
  EXPECT_LT(range.most, 1.1);
  EXPECT_GT(range.least, 0.5);
  std::printf("a rotor of 100 rad/s in a gimbal, 1/240 s, 2 s: energy %.3f to %.3f of the start\n", range.least,
              range.most);
  // What the flag is for.
  EXPECT_GT(energies<double>(gimbal(false), {0, 0.2, 0}, {1, -2, 100}, 480).most, 2);
}

// To the order of the step it is the same motion.
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
  EXPECT_NEAR(std::log2(coarse / fine), 1, 0.1);
  EXPECT_LT(fine, 1e-2);
}

}  // namespace
}  // namespace backdrive
