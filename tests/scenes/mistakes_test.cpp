// All mistakes of a scene at once, each with its parts.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "scenes/scene.h"
#include "tests/support/own_folder.h"

namespace backdrive {
namespace {

std::vector<SceneMistake> mistakes_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parse_scene(text, "scene.yaml", ".", overrides);
  } catch (const SceneError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    std::string all;
    for (const SceneMistake& m : error.mistakes()) all += (all.empty() ? "" : "\n") + m.text;
    EXPECT_EQ(error.what(), all);
    return error.mistakes();
  }
  return {};
}

TEST(SceneMistakes, AreToldAtOnce) {
  const auto found = mistakes_of(R"(simulation: {time_stp: 4 ms}
model:
  bodies:
    a: {mas: 1}
    b: {mass: 1 m, com: [0, 1 kg, x]}
    a/b: {mass: 1}
  joints:
    j: {type: revolut, child: a}
    k: {type: revolute}
optimise: {}
)");
  std::string where;
  for (const SceneMistake& m : found) {
    EXPECT_EQ(m.file, "scene.yaml");
    EXPECT_FALSE(m.expected.empty());
    EXPECT_EQ(m.text.find("scene.yaml:" + std::to_string(m.line) + ":" + std::to_string(m.column) + ": "), 0u);
    where +=
        std::to_string(m.line) + ":" + std::to_string(m.column) + " " + m.path + " " + m.value() + " " + m.hint + "\n";
  }
  EXPECT_EQ(where,
            "1:14 simulation time_stp time_step\n"
            "4:9 model/bodies/a mas mass\n"
            "5:15 model/bodies/b/mass 1 m \n"
            "5:29 model/bodies/b/com/1 1 kg \n"
            "5:35 model/bodies/b/com/2 x \n"
            "6:5 model/bodies a/b \n"
            "8:15 model/joints/j/type revolut revolute\n"
            "9:8 model/joints/k {type: revolute} \n"
            "10:1  optimise optimize\n");
}

std::string all_of(const std::vector<SceneMistake>& found) {
  std::string all;
  for (const SceneMistake& m : found) {
    all += std::to_string(m.line) + " " + m.path + (m.value().empty() ? "" : " " + m.value()) + "\n";
  }
  return all;
}

/// What breaks the schema, the model as a whole, its numbers, and what refers to it, in the order of lines; and nothing
/// of what follows from another: a length where a mass should be leaves the joint that moves the body alone, a joint of
/// no type what is said of it.
TEST(SceneMistakes, OfAllKindsAreToldAtOnce) {
  EXPECT_EQ(all_of(mistakes_of(R"(simulation: {time_step: 1 m, duration: 2 s}
model:
  bodies:
    a: {mass: 2 m, inertia: [1, 1, 9]}
    b: {mass: 1, inertia: [1, 1, 1], colour: red}
    c: {mass: -1, inertia: [1, 1, 1]}
  joints:
    j: {type: revolute, child: a, damping: 1 kg, limit: {lower: 2, upper: 1}}
    k: {type: hinge, child: b, damping: -1}
    l: {type: prismatic, parent: d, child: c}
    l: {type: ball, child: c}
  couplings: {m: {ratios: {j: 1, k: 1}}, n: {ratios: {j: 1}, damping: 1 N}}
  contacts: {exclude: [[a, e]]}
initial_state: {j: {position: 1 m}, k: {orientation: [0, 0, 0, 1]}, q: {position: 1}, l: {position: x}}
)")),
            "1 simulation/time_step 1 m\n"
            "4 model/bodies/a/mass 2 m\n"
            "4 model/bodies/a/inertia [1, 1, 9]\n"
            "5 model/bodies/b colour\n"
            "6 model/bodies/c/mass -1\n"
            "8 model/joints/j/damping 1 kg\n"
            "8 model/joints/j/limit {lower: 2, upper: 1}\n"
            "9 model/joints/k/type hinge\n"
            "9 model/joints/k/damping -1\n"
            "10 model/joints/l/parent d\n"
            "11 model/joints l\n"
            "12 model/couplings/n/damping 1 N\n"
            "13 model/contacts/exclude/0/1 e\n"
            "14 initial_state/j/position 1 m\n"
            "14 initial_state/q q\n"
            "14 initial_state/l/position x\n");
  EXPECT_EQ(all_of(mistakes_of(R"(model:
  bodies: {a: {mass: 2 m, inertia: [1, 1, 1], shapes: [{geometry: {type: box, scale: 1}}, {name: s, geometry: {type: orb}}]}}
  joints:
    j: {type: revolute, child: a, limit: {lower: 2, upper: 1}}
    k: {type: hinge, child: b}
    l: {type: prismatic, parent: a, child: c}
  shapes: {ground: {body: world, geometry: {type: plane}}}
  couplings: {m: {ratios: {j: 1, k: 1}}}
controls: {m: 1, k: 1, l: {effort: [1, 2], target_position: 1}}
requires_grad: [bodies/e/mass, joints/k/damping]
optimize:
  method: newton
  variables:
    - {control: l, knots: 5000}
    - {parameter: joints/j/dampin}
    - {control: l, same_as: control/z}
  loss:
    terminal: [{joint: k, position: 0}, {joint: j, limit_margin: 1, weigth: 2}, {body: f, position: [0, 0]}]
    running: [{joint: o, position: 0, from: 9 s}, {contact: [s, ground], force: [0, 0, 0], weight: heavy}]
record: {bodies: [a, g], energy: perhaps}
)")),
            "2 model/bodies/a/mass 2 m\n"
            "2 model/bodies/a/shapes/0/geometry/scale 1\n"
            "2 model/bodies/a/shapes/1/geometry/type orb\n"
            "4 model/joints/j/limit {lower: 2, upper: 1}\n"
            "5 model/joints/k/type hinge\n"
            "5 model/joints/k/child b\n"
            "6 model/joints/l/child c\n"
            "9 controls/l/target_position 1\n"
            "10 requires_grad/0 bodies/e/mass\n"
            "12 optimize/method newton\n"
            "14 optimize/variables/0/knots 5000\n"
            "15 optimize/variables/1/parameter joints/j/dampin\n"
            "18 optimize/loss/terminal/1 weigth\n"
            "18 optimize/loss/terminal/2/body f\n"
            "18 optimize/loss/terminal/2/position [0, 0]\n"
            "19 optimize/loss/running/0/joint o\n"
            "19 optimize/loss/running/0/from 9 s\n"
            "19 optimize/loss/running/1/weight heavy\n"
            "20 record/bodies/1 g\n"
            "20 record/energy perhaps\n");
}

/// A part that is not there because of a mistake has none.
TEST(SceneMistakes, OfWhatIsMissingAreNotToldTwice) {
  EXPECT_EQ(all_of(mistakes_of(R"(modle: {bodies: {a: {mass: 1}}}
initial_state: {j: {position: 1}}
optimize: {loss: {terminal: [{body: a, position: [0, 0, 0]}]}, variables: [{control: j}, {parameter: bodies/a/mass}]}
)")),
            "1  modle\n");
  EXPECT_EQ(all_of(mistakes_of(R"(model: {bodies: 3, joints: {j: {type: revolute, child: a}}, shapes: [1]}
initial_state: {j: {position: 1}, k: {position: 1 kg}}
requires_grad: [bodies/a/mass]
optimize: {loss: {terminal: [{body: a, position: [0, 0, 0]}]}, goal: 1 m}
)")),
            "1 model/bodies 3\n1 model/shapes [1]\n2 initial_state/k k\n2 initial_state/k/position 1 kg\n4 "
            "optimize/goal 1 m\n");
  EXPECT_EQ(all_of(mistakes_of("[1, 2]\n")), "1  [1, 2]\n");
  EXPECT_EQ(
      all_of(mistakes_of("model: {bodies: {a: {mas: 1}, b: {mass: 1}}, joints: {j: {type: prismatic, child: a}}}\n")),
      "1 model/bodies/a mas\n1 model/bodies/b {mass: 1}\n");
}

constexpr const char* kSound = R"(
model:
  bodies: {a: {mass: 1, inertia: [1, 1, 1]}}
  joints: {j: {type: revolute, child: a}}
)";

TEST(SceneMistakes, OfOneJointAndOfOneCouplingAreToldAtOnce) {
  const auto found = mistakes_of(R"(
model:
  bodies: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}}
  joints:
    j: {type: revolute, child: a, damping: 1 N*s/m, spring: {stiffness: 1 N/m}, limit: {upper: 2 m}, child_frame: {position: [0, 0, 1]}}
    k: {type: revolute, child: b}
  couplings:
    gear: {ratios: {j: 1, k: -1}, offset: 1 m, friction: 1 N, drive: {stiffness: 2 N/m}}
    lost: {ratios: {i: 1, l: 2}, offset: 1 m}
)");
  std::string where;
  for (const SceneMistake& m : found) where += m.path + " " + m.value() + "\n";
  EXPECT_EQ(where,
            "model/joints/j/damping 1 N*s/m\n"
            "model/joints/j/spring/stiffness 1 N/m\n"
            "model/joints/j/limit/upper 2 m\n"
            "model/joints/j/child_frame {position: [0, 0, 1]}\n"
            "model/couplings/gear/offset 1 m\n"
            "model/couplings/gear/friction 1 N\n"
            "model/couplings/gear/drive/stiffness 2 N/m\n"
            "model/couplings/lost/ratios/i i\n"
            "model/couplings/lost/ratios/l l\n");
}

TEST(SceneMistakes, OfWhatRefersToTheModelToo) {
  const auto found =
      mistakes_of(std::string(kSound) + R"(initial_state: {q: {position: 1}, j: {orientation: [0, 0, 0, 1]}}
controls: {k: 1, j: {target_position: 1}}
requires_grad: [bodies/b/mass, bodies/a/mas]
optimize:
  variables: [{control: i}, {parameter: joints/j/dampin}, {control: j, same_as: control/i}]
  loss:
    terminal: [{joint: l, position: 0}, {body: b, position: [0, 0, 0]}]
    running: [{control: m}, {joint: j, position: 0, from: 5 s}]
)");
  std::vector<int> lines;
  for (const SceneMistake& m : found) lines.push_back(m.line);
  // Which variables there are is not known where some are wrong: the tie is not looked at.
  EXPECT_EQ(lines, (std::vector<int>{5, 5, 6, 6, 7, 7, 9, 9, 11, 11, 12, 12}));
}

TEST(SceneMistakes, OfOverridesAndOfTheModelHaveParts) {
  auto found = mistakes_of(kSound, {{"joints/j/damping", "-1"}, {"bodies/a/mass", "1 m"}});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].file, "--set bodies/a/mass=1 m");
  EXPECT_EQ(found[0].line, 0);
  EXPECT_EQ(found[1].path, "model/joints/j/damping");
  EXPECT_EQ(found[1].value(), "-1");
  found = mistakes_of(kSound, {{"bodies/a/inertia", "[1, 1, 9]"}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path.find("model/bodies/a"), 0u);
  EXPECT_NE(found[0].text.find(", expected " + found[0].expected), std::string::npos) << found[0].text;
}

std::string places_of(const std::vector<SceneMistake>& found) {
  std::string where;
  for (const SceneMistake& m : found) where += std::to_string(m.line) + " " + m.path + "\n";
  return where;
}

/// What the schema has nothing against.
TEST(SceneMistakes, OfNamesWithinTheModelAreToldAtOnce) {
  const auto found = mistakes_of(R"(model:
  bodies: {a: {mass: 1}, b: {mass: 1}}
  joints:
    j: {type: revolute, child: c, axis: [0, 0, 1]}
    k: {type: free, parent: d, child: world}
    l: {type: ball, child: b, axis: [0, 0, 1]}
  shapes:
    s: {body: e, geometry: {type: sphere, scale: [1, 2]}}
    t: {body: a, geometry: {type: box, scale: 1}}
  couplings: {m: {ratios: {n: 1}}}
  contacts: {exclude: [[a, f]], include: [[s, t], [s, u]]}
)");
  EXPECT_EQ(places_of(found),
            "4 model/joints/j/child\n5 model/joints/k/parent\n5 model/joints/k/child\n6 model/joints/l/axis\n"
            "8 model/shapes/s/body\n8 model/shapes/s/geometry/scale\n9 model/shapes/t/geometry/scale\n10 "
            "model/couplings/m/ratios/n\n"
            "11 model/contacts/exclude/0/1\n11 model/contacts/include/1/1\n");
}

/// What only a model as a whole can have wrong.
TEST(SceneMistakes, OfTheTreeAndOfNumbersAreToldAtOnce) {
  EXPECT_EQ(places_of(mistakes_of(R"(model:
  bodies: {a: {mass: 1, inertia: [1, 1, 9]}, b: {mass: 1}, c: {mass: 1}, d: {mass: 1}}
  joints:
    j: {type: revolute, child: a}
    k: {type: revolute, child: a}
)")),
            "2 model/bodies/a/inertia\n2 model/bodies/b\n2 model/bodies/c\n2 model/bodies/d\n5 model/joints/k/child\n");
  EXPECT_EQ(places_of(mistakes_of(R"(model:
  bodies:
    a: {mass: 1, inertia: [1, 1, 9]}
    b: {mass: 1, inertia: [1, -1, 1]}
  joints:
    j: {type: revolute, child: a, axis: [0, 0, 0], limit: {lower: 1, upper: -1}}
    k: {type: revolute, child: b, limit: {lower: 2, upper: 1}}
)")),
            "3 model/bodies/a/inertia\n4 model/bodies/b/inertia\n6 model/joints/j/axis\n6 model/joints/j/limit\n"
            "7 model/joints/k/limit\n");
}

// Numbers of what hangs on a body that is not there are wrong all the same, and what follows from that is not told.
TEST(SceneMistakes, OfWhatHangsOnNothingAreToldAtOnce) {
  EXPECT_EQ(places_of(mistakes_of(R"(model:
  bodies: {a: {mass: 1, inertia: [1, 1, 1]}}
  joints:
    i: {type: revolute, child: a}
    j: {type: revolute, child: nobody, axis: [0, 0, 0], limit: {lower: 1, upper: -1}}
    k: {type: free, parent: nobody, child: a}
    l: {type: ball, child: world, frame: {orientation: [0, 0, 0, 0]}}
  shapes:
    s: {body: nobody, geometry: {type: sphere, scale: 0}, frame: {orientation: [0, 0, 0, 0]}}
    t: {body: nobody, geometry: {type: plane}}
    u: {body: a, geometry: {type: sphere, scale: 0}, frame: {orientation: [0, 0, 0, 0]}}
  contacts: {exclude_shapes: [[s, t]]}
)")),
            "5 model/joints/j/child\n5 model/joints/j/axis\n5 model/joints/j/limit\n6 model/joints/k/parent\n"
            "7 model/joints/l/child\n7 model/joints/l/frame/orientation\n9 model/shapes/s/body\n"
            "9 model/shapes/s/geometry/scale/0\n9 model/shapes/s/frame/orientation\n10 model/shapes/t/body\n"
            "11 model/shapes/u/geometry/scale/0\n11 model/shapes/u/frame/orientation\n");
}

/// Lines of the mistakes of a robot file.
std::string lines_of(const std::string& name, const std::string& text) {
  const test::OwnFolder folder;
  const std::filesystem::path file = folder.write(name, text);
  std::string lines;
  try {
    load_scene(file);
  } catch (const SceneError& error) {
    for (const SceneMistake& m : error.mistakes()) {
      EXPECT_NE(m.file.find(name), std::string::npos) << m.text;
      lines += std::to_string(m.line) + " ";
    }
  }
  std::filesystem::remove(file);
  return lines;
}

TEST(SceneMistakes, OfRobotFilesAreToldAtOnce) {
  EXPECT_EQ(lines_of("wrong.urdf", R"(<robot name="r">
<link name="a"/>
<link name="b"><inertial><mass value="x"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="c"><collision><geometry><sphere radius="-1"/></geometry></collision></link>
<joint name="j" type="hinge"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="fixed"><parent link="a"/><child link="c"/><origin xyz="1 2"/></joint>
</robot>)"),
            "3 4 5 6 ");
  EXPECT_EQ(lines_of("wrong_tree.urdf", R"(<robot name="r">
<link name="a"/><link name="b"/>
<joint name="j" type="fixed"><parent link="d"/><child link="b"/></joint>
<joint name="k" type="fixed"><parent link="a"/><child link="e"/></joint>
<joint name="l" type="fixed"><parent link="a"/><child link="b"/></joint>
</robot>)"),
            "3 4 5 ");
  EXPECT_EQ(lines_of("wrong.xml", R"(<mujoco><worldbody>
<body><joint type="screw"/>
<geom type="sphere" size="x"/>
<joint name="j" axis="0 0 0"/></body>
<replicate count="50"><geom type="cone"/></replicate>
</worldbody></mujoco>)"),
            "2 3 4 5 ");
  // Copies without number are not gone through for the sake of one mistake.
  EXPECT_EQ(lines_of("replicas.xml", R"(<mujoco><worldbody>
<replicate count="10000"><replicate count="10000"><replicate count="10000">
<geom size="x"/></replicate></replicate></replicate>
<body><geom size="1"/></body></worldbody></mujoco>)"),
            "3 ");
  EXPECT_EQ(lines_of("wrong_names.xml", R"(<mujoco><worldbody>
<body name="a"><freejoint/><geom size="1"/></body></worldbody>
<contact><exclude body1="a" body2="b"/>
<exclude body1="c" body2="a"/></contact>
</mujoco>)"),
            "3 4 ");
}

/// A folder of files that name each other.
class SceneMistakesOfFiles : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const { folder_.write(name, text); }
  /// "file:line value" each.
  std::string told_of(const std::string& name) const {
    std::string all;
    try {
      load_scene(folder_ / name);
    } catch (const SceneError& error) {
      for (const SceneMistake& m : error.mistakes()) {
        all +=
            std::filesystem::path(m.file).filename().string() + ":" + std::to_string(m.line) + " " + m.value() + "\n";
      }
    }
    return all;
  }
  const test::OwnFolder folder_;
};

TEST_F(SceneMistakesOfFiles, OfAModelOfMuJoCo) {
  write("part.xml", R"(<mujoco>
<worldbody><body name="p"><joint name="r" type="screw"/><geom size="1"/></body></worldbody>
</mujoco>)");
  write("robot.xml", R"(<mujoco model="r">
<compiler angle="grad" eulerseq="abc" autolimits="maybe"/>
<option gravity="0 0" timestep="-1"/>
<default><default class="k"/><default class="k"/><default/><joint damping="-1"/></default>
<asset><mesh file="none.obj"/><mesh/></asset>
<include file="part.xml"/>
<worldbody><body name="a" quat="0 0 0 0"><freejoint name="f"/><geom name="g" type="sphere" size="x" pos="1 2"/>
<body name="b" gravcomp="q"><joint name="h" axis="0 0 0" pos="1"/><geom size="0.1" mass="-2"/>
<body name="c"><joint name="i" range="2 1" stiffness="-3" armature="y"/><geom type="mesh" mesh="none"/></body></body></body>
<composite/>
<body><inertial mass="-4"/><geom size="1"/></body></worldbody>
<contact><exclude body1="o" body2="z"/><pair geom1="g" geom2="y"/></contact>
<tendon><fixed name="t"><joint joint="h" coef="1"/><joint joint="nope" coef="u"/><joint joint="no" coef="1"/></fixed>
<fixed name="s" range="3 2" stiffness="w"><joint joint="i" coef="1"/></fixed></tendon>
<actuator><motor joint="h"/><motor joint="w"/><position tendon="t" kp="1"/><position joint="i" kp="v"/></actuator>
<equality><joint joint1="j1" joint2="j2"/><joint joint1="r"/><weld body1="q" body2="m"/><connect site1="n"/></equality>
<keyframe><key name="home" qpos="1"/></keyframe>
</mujoco>)");
  write("scene.yaml", R"(model: {file: robot.xml, keyframe: hom, shapes: {floor: {body: world, geometry: {type: plan}}}}
simulation: {integrator: semi_implicit}
controls: {w: 1, u: {effort: {file: u.csv}}}
optimise: {}
)");
  EXPECT_EQ(told_of("scene.yaml"),
            "scene.yaml:1 hom\nscene.yaml:1 plan\nscene.yaml:4 optimise\n"
            "robot.xml:2 grad\nrobot.xml:2 abc\nrobot.xml:2 maybe\n"
            "robot.xml:3 0 0\nrobot.xml:3 -1\n"
            "robot.xml:4 k\nrobot.xml:4 \nrobot.xml:4 -1\n"
            "robot.xml:5 none.obj\nrobot.xml:5 \n"
            "robot.xml:7 0 0 0 0\nrobot.xml:7 x\nrobot.xml:7 1 2\n"
            "robot.xml:8 q\nrobot.xml:8 0 0 0\nrobot.xml:8 1\nrobot.xml:8 -2\n"
            "robot.xml:9 2 1\nrobot.xml:9 -3\nrobot.xml:9 y\n"
            "robot.xml:10 composite\n"
            "robot.xml:11 -4\n"
            "robot.xml:12 o\nrobot.xml:12 z\nrobot.xml:12 y\n"
            "robot.xml:13 u\nrobot.xml:13 no\n"
            "robot.xml:14 3 2\nrobot.xml:14 w\n"
            "robot.xml:15 w\nrobot.xml:15 v\n"
            "robot.xml:16 j1\nrobot.xml:16 j2\nrobot.xml:16 q\nrobot.xml:16 m\nrobot.xml:16 \nrobot.xml:16 n\n"
            "part.xml:2 screw\n");
}

/// What may be in a file that could not be read is not missed.
TEST_F(SceneMistakesOfFiles, OfAFileThatIsNotThere) {
  write("robot.xml", R"(<mujoco>
<include file="none.xml"/>
<worldbody><body name="a"><joint name="h" class="k"/><geom size="x"/></body></worldbody>
<actuator><motor joint="w"/><motor joint="h" gear="y"/></actuator>
</mujoco>)");
  write("scene.yaml",
        "model: {robots: {one: {file: robot.xml}, two: {file: robot.xml}, three: {file: no.urdf}}}\n"
        "initial_state: {one_q: {position: 1}}\ncontrols: {two_h: {torque: 1 m}}\n"
        "optimize: {goal: x}\n");
  EXPECT_EQ(told_of("scene.yaml"),
            "scene.yaml:1 no.urdf\nscene.yaml:3 1 m\nscene.yaml:4 x\nrobot.xml:2 none.xml\nrobot.xml:3 x\n");
}

TEST_F(SceneMistakesOfFiles, OfARobotAndTheTableBesideIt) {
  write("robot.urdf", R"(<robot name="r">
<link name="a"><inertial><mass value="x"/><origin xyz="1"/></inertial><collision><geometry><box size="1"/></geometry></collision>
<collision><origin rpy="2"/><geometry><ball/></geometry></collision></link>
<link name="b"/><link name="b"/>
<joint name="j" type="revolute"><parent link="a"/><child link="c"/><axis xyz="0 0 0"/><limit lower="2" upper="1"/>
<dynamics damping="-5"/><mimic joint="k"/></joint>
</robot>)");
  write(
      "scene.yaml",
      R"(model: {robots: {r: {file: robot.urdf}}, bodies: {d: {mass: 1, inertia: [1, 1, 1]}}, joints: {e: {type: prismatic, child: d}}}
controls: {e: {effort: {file: table.csv}}}
optimize: {variables: [{control: f, knots: 3.5}]}
)");
  write("table.csv", "time,e/effort\n0,1\n0.01,x\n0.02\n0.03,2 m\n0.04,5\n");
  EXPECT_EQ(told_of("scene.yaml"),
            "scene.yaml:3 3.5\n"
            "robot.urdf:2 x\nrobot.urdf:2 1\nrobot.urdf:2 1\n"
            "robot.urdf:3 2\nrobot.urdf:3 ball\nrobot.urdf:4 b\nrobot.urdf:5 0 0 0\nrobot.urdf:5 2\n"
            "robot.urdf:6 -5\nrobot.urdf:6 k\n"
            "table.csv:3 x\ntable.csv:4 0.02\ntable.csv:5 2 m\n");
}

/// Of thousands of couplings in a row each is looked at with those that share its joints; of hundreds that all do there
/// are too many.
TEST(SceneMistakes, OfHeldCouplings) {
  const auto text = [](int joints, int couplings, int apart) {
    std::string bodies, own, held;
    for (int k = 0; k < joints; ++k) {
      const std::string n = std::to_string(k);
      bodies += "b" + n + ": {mass: 1, inertia: [1, 1, 1]}, ";
      own += "j" + n + ": {type: revolute, child: b" + n + "}, ";
    }
    for (int k = 0; k < couplings; ++k) {
      held += "c" + std::to_string(k) + ": {hold: true, ratios: {";
      for (int i = k; i < k + apart; ++i) {
        const unsigned mixed = (static_cast<unsigned>(i) * 7919 + static_cast<unsigned>(k) * 104729) * 2654435761u;
        held += "j" + std::to_string(i % joints) + ": " + std::to_string(1 + (mixed >> 16) % 97) + ", ";
      }
      held += "}}, ";
    }
    return "model: {bodies: {" + bodies + "}, joints: {" + own + "}, couplings: {" + held + "}}\n";
  };
  EXPECT_TRUE(mistakes_of(text(3000, 2999, 2)).empty());
  const auto found = mistakes_of(text(400, 380, 400));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].text.find("more of those that are held share joints than can be checked"), std::string::npos)
      << found[0].text;
}

TEST(SceneMistakes, AreNotWithoutEnd) {
  std::string text = "model:\n  joints: {}\n  bodies:\n";
  for (int k = 0; k < 50'000; ++k) text += "    b" + std::to_string(k) + ": {mas: 1}\n";
  EXPECT_EQ(mistakes_of(text).size(), 100u);
}

}  // namespace
}  // namespace backdrive
