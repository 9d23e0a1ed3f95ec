// Scenes into problems, overrides, and results back into scenes.
#include "scenes/scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numbers>
#include <thread>

#include "models/parameter_list.h"
#include "tests/scenes/cart_scene.h"
#include "tests/support/own_folder.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

constexpr double kPi = std::numbers::pi;

Scene load(const std::vector<Override>& overrides = {}) {
  return parse_scene(test::kCartScene, "test.yaml", ".", overrides);
}

std::string refused(const std::vector<Override>& overrides) {
  try {
    load(overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "accepted";
}

TEST(Scene, ReadsModelInSiUnits) {
  const Scene scene = load();
  const Model& model = scene.problem.model;
  EXPECT_EQ(scene.name, "test");
  EXPECT_EQ(model.body_names, (std::vector<std::string>{"cart", "pole", "tip"}));
  EXPECT_EQ(model.shape_names, (std::vector<std::string>{"hull", "pole_0", "pole_1", "floor"}));
  EXPECT_EQ(model.gravity(0, 2), -9.8);
  EXPECT_EQ(model.bodies.mass(1), 0.1);
  EXPECT_EQ(model.bodies.com(1, 2), 0.5);
  EXPECT_EQ(model.shapes.geometry.scale(0, 0), 0.1);
  EXPECT_EQ(model.shapes.geometry.scale(2, 0), 0.03);
  EXPECT_EQ(model.shapes.material.friction(2), 0.5);
  EXPECT_DOUBLE_EQ(model.shapes.frame.orientation(1, 1), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(model.joints.frame.orientation(2, 2), std::sqrt(0.5));
  EXPECT_EQ(model.joints.limit.upper(0), 2.0);
  EXPECT_EQ(model.joints.drive.effort_limit(1), 5.0);
  EXPECT_TRUE(std::isinf(model.joints.drive.effort_limit(0)));
  EXPECT_EQ(model.shape_bodies[3], -1);
  EXPECT_TRUE(model.bodies.mass.requires_grad(2));
  EXPECT_TRUE(model.joints.damping.requires_grad(1));
  EXPECT_FALSE(model.joints.damping.requires_grad(0));
}

TEST(Scene, ReadsStateAndControls) {
  const Problem problem = load().problem;
  EXPECT_EQ(problem.simulation.steps, 50);
  EXPECT_EQ(problem.simulation.time_step, 0.01);
  const Link& hinge = problem.model.topology.links[problem.model.link_of_joint(1)];
  EXPECT_EQ(problem.initial_position.size(), 2u);
  EXPECT_EQ(problem.initial_position[hinge.q], kPi);
  EXPECT_DOUBLE_EQ(problem.initial_velocity[hinge.v], 2 * kPi);
  ASSERT_EQ(problem.controls.size(), 3u);
  EXPECT_EQ(problem.controls[0].values, (std::vector<double>{1, 2000, 3}));
  EXPECT_EQ(problem.controls[1].values, std::vector<double>{0.5});
  EXPECT_EQ(problem.controls[2].channel, ControlChannel::target_position);
  EXPECT_EQ(problem.controls[2].values[1], kPi / 2);
  EXPECT_TRUE(problem.controls[2].hold);
}

TEST(Scene, ReadsVariables) {
  const Problem problem = load().problem;
  std::vector<std::string> names;
  for (const Variable& variable : problem.variables) names.push_back(variable.name);
  EXPECT_EQ(names, (std::vector<std::string>{"control/slider", "control/hinge/target_position",
                                             "initial_state/hinge/velocity", "joints/slider/damping",
                                             "joints/hinge/damping", "joints/weld/damping", "bodies/pole/com/z"}));
  EXPECT_EQ(problem.variables[0].knots, 5);
  EXPECT_EQ(problem.variables[0].random, 1);
  EXPECT_EQ(problem.variables[0].scale, 2);
  EXPECT_EQ(problem.variables[0].lower, -20);
  EXPECT_TRUE(problem.variables[0].initial.empty());
  EXPECT_EQ(problem.variables[1].knots, 0);
  EXPECT_TRUE(problem.variables[1].hold);
  EXPECT_EQ(problem.variables[1].initial, std::vector<double>{10 * kPi / 180});
  EXPECT_EQ(problem.variables[2].lower, -1);
  EXPECT_TRUE(std::isinf(problem.variables[2].upper));
  EXPECT_EQ(problem.variables[4].upper, 3);
  EXPECT_EQ(problem.variables[6].parameter.component, 2);
}

TEST(Scene, ReadsLoss) {
  const Problem problem = load().problem;
  std::vector<std::string> names;
  for (const LossTerm& term : problem.loss) names.push_back(term.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"terminal/hinge/position", "terminal/hinge/velocity", "terminal/slider/position",
                                      "terminal/tip/position", "terminal/tip/orientation", "running/slider/effort",
                                      "running/hinge/target_position", "running/hinge/target_position/2"}));
  EXPECT_TRUE(problem.loss[0].on_circle);
  EXPECT_FALSE(problem.loss[2].on_circle);
  EXPECT_EQ(problem.loss[0].weight, 100);
  EXPECT_EQ(problem.loss[1].weight, 5);
  EXPECT_EQ(problem.loss[2].target[0], 0.1);
  EXPECT_EQ(problem.loss[3].point[2], 0.1);
  EXPECT_EQ(problem.loss[4].weight, 3);
  EXPECT_EQ(problem.loss[6].target[0], kPi);
  EXPECT_FALSE(problem.loss[6].terminal);
  EXPECT_EQ(problem.optimize.method, OptimizeMethod::adam);
  EXPECT_EQ(problem.optimize.goal, 1e-3);
}

TEST(Overrides, ReachEverything) {
  const Scene scene = load({{"simulation/time_step", "5 ms"},
                            {"joints/hinge/damping", "0.5"},
                            {"model/joints/hinge/frame/position/z", "20 cm"},
                            {"shapes/hull/geometry/scale/1", "1"},
                            {"shapes/pole_1/density", "3"},
                            {"shapes/floor/material/friction", "0.1"},
                            {"gravity/z", "-1"},
                            {"bodies/tip", "{mass: 3}"},
                            {"variables/0/knots", "7"},
                            {"optimize/loss/terminal/0/weight/velocity", "9"},
                            {"initial_state/slider/velocity", "2"},
                            {"controls/slider", "4"}});
  const Problem& problem = scene.problem;
  EXPECT_EQ(problem.simulation.steps, 100);
  EXPECT_EQ(problem.model.joints.damping(1), 0.5);
  EXPECT_EQ(problem.model.joints.frame.position(1, 2), 0.2);
  EXPECT_EQ(problem.model.shapes.geometry.scale(0, 1), 1);
  EXPECT_EQ(problem.model.shapes.density(2), 3);
  EXPECT_EQ(problem.model.shapes.material.friction(3), 0.1);
  EXPECT_EQ(problem.model.gravity(0, 2), -1);
  EXPECT_EQ(problem.model.bodies.mass(2), 3);
  EXPECT_EQ(problem.variables[0].knots, 7);
  EXPECT_EQ(problem.loss[1].weight, 9);
  EXPECT_EQ(problem.controls[0].values, std::vector<double>{4});
}

TEST(Overrides, AStarStandsForEveryMember) {
  const Problem problem = load({{"joints/*/damping", "0.5"},
                                {"shapes/*/material/friction", "0.25"},
                                {"model/bodies/*/mass", "3"},
                                {"shapes/hull/material/friction", "0.75"},  // later ones win
                                {"optimize/variables/*/scale", "7"},
                                {"loss/*/0/weight", "11"},
                                {"gravity/*", "-1"}})
                              .problem;
  for (int joint = 0; joint < 3; ++joint) EXPECT_EQ(problem.model.joints.damping(joint), 0.5);
  EXPECT_EQ(problem.model.shapes.material.friction(0), 0.75);
  for (int shape = 1; shape < 4; ++shape) EXPECT_EQ(problem.model.shapes.material.friction(shape), 0.25);
  for (int body = 0; body < 3; ++body) EXPECT_GE(problem.model.bodies.mass(body), 3);
  for (const Variable& variable : problem.variables) EXPECT_EQ(variable.scale, 7);
  EXPECT_EQ(problem.loss[0].weight, 11);  // the first of each list
  EXPECT_EQ(problem.loss[2].weight, 1);
  EXPECT_EQ(problem.loss[5].weight, 11);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(problem.model.gravity(0, k), -1);
  EXPECT_EQ(refused({{"model/contacts/exclude/*", "[cart, pole]"}}),
            "--set model/contacts/exclude/*=[cart, pole]: model/contacts/exclude: '*': expected members that it can "
            "stand for: there are none");
  EXPECT_NE(refused({{"joint/*/damping", "1"}}).find("there are none"), std::string::npos);
  EXPECT_NE(refused({{"joints/*/dampng", "1"}}).find("did you mean 'damping'?"), std::string::npos);
  EXPECT_NE(refused({{"joints/*/damping", "-1"}}).find("--set joints/*/damping=-1: model/joints/slider/damping"),
            std::string::npos);
}

TEST(Overrides, StepsReplaceTheDuration) {
  EXPECT_EQ(load({{"simulation/steps", "70"}}).problem.simulation.steps, 70);
  EXPECT_NE(refused({{"simulation/steps", "70"}, {"simulation/duration", "1"}}).find("only one of duration, steps"),
            std::string::npos);
}

TEST(Overrides, ErrorsNameTheOption) {
  EXPECT_EQ(refused({{"joints/hinge/damping", "-1"}}).rfind("--set joints/hinge/damping=-1: ", 0), 0u);
  EXPECT_NE(refused({{"joints/hing/damping", "1"}}).find("did you mean 'hinge'?"), std::string::npos);
  EXPECT_NE(refused({{"joint/hinge/damping", "1"}}).find("did you mean 'joints'?"), std::string::npos);
  EXPECT_NE(refused({{"joints/hinge/dampin", "1"}}).find("did you mean 'damping'?"), std::string::npos);
  EXPECT_NE(refused({{"variables/9/knots", "1"}}).find("an index from 0 to 4"), std::string::npos);
  EXPECT_NE(refused({{"simulation/time_step/x", "1"}}).find("a path that ends here"), std::string::npos);
  EXPECT_NE(refused({{"", "1"}}).find("expected"), std::string::npos);
  EXPECT_NE(refused({{"joints/hinge/damping", "[1"}}).find("bracket left open"), std::string::npos);
  EXPECT_NE(refused({{"shapes/hul/density", "1"}}).find("expected"), std::string::npos);
  // What an override breaks elsewhere is reported where it stands.
  EXPECT_EQ(refused({{"simulation/steps", "3"}}).rfind("test.yaml:", 0), 0u);
}

void expect_same(const Problem& a, const Problem& b) {
  EXPECT_EQ(a.initial_position, b.initial_position);
  EXPECT_EQ(a.initial_velocity, b.initial_velocity);
  EXPECT_EQ(a.simulation.time_step, b.simulation.time_step);
  EXPECT_EQ(a.simulation.steps, b.simulation.steps);
  ASSERT_EQ(a.controls.size(), b.controls.size());
  for (size_t i = 0; i < a.controls.size(); ++i) {
    EXPECT_EQ(a.controls[i].joint, b.controls[i].joint);
    EXPECT_EQ(a.controls[i].channel, b.controls[i].channel);
    EXPECT_EQ(a.controls[i].values, b.controls[i].values);
    EXPECT_EQ(a.controls[i].hold, b.controls[i].hold);
  }
  for (const Field& field : fields()) {
    const Parameter& x = field.in(a.model);
    const Parameter& y = field.in(b.model);
    ASSERT_EQ(x.items(), y.items());
    for (int i = 0; i < x.items(); ++i) {
      for (int c = 0; c < x.components(); ++c) EXPECT_EQ(x(i, c), y(i, c)) << field.leaf << " " << i << " " << c;
      EXPECT_EQ(x.requires_grad(i), y.requires_grad(i));
    }
  }
  EXPECT_EQ(a.loss.size(), b.loss.size());
  EXPECT_EQ(a.variables.size(), b.variables.size());
  EXPECT_EQ(a.optimize.method, b.optimize.method);
  EXPECT_EQ(a.optimize.goal, b.optimize.goal);
}

TEST(SceneWithValues, ReadsBackToTheSameBits) {
  const Scene scene = load();
  expect_same(scene.problem, parse_scene(scene_with_values(scene, scene.problem), "b.yaml", ".").problem);

  Problem filled = scene.problem;
  filled.controls.clear();
  filled.controls.push_back({0, ControlChannel::effort, {}, true});
  for (int i = 0; i < 50; ++i) filled.controls[0].values.push_back(std::sin(i) / 3);
  filled.controls.push_back({1, ControlChannel::target_velocity, {1.0 / 3, -0.0}, false});
  filled.initial_position = {0.1, -2.0 / 3};
  filled.initial_velocity = {1e-300, 1e300};
  // Something of every field, changed by an unround factor; orientations and axes stay unit.
  for (const Field& field : fields()) {
    if (field.leaf == "axis" || field.leaf.ends_with("frame/orientation")) continue;
    Parameter& parameter = field.of(filled.model);
    for (int i = 0; i < parameter.items(); ++i) {
      for (int c = 0; c < parameter.components(); ++c) parameter.at(i, c) *= 1 + 1.0 / 3;
    }
  }
  const double half = std::sqrt(0.5);
  filled.model.joints.frame.orientation.at(1, 0) = half;
  filled.model.joints.frame.orientation.at(1, 3) = half;
  filled.model.shapes.frame.orientation.at(2, 1) = 1;
  filled.model.shapes.frame.orientation.at(2, 3) = 0;
  filled.model.joints.axis.at(1, 0) = 1;
  filled.model.joints.axis.at(1, 1) = 0;
  const std::string text = scene_with_values(scene, filled);
  expect_same(filled, parse_scene(text, "b.yaml", ".").problem);
  // And again: writing what was read changes nothing.
  const Scene again = parse_scene(text, "b.yaml", ".");
  EXPECT_EQ(scene_with_values(again, again.problem), text);
}

TEST(SceneWithValues, KeepsOverrides) {
  const Scene scene = load({{"joints/hinge/damping", "0.25"}, {"simulation/steps", "20"}});
  const Problem back = parse_scene(scene_with_values(scene, scene.problem), "b.yaml", ".").problem;
  EXPECT_EQ(back.model.joints.damping(1), 0.25);
  EXPECT_EQ(back.simulation.steps, 20);
}

TEST(SceneWithValues, RefusesWhatIsNotFiniteOrAnotherModel) {
  const Scene scene = load();
  Problem filled = scene.problem;
  filled.model.bodies.mass.at(0) = std::numeric_limits<double>::quiet_NaN();
  try {
    scene_with_values(scene, filled);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::non_finite);
    EXPECT_NE(std::string(error.what()).find("bodies/cart/mass"), std::string::npos);
  }
  filled = scene.problem;
  filled.model.body_names.push_back("other");
  EXPECT_THROW(scene_with_values(scene, filled), Error);
}

TEST(SceneFiles, ControlsComeFromATable) {
  const test::OwnFolder folder;
  folder.write("data/u.csv", "time, hinge/effort,slider/effort\r\n0,1,10\r\n0.1,2,20\r\n0.2,3,30\r\n\r\n");
  const std::vector<Override> overrides{{"controls/slider", "{effort: {file: data/u.csv, hold: true}}"}};
  const Problem problem = parse_scene(test::kCartScene, "test.yaml", folder, overrides).problem;
  EXPECT_EQ(problem.controls[0].values, (std::vector<double>{10, 20, 30}));
  EXPECT_TRUE(problem.controls[0].hold);
}

// As spreadsheets write them: a byte-order mark, quotes, and a ' before what could be a formula.
TEST(SceneFiles, TablesMayBeQuoted) {
  const test::OwnFolder folder;
  const auto column = [&](const std::string& table, const std::string& name) {
    folder.write("u.csv", table);
    std::string text = test::kCartScene;
    for (std::size_t at = 0; (at = text.find("slider", at)) != std::string::npos; at += name.size()) {
      text.replace(at, 6, '"' + name + '"');
      at += 2;
    }
    const std::vector<Override> overrides{{"controls/" + name, "{effort: {file: u.csv}}"}};
    return parse_scene(text, "test.yaml", folder, overrides).problem.controls[0].values;
  };
  const std::vector<double> expected{10, 20, 30};
  EXPECT_EQ(column("\xEF\xBB\xBFslider/effort,time\n10,0\n20,0.1\n30,0.2", "slider"), expected);
  EXPECT_EQ(column("\"a \"\"b\"\", c\" ,slider/effort\n\"x,\ty\",\"10\"\nx, \"20\" \n\"\"\"\",30\n", "slider"),
            expected);
  EXPECT_EQ(column("'@SUM/effort,x\n10,1\n20,2\n30,3\n", "@SUM"), expected);
  EXPECT_EQ(column("x,@SUM/effort\n,10\n,20\n,30\n", "@SUM"), expected);
}

// A link that is turned between the look at where it leads and the reading: what was looked at is what is read.
TEST(SceneFiles, NoTurnedLinkLeadsOutside) {
  namespace fs = std::filesystem;
  const test::OwnFolder above;
  const fs::path folder = above / "scene";
  above.write("scene/own/u.csv", "slider/effort\n1\n");
  above.write("secret/u.csv", "slider/effort\n666\n");
  std::atomic<bool> done = false;
  std::thread turning([&] {
    const auto turn = [&](const char* to) {
      std::error_code ignored;
      fs::remove(folder / "turned", ignored);
      fs::create_directory_symlink(to, folder / "data", ignored);
      fs::rename(folder / "data", folder / "turned", ignored);
    };
    while (!done) turn("own"), turn("../secret");
  });
  int own = 0, refused = 0;
  for (int i = 0; i < 100000 && (i < 1000 || own == 0 || refused == 0); ++i) {
    const std::vector<Override> overrides{{"controls/slider", "{effort: {file: turned/u.csv}}"}};
    try {
      EXPECT_EQ(parse_scene(test::kCartScene, "test.yaml", folder, overrides).problem.controls[0].values,
                std::vector<double>{1});
      ++own;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      ++refused;
    }
  }
  done = true;
  turning.join();
  EXPECT_GT(own, 0);
  EXPECT_GT(refused, 0);
}

// Times are rounded to steps; the state after step k is that of time k·Δt.
TEST(SceneLoss, RangesDistancesEffortsAndPeaks) {
  const Scene scene = parse_scene(R"(
model:
  bodies:
    arm: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.01]}
    ball: {shapes: [{density: 500, geometry: {type: sphere}}]}
  joints:
    hinge: {type: revolute, child: arm, axis: [0, 1, 0], drive: {stiffness: 10}, limit: {lower: -1, upper: 2}}
    fly: {type: free, child: ball}
  shapes: {floor: {body: world, geometry: {type: plane}}}
optimize:
  loss:
    running:
      - {joint: hinge, position: {at_least: -10 deg, at_most: 0.5}, limit_margin: 0.25, effort: {at_most: 4}, power: 2 W,
         part: drive, over: greatest, weight: {power: 5}}
      - {distance: [arm, ball], over: least, from: 0.1}
      - {contact: [floor, ball], force: [none, 1, 2]}
      - {contact: [ball, floor], force: {at_least: [1, none, 3]}}
    terminal:
      - {body: arm, velocity: [1, none, 20 cm/s], angular_velocity: {at_most: [none, 2, 3]}, weight: {velocity: 3}}
      - {distance: [world, ball], points: [[1, 2, 3], [4, 5, 6]], target: {at_least: 10 cm}, measure: absolute}
)",
                                  "test.yaml", ".");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<LossTerm>& loss = scene.problem.loss;
  const auto find = [&](const char* name) -> const LossTerm& {
    const auto found = std::ranges::find(loss, name, &LossTerm::name);
    EXPECT_NE(found, loss.end()) << name;
    return found == loss.end() ? loss.front() : *found;
  };
  const auto expect_range = [&](const char* name, int number, double lower, double upper) {
    const auto [from, to] = find(name).range(number);
    EXPECT_DOUBLE_EQ(from, lower) << name;
    EXPECT_DOUBLE_EQ(to, upper) << name;
  };
  EXPECT_EQ(loss.size(), 10u);
  expect_range("terminal/arm/velocity", 0, 1, 1);
  expect_range("terminal/arm/velocity", 1, -infinity, infinity);
  expect_range("terminal/arm/velocity", 2, 0.2, 0.2);
  EXPECT_EQ(find("terminal/arm/velocity").weight, 3);
  EXPECT_EQ(find("terminal/arm/velocity").quantity, LossQuantity::body_velocity);
  expect_range("terminal/arm/angular_velocity", 0, -infinity, infinity);
  expect_range("terminal/arm/angular_velocity", 2, -infinity, 3);
  const LossTerm& from_world = find("terminal/distance/world/ball");
  EXPECT_EQ(from_world.index, 1);
  EXPECT_EQ(from_world.other, -1);
  EXPECT_EQ(from_world.point, (std::array<double, 3>{4, 5, 6}));
  EXPECT_EQ(from_world.other_point, (std::array<double, 3>{1, 2, 3}));
  EXPECT_EQ(from_world.measure, ErrorMeasure::absolute);
  expect_range("terminal/distance/world/ball", 0, 0.1, infinity);
  expect_range("running/hinge/position", 0, -M_PI / 18, 0.5);
  EXPECT_FALSE(find("running/hinge/position").on_circle);
  expect_range("running/hinge/limit_margin", 0, -0.75, 1.75);
  expect_range("running/hinge/effort", 0, -infinity, 4);
  expect_range("running/hinge/power", 0, 2, 2);
  EXPECT_EQ(find("running/hinge/power").part, EffortPart::drive);
  EXPECT_EQ(find("running/hinge/power").weight, 5);
  EXPECT_EQ(find("running/hinge/power").over, OverTime::greatest);
  EXPECT_EQ(find("running/distance/arm/ball").over, OverTime::least);
  EXPECT_EQ(find("running/distance/arm/ball").first_step, 25);
  // One of the two names the pair as the model has it; of the other the force is that on the other one.
  const LossTerm &one = find("running/contact/floor/ball"), &other = find("running/contact/ball/floor");
  EXPECT_EQ(one.index, other.index);
  const bool swapped = one.target[1] < 0;
  expect_range("running/contact/floor/ball", 0, -infinity, infinity);
  expect_range("running/contact/floor/ball", 2, swapped ? -2 : 2, swapped ? -2 : 2);
  expect_range("running/contact/ball/floor", 0, swapped ? 1 : -infinity, swapped ? infinity : -1);
  expect_range("running/contact/ball/floor", 1, -infinity, infinity);
  // And all of it comes back from what is written.
  const Scene again = parse_scene(scene_with_values(scene, scene.problem), "b.yaml", ".");
  expect_same(scene.problem, again.problem);
}

TEST(SceneLoss, TermsKnowWhenTheyAreScored) {
  const auto term = [](const std::string& list, const std::string& when) {
    return load({{"optimize/loss/" + list, "[{joint: hinge, position: 1" + when + "}]"}}).problem.loss.back();
  };
  const auto window = [&](const std::string& when) {
    const LossTerm t = term("running", when);
    EXPECT_FALSE(t.terminal);
    EXPECT_TRUE(t.integral);
    return std::pair(t.first_step, t.last_step);
  };
  EXPECT_EQ(window(""), std::pair(1, 50));
  EXPECT_EQ(window(", from: 0.2 s"), std::pair(21, 50));
  EXPECT_EQ(window(", until: 200 ms"), std::pair(1, 20));
  EXPECT_EQ(window(", from: 204 ms, until: 0.5 s"), std::pair(21, 50));
  EXPECT_EQ(window(", from: 206 ms, until: 0.216"), std::pair(22, 22));
  for (const auto& [at, step] : {std::pair("0.3 s", 30), {"6 ms", 1}, {"0.5 s", 50}, {"0.494", 49}}) {
    const LossTerm t = term("waypoints", std::string(", at: ") + at);
    EXPECT_EQ(t.name, "waypoints/hinge/position");
    EXPECT_FALSE(t.terminal || t.integral) << at;
    EXPECT_EQ(std::pair(t.first_step, t.last_step), std::pair(step, step)) << at;
  }
}

TEST(SceneFiles, ThoseOfTheRepositoryLoadAndRoundTrip) {
  const std::filesystem::path folder = std::filesystem::path(test::kRepository) / "scenes";
  for (const char* name :
       {"pendulum_swingup", "cartpole_swingup", "double_pendulum", "arm_reach", "chain32", "four_bar"}) {
    SCOPED_TRACE(name);
    const Scene scene = load_scene(folder / (std::string(name) + ".yaml"));
    EXPECT_EQ(scene.name, name);
    EXPECT_FALSE(scene.description.empty());
    EXPECT_FALSE(scene.problem.variables.empty());
    EXPECT_FALSE(scene.problem.loss.empty());
    EXPECT_TRUE(std::isfinite(scene.problem.optimize.goal));
    expect_same(scene.problem, parse_scene(scene_with_values(scene, scene.problem), "b.yaml", ".").problem);
  }
}

}  // namespace
}  // namespace backdrive
