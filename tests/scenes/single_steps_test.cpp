// What float32 makes of single steps of the robots in scenes/, beside float64.
#include "tests/support/single_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "autodiff/problem/loss.h"
#include "scenes/scene.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

/// The largest difference in a second in which its drives do nothing.
double worst_step(const std::string& name) {
  const Problem problem = load_scene(test::kRepository + "/scenes/" + name).problem;
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = static_cast<int>(1 / options.time_step);
  const State<double> start = initial_state<double>(problem, 1, default_memory());
  const std::vector<double> off = test::differences_of_steps(problem.model, start, options, [](int) { return 1.; });
  const double worst = *std::max_element(off.begin(), off.end());
  std::printf("%s: %.1e\n", name.c_str(), worst);
  return worst;
}

// With K_t of what sticks as it is (docs/contact.md, section 2), the walker's are off by up to 0.14 and the standing
// robot's by 1.8e-3.
TEST(SingleSteps, OfRobotsAreThoseOfRounding) {
  EXPECT_LT(worst_step("walker_rise.yaml"), 5e-3);
  EXPECT_LT(worst_step("robot_stand.yaml"), 2e-4);
  EXPECT_LT(worst_step("gripper_lift.yaml"), 1e-4);
  EXPECT_LT(worst_step("quadruped_hop.yaml"), 6e-3);
}

}  // namespace
}  // namespace backdrive
