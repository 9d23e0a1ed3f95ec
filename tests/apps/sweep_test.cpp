// simctl sweep, bench and gradcheck.
#include <algorithm>
#include <csignal>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlSweepTest : public SimctlTest {
 protected:
  void SetUp() override {
    SimctlTest::SetUp();
    pendulum_ = write("pendulum.yaml", kPendulum);
  }
  size_t column(const Rows& rows, const std::string& name) {
    const auto at = std::find(rows.at(0).begin(), rows.at(0).end(), name);
    EXPECT_NE(at, rows[0].end()) << name;
    return at - rows[0].begin();
  }
  std::string pendulum_;
};

TEST_F(SimctlSweepTest, EveryPointIsWhatRunGives) {
  // Parameters and initial states become worlds of one batch, the time step makes batches of its own.
  const Outcome o = simctl({"sweep", pendulum_, "--set", "joints/hinge/damping=0,0.01,0.1", "--set",
                            "simulation/time_step=10 ms,5 ms", "--set", "initial_state/hinge/position=90 deg,10 deg"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const Rows rows = parse_csv(o.out);
  ASSERT_EQ(rows.size(), 13u);
  const size_t q = column(rows, "final/hinge/position"), loss = column(rows, "loss");
  for (size_t i = 1; i < rows.size(); ++i) {
    const nlohmann::json alone =
        simctl({"run", pendulum_, "--json", "--set", "joints/hinge/damping=" + rows[i][0], "--set",
                "simulation/time_step=" + rows[i][1], "--set", "initial_state/hinge/position=" + rows[i][2]})
            .json();
    EXPECT_EQ(rows[i][3], "ok");
    EXPECT_EQ(number(rows[i][q]), alone.at("final_state").at("hinge").at("position").get<double>()) << i;
    EXPECT_EQ(number(rows[i][loss]), alone.at("loss").get<double>()) << i;
  }
}

TEST_F(SimctlSweepTest, AStoppedPointSaysSoAndTheOthersGoOn) {
  const Outcome o =
      simctl({"sweep", pendulum_, "--set", "initial_state/hinge/velocity=0,1e200,1", "--output", "sweep.csv"});
  EXPECT_EQ(o.exit, 4);
  const Rows rows = parse_csv(read("sweep.csv"));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1][1], "ok");
  EXPECT_EQ(rows[2][1], "non-finite in step 0 at joint hinge");
  EXPECT_EQ(rows[2][2], "");
  EXPECT_EQ(rows[3][1], "ok");
}

TEST_F(SimctlSweepTest, ValuesMayBeLists) {
  const Outcome o = simctl({"sweep", pendulum_, "--set", "gravity=[0, 0, -9.81],[0, 0, 0]", "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const nlohmann::json object = o.json();
  ASSERT_EQ(object.at("rows").size(), 2u);
  EXPECT_EQ(object.at("rows")[1][0], "[0, 0, 0]");
  EXPECT_EQ(object.at("columns")[0], "gravity");
}

TEST_F(SimctlSweepTest, OptimizesEachPoint) {
  const Outcome o =
      simctl({"sweep", pendulum_, "--do", "optimize", "--set", "bodies/rod/mass=0.5,1,2", "--threads", "2"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const Rows rows = parse_csv(o.out);
  ASSERT_EQ(rows.size(), 4u);
  const Outcome alone = simctl({"optimize", pendulum_, "--set", "bodies/rod/mass=0.5", "--json"});
  EXPECT_EQ(number(rows[1][column(rows, "loss")]), alone.json().at("loss").get<double>());
}

TEST_F(SimctlSweepTest, InterruptedSweepsKeepTheRowsThatTheySay) {
  Settings settings;
  settings.interrupt_at = " of 4000";  // some points are done
  std::string masses = "bodies/rod/mass=1";
  for (int i = 1; i < 4000; ++i) masses += "," + std::to_string(1 + 0.001 * i);
  // Half a minute and more for all of them.
  const Outcome o = simctl(
      {"sweep", pendulum_, "--set", masses, "--set", "simulation/duration=500", "--output", "sweep.csv"}, settings);
  EXPECT_EQ(o.exit, 130) << o.err;
  const size_t rows = parse_csv(read("sweep.csv")).size() - 1;
  EXPECT_GT(rows, 0u);
  EXPECT_LT(rows, 4000u);
  EXPECT_NE(o.err.find("interrupted after " + std::to_string(rows) + " of 4000 points"), std::string::npos) << o.err;
}

TEST_F(SimctlSweepTest, SweepsInterruptedAtOnceWriteNothing) {
  Settings settings;
  settings.interrupt_at = "sweeping";
  settings.signals = {SIGTERM};
  const Outcome o = simctl({"sweep", pendulum_, "--do", "optimize", "--set", "bodies/rod/mass=1,2,3,4,5,6,7,8,9",
                            "--set", "optimize/tolerance=0", "--set", "optimize/goal=0", "--set",
                            "optimize/method=adam", "--set", "optimize/iterations=1000000", "--output", "sweep.csv"},
                           settings);
  EXPECT_EQ(o.exit, 130) << o.err;
  EXPECT_NE(o.err.find("nothing is written"), std::string::npos) << o.err;
  EXPECT_EQ(entries(), std::vector<std::string>{"pendulum.yaml"});
}

TEST_F(SimctlSweepTest, ErrorsLeaveNothing) {
  EXPECT_EQ(simctl({"sweep", pendulum_, "--set", "bodies/rod/mass=1,-1", "--output", "sweep.csv"}).exit, 3);
  EXPECT_EQ(simctl({"sweep", pendulum_, "--set", "bodies/rod/mass=1,,2"}).exit, 2);
  EXPECT_EQ(simctl({"sweep", pendulum_, "--set", "bodies/rod/mass=1", "--set", "bodies/rod/mass=2"}).exit, 2);
  EXPECT_EQ(simctl({"sweep", pendulum_, "--set", "bodies/rod/mass=1", "--output", "pendulum.yaml"}).exit, 2);
  EXPECT_EQ(entries(), std::vector<std::string>{"pendulum.yaml"});
}

// Long runs go by pieces of steps, between which a signal is seen; the seam is not.
TEST_F(SimctlSweepTest, LongRunsGoByPieces) {
  const std::string steps = "simulation={time_step: 1 ms, steps: 1100000}";
  const Outcome swept =
      simctl({"sweep", pendulum_, "--set", steps, "--set", "joints/hinge/damping=0.1,0.2", "--json", "--quiet"});
  ASSERT_EQ(swept.exit, 0) << swept.err;
  const nlohmann::json rows = swept.json();
  const auto column = [&](const std::string& name) {
    const auto& columns = rows.at("columns");
    return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  for (std::size_t k = 0; k < 2; ++k) {
    const nlohmann::json run = simctl({"run", pendulum_, "--set", steps, "--set",
                                       k == 0 ? "joints/hinge/damping=0.1" : "joints/hinge/damping=0.2", "--output",
                                       "out" + std::to_string(k), "--json", "--quiet"})
                                   .json();
    EXPECT_EQ(rows.at("rows")[k].at(column("loss")), run.at("loss"));
    EXPECT_EQ(rows.at("rows")[k].at(column("final/hinge/position")), run.at("final_state").at("hinge").at("position"));
  }
  // A world that stops says when, and its state is that of then.
  const auto stopped = [&](const std::string& simulation) {
    nlohmann::json row = simctl({"sweep", pendulum_, "--set", simulation, "--set",
                                 "gravity=[0, 0, -1e308],[0, 0, -9.81]", "--json", "--quiet"})
                             .json()
                             .at("rows")[0];
    row.erase(0);
    return row;
  };
  const nlohmann::json row = stopped(steps);
  EXPECT_NE(row.dump().find("non-finite in step"), std::string::npos) << row;
  EXPECT_EQ(row, stopped("simulation={time_step: 1 ms, steps: 1000}"));
}

TEST_F(SimctlSweepTest, AnInterruptCutsALongRun) {
  Settings settings;
  settings.interrupt_at = "sweeping";
  const Outcome o = simctl({"sweep", pendulum_, "--set", "simulation={time_step: 0.1 ms, steps: 10000000}", "--set",
                            "joints/hinge/damping=0,0.1,0.2,0.3,0.4,0.5,0.6,0.7", "--set", "bodies/rod/mass=1,2",
                            "--threads", "1", "--output", "sweep.csv"},
                           settings);
  EXPECT_EQ(o.exit, 130) << o.err;
  EXPECT_NE(o.err.find("interrupted before a point was done"), std::string::npos) << o.err;
  EXPECT_EQ(entries(), std::vector<std::string>{"pendulum.yaml"});
}

TEST_F(SimctlSweepTest, GradcheckPasses) {
  const Outcome o = simctl({"gradcheck", pendulum_, "--set", "simulation/duration=0.3", "--controls", "4", "--json"});
  EXPECT_EQ(o.exit, 0) << o.err;
  const nlohmann::json object = o.json();
  EXPECT_TRUE(object.at("passed"));
  EXPECT_GT(object.at("rows").size(), 5u);
  const Outcome table = simctl({"gradcheck", pendulum_, "--set", "simulation/duration=0.3", "--controls", "4"});
  EXPECT_NE(table.out.find("bodies/rod/mass"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("all pass"), std::string::npos) << table.out;
}

TEST_F(SimctlSweepTest, BenchMeasuresAndAllocatesOnce) {
  const Outcome o = simctl({"bench", pendulum_, "--worlds", "64", "--steps", "50", "--repeat", "2", "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const nlohmann::json result = o.json();
  for (const nlohmann::json& m : result.at("measurements")) {
    EXPECT_GT(m.at("forward").at("world_steps_per_second"), 0);
    const double forward = m.at("forward").at("seconds"), both = m.at("forward_and_gradient").at("seconds");
    EXPECT_NEAR(m.at("ratio"), both / forward, 1e-12 * both / forward);  // how large it is a busy machine decides
    EXPECT_EQ(m.at("allocations_after_first_iteration"), 0);
  }
  EXPECT_EQ(
      simctl({"bench", pendulum_, "--worlds", "16", "--steps", "10", "--precision", "float32", "--threads", "1"}).exit,
      0);
}

}  // namespace
}  // namespace backdrive::test
