// The step that begins a motion, (C12) of docs/contact.md: what is given where it rests, rests.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "models/builder.h"
#include "tests/integrators/contact_bodies.h"

namespace backdrive {
namespace {

using test::contact_bodies::box_of;
using test::contact_bodies::simulate;

constexpr double kGravity = 9.81;
constexpr Integrator kIntegrators[] = {Integrator::featherstone, Integrator::semi_implicit};

/// Half extents of a box over its half height, which is its `size`.
constexpr double kLength = 3, kWidth = 2;

/// Boxes on one another, the lowest on the floor, of stiffness auto.
Model boxes(Integrator integrator, double mass, double size, int count = 1) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.set_gravity({0, 0, -kGravity});
  const Numbers3 scale{kLength * size, kWidth * size, size};
  for (int k = 0; k < count; ++k) {
    const std::string name = "box" + std::to_string(k);
    const BodyIndex body = builder.add_body(name, box_of(mass, scale));
    builder.add_joint(name, JointType::free, ModelBuilder::world, body);
    builder.add_shape(name, body, {.type = GeometryType::box, .scale = scale});
  }
  builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
  return builder.build();
}

/// Depth at which a box of stiffness auto rests on its four corners: beyond a ramp of 1 mm, or on it.
double rest_depth(double rate) {
  const double omega2 = std::min(5000., std::pow(std::numbers::pi / 8 * rate, 2)), width = 1e-3;
  const double linear = kGravity / 4 / omega2;  // N/k
  return linear > width / 2 ? linear + width / 2 : std::sqrt(2 * width * linear);
}

/// `known`: as if q̇ had moved q here, so that no motion begins.
template <class T>
Trajectory<T> run(const Model& model, const State<T>& state, double rate, int steps, bool known = false) {
  State<T> start = place_bodies<T>(nullptr, model, state, RolloutOptions());
  if (known) start.set_reported(start.qd);
  return simulate(model, start, steps / rate, true, rate);
}

/// A state with the lowest box `depth` deep in the floor.
template <class T>
State<T> resting(const Model& model, double size, double depth) {
  State<T> state(model, 1);
  state.q.set(3, 0, T(1));
  state.q.set(6, 0, T(size - depth));
  return state;
}

/// Largest of the reported velocities of the joints of `count` boxes in the states from the second on.
template <class T>
double fastest(const Trajectory<T>& t, int nv, int count = 1) {
  double most = 0;
  for (int step = 1; step <= t.steps; ++step) {
    for (int k = 0; k < 6 * count; ++k) most = std::max(most, std::abs(double(t.reported(step * nv + k, 0))));
  }
  return most;
}

// From a gram to a ton, a centimetre to 10 m. Before, it began ½ g Δt short: 0.04 m/s at 120/s, 0.0026 at 1,920/s. What
// is left is 1e-13 of the impulses in float64; in float32 1e-5 of them, and the depths' rounding times ½ Δt ω² of each
// of four corners.
TEST(ContactSupport, WhatRestsAtItsDepthStays) {
  for (const Integrator integrator : kIntegrators) {
    for (const double rate : {120., 240., 480., 1920.}) {
      for (const auto& body : {std::pair{1e-3, 0.005}, {1., 0.05}, {1e3, 5.}}) {
        const double mass = body.first, size = body.second;  // clang captures no structured bindings
        const Model model = boxes(integrator, mass, size);
        const double depth = rest_depth(rate);
        const auto speed = [&](auto number) {
          using T = decltype(number);
          return fastest(run<T>(model, resting<T>(model, size, depth), rate, 20), model.topology.nv);
        };
        EXPECT_LT(speed(0.), 1e-9) << rate << "/s, " << mass << " kg";
        const double rounding = std::numeric_limits<float>::epsilon() * size;  // of a corner's depth, each way
        EXPECT_LT(speed(0.f), 2e-5 + rounding * 0.5 / rate * 5000 * 4) << rate << "/s, " << mass << " kg, float32";
        // That it would not be there by itself.
        const State<double> state = resting<double>(model, size, depth);
        EXPECT_GT(fastest(run(model, state, rate, 20, true), model.topology.nv), 0.2 * kGravity / rate);
      }
    }
  }
}

// ½ v²/μg, to second order of the step: before, 1.1 % short at 240/s and 0.56 % at 480/s.
TEST(ContactSupport, WhatSlidesStopsWhereCoulombSays) {
  const double speed = 2, friction = 0.8;
  for (const Integrator integrator : kIntegrators) {
    for (const double rate : {240., 480.}) {
      const Model model = boxes(integrator, 1, 0.05);
      State<double> state = resting<double>(model, 0.05, rest_depth(rate));
      state.qd.set(3, 0, speed);
      const Trajectory<double> t = run(model, state, rate, int(rate));
      const double truth = speed * speed / (2 * friction * kGravity);
      EXPECT_NEAR(t.final.q(4, 0) / truth, 1, 1e-3) << rate << "/s";
    }
  }
}

// A row of a recorded motion, given as a state of its own, goes on as that motion: stacks bear each other's weight.
TEST(ContactSupport, AStackGoesOnFromARowOfItsMotion) {
  const double rate = 240, size = 0.05;
  const int count = 3;
  for (const Integrator integrator : kIntegrators) {
    const Model model = boxes(integrator, 1, size, count);
    State<double> state(model, 1);
    for (int k = 0; k < count; ++k) {
      state.q.set(7 * k + 3, 0, 1);
      state.q.set(7 * k + 6, 0, (2 * k + 1) * size);
    }
    const Trajectory<double> settled = run(model, state, rate, 10 * int(rate));
    EXPECT_LT(settled.final.q(6, 0), size);  // it sinks in, as it is put where it just touches
    State<double> row(model, 1);
    for (int r = 0; r < model.topology.nq; ++r) row.q.set(r, 0, settled.final.q(r, 0));
    for (int r = 0; r < model.topology.nv; ++r) row.qd.set(r, 0, settled.final_velocity()(r, 0));
    EXPECT_LT(fastest(run(model, row, rate, 20), model.topology.nv, count), 1e-5);
  }
}

// What flies begins with the velocity that it is given, what just touches, too; what begins deeper is lifted by no more
// than what rests.
TEST(ContactSupport, NothingIsLiftedByMoreThanItsWeight) {
  const double rate = 240, size = 0.05, half_step = 0.5 * kGravity / rate;
  for (const Integrator integrator : kIntegrators) {
    const Model model = boxes(integrator, 1, size);
    const auto height = [&](double depth, double speed, bool known) {
      State<double> state = resting<double>(model, size, depth);
      state.qd.set(5, 0, speed);
      return run(model, state, rate, 24, known).final.q(6, 0);
    };
    for (const double depth : {-0.3, 0.}) EXPECT_EQ(height(depth, 0.1, false), height(depth, 0.1, true)) << depth;
    for (const double depth : {2e-3, 5e-3}) {
      EXPECT_NEAR(height(depth, 0, false), height(depth, half_step, true), 1e-12) << depth;
      EXPECT_GT(std::abs(height(depth, 0, false) - height(depth, 0, true)), 1e-5) << depth;
    }
  }
}

// A rollout that goes on from another's end begins no motion, pushed or not.
TEST(ContactSupport, OnlyTheFirstStepOfAMotionIsOne) {
  const double rate = 240, size = 0.05;
  for (const Integrator integrator : kIntegrators) {
    const Model model = boxes(integrator, 1, size);
    const State<double> state = resting<double>(model, size, 0.5e-3);
    const Trajectory<double> whole = run(model, state, rate, 20), first = run(model, state, rate, 10);
    RolloutOptions options;
    options.time_step = 1 / rate;
    options.steps = 10;
    const Trajectory<double> second = rollout<double>(model, first.final, Control<double>(), options);
    for (int r = 0; r < model.topology.nq; ++r) EXPECT_EQ(second.final.q(r, 0), whole.final.q(r, 0)) << r;
    for (int r = 0; r < model.topology.nv; ++r) EXPECT_EQ(second.final.qd(r, 0), whole.final.qd(r, 0)) << r;
    const Trajectory<double> settled = run(model, resting<double>(model, size, rest_depth(rate)), rate, 5);
    State<double> pushed = detach(settled.final);
    pushed.qd.set(3, 0, 1);
    EXPECT_TRUE(pushed.reported().empty());
    EXPECT_FALSE(pushed.begins());
    options.steps = 1;
    const Trajectory<double> after = rollout<double>(model, pushed, Control<double>(), options);
    // Friction that meets the push tilts it a little; a motion that begins would lift it by half a step of gravity.
    EXPECT_NEAR(after.final_velocity()(5, 0), 0, 0.01 * kGravity / rate);
  }
}

}  // namespace
}  // namespace backdrive
