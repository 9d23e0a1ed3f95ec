// Shapes that went through each other are told, with what would have stopped them.
#include <regex>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlCrossingsTest : public SimctlTest {
 protected:
  /// A ball of 5 cm at 20 m/s against a box of 4 cm, too soft to stop it; `scored`: with a loss.
  std::string ball(bool scored) const {
    return write("ball.yaml", std::string(R"(
simulation: {duration: 0.05 s, time_step: 0.0020833333333}
model:
  gravity: [0, 0, 0]
  bodies: {ball: {shapes: [{density: 1000, geometry: {type: sphere, scale: 5 cm}, material: {stiffness: 1}}]}}
  joints: {flight: {type: free, child: ball}}
  shapes: {box: {body: world, geometry: {type: box, scale: [2 cm, 2 cm, 2 cm]}}}
initial_state: {flight: {position: [0, 0, 0.3], velocity: [0, 0, -20]}}
)") + (scored ? R"(
optimize:
  variables: [{initial_state: flight, quantity: velocity, bounds: [-30, 30]}]
  loss: {terminal: [{body: ball, position: [0, 0, 0]}]}
  iterations: 0
)"
              : ""));
  }
  static std::string told() { return "shapes 'ball' and 'box' go through each other in step "; }
};

TEST_F(SimctlCrossingsTest, RunTellsWhichWhenAndWhatWouldDo) {
  const Outcome o = simctl({"run", ball(false), "--json"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_NE(o.err.find(told()), std::string::npos) << o.err;
  const nlohmann::json crossings = o.json().at("crossings");
  EXPECT_EQ(crossings.at("count"), 1);
  EXPECT_EQ(crossings.at("first").at("shapes"), nlohmann::json({"ball", "box"}));
  EXPECT_EQ(crossings.at("first").at("world"), 0);
  const double time = crossings.at("first").at("time");
  EXPECT_NEAR(time, 0.23 / 20, 0.005);  // when it meets the box, and a little later
  std::smatch found;
  ASSERT_TRUE(std::regex_search(o.err, found, std::regex("contact of ([0-9.e+]+) N/m .*substeps: ([0-9]+)"))) << o.err;
  for (int phase = 0; phase < 10; ++phase) {
    const Outcome held = simctl({"run", "ball.yaml", "--json", "--set",
                                 "model/bodies/ball/shapes/0/material/stiffness=" + found[1].str(), "--set",
                                 "simulation/substeps=" + found[2].str(), "--set",
                                 "initial_state/flight/position/2=" + std::to_string(0.3 + phase * 0.002)});
    EXPECT_EQ(held.json().at("crossings").at("count"), 0);
    EXPECT_EQ(held.err.find("go through"), std::string::npos) << held.err;
    EXPECT_GT(held.json().at("final_state").at("flight").at("position").at(2), 0.05);
  }
}

TEST_F(SimctlCrossingsTest, OptimisationsAndGradientChecksTellItToo) {
  const Outcome optimised = simctl({"optimize", ball(true), "--json"});
  EXPECT_NE(optimised.err.find("go through each other"), std::string::npos) << optimised.err;
  EXPECT_GE(optimised.json().at("crossings").at("count"), 1);
  const Outcome checked = simctl({"gradcheck", "ball.yaml", "--at", "scene"});
  EXPECT_NE(checked.err.find("at scene: " + told()), std::string::npos) << checked.err;
}

TEST_F(SimctlCrossingsTest, SweepsTellAtWhichPoints) {
  const std::vector<std::string> command = {"sweep", ball(true), "--set", "initial_state/flight/velocity/2=-1,-20,-40"};
  for (const char* precision : {"float64", "float32"}) {
    std::vector<std::string> own = command;
    own.insert(own.end(), {"--precision", precision});
    const Outcome o = simctl(own);
    EXPECT_EQ(o.exit, 0);
    EXPECT_EQ(o.err.find("2=-1: shapes"), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("2=-20: " + told()), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("2=-40: " + told()), std::string::npos) << o.err;
  }
}

TEST_F(SimctlCrossingsTest, WhatBeginsInsideIsTold) {
  const Outcome o = simctl({"run", ball(false), "--set", "initial_state/flight/position=[0, 0, 0.01]"});
  EXPECT_NE(o.err.find("shapes 'ball' and 'box' begin so deep in one another"), std::string::npos) << o.err;
}

TEST_F(SimctlCrossingsTest, NoSceneOfOursIsToldOf) {
  int scenes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRepository + "/scenes")) {
    if (entry.path().extension() != ".yaml") continue;
    ++scenes;
    const Outcome o = simctl({"run", entry.path().string()});
    EXPECT_EQ(o.exit, 0) << entry.path();
    for (const char* words : {"go through", "lies under", "begin so deep"}) {
      EXPECT_EQ(o.err.find(words), std::string::npos) << entry.path() << o.err;
    }
  }
  EXPECT_GT(scenes, 10);
}

}  // namespace
}  // namespace backdrive::test
