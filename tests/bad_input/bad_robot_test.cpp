// Every malformed robot file of tests/bad_input/robots is refused with its place, what stands there and what was
// expected.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <set>
#include <string>

#include "engine/error.h"
#include "scenes/scene.h"
#include "tests/support/own_folder.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

struct Case {
  const char* name;
  const char* place;  ///< line:column
  const char* value;
  const char* expected;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

// clang-format off
const Case kCases[] = {
    {"attribute_twice", "2:22", "attribute 'name' a second time", "expected each attribute once"},
    {"attribute_without_quotes", "2:12", "value", "expected XML (Error parsing element attribute)"},
    {"axis_without_xyz", "7:1", "nothing", "expected the attribute 'xyz'"},
    {"box_without_size", "10:1", "nothing", "expected the attribute 'size'"},
    {"child_of_two", "10:14", "value 'b'", "expected a link that hangs on one joint only (it hangs on joint 'j' at line 4 already)"},
    {"circle", "1:1", "a circle of joints", "expected a tree"},
    {"circle_aside", "5:1", "a loop: 'b' on 'a' on 'b'", "expected a tree that hangs on the world"},
    {"collision_without_geometry", "8:1", "nothing", "expected an element <geometry>"},
    {"control_character", "2:14", "value '0x01'", "expected text without control characters"},
    {"crossed_tags", "1:34", "value", "expected XML ("},
    {"cylinder_without_length", "10:1", "nothing", "expected the attribute 'length'"},
    {"doctype", "1:11", "a document type (DOCTYPE)", "entities are not expanded"},
    {"entity_bomb", "1:11", "a document type (DOCTYPE)", "entities are not expanded"},
    {"external_entity", "1:11", "a document type (DOCTYPE)", "entities are not expanded"},
    {"flat_sphere", "10:1", "0", "expected a finite length > 0 m"},
    {"floating_in_the_tree", "9:23", "value 'floating'", "a floating one must hang on the fixed root link"},
    {"friction_in_words", "7:21", "value 'some'", "expected a number"},
    {"geometry_of_nothing", "9:1", "0 elements", "expected one of <box>"},
    {"geometry_of_two", "9:1", "2 elements", "expected one of <box>"},
    {"inertia_in_words", "6:15", "value 'one'", "expected a number"},
    {"inertial_twice", "8:1", "a second <inertial>", "expected one"},
    {"inertial_without_inertia", "4:1", "nothing", "expected an element <inertia"},
    {"inertial_without_mass", "4:1", "nothing", "expected an element <mass value=...>"},
    {"joint_of_unknown_type", "4:23", "value 'revolut'", "; did you mean 'revolute'?"},
    {"joint_twice", "8:14", "value 'j'", "expected another name: a joint at line 4 has this one"},
    {"joint_without_child", "4:1", "nothing", "expected an element <child link=...>"},
    {"joint_without_name", "4:1", "nothing", "expected the attribute 'name' (of the joint)"},
    {"joint_without_parent", "4:1", "nothing", "expected an element <parent link=...>"},
    {"joint_without_type", "4:1", "joint 'j'", "expected the attribute 'type'"},
    {"latin1", "2:13", "value '0xE9'", "expected text in UTF-8"},
    {"limits_swapped", "7:15", "value '1'", "expected a lower limit that is not above the upper one (-1)"},
    {"link_twice", "3:13", "value 'a'", "expected another name: a link at line 2 has this one"},
    {"link_with_empty_name", "2:13", "value ''", "expected a name"},
    {"link_without_name", "2:1", "nothing", "expected the attribute 'name' (of the link)"},
    {"mass_hexadecimal", "5:14", "value '0x10'", "expected a number"},
    {"mass_in_words", "5:14", "value '1 kg'", "expected a number"},
    {"mass_infinite", "5:14", "value '1e999'", "expected a number"},
    {"mass_nan", "5:14", "value 'nan'", "expected a number"},
    {"mesh_absolute", "10:17", "value '/etc/passwd'", "expected a file inside the robot's folder"},
    {"mesh_missing", "10:17", "value 'no_such.stl'", "expected an existing file"},
    {"mesh_of_empty_name", "10:17", "value ''", "expected the name of a file"},
    {"mesh_of_file_scheme", "10:17", "value 'file:///etc/passwd'", "expected a file inside the robot's folder"},
    {"mesh_of_unknown_package", "10:17", "value 'package://no_such_package/a.stl'", "--robot-path FOLDER"},
    {"mesh_of_zero_scale", "10:1", "0", "expected a finite factor > 0"},
    {"mesh_outside", "10:17", "value '../mesh_tetrahedron.obj'", "expected a file inside the robot's folder, its package or a robot path"},
    {"mesh_scale_of_two", "10:41", "value '1 1'", "expected 3 numbers with spaces between them"},
    {"mesh_without_file", "10:1", "nothing", "expected the attribute 'filename'"},
    {"mjcf", "1:1", "mujoco: nothing", "expected at least one <body> in <worldbody>"},
    {"moves_no_inertia", "4:1", "moves no inertia", "expected body 'b' or those it carries to have inertia"},
    {"negative_box", "10:12", "value '1 -1 1'", "expected three numbers of at least 0"},
    {"negative_damping", "7:20", "value '-1'", "expected a number of at least 0"},
    {"negative_effort", "7:37", "value '-5'", "expected a number of at least 0"},
    {"negative_mass", "5:14", "value '-1'", "expected a number of at least 0"},
    {"negative_radius", "10:17", "value '-1'", "expected a number of at least 0"},
    {"no_element", "1:17", "value ''", "expected XML (No document element found)"},
    {"no_link", "1:1", "nothing", "expected at least one link"},
    {"no_robot", "1:1", "element 'html'", "expected a robot file: URDF, <robot>"},
    {"not_closed", "2:16", "value", "expected XML ("},
    {"origin_of_four", "7:14", "value '1 2 3 4'", "expected 3 numbers with spaces between them"},
    {"origin_of_two", "7:14", "value '1 2'", "expected 3 numbers with spaces between them"},
    {"origin_with_commas", "7:14", "value '1,2,3'", "expected 3 numbers with spaces between them"},
    {"own_child", "4:1", "a loop: 'a' on 'a'", "expected a tree that hangs on the world"},
    {"parent_without_link", "4:30", "nothing", "expected the attribute 'link'"},
    {"rpy_in_words", "7:14", "value '0 0 pi'", "expected 3 numbers with spaces between them"},
    {"sdf", "1:1", "element 'sdf'", "SDF is not read"},
    {"too_deep", "2:190", "nested more than 64 deep", "expected at most 64 levels"},
    {"two_roots", "2:1", "a second element 'robot'", "expected one element"},
    {"two_trees", "3:1", "a second link that is no joint's child", "the root (link 'a' at line 2)"},
    {"unknown_child", "6:14", "value 'c'", "expected the name of a link"},
    {"unknown_geometry", "10:1", "element 'cone'", "expected one of <box>"},
    {"unknown_parent", "5:15", "value 'aa'", "expected the name of a link"},
    {"velocity_in_words", "7:50", "value 'fast'", "expected a number"},
    {"xacro", "2:1", "element 'xacro:property'", "expand the macros first: xacro"},
    {"zero_axis", "7:12", "value '0 0 0'", "expected an axis that is not zero"},
};
// clang-format on

std::filesystem::path folder() {
  return test::kRepository + "/tests/bad_input/robots";
}

class BadRobot : public testing::TestWithParam<Case> {};

TEST_P(BadRobot, NamesPlaceValueAndExpectation) {
  const Case& one = GetParam();
  const std::filesystem::path file = folder() / (std::string(one.name) + ".urdf");
  try {
    load_scene(file);
    FAIL() << file << " was accepted";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::input) << message;
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_TRUE(message.starts_with(file.string() + ":" + one.place + ": ")) << message;
    EXPECT_NE(message.find(one.value), std::string::npos) << message;
    EXPECT_NE(message.find(one.expected), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Robots, BadRobot, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(BadRobotFolder, HasNoFileThatNoCaseReads) {
  std::set<std::string> files, cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".urdf") files.insert(entry.path().stem().string());
  }
  for (const Case& one : kCases) cases.insert(one.name);
  EXPECT_EQ(files, cases);
  EXPECT_GE(cases.size(), 60u);
}

/// Megabytes on one line: what took the square of their number would not end while the test runs.
TEST(BadRobotFile, HugeOnesAreRefused) {
  const test::OwnFolder folder;
  const auto refused = [&](const std::string& text) -> std::string {
    try {
      load_scene(folder.write("huge_robot.urdf", text));
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 3);
      return error.what();
    }
    return "accepted";
  };
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_NE(refused("<robot name='r'>" + repeated("<a/>", 3'000'000) + "</robot>").find("1:2000009: more than 500000"),
            std::string::npos);
  EXPECT_NE(refused(repeated("<a>", 3'000'000)).find("expected XML"), std::string::npos);
  std::string attributes = "<robot";
  for (int i = 0; i < 300'000; ++i) attributes += " a" + std::to_string(i) + "=''";
  EXPECT_NE(refused(attributes + "/>").find("expected at least one link"), std::string::npos);
  EXPECT_NE(refused(std::string((std::size_t{16} << 20) + 1, '<')).find("16 MiB"), std::string::npos);
}

}  // namespace
}  // namespace backdrive
