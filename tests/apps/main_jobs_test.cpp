// The main jobs: each is optimised from the scene as it is shipped, and its result, replayed, does what was asked.
#include <algorithm>
#include <cmath>
#include <filesystem>

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

// What `simctl run` writes is a record as it stands: its own run follows it exactly, and another finds what was
// different.
TEST_F(SimctlMainJobsTest, ARunIsARecord) {
  ASSERT_EQ(simctl({"run", write("film.yaml", kPendulum), "--output", "film"}).exit, 0);
  const std::string again = write("again.yaml", kPendulum);
  const std::string follow =
      "optimize/loss={running: [{joint: hinge, position: {file: film/trajectory.csv}, velocity: {file: "
      "film/trajectory.csv}, from: 0.1 s}]}";
  const Outcome same = simctl({"run", again, "--set", follow, "--json"});
  ASSERT_EQ(same.exit, 0) << same.err;
  EXPECT_EQ(same.json().at("loss"), 0);
  for (const std::string precision : {"float64", "float32"}) {
    const Outcome found = simctl({"optimize",        again,
                                  "--set",           follow,
                                  "--set",           "joints/hinge/damping=0.5",
                                  "--set",           "optimize/variables=[{parameter: joints/hinge/damping}]",
                                  "--set",           "optimize/starts=1",
                                  "--set",           "optimize/goal=1e-6",
                                  "--precision",     precision,
                                  "--memory-budget", "16KiB",
                                  "--output",        "out",
                                  "--force",         "--json"});
    ASSERT_EQ(found.exit, 0) << found.err << found.out;
    EXPECT_NEAR(found.json().at("found").at("joints/hinge/damping"), 0.02, 1e-3);
    EXPECT_EQ(found.json().at("memory_plan").get<std::string>().find("every one"), std::string::npos);
    const std::string result = read("out/result.yaml");
    EXPECT_NEAR(std::stod(result.substr(result.find("damping: ") + 9)), 0.02, 1e-3) << precision;
  }
}

// And its loop is closed: the tip of the rocker is where the coupler has it.
TEST_F(SimctlMainJobsTest, FourBarLeans) {
  const nlohmann::json state = optimise_and_replay("four_bar");
  const double crank = angle(state, "motor"), coupler = crank + angle(state, "crank_pin"),
               rocker = angle(state, "pivot");
  EXPECT_NEAR(rocker, -20 * M_PI / 180, 0.01);
  EXPECT_NEAR(state.at("pivot").at("velocity"), 0, 0.1);
  EXPECT_LE(largest_effort("motor"), 20);
  const auto x = [](double turn, double x, double z) { return x * std::cos(turn) + z * std::sin(turn); };
  const auto z = [](double turn, double x, double z) { return z * std::cos(turn) - x * std::sin(turn); };
  EXPECT_NEAR(x(crank, 0, 0.1) + x(coupler, 0.4, 0.3), 0.4 + x(rocker, 0, 0.4), 1e-4);
  EXPECT_NEAR(z(crank, 0, 0.1) + z(coupler, 0.4, 0.3), z(rocker, 0, 0.4), 1e-4);
  EXPECT_NEAR(angle(state, "rocker_pin"), rocker - coupler, 1e-4);
}

TEST_F(SimctlMainJobsTest, OpenLoopsAreToldOf) {
  const auto warnings = [&](const std::string& z, const std::string& y) {
    return simctl({"validate", scene("four_bar"), "--json", "--set", "joints/rocker_pin/child_frame/position/z=" + z,
                   "--set", "joints/rocker_pin/child_frame/position/y=" + y})
        .json()
        .at("warnings");
  };
  EXPECT_TRUE(warnings("0.4", "0").empty());
  EXPECT_TRUE(warnings("0.4004", "0").empty());  // rounded in the third decimal
  const nlohmann::json open = warnings("0.404", "0.003");
  ASSERT_EQ(open.size(), 1);
  EXPECT_NE(open[0].get<std::string>().find("'rocker_pin' closes is open at the start, by 5 mm and 0 degrees"),
            std::string::npos)
      << open;
  const Outcome o = simctl({"validate", scene("four_bar"), "--set", "joints/rocker_pin/child_frame/position/z=0.41"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_NE(o.out.find("warning: the loop"), std::string::npos) << o.out;
}

TEST_F(SimctlMainJobsTest, GradientsOfALoopAreChecked) {
  const Outcome o = simctl({"gradcheck", scene("four_bar"), "--controls", "4", "--set", "simulation/duration=0.1",
                            "--set", "simulation/time_step=0.01", "--json"});
  EXPECT_EQ(o.exit, 0) << o.err << o.out;
}

/// Every scene that lies in scenes/, by name.
std::vector<std::string> shipped_scenes() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kRepository + "/scenes")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

class SimctlShippedSceneTest : public SimctlMainJobsTest, public testing::WithParamInterface<std::string> {};

TEST_P(SimctlShippedSceneTest, IsOptimisedToItsGoal) {
  const Outcome o = simctl({"optimize", scene(GetParam()), "--output", "out", "--json"});
  EXPECT_EQ(o.exit, 0) << o.err << o.out;
  const nlohmann::json result = o.json();
  ASSERT_TRUE(result.contains("goal")) << "a scene that is shipped says what is asked for";
  EXPECT_LE(result.at("loss"), result.at("goal"));
  // At a goal nothing is said of gradients unless one asks. Losses of what meets something on its way do jump, if
  // little; those that only bend, as chain32's, are not taken for such.
  EXPECT_EQ(o.err.find("cannot be trusted"), std::string::npos) << o.err;
  const Rows history = parse_csv(read("out/history.csv"));
  const std::size_t contacts = std::ranges::find(history[0], "contacts_made") - history[0].begin();
  if (contacts < history[0].size() && number(history.back()[contacts]) > 0) return;
  const Outcome gradient = simctl({"gradient", "out/result.yaml"});
  EXPECT_EQ(gradient.exit, 0) << gradient.err;
  EXPECT_EQ(gradient.err.find("cannot be trusted"), std::string::npos) << gradient.err;
}
INSTANTIATE_TEST_SUITE_P(Scenes, SimctlShippedSceneTest, testing::ValuesIn(shipped_scenes()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace backdrive::test
