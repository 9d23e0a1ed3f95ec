// Every command on a device: the one that the processor plays does what a GPU would.
#include <algorithm>
#include <cmath>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlDeviceTest : public SimctlTest {
 protected:
  void SetUp() override {
    SimctlTest::SetUp();
    pendulum_ = write("pendulum.yaml", kPendulum);
  }
  /// What the command prints as JSON here and there.
  std::pair<nlohmann::json, nlohmann::json> both(std::vector<std::string> arguments, const std::string& device) {
    arguments.push_back("--json");
    const Outcome here = simctl(arguments);
    arguments.insert(arguments.end(), {"--device", device});
    const Outcome there = simctl(arguments);
    EXPECT_EQ(there.exit, here.exit) << there.err;
    return {here.json(), there.json()};
  }
  std::string pendulum_;
};

TEST_F(SimctlDeviceTest, Run) {
  const auto [here, there] = both({"run", pendulum_}, "emulated");
  const double x = here.at("final_state").at("hinge").at("position"),
               y = there.at("final_state").at("hinge").at("position");
  EXPECT_NE(x, 0);
  EXPECT_NEAR(y, x, 1e-9 * std::abs(x));
  EXPECT_NEAR(there.at("loss").get<double>(), here.at("loss").get<double>(), 1e-9 * here.at("loss").get<double>());
}

TEST_F(SimctlDeviceTest, OptimizeOnSeveral) {
  for (const char* method : {"adam", "lbfgs"}) {
    const Outcome o = simctl({"optimize", pendulum_, "--device", "emulated:0,1", "--worlds", "5", "--iterations", "3",
                              "--set", std::string("optimize/method=") + method, "--json", "--report-memory"});
    EXPECT_TRUE(o.exit == 0 || o.exit == 1) << o.err;
    const nlohmann::json object = o.json();
    EXPECT_TRUE(std::isfinite(object.at("loss").get<double>())) << method;
    EXPECT_EQ(object.at("starts").size(), 5u);
    EXPECT_GT(object.at("memory").at("emulated:0").at("peak_bytes").get<std::size_t>(), 0u);
    EXPECT_GT(object.at("memory").at("emulated:1").at("peak_bytes").get<std::size_t>(), 0u);
    EXPECT_EQ(object.at("memory").at("emulated:1").at("live_bytes").get<std::size_t>(), 0u);
    EXPECT_NE(o.err.find("emulated:0, emulated:1"), std::string::npos) << o.err;
  }
}

TEST_F(SimctlDeviceTest, Gradcheck) {
  const Outcome o = simctl({"gradcheck", pendulum_, "--device", "emulated", "--set", "simulation/steps=20", "--json"});
  EXPECT_EQ(o.exit, 0) << o.err;
  EXPECT_TRUE(o.json().at("passed").get<bool>());
}

// A loop, stepped by the semi-implicit integrator: optimised to its goal, run again, and its gradient checked.
TEST_F(SimctlDeviceTest, Loops) {
  const Outcome found = simctl({"optimize", scene("four_bar"), "--device", "emulated", "--output", "out", "--json"});
  ASSERT_EQ(found.exit, 0) << found.err;
  const double loss = found.json().at("loss");
  EXPECT_LT(loss, 1e-2);
  const auto [here, there] = both({"run", "out/result.yaml"}, "emulated");
  for (const char* joint : {"motor", "crank_pin", "pivot", "rocker_pin"}) {
    const double x = here.at("final_state").at(joint).at("position"),
                 y = there.at("final_state").at(joint).at("position");
    EXPECT_NE(x, 0);
    EXPECT_NEAR(y, x, 1e-6) << joint;
  }
  EXPECT_NEAR(there.at("loss").get<double>(), loss, 1e-6);
  const Outcome checked = simctl({"gradcheck", scene("four_bar"), "--device", "emulated", "--controls", "4", "--set",
                                  "simulation/duration=0.1", "--set", "simulation/time_step=0.01", "--json"});
  EXPECT_EQ(checked.exit, 0) << checked.err << checked.out;
}

TEST_F(SimctlDeviceTest, ContactOfLooseBodies) {
  const auto [here, there] =
      both({"run", scene("bounce_throw"), "--set", "simulation/integrator=semi_implicit"}, "emulated");
  const double x = here.at("loss"), y = there.at("loss");
  EXPECT_GT(x, 0);
  EXPECT_NEAR(y, x, 1e-9 * x);
}

TEST_F(SimctlDeviceTest, Sweep) {
  const auto [here, there] = both({"sweep", pendulum_, "--set", "joints/hinge/damping=0,0.01,0.1"}, "emulated:0,2");
  ASSERT_EQ(there.at("rows").size(), 3u);
  const auto names = here.at("columns").get<std::vector<std::string>>();
  const auto loss = std::find(names.begin(), names.end(), "loss") - names.begin();
  for (int k = 0; k < 3; ++k) {
    const double x = here.at("rows")[k][loss], y = there.at("rows")[k][loss];
    EXPECT_NE(x, 0);
    EXPECT_NEAR(y, x, 1e-9 * std::abs(x)) << k;
  }
}

TEST_F(SimctlDeviceTest, Bench) {
  const Outcome o = simctl({"bench", pendulum_, "--device", "emulated", "--worlds", "4", "--repeat", "1", "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const nlohmann::json object = o.json();
  ASSERT_EQ(object.at("measurements").size(), 2u);
  for (const nlohmann::json& m : object.at("measurements")) {
    EXPECT_EQ(m.at("device"), "emulated:0");
    EXPECT_GT(m.at("forward").at("world_steps_per_second").get<double>(), 0);
    EXPECT_GT(m.at("bytes_per_world_step").at("forward_and_gradient").get<double>(), 0);
    EXPECT_EQ(m.at("allocations_after_first_iteration"), 0);
  }
  EXPECT_EQ(simctl({"bench", pendulum_, "--device", "emulated", "--worlds", "4", "--repeat", "1"}).exit, 0);
}

TEST_F(SimctlDeviceTest, WrongNames) {
  EXPECT_EQ(simctl({"run", pendulum_, "--device", "gpu"}).exit, 2);
  EXPECT_EQ(simctl({"run", pendulum_, "--device", "emulated:7"}).exit, 5);
}

TEST_F(SimctlDeviceTest, InfoSaysWhatThereIs) {
  const nlohmann::json cuda = simctl({"info", "--json"}).json().at("cuda");
  EXPECT_TRUE(cuda.at("devices").get<int>() > 0 || !cuda.at("why_none").get<std::string>().empty());
}

}  // namespace
}  // namespace backdrive::test
