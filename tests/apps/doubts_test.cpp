// What `simctl validate` warns of: valid, and hardly meant.
#include <filesystem>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

/// A ball over a floor, and an arm with a limit.
constexpr const char* kSound = R"(
model:
  bodies:
    ball: {shapes: [{name: skin, density: 1000, geometry: {type: sphere, scale: 5 cm}}]}
    arm: {mass: 1, inertia: [0.1, 0.1, 0.1], com: [0.1, 0, 0]}
  joints:
    flight: {type: free, child: ball}
    hinge: {type: revolute, child: arm, frame: {position: [2, 0, 1], orientation: [0, 0, 0, 1]}, limit: {upper: 90 deg}}
  shapes: {floor: {body: world, geometry: {type: plane}}}
initial_state: {flight: {position: [0, 0, 0.06]}, hinge: {position: 45 deg}}
)";

class SimctlDoubtsTest : public SimctlTest {
 protected:
  std::vector<std::string> warnings(const std::string& scene, const std::vector<std::string>& changes = {}) {
    std::vector<std::string> words{"validate", scene, "--json"};
    for (const std::string& change : changes) words.insert(words.end(), {"--set", change});
    const Outcome o = simctl(words);
    EXPECT_EQ(o.exit, 0) << o.err;
    return o.json().at("warnings");
  }
};

TEST_F(SimctlDoubtsTest, WhatIsHardlyMeant) {
  const std::string sound = write("sound.yaml", kSound);
  EXPECT_TRUE(warnings(sound).empty()) << warnings(sound)[0];
  const std::pair<const char*, const char*> cases[] = {
      {"joints/hinge/limit/upper=90", "90 without a unit is in rad"},
      {"joints/hinge/limit/lower=-45", "-45 deg"},
      {"initial_state/hinge/position=170 deg", "beyond its upper limit"},
      {"initial_state/flight/position=[0, 0, 0.01]", "deep in one another"},
      {"initial_state/flight/position=[0, 0, 35 mm]", "deep in one another"},
      {"shapes/*/material/stiffness=1e6", "lasts 0.7716 steps, and gradients through it need 5"},
      {"joints/hinge/frame/orientation=[1, 0, 0, 0]", "(w, x, y, z)"},
      {"initial_state/flight/orientation=[0.9659258, 0, 0.2588190, 0]", "(w, x, y, z)"}};
  for (const auto& [change, part] : cases) {
    const std::vector<std::string> found = warnings(sound, {change});
    ASSERT_EQ(found.size(), 1u) << change;
    EXPECT_NE(found[0].find(part), std::string::npos) << found[0];
  }
  // A ball of 0.52 kg; 10.7 steps of auto's 44 ms.
  const Outcome contact = simctl({"validate", sound});
  EXPECT_NE(contact.out.find("2618 N/m, impacts of 10.66 steps"), std::string::npos) << contact.out;
  const Outcome text = simctl({"validate", sound, "--set", "joints/hinge/limit/upper=90"});
  EXPECT_NE(text.out.find("warning: joints/hinge/limit/upper"), std::string::npos) << text.out;
}

TEST_F(SimctlDoubtsTest, WhatIsMeantIsNotDoubted) {
  const std::string sound = write("sound.yaml", kSound);
  for (const char* change : {"joints/hinge/limit/upper=6.2", "joints/hinge/limit/upper=720 deg",
                             "initial_state/flight/position=[0, 0, 0.049]",
                             "joints/hinge/frame/orientation={axis: [1, 0, 0], angle: 180 deg}"}) {
    EXPECT_TRUE(warnings(sound, {change}).empty()) << change;
  }
}

TEST_F(SimctlDoubtsTest, NoShippedSceneIsDoubted) {
  for (const auto& file : std::filesystem::directory_iterator(kRepository + "/scenes")) {
    if (file.path().extension() != ".yaml") continue;
    const std::vector<std::string> found = warnings(file.path());
    EXPECT_TRUE(found.empty()) << file.path() << ": " << found[0];
  }
}

// Everything that is wrong at once, of keys, values, required ones, and what only the model can tell.
TEST_F(SimctlDoubtsTest, AllErrorsOfAFileAtOnce) {
  const std::string file = write("errors.yaml",
                                 "frobnicate: 1\n"
                                 "simulation: {duration: long, time_step: -1 ms}\n"
                                 "model:\n"
                                 "  bodies: {rod: {mass: 1 m, inertia: [1, 2], spin: 3}}\n"
                                 "  joints: {hinge: {type: revolut, child: rod}}\n"
                                 "optimize: {loss: {terminal: [{joint: hinge}, 7]}}\n");
  const Outcome o = simctl({"validate", file, "--json"});
  EXPECT_EQ(o.exit, 3);
  const nlohmann::json object = o.json(), errors = object.at("error").at("mistakes");
  std::vector<std::string> told;
  for (const auto& one : errors) {
    told.push_back(std::to_string(one.at("line").get<int>()) + " " + one.at("path").get<std::string>());
    EXPECT_EQ(one.at("file"), file);
    EXPECT_GT(one.at("column"), 0);
    EXPECT_FALSE(one.at("expected").get<std::string>().empty());
    EXPECT_NE(o.err.find(one.at("what").get<std::string>()), std::string::npos) << o.err;
  }
  EXPECT_EQ(told, (std::vector<std::string>{"1 ", "2 simulation/duration", "2 simulation/time_step",
                                            "4 model/bodies/rod/mass", "4 model/bodies/rod/inertia",
                                            "4 model/bodies/rod", "5 model/joints/hinge/type",
                                            "6 optimize/loss/terminal/0", "6 optimize/loss/terminal/1"}))
      << o.err;
  EXPECT_EQ(errors[6].at("did_you_mean"), "revolute");
  // What the model tells, too, and each at its place.
  const Outcome of_model = simctl({"validate", write("pendulum.yaml", kPendulum), "--json", "--set",
                                   "optimize/loss={terminal: [{joint: a, position: 1}, {joint: b, position: 1}]}",
                                   "--set", "record={efforts: c}", "--set", "controls={d: 1}"});
  EXPECT_EQ(of_model.exit, 3);
  for (const char* const name : {"'a'", "'b'", "'c'", "'d'"}) {
    EXPECT_NE(of_model.err.find(name), std::string::npos) << name << of_model.err;
  }
  EXPECT_EQ(of_model.json().at("error").at("mistakes").size(), 4u) << of_model.err;
}

}  // namespace
}  // namespace backdrive::test
