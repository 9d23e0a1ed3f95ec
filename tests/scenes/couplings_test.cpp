// Couplings in scenes, in URDF files (mimic) and in MJCF files (fixed tendons, equalities of joints).
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "autodiff/problem/inputs.h"
#include "autodiff/tape/rollout.h"
#include "models/coordinates.h"
#include "models/parameter_list.h"
#include "tests/scenes/robot_values.h"
#include "tests/support/batch.h"

namespace backdrive {
namespace {

constexpr double kHalfTurn = std::numbers::pi;

class CouplingScenes : public RobotFolder {
 protected:
  Scene scene(const std::string& couplings, const std::string& rest = "") const {
    return load_scene(write("s.yaml", R"(model:
  bodies:
    a: {mass: 1, com: [0, 0, -0.1], inertia: [0.01, 0.01, 0.01]}
    b: {mass: 1, com: [0, 0, -0.1], inertia: [0.01, 0.01, 0.01]}
    c: {mass: 1, inertia: [0.01, 0.01, 0.01]}
  joints:
    left: {type: revolute, child: a, axis: [1, 0, 0]}
    right: {type: revolute, child: b, axis: [1, 0, 0]}
    rack: {type: prismatic, child: c}
  couplings:
)" + couplings + rest));
  }
  Scene urdf(const std::string& joints) const {
    const std::string inertial = "<inertial><mass value=\"2\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\"/></inertial>";
    return load_scene(write("r.urdf", "<robot name=\"r\"><link name=\"a\"/><link name=\"b\">" + inertial +
                                          "</link><link name=\"c\">" + inertial + "</link>" + joints + "</robot>"));
  }
  Scene mjcf(const std::string& rest, const std::string& joints = "") const {
    const auto body = [](const std::string& joint) { return "<body>" + joint + "<geom size=\"0.1\"/></body>"; };
    return load_scene(write("m.xml", "<mujoco><worldbody>" + body("<joint name=\"i\" ref=\"30\" springref=\"20\"/>") +
                                         body("<joint name=\"k\" type=\"slide\" ref=\"0.5\"/>") + joints +
                                         "</worldbody>" + rest + "</mujoco>"));
  }
  static std::string notes(const Scene& scene) {
    std::string text;
    for (const SceneNote& note : scene.notes) text += note.text + "\n";
    return text;
  }
  /// Ratio of a joint in a coupling.
  static double ratio(const Model& model, const std::string& coupling, const std::string& joint) {
    const auto found = select_fields(model, "couplings/" + coupling + "/ratios/" + joint);
    return found.at(0).field->in(model)(found[0].item);
  }
  static Trajectory<double> motion(const Problem& problem) {
    RolloutOptions options;
    options.steps = problem.simulation.steps;
    options.time_step = problem.simulation.time_step;
    return rollout(problem.model, initial_state<double>(problem, 1), initial_control<double>(problem, 1), options);
  }
};

TEST_F(CouplingScenes, KeysAreReadInTheirUnits) {
  const Model m =
      scene(
          R"(    turn: {ratios: {left: 1, right: -2}, offset: 90 deg, damping: 0.5, spring: {stiffness: 3, rest: 180 deg},
           limit: {lower: -90 deg}, drive: {stiffness: 7, damping: 2, effort_limit: 4 N*m}}
    gear: {ratios: {rack: 1, left: 0.05}, hold: true}
    slide: {ratios: {rack: 2}, offset: 5 cm}
)")
          .problem.model;
  ASSERT_EQ(m.coupling_names.list(), (std::vector<std::string>{"turn", "gear", "slide"}));
  EXPECT_EQ(ratio(m, "turn", "right"), -2);
  EXPECT_NEAR(m.couplings.offset(0), kHalfTurn / 2, 1e-15);
  EXPECT_NEAR(m.couplings.spring.rest(0), kHalfTurn, 1e-15);
  EXPECT_NEAR(m.couplings.limit.lower(0), -kHalfTurn / 2, 1e-15);
  EXPECT_EQ(m.couplings.limit.upper(0), kInfinity);
  EXPECT_EQ(m.couplings.drive.effort_limit(0), 4);
  EXPECT_TRUE(m.coupling_holds[1]);
  EXPECT_EQ(m.couplings.offset(2), 0.05);
  std::vector<std::string> controls;
  for (const ControlRow& row : control_rows(m)) controls.push_back(row.name);
  EXPECT_EQ(controls, (std::vector<std::string>{"left/effort", "right/effort", "rack/effort", "turn/effort",
                                                "turn/target_position", "turn/target_velocity", "slide/effort"}));
}

TEST_F(CouplingScenes, AreWrittenAndReadBackToTheBit) {
  const std::string couplings =
      R"(    turn: {ratios: {left: 1, right: -0.3}, offset: 0.1, spring: {stiffness: 3}, drive: {stiffness: 1}}
    gear: {ratios: {rack: 1, left: 0.05}, hold: true}
)";
  const Scene one = scene(couplings, "controls: {turn: {effort: [0.1, 0.7], target_position: 0.2}}\n");
  Problem filled = one.problem;
  filled.model.couplings.ratios.at(1) = -1.0 / 3;
  filled.model.couplings.spring.stiffness.at(0) = 1.0 / 7;
  const Scene again = parse_scene(scene_with_values(one, filled), "again", folder_);
  test::expect_equal_parameters(filled.model, again.problem.model);
  ASSERT_EQ(again.problem.controls.size(), 2u);
  EXPECT_EQ(again.problem.controls[0].values, one.problem.controls[0].values);
  EXPECT_EQ(load_scene(folder_ / "s.yaml", std::vector<Override>{{"couplings/turn/ratios/right", "4"}})
                .problem.model.couplings.ratios(1),
            4);
}

// What a scene does not say of a joint that is held follows from the others.
TEST_F(CouplingScenes, HeldJointsBeginWhereTheyAreHeld) {
  const std::string couplings = R"(    gear: {ratios: {rack: 1, left: -0.5}, offset: -0.1, hold: true}
    turn: {ratios: {right: 1, rack: 2}, hold: true}
)";
  const Problem p = scene(couplings, "initial_state: {left: {position: 0.4, velocity: 2}}\n").problem;
  for (int c = 0; c < 2; ++c) {
    EXPECT_NEAR(coupling_position(p.model, c, p.initial_position), 0, 1e-15);
    EXPECT_NEAR(coupling_velocity(p.model, c, p.initial_velocity), 0, 1e-15);
  }
  EXPECT_EQ(p.initial_position[0], 0.4);
  EXPECT_NEAR(p.initial_position[2], 0.3, 1e-15);
  EXPECT_NEAR(p.initial_velocity[1], -2, 1e-15);
  const Problem given = scene(couplings, "initial_state: {rack: {position: 0.2}, right: {position: 7}}\n").problem;
  EXPECT_NEAR(given.initial_position[0], 0.2, 1e-15);
  EXPECT_EQ(given.initial_position[1], 7);  // as it was said
}

TEST_F(CouplingScenes, EffortsAndTargetsAreThoseOfTheCoupling) {
  const Problem p = scene(R"(    turn: {ratios: {left: 1, right: -1}, drive: {stiffness: 500, damping: 20}}
)",
                          "controls: {turn: {target_position: 0.4}}\nsimulation: {duration: 3}\n")
                        .problem;
  const Trajectory<double> t = motion(p);
  // Equal and opposite about where both hang, less what gravity takes: 1 kg·9.81·0.1 m·sin 0.2 over 500 N·m/rad.
  const double left = t.final.q(0, 0), right = t.final.q(1, 0);
  EXPECT_NEAR(left - right, 0.4, 2e-3);
  EXPECT_NEAR(left + right, 0, 1e-9);
}

const std::string kLeader =
    "<joint name=\"i\" type=\"revolute\"><parent link=\"a\"/><child link=\"b\"/><limit lower=\"-1\" upper=\"1\" "
    "effort=\"1\" velocity=\"0\"/></joint>";
std::string follower(const std::string& mimic, const std::string& type = "prismatic") {
  return "<joint name=\"k\" type=\"" + type + "\"><parent link=\"a\"/><child link=\"c\"/>" + mimic +
         "<limit lower=\"-2\" upper=\"2\" effort=\"1\" velocity=\"0\"/></joint>";
}

TEST_F(CouplingScenes, MimicIsACouplingThatHolds) {
  Scene scene = urdf(kLeader + follower("<mimic joint=\"i\" multiplier=\"0.5\" offset=\"0.1\"/>"));
  const Model& m = scene.problem.model;
  ASSERT_EQ(m.coupling_names.list(), std::vector<std::string>{"k_mimic"});
  EXPECT_TRUE(m.coupling_holds[0]);
  EXPECT_EQ(ratio(m, "k_mimic", "k"), 1);
  EXPECT_EQ(ratio(m, "k_mimic", "i"), -0.5);
  EXPECT_EQ(m.couplings.offset(0), -0.1);
  EXPECT_EQ(scene.problem.initial_position[1], 0.1);
  EXPECT_EQ(notes(scene).find("mimic"), std::string::npos) << notes(scene);
  scene.problem.simulation.steps = 480;
  scene.problem.controls.push_back({m.find_joint("i"), ControlChannel::effort, {0.5, -0.5}, false});
  const Trajectory<double> t = motion(scene.problem);
  double moved = 0;
  for (int step = 0; step <= 480; ++step) {
    EXPECT_NEAR(t.q(2 * step + 1, 0), 0.5 * t.q(2 * step, 0) + 0.1, 1e-14);
    moved = std::max(moved, std::abs(t.q(2 * step, 0)));
  }
  EXPECT_GT(moved, 0.1);
}

TEST_F(CouplingScenes, MimicOfWhatIsNotThereIsRefused) {
  const auto refused = [&](const std::string& joints) {
    const std::string text =
        "<robot name=\"r\"><link name=\"a\"/><link name=\"b\"/><link name=\"c\"/>" + joints + "</robot>";
    return refusal(write("bad.urdf", text));
  };
  EXPECT_NE(refused(kLeader + follower("<mimic joint=\"ii\"/>")).find("the name of a joint"), std::string::npos);
  EXPECT_NE(refused(kLeader + follower("<mimic joint=\"k\"/>")).find("expected another joint"), std::string::npos);
  EXPECT_NE(refused(kLeader + follower("<mimic/>")).find("joint"), std::string::npos);
  EXPECT_NE(refused(kLeader + follower("<mimic joint=\"i\" offset=\"x\"/>")).find("value 'x'"), std::string::npos);
  const Scene fixed = urdf(kLeader + follower("<mimic joint=\"i\"/>", "fixed"));
  EXPECT_NE(notes(fixed).find("<mimic> of or by a joint that neither turns nor slides"), std::string::npos);
}

// Positions here are MuJoCo's less `ref`: lengths of tendons are the same all the same.
TEST_F(CouplingScenes, FixedTendonsOfMjcf) {
  const Scene scene = mjcf(
      "<tendon><fixed name=\"t\" stiffness=\"3\" damping=\"0.5\" frictionloss=\"0.1\" armature=\"0.2\" range=\"-1 2\">"
      "<joint joint=\"i\" coef=\"2\"/><joint joint=\"k\" coef=\"-1\"/></fixed>"
      "<fixed name=\"idle\"><joint joint=\"i\" coef=\"1\"/></fixed></tendon>"
      "<actuator><position tendon=\"t\" kp=\"10\" kv=\"2\" forcerange=\"-5 5\"/></actuator>");
  const Model& m = scene.problem.model;
  ASSERT_EQ(m.coupling_names.list(), std::vector<std::string>{"t"}) << notes(scene);
  const double reference = kHalfTurn / 6, rest = kHalfTurn / 9;
  EXPECT_EQ(ratio(m, "t", "i"), 2);
  EXPECT_EQ(ratio(m, "t", "k"), -1);
  EXPECT_NEAR(m.couplings.offset(0), 2 * reference - 0.5, 1e-15);
  EXPECT_NEAR(m.couplings.spring.rest(0), 2 * rest, 1e-15);
  EXPECT_EQ(m.couplings.spring.stiffness(0), 3);
  EXPECT_EQ(m.couplings.damping(0), 0.5);
  EXPECT_EQ(m.couplings.friction(0), 0.1);
  EXPECT_EQ(m.couplings.armature(0), 0.2);
  EXPECT_EQ(m.couplings.limit.upper(0), 2);
  EXPECT_EQ(m.couplings.drive.stiffness(0), 10);
  EXPECT_EQ(m.couplings.drive.damping(0), 2);
  EXPECT_EQ(m.couplings.drive.effort_limit(0), 5);
  EXPECT_EQ(notes(scene).find("tendon"), std::string::npos) << notes(scene);
  const Model given =
      mjcf(
          "<tendon><fixed name=\"t\" stiffness=\"3\" springlength=\"0.7\"><joint joint=\"i\" coef=\"1\"/>"
          "</fixed></tendon>")
          .problem.model;
  EXPECT_EQ(given.couplings.spring.rest(0), 0.7);
  const std::string stranger = "<tendon><fixed><joint joint=\"x\" coef=\"1\"/></fixed></tendon>";
  const std::string body = "<worldbody><body><joint name=\"i\"/><geom size=\"1\"/></body></worldbody>";
  const std::string refused = refusal(write("bad.xml", "<mujoco>" + body + stranger + "</mujoco>"));
  EXPECT_NE(refused.find("the name of a joint"), std::string::npos) << refused;
}

// Accelerations that MuJoCo 4.0.0 gives, at positions that are counted from `ref`. It takes springs and dampers as they
// are at the start of a step, we as they are at its end: of two steps' differences what is left is of order Δt², and
// the rounding of velocities over Δt 1e-10.
class OracleTendons : public CouplingScenes {};
TEST_F(OracleTendons, AccelerationsAreThoseOfMujoco) {
  const Scene scene = load_scene(write("m.xml", R"(<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<worldbody><body pos="0 0 0"><joint name="i" axis="0 1 0" ref="0.3" springref="0.1" armature="0.02"/><geom size="0.1" pos="0.1 0.02 0.2"/>
<body pos="0.3 0 0"><joint name="k" axis="1 0.2 0" ref="-0.2"/><geom type="box" size="0.1 0.05 0.07" pos="0.2 0.1 0.05"/></body></body>
<body pos="2 0 0"><joint name="m" type="slide" axis="0 0 1"/><geom size="0.15"/></body></worldbody>
<tendon><fixed name="t" stiffness="300" damping="4" armature="0.7"><joint joint="i" coef="2"/><joint joint="k" coef="-1.3"/></fixed>
<fixed name="g" stiffness="70" springlength="0.4"><joint joint="k" coef="1"/><joint joint="m" coef="0.5"/></fixed></tendon>
<actuator><position tendon="t" kp="40" kv="2" gear="1.5"/><motor tendon="g"/></actuator></mujoco>
)"));
  struct State {
    std::vector<double> q, qd, qdd;
  };
  const State states[] = {
      {{0.2, -0.4, 0.3}, {0.7, -0.5, 0.2}, {221.24311640154903, 1101.4958899452897, -7.705617974673829}},
      {{-0.45, 0.1, -0.2}, {-0.3, 0.9, -1.1}, {86.64371541305435, 17.082635717131453, -8.324553864475645}}};
  for (const State& s : states) {
    const auto accelerations = [&](double dt) {
      Problem p = scene.problem;
      p.simulation = {dt, 1};
      p.initial_position = s.q;
      p.initial_velocity = s.qd;
      const Trajectory<double> t = motion(p);
      std::vector<double> result;
      for (int k = 0; k < 3; ++k) result.push_back((t.final.qd(k, 0) - s.qd[k]) / dt);
      return result;
    };
    const std::vector<double> one = accelerations(2e-6), half = accelerations(1e-6);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(2 * half[k] - one[k], s.qdd[k], 1e-8 * 1101) << k;
  }
}

TEST_F(CouplingScenes, EqualitiesOfJointsOfMjcf) {
  const Scene scene = mjcf(
      "<equality><joint name=\"e\" joint1=\"i\" joint2=\"k\" polycoef=\"0.1 2 0 0 0\"/><joint joint1=\"k\"/>"
      "<joint joint1=\"i\" joint2=\"k\" polycoef=\"0 1 3 0 0\"/></equality>");
  const Model& m = scene.problem.model;
  ASSERT_EQ(m.coupling_names.list(), (std::vector<std::string>{"e", "k_equality"})) << notes(scene);
  EXPECT_TRUE(m.coupling_holds[0] && m.coupling_holds[1]);
  EXPECT_EQ(ratio(m, "e", "i"), 1);
  EXPECT_EQ(ratio(m, "e", "k"), -2);
  EXPECT_EQ(m.couplings.offset(0), -0.1);
  EXPECT_NE(notes(scene).find("of a degree above 1"), std::string::npos) << notes(scene);
  EXPECT_EQ(scene.problem.initial_position[0], 0.1);
}

}  // namespace
}  // namespace backdrive
