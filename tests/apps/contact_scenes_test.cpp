// The scenes that touch: each is optimised as it is shipped, and its result, replayed, does what was asked and keeps to
// what physics says.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlContactScenesTest : public SimctlTest {
 protected:
  /// Optimises a shipped scene and replays the result; the last state by joint.
  nlohmann::json optimise_and_replay(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"optimize", scene(name), "--output", "out", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome o = simctl(arguments);
    EXPECT_EQ(o.exit, 0) << o.err << o.out;
    const Outcome replay = simctl({"run", "out/result.yaml", "--output", "replay", "--json", "--force"});
    EXPECT_EQ(replay.exit, 0) << replay.err;
    return replay.json().at("final_state");
  }
  /// A column of the replay, state by state.
  std::vector<double> column(const std::string& name) const {
    const Rows rows = parse_csv(read("replay/trajectory.csv"));
    const auto at = std::find(rows[0].begin(), rows[0].end(), name);
    EXPECT_NE(at, rows[0].end()) << name;
    const auto k = static_cast<size_t>(at - rows[0].begin());
    std::vector<double> numbers;
    // Not std::stod, which throws where a velocity has decayed to less than 1e-308.
    for (size_t i = 1; i < rows.size(); ++i) numbers.push_back(std::strtod(rows[i].at(k).c_str(), nullptr));
    return numbers;
  }
  /// The first number of result.yaml that follows one text after the other.
  double found(const std::vector<std::string>& texts) const {
    const std::string result = read("out/result.yaml");
    size_t at = 0;
    for (const std::string& text : texts) {
      at = result.find(text, at);
      if (at == std::string::npos) {
        ADD_FAILURE() << "no '" << text << "' in\n" << result;
        return 0;
      }
      at += text.size();
    }
    return std::stod(result.substr(at));
  }
};

TEST_F(SimctlContactScenesTest, BallBouncesOnceAndHits) {
  const nlohmann::json end = optimise_and_replay("bounce_throw").at("flight").at("position");
  EXPECT_NEAR(end.at(0), 3, 2e-3);
  EXPECT_NEAR(end.at(1), 0.5, 2e-3);
  EXPECT_NEAR(end.at(2), 1.2, 2e-3);
  const std::vector<double> z = column("flight/position/z"), vz = column("flight/velocity/z");
  int touched = 0;
  for (size_t i = 1; i < z.size(); ++i) touched += z[i] < 0.12 && z[i - 1] >= 0.12;
  EXPECT_EQ(touched, 1);
  const double down = *std::min_element(vz.begin(), vz.end()), up = *std::max_element(vz.begin(), vz.end());
  EXPECT_LT(up, 0.95 * -down) << "a bounce costs energy";
  EXPECT_GT(up, 0.7 * -down);
}

TEST_F(SimctlContactScenesTest, BoxStopsOnTheMark) {
  const nlohmann::json end = optimise_and_replay("slide_to_mark");
  EXPECT_NEAR(end.at("slide").at("position"), 1, 2e-3);
  EXPECT_NEAR(end.at("slide").at("velocity"), 0, 1e-6);
  const double floor = found({"floor:", "friction:"}), box = 0.4, speed = column("slide/velocity")[0];
  EXPECT_NEAR(speed * speed / (2 * 2 * floor * box / (floor + box) * 9.81), 1, 0.01) << "x = v²/2μg";
}

TEST_F(SimctlContactScenesTest, AFilmedBounceTellsFrictionAndDissipation) {
  // From where the scene begins, and from a floor that is too smooth and too lively.
  for (const std::vector<std::string>& start :
       {std::vector<std::string>{"0.3", "2"}, std::vector<std::string>{"0.03", "0.1"}}) {
    optimise_and_replay("identify_bounce", {"--set", "shapes/floor/material/friction=" + start[0], "--set",
                                            "shapes/floor/material/dissipation=" + start[1], "--force"});
    // Those that the film was made with, at a finer time step.
    EXPECT_NEAR(found({"floor:", "friction:"}), 0.15, 0.003);
    EXPECT_NEAR(found({"floor:", "dissipation:"}), 0.4, 0.02);
  }
}

TEST_F(SimctlContactScenesTest, TheFilmOfTheBounceIsWhatItsSceneSays) {
  const Outcome o = simctl({"run", scene("identify_bounce"), "--set", "simulation/time_step=0.25ms", "--set",
                            "shapes/floor/material/friction=0.15", "--set", "shapes/floor/material/dissipation=0.4",
                            "--output", "replay"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const std::filesystem::path folder = std::filesystem::path(scene("identify_bounce")).parent_path();
  const Rows film = parse_csv(read(folder / "identify_bounce.csv"));
  ASSERT_EQ(film.size(), 142u);
  for (std::size_t c = 0; c < film[0].size(); ++c) {
    const std::vector<double> run = column(film[0][c]);
    // A friction that is solved a little differently may show.
    for (std::size_t k = 1; k < film.size(); ++k) EXPECT_NEAR(std::stod(film[k][c]), run[40 * (k - 1)], 1e-3) << k;
  }
}

TEST_F(SimctlContactScenesTest, StoolStandsLevelOnSteps) {
  const nlohmann::json end = optimise_and_replay("leg_length").at("flight");
  EXPECT_NEAR(end.at("position").at(2), 0.3, 3e-3);
  EXPECT_NEAR(end.at("orientation").at(3), 1, 1e-5);
  for (const double v : end.at("velocity")) EXPECT_NEAR(v, 0, 0.02);
  // Steps of 2 and 4 cm.
  const auto half_length = [&](const char* leg) { return found({leg, "scale: [", ","}); };
  EXPECT_NEAR(half_length("leg_a") - half_length("leg_b"), 0.02, 3e-3);
  EXPECT_NEAR(half_length("leg_a") - half_length("leg_c"), 0.04, 3e-3);
}

TEST_F(SimctlContactScenesTest, QuadrupedStands) {
  const Outcome o = simctl({"run", scene("quadruped_hop"), "--set", "simulation/duration=2", "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const nlohmann::json end = o.json().at("final_state");
  EXPECT_NEAR(end.at("flight").at("position").at(2), 0.326, 5e-3);
  EXPECT_NEAR(end.at("flight").at("orientation").at(3), 1, 1e-4);
  for (const double v : end.at("flight").at("velocity")) EXPECT_NEAR(v, 0, 0.01);
  for (const char* joint : {"fl_roll", "fl_pitch", "fl_knee", "rr_roll", "rr_pitch", "rr_knee"}) {
    EXPECT_NEAR(end.at(joint).at("velocity"), 0, 0.01) << joint;
  }
}

TEST_F(SimctlContactScenesTest, QuadrupedHopsAndLands) {
  const nlohmann::json end = optimise_and_replay("quadruped_hop");
  const std::vector<double> z = column("flight/position/z"), w = column("flight/orientation/w");
  ASSERT_EQ(z.size(), 601u);
  // It crouches, is above its legs of 42.5 cm and less, stretched, and then stands as it did: level, and near its
  // place.
  EXPECT_NEAR(z[200], 0.26, 0.04);
  EXPECT_GT(z[300], 0.44);
  EXPECT_GT(std::abs(w[300]), std::cos(0.1));
  const nlohmann::json& trunk = end.at("flight");
  EXPECT_NEAR(trunk.at("position").at(2), 0.326, 0.04);
  for (const int axis : {0, 1}) EXPECT_NEAR(trunk.at("position").at(axis), 0, 0.05);
  EXPECT_GT(std::abs(trunk.at("orientation").at(3).get<double>()), std::cos(0.1));
  for (const char* joint : {"fl_pitch", "fr_pitch", "rl_pitch", "rr_pitch"}) {
    EXPECT_NEAR(end.at(joint).at("position"), 0.7, 0.3) << joint;
  }
  // No contact while it is in the air.
  for (const std::vector<std::string>& row : parse_csv(read("replay/contacts.csv"))) EXPECT_NE(row[1], "300");
}

TEST_F(SimctlContactScenesTest, EverySceneIsValidAndItsGradientsAreRight) {
  for (const char* name : {"bounce_throw", "slide_to_mark", "identify_bounce", "leg_length", "quadruped_hop"}) {
    EXPECT_EQ(simctl({"validate", scene(name)}).exit, 0) << name;
  }
  for (const char* name : {"bounce_throw", "slide_to_mark"}) {
    const Outcome o = simctl({"gradcheck", scene(name), "--controls", "4", "--json"});
    EXPECT_EQ(o.exit, 0) << name << o.out;
  }
  const Outcome film = simctl({"gradcheck", scene("identify_bounce"), "--set", "simulation/duration=0.7", "--json"});
  EXPECT_EQ(film.exit, 0) << film.out;
  // Shorter: the feet's touch-down is what counts.
  const Outcome o =
      simctl({"gradcheck", scene("leg_length"), "--controls", "4", "--set", "simulation/duration=0.4", "--json"});
  EXPECT_EQ(o.exit, 0) << o.out;
}

// What is kept of a long optimisation, and checked after it, does not grow with it.
TEST_F(SimctlContactScenesTest, LongHistoriesAreCheckedInPart) {
  const std::string file = write("drop.yaml", R"(
simulation: {time_step: 5 ms, steps: 20}
model:
  bodies: {ball: {shapes: [{density: 1000, geometry: {type: sphere, scale: 5 cm}}]}}
  joints: {flight: {type: free, child: ball}}
  shapes: {floor: {body: world, geometry: {type: plane}}}
initial_state: {flight: {position: [0, 0, 0.06]}}
optimize:
  method: adam
  iterations: 2500
  tolerance: 0
  variables: [{initial_state: flight, quantity: velocity, initial: [0.5, 0, -1]}]
  loss: {terminal: [{body: ball, position: [1, 0, 0.06]}]}
)");
  ASSERT_EQ(simctl({"optimize", file, "--output", "out"}).exit, 0);
  const Rows history = parse_csv(read("out/history.csv"));
  ASSERT_GT(history.size(), 2400u);
  const auto& names = history[0];
  const auto column = std::find(names.begin(), names.end(), "contacts_made") - names.begin();
  std::vector<std::size_t> checked;
  for (std::size_t k = 1; k < history.size(); ++k) {
    if (!history[k][column].empty()) checked.push_back(k - 1);
  }
  // Of 1025 rows every second is kept, of 2049 every fourth.
  ASSERT_GT(checked.size(), 512u);
  ASSERT_LE(checked.size(), 1024u);
  for (std::size_t i = 0; i < checked.size(); ++i) EXPECT_EQ(checked[i], 4 * i);
}

}  // namespace
}  // namespace backdrive::test
