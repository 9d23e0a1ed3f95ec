// simctl against Pinocchio and MuJoCo themselves, where a virtual environment has them: BACKDRIVE_ORACLES, else
// build/oracles (tests/reference/README.md). Where there is none, what they gave once is committed, and other tests
// hold simctl against that.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/apps/simctl_process.h"

namespace backdrive {
namespace {

class Oracles : public test::SimctlTest {
 protected:
  /// Runs a script of tests/reference on files of the repository; skips without the module that it asks for.
  void compare(const std::string& module, const std::string& script, const std::string& arguments) {
    const char* const given = std::getenv("BACKDRIVE_ORACLES");
    const std::string python = (given ? std::string(given) : test::kRepository + "/build/oracles") + "/bin/python";
    const std::string imports = "'" + python + "' -c 'import " + module + "' >/dev/null 2>&1";
    if (!std::filesystem::exists(python) || std::system(imports.c_str()) != 0) {
      GTEST_SKIP() << "no " << module << " in " << python
                   << ": held against the committed values of tests/reference alone";
    }
    // MuJoCo writes a log where it is called.
    std::string command = "cd '" + path(".").string() + "' && '" + python + "' '" + test::kRepository +
                          "/tests/reference/" + script + "' '" + test::kSimctl + "' " + arguments + " >table 2>&1";
    for (std::size_t at; (at = command.find('@')) != std::string::npos;)
      command.replace(at, 1, test::kRepository + "/");
    EXPECT_EQ(std::system(command.c_str()), 0) << read(path("table"));
    EXPECT_NE(read(path("table")).find("e-1"), std::string::npos) << read(path("table"));
    EXPECT_EQ(read(path("table")).find("not compared"), std::string::npos) << read(path("table"));
  }
};

TEST_F(Oracles, PinocchioHasTheSameDynamics) {
  compare("pinocchio", "compare_robots.py", "@scenes/arm.urdf @scenes/quadruped.urdf @scenes/humanoid.urdf");
}
TEST_F(Oracles, MujocoHasTheSameDynamics) {
  compare("mujoco", "compare_mujoco.py", "@scenes/walker.xml @tests/reference/mujoco_parts.xml");
}
TEST_F(Oracles, MujocoHasTheSameTendons) {
  compare("mujoco", "compare_mujoco.py", "--tendons @tests/reference/mujoco_tendons.xml");
}
TEST_F(Oracles, MujocoTakesTheSameSteps) {
  compare("mujoco", "compare_mujoco.py", "--steps @scenes/walker.xml");
}

}  // namespace
}  // namespace backdrive
