// MJCF's connect and weld: joints that close loops, where the integrator knows such.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "autodiff/tape/loop_gaps.h"
#include "autodiff/tape/rollout.h"
#include "models/coordinates.h"
#include "tests/scenes/robot_values.h"
#include "tests/support/batch.h"

namespace backdrive {
namespace {

const std::vector<Override> kLoops{{"simulation/integrator", "semi_implicit"}};

class MjcfLoops : public RobotFolder {
 protected:
  std::filesystem::path file(const std::string& elements) const {
    return write("m.xml", "<mujoco>" + elements + "</mujoco>");
  }
  /// Two bodies of 1 kg, at (1, 2, 3) on a hinge whose anchor is at (0, 0, 0.5) of it, and free at (4, 0, 0), a quarter
  /// turned about z.
  std::filesystem::path two(const std::string& equality) const {
    const std::string mass = "<inertial pos=\"0 0 0\" mass=\"1\" diaginertia=\"0.1 0.1 0.1\"/>";
    return file("<worldbody><body name=\"a\" pos=\"1 2 3\"><joint name=\"j\" pos=\"0 0 0.5\"/>" + mass +
                "<site name=\"s\" pos=\"0 0.25 0\"/></body>"
                "<body name=\"b\" pos=\"4 0 0\" euler=\"0 0 90\"><freejoint/>" +
                mass + "<site name=\"t\" pos=\"1 0 0\" euler=\"90 0 0\"/></body></worldbody><equality>" + equality +
                "</equality>");
  }
  Model loops(const std::string& equality) const { return load_scene(two(equality), kLoops).problem.model; }
};

Trajectory<double> motion(const Scene& scene, double speed) {
  const Model& model = scene.problem.model;
  State<double> state(model, 1);
  const std::vector<double> q = neutral_positions(model.topology);
  for (std::size_t r = 0; r < q.size(); ++r) state.q.set(static_cast<int>(r), 0, q[r]);
  state.qd.set(model.topology.links[model.link_of_joint(model.find_joint("motor"))].v, 0, speed);
  RolloutOptions options;
  options.steps = 250;
  options.time_step = scene.problem.simulation.time_step;
  return rollout<double>(model, place_bodies<double>(nullptr, model, state, options), {}, options);
}

// A four-bar linkage, whose numbers are sums of powers of two: either way of saying it has the same bits.
TEST_F(MjcfLoops, AConnectedLinkageIsThatOfALoopJoint) {
  const Scene mjcf = load_scene(file(R"(<option timestep="0.004"/><worldbody>
    <body name="crank"><joint name="motor" axis="0 1 0" damping="0.25"/>
      <inertial pos="0 0 0.0625" mass="0.5" diaginertia="0.0625 0.0625 0.03125"/>
      <body name="coupler" pos="0 0 0.125"><joint name="crank_pin" axis="0 1 0"/>
        <inertial pos="0.25 0 0.125" mass="1" diaginertia="0.03125 0.0625 0.0625"/></body></body>
    <body name="rocker" pos="0.5 0 0"><joint name="pivot" axis="0 1 0"/>
      <inertial pos="0 0 0.1875" mass="0.75" diaginertia="0.0625 0.0625 0.03125"/></body></worldbody>
    <equality><connect name="rocker_pin" body1="coupler" body2="rocker" anchor="0.5 0 0.25"/></equality>)"),
                                kLoops);
  const Scene scene = load_scene(write("s.yaml", R"(simulation: {integrator: semi_implicit, time_step: 0.004}
model:
  gravity: [0, 0, -9.81]
  bodies:
    crank: {mass: 0.5, com: [0, 0, 0.0625], inertia: [0.0625, 0.0625, 0.03125]}
    coupler: {mass: 1, com: [0.25, 0, 0.125], inertia: [0.03125, 0.0625, 0.0625]}
    rocker: {mass: 0.75, com: [0, 0, 0.1875], inertia: [0.0625, 0.0625, 0.03125]}
  joints:
    motor: {type: revolute, child: crank, axis: [0, 1, 0], damping: 0.25}
    crank_pin: {type: revolute, parent: crank, child: coupler, frame: {position: [0, 0, 0.125]}, axis: [0, 1, 0]}
    pivot: {type: revolute, child: rocker, frame: {position: [0.5, 0, 0]}, axis: [0, 1, 0]}
    rocker_pin: {type: ball, loop: true, parent: coupler, child: rocker, frame: {position: [0.5, 0, 0.25]}, child_frame: {position: [0, 0, 0.375]}}
)"));
  const Trajectory<double> a = motion(mjcf, 4), b = motion(scene, 4);
  ASSERT_EQ(a.q.rows(), b.q.rows());
  for (int r = 0; r < a.q.rows(); ++r) ASSERT_EQ(a.q(r, 0), b.q(r, 0)) << r;
  for (int r = 0; r < a.qd.rows(); ++r) ASSERT_EQ(a.qd(r, 0), b.qd(r, 0)) << r;
  // It moves, and as a linkage: cut open its rocker would fall by itself.
  const int pivot = mjcf.problem.model.link_of_joint(mjcf.problem.model.find_joint("pivot"));
  EXPECT_GT(std::abs(a.final.q(mjcf.problem.model.topology.links[pivot].q, 0)), 0.1);
  for (const LoopGap& gap : loop_gaps(mjcf.problem.model, a.final)) EXPECT_LT(gap.distance, 1e-4);
}

TEST_F(MjcfLoops, ConnectedPointsAreWhereTheFileShowsThem) {
  const Model m = loops("<connect name=\"c\" body1=\"a\" body2=\"b\" anchor=\"1 0 0\"/>");
  const int c = m.find_joint("c");
  ASSERT_GE(c, 0);
  EXPECT_EQ(m.joint_types[c], JointType::ball);
  EXPECT_TRUE(m.joint_loops[c]);
  EXPECT_EQ(m.joint_parents[c], m.find_body("a"));
  EXPECT_EQ(m.joint_children[c], m.find_body("b"));
  expect_near(numbers(m.joints.frame.position, c), {1, 0, -0.5}, 1e-15);  // its frame is at the anchor of j
  expect_near(numbers(m.joints.child_frame.position, c), {2, 2, 3}, 1e-14);
}

TEST_F(MjcfLoops, TheWorldHoldsWhatIsConnectedWithNothing) {
  const Model m = loops("<connect body1=\"a\" anchor=\"0 1 0\"/>");
  const int c = m.find_joint("a_connect");
  ASSERT_GE(c, 0);
  EXPECT_EQ(m.joint_parents[c], -1);
  EXPECT_EQ(m.joint_children[c], m.find_body("a"));
  expect_near(numbers(m.joints.frame.position, c), {1, 3, 3}, 1e-15);
  expect_near(numbers(m.joints.child_frame.position, c), {0, 1, -0.5}, 1e-15);
}

TEST_F(MjcfLoops, WeldsHoldAllOfABody) {
  const double half = std::sqrt(0.5);
  const Model m = loops("<weld name=\"w\" body1=\"a\" body2=\"b\"/>");
  const int w = m.find_joint("w");
  EXPECT_EQ(m.joint_types[w], JointType::fixed);
  expect_near(numbers(m.joints.frame.position, w), {3, -2, -3.5}, 1e-14);
  expect_near(numbers(m.joints.frame.orientation, w), {0, 0, half, half}, 1e-14);
  expect_near(numbers(m.joints.child_frame.position, w), {0, 0, 0}, 1e-15);
  const Model posed = loops(
      "<weld name=\"w\" body1=\"a\" body2=\"b\" relpose=\"1 0 0 0 1 0 0\" anchor=\"0 0.5 0\" torquescale=\"2\"/>");
  expect_near(numbers(posed.joints.frame.position, w), {1, -0.5, -0.5}, 1e-14);
  expect_near(numbers(posed.joints.frame.orientation, w), {1, 0, 0, 0}, 1e-14);
  expect_near(numbers(posed.joints.child_frame.position, w), {0, 0.5, 0}, 1e-15);
  const Model sites = loops("<weld name=\"w\" site1=\"s\" site2=\"t\"/>");
  expect_near(numbers(sites.joints.frame.position, w), {0, 0.25, -0.5}, 1e-15);
  expect_near(numbers(sites.joints.child_frame.position, w), {1, 0, 0}, 1e-15);
  expect_near(numbers(sites.joints.child_frame.orientation, w), {half, 0, 0, half}, 1e-14);
}

// In trees nothing closes: told, and how to have it.
TEST_F(MjcfLoops, FeatherstoneTellsWhatToChoose) {
  const Scene scene = load_scene(two("<weld name=\"w\" body1=\"a\" body2=\"b\"/>"));
  EXPECT_EQ(scene.problem.model.find_joint("w"), -1);
  std::string told;
  for (const SceneNote& note : scene.notes) told += note.text + "\n";
  EXPECT_NE(told.find("<weld>: it holds nothing with the integrator featherstone"), std::string::npos) << told;
  EXPECT_NE(told.find("{integrator: semi_implicit}"), std::string::npos) << told;
  LoadOptions strict;
  strict.strict = true;
  EXPECT_NE(refusal(two("<connect body1=\"a\" anchor=\"0 0 0\"/>"), {}, strict).find("semi_implicit"),
            std::string::npos);
}

TEST_F(MjcfLoops, WhatHoldsNothingIsRefused) {
  const auto refused = [&](const std::string& equality, const std::string& words) {
    const std::string message = refusal(two(equality), kLoops);
    EXPECT_NE(message.find(words), std::string::npos) << equality << "\n" << message;
    EXPECT_NE(message.find("m.xml:1:"), std::string::npos) << message;
  };
  refused("<connect body1=\"a\" body2=\"b\"/>", "'anchor'");
  refused("<connect body1=\"a\" body2=\"c\" anchor=\"0 0 0\"/>", "value 'c'");
  refused("<connect body1=\"a\" body2=\"a\" anchor=\"0 0 0\"/>", "expected what is on another body");
  refused("<connect body1=\"world\" anchor=\"0 0 0\"/>", "the attribute 'body2', as 'body1' is the world");
  refused("<connect body1=\"a\" body2=\"b\" anchor=\"0 0\"/>", "value '0 0'");
  refused("<weld body1=\"a\" body2=\"b\" relpose=\"0 0 0\"/>", "value '0 0 0'");
  refused("<weld site1=\"s\" site2=\"u\"/>", "expected the name of a site");
  refused("<weld site1=\"s\"/>", "'site2'");
}

// What is between the joints of one body has a thousandth of its mass there, and the body the rest: where the file
// shows them they weigh the same in all. Motions differ by no more than the integrators do.
TEST_F(MjcfLoops, SeveralJointsOfABodyShareItsMass) {
  const std::filesystem::path robot = file(R"(<option timestep="0.001"/><worldbody>
    <body name="trunk" pos="0 0 1"><joint name="slide" type="slide" axis="1 0 0" damping="0.5"/>
      <joint name="yaw" axis="0 0 1" pos="0.1 0 0" armature="0.01"/><joint name="motor" axis="0 1 0" pos="0.1 0 0.05"/>
      <inertial pos="0.2 0.1 -0.1" mass="2" diaginertia="0.02 0.03 0.025"/>
      <body name="arm" pos="0.4 0 0"><joint name="elbow" axis="0 1 0"/><joint name="twist" axis="1 0 0"/>
        <inertial pos="0.1 0.02 0" mass="0.5" diaginertia="0.002 0.003 0.0025"/></body></body></worldbody>)");
  const Scene loose = load_scene(robot, kLoops), tree = load_scene(robot);
  const Model& m = loose.problem.model;
  const int trunk = m.find_body("trunk"), first = m.find_body("slide_link"), second = m.find_body("yaw_link");
  EXPECT_NEAR(m.bodies.mass(trunk), 2 * 0.998, 1e-15);
  EXPECT_EQ(m.bodies.mass(first), 2e-3);
  EXPECT_NEAR(m.bodies.inertia(second, 1), 3e-5, 1e-18);
  expect_near(numbers(m.bodies.com, first), {0.2, 0.1, -0.1}, 1e-15);
  expect_near(numbers(m.bodies.com, second), {0.1, 0.1, -0.1}, 1e-15);
  expect_near(numbers(m.bodies.com, trunk), {0.1, 0.1, -0.15}, 1e-15);
  ASSERT_EQ(loose.notes.size(), 1u);
  EXPECT_TRUE(loose.notes[0].changes_motion);
  EXPECT_NE(loose.notes[0].text.find("a thousandth of its mass (3 times)"), std::string::npos) << loose.notes[0].text;
  EXPECT_EQ(tree.problem.model.bodies.mass(tree.problem.model.find_body("trunk")), 2);
  EXPECT_TRUE(tree.notes.empty());
  const Trajectory<double> a = motion(loose, 2), b = motion(tree, 2);
  double moved = 0;
  for (int j = 0; j < 5; ++j) {
    EXPECT_NEAR(a.final.q(j, 0), b.final.q(j, 0), 2e-3) << j;
    moved = std::max(moved, std::abs(b.final.q(j, 0)));
  }
  EXPECT_GT(moved, 0.3);
}

}  // namespace
}  // namespace backdrive
