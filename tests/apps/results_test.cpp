// What run and optimize leave behind: complete results or nothing.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "tests/apps/simctl_process.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

using Names = std::vector<std::string>;

class SimctlResultsTest : public SimctlTest {
 protected:
  void SetUp() override {
    SimctlTest::SetUp();
    pendulum_ = write("pendulum.yaml", kPendulum);
  }
  std::string pendulum_;
};

TEST_F(SimctlResultsTest, RunWritesTrajectory) {
  const Outcome o = simctl({"run", pendulum_, "--output", "out"});
  ASSERT_EQ(o.exit, 0) << o.err;
  EXPECT_EQ(entries("out"), (Names{"details.json", "log.txt", "scene.yaml", "trajectory.csv"}));
  const Rows rows = parse_csv(read("out/trajectory.csv"));
  ASSERT_EQ(rows.size(), 102u);
  EXPECT_EQ(rows[0], (Names{"time", "hinge/position", "hinge/velocity", "hinge/effort"}));
  EXPECT_NEAR(number(rows[1][1]), M_PI / 2, 1e-15);
  EXPECT_NEAR(number(rows[101][0]), 1, 1e-12);
  EXPECT_EQ(rows[101][3], "");
  EXPECT_NE(o.out.find("loss term"), std::string::npos);
}

TEST_F(SimctlResultsTest, RunToStdoutIsTheSameTable) {
  ASSERT_EQ(simctl({"run", pendulum_, "--output", "out"}).exit, 0);
  const Outcome o = simctl({"run", pendulum_, "--output", "-", "--quiet"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_EQ(o.err, "");
  EXPECT_EQ(o.out, read("out/trajectory.csv"));
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "-", "--json"}).exit, 2);
}

TEST_F(SimctlResultsTest, RunsLongerThanOnePieceAreTheSame) {
  // The program looks for interrupts between pieces of 4096 steps; the seam must not be seen.
  const Outcome whole = simctl({"run", pendulum_, "--set", "simulation={time_step: 1 ms, steps: 5000}", "--json"});
  const Outcome shorter = simctl({"run", pendulum_, "--set", "simulation={time_step: 1 ms, steps: 4000}", "--json"});
  const Rows a = parse_csv(read(path("results/pendulum-run-1/trajectory.csv")));
  const Rows b = parse_csv(read(path("results/pendulum-run-2/trajectory.csv")));
  ASSERT_EQ(a.size(), 5002u);
  for (size_t i = 1; i < b.size(); ++i) {
    ASSERT_EQ(a[i][1], b[i][1]) << i;
    ASSERT_EQ(a[i][2], b[i][2]) << i;
  }
  EXPECT_EQ(whole.json().at("loss_terms").size(), 3u);
}

TEST_F(SimctlResultsTest, DefaultFoldersAreNumbered) {
  for (const char* expected : {"results/pendulum-run-1", "results/pendulum-run-2"}) {
    EXPECT_EQ(simctl({"run", pendulum_, "--json"}).json().at("output"), expected);
  }
  EXPECT_EQ(entries("results"), (Names{"pendulum-run-1", "pendulum-run-2"}));
}

TEST_F(SimctlResultsTest, ExistingOutputIsKeptUnlessForced) {
  ASSERT_EQ(simctl({"run", pendulum_, "--output", "out"}).exit, 0);
  const std::string before = read("out/trajectory.csv");
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "out", "--set", "simulation/steps=5"}).exit, 3)
      << "steps and duration exclude each other";
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "out", "--set", "simulation/duration=0.5"}).exit, 2);
  EXPECT_EQ(read("out/trajectory.csv"), before);
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "out", "--force", "--set", "simulation/duration=0.5"}).exit, 0);
  EXPECT_EQ(parse_csv(read("out/trajectory.csv")).size(), 52u);
  EXPECT_EQ(entries(), (Names{"out", "pendulum.yaml"}));
}

TEST_F(SimctlResultsTest, ForceTakesNothingElseAway) {
  std::filesystem::create_directory(path("home"));
  write("home/thesis.txt", "years of work");
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "home", "--force"}).exit, 2);
  EXPECT_EQ(entries("home"), Names{"thesis.txt"});
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "pendulum.yaml", "--force"}).exit, 2);
  EXPECT_EQ(read("pendulum.yaml"), kPendulum);
}

// Files are told from folders, links and devices that bear their names.
TEST_F(SimctlResultsTest, ForceLooksAtTypes) {
  std::filesystem::create_directories(path("out/log.txt/years"));
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "out", "--force"}).exit, 2);
  EXPECT_EQ(entries("out/log.txt"), Names{"years"});

  write("data.csv", "of the user's");
  std::filesystem::create_symlink("data.csv", path("link.csv"));
  ASSERT_EQ(mkfifo(path("pipe.csv").c_str(), 0666), 0);
  for (const std::string name : {"link.csv", "pipe.csv", "/dev/null"}) {
    const Outcome o = simctl({"sweep", pendulum_, "--set", "bodies/rod/mass=1,2", "--output", name, "--force"});
    EXPECT_EQ(o.exit, 2) << name;
    EXPECT_NE(o.err.find("no regular file"), std::string::npos) << o.err;
  }
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.csv")));
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe.csv")));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// What was in the making when a process was killed is nobody's.
TEST_F(SimctlResultsTest, WhatKilledProcessesLeftIsCleared) {
  Settings settings;
  settings.interrupt_at = "optimising";
  settings.signals = {SIGKILL};
  EXPECT_EQ(simctl({"optimize", pendulum_, "--output", "out", "--iterations", "100000000", "--set",
                    "optimize/tolerance=0", "--set", "optimize/goal=0", "--set", "optimize/method=adam"},
                   settings)
                .exit,
            128 + SIGKILL);
  ASSERT_EQ(entries().size(), 2u);
  ASSERT_EQ(entries()[0].find(".simctl-"), 0u) << "nothing was left that could be cleared";
  write(".simctl-notes.md", "of the user's");
  std::filesystem::create_directory(path(".simctl-abcdef"));
  // As a process that is at work would.
  const int held = open(path(".simctl-abcdef").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  EXPECT_EQ(simctl({"run", pendulum_, "--output", "out"}).exit, 0);
  EXPECT_EQ(entries(), (Names{".simctl-abcdef", ".simctl-notes.md", "out", "pendulum.yaml"}));
  close(held);
  EXPECT_EQ(simctl({"sweep", pendulum_, "--set", "bodies/rod/mass=1,2", "--output", "sweep.csv"}).exit, 0);
  EXPECT_EQ(entries(), (Names{".simctl-notes.md", "out", "pendulum.yaml", "sweep.csv"}));
}

// A descriptor that was closed would be given to the next file, and then be written to as stdout or stderr.
TEST_F(SimctlResultsTest, ClosedStreamsDoNotReachFiles) {
  const std::vector<std::string> sweep = {"sweep", pendulum_, "--set", "bodies/rod/mass=1,2,3", "--output"};
  const auto into = [&](const std::string& name, const std::vector<int>& closed) {
    std::vector<std::string> arguments = sweep;
    arguments.push_back(name);
    Settings settings;
    settings.closed = closed;
    EXPECT_EQ(simctl(arguments, settings).exit, 0);
    return read(name);
  };
  const std::string expected = into("plain.csv", {});
  EXPECT_EQ(into("two.csv", {2}), expected);
  EXPECT_EQ(into("one.csv", {1}), expected);
  EXPECT_EQ(into("all.csv", {0, 1, 2}), expected);
}

TEST_F(SimctlResultsTest, NonFiniteExitsWithFourAndNamesStepAndJoint) {
  const std::vector<std::string> fast = {"--set", "initial_state/hinge/velocity=1e200"};
  const Outcome o = simctl({"run", pendulum_, "--json", fast[0], fast[1]});
  EXPECT_EQ(o.exit, 4) << o.err;
  const nlohmann::json object = o.json();
  EXPECT_EQ(object.at("error").at("kind"), "non_finite");
  EXPECT_EQ(object.at("error").at("step"), 0);
  EXPECT_NE(o.err.find("world 0"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("step 0"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("'hinge'"), std::string::npos) << o.err;
  // What came before is a complete table.
  EXPECT_EQ(parse_csv(read("results/pendulum-run-1/trajectory.csv")).size(), 2u);

  const Outcome optimised = simctl({"optimize", pendulum_, "--output", "out", fast[0], fast[1]});
  EXPECT_EQ(optimised.exit, 4);
  EXPECT_NE(optimised.err.find("'hinge'"), std::string::npos) << optimised.err;
  EXPECT_EQ(entries(), (Names{"pendulum.yaml", "results"}));
}

TEST_F(SimctlResultsTest, OptimizeLeavesACompleteResultThatReplays) {
  const Outcome o = simctl({"optimize", pendulum_, "--output", "out", "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  EXPECT_EQ(entries("out"), (Names{"before.csv", "details.json", "history.csv", "log.txt", "motions.json",
                                   "result.yaml", "trajectory.csv"}));
  const nlohmann::json object = o.json();
  EXPECT_TRUE(object.at("reached_goal"));
  EXPECT_LT(object.at("loss"), 0.5);

  const Rows history = parse_csv(read("out/history.csv"));
  ASSERT_GT(history.size(), 2u);
  EXPECT_EQ(history[0][0], "iteration");
  EXPECT_LT(number(history.back()[1]), number(history[1][1]));

  const Outcome replay = simctl({"run", "out/result.yaml", "--output", "replay", "--json"});
  ASSERT_EQ(replay.exit, 0) << replay.err;
  EXPECT_EQ(replay.json().at("loss"), object.at("loss"));
  EXPECT_EQ(read("replay/trajectory.csv"), read("out/trajectory.csv"));
  // And it can be optimised further.
  EXPECT_EQ(simctl({"optimize", "out/result.yaml", "--iterations", "1"}).exit, 0);
}

// Whatever states are kept, the result has the same bits; what is live stays within the budget.
TEST_F(SimctlResultsTest, AMemoryBudgetIsKeptAndLeavesNoTrace) {
  const auto optimise = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "optimize", pendulum_,         "--output", out,     "--iterations",
        "5",        "--report-memory", "--json",   "--set", "simulation/duration=100"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return simctl(arguments);
  };
  const Outcome free = optimise("free", {});
  const nlohmann::json all = free.json().at("memory").at("cpu");
  EXPECT_NE(free.err.find("memory: every one of"), std::string::npos) << free.err;
  EXPECT_EQ(all.at("tape_nodes"), 0);
  EXPECT_GT(all.at("backwards"), 4);
  const std::size_t budget = all.at("peak_bytes").get<std::size_t>() * 3 / 4;
  const Outcome tight = optimise("tight", {"--memory-budget", std::to_string(budget)});
  EXPECT_NE(tight.err.find("extra forward rollouts"), std::string::npos) << tight.err;
  EXPECT_EQ(tight.err.find("every one of"), std::string::npos) << tight.err;
  EXPECT_LE(tight.json().at("memory").at("cpu").at("peak_bytes"), budget);
  EXPECT_EQ(read("tight/result.yaml"), read("free/result.yaml"));
  const Outcome none = optimise("none", {"--memory-budget", "1KiB"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("expected at least"), std::string::npos) << none.err;
  const Names left = entries();
  EXPECT_EQ(std::count(left.begin(), left.end(), "none"), 0);
}

// Who wants the same bits again finds what they came from.
TEST_F(SimctlResultsTest, ResultsSayWhatMadeThem) {
  const std::string scene = path("it's.yaml").string();
  write("it's.yaml", kPendulum);
  const nlohmann::json run = simctl({"run", scene, "--output", "out", "--json", "--seed", "7"}).json();
  const std::string isa = run.at("made_by").at("instruction_set").get<std::string>().substr(7);
  EXPECT_EQ(run.at("made_by").at("seed"), 7);
  EXPECT_EQ(run.at("made_by").at("precision"), "float64");
  std::string quoted = scene;
  quoted.replace(quoted.find('\''), 1, "'\\''");
  const std::string command = "simctl run '" + quoted + "' --output out --json --seed 7";
  EXPECT_EQ(run.at("made_by").at("command"), command);
  const std::string log = read("out/log.txt");
  EXPECT_NE(log.find("command: " + command), std::string::npos) << log;
  EXPECT_NE(log.find("x86-64-" + isa + ", cpu, "), std::string::npos) << log;
  for (const char* command_with : {"optimize", "gradient", "gradcheck"}) {
    EXPECT_EQ(simctl({command_with, scene, "--json"}).json().at("made_by").at("instruction_set"), "x86-64-" + isa);
  }
  for (const std::string& said : {isa, "x86-64-" + isa}) {
    EXPECT_EQ(simctl({"run", scene, "--output", "-", "--isa", said}).exit, 0) << said;
  }
  EXPECT_EQ(simctl({"run", scene, "--output", "-", "--isa", "v9"}).exit, 2);
  // Of a build with one set the others are refused, never replaced; the one of all runs them.
  for (const std::string other : {"v2", "v3", "v4"}) {
    const Outcome o = simctl({"run", scene, "--output", "other" + other, "--json", "--isa", other});
    if (o.exit == 0) {
      EXPECT_EQ(o.json().at("made_by").at("instruction_set"), "x86-64-" + other);
    } else {
      EXPECT_NE(o.err.find(other), std::string::npos) << o.err;
    }
  }
}

// What a run needs is held against what there is, here by `ulimit -v`, before it starts.
TEST_F(SimctlResultsTest, MemoryThatIsNotThereIsAnErrorBeforeTheWork) {
  const std::vector<std::string> large = {"--set", "simulation={time_step: 10 ms, steps: 10000000}"};
  Settings settings;
  settings.address_space_mib = 700;
  for (const std::vector<std::string>& call : {std::vector<std::string>{"run", pendulum_, "--output", "out"},
                                               {"run", pendulum_, "--output", "-"},
                                               {"optimize", pendulum_, "--output", "out", "--iterations", "1"},
                                               {"gradient", pendulum_},
                                               {"gradcheck", pendulum_}}) {
    std::vector<std::string> arguments = call;
    arguments.insert(arguments.end(), large.begin(), large.end());
    const Outcome o = simctl(arguments, settings);
    EXPECT_EQ(o.exit, 3) << call[0] << o.err;
    EXPECT_NE(o.err.find("of memory are free here: expected fewer steps or bodies"), std::string::npos) << o.err;
    EXPECT_EQ(entries(), Names{"pendulum.yaml"});
  }
  EXPECT_NE(simctl({"validate", pendulum_, large[0], large[1]}, settings).out.find("of memory are free here"),
            std::string::npos);
}

// Where not all states fit, fewer are kept, to the same bits; a budget beyond the machine's memory is none.
TEST_F(SimctlResultsTest, FewerStatesAreKeptWhereMemoryIsShort) {
  const std::vector<std::string> many = {"optimize",
                                         pendulum_,
                                         "--iterations",
                                         "1",
                                         "--json",
                                         "--set",
                                         "simulation={time_step: 1 ms, steps: 150000}",
                                         "--set",
                                         "optimize/starts=16",
                                         "--threads",
                                         "1"};
  const auto loss_with = [&](long address_space_mib, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = many;
    arguments.insert(arguments.end(), more.begin(), more.end());
    Settings settings;
    settings.address_space_mib = address_space_mib;
    const Outcome o = simctl(arguments, settings);
    EXPECT_LE(o.exit, 1) << o.err;
    EXPECT_EQ(o.err.find("fewer states are kept") != std::string::npos, address_space_mib > 0) << o.err;
    return o.json().at("loss").get<double>();
  };
  const double all = loss_with(0, {});
  EXPECT_EQ(loss_with(155, {}), all);
  EXPECT_EQ(loss_with(155, {"--memory-budget", "64GiB"}), all);
}

TEST_F(SimctlResultsTest, ClippedWindowsAreReported) {
  const Outcome o = simctl({"optimize", pendulum_, "--output", "out", "--iterations", "3", "--json", "--set",
                            "optimize/gradient/window=20", "--set", "optimize/gradient/clip=1e-4"});
  const nlohmann::json object = o.json();
  EXPECT_GT(object.at("clipped_windows"), 0);
  EXPECT_LE(object.at("clipped_windows"), object.at("gradient_windows"));
  const Rows history = parse_csv(read("out/history.csv"));
  EXPECT_EQ(history[0].back(), "clipped_windows");
  EXPECT_EQ(number(history.back().back()), object.at("clipped_windows").get<double>());
  EXPECT_NE(o.err.find("gradient windows of"), std::string::npos) << o.err;
}

TEST_F(SimctlResultsTest, MissedGoalExitsWithOneAndKeepsTheResult) {
  const Outcome o =
      simctl({"optimize", pendulum_, "--output", "out", "--iterations", "2", "--set", "optimize/goal=1e-9"});
  EXPECT_EQ(o.exit, 1) << o.err;
  EXPECT_NE(o.out.find("not reached"), std::string::npos) << o.out;
  EXPECT_EQ(entries("out").size(), 7u);
}

TEST_F(SimctlResultsTest, ThreadsLeaveNoTraceAndSeedsDo) {
  const auto result = [&](const std::string& threads, const std::string& seed) {
    const std::string out = "out-" + threads + "-" + seed;
    simctl({"optimize", pendulum_, "--output", out, "--iterations", "10", "--threads", threads, "--seed", seed,
            "--worlds", "40"});
    return read(out + "/result.yaml");
  };
  const std::string one = result("1", "0");
  EXPECT_FALSE(one.empty());
  EXPECT_EQ(one, result("2", "0"));
  EXPECT_NE(one, result("2", "1"));
}

TEST_F(SimctlResultsTest, InterruptedOptimizeKeepsTheBestSoFar) {
  Settings settings;
  settings.interrupt_at = "optimising";
  const Outcome o = simctl({"optimize", pendulum_, "--output", "out", "--json", "--iterations", "100000000", "--set",
                            "optimize/tolerance=0", "--set", "optimize/goal=0", "--set", "optimize/method=adam"},
                           settings);
  EXPECT_EQ(o.exit, 130) << o.err;
  EXPECT_EQ(o.json().at("exit_code"), 130);
  EXPECT_EQ(entries("out"), (Names{"before.csv", "details.json", "history.csv", "log.txt", "motions.json",
                                   "result.yaml", "trajectory.csv"}));
  EXPECT_EQ(simctl({"validate", "out/result.yaml"}).exit, 0);
}

// A terminal that closes asks for an end too, and `timeout` asks twice.
TEST_F(SimctlResultsTest, ChecksEndAtOnce) {
  // A minute of work and more: were the signal only noted, this would wait for it.
  for (const int number : {SIGINT, SIGTERM}) {
    Settings settings;
    settings.interrupt_at = "checking";
    settings.signals = {number};
    const auto start = std::chrono::steady_clock::now();
    const Outcome o = simctl({"gradcheck", scene("quadruped_hop"), "--set", "simulation/duration=10"}, settings);
    EXPECT_EQ(o.exit, 128 + number) << o.err;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  }
}

// A script's background jobs find SIGINT ignored, `nohup` has SIGHUP ignored: the one does not mean that a check goes
// on for minutes, the other does mean that a run outlives its terminal.
TEST_F(SimctlResultsTest, WhatScriptsIgnoreAndWhatNohupDoes) {
  Settings settings;
  settings.interrupt_at = "checking";
  settings.ignored = {SIGINT};
  const Outcome check = simctl({"gradcheck", scene("quadruped_hop"), "--set", "simulation/duration=10"}, settings);
  EXPECT_EQ(check.exit, 128 + SIGINT) << check.err;
  settings.interrupt_at = "optimising";
  settings.ignored = {SIGHUP};
  settings.signals = {SIGHUP};
  // Seconds of work: it is in the middle of it when it is told to end.
  const std::string iterations = test::kSanitized ? "4000" : "40000";
  const Outcome o = simctl({"optimize", pendulum_, "--output", "out", "--json", "--iterations", iterations, "--set",
                            "optimize/tolerance=0", "--set", "optimize/goal=0", "--set", "optimize/method=adam"},
                           settings);
  EXPECT_EQ(o.exit, 1) << o.err;
}

// An evaluation that takes minutes says how far it is, and ends when it is asked to, with what was found before it.
TEST_F(SimctlResultsTest, AnInterruptCutsALongEvaluation) {
  Settings settings;
  settings.interrupt_at = "% done";
  const std::string start = "simulation: {time_step: 1 ms, steps: 8388608}\n";
  const std::string text = kPendulum;
  const std::string scene =
      write("long.yaml", start + text.substr(text.find("model:"), text.find("optimize:") - text.find("model:")) +
                             "optimize:\n  variables: [{parameter: joints/hinge/damping}]\n"
                             "  loss: {terminal: [{joint: hinge, position: 1}]}\n");
  for (const char* const method : {"lbfgs", "adam"}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome o = simctl({"optimize", scene, "--worlds", "512", "--memory-budget", "100MiB", "--json", "--set",
                              std::string("optimize/method=") + method},
                             settings);
    EXPECT_EQ(o.exit, 130) << o.err;
    EXPECT_NE(o.err.find("evaluation "), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("nothing is written"), std::string::npos) << o.err;
    EXPECT_EQ(o.json().at("exit_code"), 130);
    EXPECT_TRUE(o.json().at("output").is_null());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
    EXPECT_EQ(entries(), (Names{"long.yaml", "pendulum.yaml"}));
  }
}

// Rows of the history lie in the folder in the making long before the end; it comes into being whole all the same.
TEST_F(SimctlResultsTest, HistoryIsWrittenAsItGoes) {
  std::atomic<bool> done = false;
  std::atomic<std::size_t> most_lines = 0;
  std::thread reader([&] {
    while (!done) {
      for (const std::string& name : entries()) {
        if (!name.starts_with(".simctl-")) continue;
        const std::string rows = read(path(name) / "history.csv");
        most_lines = std::max<std::size_t>(most_lines, std::count(rows.begin(), rows.end(), '\n'));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  Settings settings;
  settings.interrupt_at = "running";  // of the progress line, which comes after two seconds
  const Outcome o = simctl({"optimize", pendulum_, "--output", "out", "--iterations", "100000000", "--set",
                            "optimize/tolerance=0", "--set", "optimize/goal=0", "--set", "optimize/method=adam"},
                           settings);
  done = true;
  reader.join();
  EXPECT_EQ(o.exit, 130) << o.err;
  EXPECT_GT(most_lines, 10u) << "before the end";
  const Rows history = parse_csv(read("out/history.csv"));
  EXPECT_GE(history.size(), most_lines);
  for (const auto& row : history) EXPECT_EQ(row.size(), history[0].size());
}

TEST_F(SimctlResultsTest, HangUpsAndDoubledSignalsKeepTheBestSoFar) {
  const std::vector<int> kinds[] = {
      {SIGHUP}, {SIGTERM}, {SIGTERM, SIGTERM}, {SIGINT, SIGTERM, SIGINT}, {SIGPIPE, SIGTERM}};
  for (const std::vector<int>& signals : kinds) {
    Settings settings;
    settings.interrupt_at = "optimising";
    settings.signals = signals;
    const std::string out = "out" + std::to_string(&signals - kinds);
    const Outcome o = simctl({"optimize", pendulum_, "--output", out, "--json", "--iterations", "100000000", "--set",
                              "optimize/tolerance=0", "--set", "optimize/goal=0", "--set", "optimize/method=adam"},
                             settings);
    EXPECT_EQ(o.exit, 130) << o.err;
    EXPECT_EQ(entries(out), (Names{"before.csv", "details.json", "history.csv", "log.txt", "motions.json",
                                   "result.yaml", "trajectory.csv"}));
  }
}

TEST_F(SimctlResultsTest, InterruptedRunKeepsWhatItHas) {
  Settings settings;
  settings.interrupt_at = "running";
  const std::string text = kPendulum;
  const std::string bare = write("bare.yaml", text.substr(0, text.find("optimize:")));
  const Outcome o = simctl(
      {"run", bare, "--output", "out", "--json", "--set", "simulation={time_step: 10 ms, steps: 10000000}"}, settings);
  EXPECT_EQ(o.exit, 130) << o.err;
  const size_t steps = o.json().at("steps");
  EXPECT_EQ(parse_csv(read("out/trajectory.csv")).size(), steps + 2);
}

TEST_F(SimctlResultsTest, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  Settings settings;
  settings.stdout_to = "/dev/full";
  const Outcome o = simctl({"validate", pendulum_}, settings);
  EXPECT_EQ(o.exit, 2);
  EXPECT_NE(o.err.find("cannot write to stdout"), std::string::npos) << o.err;
}

TEST_F(SimctlResultsTest, OutputThatCannotBeIsAnErrorBeforeTheWork) {
  const Outcome o =
      simctl({"optimize", pendulum_, "--output", "pendulum.yaml/out", "--set", "optimize/iterations=1000000"});
  EXPECT_EQ(o.exit, 2) << o.err;
  EXPECT_EQ(entries(), Names{"pendulum.yaml"});
}

}  // namespace
}  // namespace backdrive::test
