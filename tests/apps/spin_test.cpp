// Bodies that turn too fast for their step are told, with what would do.
#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlSpinTest : public SimctlTest {
 protected:
  /// A top on a ball joint, whose speed is in rad/s.
  std::string top(int speed) const {
    return write("top.yaml", R"(
simulation: {duration: 0.1 s}
model:
  bodies: {top: {mass: 1, com: [0, 0, 0.1], inertia: [0.01, 0.012, 0.02]}}
  joints: {pivot: {type: ball, child: top}}
initial_state: {pivot: {angular_velocity: [1, 0, )" +
                                 std::to_string(speed) + "]}}\n");
  }
};

TEST_F(SimctlSpinTest, ATurnOfMoreThanARadianInAStepIsTold) {
  const Outcome fast = simctl({"run", top(300)});
  EXPECT_NE(fast.err.find("body 'top' turns by 1.25 rad in a step (at 0 s)"), std::string::npos) << fast.err;
  EXPECT_NE(fast.err.find("steps of 0.001667 s would do"), std::string::npos) << fast.err;
  EXPECT_EQ(simctl({"run", "top.yaml", "--set", "simulation/substeps=3"}).err.find("turns by"), std::string::npos);
  const Outcome slow = simctl({"run", top(200)});
  EXPECT_EQ(slow.exit, 0);
  EXPECT_EQ(slow.err.find("turns by"), std::string::npos) << slow.err;
}

TEST_F(SimctlSpinTest, WhatStepsDampIsTold) {
  write("whip.yaml", R"(
simulation: {duration: 1 s}
model:
  bodies:
    arm: {mass: 1, com: [0, 0, -0.1], inertia: [0.01, 0.01, 0.01]}
    hand: {mass: 1, com: [0, 0, -0.1], inertia: [0.01, 0.01, 0.01]}
  joints:
    elbow: {type: revolute, axis: [0, 1, 0], child: arm}
    wrist: {type: revolute, axis: [0, 1, 0], parent: arm, child: hand, frame: {position: [0, 0, -0.2]}}
initial_state: {elbow: {velocity: 30}, wrist: {velocity: -40}}
)");
  const Outcome fast = simctl({"run", "whip.yaml"});
  EXPECT_EQ(fast.exit, 0);
  EXPECT_NE(fast.err.find("joints 'elbow' and 'wrist' turn by 30 and 40 rad/s (at 0 s)"), std::string::npos)
      << fast.err;
  EXPECT_NE(fast.err.find("steps of 0.003254 s"), std::string::npos) << fast.err;
  for (const char* const other : {"initial_state/wrist/velocity=3", "simulation/time_step=0.002",
                                  "simulation/integrator=semi_implicit", "model/joints/wrist/spins=true"}) {
    const Outcome o = simctl({"run", "whip.yaml", "--set", other, "--force"});
    EXPECT_EQ(o.exit, 0) << o.err;
    EXPECT_EQ(o.err.find("damp what"), std::string::npos) << other << o.err;
  }
}

TEST_F(SimctlSpinTest, OptimisationsTellItToo) {
  const Outcome o =
      simctl({"optimize", top(300), "--set",
              "optimize={variables: [{initial_state: pivot, quantity: angular_velocity, bounds: [-400, 400]}], "
              "loss: {terminal: [{body: top, position: [0, 0, 0]}]}, iterations: 0}"});
  EXPECT_NE(o.err.find("turns by 1.25 rad in a step"), std::string::npos) << o.err << o.out;
}

}  // namespace
}  // namespace backdrive::test
