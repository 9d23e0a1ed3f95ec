// The command line itself: help, wrong usage, exit codes, one JSON object.
#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

using ::testing::ValuesIn;

const std::vector<std::string> kCommands = {"optimize", "run",  "gradcheck", "bench",      "sweep",
                                            "validate", "info", "schema",    "completion", "manual"};

class SimctlHelpTest : public SimctlTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(SimctlHelpTest, SaysPurposeExamplesAndExitCodes) {
  const Outcome o = simctl({GetParam(), "--help"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_EQ(o.err, "");
  for (const char* part : {"Examples:", "Exit codes: 0 done", "130 interrupted", "--json"}) {
    EXPECT_NE(o.out.find(part), std::string::npos) << part << "\n" << o.out;
  }
  EXPECT_NE(o.out.find("simctl " + GetParam()), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Commands, SimctlHelpTest, ValuesIn(kCommands), [](const auto& info) { return info.param; });

class SimctlUsageTest : public SimctlTest {
 protected:
  /// Exits 2, says `what` on stderr, prints nothing, leaves nothing; with --json the message is the object.
  void expect_usage_error(std::vector<std::string> arguments, const std::string& what) {
    Outcome o = simctl(arguments);
    EXPECT_EQ(o.exit, 2) << o.err;
    EXPECT_NE(o.err.find(what), std::string::npos) << o.err;
    EXPECT_EQ(o.out, "");
    arguments.push_back("--json");
    o = simctl(arguments);
    EXPECT_EQ(o.exit, 2);
    const nlohmann::json object = o.json();
    EXPECT_EQ(object.at("exit_code"), 2);
    EXPECT_EQ(object.at("error").at("kind"), "usage");
  }
};

TEST_F(SimctlUsageTest, TopLevelHelpNamesEveryCommand) {
  const Outcome o = simctl({"--help"});
  EXPECT_EQ(o.exit, 0);
  for (const std::string& command : kCommands) EXPECT_NE(o.out.find("\n  " + command), std::string::npos) << command;
}

TEST_F(SimctlUsageTest, Version) {
  const Outcome o = simctl({"--version"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_EQ(o.out.rfind("simctl ", 0), 0u) << o.out;
}

TEST_F(SimctlUsageTest, AStarThatStandsFirst) {
  for (const char* change : {"*=1", "*/a=1", "*/*=1"}) {
    const Outcome o = simctl({"validate", write("pendulum.yaml", kPendulum), "--set", change});
    EXPECT_EQ(o.exit, 3) << change << o.err;
    EXPECT_NE(o.err.find("--set"), std::string::npos) << o.err;
  }
}

TEST_F(SimctlUsageTest, WrongUsageExitsWithTwo) {
  const std::string pendulum = write("pendulum.yaml", kPendulum);
  expect_usage_error({}, "subcommand");
  expect_usage_error({"optimise"}, "did you mean 'optimize'");
  expect_usage_error({"run"}, "scene");
  expect_usage_error({"run", pendulum, "--thread", "2"}, "did you mean '--threads'");
  expect_usage_error({"run", pendulum, "--threads", "0"}, "--threads");
  expect_usage_error({"run", pendulum, "--precision", "float16"}, "float16");
  expect_usage_error({"run", pendulum, "--set", "damping"}, "PATH=VALUE");
  expect_usage_error({"run", pendulum, "another.yaml"}, "another.yaml");
  expect_usage_error({"sweep", pendulum}, "--set");
  EXPECT_EQ(entries(), std::vector<std::string>{"pendulum.yaml"});
}

TEST_F(SimctlUsageTest, MissingDeviceExitsWithFive) {
  if (simctl({"info", "--json"}).json().at("cuda").at("devices") != 0) GTEST_SKIP() << "this machine has a GPU";
  const Outcome o = simctl({"run", write("pendulum.yaml", kPendulum), "--device", "cuda", "--json"});
  EXPECT_EQ(o.exit, 5);
  EXPECT_EQ(o.json().at("error").at("kind"), "device");
  EXPECT_NE(o.err.find("device 'cuda' is not available"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("expected --device cpu"), std::string::npos) << o.err;
}

TEST_F(SimctlUsageTest, BadInputExitsWithThreeAndNamesThePlace) {
  const std::string bad = write("bad.yaml", std::string(kPendulum) + "optimise: {}\n");
  for (const char* command : {"run", "optimize", "gradcheck", "bench", "validate"}) {
    const Outcome o = simctl({command, bad});
    EXPECT_EQ(o.exit, 3) << command;
    EXPECT_NE(o.err.find("bad.yaml:"), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("did you mean 'optimize'"), std::string::npos) << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(simctl({command, bad, "--json"}).json().at("error").at("kind"), "input");
  }
  EXPECT_EQ(simctl({"sweep", bad, "--set", "joints/hinge/damping=1,2"}).exit, 3);
  EXPECT_EQ(simctl({"validate", "no_such_file.yaml"}).exit, 3);
  EXPECT_EQ(entries(), std::vector<std::string>{"bad.yaml"}) << "something was left behind";
}

TEST_F(SimctlUsageTest, ErrorsInOverridesNameThem) {
  const Outcome o = simctl({"validate", write("pendulum.yaml", kPendulum), "--set", "joints/hinge/damping=-1"});
  EXPECT_EQ(o.exit, 3);
  EXPECT_NE(o.err.find("--set joints/hinge/damping=-1"), std::string::npos) << o.err;
}

TEST_F(SimctlUsageTest, InfoIsOneObject) {
  const nlohmann::json info = simctl({"info", "--json"}).json();
  EXPECT_GE(info.at("threads"), 1);
  EXPECT_FALSE(info.at("version").get<std::string>().empty());
  EXPECT_FALSE(info.at("instruction_set").at("available").empty());
  EXPECT_EQ(simctl({"info"}).exit, 0);
}

TEST_F(SimctlUsageTest, SchemaIsJsonSchema) {
  const Outcome o = simctl({"schema"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_TRUE(o.json().contains("$schema"));
  EXPECT_NE(simctl({"schema", "--markdown"}).out.find("# Scene files"), std::string::npos);
}

TEST_F(SimctlUsageTest, ValidateSaysOkAndSummary) {
  const std::string pendulum = write("pendulum.yaml", kPendulum);
  const Outcome o = simctl({"validate", pendulum});
  EXPECT_EQ(o.exit, 0);
  EXPECT_NE(o.out.find("OK"), std::string::npos);
  const nlohmann::json object = simctl({"validate", pendulum, "--json"}).json();
  EXPECT_EQ(object.at("scene"), "pendulum");
  EXPECT_EQ(object.at("steps"), 100);
  EXPECT_EQ(object.at("degrees_of_freedom"), 1);
}

TEST_F(SimctlUsageTest, NoColourInPipes) {
  const Outcome o = simctl({"validate", write("pendulum.yaml", kPendulum)});
  EXPECT_EQ(o.out.find('\033'), std::string::npos);
  EXPECT_EQ(o.err.find('\033'), std::string::npos);
}

}  // namespace
}  // namespace backdrive::test
