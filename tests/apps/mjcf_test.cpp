// simctl on models of MuJoCo against MuJoCo itself, which reads the same files (tests/reference/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/simctl_process.h"
#include "tests/support/reference.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using nlohmann::json;
using Vector = std::vector<double>;

const json& reference() {
  static const json content = test::read_reference("mujoco_parts");
  return content;
}

Vector flat(const json& value) {
  if (!value.is_array()) return {value.get<double>()};
  Vector numbers;
  for (const json& one : value) {
    const Vector inner = flat(one);
    numbers.insert(numbers.end(), inner.begin(), inner.end());
  }
  return numbers;
}

double difference(const json& ours, const json& theirs) {
  return test::relative_difference(flat(ours), flat(theirs));
}

class SimctlMjcfTest : public test::SimctlTest {
 protected:
  static std::string file(const std::string& name) {
    return test::kRepository + (name == "parts" ? "/tests/reference/mujoco_parts.xml" : "/scenes/" + name + ".xml");
  }
  /// The last row of a run's trajectory, or the first, by column.
  json row(const std::string& folder, bool last) const {
    const test::Rows rows = test::parse_csv(read(path(folder) / "trajectory.csv"));
    json result;
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      const std::string& cell = (last ? rows.back() : rows[1]).at(i);
      if (!cell.empty()) result[rows[0][i]] = test::number(cell);
    }
    return result;
  }
};

TEST_F(SimctlMjcfTest, DynamicsAreMujocos) {
  // Both sides round; what goes through M⁻¹ by its condition number, 1e3 of both. MuJoCo's differ from ours by 5e-15.
  constexpr double kDirect = 1e-13, kSolved = 1e-11;
  for (const std::string name : {"parts", "walker"}) {
    const json& theirs = reference().at(name);
    const std::string states = write(name + ".json", theirs.at("states").dump());
    const auto ask = [&](const std::vector<std::string>& more) {
      std::vector<std::string> arguments{"dynamics", file(name), "--quiet", "--states", states};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const test::Outcome outcome = simctl(arguments);
      EXPECT_EQ(outcome.exit, 0) << outcome.err;
      return outcome.json();
    };
    const json ours = ask({});
    const std::string body = name == "parts" ? "bodies/arm/mass=0.82" : "bodies/left_thigh/mass=3";
    const json other = ask({"--set", body});
    for (std::size_t i = 0; i < theirs.at("states").size(); ++i) {
      const json &a = ours.at("states").at(i), &b = theirs.at("expected").at(i);
      EXPECT_LT(difference(a.at("mass_matrix"), b.at("mass_matrix")), kDirect) << name;
      EXPECT_LT(difference(a.at("inverse_dynamics"), b.at("inverse_dynamics")), kDirect) << name;
      EXPECT_LT(difference(a.at("forward_dynamics"), b.at("forward_dynamics")), kSolved) << name;
      // It can fail: another mass of one body is seen.
      EXPECT_GT(difference(other.at("states").at(i).at("mass_matrix"), b.at("mass_matrix")), 1e3 * kDirect) << name;
    }
  }
}

TEST_F(SimctlMjcfTest, SpringsDampersAndActuatorsPullAsMujocos) {
  // One step of 1e-12 s: implicit efforts are those at its start to 1e-12 of their rate, below 1e3 of them a second
  // here.
  const std::vector<std::pair<std::string, std::string>> models{{"parts", ""}, {"walker", ""}, {"parts", "posed"}};
  for (const auto& model : models) {
    const auto& name = model.first;  // for lambdas, which may not have parts of a structured binding in clang 14
    const auto& key = model.second;
    const json& theirs = reference().at(name);
    for (std::size_t i = 0; i < theirs.at("states").size(); ++i) {
      json initial = theirs.at("states").at(i);
      for (json& joint : initial) {
        for (const char* const other : {"acceleration", "effort", "angular_acceleration", "torque", "force"})
          joint.erase(other);
      }
      json scene{{"model", {{"file", file(name)}, {"collision", false}}},
                 {"simulation", {{"time_step", 1e-15}, {"steps", 1}}},
                 {"initial_state", initial},
                 {"record", {{"efforts", {"*"}}}}};
      if (!key.empty()) scene["model"]["keyframe"] = key;
      const test::Outcome outcome = simctl({"run", write("s.yaml", scene.dump()), "--quiet", "--force", "--output",
                                            "out", "--robot-path", std::filesystem::path(file(name)).parent_path()});
      ASSERT_EQ(outcome.exit, 0) << outcome.err;
      const json begin = row("out", false);
      const auto expect = [&](const std::string& column, double effort) {
        const double own = begin.at(column).get<double>() + begin.at(column + "/spring").get<double>() +
                           begin.at(column + "/damping").get<double>();
        EXPECT_NEAR(own, effort, 1e-9 * std::max(1.0, std::abs(effort))) << name << " " << column;
      };
      const json& efforts = theirs.at("expected").at(i).at(key.empty() ? "efforts" : "efforts_of_key");
      for (const auto& [joint, effort] : efforts.items()) {
        if (effort.is_number()) expect(joint + "/effort", effort);
        for (std::size_t k = 0; effort.is_array() && k < 3; ++k) {
          expect(joint + "/torque/" + "xyz"[k], effort.at(k));  // of a ball
        }
      }
    }
  }
}

/// A step with fixed tendons that have springs, dampers, armatures and actuators, all implicit: 1e-14 in all.
TEST_F(SimctlMjcfTest, TendonsPullAsMujocos) {
  const json& theirs = reference().at("tendons");
  const std::string model = test::kRepository + "/tests/reference/mujoco_tendons.xml";
  const auto worst = [&](const std::string& set) {
    double most = 0;
    for (std::size_t i = 0; i < theirs.at("states").size(); ++i) {
      const json scene{{"model", {{"file", model}, {"collision", false}}},
                       {"simulation", {{"time_step", theirs.at("time_step")}, {"steps", 1}}},
                       {"initial_state", theirs.at("states").at(i)}};
      const test::Outcome outcome =
          simctl({"run", write("s.yaml", scene.dump()), "--quiet", "--force", "--output", "out", "--robot-path",
                  test::kRepository + "/tests/reference", "--set", set});
      EXPECT_EQ(outcome.exit, 0) << outcome.err;
      const json last = row("out", true);
      for (const auto& [joint, velocity] : theirs.at("velocities").at(i).items()) {
        const double before = theirs.at("states").at(i).at(joint).at("velocity"), after = velocity;
        const double error = std::abs(last.at(joint + "/velocity").get<double>() - after);
        most = std::max(most, error / std::max(0.01, std::abs(after - before)));
      }
    }
    return most;
  };
  EXPECT_LT(worst("simulation/steps=1"), 1e-9);
  EXPECT_GT(worst("couplings/gear/ratios/grip=2.01"), 1e-4);  // it can fail
}

/// Both programs take the same semi-implicit steps, with dampers implicit: they part by rounding alone, 5e-16 in all.
TEST_F(SimctlMjcfTest, StepsAreMujocos) {
  const json& theirs = reference().at("walker_steps");
  json initial, joints;
  for (const auto& [joint, position] : theirs.at("positions").items()) {
    initial[joint] = {{"velocity", 0.2}};
    joints[joint] = {{"limit", {{"lower", -1e6}, {"upper", 1e6}}}};
  }
  const auto end = [&](const std::string& set) {
    const json scene{{"model", {{"file", file("walker")}, {"collision", false}, {"joints", joints}}},
                     {"simulation", {{"steps", theirs.at("count")}}},
                     {"initial_state", initial}};
    const test::Outcome outcome =
        simctl({"run", write("s.yaml", scene.dump()), "--quiet", "--force", "--output", "out", "--robot-path",
                std::filesystem::path(file("walker")).parent_path(), "--set", set});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    const json last = row("out", true);
    double worst = 0;
    for (const auto& [joint, position] : theirs.at("positions").items()) {
      worst = std::max(worst, std::abs(last.at(joint + "/position").get<double>() - position.get<double>()));
    }
    return worst;
  };
  EXPECT_LT(end("simulation/time_step=0.002"), 1e-12);
  EXPECT_GT(end("joints/left_hip/damping=1.001"), 1e-9);  // it can fail
}

/// What lies still is carried: the floor's forces are its weight, and no shape sinks in by more than 5 mm.
TEST_F(SimctlMjcfTest, AWalkerThatFellIsCarried) {
  const test::Outcome outcome =
      simctl({"run", file("walker"), "--quiet", "--output", "out", "--set", "simulation/duration=8"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json information = simctl({"info", file("walker"), "--json", "--quiet"}).json();
  double mass = 0, force = 0, deepest = 0;
  for (const json& body : information.at("bodies")) mass += body.at("mass").get<double>();
  const test::Rows rows = test::parse_csv(read(path("out") / "contacts.csv"));
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(rows[0], name) - rows[0].begin());
  };
  const std::size_t step = column("step"), up = column("force/z"), depth = column("depth");
  for (const auto& row : rows) {
    if (row[step] != rows.back()[step]) continue;
    force += std::abs(test::number(row[up]));
    deepest = std::max(deepest, test::number(row[depth]));
  }
  EXPECT_NEAR(force / (mass * 9.81), 1, 5e-3);
  EXPECT_LT(deepest, 5e-3);
}

TEST_F(SimctlMjcfTest, ConvertedModelsMoveAlikeToTheBit) {
  for (const std::string name : {"parts", "walker"}) {
    const test::Outcome converted = simctl({"convert", file(name), "-o", name + ".yaml"});
    ASSERT_EQ(converted.exit, 0) << converted.err;
    for (const std::string& scene : {file(name), path(name + ".yaml").string()}) {
      const test::Outcome outcome =
          simctl({"run", scene, "--quiet", "--force", "--output", "out", "--set", "simulation/duration=0.5"});
      ASSERT_EQ(outcome.exit, 0) << outcome.err;
      if (scene == file(name)) std::filesystem::rename(path("out"), path("first"));
    }
    EXPECT_EQ(read(path("out/trajectory.csv")), read(path("first/trajectory.csv"))) << name;
    std::filesystem::remove_all(path("first"));
  }
}

// From a random state: where the scene itself begins, both feet slide on their edges, and a tenth of a second makes 4e-6
// of the gradient of what the solves of adjoints and duals leave, ten times what disturbed inputs show of it.
TEST_F(SimctlMjcfTest, GradientsThroughAModelAreChecked) {
  const char* const soon = test::kSanitized ? "simulation/duration=0.03" : "simulation/duration=0.1";
  const test::Outcome outcome =
      simctl({"gradcheck", scene("walker_rise"), "--seed", "1", "--controls", "3", "--set", soon, "--json", "--quiet"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err << outcome.out;
}

}  // namespace
}  // namespace backdrive
