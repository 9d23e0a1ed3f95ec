// Robots from MJCF files: what becomes of every element, what scenes add to them, what is refused and what is told.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

#include "scenes/scene.h"
#include "tests/scenes/mjcf_folder.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;
using std::numbers::pi;

class Mjcf : public MjcfFolder {};

TEST_F(Mjcf, JointsOfABodyAreChained) {
  const Model m =
      body(
          "<joint name=\"yaw\" axis=\"0 0 2\" pos=\"1 0 0\"/><joint name=\"lift\" type=\"slide\" pos=\"1 2 0\"/>"
          "<joint name=\"turn\" type=\"ball\" pos=\"0 0 3\"/>")
          .problem.model;
  ASSERT_EQ(m.joint_names.size(), 3u);
  EXPECT_EQ(m.joint_types[m.find_joint("yaw")], JointType::revolute);
  EXPECT_EQ(m.joint_types[m.find_joint("lift")], JointType::prismatic);
  EXPECT_EQ(m.joint_types[m.find_joint("turn")], JointType::ball);
  expect_near(numbers(m.joints.axis, m.find_joint("yaw")), {0, 0, 1}, 1e-14);
  expect_near(numbers(m.joints.frame.position, m.find_joint("yaw")), {1, 0, 0}, 1e-14);
  expect_near(numbers(m.joints.frame.position, m.find_joint("lift")), {0, 2, 0}, 1e-14);
  expect_near(numbers(m.joints.frame.position, m.find_joint("turn")), {-1, -2, 3}, 1e-14);
  // The frame of the body is at its last joint.
  const int b = m.find_body("b");
  expect_near(numbers(m.bodies.com, b), {0, 0, -3}, 1e-14);
  EXPECT_EQ(m.bodies.mass(b), 1);
  EXPECT_EQ(m.bodies.mass(m.find_body("yaw_link")), 0);
}

TEST_F(Mjcf, DegreesReferencesAndSpringsAreConverted) {
  const std::string joint =
      "<joint name=\"j\" range=\"-90 90\" ref=\"30\" springref=\"45\" stiffness=\"5\" damping=\"0.5\" armature=\"0.1\" "
      "frictionloss=\"0.2\"/>";
  const Scene scene = body(joint);
  const Model& m = scene.problem.model;
  const int j = m.find_joint("j");
  EXPECT_NEAR(m.joints.limit.lower(j), -120 * pi / 180, 1e-15);
  EXPECT_NEAR(m.joints.limit.upper(j), 60 * pi / 180, 1e-15);
  EXPECT_NEAR(m.joints.spring.rest(j), 15 * pi / 180, 1e-15);
  EXPECT_EQ(m.joints.spring.stiffness(j), 5);
  EXPECT_EQ(m.joints.damping(j), 0.5);
  EXPECT_EQ(m.joints.armature(j), 0.1);
  EXPECT_EQ(m.joints.friction(j), 0.2);
  EXPECT_TRUE(contains(notes(scene), "- ")) << notes(scene);
  EXPECT_TRUE(contains(notes(scene), "<joint ref=...>: positions are counted from it")) << notes(scene);
  const Model radians = body(joint, "<compiler angle=\"radian\"/>").problem.model;
  EXPECT_EQ(radians.joints.limit.upper(j), 60);
  // Slides are in metres.
  const Model slide = body("<joint name=\"j\" type=\"slide\" range=\"-1 2\" ref=\"0.5\"/>").problem.model;
  EXPECT_EQ(slide.joints.limit.lower(j), -1.5);
}

/// A pendulum's I = 1.004 kg·m² about its hinge, with an armature of 0.5 kg·m² more.
TEST_F(Mjcf, TimeConstantsBecomeSpringsAndDampers) {
  const auto joint = [&](const std::string& more) {
    return model("<worldbody><body><joint name=\"j\" armature=\"0.5\" stiffness=\"7\" damping=\"3\" " + more +
                 "/><geom size=\"0.1\" pos=\"1 0 0\" mass=\"1\"/></body></worldbody>")
        .problem.model;
  };
  const Model m = joint("springdamper=\"0.2 0.5\"");
  EXPECT_NEAR(m.joints.spring.stiffness(0), 1.504 / (0.2 * 0.2 * 0.5 * 0.5), 1e-10);
  EXPECT_NEAR(m.joints.damping(0), 2 * 1.504 / 0.2, 1e-12);
  const Model plain = joint("springdamper=\"0.2 0\"");
  EXPECT_EQ(plain.joints.spring.stiffness(0), 7);
  EXPECT_EQ(plain.joints.damping(0), 3);
}

TEST_F(Mjcf, LimitsActWhereTheyAreSwitchedOn) {
  const auto upper = [&](const std::string& joint, const std::string& compiler = "") {
    const Model m = body("<joint name=\"j\" type=\"slide\" " + joint + "/>", compiler).problem.model;
    return m.joints.limit.upper(m.find_joint("j"));
  };
  EXPECT_EQ(upper("range=\"-1 2\""), 2);
  EXPECT_EQ(upper("range=\"-1 2\" limited=\"auto\""), 2);
  EXPECT_EQ(upper("range=\"-1 2\" limited=\"false\""), kInfinity);
  EXPECT_EQ(upper("range=\"-1 2\"", "<compiler autolimits=\"false\"/>"), kInfinity);
  EXPECT_EQ(upper("range=\"-1 2\" limited=\"true\"", "<compiler autolimits=\"false\"/>"), 2);
  // From the margin on they act, in rad whatever the compiler's angles are; ends do not pass each other.
  EXPECT_EQ(upper("range=\"-1 2\" margin=\"0.25\""), 1.75);
  EXPECT_NEAR(upper("range=\"-1 2\" margin=\"5\""), 0.53, 1e-12);
  const Model m = body("<joint name=\"j\" range=\"-90 90\" margin=\"0.25\"/>").problem.model;
  EXPECT_NEAR(m.joints.limit.lower(m.find_joint("j")), -pi / 2 + 0.25, 1e-14);
  const Model ball = body("<joint name=\"j\" type=\"ball\" range=\"0 90\" margin=\"0.25\"/>").problem.model;
  EXPECT_NEAR(ball.joints.limit.upper(ball.find_joint("j")), pi / 2 - 0.25, 1e-14);
}

TEST_F(Mjcf, MassesAreThoseOfGeoms) {
  const std::string two =
      "<worldbody><body name=\"b\"><joint/><geom size=\"0.1\"/><geom type=\"box\" size=\"0.1 0.2 0.3\" "
      "pos=\"1 0 0\" density=\"500\" group=\"4\"/></body></worldbody>";
  const double ball = 1000 * 4 * pi / 3 * 1e-3, box = 500 * 8 * 0.006;
  const auto mass = [&](const std::string& compiler) {
    const Model m = model(compiler + two).problem.model;
    return m.bodies.mass(m.find_body("b"));
  };
  EXPECT_NEAR(mass(""), ball + box, 1e-12);
  EXPECT_NEAR(mass("<compiler inertiagrouprange=\"0 3\"/>"), ball, 1e-12);
  EXPECT_NEAR(mass("<compiler settotalmass=\"7\"/>"), 7, 1e-12);
  EXPECT_NEAR(mass("<compiler boundmass=\"50\"/>"), 50, 1e-12);
  const Model m = model(two).problem.model;
  const int b = m.find_body("b");
  EXPECT_NEAR(m.bodies.com(b, 0), box / (ball + box), 1e-14);
  const double together = ball * box / (ball + box), own = 0.4 * ball * 0.01;
  EXPECT_NEAR(m.bodies.inertia(b, 0), own + box * (0.04 + 0.09) / 3, 1e-12);
  EXPECT_NEAR(m.bodies.inertia(b, 1), own + box * (0.01 + 0.09) / 3 + together, 1e-12);
  // What is given goes before, unless the geoms are asked for.
  const std::string given =
      "<worldbody><body name=\"b\"><joint/><inertial pos=\"0 0 1\" mass=\"3\" diaginertia=\"1 2 2.5\"/>"
      "<geom size=\"0.1\"/></body></worldbody>";
  const auto mass_of = [&](const std::string& compiler) {
    const Model own_mass = model(compiler + given).problem.model;
    return own_mass.bodies.mass(own_mass.find_body("b"));
  };
  EXPECT_EQ(mass_of(""), 3);
  EXPECT_NEAR(mass_of("<compiler inertiafromgeom=\"true\"/>"), ball, 1e-12);
}

TEST_F(Mjcf, OrientationsAreWrittenInFiveWays) {
  const auto axis = [&](const std::string& way, const std::string& compiler = "") {
    const Model m = model(compiler + "<worldbody><body name=\"b\" " + way +
                          "><joint name=\"j\"/><geom size=\"1\"/></body></worldbody>")
                        .problem.model;
    return numbers(m.joints.frame.orientation, m.find_joint("j"));
  };
  const double h = std::sqrt(0.5);
  expect_near(axis("quat=\"2 0 2 0\""), {0, h, 0, h}, 1e-14);
  expect_near(axis("axisangle=\"0 3 0 90\""), {0, h, 0, h}, 1e-14);
  expect_near(axis("euler=\"0 90 0\""), {0, h, 0, h}, 1e-14);
  expect_near(axis("xyaxes=\"0 0 -2 1 0 3\""), {0.5, 0.5, -0.5, 0.5}, 1e-14);
  expect_near(axis("zaxis=\"5 0 0\""), {0, h, 0, h}, 1e-14);
  // About axes that turn along, or about fixed ones.
  expect_near(axis("euler=\"90 90 0\""), {0.5, 0.5, 0.5, 0.5}, 1e-14);
  expect_near(axis("euler=\"90 90 0\"", "<compiler eulerseq=\"XYZ\"/>"), {0.5, 0.5, -0.5, 0.5}, 1e-14);
  EXPECT_TRUE(contains(refused("<worldbody><body euler=\"0 0 0\" quat=\"1 0 0 0\"/></worldbody>"), "one orientation"));
}

TEST_F(Mjcf, ClassesGiveWhatElementsLeaveOut) {
  const Model m = model(R"(<default><joint damping="1"/><geom mass="2"/>
      <default class="limb"><joint damping="3" armature="4"/><default class="tip"><joint armature="5"/></default></default>
    </default>
    <worldbody>
      <body name="a"><joint name="a"/><geom size="0.1"/></body>
      <body name="b" childclass="limb"><joint name="b"/><geom size="0.1"/>
        <body name="c"><joint name="c" damping="7"/><geom size="0.1"/></body>
        <body name="d"><joint name="d" class="tip"/><geom size="0.1"/></body>
      </body>
      <body name="e"><freejoint name="e"/><geom size="0.1"/></body>
    </worldbody>)")
                      .problem.model;
  const auto of = [&](const Parameter& parameter, const char* joint) { return parameter(m.find_joint(joint)); };
  EXPECT_EQ(of(m.joints.damping, "a"), 1);
  EXPECT_EQ(of(m.joints.armature, "a"), 0);
  EXPECT_EQ(of(m.joints.damping, "b"), 3);
  EXPECT_EQ(of(m.joints.damping, "c"), 7);
  EXPECT_EQ(of(m.joints.armature, "c"), 4);
  EXPECT_EQ(of(m.joints.armature, "d"), 5);
  EXPECT_EQ(of(m.joints.damping, "d"), 3);
  EXPECT_EQ(of(m.joints.damping, "e"), 0);
  EXPECT_EQ(m.bodies.mass(m.find_body("c")), 2);
  const std::string wrong = refused(
      "<default><default class=\"limb\"/></default><worldbody><body><joint class=\"limp\"/>"
      "<geom size=\"1\"/></body></worldbody>");
  EXPECT_TRUE(contains(wrong, "the name of a default class; did you mean 'limb'?")) << wrong;
}

TEST_F(Mjcf, FramesAndReplicasPlaceWhatIsInThem) {
  const Model m = model(R"(<worldbody><frame pos="0 0 1" euler="0 0 90">
      <replicate count="3" offset="1 0 0" euler="0 0 90" sep="_">
        <body name="post" pos="0 2 0"><joint name="j"/><geom name="g" size="0.1"/></body>
      </replicate></frame></worldbody>)")
                      .problem.model;
  expect_near(numbers(m.joints.frame.position, m.find_joint("j_0")), {-2, 0, 1}, 1e-14);
  expect_near(numbers(m.joints.frame.position, m.find_joint("j_1")), {0, -1, 1}, 1e-14);
  expect_near(numbers(m.joints.frame.position, m.find_joint("j_2")), {1, 1, 1}, 1e-14);
  EXPECT_GE(m.find_shape("g_2"), 0);
}

TEST_F(Mjcf, BitsOfContactDecideWhoTouchesWhom) {
  // 1 and 2 meet by contype & conaffinity in either direction, 0 and 0 touch nothing.
  const auto pairs = [&](const std::string& a, const std::string& b, const std::string& rest = "") {
    const std::string text = "<worldbody><body name=\"a\"><freejoint/><geom name=\"a\" size=\"1\" " + a +
                             "/></body><body name=\"b\"><freejoint/><geom name=\"b\" size=\"1\" " + b +
                             "/></body></worldbody>" + rest;
    return model(text).problem.model.topology.contact_pairs.size();
  };
  EXPECT_EQ(pairs("", ""), 1u);
  EXPECT_EQ(pairs("contype=\"2\" conaffinity=\"0\"", "contype=\"0\" conaffinity=\"2\""), 1u);
  EXPECT_EQ(pairs("contype=\"2\" conaffinity=\"0\"", "contype=\"0\" conaffinity=\"4\""), 0u);
  EXPECT_EQ(pairs("contype=\"0\" conaffinity=\"1\"", "contype=\"0\" conaffinity=\"1\""), 0u);
  EXPECT_EQ(pairs("contype=\"0\" conaffinity=\"0\"", ""), 0u);
  EXPECT_EQ(pairs("", "", "<contact><exclude body1=\"a\" body2=\"b\"/></contact>"), 0u);
  EXPECT_EQ(pairs("contype=\"0\" conaffinity=\"0\"", "", "<contact><pair geom1=\"a\" geom2=\"b\"/></contact>"), 1u);
  EXPECT_EQ(pairs("", "", "<option><flag contact=\"disable\"/></option>"), 0u);
}

TEST_F(Mjcf, OfSelfCollisionOnlyFalseCounts) {
  // The first two meet, the third meets neither; all meet the floor.
  const std::string ball = "<freejoint/><geom size=\"1\" ",
                    text = "<worldbody><body>" + ball + "/></body><body>" + ball + "/></body><body>" + ball +
                           "contype=\"2\" conaffinity=\"2\"/></body><geom type=\"plane\" size=\"1 1 1\" contype=\"3\" "
                           "conaffinity=\"3\"/>"
                           "</worldbody>";
  const auto pairs = [&](const std::vector<Override>& set) {
    return model(text, set).problem.model.topology.contact_pairs.size();
  };
  EXPECT_EQ(pairs({}), 4u);
  EXPECT_EQ(pairs({{"model/self_collision", "true"}}), 4u);
}

TEST_F(Mjcf, BodiesOfOneJointDoNotTouchThroughThoseBetween) {
  const std::string text =
      "<worldbody><body name=\"a\"><freejoint/><geom size=\"1\"/><body name=\"b\"><joint/>"
      "<joint axis=\"1 0 0\"/><geom size=\"1\"/></body></body></worldbody>";
  EXPECT_EQ(model(text).problem.model.topology.contact_pairs.size(), 0u);
}

TEST_F(Mjcf, MaterialsFollowCondim) {
  const auto friction = [&](const std::string& geom) {
    const Model m = model("<worldbody><body><freejoint/><geom name=\"g\" size=\"1\" " + geom + "/></body></worldbody>")
                        .problem.model;
    const int s = m.find_shape("g");
    return std::vector<double>{m.shapes.material.friction(s), m.shapes.material.torsional_friction(s),
                               m.shapes.material.rolling_friction(s)};
  };
  const std::string three = "friction=\"0.5 0.02 0.003\"";
  EXPECT_EQ(friction(""), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(friction("friction=\"0.3\" condim=\"1\""), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(friction(three), (std::vector<double>{0.5, 0, 0}));
  EXPECT_EQ(friction(three + " condim=\"4\""), (std::vector<double>{0.5, 0.02, 0}));
  EXPECT_EQ(friction(three + " condim=\"6\""), (std::vector<double>{0.5, 0.02, 0.003}));
}

TEST_F(Mjcf, ModelsSayGravityAndTimeUnlessTheSceneDoes) {
  const std::string text =
      "<mujoco><option gravity=\"0 0 -3\" timestep=\"0.01\"/><worldbody><body name=\"b\"><freejoint "
      "name=\"f\"/><geom size=\"1\"/></body></worldbody></mujoco>";
  write("g.xml", text);
  EXPECT_EQ(body("<joint/>").problem.simulation.time_step, 0.002);  // MuJoCo's own
  const Scene alone = load_scene(folder_ / "g.xml");
  EXPECT_EQ(alone.problem.simulation.time_step, 0.01);
  EXPECT_EQ(alone.problem.model.gravity(0, 2), -3);
  const Scene scene =
      load_scene(write("s.yaml", "simulation: {time_step: 0.001}\nmodel: {file: g.xml, gravity: [0, 0, -1]}\n"));
  EXPECT_EQ(scene.problem.simulation.time_step, 0.001);
  EXPECT_EQ(scene.problem.model.gravity(0, 2), -1);
  // Of several, none says.
  const Scene several = load_scene(write("t.yaml", "model: {robots: {a: {file: g.xml}, b: {file: g.xml}}}\n"));
  EXPECT_EQ(several.problem.model.gravity(0, 2), -9.81);
  EXPECT_GE(several.problem.model.find_body("b_b"), 0);
  EXPECT_EQ(several.problem.model.topology.contact_pairs.size(), 1u);
  // What is left out of a file is told once, however many robots there are of it.
  write("h.xml", "<mujoco><worldbody><body mocap=\"true\"><joint/><geom size=\"1\"/></body></worldbody></mujoco>");
  EXPECT_EQ(load_scene(write("u.yaml", "model: {robots: {a: {file: h.xml}, b: {file: h.xml}}}\n")).notes.size(), 1u);
}

TEST_F(Mjcf, KeyframesAreInitialStates) {
  const std::string text =
      "<worldbody><body name=\"b\" pos=\"0 0 5\"><freejoint name=\"f\"/><geom size=\"1\"/><body name=\"c\"><joint "
      "name=\"j\" "
      "ref=\"0.5\"/><geom size=\"1\"/></body></body></worldbody><compiler angle=\"radian\"/><keyframe><key name=\"up\" "
      "qpos=\"1 2 "
      "3 0 0 0 2 0.75\" qvel=\"0 0 0 1 0 0 4\"/><key name=\"fast\" qvel=\"7 0 0 0 0 0 0\"/></keyframe>";
  const auto state = [&](const std::vector<Override>& set) { return model(text, set).problem; };
  expect_near(state({}).initial_position, {0, 0, 0, 1, 0, 0, 5, 0}, 1e-14);
  const Problem up = state({{"model/keyframe", "up"}});
  expect_near(up.initial_position, {0, 0, 1, 0, 1, 2, 3, 0.25}, 1e-14);
  expect_near(up.initial_velocity, {-1, 0, 0, 0, 0, 0, 4}, 1e-14);  // ω about x of a body that is turned half about z
  const Problem fast = state({{"model/keyframe", "fast"}});
  expect_near(fast.initial_position, {0, 0, 0, 1, 0, 0, 5, 0}, 1e-14);
  expect_near(fast.initial_velocity, {0, 0, 0, 7, 0, 0, 0}, 1e-14);
  EXPECT_TRUE(contains(refused(text, {{"model/keyframe", "fats"}}), "the name of a <key>; did you mean 'fast'?"));
}

TEST_F(Mjcf, BasesAreHeldOrFreed) {
  const std::string flies =
      "<worldbody><body name=\"b\" pos=\"0 0 2\"><freejoint name=\"f\"/><geom size=\"1\"/><body "
      "name=\"c\"><joint name=\"j\"/><geom size=\"1\"/></body></body></worldbody>";
  EXPECT_EQ(model(flies).problem.model.topology.nv, 7);
  EXPECT_EQ(model(flies, {{"model/base", "fixed"}}).problem.model.topology.nv, 1);
  const std::string stands =
      "<worldbody><body name=\"b\" pos=\"0 0 2\"><geom size=\"1\"/><body name=\"c\"><joint "
      "name=\"j\"/><geom size=\"1\"/></body></body></worldbody>";
  EXPECT_EQ(model(stands).problem.model.topology.nv, 1);
  const Problem freed = model(stands, {{"model/base", "floating"}}).problem;
  EXPECT_EQ(freed.model.topology.nv, 7);
  EXPECT_EQ(freed.initial_position[6], 2);
  const Problem moved = model(flies, {{"model/frame/position", "[1, 0, 0]"}}).problem;
  expect_near({moved.initial_position[4], moved.initial_position[6]}, {1, 2}, 1e-14);
}

TEST_F(Mjcf, FilesAreIncludedAndMeshesFound) {
  const std::string tetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n";
  write("meshes/t.obj", tetrahedron);
  write("parts/joint.xml", "<mujocoinclude><joint name=\"j\"/></mujocoinclude>");
  const std::string text =
      "<compiler meshdir=\"meshes\"/><asset><mesh file=\"t.obj\" scale=\"2 1 1\"/></asset><worldbody>"
      "<body name=\"b\"><include file=\"parts/joint.xml\"/><geom type=\"mesh\" mesh=\"t\"/></body></worldbody>";
  const Model m = model(text).problem.model;
  EXPECT_EQ(m.joint_names[0], "j");
  EXPECT_NEAR(m.bodies.mass(0), 1000.0 * 2 / 6, 1e-9);
  expect_near(numbers(m.bodies.com, 0), {0.5, 0.25, 0.25}, 1e-14);
  EXPECT_EQ(m.meshes.size(), 1u);
  EXPECT_TRUE(contains(refused("<include file=\"none.xml\"/>"), "expected an existing file"));
  write("loop.xml", "<mujocoinclude><include file=\"loop.xml\"/></mujocoinclude>");
  EXPECT_TRUE(contains(refused("<include file=\"loop.xml\"/>"), "loop.xml:1:31: include: file"));
  EXPECT_TRUE(contains(refused("<include file=\"../../etc/passwd\"/>"), "expected"));
}

TEST_F(Mjcf, WhatIsNotTakenOverIsTold) {
  const Scene scene =
      body("<joint name=\"j\" actuatorgravcomp=\"true\" margin=\"0\"/><site name=\"s\"/><camera/><light/>",
           "<equality><connect body1=\"b\" anchor=\"0 0 0\"/><weld body1=\"b\" active=\"false\"/></equality>"
           "<tendon><spatial stiffness=\"3\"><site site=\"s\"/></spatial></tendon>"
           "<sensor><jointpos joint=\"j\"/></sensor><extension/><visual/>");
  const std::string told = notes(scene);
  for (const char* const words :
       {"! ", "<joint actuatorgravcomp=...>", "<equality> <connect>", "<tendon> <spatial>", "! ", "<extension>"}) {
    EXPECT_TRUE(contains(told, words)) << words << "\n" << told;
  }
  EXPECT_FALSE(contains(told, "weld")) << told;
  EXPECT_TRUE(contains(told, "- " + (folder_ / "m.xml").string() + ":1:")) << told;
  LoadOptions strict;
  strict.strict = true;
  EXPECT_TRUE(
      contains(refused("<worldbody><body mocap=\"true\"><joint/><geom size=\"1\"/></body></worldbody>", {}, strict),
               "(--strict)"));
}

TEST_F(Mjcf, BallsHaveSpringsAndRangesAndBodiesLift) {
  const Scene scene = model(
      "<worldbody><body name=\"a\" gravcomp=\"0.75\"><geom size=\"1\"/>"
      "<joint name=\"j\" type=\"ball\" stiffness=\"3\" springref=\"20\" range=\"0 45\"/></body>"
      "<body name=\"b\" pos=\"5 0 0\"><geom size=\"1\"/><freejoint name=\"f\"/></body></worldbody>"
      "<actuator><motor joint=\"j\" gear=\"0 2 0\"/><motor joint=\"f\" gear=\"0 0 1 0 0 0\"/>"
      "<position joint=\"j\" kp=\"3\"/><motor joint=\"j\" ctrlrange=\"-1 1\"/></actuator>");
  const Model& m = scene.problem.model;
  const int j = m.find_joint("j");
  EXPECT_EQ(m.joints.spring.stiffness(j), 3);
  EXPECT_EQ(m.joints.spring.rest(j), 0);
  EXPECT_DOUBLE_EQ(m.joints.limit.upper(j), M_PI / 4);
  EXPECT_TRUE(std::isinf(m.joints.limit.lower(j)));
  EXPECT_EQ(m.bodies.gravity_compensation(m.find_body("a")), 0.75);
  EXPECT_EQ(m.bodies.gravity_compensation(m.find_body("b")), 0);
  const std::string told = notes(scene);
  EXPECT_TRUE(contains(told, "<actuator> <position> with gains or limits on a joint of several")) << told;
  EXPECT_TRUE(contains(told, "<actuator> <motor> with gains or limits on a joint of several")) << told;
  EXPECT_FALSE(contains(told, "2 times")) << told;
  EXPECT_TRUE(contains(notes(model("<worldbody><body><geom size=\"1\"/><joint type=\"ball\" range=\"10 45\"/></body>"
                                   "</worldbody>")),
                       "of a ball joint that is not from 0"));
}

/// As many parts without a name, in a time that grows with their number alone (not its square: minutes).
TEST_F(Mjcf, PartsWithoutNamesGetNumbers) {
  std::string many;
  for (int i = 0; i < 50'000; ++i) many += "<geom size=\"1\"/>";
  const Model m = model("<worldbody>" + many + "<body><joint/><geom size=\"1\"/></body></worldbody>").problem.model;
  EXPECT_GE(m.find_shape("world_sphere"), 0);
  EXPECT_GE(m.find_shape("world_sphere_49999"), 0);
}

/// As many notes as a hostile file likes, in a time that grows with its length alone.
TEST_F(Mjcf, NotesAreCounted) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "<x" + std::to_string(i) + "/>";
  const Scene scene = body("<joint/>", many);
  EXPECT_LT(scene.notes.size(), 300u);
  EXPECT_TRUE(contains(notes(scene), "and more, of other kinds"));
}

}  // namespace
}  // namespace backdrive
