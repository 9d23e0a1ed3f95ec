// simctl on robot files: info, dynamics, convert, and what the other commands say of them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/apps/simctl_process.h"

namespace backdrive {
namespace {

using nlohmann::json;

class SimctlRobotTest : public test::SimctlTest {
 protected:
  static std::string robot(const std::string& name) { return test::kRepository + "/scenes/" + name + ".urdf"; }
};

TEST_F(SimctlRobotTest, InfoPrintsTheTree) {
  const test::Outcome text = simctl({"info", robot("arm")});
  EXPECT_EQ(text.exit, 0) << text.err;
  for (const char* const words :
       {"arm: 10 bodies, 8 degrees of freedom, 7.9 kg", "  waist", "[-2.8, 2.8] rad", "pedestal"}) {
    EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
  }
  for (const char* const words : {"right_slide_mimic", "right_slide - left_slide", "held at 0"}) {
    EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
  }
  EXPECT_EQ(text.err, "");
  const json object = simctl({"info", robot("arm"), "--json", "--quiet"}).json();
  EXPECT_EQ(object["degrees_of_freedom"], 8);
  EXPECT_EQ(object["joints"].size(), 10u);
  EXPECT_EQ(object["couplings"].size(), 1u);
  EXPECT_EQ(object["couplings"][0]["ratios"]["left_slide"], -1);
  EXPECT_TRUE(object["not_taken_over"].empty()) << object["not_taken_over"];
  EXPECT_EQ(simctl({"info"}).exit, 0);
}

/// Of the pendulum at 0.5 rad and 2 rad/s whose centre hangs 2 m below its hinge: r(θ) = −2 (sin θ, 0, cos θ), and of
/// its step θ̇⁺ = θ̇ + Δt θ̈, θ⁺ = θ + Δt θ̇⁺.
void expect_motion_of_the_rod(const json& s) {
  const double sine = std::sin(0.5), cosine = std::cos(0.5), step = 1.0 / 240, M = 12.5, slope = -3 * 9.81 * 2 * cosine;
  const double jacobian[] = {0, 0, 0, 0, 1, 0};
  for (int k = 0; k < 6; ++k) EXPECT_NEAR(s["jacobian"]["rod"][k][0], jacobian[k], 1e-15) << k;
  const double position[] = {-2 * sine, 0, -2 * cosine}, velocity[] = {-4 * cosine, 0, 4 * sine};
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(s["center_of_mass"]["position"][k], position[k], 1e-15) << k;
    EXPECT_NEAR(s["center_of_mass"]["velocity"][k], velocity[k], 1e-14) << k;
    EXPECT_NEAR(s["momentum"]["linear"][k], 3 * velocity[k], 1e-14) << k;
    EXPECT_NEAR(s["momentum"]["angular"][k], k == 1 ? 0.5 * 2 : 0, 1e-14) << k;
  }
  const json &A = s["step_jacobians"]["A"], &B = s["step_jacobians"]["B"];
  EXPECT_NEAR(A[1][0], step * slope / M, 1e-14);
  EXPECT_NEAR(A[0][0], 1 + step * step * slope / M, 1e-15);
  EXPECT_NEAR(A[1][1], 1, 1e-15);
  EXPECT_NEAR(A[0][1], step, 1e-16);
  EXPECT_NEAR(B[1][0], step / M, 1e-17);
  EXPECT_NEAR(B[0][0], step * step / M, 1e-18);
}

TEST_F(SimctlRobotTest, DynamicsIsConsistent) {
  // A pendulum: M = m l² + J, h = m g l sin θ, energy −m g l cos θ, ∂q̈/∂θ = −m g l cos θ / M.
  const std::string file =
      write("pendulum.urdf",
            "<robot name=\"p\"><link name=\"world\"/><link name=\"rod\"><inertial><origin xyz=\"0 0 -2\"/>"
            "<mass value=\"3\"/><inertia ixx=\"0.5\" iyy=\"0.5\" izz=\"0.1\"/></inertial></link>"
            "<joint name=\"hinge\" type=\"continuous\"><parent link=\"world\"/><child link=\"rod\"/>"
            "<axis xyz=\"0 1 0\"/></joint></robot>");
  const std::string states =
      write("states.json", R"([{"hinge": {"position": 0.5, "velocity": 2, "acceleration": 3, "effort": 4}}, {}])");
  const test::Outcome outcome = simctl({"dynamics", file, "--states", states});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json result = outcome.json();
  EXPECT_EQ(result["velocity_rows"], json({"hinge/velocity"}));
  ASSERT_EQ(result["states"].size(), 2u);
  const json& s = result["states"][0];
  const double M = 12.5, torque = 3 * 9.81 * 2;
  EXPECT_NEAR(s["mass_matrix"][0][0], M, 1e-14);
  EXPECT_NEAR(s["bias_force"][0], torque * std::sin(0.5), 1e-13);
  EXPECT_NEAR(s["inverse_dynamics"][0], M * 3 + torque * std::sin(0.5), 1e-13);
  EXPECT_NEAR(s["forward_dynamics"][0], (4 - torque * std::sin(0.5)) / M, 1e-14);
  EXPECT_NEAR(s["dynamics_derivatives"]["position"][0][0], -torque * std::cos(0.5) / M, 1e-14);
  EXPECT_NEAR(s["dynamics_derivatives"]["effort"][0][0], 1 / M, 1e-15);
  EXPECT_NEAR(s["energy"]["kinetic"], 0.5 * M * 4, 1e-13);
  EXPECT_NEAR(s["energy"]["potential"], -torque * std::cos(0.5), 1e-13);
  EXPECT_NEAR(s["poses"]["rod"]["rotation"][0][2], std::sin(0.5), 1e-15);
  EXPECT_EQ(result["states"][1]["bias_force"][0], 0);
  expect_motion_of_the_rod(s);
}

TEST_F(SimctlRobotTest, DynamicsRefusesWrongStates) {
  const auto said = [&](const std::string& text) {
    const test::Outcome outcome = simctl({"dynamics", robot("arm"), "--quiet", "--states", write("s.json", text)});
    EXPECT_EQ(outcome.exit, 3) << text;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    return outcome.err;
  };
  EXPECT_NE(said("[").find("expected valid JSON"), std::string::npos);
  EXPECT_NE(said("3").find("expected a list of states"), std::string::npos);
  EXPECT_NE(said("[3]").find("s.json: 0: expected an object"), std::string::npos);
  EXPECT_NE(said(R"([{"waits": {}}])").find("0/waits: expected the name of a joint"), std::string::npos);
  EXPECT_NE(
      said(R"([{"waist": {"posture": 1}}])").find("expected one of the keys acceleration, effort, position, velocity"),
      std::string::npos);
  EXPECT_NE(said(R"([{"waist": {"position": [1, 2]}}])").find("expected 1 numbers"), std::string::npos);
  EXPECT_NE(said(R"([{"waist": {"position": "x"}}])").find("expected numbers"), std::string::npos);
  EXPECT_EQ(simctl({"dynamics", robot("arm"), "--quantity", "mass"}).exit, 2);
  EXPECT_EQ(simctl({"dynamics", scene("four_bar")}).exit, 2);  // of loops there is none of this
}

TEST_F(SimctlRobotTest, ConvertedScenesMoveTheSame) {
  ASSERT_EQ(simctl({"convert", robot("quadruped"), "--set", "model/base=floating", "-o", "q.yaml", "--quiet"}).exit, 0);
  EXPECT_EQ(simctl({"convert", robot("quadruped"), "-o", "q.yaml", "--quiet"}).exit, 2);  // exists
  const std::vector<std::string> end{"--set", "simulation/duration=0.2 s", "--output", "-", "--quiet"};
  std::vector<std::string> own{"run", robot("quadruped"), "--set", "model/base=floating"}, again{"run", "q.yaml"};
  own.insert(own.end(), end.begin(), end.end());
  again.insert(again.end(), end.begin(), end.end());
  const test::Outcome a = simctl(own), b = simctl(again);
  EXPECT_EQ(a.exit, 0) << a.err;
  EXPECT_FALSE(a.out.empty());
  EXPECT_EQ(a.out, b.out);
}

TEST_F(SimctlRobotTest, StrictRefusesWhatIsNotTakenOver) {
  EXPECT_EQ(simctl({"validate", robot("arm")}).exit, 0);
  EXPECT_EQ(simctl({"validate", robot("arm"), "--strict"}).exit, 0);
  std::string text = read(robot("arm"));
  const std::string dynamics = "<dynamics damping";
  text.insert(text.find(dynamics), "<safety_controller k_velocity=\"1\"/>");
  const std::string guarded = write("guarded.urdf", text);
  EXPECT_EQ(simctl({"validate", guarded}).exit, 0);
  const test::Outcome outcome = simctl({"validate", guarded, "--strict"});
  EXPECT_EQ(outcome.exit, 3);
  EXPECT_NE(outcome.err.find("guarded.urdf:18:5"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("<safety_controller>"), std::string::npos) << outcome.err;
}

TEST_F(SimctlRobotTest, SweepsGoOverWhatTheRobotBrings) {
  const test::Outcome outcome = simctl({"sweep", robot("arm"), "--set", "joints/waist/damping=0.1,0.2,0.3", "--quiet"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(test::parse_csv(outcome.out).size(), 4u) << outcome.out;
}

TEST_F(SimctlRobotTest, ShippedRobotsReachTheirGoals) {
  for (const char* const name : {"robot_reach", "robot_stand"}) {
    const test::Outcome outcome = simctl({"optimize", scene(name), "--quiet", "--output", name});
    EXPECT_EQ(outcome.exit, 0) << name << "\n" << outcome.err;
    EXPECT_EQ(simctl({"run", std::string(name) + "/result.yaml", "--output", "-", "--quiet"}).exit, 0) << name;
  }
}

}  // namespace
}  // namespace backdrive
