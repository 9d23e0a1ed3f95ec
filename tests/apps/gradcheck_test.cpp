// What gradcheck says and leaves: no false alarm, what it could not resolve, a report for CI, a baseline.
#include <cmath>
#include <csignal>
#include <map>

#include "tests/apps/simctl_process.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

class SimctlGradcheckTest : public SimctlTest {
 protected:
  void SetUp() override {
    SimctlTest::SetUp();
    write("pendulum.yaml", kPendulum);
  }
};

const std::string kTennisBall = std::string("simulation: {duration: ") + (kSanitized ? "0.1" : "1") + R"( s}
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
                              std::string("initial_state/fly/position=[0, 0, ") + height + "]", "--at", "scene"});
    EXPECT_EQ(o.exit, 0) << height << o.out;
    const nlohmann::json json = o.json();
    for (const auto& row : json.at("rows")) {
      const double dual = row.at("dual").at("value"), adjoint = row.at("adjoint");
      EXPECT_NEAR(adjoint, dual, 1e-9 * std::abs(dual) + 1e-9) << row.at("name");
    }
  }
}

/// Two fingers hold a ball and lift it: contacts between bodies that all move, whose linear systems no factorisation
/// solves at once. Duals went astray there, to 1e276.
const std::string kGrasp = std::string("simulation: {duration: ") + (kSanitized ? "0.0125" : "0.1") + R"( s}
model:
  bodies:
    hand: {mass: 2, inertia: [0.01, 0.01, 0.01]}
    left: {shapes: [{density: 2000, geometry: {type: box, scale: [10 mm, 50 mm, 50 mm]}}]}
    right: {shapes: [{density: 2000, geometry: {type: box, scale: [10 mm, 50 mm, 50 mm]}}]}
    ball: {shapes: [{density: 300, geometry: {type: sphere, scale: 30 mm}}]}
  joints:
    lift: {type: prismatic, child: hand, axis: [0, 0, 1], drive: {stiffness: 3000, damping: 150}}
    left: {type: prismatic, parent: hand, child: left, axis: [1, 0, 0], frame: {position: [-36 mm, 0, 0]}, damping: 1}
    right: {type: prismatic, parent: hand, child: right, axis: [-1, 0, 0], frame: {position: [36 mm, 0, 0]}, damping: 1}
    ball: {type: free, child: ball}
initial_state: {ball: {velocity: [0.01, 0.05, 0.1]}}
controls: {left: {effort: 8}, right: {effort: 6}, lift: {target_position: 0.1}}
optimize:
  variables: [{control: left, knots: 1}]
  loss: {terminal: [{body: ball, position: [0, 0, 0.1], weight: 1000}]}
)";

TEST_F(SimctlGradcheckTest, DualsKnowWhatABallInAGraspDoes) {
  for (const char* const integrator : {"featherstone", "semi_implicit"}) {
    const Outcome o = simctl({"gradcheck", write("grasp.yaml", kGrasp), "--quiet", "--json", "--at", "scene", "--set",
                              std::string("simulation/integrator=") + integrator, "--precision", "float64",
                              "--differences", "0", "--distance", "0", "--controls", "1"});
    const nlohmann::json json = o.json();
    for (const auto& row : json.at("rows")) {
      const double dual = row.at("dual").at("value"), tolerance = row.at("dual").at("tolerance");
      // What stiff friction makes of float64's rounding of slips is above 1e-9 here and far below this.
      EXPECT_NEAR(row.at("adjoint").get<double>(), dual, 1e-6 * std::abs(dual) + tolerance) << row.at("name");
      if (!kSanitized && row.at("name") == "initial_state/ball/velocity") {
        // Of which number the row tells, the one where adjoint and dual part most, is rounding's choice.
        EXPECT_GT(std::abs(row.at("gradient").at(0).get<double>()), 1e-3) << "it is not held";
      }
    }
  }
}

const char* const kSoon = kSanitized ? "simulation/duration=0.1" : "simulation/duration=0.5";

// Zeros and what differences do not resolve are counted.
TEST_F(SimctlGradcheckTest, SaysWhatItCouldNotTell) {
  const Outcome o = simctl({"gradcheck", write("ball.yaml", kTennisBall), "--quiet", "--json", "--at", "scene", "--set",
                            "initial_state/fly/position=[0, 0, 5]", "--set", kSoon});
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
  const Outcome words = simctl({"gradcheck", "ball.yaml", "--quiet", "--at", "scene", "--set",
                                "initial_state/fly/position=[0, 0, 5]", "--set", kSoon});
  EXPECT_NE(words.out.find(std::to_string(zero) + " rows zero at every place, which says little"), std::string::npos)
      << words.out;
  // Let down to the floor and pushed there, it depends on most of them.
  const nlohmann::json more = simctl({"gradcheck", "ball.yaml", "--quiet", "--json", "--set",
                                      "initial_state/fly/position=[0, 0, 5]", "--set", kSoon})
                                  .json();
  EXPECT_LT(more.at("zero_everywhere").size(), static_cast<std::size_t>(zero) / 2) << more.at("zero_everywhere");
}

TEST_F(SimctlGradcheckTest, WritesAReportForCi) {
  ASSERT_EQ(simctl({"gradcheck", "pendulum.yaml", "--quiet", "--junit", "report.xml"}).exit, 0);
  const std::string xml = read("report.xml");
  EXPECT_TRUE(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"")) << xml;
  EXPECT_NE(xml.find("failures=\"0\""), std::string::npos);
  EXPECT_NE(xml.find("<testcase classname=\"pendulum at scene\" name=\"joints/hinge/damping\"/>"), std::string::npos)
      << xml;
  EXPECT_NE(xml.find("<testsuite name=\"gradcheck pendulum at random 2\""), std::string::npos) << xml;
  EXPECT_EQ(xml.find("<failure"), std::string::npos);
  EXPECT_EQ(simctl({"gradcheck", "pendulum.yaml", "--quiet", "--junit", "report.xml"}).exit, 2) << "it is there";
  // Names do no harm.
  write("name.yaml",
        std::string("name: \"<&\\\"x\"\n") + std::string(kPendulum).substr(std::string(kPendulum).find("simulation")));
  ASSERT_EQ(simctl({"gradcheck", "name.yaml", "--quiet", "--junit", "other.xml"}).exit, 0);
  EXPECT_NE(read("other.xml").find("classname=\"&lt;&amp;&quot;x at scene\""), std::string::npos);
}

// Not after minutes of work.
TEST_F(SimctlGradcheckTest, FilesThatCannotBeAreToldFirst) {
  write("there.json", "{}");
  write("none.json", "{\"rows\": {\"a\": [1, [2]]}}");
  const std::vector<std::string> asked[] = {
      {"--record", "there.json"}, {"--junit", "there.json"}, {"--record", "."}, {"--against", "none.json"}};
  for (const std::vector<std::string>& options : asked) {
    const Outcome o = simctl({"gradcheck", "pendulum.yaml", options[0], options[1]});
    EXPECT_EQ(o.exit, options[0] == "--against" ? 3 : 2) << o.err;
    EXPECT_EQ(o.err.find("checking"), std::string::npos) << o.err;
  }
  EXPECT_EQ(read("there.json"), "{}");
  EXPECT_EQ(entries(), (std::vector<std::string>{"none.json", "pendulum.yaml", "there.json"}));
}

// What is no number has none in JSON, and is one that changed.
TEST_F(SimctlGradcheckTest, ABaselineMayHaveWhatIsNoNumber) {
  const std::vector<std::string> words = {"gradcheck", "pendulum.yaml", "--quiet", "--at", "scene"};
  std::vector<std::string> record = words, against = words;
  record.insert(record.end(), {"--record", "before.json"});
  against.insert(against.end(), {"--against", "after.json", "--json"});
  ASSERT_EQ(simctl(record).exit, 0);
  nlohmann::json baseline = nlohmann::json::parse(read("before.json"));
  baseline.at("rows").at("scene: joints/hinge/damping")[0] = nullptr;
  write("after.json", baseline.dump());
  const Outcome o = simctl(against);
  EXPECT_EQ(o.exit, 1) << o.err;
  const nlohmann::json changed = o.json().at("changed");
  ASSERT_EQ(changed.size(), 1u) << changed;
  EXPECT_EQ(changed[0].at("name"), "scene: joints/hinge/damping");
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
  EXPECT_NE(changed.out.find("scene: joints/hinge/damping"), std::string::npos);
  EXPECT_NE(changed.out.find("random 1: joints/hinge/damping"), std::string::npos);
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

// Where it checks, in which precisions, and how a state is had again.
TEST_F(SimctlGradcheckTest, ChecksAtTheScenesStateAndAtRandomOnes) {
  const std::string ball = write("ball.yaml", kTennisBall);
  const Outcome o = simctl({"gradcheck", ball, "--quiet", "--json", "--seed", "5"});
  ASSERT_EQ(o.exit, 0) << o.out.substr(0, 2000);
  const nlohmann::json json = o.json();
  std::vector<std::string> names;
  for (const auto& place : json.at("places")) names.push_back(place.at("place"));
  EXPECT_EQ(names, (std::vector<std::string>{"scene", "random 1", "random 2"}));
  EXPECT_EQ(json.at("places")[1].at("words"), "in motion, 1 pair of shapes touching");
  EXPECT_NE(json.at("places")[2].at("state").at("velocity").at("fly/velocity/z"), 0.0);
  using Gradients = std::map<std::string, std::vector<double>>;
  const auto gradients = [](const nlohmann::json& all, const std::string& place) {
    Gradients found;
    for (const auto& row : all.at("rows")) {
      if (row.at("place") == place && row.at("used"))
        found[row.at("name")] = row.at("gradient").get<std::vector<double>>();
    }
    return found;
  };
  const Gradients of_random = gradients(json, "random 1");
  EXPECT_FALSE(of_random.empty());
  EXPECT_NE(of_random, gradients(json, "scene"));
  for (const auto& row : json.at("rows")) EXPECT_EQ(row.contains("float32"), row.at("used").get<bool>()) << row;
  // Alone, and from the scene that it wrote.
  const std::vector<std::string> one = {"gradcheck", ball, "--quiet", "--json", "--seed", "5", "--at", "random:1"};
  std::vector<std::string> kept = one;
  kept.insert(kept.end(), {"--states-to", "states"});
  EXPECT_EQ(gradients(simctl(kept).json(), "random 1"), of_random);
  EXPECT_EQ(entries("states"), std::vector<std::string>{"random-1.yaml"});
  EXPECT_EQ(simctl(kept).exit, 2) << "it is there";
  std::vector<std::string> again = one;
  again[1] = "states/random-1.yaml";
  again.back() = "scene";
  again.insert(again.end(), {"--precision", "float64"});
  const nlohmann::json written = simctl(again).json();
  EXPECT_EQ(gradients(written, "scene"), of_random);
  for (const auto& row : written.at("rows")) EXPECT_FALSE(row.contains("float32"));
  for (const char* const at : {"nowhere", "scene,", "", "random:0", "random:x", "random:99999"}) {
    const Outcome wrong = simctl({"gradcheck", ball, "--quiet", "--at", at});
    EXPECT_EQ(wrong.exit, 2) << at;
    EXPECT_NE(wrong.err.find("expected scene, start, random"), std::string::npos) << wrong.err;
  }
  EXPECT_EQ(simctl({"gradcheck", ball, "--quiet", "--at", "random", "--states", "0"}).exit, 2)
      << "no place is no check";
}

// Contact that sticks and turns: in float32 its cotangents once grew a thousandfold in every step.
TEST_F(SimctlGradcheckTest, Float32AgreesInContact) {
  for (const char* const name : {"bounce_throw", "slide_to_mark"}) {
    const Outcome o = simctl({"gradcheck", scene(name), "--quiet", "--json", "--controls", "4", "--differences", "0",
                              "--set", kSanitized ? "simulation/duration=0.05" : "simulation/duration=0.5"});
    EXPECT_EQ(o.exit, 0) << name;
    const nlohmann::json told = o.json();
    for (const auto& row : told.at("rows")) {
      EXPECT_TRUE(row.at("passed").get<bool>()) << name << " " << row;
    }
  }
}

// No constant decides: rounding is measured, and what it leaves nothing of is no agreement.
TEST_F(SimctlGradcheckTest, WhatRoundingLeavesNothingOfIsUndecided) {
  if (kSanitized) GTEST_SKIP() << "nothing was undecided in that build, whose kernels are compiled otherwise";
  const std::vector<std::string> call = {"gradcheck",
                                         scene("double_pendulum"),
                                         "--quiet",
                                         "--at",
                                         "scene",
                                         "--precision",
                                         "float64",
                                         "--differences",
                                         "0",
                                         "--set",
                                         "simulation/duration=40",
                                         "--junit",
                                         "report.xml"};
  std::vector<std::string> json = call;
  json.insert(json.end() - 2, "--json");
  const Outcome o = simctl(json);
  ASSERT_EQ(o.exit, 0) << o.err;
  int undecided = 0;
  const nlohmann::json told = o.json();
  for (const auto& row : told.at("rows")) {
    undecided += row.at("undecided").get<bool>();
  }
  EXPECT_GT(undecided, 10) << "a double pendulum of 40 s is chaotic";
  EXPECT_EQ(told.at("undecided_rows"), undecided);
  EXPECT_NE(read("report.xml").find("<skipped message=\"undecided"), std::string::npos);
  const Outcome words = simctl({"gradcheck", scene("double_pendulum"), "--quiet", "--at", "scene", "--precision",
                                "float64", "--set", "simulation/duration=40", "--differences", "0"});
  EXPECT_NE(words.out.find(" undecided: rounding moves"), std::string::npos) << words.out;
}

// At random states in contact adjoint and dual numbers agree to what rounding was measured to do, as anywhere else.
TEST_F(SimctlGradcheckTest, ContactHasNoToleranceOfItsOwn) {
  for (const char* const name : {"leg_length", "walker_rise", "bounce_throw"}) {
    const Outcome o = simctl({"gradcheck", scene(name), "--quiet", "--json", "--at", "random:1", "--precision",
                              "float64", "--controls", "8", "--differences", "0"});
    EXPECT_EQ(o.exit, 0) << name << o.err;
    const nlohmann::json told = o.json();
    // Of some 450: where a walker whips, small changes grow.
    EXPECT_LE(told.at("undecided_rows").get<int>(), 3) << name;
    for (const auto& row : told.at("rows")) {
      EXPECT_TRUE(row.at("passed").get<bool>() || row.at("undecided").get<bool>()) << name << " " << row;
    }
  }
}

TEST_F(SimctlGradcheckTest, TellsHowFarItIs) {
  for (const char* const command : {"gradcheck", "gradient"}) {
    Settings settings;
    const bool check = std::string(command) == "gradcheck";
    settings.interrupt_at = check ? "at scene (1 of 3): rollout" : "gradient over";
    const Outcome o =
        simctl({command, scene("quadruped_hop"), "--set", check ? "simulation/duration=5" : "simulation/duration=300",
                "--set", "optimize/variables=[]", "--set", "requires_grad=[bodies]"},
               settings);
    EXPECT_EQ(o.exit, 128 + SIGINT) << o.err;
    EXPECT_NE(o.err.find(settings.interrupt_at), std::string::npos) << o.err;
  }
}

}  // namespace
}  // namespace backdrive::test
