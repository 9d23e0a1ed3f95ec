// Robots from URDF files: what becomes of every element, what scenes add to them, where meshes are found.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

#include "integrators/reference/inverse_dynamics.h"
#include "models/meshes/convex_mesh.h"
#include "models/parameter_list.h"
#include "scenes/scene.h"
#include "tests/scenes/robot_values.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;

class Robots : public RobotFolder {
 protected:
  Scene robot(const std::string& elements, const std::vector<Override>& set = {},
              const LoadOptions& options = {}) const {
    return load_scene(write("r.urdf", "<robot name=\"r\">" + elements + "</robot>"), set, options);
  }
  static std::string refused(const fs::path& file, const LoadOptions& options = {}) {
    return refusal(file, {}, options);
  }
};

const std::string kMass = "<inertial><mass value=\"2\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\"/></inertial>";
const std::string kLinks = "<link name=\"a\">" + kMass + "</link><link name=\"b\">" + kMass + "</link>";

std::string joint(const std::string& type, const std::string& inner = "", const std::string& name = "j",
                  const std::string& parent = "a", const std::string& child = "b") {
  return "<joint name=\"" + name + "\" type=\"" + type + "\"><parent link=\"" + parent + "\"/><child link=\"" + child +
         "\"/>" + inner + "</joint>";
}

JointType type_of(const Model& model, const std::string& name) {
  return model.joint_types[model.find_joint(name)];
}

TEST_F(Robots, InertiasAreTurnedIntoLinkAxes) {
  // A quarter turn about z swaps x and y: ixy becomes −ixy, ixz goes to iyz, iyz to −ixz.
  const Scene scene = robot(
      "<link name=\"a\"><inertial><origin xyz=\"1 2 3\" rpy=\"0 0 1.5707963267948966\"/><mass value=\"4\"/>"
      "<inertia ixx=\"3\" ixy=\"0.1\" ixz=\"0.2\" iyy=\"4\" iyz=\"0.3\" izz=\"5\"/></inertial></link>");
  const Model& model = scene.problem.model;
  EXPECT_EQ(model.bodies.mass(0), 4);
  EXPECT_EQ(numbers(model.bodies.com, 0), (std::vector<double>{1, 2, 3}));
  expect_near(numbers(model.bodies.inertia, 0), {4, 3, 5, -0.1, -0.3, 0.2}, 1e-15);
}

TEST_F(Robots, WhatStandsOnTheWorldStandsWhereTheRobotDoes) {
  const std::string box = "<origin xyz=\"0 2 0\"/><geometry><box size=\"1 1 1\"/></geometry>";
  write("r.urdf", "<robot name=\"r\"><link name=\"world\"><visual>" + box + "</visual><collision>" + box +
                      "</collision></link><link name=\"a\">" + kMass + "</link>" +
                      joint("continuous", "<origin xyz=\"0 2 0\"/>", "j", "world", "a") + "</robot>");
  // A quarter turn about z brings (0, 2, 0) to (−2, 0, 0), 5 m along x.
  const Scene scene = load_scene(
      write("s.yaml", "model: {file: r.urdf, frame: {position: [5, 0, 0], orientation: {rpy: [0, 0, 90 deg]}}}\n"));
  const Model& model = scene.problem.model;
  expect_near(numbers(model.joints.frame.position, 0), {3, 0, 0}, 1e-15);
  expect_near(numbers(model.shapes.frame.position, 0), {3, 0, 0}, 1e-15);
  expect_near(numbers(model.shapes.frame.orientation, 0), {0, 0, std::sqrt(0.5), std::sqrt(0.5)}, 1e-15);
  ASSERT_EQ(scene.looks.visuals.size(), 1u);
  EXPECT_EQ(scene.looks.visuals[0].body, "world");
  EXPECT_NEAR(scene.looks.visuals[0].pose.position[0], 3, 1e-15);
}

TEST_F(Robots, JointsHaveTypeFrameAxisLimitsAndResistance) {
  const Scene scene = robot(kLinks + joint("revolute",
                                           "<origin xyz=\"1 2 3\" rpy=\"0.1 0.2 0.3\"/><axis xyz=\"0 3 4\"/>"
                                           "<limit lower=\"-1\" upper=\"2\" effort=\"5\" velocity=\"0\"/>"
                                           "<dynamics damping=\"0.5\" friction=\"0.25\"/>"));
  const Model& model = scene.problem.model;
  const int j = model.find_joint("j");
  EXPECT_EQ(type_of(model, "j"), JointType::revolute);
  EXPECT_EQ(type_of(model, "base"), JointType::fixed);
  EXPECT_EQ(numbers(model.joints.frame.position, j), (std::vector<double>{1, 2, 3}));
  // Yaw, pitch, roll about fixed axes: R_z R_y R_x.
  const double c1 = std::cos(0.05), s1 = std::sin(0.05), c2 = std::cos(0.1), s2 = std::sin(0.1), c3 = std::cos(0.15),
               s3 = std::sin(0.15);
  expect_near(numbers(model.joints.frame.orientation, j),
              {s1 * c2 * c3 - c1 * s2 * s3, c1 * s2 * c3 + s1 * c2 * s3, c1 * c2 * s3 - s1 * s2 * c3,
               c1 * c2 * c3 + s1 * s2 * s3},
              1e-15);
  expect_near(numbers(model.joints.axis, j), {0, 0.6, 0.8}, 1e-15);
  EXPECT_EQ(model.joints.limit.lower(j), -1);
  EXPECT_EQ(model.joints.limit.upper(j), 2);
  EXPECT_EQ(model.joints.drive.effort_limit(j), 5);
  EXPECT_EQ(model.joints.damping(j), 0.5);
  EXPECT_EQ(model.joints.friction(j), 0.25);
  EXPECT_TRUE(scene.notes.empty()) << scene.notes.front().text;
}

TEST_F(Robots, DefaultsAreThoseOfTheFormat) {
  const Model model = robot(kLinks + joint("continuous", "<limit effort=\"3\" velocity=\"0\"/>")).problem.model;
  EXPECT_TRUE(std::isinf(model.joints.limit.velocity(model.find_joint("j"))));
  const Model fast = robot(kLinks + joint("continuous", "<limit velocity=\"2.5\"/>")).problem.model;
  EXPECT_EQ(fast.joints.limit.velocity(fast.find_joint("j")), 2.5);
  EXPECT_TRUE(std::isinf(fast.joints.limit.upper(fast.find_joint("j"))));
  const int j = model.find_joint("j");
  EXPECT_EQ(type_of(model, "j"), JointType::revolute);
  EXPECT_EQ(numbers(model.joints.axis, j), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(model.joints.limit.lower(j), -kInfinity);
  EXPECT_EQ(model.joints.drive.effort_limit(j), 3);
}

TEST_F(Robots, BaseFloatsOrStandsWhereTheSceneSays) {
  const std::vector<Override> floating{{"model/base", "floating"}};
  EXPECT_EQ(type_of(robot(kLinks + joint("fixed"), floating).problem.model, "base"), JointType::free);
  const std::vector<Override> placed{{"model/frame/position", "[1, 2, 3]"},
                                     {"model/frame/orientation", "{rpy: [0, 0, 90 deg]}"}};
  const Model model = robot(kLinks + joint("fixed", "<origin xyz=\"1 0 0\"/>"), placed).problem.model;
  const auto poses = reference::body_poses(model, std::vector<double>{});
  expect_near({poses[1].position.begin(), poses[1].position.end()}, {1, 3, 3}, 1e-14);
}

TEST_F(Robots, ALinkCalledWorldIsTheWorld) {
  const std::string world =
      "<link name=\"world\"><collision><geometry><box size=\"2 2 2\"/></geometry></collision></link>";
  const std::vector<Override> placed{{"model/frame/position", "[0, 0, 5]"}};
  const Scene scene = robot(
      world + kLinks + joint("fixed", "<origin xyz=\"0 0 1\"/>", "mount", "world", "a") + joint("revolute"), placed);
  const Model& model = scene.problem.model;
  EXPECT_EQ(model.body_names.size(), 2u);
  EXPECT_EQ(model.joint_parents[model.find_joint("mount")], -1);
  EXPECT_EQ(model.joints.frame.position(model.find_joint("mount"), 2), 6);
  EXPECT_EQ(model.shape_bodies[model.find_shape("world_0")], -1);
  EXPECT_NE(refused(write("w.yaml", "model: {file: r.urdf, base: floating}")).find("called world"), std::string::npos);
}

TEST_F(Robots, PlanarJointsMoveAcrossTheirAxis) {
  for (const Numbers3 axis : {Numbers3{0, 0, 1}, Numbers3{1, 0, 0}, Numbers3{0, 0, -1}, Numbers3{0.36, 0.48, 0.8}}) {
    const std::string words = std::to_string(axis[0]) + " " + std::to_string(axis[1]) + " " + std::to_string(axis[2]);
    const Model model =
        robot(kLinks + joint("planar", "<origin xyz=\"1 1 1\"/><axis xyz=\"" + words + "\"/>")).problem.model;
    EXPECT_EQ(type_of(model, "j"), JointType::planar);
    const auto pose = [&](const std::vector<double>& q) {
      return reference::body_poses(model, q)[model.find_body("b")];
    };
    const auto rest = pose({0, 0, 0});
    expect_near({rest.position.begin(), rest.position.end()}, {1, 1, 1}, 1e-15);
    expect_near({rest.rotation.begin(), rest.rotation.end()}, {1, 0, 0, 0, 1, 0, 0, 0, 1}, 1e-15);
    for (const auto& q : {std::vector<double>{2, 0, 0}, {0, 2, 0}}) {  // slides are across the axis
      const auto moved = pose(q);
      double along = 0, length = 0;
      for (int k = 0; k < 3; ++k) {
        along += axis[k] * (moved.position[k] - 1);
        length += (moved.position[k] - 1) * (moved.position[k] - 1);
      }
      EXPECT_NEAR(along, 0, 1e-14);
      EXPECT_NEAR(length, 4, 1e-14);
    }
    const auto turned = pose({0, 0, 0.5});  // about the axis by 0.5: it stays, the trace is 1 + 2 cos
    EXPECT_NEAR(turned.rotation[0] + turned.rotation[4] + turned.rotation[8], 1 + 2 * std::cos(0.5), 1e-14);
    for (int r = 0; r < 3; ++r) {
      double image = 0;
      for (int c = 0; c < 3; ++c) image += turned.rotation[c * 3 + r] * axis[c];
      EXPECT_NEAR(image, axis[r], 1e-14);
    }
  }
}

TEST_F(Robots, FloatingJointsHangOnTheFixedRoot) {
  const Model model = robot(kLinks + joint("floating", "<origin xyz=\"0 0 2\"/>")).problem.model;
  EXPECT_EQ(type_of(model, "j"), JointType::free);
  EXPECT_EQ(model.joint_parents[model.find_joint("j")], -1);
  EXPECT_EQ(model.joints.frame.position(model.find_joint("j"), 2), 2);
}

TEST_F(Robots, ShapesHaveHalfTheLengthsOfTheFile) {
  const auto collision = [](const std::string& form) {
    return "<collision><origin xyz=\"0 0 1\"/><geometry>" + form + "</geometry></collision>";
  };
  const Model model = robot("<link name=\"a\">" + kMass + collision("<box size=\"2 4 6\"/>") +
                            collision("<sphere radius=\"3\"/>") + collision("<cylinder radius=\"1\" length=\"4\"/>") +
                            collision("<capsule radius=\"1\" length=\"4\"/>") + "</link>")
                          .problem.model;
  const std::vector<GeometryType> types{GeometryType::box, GeometryType::sphere, GeometryType::cylinder,
                                        GeometryType::capsule};
  const std::vector<std::vector<double>> scales{{1, 2, 3}, {3, 0, 0}, {1, 2, 0}, {1, 2, 0}};
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(model.shape_names[s], "a_" + std::to_string(s));
    EXPECT_EQ(model.shape_types[s], types[s]);
    EXPECT_EQ(numbers(model.shapes.geometry.scale, s), scales[s]);
    EXPECT_EQ(model.shapes.frame.position(s, 2), 1);
  }
  EXPECT_EQ(body_mass(model, 0, 0).mass, 2);  // shapes of a robot add none
}

const std::string kCube =
    "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n"
    "f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n";

std::string with_mesh(const std::string& attributes) {
  return "<link name=\"a\">" + kMass + "<collision><geometry><mesh " + attributes + "/></geometry></collision></link>";
}

TEST_F(Robots, MeshesAreFoundInFoldersAndPackages) {
  write("package/parts_description/meshes/cube.obj", kCube);
  write("package/parts_description/package.xml", "<package/>");
  const std::string beside = "<robot name=\"r\">" + with_mesh("filename=\"../meshes/cube.obj\"") + "</robot>";
  const std::string named =
      "<robot name=\"r\">" + with_mesh("filename=\"package://parts_description/meshes/cube.obj\"") + "</robot>";
  // In the robot's own package, by a relative path and by name; beside it; by a robot path from elsewhere.
  EXPECT_EQ(load_scene(write("package/parts_description/urdf/r.urdf", beside)).problem.model.meshes.size(), 1u);
  EXPECT_EQ(load_scene(write("package/parts_description/urdf/s.urdf", named)).problem.model.meshes.size(), 1u);
  EXPECT_EQ(load_scene(write("package/other/s.urdf", named)).problem.model.meshes.size(), 1u);
  const fs::path elsewhere = write("elsewhere/s.urdf", named);
  EXPECT_NE(refused(elsewhere).find("--robot-path FOLDER"), std::string::npos);
  const LoadOptions root{{folder_ / "package"}}, itself{{folder_ / "package/parts_description"}};
  EXPECT_EQ(load_scene(elsewhere, {}, root).problem.model.meshes.size(), 1u);
  EXPECT_EQ(load_scene(elsewhere, {}, itself).problem.model.meshes.size(), 1u);
  setenv("ROS_PACKAGE_PATH", ("/nowhere:" + (folder_ / "package").string()).c_str(), 1);
  EXPECT_EQ(load_scene(elsewhere).problem.model.meshes.size(), 1u);
  unsetenv("ROS_PACKAGE_PATH");
  // Without shapes no mesh is needed.
  const std::vector<Override> without{{"model/collision", "false"}};
  EXPECT_EQ(load_scene(elsewhere, without).problem.model.shape_names.size(), 0u);
  // Nothing else is opened, through links either.
  fs::create_symlink(folder_ / "package/parts_description/meshes/cube.obj", folder_ / "elsewhere/link.obj");
  EXPECT_NE(refused(write("elsewhere/t.urdf", "<robot name=\"r\">" + with_mesh("filename=\"link.obj\"") + "</robot>"))
                .find("expected a file inside the robot's folder"),
            std::string::npos);
}

TEST_F(Robots, MirroredMeshesAreMirrored) {
  write("cube.obj", kCube);
  const Model model = robot(with_mesh("filename=\"cube.obj\" scale=\"1 -2 0.5\"")).problem.model;
  Vec3<double> low{9, 9, 9}, high{-9, -9, -9};
  for (const Vec3<double>& v : model.meshes[0]->vertices) {
    low = {std::min(low.x, v.x), std::min(low.y, v.y), std::min(low.z, v.z)};
    high = {std::max(high.x, v.x), std::max(high.y, v.y), std::max(high.z, v.z)};
  }
  expect_near({low.x, low.y, low.z, high.x, high.y, high.z}, {0, -2, 0, 1, 0, 0.5}, 1e-15);
}

TEST_F(Robots, ScenesAddToRobotsAndReplaceByName) {
  write("r.urdf", "<robot name=\"r\"><link name=\"a\">" + kMass +
                      "<collision><geometry><sphere radius=\"1\"/></geometry></collision></link><link name=\"b\">" +
                      kMass + "</link>" +
                      joint("revolute", "<origin xyz=\"1 0 0\" rpy=\"1 0 0\"/><axis xyz=\"0 1 0\"/>") + "</robot>");
  const Scene scene = load_scene(write("s.yaml", R"(
model:
  file: r.urdf
  base: floating
  bodies:
    b: {mass: 7}
    tip: {mass: 1, inertia: [1, 1, 1]}
  joints:
    j: {damping: 3, frame: {orientation: {axis: [0, 0, 1], angle: 1}}}
    end: {type: ball, parent: b, child: tip}
  shapes:
    a: {material: {friction: 0.1}}
    floor: {body: world, geometry: {type: plane}}
initial_state: {j: {position: 0.5}}
)"));
  const Model& model = scene.problem.model;
  EXPECT_EQ(model.bodies.mass(model.find_body("b")), 7);
  EXPECT_EQ(model.bodies.inertia(model.find_body("b"), 0), 1);
  const int j = model.find_joint("j");
  EXPECT_EQ(model.joints.damping(j), 3);
  EXPECT_EQ(numbers(model.joints.axis, j), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(model.joints.frame.position(j, 0), 1);
  EXPECT_NEAR(model.joints.frame.orientation(j, 2), std::sin(0.5), 1e-15);  // the whole orientation is replaced
  EXPECT_EQ(type_of(model, "end"), JointType::ball);
  EXPECT_EQ(model.shapes.material.friction(model.find_shape("a")), 0.1);
  EXPECT_EQ(model.topology.contact_pairs.size(), 1u);
  EXPECT_EQ(scene.problem.initial_position[model.topology.links[model.link_of_joint(j)].q], 0.5);
  // Overrides reach what the robot brought.
  const std::vector<Override> set{{"joints/j/damping", "5"}, {"shapes/a/geometry/scale/0", "2"}};
  const Model changed = load_scene(folder_ / "s.yaml", set).problem.model;
  EXPECT_EQ(changed.joints.damping(j), 5);
  EXPECT_EQ(changed.shapes.geometry.scale(changed.find_shape("a"), 0), 2);
}

TEST_F(Robots, SeveralHavePrefixesAndMeetEachOther) {
  const std::string ball = "<collision><geometry><sphere radius=\"1\"/></geometry></collision>";
  write("r.urdf", "<robot name=\"r\"><link name=\"a\">" + kMass + ball + "</link><link name=\"b\">" + kMass +
                      "</link><link name=\"c\">" + kMass + ball + "</link>" + joint("revolute") +
                      joint("revolute", "", "k", "b", "c") + "</robot>");
  const std::string scene = R"(model:
  robots:
    left: {file: r.urdf, base: floating}
    right: {file: r.urdf, base: floating, frame: {position: [0, 5, 0]}}
)";
  const Model model = load_scene(write("s.yaml", scene)).problem.model;
  EXPECT_EQ(type_of(model, "left_base"), JointType::free);
  EXPECT_GE(model.find_body("right_c"), 0);
  EXPECT_EQ(model.joints.frame.position(model.find_joint("right_base"), 1), 5);
  EXPECT_EQ(model.topology.contact_pairs.size(), 4u);  // a and c of one with those of the other
  const std::vector<Override> all{{"model/robots/left/self_collision", "true"}};
  EXPECT_EQ(load_scene(folder_ / "s.yaml", all).problem.model.topology.contact_pairs.size(), 5u);
  // A robot without shapes has no group that the other could meet.
  const std::vector<Override> without{{"model/robots/left/collision", "false"}};
  EXPECT_EQ(load_scene(folder_ / "s.yaml", without).problem.model.topology.contact_pairs.size(), 0u);
}

TEST_F(Robots, WhatIsNotTakenOverIsTold) {
  const std::string elements = kLinks +
                               joint("revolute",
                                     "<limit lower=\"-1\" upper=\"1\" effort=\"1\" velocity=\"2\"/>"
                                     "<safety_controller k_velocity=\"1\"/>") +
                               "<transmission name=\"t\"/><gazebo/><gazebo/>";
  const Scene scene = robot(elements);
  std::string notes;
  int changes = 0;
  for (const SceneNote& note : scene.notes) {
    notes += note.text + "\n";
    changes += note.changes_motion;
  }
  EXPECT_EQ(changes, 2) << notes;  // of <transmission> motion does not depend
  for (const char* const words : {"<safety_controller>", "<gazebo> (2 times)", "<transmission>"}) {
    EXPECT_NE(notes.find(words), std::string::npos) << notes;
  }
  EXPECT_NE(notes.find("r.urdf:1:"), std::string::npos) << notes;
  const LoadOptions strict{{}, true};
  EXPECT_NE(refused(folder_ / "r.urdf", strict).find("<safety_controller>"), std::string::npos);
  EXPECT_NO_THROW(robot(kLinks + joint("fixed"), {}, strict));
}

TEST_F(Robots, UnphysicalInertiasAreTakenAndTold) {
  const std::string flat = "<inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"5\"/></inertial>";
  const Scene scene = robot("<link name=\"a\"/><link name=\"b\">" + flat + "</link>" + joint("revolute"));
  EXPECT_EQ(scene.problem.model.bodies.inertia(1, 2), 5);
  ASSERT_EQ(scene.notes.size(), 2u);
  EXPECT_NE(scene.notes[0].text.find("that no rigid body has"), std::string::npos);
  // Written out it stays what it is; by hand it must be asked for.
  const Scene again = parse_scene(scene_with_values(scene, scene.problem), "again.yaml", folder_);
  EXPECT_EQ(again.problem.model.bodies.inertia(1, 2), 5);
  EXPECT_NE(refused(write("hand.yaml",
                          "model: {bodies: {b: {mass: 1, inertia: [1, 1, 5]}}, joints: {j: {type: "
                          "revolute, child: b}}}"))
                .find("none larger than the sum of the other two"),
            std::string::npos);
}

TEST_F(Robots, KeyframesAreOfMjcf) {
  write("r.urdf", "<robot name=\"r\">" + kLinks + joint("continuous") + "</robot>");
  const std::string message = refused(write("s.yaml", "model: {file: r.urdf, keyframe: home}"));
  EXPECT_NE(message.find("s.yaml:1:33: keyframe: value 'home': expected no keyframe"), std::string::npos) << message;
}

TEST_F(Robots, KeysAboutNoRobotAreRefused) {
  const std::string model = "bodies: {b: {mass: 1}}, joints: {j: {type: prismatic, child: b}}";
  EXPECT_NE(
      refused(write("s.yaml", "model: {base: floating, " + model + "}")).find("key 'base' without the key 'file'"),
      std::string::npos);
  EXPECT_NE(refused(write("s.yaml", "model: {file: none.urdf}")).find("s.yaml:1:15: model/file"), std::string::npos);
  EXPECT_NE(refused(write("s.yaml", "model: {file: s.yaml}")).find("which begin with '<'"), std::string::npos);
  EXPECT_NE(refused(write("s.yaml", "model: {robots: {l: {base: loose}}}")).find("expected one of fixed, floating"),
            std::string::npos);
}

/// Whether two models are the same to the bit.
void expect_same(const Model& a, const Model& b) {
  EXPECT_EQ(a.body_names, b.body_names);
  EXPECT_EQ(a.joint_names, b.joint_names);
  EXPECT_EQ(a.shape_names, b.shape_names);
  EXPECT_EQ(a.topology.contact_pairs.size(), b.topology.contact_pairs.size());
  for (const Field& field : fields()) {
    const Parameter &own = field.in(a), &other = field.in(b);
    ASSERT_EQ(own.items(), other.items());
    for (int item = 0; item < own.items(); ++item) EXPECT_EQ(numbers(own, item), numbers(other, item)) << field.leaf;
  }
}

TEST_F(Robots, ConvertedRobotsAreTheSameToTheBit) {
  write("cube.obj", kCube);
  for (const char* const name : {"arm", "quadruped", "humanoid"}) {
    const Scene scene = load_scene(test::kRepository + "/scenes/" + name + ".urdf");
    const Scene again = parse_scene(scene_with_values(scene, scene.problem), "again.yaml", folder_);
    expect_same(scene.problem.model, again.problem.model);
  }
  const Scene meshed = robot(with_mesh("filename=\"cube.obj\" scale=\"0.3 0.1 0.7\""));
  const Scene again = parse_scene(scene_with_values(meshed, meshed.problem), "again.yaml", folder_);
  expect_same(meshed.problem.model, again.problem.model);
}

}  // namespace
}  // namespace backdrive
