// What is too large for the memory at hand is refused with a message before anything is done; it used to write beyond
// the end of a block. What is too large for a whole number: tests/engine/memory_test.cpp.
#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlSizesTest : public SimctlTest {
 protected:
  void expect_refused(const std::string& scene) {
    Settings settings;
    settings.address_space_mib = 1024;
    const std::string words = "of memory are free here: expected fewer steps or bodies";
    EXPECT_NE(simctl({"validate", scene}, settings).out.find(words), std::string::npos);
    const Outcome o = simctl({"optimize", scene, "--json"}, settings);
    EXPECT_EQ(o.exit, 3) << o.err;
    EXPECT_NE(o.out.find(words), std::string::npos) << o.out;
  }
};

TEST_F(SimctlSizesTest, StatesOfMoreRowsThanFit) {
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

TEST_F(SimctlSizesTest, ForcesOfMorePairsAndStepsThanFit) {
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
