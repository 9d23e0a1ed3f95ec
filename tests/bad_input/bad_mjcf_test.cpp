// Models of MuJoCo that are wrong: each is refused with its place and what was expected.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "scenes/scene.h"
#include "tests/support/own_folder.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

/// The error of a model that does not load.
std::string refused(const std::string& elements) {
  const test::OwnFolder folder;
  const std::filesystem::path file = folder.write("bad_model.xml", "<mujoco>" + elements + "</mujoco>");
  std::string message = "accepted";
  try {
    load_scene(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    message = error.what();
  }
  return message;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Elements of a model, and what its error says.
struct Refused {
  const char *elements, *message;
};

TEST(BadMjcf, IsRefusedWithItsPlace) {
  const std::vector<Refused> all{
      {"", "at least one <body> in <worldbody>"},
      {"<worldbody/>", "at least one <body>"},
      {"<worldbody><body><joint/></body></worldbody>", "moves no"},
      {"<worldbody><body><geom/></body></worldbody>", "the attribute 'size' (1 length in m for a sphere)"},
      {"<worldbody><body><geom type=\"box\" size=\"1 2\"/></body></worldbody>", "3 lengths in m for a box"},
      {"<worldbody><body><geom type=\"cube\" size=\"1\"/></body></worldbody>", "one of plane, hfield, sphere"},
      {"<worldbody><body><geom size=\"-1\"/></body></worldbody>", "lengths above 0"},
      {"<worldbody><body><geom size=\"1 x\"/></body></worldbody>", "1 to 3 numbers"},
      {"<worldbody><body><geom size=\"1e400\"/></body></worldbody>", "1 to 3 numbers"},
      {"<worldbody><body><geom size=\"nan\"/></body></worldbody>", "1 to 3 numbers"},
      {"<worldbody><body><geom type=\"capsule\" fromto=\"0 0 0 0 0 0\" size=\"1\"/></body></worldbody>",
       "two points that are apart"},
      {"<worldbody><body><geom type=\"capsule\" fromto=\"0 0 0 0 0 1\"/></body></worldbody>", "the attribute 'size'"},
      {"<worldbody><body><geom size=\"1\" contype=\"0.5\"/></body></worldbody>", "a whole number of 32 bits"},
      {"<worldbody><body><geom size=\"1\" contype=\"1e99\"/></body></worldbody>", "a whole number of 32 bits"},
      {"<worldbody><body><geom size=\"1\" mass=\"-1\"/></body></worldbody>", "a number of at least 0"},
      {"<worldbody><body><geom size=\"1\" shellinertia=\"true\"/></body></worldbody>", "false: shapes are solid"},
      {"<worldbody><body><geom type=\"mesh\" mesh=\"m\"/></body></worldbody>", "the name of a <mesh> in <asset>"},
      {"<worldbody><body><geom type=\"box\" size=\"1 1 1\" mesh=\"m\"/></body></worldbody>", "a geom of type mesh"},
      {"<worldbody><body><geom type=\"sdf\" mesh=\"m\"/></body></worldbody>", "distance fields are not read"},
      {"<worldbody><body><joint type=\"screw\"/><geom size=\"1\"/></body></worldbody>",
       "one of hinge, slide, ball and free"},
      {"<worldbody><body><joint axis=\"0 0 0\"/><geom size=\"1\"/></body></worldbody>", "an axis that is not zero"},
      {"<worldbody><body><joint range=\"2 1\"/><geom size=\"1\"/></body></worldbody>",
       "a lower end below the upper one"},
      {"<worldbody><body><joint limited=\"true\"/><geom size=\"1\"/></body></worldbody>", "the attribute 'range'"},
      {"<worldbody><body><joint damping=\"-1\"/><geom size=\"1\"/></body></worldbody>", "a number of at least 0"},
      {"<worldbody><joint/></worldbody>", "a body around it"},
      {"<worldbody><inertial mass=\"1\" pos=\"0 0 0\"/></worldbody>", "a body around it"},
      {"<worldbody><body><freejoint/><joint/><geom size=\"1\"/></body></worldbody>", "no other joint there"},
      {"<worldbody><body><joint/><freejoint/><geom size=\"1\"/></body></worldbody>", "no other joint there"},
      {"<worldbody><body><geom size=\"1\"/><body><freejoint/><geom size=\"1\"/></body></body></worldbody>",
       "one of a body of the world"},
      {"<worldbody><body name=\"a\"/><body name=\"a\"/></worldbody>", "a name that no other body has"},
      {"<worldbody><body><joint name=\"a\"/><joint name=\"a\"/></body></worldbody>", "a name that no other joint has"},
      {"<worldbody><body quat=\"0 0 0 0\"/></worldbody>", "a quaternion (w, x, y, z) that is not zero"},
      {"<worldbody><body zaxis=\"0 0 0\"/></worldbody>", "directions that are not zero"},
      {"<worldbody><body pos=\"0 0\"/></worldbody>", "3 numbers with spaces between them"},
      {"<worldbody><body childclass=\"none\"><joint/></body></worldbody>", "the name of a default class"},
      {"<worldbody><body mocap=\"yes\"/></worldbody>", "true or false"},
      {"<worldbody><body><inertial pos=\"0 0 0\" mass=\"1\"/></body></worldbody>", "'diaginertia' or 'fullinertia'"},
      {"<worldbody><body><inertial pos=\"0 0 0\" diaginertia=\"1 1 1\"/></body></worldbody>", "the attribute 'mass'"},
      {"<worldbody><body><inertial mass=\"1\" diaginertia=\"1 1 1\"/></body></worldbody>", "the attribute 'pos'"},
      {"<worldbody><body><composite/></body></worldbody>", "bodies that are written out"},
      {"<worldbody><body><flexcomp/></body></worldbody>", "bodies that are written out"},
      {"<worldbody><replicate count=\"0\"/></worldbody>", "a whole number from 1 to 10,000"},
      {"<worldbody><replicate count=\"1e9\"/></worldbody>", "a whole number from 1 to 10,000"},
      {"<worldbody><replicate/></worldbody>", "the attribute 'count'"},
      {"<worldbody><replicate count=\"9999\"><replicate count=\"9999\"><geom "
       "size=\"1\"/></replicate></replicate></worldbody>",
       "a smaller model"},
      {"<compiler angle=\"grad\"/>", "degree or radian"},
      {"<compiler eulerseq=\"xy\"/>", "three letters"},
      {"<compiler coordinate=\"global\"/>", "local: MuJoCo itself has global coordinates no more"},
      {"<compiler inertiafromgeom=\"maybe\"/>", "true or false"},
      {"<compiler inertiagrouprange=\"0 1e99\"/>", "two numbers of groups"},
      {"<option wind=\"1 0 0\"/>", "0: bodies move in a vacuum here"},
      {"<option viscosity=\"0.1\"/>", "0: bodies move in a vacuum here"},
      {"<option timestep=\"0\"/>", "a number above 0"},
      {"<option gravity=\"9.81\"/>", "3 numbers"},
      {"<default><default/></default>", "the attribute 'class'"},
      {"<default><default class=\"a\"/><default class=\"a\"/></default>", "a class that is not there already"},
      {"<include/>", "the attribute 'file'"},
      {"<asset><mesh/></asset>", "the attribute 'file'"},
      {"<asset><mesh name=\"m\" vertex=\"0 0 0 1 0 0 0 1 0 0 0 1 5\"/></asset><worldbody><body><geom type=\"mesh\" "
       "mesh=\"m\"/>"
       "</body></worldbody>",
       "three numbers a vertex"},
      {"<asset><mesh name=\"m\" vertex=\"0 0 0 1 0 0 0 1 0 0 0 1\" face=\"0 1 9\"/></asset><worldbody><body><geom "
       "type=\"mesh\" "
       "mesh=\"m\"/></body></worldbody>",
       "numbers of vertices, from 0"},
      {"<asset><mesh name=\"m\" file=\"m.msh\"/></asset><worldbody><body><geom type=\"mesh\" "
       "mesh=\"m\"/></body></worldbody>",
       "an OBJ, STL or COLLADA file"},
      {"<worldbody><body name=\"a\"><joint/><geom size=\"1\"/></body></worldbody><contact><exclude body1=\"a\" "
       "body2=\"c\"/>"
       "</contact>",
       "the name of a body"},
      {"<worldbody><body name=\"a\"><joint/><geom size=\"1\"/></body></worldbody><contact><pair geom1=\"a\" "
       "geom2=\"c\"/>"
       "</contact>",
       "the name of a geom"},
      {"<worldbody><body name=\"a\"><joint name=\"elbow\"/><geom size=\"1\"/></body></worldbody><actuator><motor "
       "joint=\"elbov\"/>"
       "</actuator>",
       "the name of a joint; did you mean 'elbow'?"},
      {"<worldbody><body><joint name=\"j\"/><geom size=\"1\"/></body></worldbody><actuator><motor joint=\"j\" "
       "gear=\"x\"/>"
       "</actuator>",
       "1 to 6 numbers"},
  };
  for (const Refused& one : all) {
    const std::string message = refused(one.elements);
    EXPECT_TRUE(contains(message, one.message)) << one.elements << "\n" << message;
    EXPECT_TRUE(contains(message, "bad_model.xml:1:")) << message;
  }
  EXPECT_TRUE(contains(refused("<!DOCTYPE a [<!ENTITY b \"c\">]>"), "expected"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<body>";
  EXPECT_TRUE(contains(refused("<worldbody>" + deep), "expected"));
}

/// A model with every part that is read, so that sanitizers see the reader whole.
TEST(BadMjcf, AGoodOneIsRead) {
  const Scene scene = load_scene(test::kRepository + "/tests/reference/mujoco_parts.xml");
  EXPECT_EQ(scene.problem.model.topology.nv, 19);
  EXPECT_EQ(parse_scene(scene_with_values(scene, scene.problem), "written.yaml", ".").problem.model.topology.nv, 19);
}

}  // namespace
}  // namespace backdrive
