// Grips that let go: what they held flies on by the laws of free flight, with gradients over the moment of release.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/problem/objective.h"
#include "autodiff/problem/variables.h"
#include "autodiff/tape/rollout.h"
#include "scenes/scene.h"
#include "tests/support/loss_differences.h"

namespace backdrive {
namespace {

constexpr const char* kThrower = R"(
simulation: {integrator: semi_implicit, time_step: 5 ms, duration: 0.5 s}
model:
  bodies:
    arm: {shapes: [{density: 500, geometry: {type: capsule, scale: [2 cm, 20 cm]}, frame: {position: [0, 0, -0.2]}}]}
    ball: {shapes: [{density: 300, geometry: {type: sphere, scale: 5 cm}}]}
  joints:
    shoulder: {type: revolute, child: arm, axis: [0, 1, 0], damping: 0.1}
    flight: {type: free, child: ball}
    grip: {type: fixed, loop: true, parent: arm, child: ball, frame: {position: [0, 0, -0.45]}, release: {at: 0.3 s}}
  shapes:
    floor: {body: world, geometry: {type: plane}, frame: {position: [0, 0, -9]}}
initial_state:
  shoulder: {velocity: -4}
  flight: {position: [0, 0, -0.45], velocity: [1.8, 0, 0], angular_velocity: [0, -4, 0]}
optimize:
  variables:
    - {control: shoulder, knots: 4, initial: [-0.5, -1, 0.3, 0.2]}
    - {parameter: shapes/ball/density, scale: 100}
    - {parameter: bodies/arm/com}
    - {parameter: joints/grip/frame/position}
    - {parameter: joints/grip/attachment/stiffness, scale: 1e5}
    - {parameter: joints/grip/attachment/angular_stiffness, scale: 1e4}
    - {parameter: joints/shoulder/damping}
    - {parameter: gravity}
  loss:
    terminal: [{body: ball, position: [1, 0.1, -0.4]}, {joint: shoulder, position: -1}]
    running: [{body: ball, velocity: [1, 0, 0], weight: 0.1}]
)";

/// The floor where the ball lands on it and bounces after it was let go.
const Override kLands{"shapes/floor/frame/position/z", "-0.6"};

Problem thrower(const std::vector<Override>& overrides = {}) {
  return parse_scene(kThrower, "thrower.yaml", ".", overrides).problem;
}

/// The recorded states.
Trajectory<double> motion_of(const Problem& p) {
  RolloutOptions options;
  options.time_step = p.simulation.time_step;
  options.steps = p.simulation.steps;
  Tape<double> tape;
  const State<double> start = place_bodies(&tape, p.model, initial_state<double>(p, 1, default_memory()), options);
  return rollout(tape, p.model, start, initial_control<double>(p, 1, default_memory()), options);
}

TEST(Release, WhatWasHeldFliesFreely) {
  const Problem p = thrower();
  const Trajectory<double> motion = motion_of(p);
  const Topology& t = p.model.topology;
  const int row = t.links[p.model.link_of_joint(p.model.find_joint("flight"))].v;
  const double dt = p.simulation.time_step;
  const auto change = [&](int step, int k) {
    return motion.qd((step + 1) * t.nv + row + k, 0) - motion.qd(step * t.nv + row + k, 0);
  };
  double held = 1e9;
  for (int step = 0; step < 60; ++step) held = std::min(held, std::abs(change(step, 5) + 9.81 * dt));
  EXPECT_GT(held, 1e-4);  // it swings on a circle
  for (int step = 60; step < p.simulation.steps; ++step) {
    // A sphere's spin and the way its weight pulls, to rounding of speeds of some m/s.
    for (int k = 0; k < 5; ++k) EXPECT_NEAR(change(step, k), 0, 1e-13) << step << " " << k;
    EXPECT_NEAR(change(step, 5), -9.81 * dt, 1e-13) << step;
  }
}

TEST(Release, UntilThenNothingIsOther) {
  const Trajectory<double> released = motion_of(thrower());
  const Problem p = thrower({{"joints/grip/release/at", "7 s"}});
  const Trajectory<double> held = motion_of(p);
  const int nq = p.model.topology.nq, row = p.model.topology.links[0].q;
  for (int k = 0; k < 61 * nq; ++k) ASSERT_EQ(released.q(k, 0), held.q(k, 0)) << k / nq;
  double most = 0;
  for (int k = 0; k < nq; ++k) most = std::max(most, std::abs(released.q(62 * nq + k, 0) - held.q(62 * nq + k, 0)));
  EXPECT_GT(most, 1e-5) << row;
}

TEST(Release, GradientsPassOverIt) {
  for (const std::vector<Override>& floor : {std::vector<Override>{}, {kLands}}) {
    const Problem p = thrower(floor);
    // Truncation h² = 1e-10 of third derivatives of up to 1e3, and 1e-16/h of a loss of 1.
    EXPECT_LT(test::gradient_error(p, p), 1e-6) << floor.size();
    // Duals through the adjoint, of which the value is the adjoint's gradient: exact second derivatives need both.
    std::vector<Override> later = floor;
    later.push_back({"joints/grip/release/at", "0.305 s"});
    EXPECT_GT(test::gradient_error(p, thrower(later)), 1e-4) << "one step more would be seen";
  }
}

TEST(Release, SecondDerivativesToo) {
  const test::HessianDifferences at = test::hessian_differences(thrower({kLands}), 1e-6);
  double of_gradient = 0;
  for (const double g : at.gradient) of_gradient = std::max(of_gradient, std::abs(g));
  for (std::size_t k = 0; k < at.gradient.size(); ++k) {
    EXPECT_NEAR(at.product.gradient[k], at.gradient[k], 1e-10 * of_gradient) << k;
    EXPECT_NEAR(at.product.product[k], at.by_difference[k], 1e-4 * at.largest) << k;
  }
}

TEST(Release, SameBitsInPieces) {
  const Problem p = thrower({kLands});
  const std::vector<double> x = initial_points(p, 1, 0)[0];
  ExecutionOptions little;
  little.memory_budget = 175'000;
  std::vector<double> loss[2];
  std::vector<std::vector<double>> gradient[2];
  make_objective(p, {})->evaluate({x}, loss[0], gradient[0]);
  ASSERT_FALSE(plan_objective(p, little).plan.keeps_all());
  make_objective(p, little)->evaluate({x}, loss[1], gradient[1]);
  EXPECT_EQ(loss[0], loss[1]);
  EXPECT_EQ(gradient[0], gradient[1]);
}

TEST(Release, AnswersForWhatCannotLetGo) {
  const auto refused = [](const std::vector<Override>& overrides) -> std::string {
    try {
      thrower(overrides);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto expect = [&](const std::vector<Override>& overrides, const char* words) {
    const std::string message = refused(overrides);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect({{"joints/grip/release/at", "0"}}, "expected a time (s, ms, us, min) > 0");
  expect({{"joints/grip/release", "{}"}}, "expected the key 'at'");
  expect({{"joints/grip/type", "ball"}}, "expected a fixed joint that closes a loop");
  expect({{"joints/shoulder/release/at", "1"}}, "of the tree, expected a fixed joint that closes a loop");
  expect({{"simulation/integrator", "featherstone"}}, "expected integrator semi_implicit");
  // One step by itself does not know when it is.
  const Problem p = thrower();
  Tape<double> tape;
  RolloutOptions options;
  options.time_step = p.simulation.time_step;
  const State<double> start = place_bodies(&tape, p.model, initial_state<double>(p, 1, default_memory()), options);
  EXPECT_THROW(step(tape, p.model, start, Control<double>(p.model, 1, 1), options), Error);
}

}  // namespace
}  // namespace backdrive
