// What is too large for any memory, or for a whole number, is refused with a message; it used to write beyond the end
// of a block.
#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlSizesTest : public SimctlTest {
 protected:
  void expect_refused(const std::string& scene) {
    EXPECT_EQ(simctl({"validate", scene}).exit, 0);
    const Outcome o = simctl({"optimize", scene, "--json"});
    EXPECT_EQ(o.exit, 3) << o.err;
    EXPECT_NE(o.out.find("expected at most 2147483647 numbers"), std::string::npos) << o.out;
  }
};

TEST_F(SimctlSizesTest, StatesOfMoreRowsThanCanBeCounted) {
  std::string bodies, joints;
  for (int k = 0; k < 512; ++k) {
    const std::string name = "b" + std::to_string(k);
    bodies += "    " + name + ": {mass: 1, inertia: [1, 1, 1]}\n";
    joints += "    " + name + ": {type: prismatic, child: " + name + "}\n";
  }
  expect_refused(write("many.yaml", "simulation: {steps: 8388608}\nmodel:\n  bodies:\n" + bodies + "  joints:\n" +
                                        joints +
                                        "optimize:\n  variables: [{initial_state: b0, quantity: velocity}]\n"
                                        "  loss: {terminal: [{joint: b0, position: 1}]}\n"));
}

TEST_F(SimctlSizesTest, ForcesOfMorePairsAndStepsThanCanBeCounted) {
  std::string bodies, joints;
  for (int k = 0; k < 100; ++k) {
    const std::string name = "b" + std::to_string(k);
    bodies += "    " + name + ": {shapes: [{geometry: {type: sphere, scale: 1 cm}, density: 1000}]}\n";
    joints += "    " + name + ": {type: free, child: " + name + "}\n";
  }
  expect_refused(write("pairs.yaml", "simulation: {steps: 70000}\nmodel:\n  bodies:\n" + bodies + "  joints:\n" +
                                         joints +
                                         "optimize:\n  variables: [{initial_state: b0, quantity: velocity}]\n"
                                         "  loss: {running: [{contact: [b0, b1], force: [0, 0, 1]}]}\n"));
}

TEST_F(SimctlSizesTest, AStarThatStandsFirst) {
  for (const char* change : {"*=1", "*/a=1", "*/*=1"}) {
    const Outcome o = simctl({"validate", write("pendulum.yaml", kPendulum), "--set", change});
    EXPECT_EQ(o.exit, 3) << change << o.err;
    EXPECT_NE(o.err.find("--set"), std::string::npos) << o.err;
  }
}

}  // namespace
}  // namespace backdrive::test
