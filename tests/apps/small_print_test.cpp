// What users stumbled on: results that do not go on, options that are taken for others, paths and lists that are
// refused.
#include <algorithm>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

/// Two bodies, one of them without shapes, thrown.
constexpr const char* kThrow = R"(
simulation: {time_step: 10 ms, duration: 0.3 s}
model:
  bodies:
    ball: {shapes: [{density: 1000, geometry: {type: sphere, scale: 5 cm}}]}
    bob: {mass: 1, inertia: [0.1, 0.1, 0.1]}
  joints:
    flight: {type: free, child: ball}
    fall: {type: free, child: bob}
initial_state: {flight: {position: [0, 0, 5]}}
optimize:
  variables: [{initial_state: flight, quantity: velocity, initial: [0.5, 0, 1]}]
  loss: {terminal: [{body: ball, position: [1, 0, 5]}]}
)";

class SimctlSmallPrintTest : public SimctlTest {};

TEST_F(SimctlSmallPrintTest, AResultGoesOnFromWhatWasFound) {
  const std::string pendulum = write("pendulum.yaml", kPendulum);
  for (const char* starts : {"1", "4"}) {
    const std::string out = std::string("out") + starts, set = std::string("optimize/starts=") + starts;
    const std::string spread = "optimize/variables/0/initial={random: 2}";
    const Outcome first = simctl({"optimize", pendulum, "--output", out, "--iterations", "6", "--json", "--set", set,
                                  "--set", spread, "--set", "optimize/goal=1e-12"});
    ASSERT_EQ(first.exit, 1) << first.err;
    const Outcome again =
        simctl({"optimize", out + "/result.yaml", "--output", out + "again", "--iterations", "0", "--json"});
    EXPECT_LE(again.json().at("loss").get<double>(), first.json().at("loss").get<double>() * (1 + 1e-12)) << again.err;
  }
}

TEST_F(SimctlSmallPrintTest, TheHistorysIterationsRunForward) {
  const std::string pendulum = write("pendulum.yaml", kPendulum);
  simctl({"optimize", pendulum, "--output", "out", "--iterations", "30", "--worlds", "12", "--set",
          "optimize/variables/0/initial={random: 3}", "--set", "optimize/goal=1e-12"});
  const Rows history = parse_csv(read("out/history.csv"));
  ASSERT_GT(history.size(), 3u);
  for (std::size_t k = 2; k < history.size(); ++k) {
    EXPECT_GE(number(history[k][0]), number(history[k - 1][0])) << "row " << k;
  }
}

TEST_F(SimctlSmallPrintTest, SeedsAndSizesAreNotNegative) {
  const std::string pendulum = write("pendulum.yaml", kPendulum);
  for (const char* seed : {"-1", "", "99999999999999999999", "1.5", "0x10"}) {
    const Outcome o = simctl({"run", pendulum, "--output", "-", std::string("--seed=") + seed});
    EXPECT_EQ(o.exit, 2) << seed << o.err;
    EXPECT_NE(o.err.find("--seed"), std::string::npos) << o.err;
  }
  EXPECT_EQ(simctl({"run", pendulum, "--output", "-", "--seed", "18446744073709551615"}).exit, 0);
  for (const char* size : {"-1", "-1MiB", "x"}) {
    const Outcome o = simctl({"optimize", pendulum, std::string("--memory-budget=") + size});
    EXPECT_EQ(o.exit, 2) << size << o.err;
  }
}

TEST_F(SimctlSmallPrintTest, NumbersOfASweepAreNumbers) {
  const std::string pendulum = write("pendulum.yaml", kPendulum);
  const Outcome o = simctl({"sweep", pendulum, "--set", "joints/hinge/damping=0.1,0.2", "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const nlohmann::json object = o.json();
  ASSERT_EQ(object.at("rows").size(), 2u);
  EXPECT_EQ(object.at("rows")[1][0], 0.2);
  EXPECT_TRUE(object.at("columns")[0].is_string());
}

TEST_F(SimctlSmallPrintTest, AllMistakesAreObjects) {
  const std::string scene =
      write("wrong.yaml", "model:\n  bodies: {a: {mas: 1}}\n  joints: {j: {type: revolut, child: a}}\n");
  const Outcome o = simctl({"validate", scene, "--json", "--set", "simulation/time_step=1 m"});
  ASSERT_EQ(o.exit, 3);
  const nlohmann::json mistakes = o.json().at("error").at("mistakes");
  ASSERT_EQ(mistakes.size(), 3u) << mistakes;
  EXPECT_EQ(mistakes[0].at("file"), scene);
  EXPECT_EQ(mistakes[0].at("line"), 2);
  EXPECT_EQ(mistakes[0].at("column"), 16);
  EXPECT_EQ(mistakes[0].at("value"), "mas");
  EXPECT_EQ(mistakes[0].at("did_you_mean"), "mass");
  EXPECT_EQ(mistakes[1].at("path"), "model/joints/j/type");
  EXPECT_NE(mistakes[1].at("expected").get<std::string>().find("one of revolute"), std::string::npos);
  EXPECT_EQ(mistakes[2].at("file"), "--set simulation/time_step=1 m");
  EXPECT_FALSE(mistakes[2].contains("line"));
  // On a terminal a line each.
  std::size_t lines = 0;
  for (std::size_t at = o.err.find("error: "); at != std::string::npos; at = o.err.find("error: ", at + 1)) ++lines;
  EXPECT_EQ(lines, 3u) << o.err;
}

TEST_F(SimctlSmallPrintTest, AStarLeavesOutWhatHasNothing) {
  const std::string scene = write("throw.yaml", kThrow);
  const Outcome o = simctl({"validate", scene, "--set", "bodies/*/shapes/*/density=500"});
  EXPECT_EQ(o.exit, 0) << o.err;
  const Outcome none = simctl({"validate", scene, "--set", "bodies/bob/shapes/*/density=500"});
  EXPECT_EQ(none.exit, 3);
  EXPECT_NE(none.err.find("there are none"), std::string::npos) << none.err;
}

TEST_F(SimctlSmallPrintTest, AnInitialListForAllComponents) {
  const std::string scene = write("throw.yaml", kThrow);
  const Outcome o = simctl({"optimize", scene, "--output", "out", "--iterations", "0", "--json"});
  EXPECT_EQ(o.exit, 0) << o.err;
  const std::vector<double> found = o.json().at("found").get<std::map<std::string, double>>().size() == 3
                                        ? std::vector<double>{o.json()["found"]["initial_state/flight/velocity/x"],
                                                              o.json()["found"]["initial_state/flight/velocity/z"]}
                                        : std::vector<double>{};
  EXPECT_EQ(found, (std::vector<double>{0.5, 1}));
  const Outcome wrong = simctl({"validate", scene, "--set", "variables/0/initial=[1, 2]"});
  EXPECT_EQ(wrong.exit, 3);
  EXPECT_NE(wrong.err.find("1 or 3 numbers"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace backdrive::test
