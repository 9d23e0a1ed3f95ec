// Gradients that grew to what no slope has are told.
#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlGradientReachTest : public SimctlTest {
 protected:
  /// A double pendulum that is let go far up: chaos, whose errors grow e-fold in some tenths of a second.
  std::string pendulum(const std::string& duration) const {
    return write("pendulum.yaml", "simulation: {duration: " + duration + R"( s, time_step: 0.002}
model:
  bodies:
    upper: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.01]}
    lower: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.01]}
  joints:
    shoulder: {type: revolute, axis: [0, 1, 0], child: upper}
    elbow: {type: revolute, axis: [0, 1, 0], parent: upper, child: lower, frame: {position: [0, 0, -1]}}
initial_state: {shoulder: {position: 2.5}, elbow: {position: 1}}
optimize:
  variables: [{initial_state: shoulder, quantity: velocity, bounds: [-5, 5]}]
  loss: {terminal: [{body: lower, position: [0, 0, -2]}]}
  iterations: 0
)");
  }
};

TEST_F(SimctlGradientReachTest, ChaosIsTold) {
  const std::string words = "the gradient is of length ";
  const Outcome gradient = simctl({"gradient", pendulum("40")});
  EXPECT_EQ(gradient.exit, 0);
  EXPECT_NE(gradient.err.find(words), std::string::npos) << gradient.err << gradient.out;
  EXPECT_NE(gradient.err.find("back through 20000 steps, by chaos or rounding"), std::string::npos) << gradient.err;
  const Outcome optimised = simctl({"optimize", "pendulum.yaml"});
  EXPECT_NE(optimised.err.find("at the best point " + words), std::string::npos) << optimised.err;
  EXPECT_EQ(simctl({"gradient", pendulum("1")}).err.find(words), std::string::npos);
}

TEST_F(SimctlGradientReachTest, NoSceneOfOursIsToldOf) {
  int scenes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRepository + "/scenes")) {
    if (entry.path().extension() != ".yaml") continue;
    for (const char* precision : {"float64", "float32"}) {
      const Outcome o = simctl({"gradient", entry.path().string(), "--at", "start", "--precision", precision});
      scenes += o.exit == 0;
      EXPECT_EQ(o.err.find("the gradient is of length"), std::string::npos) << entry.path() << o.err;
    }
  }
  EXPECT_GT(scenes, 20);
}

}  // namespace
}  // namespace backdrive::test
