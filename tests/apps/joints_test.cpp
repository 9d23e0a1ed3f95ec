// Joints with quaternions and with several numbers, from the scene to the results.
#include "tests/apps/simctl_process.h"
#include "tests/support/places.h"

namespace backdrive::test {
namespace {

using Names = std::vector<std::string>;

/// Every type; joints are not listed in the order in which the tree is walked.
constexpr const char* kAllJoints = R"(
simulation: {time_step: 5 ms, steps: 40}
model:
  bodies:
    base: {mass: 3, inertia: [0.05, 0.06, 0.07]}
    arm: {mass: 1, com: [0, 0.02, -0.2], inertia: [0.01, 0.011, 0.003]}
    head: {mass: 0.5, com: [0.05, 0, 0.1], inertia: [0.004, 0.003, 0.002]}
    wheel: {mass: 0.3, com: [0, 0, 0.02], inertia: [0.001, 0.001, 0.002]}
    puck: {mass: 0.4, com: [0.01, 0.05, 0], inertia: [0.002, 0.002, 0.003]}
    slide: {mass: 0.4, com: [0.01, 0.05, 0], inertia: [0.002, 0.002, 0.003]}
  joints:
    flight: {type: free, child: base}
    wrist: {type: revolute, parent: arm, child: wheel, frame: {position: [0, 0, -0.4]}, axis: [0, 1, 0]}
    shoulder: {type: ball, parent: base, child: arm, frame: {position: [0.1, 0, 0]}, damping: 0.05}
    neck: {type: universal, parent: base, child: head, frame: {position: [0, 0, 0.2]}, armature: 0.001}
    table: {type: planar, child: puck, friction: 0.02}
    rail: {type: prismatic, parent: head, child: slide, axis: [1, 0, 1]}
initial_state:
  flight: {position: [1, 2, 3], orientation: {rpy: [0.3, 0.2, -1]}, velocity: [0.5, 0, 1], angular_velocity: [1, 90 deg/s, 0]}
  shoulder: {orientation: [0.5, 0.5, 0.5, 0.5], angular_velocity: [1, 0, 2]}
  neck: {position: [10 deg, 0.2], velocity: [0, 1]}
  table: {position: [1, 20 cm, 30 deg], velocity: [0, 0.4, 2]}
  wrist: {position: 0.7, velocity: -1}
optimize:
  variables: [{initial_state: table, quantity: velocity}]
  loss:
    terminal: [{body: wheel, position: [1, 1, 1], orientation: [0, 0, 0, 1]}, {body: puck, position: [0, 0, 0]},
               {body: slide, position: [0, 0, 0]}]
    running: [{joint: wrist, velocity: 0, weight: 0.1}]
)";

class SimctlJointsTest : public SimctlTest {
 protected:
  void SetUp() override {
    SimctlTest::SetUp();
    scene_ = write("all.yaml", kAllJoints);
  }
  std::string scene_;
};

// Columns follow the joints as they are listed, as states do: the tree is walked in another order.
TEST_F(SimctlJointsTest, ColumnsAreNamedAsTheyAre) {
  ASSERT_EQ(simctl({"run", scene_, "--output", "out", "--quiet"}).exit, 0);
  const Rows rows = parse_csv(read("out/trajectory.csv"));
  const auto column = [&](const std::string& name) {
    const auto at = std::find(rows[0].begin(), rows[0].end(), name);
    EXPECT_NE(at, rows[0].end()) << name;
    return static_cast<std::size_t>(at - rows[0].begin());
  };
  const std::pair<const char*, double> start[] = {{"flight/position/x", 1},
                                                  {"flight/position/z", 3},
                                                  {"wrist/position", 0.7},
                                                  {"shoulder/orientation/w", 0.5},
                                                  {"neck/position/x", M_PI / 18},
                                                  {"neck/position/y", 0.2},
                                                  {"table/position/y", 0.2},
                                                  {"table/position/angle", M_PI / 6},
                                                  {"rail/position", 0},
                                                  {"flight/angular_velocity/y", M_PI / 2},
                                                  {"flight/velocity/z", 1},
                                                  {"wrist/velocity", -1},
                                                  {"shoulder/angular_velocity/z", 2},
                                                  {"table/velocity/angle", 2}};
  for (const auto& [name, value] : start) EXPECT_NEAR(number(rows[1][column(name)]), value, 1e-15) << name;
  EXPECT_NE(column("table/effort/angle"), column("flight/torque/x"));
  EXPECT_NE(column("flight/force/z"), column("wrist/effort"));
}

TEST_F(SimctlJointsTest, StatesAreReportedByQuantity) {
  const Outcome o = simctl({"run", scene_, "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const auto state = o.json().at("final_state");
  EXPECT_EQ(state.at("flight").at("position").size(), 3u);
  EXPECT_EQ(state.at("flight").at("orientation").size(), 4u);
  EXPECT_EQ(state.at("shoulder").at("angular_velocity").size(), 3u);
  EXPECT_TRUE(state.at("wrist").at("position").is_number());
  EXPECT_TRUE(state.at("table").at("velocity").at(2).is_number());
  EXPECT_TRUE(state.at("flight").at("orientation").is_array());
}

TEST_F(SimctlJointsTest, GradientsAreChecked) {
  const Outcome o = simctl({"gradcheck", scene_, "--json"});
  EXPECT_EQ(o.exit, 0) << o.out << o.err;
  EXPECT_NE(o.out.find("initial_state/flight/orientation"), std::string::npos);
  EXPECT_NE(o.out.find("initial_state/table/position/angle"), std::string::npos);
}

TEST_F(SimctlJointsTest, ATossFindsItsThrowAndTheResultReadsBack) {
  const Outcome o = simctl({"optimize", test::kRepository + "/scenes/toss.yaml", "--output", "out", "--json"});
  ASSERT_EQ(o.exit, 0) << o.out << o.err;
  const double loss = o.json().at("loss");
  EXPECT_LT(loss, 1e-6);
  const Outcome again = simctl({"run", path("out/result.yaml"), "--json"});
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_NEAR(again.json().at("loss").get<double>(), loss, 1e-12);
}

TEST_F(SimctlJointsTest, MistakesAreRefused) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"initial_state/flight/position=[1, 2]", "3 numbers for joint 'flight', which is free"},
      {"initial_state/wrist/orientation=[0, 0, 0, 1]", "no such key for joint 'wrist', which is revolute"},
      {"initial_state/shoulder/velocity=[0, 0]", "no such key for joint 'shoulder', which is ball"},
      {"initial_state/table/position=[1 rad, 0, 0]", "a length"},
      {"joints/neck/limit={upper: 1}", "no such key for a universal joint"},
      {"joints/shoulder/drive={stiffness: 1}", "no such key for a ball joint"},
      {"joints/shoulder/axis=[0, 1, 0]", "no such key for a ball joint: its `frame`"},
      {"optimize={variables: [{initial_state: flight, quantity: position}], loss: {terminal: [{joint: wrist, velocity: "
       "0}]}}",
       "no motion depends on where a free joint's child is"},
      {"joints/flight/parent=arm", "expected the world"},
      {"controls={flight: [1, 2]}", "revolute or prismatic joint (this one is free)"},
      {"optimize/variables=[{initial_state: flight, quantity: orientation}]", "position"},
      {"optimize/variables=[{control: shoulder}]", "revolute or prismatic joint (this one is ball)"},
      {"loss/terminal=[{joint: flight, position: 0}]", "revolute or prismatic joint (this one is free)"},
  };
  for (const auto& [set, message] : mistakes) {
    const Outcome o = simctl({"run", scene_, "--set", set});
    EXPECT_EQ(o.exit, 3) << set;
    EXPECT_NE(o.err.find(message), std::string::npos) << set << ": " << o.err;
  }
}

TEST_F(SimctlJointsTest, LimitsOfABallAreNoVariables) {
  const Outcome o = simctl(
      {"optimize", scene_, "--set", "optimize/variables=[{parameter: joints/shoulder/limit/lower, initial: -0.5}]"});
  EXPECT_EQ(o.exit, 3);
  EXPECT_NE(o.err.find("only revolute and prismatic joints have limits"), std::string::npos) << o.err;
}

}  // namespace
}  // namespace backdrive::test
