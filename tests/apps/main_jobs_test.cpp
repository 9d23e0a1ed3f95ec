// The main jobs: each is optimised from the scene as it is shipped, and its result, replayed, does what was asked.
#include <cmath>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlMainJobsTest : public SimctlTest {
 protected:
  nlohmann::json loss_terms_;  ///< of the replay
  /// Optimises a shipped scene and replays the result; the last state by joint.
  nlohmann::json optimise_and_replay(const std::string& name) {
    const Outcome o = simctl({"optimize", scene(name), "--output", "out", "--json"});
    EXPECT_EQ(o.exit, 0) << o.err << o.out;
    const Outcome replay = simctl({"run", "out/result.yaml", "--output", "replay", "--json"});
    EXPECT_EQ(replay.exit, 0) << replay.err;
    const nlohmann::json object = replay.json();
    loss_terms_ = object.at("loss_terms");
    return object.at("final_state");
  }
  /// Largest control of a joint over the replay.
  double largest_effort(const std::string& joint) {
    const Rows rows = parse_csv(read("replay/trajectory.csv"));
    size_t column = 0;
    while (column < rows[0].size() && rows[0][column] != joint + "/effort") ++column;
    double largest = 0;
    for (size_t i = 1; i + 1 < rows.size(); ++i) largest = std::max(largest, std::abs(number(rows[i].at(column))));
    return largest;
  }
  static double angle(const nlohmann::json& state, const std::string& joint) {
    return std::remainder(state.at(joint).at("position").get<double>(), 2 * M_PI);
  }
};

TEST_F(SimctlMainJobsTest, CartPoleStands) {
  const nlohmann::json state = optimise_and_replay("cartpole_swingup");
  EXPECT_NEAR(angle(state, "hinge"), 0, 0.05);
  EXPECT_NEAR(state.at("hinge").at("velocity"), 0, 0.1);
  EXPECT_NEAR(state.at("slider").at("velocity"), 0, 0.1);
  EXPECT_LE(largest_effort("slider"), 20);
}

TEST_F(SimctlMainJobsTest, PendulumStands) {
  const nlohmann::json state = optimise_and_replay("pendulum_swingup");
  EXPECT_NEAR(angle(state, "hinge"), 0, 0.05);
  EXPECT_NEAR(state.at("hinge").at("velocity"), 0, 0.1);
  EXPECT_LE(largest_effort("hinge"), 2.5);
}

TEST_F(SimctlMainJobsTest, ArmReaches) {
  optimise_and_replay("arm_reach");
  // The terms are weight · error²: 1 cm and 0.02 rad with the weights of the scene.
  EXPECT_LE(loss_terms_.at("terminal/tool/position"), 1000 * 0.01 * 0.01);
  EXPECT_LE(loss_terms_.at("terminal/tool/orientation"), 100 * 0.02 * 0.02);
}

TEST_F(SimctlMainJobsTest, EveryShippedSceneIsValid) {
  for (const char* name : {"pendulum_swingup", "cartpole_swingup", "double_pendulum", "arm_reach", "chain32"}) {
    EXPECT_EQ(simctl({"validate", scene(name)}).exit, 0) << name;
  }
}

}  // namespace
}  // namespace backdrive::test
