// simctl gradient, and what optimize says of variables that nothing can move.
#include <cmath>
#include <map>
#include <string>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

/// A ball that flies over a floor and never touches it.
constexpr const char* kFlight = R"(
simulation: {time_step: 10 ms, duration: 0.2 s}
model:
  bodies: {ball: {shapes: [{name: skin, density: 1000, geometry: {type: sphere, scale: 5 cm}}]}}
  joints:
    flight: {type: free, child: ball}
  shapes: {floor: {body: world, geometry: {type: plane}}}
initial_state: {flight: {position: [0, 0, 5], velocity: [1, 0, 0]}}
)";

/// A slide that a drive pushes far from its limit.
constexpr const char* kSlide = R"(
simulation: {time_step: 10 ms, duration: 0.2 s}
model:
  gravity: [0, 0, 0]
  bodies: {cart: {mass: 2, inertia: [1, 1, 1]}}
  joints:
    rail: {type: prismatic, child: cart, axis: [1, 0, 0], limit: {upper: 10}, drive: {stiffness: 5, effort_limit: 100}}
controls: {rail: {effort: 3, target_position: 0.5}}
requires_grad: [joints/rail/limit/upper, joints/rail/drive, bodies/cart/mass]
optimize:
  variables: [{control: rail, knots: 3}]
  loss: {terminal: [{joint: rail, position: 1}]}
)";

class SimctlGradientTest : public SimctlTest {
 protected:
  nlohmann::json gradient(const std::string& scene, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"gradient", scene, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome o = simctl(words);
    EXPECT_EQ(o.exit, 0) << o.err << o.out;
    return nlohmann::json::parse(o.out);
  }
  static const nlohmann::json* row(const nlohmann::json& table, const std::string& name) {
    for (const nlohmann::json& r : table["rows"]) {
      if (r["name"] == name) return &r;
    }
    return nullptr;
  }
};

TEST_F(SimctlGradientTest, EveryComponentOfWhatIsAskedFor) {
  const std::string scene = write("slide.yaml", kSlide);
  const nlohmann::json table = gradient(scene);
  for (const char* name : {"control/rail/0", "control/rail/1", "control/rail/2", "bodies/cart/mass",
                           "joints/rail/drive/stiffness", "joints/rail/drive/damping"}) {
    const nlohmann::json* const r = row(table, name);
    ASSERT_NE(r, nullptr) << name << table;
    EXPECT_NE((*r)["gradient"].get<double>(), 0) << name;
  }
  EXPECT_EQ((*row(table, "joints/rail/limit/upper"))["zero_because"], "limit never reached");
  EXPECT_EQ((*row(table, "joints/rail/drive/effort_limit"))["zero_because"], "drive never saturated");
  // The slope of the loss that `run` prints.
  const double h = 1e-4;
  const auto loss = [&](double mass) {
    const Outcome o = simctl({"run", scene, "--json", "--set", "bodies/cart/mass=" + std::to_string(mass)});
    return nlohmann::json::parse(o.out)["loss"].get<double>();
  };
  const double slope = (loss(2 + h) - loss(2 - h)) / (2 * h), found = (*row(table, "bodies/cart/mass"))["gradient"];
  EXPECT_NEAR(found, slope, 1e-6 * std::abs(slope));  // the differences' own h² and 1e-16/h
  const Outcome text = simctl({"gradient", scene});
  EXPECT_NE(text.out.find("zero: limit never reached"), std::string::npos) << text.out;
}

// x_b(T) = 3 v T and x_a(T) = v T: d (x_a² + x_b²)/dv = 2 v T² (1 + 9) = 0.4 at v = 0.5, T = 0.2, whatever the scale.
/// Limits that are not reached and drives that are saturated, of a ball joint, of speeds and of a coupling; and a path
/// to all of a joint, whose limits and drive it does not have.
constexpr const char* kFarFromLimits = R"(
simulation: {time_step: 10 ms, duration: 0.2 s}
model:
  bodies:
    a: {mass: 1, com: [0.1, 0, 0], inertia: [0.1, 0.1, 0.1]}
    b: {mass: 1, com: [0.1, 0, 0], inertia: [0.1, 0.1, 0.1]}
    c: {mass: 1, com: [0.1, 0, 0], inertia: [0.1, 0.1, 0.1]}
  joints:
    j: {type: revolute, child: a, axis: [0, 1, 0], limit: {upper: 0.001, velocity: 50}}
    k: {type: revolute, child: b, axis: [0, 1, 0]}
    l: {type: ball, child: c, limit: {upper: 3, velocity: 40}}
  couplings:
    m: {ratios: {j: 1, k: -1}, limit: {lower: -5, velocity: 40}, drive: {stiffness: 3, effort_limit: 100}}
initial_state: {j: {velocity: 1}}
controls: {m: {target_position: 1}}
requires_grad: [joints/j/limit, joints/k, joints/l/limit, couplings/m/limit, couplings/m/drive]
optimize: {loss: {terminal: [{joint: j, position: 1}, {joint: k, position: 1}, {joint: l, orientation: [0, 0, 1, 0]}]}}
)";

TEST_F(SimctlGradientTest, SaysOfLimitsOfBallsSpeedsAndCouplingsWhyTheyAreZero) {
  const nlohmann::json rows = gradient(write("far.yaml", kFarFromLimits)).at("rows");
  const std::map<std::string, std::string> expected{
      {"joints/j/limit/velocity", "limit of speed never reached"},
      {"joints/j/limit/velocity_damping", "limit of speed never reached"},
      {"joints/k/limit/stiffness", "the joint has no limits"},
      {"joints/k/limit/velocity_damping", "the joint's speed has no limit"},
      {"joints/k/drive/stiffness", "the joint has no drive"},
      {"joints/l/limit/upper", "limit never reached"},
      {"joints/l/limit/velocity", "limit of speed never reached"},
      {"couplings/m/limit/lower", "limit never reached"},
      {"couplings/m/limit/velocity", "limit of speed never reached"},
      {"couplings/m/drive/effort_limit", "drive never saturated"}};
  std::map<std::string, std::string> found;
  for (const auto& row : rows) {
    if (row.contains("zero_because")) found[row.at("name")] = row.at("zero_because");
    const std::string name = row.at("name");
    if (name == "joints/j/limit/upper" || name == "couplings/m/drive/stiffness") {
      EXPECT_NE(row.at("gradient"), 0) << name;
    }
  }
  for (const auto& [name, why] : expected) EXPECT_EQ(found[name], why) << name;
}

TEST_F(SimctlGradientTest, CountsWhatIsTiedOnce) {
  const std::string scene = write("tied.yaml", R"(
simulation: {time_step: 10 ms, duration: 0.2 s}
model:
  gravity: [0, 0, 0]
  bodies: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}}
  joints:
    slide_a: {type: prismatic, child: a, axis: [1, 0, 0]}
    slide_b: {type: prismatic, child: b, axis: [1, 0, 0]}
initial_state: {slide_a: {velocity: 0.5}}
optimize:
  variables:
    - {initial_state: slide_a, quantity: velocity, scale: 0.1}
    - {initial_state: slide_b, quantity: velocity, same_as: 3 * initial_state/slide_a/velocity}
  loss: {terminal: [{joint: slide_a, position: 0}, {joint: slide_b, position: 0}]}
)");
  const nlohmann::json table = gradient(scene);
  const nlohmann::json* const r = row(table, "initial_state/slide_a/velocity");
  ASSERT_NE(r, nullptr) << table;
  EXPECT_NEAR((*r)["gradient"].get<double>(), 0.4, 1e-12);  // 20 steps of rounding
}

TEST_F(SimctlGradientTest, AsksForSomethingToAskFor) {
  const Outcome nothing = simctl({"gradient", write("flight.yaml", kFlight)});
  EXPECT_EQ(nothing.exit, 3);
  EXPECT_NE(nothing.err.find("asks for no gradient"), std::string::npos) << nothing.err;
  const Outcome lossless =
      simctl({"gradient", write("flight2.yaml", std::string(kFlight) + "requires_grad: [gravity]\n")});
  EXPECT_EQ(lossless.exit, 3);
  EXPECT_NE(lossless.err.find("has no loss"), std::string::npos) << lossless.err;
}

// Of a loss that is no number there are no zeros, but an error.
TEST_F(SimctlGradientTest, WhatIsNotFiniteIsNoTableOfZeros) {
  const Outcome o = simctl({"gradient", write("slide.yaml", kSlide), "--set", "loss/terminal/0/weight=1e308", "--set",
                            "initial_state/rail/position=-5", "--json"});
  EXPECT_EQ(o.exit, 4) << o.out;
  EXPECT_NE(o.err.find("is not finite"), std::string::npos) << o.err;
  EXPECT_EQ(o.json().at("error").at("kind"), "non_finite");
  EXPECT_EQ(simctl({"gradient", "slide.yaml", "--set", "initial_state/rail/position=-5"}).exit, 0);
}

TEST_F(SimctlGradientTest, AtAStartOfTheOptimiser) {
  const std::string scene = write("slide.yaml", std::string(kSlide) + "  starts: 2\n");
  const nlohmann::json own = gradient(scene), start = gradient(scene, {"--at", "start", "--seed", "3"});
  EXPECT_EQ(own["rows"].size(), start["rows"].size());
}

TEST_F(SimctlGradientTest, AVariableThatNothingMovesIsNamed) {
  const std::string loss = "  loss: {terminal: [{body: ball, position: [1, 0.2, 4]}]}\n";
  const std::string blind =
      write("blind.yaml",
            std::string(kFlight) + "optimize:\n  variables: [{parameter: shapes/floor/material/friction}]\n" + loss);
  const Outcome o = simctl({"optimize", blind, "--json"});
  EXPECT_EQ(o.exit, 1) << o.err;
  EXPECT_NE(o.err.find("shapes/floor/material/friction was zero"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("never in contact"), std::string::npos) << o.err;
  EXPECT_EQ(nlohmann::json::parse(o.out)["zero_gradients"]["shapes/floor/material/friction"], "never in contact");
  // One that moves beside it: told all the same, and done.
  const std::string half =
      write("half.yaml", std::string(kFlight) +
                             "optimize:\n  variables:\n    - {parameter: shapes/floor/material/friction}\n"
                             "    - {initial_state: flight, quantity: velocity}\n" +
                             loss);
  const Outcome both = simctl({"optimize", half});
  EXPECT_EQ(both.exit, 0) << both.err;
  EXPECT_NE(both.err.find("never in contact"), std::string::npos) << both.err;
  EXPECT_EQ(both.err.find("flight/velocity"), std::string::npos) << both.err;
}

}  // namespace
}  // namespace backdrive::test
