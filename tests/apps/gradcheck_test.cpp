// What gradcheck says and leaves: no false alarm, what it could not resolve, a report for CI, a baseline.
#include <cmath>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlGradcheckTest : public SimctlTest {
 protected:
  void SetUp() override {
    SimctlTest::SetUp();
    write("pendulum.yaml", kPendulum);
  }
};

constexpr const char* kTennisBall = R"(
simulation: {duration: 1 s}
model:
  bodies: {ball: {mass: 58 g, inertia: [3e-5, 3e-5, 3e-5], shapes: [{geometry: {type: sphere, scale: 33 mm}}]}}
  joints: {fly: {type: free, child: ball}}
  shapes: {floor: {body: world, geometry: {type: plane}}}
optimize: {loss: {terminal: [{body: ball, position: [0, 0, 1]}]}}
)";

TEST_F(SimctlGradcheckTest, ABallThatBouncesIsNoAlarm) {
  const std::string ball = write("ball.yaml", kTennisBall);
  for (const char* const height : {"0.4", "0.6", "0.8", "1", "1.2", "1.5", "1.8", "2"}) {
    const Outcome o = simctl({"gradcheck", ball, "--quiet", "--json", "--set",
                              std::string("initial_state/fly/position=[0, 0, ") + height + "]"});
    EXPECT_EQ(o.exit, 0) << height << o.out;
    const nlohmann::json json = o.json();
    for (const auto& row : json.at("rows")) {
      const double dual = row.at("dual").at("value"), adjoint = row.at("adjoint");
      EXPECT_NEAR(adjoint, dual, 1e-9 * std::abs(dual) + 1e-9) << row.at("name");
    }
  }
}

// Zeros and what differences do not resolve are counted.
TEST_F(SimctlGradcheckTest, SaysWhatItCouldNotTell) {
  const Outcome o = simctl({"gradcheck", write("ball.yaml", kTennisBall), "--quiet", "--json", "--set",
                            "initial_state/fly/position=[0, 0, 5]", "--set", "simulation/duration=0.5"});
  ASSERT_EQ(o.exit, 0) << o.err;
  int zero = 0, unresolved = 0;
  const nlohmann::json json = o.json();
  for (const auto& row : json.at("rows")) {
    zero += row.at("used").get<bool>() && row.at("zero").get<bool>();
    unresolved += row.at("unresolved").get<bool>();
  }
  EXPECT_EQ(json.at("zero_rows"), zero);
  EXPECT_EQ(json.at("unresolved_rows"), unresolved);
  EXPECT_GT(zero, 10) << "it is still in the air";
  const Outcome words = simctl({"gradcheck", "ball.yaml", "--quiet", "--set", "initial_state/fly/position=[0, 0, 5]",
                                "--set", "simulation/duration=0.5"});
  EXPECT_NE(words.out.find(std::to_string(zero) + " rows zero here, which says little"), std::string::npos)
      << words.out;
}

TEST_F(SimctlGradcheckTest, WritesAReportForCi) {
  ASSERT_EQ(simctl({"gradcheck", "pendulum.yaml", "--quiet", "--junit", "report.xml"}).exit, 0);
  const std::string xml = read("report.xml");
  EXPECT_TRUE(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"")) << xml;
  EXPECT_NE(xml.find("failures=\"0\""), std::string::npos);
  EXPECT_NE(xml.find("<testcase classname=\"pendulum\" name=\"joints/hinge/damping\"/>"), std::string::npos) << xml;
  EXPECT_EQ(xml.find("<failure"), std::string::npos);
  EXPECT_EQ(simctl({"gradcheck", "pendulum.yaml", "--quiet", "--junit", "report.xml"}).exit, 2) << "it is there";
  // Names do no harm.
  write("name.yaml",
        std::string("name: \"<&\\\"x\"\n") + std::string(kPendulum).substr(std::string(kPendulum).find("simulation")));
  ASSERT_EQ(simctl({"gradcheck", "name.yaml", "--quiet", "--junit", "other.xml"}).exit, 0);
  EXPECT_NE(read("other.xml").find("classname=\"&lt;&amp;&quot;x\""), std::string::npos);
}

TEST_F(SimctlGradcheckTest, HoldsGradientsAgainstABaseline) {
  ASSERT_EQ(simctl({"gradcheck", "pendulum.yaml", "--quiet", "--record", "before.json"}).exit, 0);
  const Outcome same = simctl({"gradcheck", "pendulum.yaml", "--quiet", "--against", "before.json"});
  EXPECT_EQ(same.exit, 0) << same.out;
  EXPECT_NE(same.out.find("gradients as in before.json"), std::string::npos);
  const std::vector<std::string> heavier{
      "gradcheck", "pendulum.yaml", "--quiet", "--against", "before.json", "--set", "joints/hinge/damping=0.06"};
  const Outcome changed = simctl(heavier);
  EXPECT_EQ(changed.exit, 1);
  EXPECT_NE(changed.out.find("changed gradient"), std::string::npos) << changed.out;
  EXPECT_NE(changed.out.find("joints/hinge/damping"), std::string::npos);
  std::vector<std::string> loose = heavier;
  loose.insert(loose.end(), {"--change", "10"});
  EXPECT_EQ(simctl(loose).exit, 0);
  // What came and went.
  const Outcome other = simctl({"gradcheck", "pendulum.yaml", "--quiet", "--json", "--against", "before.json", "--set",
                                "joints/hinge/drive={stiffness: 1, damping: 0.1}"});
  EXPECT_EQ(other.exit, 1);
  bool is_new = false;
  const nlohmann::json json = other.json();
  for (const auto& row : json.at("changed")) is_new = is_new || row.at("what") == "new";
  EXPECT_TRUE(is_new) << other.out;
  write("none.json", "{\"rows\": 3}");
  const Outcome none = simctl({"gradcheck", "pendulum.yaml", "--quiet", "--against", "none.json"});
  EXPECT_EQ(none.exit, 3);
  EXPECT_NE(none.err.find("none.json: expected a file of gradcheck --record"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace backdrive::test
