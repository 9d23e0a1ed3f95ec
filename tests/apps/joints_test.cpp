// Joints with quaternions and with several numbers, from the scene to the results.
#include "tests/apps/simctl_process.h"
#include "tests/support/places.h"
#include "tests/support/sanitized.h"

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

/// All that joints of several degrees of freedom are told, scored and varied by.
const Names kEveryComponent = {
    "--set",
    "controls={flight: {torque: {y: 0.1}, force: {z: [40, 50], x: {values: [1, 2], hold: true}}}, shoulder: {torque: "
    "{x: 0.2, z: [0, 1]}}, neck: {effort: {y: 0.05}}, table: {effort: {x: 1 N, angle: 2 N*cm}}}",
    "--set",
    "optimize/variables=[{control: flight, channel: force, component: z, knots: 2, bounds: [0, 60]}, {control: flight, "
    "channel: torque, knots: 1}, {control: shoulder, channel: torque, knots: 3}, {control: neck, knots: 1}, {control: "
    "table, component: angle, knots: 2}, {initial_state: flight, quantity: velocity, component: x, bounds: [0, 1]}, "
    "{initial_state: neck, quantity: velocity}]",
    "--set",
    "loss/terminal=[{joint: flight, position: [1, none, 3], orientation: {rpy: [0.1, 0, 1]}, velocity: [0.3, "
    "0, "
    "0], angular_velocity: [none, 0.5, 0], weight: {position: 2}}, {joint: shoulder, orientation: [0, 0, 0, 1], "
    "angular_velocity: {at_most: [0.1, 0.2, none]}}, {joint: neck, position: [0.1, 10 deg]}, {joint: table, position: "
    "[1 m, none, 30 deg], velocity: [0, 0, 1 rad/s], measure: absolute}]",
    "--set",
    "loss/running=[{joint: shoulder, torque: [0, 0.1, 0], part: total}, {joint: flight, force: {at_most: [1, 1, 30]}}, "
    "{joint: neck, effort: [0, none], part: damping}, {control: flight, channel: force, weight: 0.01}, {control: "
    "table, "
    "component: x}, {joint: table, velocity: {times: [0, 0.2], values: [[0, 0, 0], [1, 1, 1]]}}, {joint: shoulder, "
    "orientation: {times: [0, 0.2], values: [[0, 0, 0, 1], [1, 0, 0, 0]]}, over: greatest}]"};

TEST_F(SimctlJointsTest, EveryComponentIsToldScoredAndVaried) {
  const Names& options = kEveryComponent;
  Names run{"run", scene_, "--json", "--output", "out"};
  run.insert(run.end(), options.begin(), options.end());
  const Outcome o = simctl(run);
  ASSERT_EQ(o.exit, 0) << o.err;
  const auto terms = o.json().at("loss_terms");
  for (const char* const term :
       {"terminal/flight/position/x", "terminal/flight/position/z", "terminal/flight/orientation",
        "terminal/flight/angular_velocity/y", "terminal/shoulder/angular_velocity/x", "terminal/neck/position/y",
        "terminal/table/position/angle", "running/shoulder/torque/z", "running/flight/force/z", "running/neck/effort/x",
        "running/flight/force/x/2", "running/table/effort/x", "running/table/velocity/y",
        "running/shoulder/orientation"}) {
    EXPECT_TRUE(terms.contains(term)) << term << o.out;
  }
  EXPECT_FALSE(terms.contains("terminal/flight/position/y"));
  const auto final_state = o.json().at("final_state");
  const double x = final_state.at("flight").at("position").at(0);
  EXPECT_NEAR(terms.at("terminal/flight/position/x").get<double>(), 2 * (x - 1) * (x - 1), 1e-12);
  // |θ|² of the relative turn is 2 − 2 cos of its angle: from the quaternion's last number.
  const double w = final_state.at("shoulder").at("orientation").at(3);
  EXPECT_NEAR(terms.at("terminal/shoulder/orientation").get<double>(), 4 * (1 - w * w), 1e-12);
  const Rows rows = parse_csv(read("out/trajectory.csv"));
  const auto at = std::ranges::find(rows[0], std::string("table/effort/angle"));
  ASSERT_NE(at, rows[0].end());
  EXPECT_NEAR(number(rows[1][static_cast<std::size_t>(at - rows[0].begin())]), 0.02, 1e-15);
  Names check{"gradcheck", scene_, "--json"};
  check.insert(check.end(), options.begin(), options.end());
  const Outcome checked = simctl(check);
  EXPECT_EQ(checked.exit, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("control/flight/torque/y"), std::string::npos) << checked.out;
}

/// Springs, limits, drives and speed limits of all that have them, with their gradients, by both integrators.
TEST_F(SimctlJointsTest, DrivesSpringsAndLimitsAreChecked) {
  const Names sets{
      "joints/shoulder/spring/stiffness=2",
      "joints/shoulder/limit={upper: 60 deg, stiffness: 30, damping: 0.5, velocity: 1 rad/s, velocity_damping: 0.5}",
      "joints/shoulder/drive={stiffness: 4, damping: 0.3, effort_limit: 3}",
      "joints/neck/spring={stiffness: 1, rest: 0.1}",
      "joints/neck/limit={lower: -0.1, upper: 0.3, stiffness: 20, damping: 0.1}",
      "joints/neck/drive={stiffness: 2, damping: 0.1}",
      "joints/table/limit={lower: -0.5, upper: 0.5, stiffness: 20, damping: 0.1, velocity: 1, velocity_damping: 1}",
      "joints/table/drive={stiffness: 2, damping: 0.1, effort_limit: 2}",
      "bodies/arm/gravity_compensation=0.7",
      "controls={shoulder: {target_position: {x: [0, 1], y: -0.5}, target_velocity: {z: 0.2}, torque: {x: 0.1}}, neck: "
      "{target_position: {x: 0.3}}, table: {target_position: {angle: 90 deg}, target_velocity: {x: 1}}}",
      "loss/running=[{joint: shoulder, torque: [0, 0, 0], part: total}, {joint: shoulder, torque: [0, 0, 0], part: "
      "limit}, "
      "{joint: table, effort: [0, 0, 0]}, {control: shoulder, channel: target_position}]"};
  for (const char* const integrator : {"featherstone", "semi_implicit"}) {
    Names check{"gradcheck", scene_, "--json", "--set", std::string("simulation/integrator=") + integrator};
    if (kSanitized) check.insert(check.end(), {"--set", "simulation/steps=8"});
    for (const std::string& set : sets) check.insert(check.end(), {"--set", set});
    const Outcome o = simctl(check);
    EXPECT_EQ(o.exit, 0) << o.out << o.err;
    for (const char* const row : {"joints/shoulder/limit/upper", "joints/table/drive/effort_limit",
                                  "joints/neck/spring/rest", "bodies/arm/gravity_compensation",
                                  "control/shoulder/target_position/y", "control/table/target_velocity/angle"}) {
      EXPECT_NE(o.out.find(row), std::string::npos) << row;
    }
  }
}

TEST_F(SimctlJointsTest, FoundControlsReadBack) {
  const Names options{
      "--set", "optimize/variables=[{control: shoulder, channel: torque, knots: 2}, {control: neck}]",
      "--set", "loss/terminal=[{joint: shoulder, orientation: [0, 0, 0, 1]}, {joint: neck, position: [0, 0]}]",
      "--set", "loss/running=[]",
      "--set", "optimize/iterations=5"};
  Names optimize{"optimize", scene_, "--output", "out", "--json"};
  optimize.insert(optimize.end(), options.begin(), options.end());
  const Outcome o = simctl(optimize);
  ASSERT_EQ(o.exit, 0) << o.out << o.err;
  const Outcome again = simctl({"run", path("out/result.yaml"), "--json"});
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.json().at("loss").get<double>(), o.json().at("loss").get<double>());
}

TEST_F(SimctlJointsTest, PathsReachComponents) {
  const auto start = [&](const Names& sets) {
    Names run{"run", scene_, "--output", "out", "--quiet", "--force"};
    for (const std::string& set : sets) run.insert(run.end(), {"--set", set});
    const Outcome o = simctl(run);
    EXPECT_EQ(o.exit, 0) << o.err;
    return parse_csv(read("out/trajectory.csv"));
  };
  const Rows rows = start({"initial_state/table/velocity/angle=3", "initial_state/flight/velocity/y=0.25",
                           "initial_state/neck/position/x=0.5", "controls/table/effort/x=1.5",
                           "initial_state/shoulder/angular_velocity/y=-1"});
  const auto value = [&](const std::string& name) {
    const auto at = std::ranges::find(rows[0], name);
    return at == rows[0].end() ? -99 : number(rows[1][static_cast<std::size_t>(at - rows[0].begin())]);
  };
  EXPECT_EQ(value("table/velocity/angle"), 3);
  EXPECT_EQ(value("flight/velocity/y"), 0.25);
  EXPECT_EQ(value("flight/velocity/x"), 0.5);
  EXPECT_EQ(value("neck/position/x"), 0.5);
  EXPECT_EQ(value("table/effort/x"), 1.5);
  EXPECT_EQ(value("shoulder/angular_velocity/y"), -1);
  EXPECT_EQ(value("shoulder/angular_velocity/z"), 2);
}

TEST_F(SimctlJointsTest, EffortsOfComponentsAreRecorded) {
  const Outcome o = simctl({"run", scene_, "--output", "out", "--quiet", "--set", "record={efforts: [shoulder, table]}",
                            "--set", "controls={shoulder: {torque: {x: 0.2}}}"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const Rows rows = parse_csv(read("out/trajectory.csv"));
  const auto value = [&](std::size_t row, const std::string& name) {
    const auto at = std::ranges::find(rows[0], name);
    EXPECT_NE(at, rows[0].end()) << name;
    return number(rows[row][static_cast<std::size_t>(at - rows[0].begin())]);
  };
  for (const char axis : {'x', 'y', 'z'}) {
    const std::string own(1, axis);
    // Viscous, implicit: −b ω⁺ (docs/theory.md, (9)); digits of a table.
    EXPECT_NEAR(value(5, "shoulder/torque/" + own + "/damping"), -0.05 * value(6, "shoulder/angular_velocity/" + own),
                1e-12);
  }
  EXPECT_EQ(value(5, "shoulder/torque/x/command"), 0.2);
  EXPECT_NEAR(value(5, "shoulder/power"), 0.2 * value(6, "shoulder/angular_velocity/x"), 1e-12);
  EXPECT_NE(value(5, "table/effort/angle/friction"), 0);
}

TEST_F(SimctlJointsTest, MistakesAreRefused) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"initial_state/flight/position=[1, 2]", "3 numbers for joint 'flight', which is free"},
      {"initial_state/wrist/orientation=[0, 0, 0, 1]", "no such key for joint 'wrist', which is revolute"},
      {"initial_state/shoulder/velocity=[0, 0]", "no such key for joint 'shoulder', which is ball"},
      {"initial_state/table/position=[1 rad, 0, 0]", "a length"},
      {"joints/flight/limit={upper: 1}", "no such key for a free joint"},
      {"joints/flight/drive={stiffness: 1}", "no such key for a free joint"},
      {"joints/shoulder/limit={lower: 1}", "joints/shoulder/limit/lower: value '1': a lowest angle"},
      {"joints/shoulder/spring={stiffness: 1, rest: 1}", "joints/shoulder/spring/rest: value '1': an angle"},
      {"joints/shoulder/limit={velocity: 1 m/s}", "an angular velocity"},
      {"joints/neck/limit={upper: [1, 2]}", "value '[1, 2]': expected an angle"},
      {"controls={neck: {target_position: {x: 1}}}", "has no drive to give targets to"},
      {"joints/shoulder/axis=[0, 1, 0]", "no such key for a ball joint: its `frame`"},
      {"optimize={variables: [{initial_state: flight, quantity: position}], loss: {terminal: [{joint: wrist, velocity: "
       "0}]}}",
       "no motion depends on where a free joint's child is"},
      {"joints/flight/parent=arm", "expected the world"},
      {"controls={flight: [1, 2]}", "channel torque or force of joint 'flight', which is free"},
      {"controls={table: {effort: 1}}", "a map of the components x, y, angle of joint 'table', which is planar"},
      {"controls={table: {effort: {z: 1}}}", "a map of the components x, y, angle"},
      {"controls={table: {effort: {x: 1 N*m}}}", "a force"},
      {"controls={wrist: {effort: {x: 1}}}", "no such component of joint 'wrist', which is revolute"},
      {"controls={shoulder: {force: {x: 1}}}", "channel torque of joint 'shoulder', which is ball"},
      {"controls={shoulder: {target_velocity: {x: 1}}}", "has no drive"},
      {"controls={flight: {target_velocity: {x: 1}}}", "has no drive"},
      {"initial_state/table/velocity={w: 1}", "unknown key 'w'"},
      {"initial_state/table/velocity={z: 1}", "no such component for joint 'table', which is planar"},
      {"initial_state/wrist/velocity={x: 1}", "a number for joint 'wrist'"},
      {"initial_state/flight/velocity/angle=1", "index 'angle'"},
      {"optimize/variables=[{initial_state: flight, quantity: orientation}]", "position"},
      {"optimize/variables=[{control: shoulder}]", "channel torque of joint 'shoulder', which is ball"},
      {"optimize/variables=[{control: neck, component: z}]", "one of x, y"},
      {"optimize/variables=[{control: wrist, component: x}]", "no such key: there is one number"},
      {"optimize/variables=[{control: neck}, {control: neck, component: y}]", "a variable that is not one already"},
      {"loss/terminal=[{joint: flight, position: 0}]", "3 numbers, of which some may be none"},
      {"loss/terminal=[{joint: flight, position: [0, 1]}]", "3 numbers, of which some may be none"},
      {"loss/terminal=[{joint: flight, position: [none, none, none]}]", "a number that is not none"},
      {"loss/terminal=[{joint: table, position: [0, 1 rad, 0]}]", "a length"},
      {"loss/terminal=[{joint: table, orientation: [0, 0, 0, 1]}]", "no such key for joint 'table', which is planar"},
      {"loss/running=[{joint: shoulder, effort: 1}]", "no such key for joint 'shoulder', which is ball"},
      {"loss/running=[{joint: shoulder, power: 1}]", "no such key for joint 'shoulder', which is ball"},
      {"loss/running=[{joint: table, velocity: {times: [0, 0.1], values: [0, 1]}}]", "a list of rows of 3 numbers"},
      {"loss/running=[{joint: table, velocity: {times: [0, 0.1], values: [[0, 1], [0, 1]]}}]", "3 numbers"},
      {"loss/running=[{joint: wrist, velocity: {times: [0, 0.1], values: [[0], [1]]}}]", "a list of numbers"},
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
  EXPECT_NE(o.err.find("the joint has no limits"), std::string::npos) << o.err;
}

}  // namespace
}  // namespace backdrive::test
