// Actuators of MJCF files: what becomes of them, and what the controls of a keyframe make of them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenes/scene.h"
#include "tests/scenes/mjcf_folder.h"

namespace backdrive {
namespace {

class MjcfActuators : public MjcfFolder {};

TEST_F(MjcfActuators, ActuatorsBecomeDrives) {
  const auto drive = [&](const std::string& actuator, const std::string& more = "") {
    return body("<joint name=\"j\"/>", more + "<actuator>" + actuator + "</actuator>").problem;
  };
  const auto expect = [&](const Problem& p, double stiffness, double damping, double limit) {
    const Model& m = p.model;
    const int j = m.find_joint("j");
    EXPECT_EQ(m.joints.drive.stiffness(j), stiffness);
    EXPECT_EQ(m.joints.drive.damping(j), damping);
    EXPECT_EQ(m.joints.drive.effort_limit(j), limit);
  };
  expect(drive("<motor joint=\"j\" gear=\"-5\" ctrlrange=\"-2 2\"/>"), 0, 0, 10);
  expect(drive("<motor joint=\"j\" ctrlrange=\"-2 2\" ctrllimited=\"false\"/>"), 0, 0, kInfinity);
  expect(drive("<position joint=\"j\" kp=\"3\" kv=\"0.5\" gear=\"2\" ctrlrange=\"-1 1\"/>"), 12, 2, kInfinity);
  expect(drive("<velocity joint=\"j\" kv=\"4\" forcerange=\"-6 6\"/>"), 0, 4, 6);
  expect(drive("<general joint=\"j\" gainprm=\"7\" biastype=\"affine\" biasprm=\"0 -6 -0.5\"/>"), 6, 0.5, kInfinity);
  // A class that was written for another kind of actuator says what a general one does.
  expect(drive("<general joint=\"j\"/>", "<default><position kp=\"3\"/></default>"), 3, 0, kInfinity);
  // Several on one joint add up; one without a limit leaves none.
  expect(drive("<motor joint=\"j\" ctrlrange=\"-2 2\"/><position joint=\"j\" kp=\"3\" forcerange=\"-5 5\"/>"), 3, 0, 7);
  expect(drive("<motor joint=\"j\"/><position joint=\"j\" kp=\"3\" forcerange=\"-5 5\"/>"), 3, 0, kInfinity);
  const auto bound = [&](const std::string& joint, const std::string& compiler = "") {
    const Model m = body("<joint name=\"j\" actuatorfrcrange=\"-3 3\" " + joint + "/>", compiler).problem.model;
    return m.joints.drive.effort_limit(m.find_joint("j"));
  };
  EXPECT_EQ(bound(""), 3);
  EXPECT_EQ(bound("actuatorfrclimited=\"false\""), kInfinity);
  EXPECT_EQ(bound("", "<compiler autolimits=\"false\"/>"), kInfinity);
  EXPECT_EQ(bound("actuatorfrclimited=\"true\"", "<compiler autolimits=\"false\"/>"), 3);
  // A constant part moves the target.
  const Scene scene =
      body("<joint name=\"j\"/>", "<actuator><general joint=\"j\" biastype=\"affine\" biasprm=\"3 -6 0\"/></actuator>");
  ASSERT_EQ(scene.problem.controls.size(), 1u);
  EXPECT_EQ(scene.problem.controls[0].channel, ControlChannel::target_position);
  EXPECT_EQ(scene.problem.controls[0].values, std::vector<double>{0.5});
  for (const char* const other :
       {"<muscle joint=\"j\"/>", "<general joint=\"j\" dyntype=\"integrator\"/>", "<motor tendon=\"t\"/>",
        "<motor site=\"s\"/>", "<general joint=\"j\" biastype=\"affine\" biasprm=\"0 2 0\"/>"}) {
    const Scene left = body("<joint name=\"j\"/>", std::string("<actuator>") + other + "</actuator>");
    EXPECT_TRUE(contains(notes(left), "! ")) << other;
    EXPECT_EQ(left.problem.model.joints.drive.stiffness(left.problem.model.find_joint("j")), 0);
  }
}

/// What a key holds actuators to: force = (g0 + g1·length + g2·velocity)·ctrl + b0 + b1·length + b2·velocity.
TEST_F(MjcfActuators, ControlsOfAKeyStay) {
  const auto of = [&](const std::string& actuators, const std::string& controls, const std::string& joint = "") {
    return body("<joint name=\"j\" " + joint + "/>",
                "<compiler angle=\"radian\"/><actuator>" + actuators + "</actuator><keyframe><key name=\"k\" " +
                    (controls.empty() ? "" : "ctrl=\"" + controls + "\"") + "/></keyframe>");
  };
  const auto keyed = [&](const std::string& actuators, const std::string& controls, const std::string& joint = "") {
    of(actuators, controls, joint);
    return load_scene(folder_ / "m.xml", std::vector<Override>{{"model/keyframe", "k"}});
  };
  const auto expect = [&](const Scene& scene, double stiffness, double damping, double limit) {
    const Model& m = scene.problem.model;
    const int j = m.find_joint("j");
    EXPECT_DOUBLE_EQ(m.joints.drive.stiffness(j), stiffness);
    EXPECT_DOUBLE_EQ(m.joints.drive.damping(j), damping);
    EXPECT_EQ(m.joints.drive.effort_limit(j), limit);
  };
  const auto expect_control = [&](const Scene& scene, ControlChannel channel, double value) {
    ASSERT_EQ(scene.problem.controls.size(), 1u);
    EXPECT_EQ(scene.problem.controls[0].channel, channel);
    ASSERT_EQ(scene.problem.controls[0].values.size(), 1u);
    EXPECT_DOUBLE_EQ(scene.problem.controls[0].values[0], value);
  };
  const std::string damper = "<damper joint=\"j\" kv=\"3\" gear=\"2\" ctrlrange=\"0 1\" forcerange=\"-4 4\"/>";
  expect(keyed(damper, "0.75"), 0, 9, 8);
  expect(keyed(damper, "7"), 0, 12, 8);  // within its range
  expect(keyed(damper, ""), 0, 0, 8);
  expect(of(damper, "0.75"), 0, 0, 8);  // the scene does not name the key
  EXPECT_FALSE(contains(notes(keyed(damper, "0.75")), "! "));
  EXPECT_TRUE(contains(notes(of(damper, "0.75")), "<actuator> <damper>: its control stays as the keyframe has it"));
  // Its damping is a path of the model, whether or not the key makes it above zero.
  const Scene varied = load_scene(folder_ / "m.xml", std::vector<Override>{{"joints/j/drive/damping", "5"}});
  expect(varied, 0, 5, 8);
  const std::string affine =
      "<general joint=\"j\" gaintype=\"affine\" gainprm=\"2 -3 -4\" biastype=\"affine\" biasprm=\"1 -5 -6\"/>";
  const Scene both = keyed(affine, "0.5", "ref=\"0.25\"");
  expect(both, 6.5, 8, kInfinity);
  expect_control(both, ControlChannel::target_position, 2 / 6.5 - 0.25);
  EXPECT_TRUE(contains(notes(keyed(affine, "-2")), "! "));  // 5 − 6 N·m/rad push away
  expect_control(keyed("<motor joint=\"j\" gear=\"5\" ctrlrange=\"-1 1\"/>", "0.5"), ControlChannel::effort, 2.5);
  expect_control(keyed("<position joint=\"j\" kp=\"8\"/>", "0.5", "ref=\"2\""), ControlChannel::target_position, -1.5);
  expect_control(keyed("<velocity joint=\"j\" kv=\"8\" gear=\"2\"/>", "0.5"), ControlChannel::target_velocity, 0.25);
  expect_control(keyed("<position joint=\"j\" kp=\"8\"/><motor joint=\"j\"/>", "0.5 4"),
                 ControlChannel::target_position, 1);
  EXPECT_TRUE(keyed("<motor joint=\"j\"/>", "0").problem.controls.empty());
  write_model(
      "<worldbody><body><joint name=\"j\"/><geom size=\"1\"/></body></worldbody><actuator><motor joint=\"j\"/>"
      "</actuator><keyframe><key name=\"k\" ctrl=\"1 2\"/></keyframe>");
  EXPECT_TRUE(contains(refusal(folder_ / "m.xml", {{"model/keyframe", "k"}}), "m.xml:1:")) << "of two, one actuator";
  for (const char* const wrong : {"<damper joint=\"j\"/>", "<damper joint=\"j\" ctrlrange=\"-1 1\"/>",
                                  "<damper joint=\"j\" kv=\"-1\" ctrlrange=\"0 1\"/>"}) {
    EXPECT_TRUE(contains(refused("<worldbody><body><joint name=\"j\"/><geom size=\"1\"/></body></worldbody><actuator>" +
                                 std::string(wrong) + "</actuator>"),
                         "damper"))
        << wrong;
  }
}

}  // namespace
}  // namespace backdrive
