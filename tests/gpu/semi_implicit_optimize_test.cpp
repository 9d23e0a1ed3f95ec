// Optimisation with the semi-implicit integrator on a device: controls and parameters, and what an iteration asks of
// the host.
#include "tests/autodiff/optimize_cases.h"
#include "tests/gpu/devices.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

BACKDRIVE_ON_DEVICES(GpuSemiImplicitOptimize);

/// A pendulum and a four-bar linkage, whose motor is given controls and whose parameters are varied too.
Problem pendulum_problem() {
  Problem p = cases::pendulum();
  JointOptions hinge;
  hinge.damping = 0.05;
  ModelBuilder builder = cases::pendulum_builder(hinge);
  builder.set_integrator(Integrator::semi_implicit);
  p.model = builder.build();
  p.simulation.steps = 40;
  p.initial_position = neutral_positions(p.model.topology);
  p.initial_velocity.assign(p.model.topology.nv, 0);
  return p;
}

Model four_bar() {
  ModelBuilder builder;
  builder.set_integrator(Integrator::semi_implicit);
  const auto rod = [&](const char* name, const Numbers3& middle, double mass) {
    return builder.add_body(name, {mass, middle, {0.01 * mass, 0.012 * mass, 0.004 * mass, 0, 0, 0}});
  };
  const int crank = rod("crank", {0, 0, 0.05}, 0.4), coupler = rod("coupler", {0.2, 0, 0.15}, 1.8);
  const int rocker = rod("rocker", {0, 0, 0.2}, 1.4);
  const auto pin = [&](const char* name, int parent, int child, const Numbers3& at, bool loop = false) {
    JointOptions joint;
    joint.axis = {0, 1, 0};
    joint.damping = 0.05;
    joint.frame.position = at;
    joint.loop = loop;
    if (loop) {
      joint.child_frame.position = {0, 0, 0.4};
      joint.attachment.stiffness = 2e3, joint.attachment.damping = 20;  // soft enough for the loss to feel it
    }
    builder.add_joint(name, JointType::revolute, parent, child, joint);
  };
  pin("motor", ModelBuilder::world, crank, {0, 0, 0});
  pin("crank_pin", crank, coupler, {0, 0, 0.1});
  pin("pivot", ModelBuilder::world, rocker, {0.4, 0, 0});
  pin("rocker_pin", coupler, rocker, {0.4, 0, 0.3}, true);
  return builder.build();
}

Problem linkage_problem() {
  Problem p = pendulum_problem();
  p.model = four_bar();
  p.simulation = {0.004, 50};
  p.initial_position = neutral_positions(p.model.topology);
  p.initial_velocity.assign(p.model.topology.nv, 0);
  for (LossTerm& term : p.loss) {
    if (!term.is_control()) term.index = p.model.find_joint("pivot");
  }
  p.loss.push_back({.name = "terminal/coupler/position",
                    .quantity = LossQuantity::body_position,
                    .index = p.model.find_body("coupler"),
                    .target = {0.1, 0, 0.1, 0},
                    .point = {0.4, 0, 0.3}});
  p.variables[0].scale = 5;
  cases::add_parameters(p,
                        {"bodies/coupler/mass", "bodies/rocker/inertia/yy", "joints/pivot/damping",
                         "joints/crank_pin/frame/position/x", "joints/rocker_pin/child_frame/position/z", "gravity/z"},
                        1e-4);
  cases::add_parameters(p, {"joints/rocker_pin/attachment/stiffness"}, 1);
  p.variables.back().scale = 100;
  return p;
}

// Up to rounding, which searches carry on.
TEST_P(GpuSemiImplicitOptimize, OptimisesAsTheProcessorDoes) {
  for (const Problem& problem : {pendulum_problem(), linkage_problem()}) {
    for (const OptimizeMethod method : {OptimizeMethod::adam, OptimizeMethod::lbfgs}) {
      Problem p = problem;
      p.optimize.method = method;
      p.optimize.learning_rate = 1e-3;
      p.optimize.iterations = 5;
      const ExecutionOptions here{.seed = 3, .worlds = 3};
      ExecutionOptions there = here, several = here;
      there.devices = {device()};
      const OptimizeResult a = optimize(p, here), b = optimize(p, there);
      const std::vector<std::vector<double>> begin = initial_points(p, 3, 3);
      for (int k = 0; k < 3; ++k) {
        EXPECT_NEAR(b.starts[k].loss, a.starts[k].loss, 1e-7 * (1 + a.starts[k].loss)) << to_string(method) << " " << k;
        for (std::size_t i = 0; i < a.starts[k].x.size(); ++i) {
          EXPECT_NEAR(b.starts[k].x[i], a.starts[k].x[i], 1e-6 * (1 + std::abs(a.starts[k].x[i])))
              << to_string(method) << " " << i;
          EXPECT_NE(b.starts[k].x[i], begin[k][i]) << to_string(method) << " " << k << " " << i << ": was not moved";
        }
      }
      if (device_count(GetParam()) < 2) continue;
      several.devices = {device(0), device(1)};
      const OptimizeResult c = optimize(p, several);
      for (int k = 0; k < 3; ++k) EXPECT_EQ(c.starts[k].x, b.starts[k].x) << to_string(method) << " " << k;
    }
  }
}

using Points = std::vector<std::vector<double>>;

// Computed on the device from the first number to the last: not zero, not what differences are, but equal to them.
TEST_P(GpuSemiImplicitOptimize, GradientsOfParametersEqualDifferences) {
  const Problem p = linkage_problem();
  const std::vector<double> x = initial_points(p, 2, 5)[1];
  Points points{x};
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const double h : {1e-5, -1e-5}) {
      points.push_back(x);
      points.back()[i] += h;
    }
  }
  std::vector<double> loss;
  Points gradient;
  make_objective(p, {}, device())->evaluate(points, loss, gradient);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = (loss[1 + 2 * i] - loss[2 + 2 * i]) / 2e-5, g = gradient[0][i];
    EXPECT_NE(g, 0) << i;
    EXPECT_NE(g, difference) << i;
    EXPECT_NEAR(g, difference, 1e-5 * (1 + std::abs(difference))) << i;
  }
}

// An iteration of Adam waits once and asks for no memory, whatever is varied.
TEST_P(GpuSemiImplicitOptimize, AnIterationWaitsOnce) {
  DeviceBackend& backend = *backend_of(device());
  for (Problem p : {pendulum_problem(), linkage_problem()}) {
    p.optimize.method = OptimizeMethod::adam;
    p.optimize.iterations = kSanitized ? 8 : 20;
    p.optimize.learning_rate = 1e-3;
    struct Told {
      std::uint64_t waits, allocations, host_allocations, up, down;
    };
    std::vector<Told> told;
    optimize(p, {.worlds = 50, .devices = {device()}}, [&](const OptimizeProgress&) {
      const DeviceCounters& c = backend.counters();
      told.push_back({c.synchronizations, default_memory(device()).counters().allocations,
                      default_memory().counters().allocations, c.bytes_up, c.bytes_down});
      return true;
    });
    ASSERT_GT(told.size(), kSanitized ? 6u : 15u);
    for (std::size_t k = 3; k < told.size(); ++k) {
      EXPECT_EQ(told[k].waits - told[k - 1].waits, 1u) << k;
      EXPECT_EQ(told[k].allocations, told[2].allocations) << k;
      EXPECT_EQ(told[k].host_allocations, told[2].host_allocations) << k;
      EXPECT_LT(told[k].up - told[k - 1].up, 8192u) << "tables of terms, links and joints";
      EXPECT_LT(told[k].down - told[k - 1].down, 64u) << "the summary";
    }
  }
}

}  // namespace
}  // namespace backdrive::test
