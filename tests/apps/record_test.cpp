// What trajectory.csv tells of efforts, energies, momenta and bodies.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlRecordTest : public SimctlTest {
 protected:
  using Table = std::map<std::string, std::vector<double>>;

  /// Columns by name; NaN where a cell is empty.
  Table run(const std::string& scene, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"run", write("scene.yaml", scene), "--output", "-", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome o = simctl(arguments);
    EXPECT_EQ(o.exit, 0) << o.err;
    const Rows rows = parse_csv(o.out);
    Table table;
    for (std::size_t c = 0; !rows.empty() && c < rows[0].size(); ++c) {
      std::vector<double>& column = table[rows[0][c]];
      for (std::size_t r = 1; r < rows.size(); ++r) column.push_back(rows[r][c].empty() ? NAN : number(rows[r][c]));
    }
    return table;
  }
};

/// A horizontal arm of 4.9 kg at 0.5 m that its drive holds against 24 N·m.
constexpr const char* kHeldArm = R"(
simulation: {duration: 1 s}
model:
  bodies: {arm: {mass: 4.9, com: [0.5, 0, 0], inertia: [0.01, 0.01, 0.01]}}
  joints: {hinge: {type: revolute, child: arm, axis: [0, -1, 0], friction: 0.3, drive: {stiffness: 1e5, damping: 3e3}}}
controls: {hinge: {effort: 4}}
optimize: {loss: {running: [{joint: hinge, effort: 0, from: 0.9}, {joint: hinge, effort: 0, part: drive, from: 0.9}]}}
)";

TEST_F(SimctlRecordTest, ADriveThatHoldsShowsItsEffort) {
  const Table t = run(kHeldArm, {"--set", "record/efforts=[hinge]"});
  const double weight = 4.9 * 9.81 * 0.5;
  const std::size_t last = t.at("hinge/effort").size() - 2;
  EXPECT_NEAR(t.at("hinge/effort")[last], weight, 1e-2);
  EXPECT_EQ(t.at("hinge/command")[last], 4);
  EXPECT_NEAR(t.at("hinge/effort/drive")[last], weight - 4, 1e-2);
  EXPECT_NEAR(t.at("hinge/effort/total")[last], weight, 1e-2);
  EXPECT_NEAR(t.at("hinge/power")[last], 0, 1e-2);
  EXPECT_TRUE(std::isnan(t.at("hinge/effort")[last + 1]));
  // And the loss scores it.
  const Outcome o = simctl({"run", "scene.yaml", "--json", "--quiet"});
  const auto terms = o.json().at("loss_terms");
  EXPECT_NEAR(terms.at("running/hinge/effort"), 0.1 * weight * weight, 0.5);
  EXPECT_NEAR(terms.at("running/hinge/effort/2"), 0.1 * (weight - 4) * (weight - 4), 0.5);
}

TEST_F(SimctlRecordTest, AWordDoesForAListOfOne) {
  for (const char* const joints : {"[hinge]", "[\"*\"]", "\"*\"", "hinge"}) {
    EXPECT_TRUE(run(kHeldArm, {"--set", std::string("record/efforts=") + joints}).contains("hinge/effort/drive"))
        << joints;
  }
  for (const char* const bodies : {"[arm]", "\"*\"", "arm"}) {
    EXPECT_TRUE(run(kHeldArm, {"--set", std::string("record/bodies=") + bodies}).contains("bodies/arm/position/x"))
        << bodies;
  }
  const Outcome wrong = simctl({"run", "scene.yaml", "--output", "-", "--set", "record/efforts=elbow"});
  EXPECT_EQ(wrong.exit, 3);
  EXPECT_NE(wrong.err.find("record/efforts"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("elbow"), std::string::npos) << wrong.err;
}

TEST_F(SimctlRecordTest, WithoutADriveEffortIsTheCommand) {
  const Table t = run(kPendulum);
  EXPECT_TRUE(t.contains("hinge/effort"));
  EXPECT_FALSE(t.contains("hinge/command"));
  EXPECT_FALSE(t.contains("energy/kinetic"));
}

// What actuators do goes into motion, height and springs: to the order of the step.
TEST_F(SimctlRecordTest, EnergyIsThatOfWork) {
  const auto gap = [&](const char* step) {
    const Table t = run(R"(
model:
  bodies:
    upper: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.15, 0.06]}
    lower: {mass: 2, com: [0, 0.1, -0.3], inertia: [0.05, 0.06, 0.02]}
  joints:
    shoulder: {type: revolute, child: upper, axis: [0, 1, 0], armature: 0.05}
    elbow: {type: revolute, parent: upper, child: lower, axis: [1, 0, 0], frame: {position: [0, 0, -1]},
            spring: {stiffness: 5, rest: 0.5}}
initial_state: {shoulder: {position: 1, velocity: 2}, elbow: {velocity: -1}}
controls: {shoulder: 3, elbow: -1}
record: {energy: true}
)",
                        {"--set", std::string("simulation={duration: 1 s, time_step: ") + step + "}"});
    const auto &kinetic = t.at("energy/kinetic"), &potential = t.at("energy/potential"), &work = t.at("energy/work");
    EXPECT_GT(std::abs(work.back()), 0.5);
    double most = 0;
    for (std::size_t row = 0; row < work.size(); ++row) {
      const double gain = kinetic[row] + potential[row] - kinetic[0] - potential[0];
      most = std::max(most, std::abs(gain - work[row]));
    }
    return most;
  };
  const double coarse = gap("1 ms"), fine = gap("0.1 ms");
  EXPECT_LT(coarse, 0.2);
  EXPECT_LT(fine, 0.15 * coarse);
}

constexpr const char* kThrown = R"(
simulation: {duration: 0.5 s, time_step: 1 ms}
model:
  bodies: {box: {mass: 2, com: [0.1, 0.2, 0], inertia: [0.1, 0.2, 0.25]}}
  joints: {fly: {type: free, child: box}}
initial_state: {fly: {position: [1, 2, 3], velocity: [1, 0, 5], angular_velocity: [2, 3, 1]}}
record: {bodies: ["*"], momentum: true, center_of_mass: true, energy: true}
)";

TEST_F(SimctlRecordTest, AThrownBodyKeepsItsMomentum) {
  for (const char* const integrator : {"featherstone", "semi_implicit"}) {
    const Table t = run(kThrown, {"--set", std::string("simulation/integrator=") + integrator});
    const auto& time = t.at("time");
    const std::size_t rows = time.size();
    for (std::size_t row = 0; row < rows; ++row) {
      // The step takes the link's origin along, not the centre of mass: first order.
      EXPECT_NEAR(t.at("momentum/linear/x")[row], t.at("momentum/linear/x")[0], 2e-2);
      EXPECT_NEAR(t.at("momentum/linear/z")[row], t.at("momentum/linear/z")[0] - 2 * 9.81 * time[row], 2e-2);
      for (const char* const axis : {"x", "y", "z"}) {
        const auto& angular = t.at(std::string("momentum/angular/") + axis);
        EXPECT_NEAR(angular[row], angular[0], 2e-3);
        EXPECT_NEAR(t.at(std::string("center_of_mass/velocity/") + axis)[row],
                    t.at(std::string("momentum/linear/") + axis)[row] / 2, 1e-12);
        // A free joint in the world's frame has the coordinates of its body.
        const std::string body = "bodies/box/", joint = "fly/";
        for (const char* const of : {"position/", "orientation/", "velocity/", "angular_velocity/"}) {
          EXPECT_NEAR(t.at(body + of + axis)[row], t.at(joint + of + axis)[row], 1e-12);
        }
      }
    }
    EXPECT_EQ(t.at("energy/work").back(), 0);
    EXPECT_NEAR(t.at("energy/kinetic")[0] + t.at("energy/potential")[0],
                t.at("energy/kinetic").back() + t.at("energy/potential").back(), 0.1);
  }
}

// The columns of a body are what a loss follows.
TEST_F(SimctlRecordTest, ALossFollowsARecordedBody) {
  write("scene.yaml", kThrown);
  ASSERT_EQ(simctl({"run", "scene.yaml", "--output", "film"}).exit, 0);
  const std::string follow =
      "{loss: {running: [{body: box, position: {file: film/trajectory.csv}, velocity: {file: film/trajectory.csv}, "
      "orientation: {file: film/trajectory.csv}, angular_velocity: {file: film/trajectory.csv}}]}}";
  const Outcome same = simctl({"run", "scene.yaml", "--json", "--set", "optimize=" + follow});
  EXPECT_LT(same.json().at("loss").get<double>(), 1e-15) << same.err;
  const Outcome other = simctl({"run", "scene.yaml", "--json", "--set", "optimize=" + follow, "--set",
                                "initial_state/fly/angular_velocity/0=2.1"});
  const nlohmann::json terms = other.json().at("loss_terms");
  EXPECT_EQ(terms.size(), 4u);
  for (const auto& [name, value] : terms.items()) {
    if (name == "running/box/position") continue;
    EXPECT_GT(value.get<double>(), 1e-6) << name;
  }
}

// Of a table that has both, the command is what commands.
TEST_F(SimctlRecordTest, ControlsFromATableAreItsCommands) {
  write("table.csv", "hinge/effort,hinge/command\n7,3\n7,3\n");
  write("scene.yaml", kHeldArm);
  const Outcome o =
      simctl({"run", "scene.yaml", "--output", "-", "--quiet", "--set", "controls/hinge/effort={file: table.csv}"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const Rows rows = parse_csv(o.out);
  const auto column = std::ranges::find(rows[0], "hinge/command") - rows[0].begin();
  EXPECT_EQ(number(rows[1][column]), 3);
}

}  // namespace
}  // namespace backdrive::test
