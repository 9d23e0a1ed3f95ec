// The second opinion on scenes: with either integrator they move alike, and their losses have gradients alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "autodiff/loss.h"
#include "autodiff/rollout.h"
#include "scenes/scene.h"

namespace backdrive {
namespace {

struct Answer {
  std::vector<double> positions;           ///< of all joints at the end
  std::map<std::string, double> gradient;  ///< of the loss, by effort: summed over the steps
};

struct Case {
  const char* name;
  std::vector<Override> overrides;
};

Answer answer(const Case& c, Integrator integrator, double time_step, double duration) {
  std::vector<Override> overrides = c.overrides;
  overrides.push_back({"simulation/integrator", to_string(integrator)});
  overrides.push_back({"simulation/time_step", std::to_string(time_step)});
  overrides.push_back({"simulation/duration", std::to_string(duration)});
  Scene scene = load_scene(std::string(BACKDRIVE_SOURCE_DIR) + "/scenes/" + c.name + ".yaml", overrides);
  Problem& problem = scene.problem;
  Parameter& stiffness = problem.model.joints.attachment.angular_stiffness;  // float64 bears more than the default
  for (int j = 0; j < stiffness.items(); ++j) stiffness.set(j, 0, 1e7);
  const Topology& t = problem.model.topology;
  EXPECT_EQ(t.integrator, integrator);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  const State<double> state = initial_state<double>(problem, 1, default_memory());
  const Control<double> control(problem.model, options.steps, 1);
  Tape<double> tape;
  const State<double> start = place_bodies(&tape, problem.model, state, options);
  const Trajectory<double> trajectory = rollout(tape, problem.model, start, control, options);
  const LossResult<double> loss = evaluate_loss(problem, trajectory, control, options, &tape);
  const Gradients<double> g = std::move(tape).backward(loss.seeds);
  Answer a;
  for (int r = 0; r < t.joint_nq; ++r) a.positions.push_back(trajectory.final.q(r, 0));
  for (const ControlRow& row : control_rows(problem.model)) {
    if (row.channel != ControlChannel::effort) continue;
    double& sum = a.gradient[row.name];
    for (int k = 0; k < options.steps; ++k) sum += g.of(control.u)(k * t.nu + row.row, 0);
  }
  return a;
}

/// Largest difference of positions, in rad and m, and of gradients, relative to the largest of them.
std::pair<double, double> distance(const Answer& a, const Answer& b) {
  double position = 0, gradient = 0, largest = 0;
  for (std::size_t i = 0; i < a.positions.size(); ++i) {
    position = std::max(position, std::abs(a.positions[i] - b.positions[i]));
  }
  for (const auto& [name, g] : a.gradient) {
    gradient = std::max(gradient, std::abs(g - b.gradient.at(name)));
    largest = std::max(largest, std::abs(g));
  }
  return {position, gradient / largest};
}

class SemiImplicitScenes : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Scenes, SemiImplicitScenes,
                         testing::Values(Case{"pendulum_swingup", {{"initial_state/hinge/position", "100 deg"}}},
                                         Case{"cartpole_swingup", {{"initial_state/hinge/position", "100 deg"}}},
                                         Case{"double_pendulum", {}}, Case{"arm_reach", {}}),
                         [](const auto& info) { return std::string(info.param.name); });

// Both integrators are of first order, so that what they differ by is too: a quarter of the step, about a quarter of
// it, down to what attachments of 1e7 N/m and N·m/rad give way by. What is left at 0.5 ms is less than 1 ms of
// motion at the scenes' speeds of some m/s and rad/s.
TEST_P(SemiImplicitScenes, AgreeWithFeatherstone) {
  std::pair<double, double> at[2];
  for (int k = 0; k < 2; ++k) {
    const double dt = k ? 0.0005 : 0.002;
    at[k] = distance(answer(GetParam(), Integrator::featherstone, dt, 0.5),
                     answer(GetParam(), Integrator::semi_implicit, dt, 0.5));
    std::printf("%s, %g s: positions differ by %.1e, gradients by %.1e of the largest\n", GetParam().name, dt,
                at[k].first, at[k].second);
  }
  EXPECT_LT(at[1].first, 5e-3);
  EXPECT_LT(at[1].second, 2e-2);
  constexpr double give = 5e-5;
  EXPECT_LT(at[1].first, std::max(at[0].first / 2, give));
  EXPECT_LT(at[1].second, std::max(at[0].second / 2, give));
  EXPECT_GT(at[1].first, 0);
}

}  // namespace
}  // namespace backdrive
