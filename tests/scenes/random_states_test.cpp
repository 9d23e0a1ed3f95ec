// States at which a gradient check is to say something: sane, in motion, on the ground, and the same again.
#include "autodiff/check/random_states.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/check/gradient_check.h"
#include "autodiff/tape/loop_gaps.h"
#include "scenes/scene.h"
#include "tests/autodiff/optimize_cases.h"
#include "tests/support/places.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

Problem shipped(const std::string& name) {
  return load_scene(test::kRepository + "/scenes/" + name).problem;
}

/// A ball of a radius above a floor, at a height of ten radii.
Problem ball(double radius, double density = 1000) {
  ModelBuilder builder;
  const BodyIndex body = builder.add_body("ball", {});
  builder.add_joint("flight", JointType::free, ModelBuilder::world, body, {});
  builder.add_shape("skin", body, {.type = GeometryType::sphere, .scale = {radius, 0, 0}, .density = density});
  builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
  Problem p;
  p.model = builder.build();
  p.simulation = {0.1 * std::sqrt(radius / 9.81), 100};
  p.initial_position = {0, 0, 0, 1, 0, 0, 10 * radius};
  p.initial_velocity.assign(6, 0.0);
  p.loss = {{.name = "height", .quantity = LossQuantity::body_position, .index = body}};
  return p;
}

TEST(RandomStates, AreTheSameAgain) {
  const Problem problem = shipped("quadruped_hop.yaml");
  const auto once = random_state(problem, 3, 2), again = random_state(problem, 3, 2),
             other = random_state(problem, 3, 4), of_other_seed = random_state(problem, 4, 2);
  ASSERT_TRUE(once && again && other && of_other_seed);
  EXPECT_EQ(once->problem.initial_position, again->problem.initial_position);
  EXPECT_EQ(once->problem.initial_velocity, again->problem.initial_velocity);
  EXPECT_NE(once->problem.initial_position, other->problem.initial_position);
  EXPECT_NE(once->problem.initial_position, of_other_seed->problem.initial_position);
}

TEST(RandomStates, KeepWithinLimitsAndMove) {
  for (const char* name : {"arm_reach.yaml", "quadruped_hop.yaml", "robot_stand.yaml", "cartpole_swingup.yaml"}) {
    const Problem problem = shipped(name);
    const Model& model = problem.model;
    for (int number = 1; number <= 6; ++number) {
      const auto state = random_state(problem, 0, number);
      ASSERT_TRUE(state) << name << number;
      for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
        const int joint = static_cast<int>(j);
        if (!has_one_degree(model.joint_types[j])) continue;
        const Link& link = model.topology.links[model.link_of_joint(joint)];
        const double q = state->problem.initial_position[link.q];
        EXPECT_GE(q, model.joints.limit.lower(joint)) << name << " " << model.joint_names[j];
        EXPECT_LE(q, model.joints.limit.upper(joint)) << name << " " << model.joint_names[j];
        const double turn = std::abs(state->problem.initial_velocity[link.v]);
        EXPECT_GT(turn, 0) << name << " " << model.joint_names[j];
      }
    }
  }
}

// Every first of two stands on the floor, whatever its size: from 1 mm to 10 m.
TEST(RandomStates, AreLetDownToTheGround) {
  for (const double radius : {1e-3, 0.1, 10.0}) {
    const Problem problem = ball(radius);
    for (int number = 1; number <= 4; ++number) {
      const auto state = random_state(problem, 1, number);
      ASSERT_TRUE(state) << radius << " " << number;
      const double height = state->problem.initial_position[6];
      if (number % 2 == 1) {
        EXPECT_EQ(state->touching, 1) << radius;
        EXPECT_NEAR(height, radius, 0.02 * radius);
        EXPECT_LT(state->problem.initial_velocity[5], 0.5 * std::sqrt(9.81 * radius)) << "pressed, not thrown off";
      } else {
        EXPECT_GT(height, radius) << radius;
      }
    }
  }
}

// Of a closed loop the state is one that its own motion leads to.
TEST(RandomStates, CloseLoops) {
  const Problem problem = shipped("four_bar.yaml");
  const auto state = random_state(problem, 0, 1);
  ASSERT_TRUE(state);
  EXPECT_NE(state->problem.initial_position, problem.initial_position);
  const State<double> start =
      place_bodies<double>(nullptr, state->problem.model, initial_state<double>(state->problem, 1), {});
  // To what a step leaves open: gaps of springs of 1e7 N/m under tens of N.
  for (const LoopGap& gap : loop_gaps(state->problem.model, start)) EXPECT_LT(gap.distance, 1e-4);
}

/// ∂q̇⁺/∂q̇ of one step from (q, q̇) without controls, by the adjoint.
std::vector<double> by_adjoint(const Model& model, const State<double>& state, const RolloutOptions& options) {
  Tape<double> tape;
  const int n = state.qd.rows();
  const Trajectory<double> step = rollout(tape, model, state, Control<double>{}, options);
  Buffer<double> unit(n, n);
  for (int i = 0; i < n; ++i) unit.write(i)[i] = 1;
  Seeds<double> seeds;
  seeds.add(step.final.qd, unit);
  const Gradients<double> gradients = std::move(tape).backward(seeds, Disconnected::zero);
  std::vector<double> jacobian;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) jacobian.push_back(gradients.of(state.qd)(j, i));
  }
  return jacobian;
}
std::vector<double> by_duals(Model model, const State<double>& state, RolloutOptions options) {
  using D = Dual<double>;
  const int n = state.qd.rows();
  State<D> dual;
  dual.q = Buffer<D>(state.q.rows(), n);
  dual.qd = Buffer<D>(n, n);
  for (int w = 0; w < n; ++w) {
    for (int r = 0; r < state.q.rows(); ++r) dual.q.write(r)[w] = D(state.q(r, w));
    for (int r = 0; r < n; ++r) dual.qd.write(r)[w] = D(state.qd(r, w), r == w ? 1 : 0);
  }
  model.gravity.spread(n);
  const Parameters direction = zero_parameters(model, n);
  options.direction = &direction;
  const Trajectory<D> step = rollout(model, dual, Control<D>{}, options);
  std::vector<double> jacobian;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) jacobian.push_back(step.final.qd(i, j).dot);
  }
  return jacobian;
}

// A stool that falls on its feet and slides: of its 300 steps one was known to dual numbers to 2e-9 only, and moved by
// 1e-8 with the last digit of its start, as Newton's steps from stick to slip had left their sums inconsistent.
TEST(RandomStates, DualNumbersOfAStepAreExact) {
  const auto random = random_state(shipped("leg_length.yaml"), 0, 1);
  ASSERT_TRUE(random);
  const Problem& problem = random->problem;
  RolloutOptions options{.time_step = problem.simulation.time_step, .steps = problem.simulation.steps};
  const Trajectory<double> motion =
      rollout(problem.model, initial_state<double>(problem, 1), initial_control<double>(problem, 1), options);
  const int nq = problem.model.topology.nq, n = problem.model.topology.nv;
  options.steps = 1;
  for (int k = 0; k < problem.simulation.steps; ++k) {
    State<double> state;
    state.q = Buffer<double>(nq, n);
    state.qd = Buffer<double>(n, n);
    for (int w = 0; w < n; ++w) {
      for (int r = 0; r < nq; ++r) state.q.write(r)[w] = motion.q(k * nq + r, 0);
      for (int r = 0; r < n; ++r) state.qd.write(r)[w] = motion.qd(k * n + r, 0);
    }
    const std::vector<double> adjoint = by_adjoint(problem.model, state, options);
    const std::vector<double> dual = by_duals(problem.model, state, options);
    double largest = 0, error = 0;
    for (std::size_t i = 0; i < dual.size(); ++i) {
      largest = std::max(largest, std::abs(dual[i]));
      error = std::max(error, std::abs(dual[i] - adjoint[i]));
    }
    // Of a slip over ε velocities of 5 m/s know 1e-15 / 1e-5.
    EXPECT_LT(error, 1e-10 * largest) << "step " << k;
  }
}

// Rounding is measured there as anywhere else: an adjoint that is off by a ten millionth does not pass.
TEST(RandomStates, AFaultOfATenMillionthIsCaughtInContact) {
  const auto random = random_state(shipped("bounce_throw.yaml"), 0, 1);
  ASSERT_TRUE(random);
  ASSERT_EQ(random->touching, 1);
  GradientCheckOptions options;
  options.controls = 4;
  options.differences = 0;
  options.distance = 0;
  EXPECT_TRUE(check_gradients(random->problem, options).passed);
  options.fault_row = "bodies/ball/inertia";
  options.fault_factor = 1 + 1e-7;
  EXPECT_FALSE(check_gradients(random->problem, options).passed);
}

// A biped lands on its feet. Shifted as a whole it moves as before: the adjoint says 0, its dual numbers 1e-8 beside
// others of 2e3, and that is their own rounding (2, 2). In steps that end 1e-10 apart, as contact is solved to each
// kind's own limits, both are right to 1e-8 (5, 4 and 6, 3).
TEST(RandomStates, AdjointAndDualsMayBeApartAsTheirOwnRoundingSays) {
  if (test::kSanitized) GTEST_SKIP() << "calls what other tests call, for a minute";
  const std::vector<Override> short_run = {{"simulation/duration", "0.1"}};
  const Problem problem = load_scene(test::kRepository + "/scenes/walker_rise.yaml", short_run).problem;
  GradientCheckOptions options;
  options.controls = 0;
  options.differences = 0;
  options.distance = 0;
  const std::pair<int, int> places[] = {{2, 2}, {5, 4}, {6, 3}};
  for (const auto& [seed, number] : places) {
    const auto random = random_state(problem, seed, number);
    ASSERT_TRUE(random);
    options.seed = seed;
    const GradientCheck check = check_gradients(random->problem, options);
    EXPECT_TRUE(check.passed) << seed << " " << number;
    EXPECT_LT(check.step_defect, 1e-7) << "the disturbance is no excuse for everything";
    for (const GradientCheckRow& row : check.rows) {
      EXPECT_TRUE(row.passed) << row.name << " " << row.adjoint << " " << row.dual;
    }
  }
  // A fault is none of rounding's, there as elsewhere.
  options.fault_row = "joints/up/axis";
  options.fault_factor = 1 + 1e-5;
  EXPECT_FALSE(check_gradients(random_state(problem, 6, 3)->problem, options).passed);
}

TEST(RandomStates, ThereIsNoneOfARunThatNeverEnds) {
  Problem problem = cases::pendulum();
  problem.loss[0].target[0] = 1e200;  // its square is no number
  EXPECT_FALSE(random_state(problem, 0, 1));
}

}  // namespace
}  // namespace backdrive
