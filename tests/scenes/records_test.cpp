// Records that losses follow, from tables and back into scenes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "scenes/scene.h"
#include "tests/scenes/cart_scene.h"
#include "tests/support/own_folder.h"

namespace backdrive {
namespace {

class SceneRecords : public testing::Test {
 protected:
  Scene load_running(const std::string& terms) const {
    const std::vector<Override> overrides{{"optimize/loss/running", terms}};
    return parse_scene(test::kCartScene, "test.yaml", folder_, overrides);
  }

  const test::OwnFolder folder_;
};

TEST_F(SceneRecords, OfJointsAndBodiesComeFromTables) {
  std::ofstream(folder_ / "film.csv") << "tip/position/y,time,hinge/position,slider/velocity,tip/position/x,"
                                         "tip/position/z,tip/orientation/x,tip/orientation/y,tip/orientation/z,"
                                         "tip/orientation/w,hinge/velocity\r\n"
                                         "2,0.1,90 deg,5,1,3,0,0,0,1,\r\n"
                                         "5,0.104,0,6,4,6,0,0,1.001,0,\r\n\r\n"
                                         "8,0.2,1,7,7,9,0,0,0.6,0.8,\r\n";
  const Scene scene = load_running(
      "[{joint: hinge, position: {file: film.csv}, weight: 2}, {control: slider}, {joint: slider, position: 0, "
      "velocity: {file: film.csv}, weight: {position: 3}}, {body: tip, position: {file: film.csv}, orientation: "
      "{file: film.csv}, point: [1, 0, 0], until: 150 ms}]");
  const auto is_running = [](const LossTerm& t) { return !t.terminal; };
  std::vector<LossTerm> loss = scene.problem.loss;
  std::erase_if(loss, [&](const LossTerm& t) { return !is_running(t); });
  ASSERT_EQ(loss.size(), 6u);
  const std::vector<double> times{0.1, 0.104, 0.2};
  using Row = std::array<double, 4>;
  EXPECT_EQ(loss[0].record, (MotionRecord{times, {Row{std::numbers::pi / 2}, Row{0}, Row{1}}}));
  EXPECT_EQ(std::pair(loss[0].first_step, loss[0].last_step), std::pair(10, 20));
  EXPECT_TRUE(loss[0].on_circle);
  EXPECT_EQ(loss[0].weight, 2);
  EXPECT_TRUE(loss[1].record.empty());
  EXPECT_TRUE(loss[2].record.empty());
  EXPECT_EQ(loss[2].weight, 3);
  EXPECT_EQ(loss[3].record, (MotionRecord{times, {Row{5}, Row{6}, Row{7}}}));
  EXPECT_EQ(loss[4].record, (MotionRecord{times, {Row{1, 2, 3}, Row{4, 5, 6}, Row{7, 8, 9}}}));
  EXPECT_EQ(std::pair(loss[4].first_step, loss[4].last_step), std::pair(10, 15));
  EXPECT_EQ(loss[4].point[0], 1);
  EXPECT_EQ(loss[5].record.values[1], (Row{0, 0, 1, 0}));
  // Written out, as the scene may lie elsewhere then; and read back to the same bits.
  const std::string text = scene_with_values(scene, scene.problem);
  EXPECT_EQ(text.find("film.csv"), std::string::npos);
  std::filesystem::remove(folder_ / "film.csv");
  const Scene back = parse_scene(text, "b.yaml", folder_);
  ASSERT_EQ(back.problem.loss.size(), scene.problem.loss.size());
  for (std::size_t k = 0; k < scene.problem.loss.size(); ++k) {
    const LossTerm &a = scene.problem.loss[k], &b = back.problem.loss[k];
    EXPECT_EQ(a.record, b.record) << a.name;
    EXPECT_EQ(std::pair(a.first_step, a.last_step), std::pair(b.first_step, b.last_step)) << a.name;
  }
  EXPECT_EQ(scene_with_values(back, back.problem), text);
}

TEST_F(SceneRecords, OfSeveralNumbersAreWrittenBackAsTheyStood) {
  std::ofstream(folder_ / "film.csv") << "time,flight/velocity/x,flight/velocity/y,flight/velocity/z,"
                                         "flight/orientation/x,flight/orientation/y,flight/orientation/z,"
                                         "flight/orientation/w\n0,1,2,3,0,0,0,1\n0.2,4,5,6,0,0.6,0,0.8\n";
  const Scene scene = parse_scene(R"(
simulation: {duration: 0.2 s, time_step: 10 ms}
model:
  bodies: {disc: {mass: 1, inertia: [1, 1, 1]}, box: {mass: 1, inertia: [1, 1, 1]}}
  joints: {table: {type: planar, child: disc}, flight: {type: free, child: box}}
optimize:
  variables: [{initial_state: table, quantity: velocity}]
  loss:
    running:
      - {joint: flight, velocity: {file: film.csv}, orientation: {file: film.csv}}
      - {joint: table, position: {times: [0, 0.2], values: [[0, 0, 0], [1, 2, 0.3]]}}
)",
                                  "several.yaml", folder_);
  const std::string text = scene_with_values(scene, scene.problem);
  const Scene back = parse_scene(text, "back.yaml", folder_);
  ASSERT_EQ(back.problem.loss.size(), scene.problem.loss.size());
  int records = 0;
  for (std::size_t k = 0; k < scene.problem.loss.size(); ++k) {
    const LossTerm &a = scene.problem.loss[k], &b = back.problem.loss[k];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.record, b.record) << a.name;
    records += !a.record.empty();
  }
  EXPECT_EQ(records, 7) << text;
  EXPECT_EQ(scene_with_values(back, back.problem), text);
}

TEST(MotionRecords, AreLinearBetweenRows) {
  const MotionRecord record{{1, 2, 4}, {{10}, {20}, {-20}}};
  for (const auto& [time, value] : {std::pair(0.0, 10.0), {1, 10}, {1.25, 12.5}, {2, 20}, {3.5, -10}, {9, -20}}) {
    EXPECT_NEAR(record.at(time)[0], value, 1e-14) << time;
  }
  // The turn from 0 to 90 degrees, whichever sign its quaternion has.
  const double half = std::sqrt(0.5);
  for (const double sign : {1.0, -1.0}) {
    const MotionRecord turn{{0, 1}, {{0, 0, 0, 1}, {sign * half, 0, 0, sign * half}}};
    EXPECT_NEAR(turn.orientation_at(0.5)[0], std::sin(std::numbers::pi / 8), 1e-15);
    EXPECT_NEAR(turn.orientation_at(0.5)[3], std::cos(std::numbers::pi / 8), 1e-15);
  }
}

}  // namespace
}  // namespace backdrive
