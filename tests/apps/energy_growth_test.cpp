// Energy that grows though nothing drives a motion is told, with what would do.
#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlEnergyTest : public SimctlTest {
 protected:
  /// A chain of 20 links of 14 cm times `size`, hinged crosswise, that falls onto the floor with one end first. Those
  /// of 1.4 mm turn by eleven radians in a step.
  std::string chain(double size) const {
    const auto length = [&](double meters) { return std::to_string(meters * size); };
    return write("chain.yaml", R"(
simulation: {time_step: 8.333 ms, duration: 0.7 s}
model:
  bodies:
    link$(i):
      repeat: {i: 0..19}
      shapes: [{density: 1000, geometry: {type: capsule, scale: [)" +
                                   length(0.02) + ", " + length(0.05) + R"(]}, frame: {position: [0, 0, )" +
                                   length(-0.07) + R"(]}}]
  joints:
    joint0: {type: free, child: link0}
    joint$(i):
      repeat: {i: 1..19}
      type: revolute
      parent: link$(i - 1)
      child: link$(i)
      frame: {position: [0, 0, )" + length(-0.14) +
                                   R"(]}
      axis: [$(i % 2), $(1 - i % 2), 0]
  shapes: {floor: {body: world, geometry: {type: plane}}}
initial_state:
  joint0:
    position: [0, 0, )" + length(1.5) +
                                   R"(]
    orientation: {rpy: [1.5, 0.3, 0]}
    velocity: [1, 0.5, 0]
    angular_velocity: [1, 2, 3]
)");
  }
  bool told(const std::vector<std::string>& words) const {
    const Outcome o = simctl(words);
    EXPECT_EQ(o.exit, 0) << o.err;
    return o.err.find("energy grows") != std::string::npos;
  }
};

TEST_F(SimctlEnergyTest, WhatStepsFeedIsTold) {
  const Outcome o = simctl({"run", chain(0.01)});
  EXPECT_NE(o.err.find("though nothing drives it"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("or `simulation/integrator: semi_implicit`"), std::string::npos) << o.err;
  EXPECT_FALSE(told({"run", chain(0.01), "--set", "simulation/time_step=0.002"}));
  EXPECT_FALSE(told(
      {"run", chain(1), "--set", "simulation/integrator=semi_implicit", "--set", "simulation/time_step=0.0041666667"}));
}

// What keeps its energy, and what is given some: a pendulum in coarse steps, a spring, a body that starts in the floor,
// beyond a limit, or under a push.
TEST_F(SimctlEnergyTest, OtherMotionsAreNotTold) {
  const std::string top =
      "simulation: {time_step: 10 ms, duration: 2 s}\nmodel:\n  bodies: {bob: {mass: 1, com: [0, 0, -0.5], "
      "inertia: [0.01, 0.01, 0.01]}}\n";
  const std::string hinge = top + "  joints: {hinge: {type: revolute, child: bob, axis: [0, 1, 0]";
  EXPECT_FALSE(told({"run", write("a.yaml", hinge + "}}\ninitial_state: {hinge: {position: 2.5}}\n")}));
  EXPECT_FALSE(told({"run", write("b.yaml", hinge + "}}\ninitial_state: {hinge: {position: 0}}\n")}));
  EXPECT_FALSE(told({"run", write("c.yaml", hinge + ", spring: {stiffness: 50, rest: 1}}}\n")}));
  EXPECT_FALSE(told({"run", write("d.yaml", hinge + ", limit: {lower: -0.1, upper: 0.1, stiffness: 500}}}\n"
                                                    "initial_state: {hinge: {position: 0.5}}\n")}));
  EXPECT_FALSE(told({"run", write("e.yaml", hinge + "}}\ncontrols: {hinge: {effort: 20}}\n")}));
  EXPECT_FALSE(told({"run", write("f.yaml", R"(
simulation: {duration: 2 s}
model:
  bodies: {box: {shapes: [{density: 500, geometry: {type: box, scale: [10 cm, 10 cm, 10 cm]}}]}}
  joints: {flight: {type: free, child: box}}
  shapes: {floor: {body: world, geometry: {type: plane}}}
initial_state: {flight: {position: [0, 0, 0.07]}}
)")}));
}

}  // namespace
}  // namespace backdrive::test
