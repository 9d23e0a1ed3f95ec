// The second opinion on scenes: with either integrator they move alike, and their losses have gradients alike, with
// contact too. Prints the table of docs/semi_implicit.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "autodiff/problem/loss.h"
#include "autodiff/tape/rollout.h"
#include "scenes/scene.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

struct Answer {
  std::vector<double> positions;           ///< of all joints at the end
  std::map<std::string, double> gradient;  ///< of the loss, by effort: summed over the steps
};

struct Case {
  const char* name;
  std::vector<Override> overrides;
  double duration = 0.5;   ///< s
  bool driven = false;     ///< by the scene's controls; else by none
  double stiffness = 1e7;  ///< of attachments, N/m and N·m/rad
};

Answer answer(const Case& c, Integrator integrator, double time_step, double stiffness) {
  std::vector<Override> overrides = c.overrides;
  overrides.push_back({"simulation/integrator", to_string(integrator)});
  overrides.push_back({"simulation/time_step", std::to_string(time_step)});
  overrides.push_back({"simulation/duration", std::to_string(c.duration)});
  Scene scene = load_scene(test::kRepository + "/scenes/" + c.name + ".yaml", overrides);
  Problem& problem = scene.problem;
  auto& attachment = problem.model.joints.attachment;  // float64 bears stiffer ones than the default
  for (Parameter* const p : {&attachment.stiffness, &attachment.angular_stiffness}) {
    for (int j = 0; j < p->items(); ++j) p->set(j, 0, stiffness);
  }
  const Topology& t = problem.model.topology;
  EXPECT_EQ(t.integrator, integrator);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  const State<double> state = initial_state<double>(problem, 1, default_memory());
  const Control<double> control = c.driven ? initial_control<double>(problem, 1, default_memory())
                                           : Control<double>(problem.model, options.steps, 1);
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

const Case kPendulum{"pendulum_swingup", {{"initial_state/hinge/position", "100 deg"}}};
const Case kCartPole{"cartpole_swingup", {{"initial_state/hinge/position", "100 deg"}}};
const Case kDoublePendulum{"double_pendulum", {}};
const Case kArm{"arm_reach", {}};
// From 15 cm above the floor it lands on its feet and stands, held by its drives.
const Case kQuadruped{"quadruped_hop", {{"initial_state/flight/position", "[0, 0, 0.48]"}}, 0.7, true, 1e10};

class SemiImplicitScenes : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Scenes, SemiImplicitScenes,
                         testing::Values(kPendulum, kCartPole, kDoublePendulum, kArm, kQuadruped),
                         [](const auto& info) { return std::string(info.param.name); });

// What both integrators differ by is of first order at most: a quarter of the step, about a quarter of
// it, down to what attachments of 1e7 N/m and N·m/rad give way by (of 1e10 under feet that land). What is left at 0.5
// ms is less than 1 ms of motion at the scenes' speeds of some m/s and rad/s.
TEST_P(SemiImplicitScenes, AgreeWithFeatherstone) {
  const Case& c = GetParam();
  std::pair<double, double> at[2];
  for (int k = 0; k < 2; ++k) {
    const double dt = k ? 0.0005 : 0.002;
    at[k] = distance(answer(c, Integrator::featherstone, dt, c.stiffness),
                     answer(c, Integrator::semi_implicit, dt, c.stiffness));
    std::printf("%s, %g s: positions differ by %.1e, gradients by %.1e of the largest\n", c.name, dt, at[k].first,
                at[k].second);
  }
  EXPECT_LT(at[1].first, 5e-3);
  EXPECT_LT(at[1].second, 2e-2);
  constexpr double give = 5e-5;
  EXPECT_LT(at[1].first, std::max(at[0].first / 2, give));
  EXPECT_LT(at[1].second, std::max(at[0].second / 2, give));
  EXPECT_GT(at[1].first, 0);
}

// As attachments stiffen and the step shrinks, both at once, they approach each other.
TEST(SemiImplicitSceneTable, ApproachesFeatherstone) {
  std::printf("| scene | step | K | positions | gradients |\n");
  for (const Case* c : {&kPendulum, &kCartPole, &kArm, &kQuadruped}) {
    std::pair<double, double> first, last;
    for (const double dt : {0.004, 0.001, 0.00025}) {
      const Answer tree = answer(*c, Integrator::featherstone, dt, 0);
      for (const double stiffness : {1e4, 1e6, 1e8, 1e10}) {
        last = distance(tree, answer(*c, Integrator::semi_implicit, dt, stiffness));
        std::printf("| %s | %g ms | %.0e | %.1e | %.1e |\n", c->name, 1e3 * dt, stiffness, last.first, last.second);
        if (first.first == 0) first = last;
      }
    }
    EXPECT_LT(last.first, 0.1 * first.first) << c->name;
    EXPECT_LT(last.second, 0.1 * first.second) << c->name;
    // Contact is evaluated half a turn about a link's origin on in the one, and about its com in the other: O(Δt)
    // apart.
    EXPECT_LT(last.second, c == &kQuadruped ? 2e-3 : 1e-3) << c->name;
  }
}

}  // namespace
}  // namespace backdrive
