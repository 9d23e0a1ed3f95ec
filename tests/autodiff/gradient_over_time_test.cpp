#include "autodiff/check/gradient_over_time.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/autodiff/optimize_cases.h"

namespace backdrive {
namespace {

/// A pendulum of two rods that swings freely, and is scored on the way and at the end.
Problem swinging() {
  ModelBuilder builder;
  const int rod = builder.add_body("rod", {.mass = 1, .com = {0, 0, -0.5}, .inertia = {0.08, 0.08, 0.001, 0, 0, 0}});
  const int tip = builder.add_body("tip", {.mass = 0.4, .com = {0, 0, -0.3}, .inertia = {0.02, 0.02, 0.001, 0, 0, 0}});
  JointOptions hinge;
  hinge.axis = {0, 1, 0};
  hinge.damping = 0.05;
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, rod, hinge);
  hinge.frame = {{0, 0, -1}, {0, 0, 0, 1}};
  builder.add_joint("elbow", JointType::revolute, rod, tip, hinge);
  Problem p;
  p.model = builder.build();
  p.simulation = {0.01, 60};
  p.initial_position = {1.2, -0.7};
  p.initial_velocity = {0.3, 0.8};
  p.controls.push_back({0, ControlChannel::effort, {0.4}});
  p.loss.push_back({.name = "terminal/tip/position",
                    .quantity = LossQuantity::body_position,
                    .index = tip,
                    .target = {0.3, 0.1, -0.8, 0},
                    .weight = 3});
  p.loss.push_back({.name = "running/elbow/velocity",
                    .quantity = LossQuantity::joint_velocity,
                    .terminal = false,
                    .last_step = 45,
                    .index = 1,
                    .weight = 0.5});
  return p;
}

/// The rest of a problem, as one of its own: from the state after `step` steps, scored for what comes after it.
Problem rest_of(const Problem& problem, int step) {
  Problem rest = problem;
  if (step > 0) {
    Problem begin = problem;
    begin.simulation.steps = step;
    RolloutOptions options;
    options.time_step = problem.simulation.time_step;
    options.steps = step;
    const Trajectory<double> trajectory =
        rollout(problem.model, initial_state<double>(begin, 1), initial_control<double>(begin, 1), options);
    for (int k = 0; k < 2; ++k) {
      rest.initial_position[k] = trajectory.final.q(k, 0);
      rest.initial_velocity[k] = trajectory.final.qd(k, 0);
    }
  }
  rest.simulation.steps -= step;
  for (LossTerm& term : rest.loss) {
    if (term.terminal) continue;
    term.first_step = std::max(1, term.first_step - step);
    term.last_step -= step;
  }
  std::erase_if(rest.loss, [](const LossTerm& term) { return !term.terminal && term.last_step < 1; });
  return rest;
}

/// Norm of the central differences of the loss by one half of the initial state.
double norm_of_differences(Problem problem, std::vector<double> Problem::*half) {
  double squares = 0;
  for (double& x : problem.*half) {
    const double at = x, h = 1e-5;  // truncation ~ h², rounding ~ 1e-16 / h: both ~ 1e-10
    x = at + h;
    const double above = cases::final_loss(problem);
    x = at - h;
    const double below = cases::final_loss(problem);
    x = at;
    squares += std::pow((above - below) / (2 * h), 2);
  }
  return std::sqrt(squares);
}

TEST(GradientOverTime, EqualsDifferencesOfTheRestOfTheMotion) {
  const Problem problem = swinging();
  const GradientOverTime over = gradient_over_time(problem, 6);
  ASSERT_EQ(over.steps, (std::vector<int>{0, 10, 20, 30, 40, 50}));
  for (std::size_t k = 0; k < over.steps.size(); ++k) {
    SCOPED_TRACE(over.steps[k]);
    const Problem rest = rest_of(problem, over.steps[k]);
    const double position = norm_of_differences(rest, &Problem::initial_position);
    const double velocity = norm_of_differences(rest, &Problem::initial_velocity);
    EXPECT_GT(position, 0.01);
    EXPECT_NEAR(over.position[k], position, 1e-8 * position + 1e-9);
    EXPECT_NEAR(over.velocity[k], velocity, 1e-8 * velocity + 1e-9);
  }
}

TEST(GradientOverTime, GrowthIsThatOfALinearSystem) {
  // A slider with damping alone, v' = v / (1 + h d / m) a step, scored by its last velocity: its gradient by the
  // velocity shrinks by that factor with every step back, that by the position is zero.
  ModelBuilder builder;
  const int cart = builder.add_body("cart", {.mass = 2, .com = {}, .inertia = {1, 1, 1, 0, 0, 0}});
  JointOptions slider;
  slider.axis = {1, 0, 0};
  slider.damping = 6;
  builder.add_joint("slider", JointType::prismatic, ModelBuilder::world, cart, slider);
  Problem p;
  p.model = builder.build();
  p.simulation = {0.01, 50};
  p.initial_position = {0};
  p.initial_velocity = {1};
  p.loss.push_back({.name = "terminal/slider/velocity", .quantity = LossQuantity::joint_velocity});
  const GradientOverTime over = gradient_over_time(p, 10);
  ASSERT_EQ(over.growth.size(), 10u);
  for (std::size_t k = 0; k + 1 < over.growth.size(); ++k) {
    EXPECT_EQ(over.position[k], 0);
    EXPECT_NEAR(over.growth[k], 1 / (1 + 0.01 * 6 / 2), 1e-12);
  }
  EXPECT_TRUE(std::isnan(over.growth.back()));
}

TEST(GradientOverTime, SaysNothingOfWhatIsNotScored) {
  Problem problem = swinging();
  problem.loss.clear();
  EXPECT_TRUE(gradient_over_time(problem, 6).steps.empty());
}

TEST(GradientOverTime, ShortMotionsHaveEveryStep) {
  Problem problem = swinging();
  problem.simulation.steps = 3;
  EXPECT_EQ(gradient_over_time(problem, 200).steps, (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace backdrive
