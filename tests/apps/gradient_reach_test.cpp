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

// The same pendulum a while before: changes of a millionth still have the slope that the gradient says, of a thousandth
// none.
TEST_F(SimctlGradientReachTest, GradientsOfChangesThatGrowAreTold) {
  const std::string words = "small changes grow on their way";
  const Outcome gradient = simctl({"gradient", pendulum("10.6")});
  EXPECT_EQ(gradient.exit, 0);
  EXPECT_NE(gradient.err.find(words), std::string::npos) << gradient.err << gradient.out;
  EXPECT_EQ(simctl({"gradient", pendulum("8")}).err.find(words), std::string::npos);
}

// A tenth of a millimetre beyond a kink, the slope of the loss is −2, and over any distance −3.
TEST_F(SimctlGradientReachTest, SlopesOverADistanceThatPartAreTold) {
  const auto cart = [&](const std::string& speed) {
    return write("cart.yaml", R"(simulation: {duration: 1 s, time_step: 0.01}
model:
  gravity: [0, 0, 0]
  bodies: {cart: {mass: 1, inertia: [1, 1, 1]}}
  joints: {rail: {type: prismatic, axis: [1, 0, 0], child: cart}}
initial_state: {rail: {velocity: )" + speed + R"(}}
optimize:
  variables: [{initial_state: rail, quantity: velocity}]
  loss:
    terminal:
      - {joint: rail, position: 1, measure: absolute}
      - {joint: rail, position: 100, measure: absolute, weight: 3}
  iterations: 0
)");
  };
  const std::string words = "times as much as the gradient says";
  const Outcome near = simctl({"gradient", cart("1.0001")});
  EXPECT_EQ(near.exit, 0);
  EXPECT_NE(near.err.find("over 0.001 to 0.01 of the variables' scales along its gradient the loss changes 1.495 " +
                          words),
            std::string::npos)
      << near.err;
  const Outcome optimised = simctl({"optimize", "cart.yaml"});
  EXPECT_NE(optimised.err.find("at the best point over 0.001"), std::string::npos) << optimised.err;
  const Outcome reached = simctl({"optimize", "cart.yaml", "--set", "optimize/goal=1e9"});
  EXPECT_EQ(reached.exit, 0) << reached.err;
  EXPECT_EQ(reached.err.find("at the best point"), std::string::npos) << "at a goal there is nowhere to go";
  EXPECT_EQ(simctl({"gradient", cart("1.1")}).err.find(words), std::string::npos);
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
