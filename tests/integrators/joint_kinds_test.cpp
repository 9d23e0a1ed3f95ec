// Springs, limits, drives and speed limits of all joints that have them, and gravity compensation, by other routes:
// joints of one degree of freedom that move alike, derivatives of energies, models without gravity.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/tape/efforts.h"
#include "autodiff/tape/rollout.h"
#include "engine/rotation.h"
#include "models/builder.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

/// A body with unequal moments that turns about its centre of mass, without gravity.
Model turning_body(JointType type, const JointOptions& joint, Integrator integrator) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.set_gravity({0, 0, 0});
  builder.add_body("top", {2, {0, 0, 0}, {0.02, 0.03, 0.04, 0, 0, 0}});
  builder.add_joint("joint", type, ModelBuilder::world, 0, joint);
  return builder.build();
}

/// Everything that can act on a joint, reached in 200 steps.
JointOptions all_efforts() {
  JointOptions joint;
  joint.armature = 0.01, joint.damping = 0.02, joint.friction = 0.05;
  joint.spring.stiffness = 0.7;
  joint.limit.upper = 0.9, joint.limit.stiffness = 40, joint.limit.damping = 0.3;
  joint.limit.velocity = 1.5, joint.limit.velocity_damping = 4;
  joint.driven = true;
  joint.drive.stiffness = 6, joint.drive.damping = 0.4, joint.drive.effort_limit = 1.2;
  return joint;
}

/// Angle about z, by step.
struct Swing {
  std::vector<double> angle, rate;
};
Swing swing(JointType type, Integrator integrator) {
  const Model model = turning_body(type, all_efforts(), integrator);
  const Topology& t = model.topology;
  const bool ball = type == JointType::ball, planar = type == JointType::planar;
  RolloutOptions options;
  options.steps = 200, options.time_step = 0.005;
  const int turn = ball || planar ? 2 : 0;
  State<double> state(model, 1);
  const std::vector<double> rest = neutral_positions(t);
  for (int k = 0; k < t.nq; ++k) state.q.set(k, 0, rest[k]);
  state.qd.set(turn, 0, 3);
  Control<double> control(model, options.steps, 1);
  for (int step = 0; step < options.steps; ++step) {
    const auto set = [&](ControlChannel channel, double x) {
      control.u.set(step * t.nu + control_row(model, 0, channel, turn), 0, x);
    };
    set(ControlChannel::effort, step < 60 ? 0.8 : -0.1);
    set(ControlChannel::target_position, step < 100 ? 1.3 : -0.4);
    set(ControlChannel::target_velocity, step < 100 ? 0.2 : -0.1);
  }
  const State<double> placed = place_bodies<double>(nullptr, model, state, options);
  const Trajectory<double> motion = rollout(model, placed, control, options);
  Swing result;
  for (int step = 0; step <= options.steps; ++step) {
    const auto at = [&](int row) { return motion.q(step * t.nq + row, 0); };
    result.angle.push_back(ball ? 2 * std::atan2(at(2), at(3)) : at(turn));
    result.rate.push_back(motion.qd(step * t.nv + turn, 0));
  }
  return result;
}

/// Largest difference of two swings.
double apart(const Swing& a, const Swing& b) {
  double most = 0;
  for (std::size_t k = 0; k < a.angle.size(); ++k) {
    most = std::max({most, std::abs(a.angle[k] - b.angle[k]), std::abs(a.rate[k] - b.rate[k])});
  }
  return most;
}

class JointKinds : public testing::TestWithParam<Integrator> {};
INSTANTIATE_TEST_SUITE_P(Both, JointKinds, testing::Values(Integrator::featherstone, Integrator::semi_implicit),
                         [](const auto& info) { return std::string(to_string(info.param)); });

// About one axis all of them are the same joint. 200 steps of the same operations on other numbers leave 1e-12; of
// bodies that springs hold, which the planar joint's and the ball's are alone in not needing for its turns, 1e-9.
TEST_P(JointKinds, AboutOneAxisTheyAreTheSame) {
  const Swing hinge = swing(JointType::revolute, GetParam());
  const double tolerance = GetParam() == Integrator::featherstone ? 1e-12 : 1e-9;
  EXPECT_LT(apart(swing(JointType::ball, GetParam()), hinge), tolerance);
  EXPECT_LT(apart(swing(JointType::planar, GetParam()), hinge), tolerance);
  // It reached what it should: the speed limit, the limit of the angle, and back.
  EXPECT_GT(*std::ranges::max_element(hinge.angle), 0.9);
  EXPECT_LT(hinge.angle.back(), *std::ranges::max_element(hinge.angle) - 0.2);
  EXPECT_GT(*std::ranges::max_element(hinge.rate), 1.5);
}

/// −dE/dθ of R exp(θ) for each axis by central differences, 1e-5 apart: error 1e-10 of E.
template <class Energy>
std::array<double, 3> torque_of(const Quaternion<double>& q, const Energy& energy) {
  std::array<double, 3> torque;
  for (int k = 0; k < 3; ++k) {
    constexpr double h = 1e-5;
    const auto at = [&](double s) {
      return energy(turned<TurnSide::right>(q, Vec3<double>{k == 0 ? s : 0, k == 1 ? s : 0, k == 2 ? s : 0}));
    };
    torque[k] = -(at(h) - at(-h)) / (2 * h);
  }
  return torque;
}

double angle_of_turn(const Quaternion<double>& q) {
  return 2 * std::atan2(std::sqrt(dot(q.v, q.v)), std::abs(q.w));
}

/// The part of the effort at orientation q with a rate of zero, in a step so short that nothing moves.
std::array<double, 3> effort_at(const JointOptions& joint, const Quaternion<double>& q, const Vec3<double>& target,
                                EffortPart part, Integrator integrator) {
  const Model model = turning_body(JointType::ball, joint, integrator);
  RolloutOptions options;
  options.steps = 1, options.time_step = 1e-12;
  State<double> state(model, 1);
  const double numbers[] = {q.v.x, q.v.y, q.v.z, q.w};
  for (int k = 0; k < 4; ++k) state.q.set(k, 0, numbers[k]);
  Control<double> control(model, 1, 1);
  const double goal[] = {target.x, target.y, target.z};
  for (int k = 0; k < 3 && joint.driven; ++k) {
    control.u.set(control_row(model, 0, ControlChannel::target_position, k), 0, goal[k]);
  }
  const State<double> placed = place_bodies<double>(nullptr, model, state, options);
  const Trajectory<double> motion = rollout(model, placed, control, options);
  std::array<double, 3> effort;
  for (int k = 0; k < 3; ++k) {
    const EffortTerm term = effort_term(model, 0, part, false, k);
    effort[k] = acting_efforts<double>(nullptr, model, {motion, control}, std::span(&term, 1), options)(0, 0);
  }
  return effort;
}

// Orientations from none to nearly half a turn, on either side of the sphere of quaternions. Differences err by h² of a
// third derivative, 5e3 on the ramp of the limit; the limit's damper acts on what 1e-12 s of 5e3 rad/s² amount to.
TEST_P(JointKinds, ABallsTorquesAreSlopesOfEnergies) {
  JointOptions joint;
  joint.spring.stiffness = 3;
  joint.limit.upper = 0.4, joint.limit.stiffness = 50;
  joint.driven = true;
  joint.drive.stiffness = 7;
  const Vec3<double> target{0.3, -0.5, 0.2};
  const Quaternion<double> none{{0, 0, 0}, 1}, goal = turned<TurnSide::right>(none, target);
  for (const double angle : {0.0, 1e-9, 1e-3, 0.0199, 0.0201, 0.405, 1.0, 2.5, 3.1}) {
    for (const double side : {1.0, -1.0}) {
      Quaternion<double> q = turned<TurnSide::right>(none, Vec3<double>{0.48, 0.6, -0.64} * angle);
      q = {q.v * side, q.w * side};
      const auto expect = [&](EffortPart part, const auto& energy) {
        const std::array<double, 3> want = torque_of(q, energy);
        const std::array<double, 3> got = effort_at(joint, q, target, part, GetParam());
        for (int k = 0; k < 3; ++k) EXPECT_NEAR(got[k], want[k], 1e-7) << angle << " part " << static_cast<int>(part);
      };
      expect(EffortPart::spring, [](const auto& at) { return 1.5 * std::pow(angle_of_turn(at), 2); });
      expect(EffortPart::drive, [&](const Quaternion<double>& at) {
        return 3.5 * std::pow(angle_of_turn(Quaternion<double>{-at.v, at.w} * goal), 2);
      });
      expect(EffortPart::limit, [](const auto& at) {  // ∫ r: x³/6w, then (x − w/2)²/2 + w²/24
        const double x = angle_of_turn(at) - 0.4, w = kLimitRamp;
        return x < 0 ? 0 : 50 * (x < w ? x * x * x / (6 * w) : 0.5 * std::pow(x - w / 2, 2) + w * w / 24);
      });
    }
  }
}

/// A pendulum on a ball, held by a drive whose target turns.
TEST_P(JointKinds, ABallGoesToItsTarget) {
  ModelBuilder builder;
  builder.set_integrator(GetParam());
  builder.add_body("arm", {1, {0.1, 0, -0.2}, {0.02, 0.02, 0.005, 0, 0, 0}});
  JointOptions joint;
  joint.driven = true;
  joint.drive.stiffness = 4e4, joint.drive.damping = 400;
  builder.add_joint("ball", JointType::ball, ModelBuilder::world, 0, joint);
  const Model model = builder.build();
  RolloutOptions options;
  options.steps = 480;
  State<double> state(model, 1);
  state.q.set(3, 0, 1);
  Control<double> control(model, options.steps, 1);
  const double goal[] = {0.7, -1.1, 1.9};
  for (int step = 0; step < options.steps; ++step) {
    for (int k = 0; k < 3; ++k) {
      control.u.set(step * model.topology.nu + control_row(model, 0, ControlChannel::target_position, k), 0, goal[k]);
    }
  }
  const State<double> placed = place_bodies<double>(nullptr, model, state, options);
  const Trajectory<double> motion = rollout(model, placed, control, options);
  const Quaternion<double> want =
      turned<TurnSide::right>(Quaternion<double>{{0, 0, 0}, 1}, Vec3<double>{goal[0], goal[1], goal[2]});
  const Quaternion<double> got{{motion.final.q(0, 0), motion.final.q(1, 0), motion.final.q(2, 0)},
                               motion.final.q(3, 0)};
  // The weight of 1 kg on 0.22 m turns a spring of 4e4 N·m/rad by less than 6e-5.
  EXPECT_LT(angle_of_turn(Quaternion<double>{-want.v, want.w} * got), 6e-5);
}

/// Rates of a hinge that a torque drives against its speed limit.
std::vector<double> driven_rates(double torque, double damping, Integrator integrator) {
  JointOptions joint;
  joint.limit.velocity = 2, joint.limit.velocity_damping = damping;
  const Model model = turning_body(JointType::revolute, joint, integrator);
  RolloutOptions options;
  options.steps = 240;
  State<double> state(model, 1);
  Control<double> control(model, options.steps, 1);
  for (int step = 0; step < options.steps; ++step) control.u.set(step * model.topology.nu, 0, torque);
  const State<double> placed = place_bodies<double>(nullptr, model, state, options);
  const Trajectory<double> motion = rollout(model, placed, control, options);
  std::vector<double> rates;
  for (int step = 0; step <= options.steps; ++step) rates.push_back(motion.qd(step * model.topology.nv, 0));
  return rates;
}

// At rest against the limit its damper carries the torque: c (|q̇| − v − w/2) = T, or on its ramp c (|q̇| − v)²/2w = T.
TEST_P(JointKinds, SpeedsAreLimited) {
  for (const double sign : {1.0, -1.0}) {
    for (const double damping : {10.0, 1e3, 1e7}) {
      const std::vector<double> rates = driven_rates(sign * 3, damping, GetParam());
      const double excess = 3 / damping, w = kLimitRamp;
      const double beyond = excess > w / 2 ? excess + w / 2 : std::sqrt(2 * w * excess);
      EXPECT_NEAR(rates.back(), sign * (2 + beyond), 1e-9) << damping;
      // What one step gains is all that it is ever beyond that: 3 N·m on 0.04 kg·m² for 1/240 s.
      for (const double rate : rates) EXPECT_LT(std::abs(rate), 2 + beyond + 3 / 0.04 / 240);
    }
    // Below the limit nothing acts.
    const std::vector<double> slow = driven_rates(sign * 0.04, 1e7, GetParam());
    EXPECT_NEAR(slow.back(), sign, 1e-12);
  }
}

// A drive without gains bounds what is commanded.
TEST_P(JointKinds, EffortsAreBoundedWithoutGains) {
  for (const JointType type : {JointType::revolute, JointType::ball}) {
    JointOptions joint;
    joint.driven = true;
    joint.drive.effort_limit = 0.5;
    const Model model = turning_body(type, joint, GetParam());
    RolloutOptions options;
    options.steps = 10, options.time_step = 0.01;
    State<double> state(model, 1);
    const std::vector<double> rest = neutral_positions(model.topology);
    for (int k = 0; k < model.topology.nq; ++k) state.q.set(k, 0, rest[k]);
    Control<double> control(model, options.steps, 1);
    const int turn = type == JointType::ball ? 2 : 0;
    for (int step = 0; step < options.steps; ++step) control.u.set(step * model.topology.nu + turn, 0, -80);
    const State<double> placed = place_bodies<double>(nullptr, model, state, options);
    // 0.5 N·m on 0.04 kg·m² for 0.1 s.
    EXPECT_NEAR(rollout(model, placed, control, options).final.qd(turn, 0), -1.25, 1e-12) << to_string(type);
  }
}

/// Bodies' gravity compensation, and gravity.
Model lifted_tree(double share, const Numbers3& gravity, Integrator integrator) {
  test::TreeOptions options;
  options.links = 9;
  options.forces = options.rotations = options.shapes = true;
  options.integrator = integrator;
  Model model = test::random_tree(4, options);
  for (int body = 0; body < static_cast<int>(model.body_names.size()); ++body) {
    model.bodies.gravity_compensation.set(body, 0, share);
  }
  for (int k = 0; k < 3; ++k) model.gravity.set(0, k, gravity[k]);
  validate(model);
  return model;
}

// A share of the weight taken off every body is that much less gravity.
TEST_P(JointKinds, GravityIsCompensated) {
  const Model lifted = lifted_tree(0.75, {1, 2, -8}, GetParam()), light = lifted_tree(0, {0.25, 0.5, -2}, GetParam());
  RolloutOptions options;
  options.steps = 50;
  const test::Batch<double> batch = test::random_batch<double>(lifted, options.steps, test::first_worlds(2), 3);
  const State<double> start = place_bodies<double>(nullptr, lifted, batch.state, options);
  const Trajectory<double> a = rollout(lifted, start, batch.control, options);
  const Trajectory<double> b = rollout(light, start, batch.control, options);
  double most = 0, moved = 0;
  for (int row = 0; row < lifted.topology.nv; ++row) {
    for (int w = 0; w < 2; ++w) {
      most = std::max(most, std::abs(a.final.qd(row, w) - b.final.qd(row, w)));
      moved = std::max(moved, std::abs(a.final.qd(row, w)));
    }
  }
  EXPECT_LT(most, 1e-9 * moved);  // rounding, which 50 steps of a driven tree amplify
  EXPECT_GT(moved, 0.1);
}

TEST(JointKinds, WhatTheyCannotHaveIsRefused) {
  const auto refused = [](JointType type, const std::function<void(JointOptions&)>& change, const char* words) {
    JointOptions joint;
    change(joint);
    try {
      turning_body(type, joint, Integrator::featherstone);
      ADD_FAILURE() << words;
    } catch (const ModelError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused(
      JointType::free, [](JointOptions& j) { j.driven = true; }, "joints/joint/drive: a drive on a free joint");
  refused(
      JointType::free, [](JointOptions& j) { j.spring.stiffness = 1; }, "joints/joint/spring: a spring");
  refused(
      JointType::free, [](JointOptions& j) { j.limit.velocity = 1; }, "joints/joint/limit: a limit");
  refused(
      JointType::ball, [](JointOptions& j) { j.limit.lower = 0; }, "joints/joint/limit/lower: a lowest angle");
  refused(
      JointType::ball, [](JointOptions& j) { j.limit.upper = 0; }, "joints/joint/limit/upper");
  refused(
      JointType::ball, [](JointOptions& j) { j.spring.rest = 0.1; }, "joints/joint/spring/rest: an angle");
}

}  // namespace
}  // namespace backdrive
