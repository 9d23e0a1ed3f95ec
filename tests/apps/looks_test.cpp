// How robots look: visuals of URDF and MJCF files in reports, the viewer's page, glTF.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/apps/report_page_test.h"

namespace backdrive {
namespace {

using nlohmann::json;

class SimctlLooksTest : public test::ReportPageTest {
 protected:
  /// A block on a rail that touches with a ball, and looks as `visual` says.
  std::string robot(const std::string& visual, const std::string& more = "") const {
    return write("r.urdf",
                 "<robot name=\"r\"><link name=\"rail\"/>" + more +
                     "<link name=\"block\"><inertial><mass value=\"1\"/><inertia ixx=\"1\" iyy=\"1\" izz=\"1\"/>"
                     "</inertial>" +
                     visual +
                     "<collision><geometry><sphere radius=\"0.1\"/></geometry></collision></link>"
                     "<joint name=\"slide\" type=\"prismatic\"><parent link=\"rail\"/><child link=\"block\"/>"
                     "<axis xyz=\"0 0 1\"/><limit lower=\"-9\" upper=\"9\" effort=\"1\" velocity=\"0\"/></joint>"
                     "</robot>");
  }
  test::Outcome run(const std::string& file, const std::string& output) const {
    return simctl({"run", file, "--output", output, "--report", "--set", "simulation/steps=30"});
  }
  json looks(const std::string& folder) const { return json::parse(read(folder + "/looks.json")); }
};

const std::string kTetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
const std::string kRedBox =
    "<visual><origin xyz=\"0 0 0.5\"/><geometry><box size=\"0.4 0.6 0.8\"/></geometry>"
    "<material name=\"m\"><color rgba=\"1 0 0 1\"/></material></visual>";

/// What is drawn of body 1: form by form its extent, colour and where it is; then with collision shapes ticked.
const char* const kDrawn = R"(
  const forms = () => window.backdrive.links[1].children.filter(part => part.isMesh && part.material.type === 'MeshLambertMaterial').map(part => {
    part.geometry.computeBoundingBox();
    const {min, max} = part.geometry.boundingBox;
    return {size: [max.x - min.x, max.y - min.y, max.z - min.z], at: part.position.toArray(), colour: part.material.color.getHexString()};
  });
  verdict.looks = forms();
  window.backdrive.show(5);
  const canvas = document.getElementById('scene'), copy = document.createElement('canvas');
  window.backdrive.draw();
  copy.width = canvas.width, copy.height = canvas.height;
  copy.getContext('2d').drawImage(canvas, 0, 0);
  const place = window.backdrive.project(1, [0.2, -0.3, 0.5]), scale = canvas.width / canvas.clientWidth;
  verdict.pixel = [...copy.getContext('2d').getImageData(place[0] * scale - 6, place[1] * scale, 1, 1).data];
  document.getElementById('collision').click();
  verdict.shapes = forms();
  verdict.toggle = !document.getElementById('collision-part').hidden;
)";

TEST_F(SimctlLooksTest, VisualsAreDrawnAsTheFileSays) {
  std::filesystem::create_directory(path("meshes"));
  write("meshes/t.obj", kTetrahedron);
  const std::string mesh =
      "<visual><origin xyz=\"1 0 0\"/><geometry><mesh filename=\"meshes/t.obj\" scale=\"2 1 -3\"/></geometry>"
      "<material name=\"leaf\"/></visual>";
  ASSERT_EQ(run(robot(kRedBox + mesh, "<material name=\"leaf\"><color rgba=\"0 0.6 0 1\"/></material>"), "out").exit,
            0);
  ASSERT_EQ(run(robot(""), "plain").exit, 0);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const json all = verdicts({{"out/report.html", kDrawn}, {"plain/report.html", kDrawn}});
  const json &said = all[0], &plain = all[1];
  EXPECT_EQ(said["errors"], json::array());
  ASSERT_EQ(said["looks"].size(), 2u) << said;
  const json &box = said["looks"][0], &form = said["looks"][1];
  EXPECT_EQ(box["colour"], "ff0000");
  EXPECT_EQ(form["colour"], "009900");
  EXPECT_EQ(box["at"], (json{0, 0, 0.5}));
  // Quantised to a 65,535th of 3 m.
  const double sizes[2][3] = {{0.4, 0.6, 0.8}, {2, 1, 3}};
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(box["size"][k], sizes[0][k], 1e-6);
    EXPECT_NEAR(form["size"][k], sizes[1][k], 1e-4);
  }
  // Just inside the near edge of the box, where the page says that it is: red, whatever the light.
  EXPECT_GT(said["pixel"][0].get<int>(), 2 * said["pixel"][1].get<int>()) << said["pixel"];
  ASSERT_EQ(said["shapes"].size(), 1u) << said;
  EXPECT_NEAR(said["shapes"][0]["size"][0], 0.2, 1e-6);
  EXPECT_EQ(said["toggle"], true);
  EXPECT_EQ(plain["toggle"], false);
  EXPECT_EQ(plain["looks"], said["shapes"]);
}

TEST_F(SimctlLooksTest, NothingMovesOtherwise) {
  write("t.obj", kTetrahedron);
  const std::string mesh = "<visual><geometry><mesh filename=\"t.obj\"/></geometry></visual>";
  ASSERT_EQ(run(robot(""), "without").exit, 0);
  ASSERT_EQ(run(robot(kRedBox + mesh), "with").exit, 0);
  for (const char* const file : {"/trajectory.csv", "/scene.yaml"}) {
    EXPECT_EQ(read(std::string("with") + file), read(std::string("without") + file)) << file;
  }
  EXPECT_TRUE(std::filesystem::exists(path("with/looks.json")));
  EXPECT_FALSE(std::filesystem::exists(path("without/looks.json")));
}

TEST_F(SimctlLooksTest, WhatIsMissingIsToldOnceAndWhatTouchesIsDrawn) {
  const auto visual = [](const std::string& file) {
    return "<visual><geometry><mesh filename=\"" + file + "\"/></geometry></visual>";
  };
  write("broken.obj", "v 1 2 three\n");
  write("kind.glb", "glTF");
  const std::filesystem::path folder = path("r.urdf").parent_path();
  const std::string outside = folder.string() + "_outside.obj";
  std::ofstream(outside) << kTetrahedron;
  for (const std::string& file : {std::string("none.obj"), outside}) {
    const test::Outcome told = run(robot(kRedBox + visual(file) + visual(file)), "missing");
    EXPECT_EQ(told.exit, 0) << told.err;
    EXPECT_NE(told.err.find("<visual> whose mesh is not found (2 times)"), std::string::npos) << told.err;
    EXPECT_FALSE(std::filesystem::exists(path("missing/looks.json"))) << file;  // the ball is drawn instead
    std::filesystem::remove_all(path("missing"));
  }
  std::filesystem::remove(outside);
  for (const std::string file : {"broken.obj", "kind.glb"}) {
    const test::Outcome told = run(robot(visual(file) + visual(file)), file + "_out");
    EXPECT_EQ(told.exit, 0) << told.err;
    const std::size_t at = told.err.find("2 visuals of the robot are not drawn, but what touches in place: ");
    EXPECT_NE(at, std::string::npos) << told.err;
    EXPECT_NE(told.err.find(file, at), std::string::npos) << told.err;
    EXPECT_FALSE(std::filesystem::exists(path(file + "_out/looks.json")));
  }
  // Bad looks are no reason to refuse a robot.
  EXPECT_EQ(run(robot("<visual/><visual><geometry><cone/></geometry></visual><visual><geometry><box size=\"1 2\"/>"
                      "</geometry><material name=\"m\"><color rgba=\"1\"/></material></visual>"),
                "bad")
                .exit,
            0);
}

TEST_F(SimctlLooksTest, ColoursOfColladaAndOfMujocoAreRead) {
  write("two.dae",
        "<COLLADA><library_effects><effect id=\"e\"><profile_COMMON><technique><phong><diffuse><color>0 0 1 1</color>"
        "</diffuse></phong></technique></profile_COMMON></effect></library_effects><library_materials>"
        "<material id=\"blue\"><instance_effect url=\"#e\"/></material></library_materials><library_geometries>"
        "<geometry id=\"g\"><mesh><source id=\"p\"><float_array>0 0 0 1 0 0 0 1 0 0 0 1</float_array></source>"
        "<vertices id=\"v\"><input semantic=\"POSITION\" source=\"#p\"/></vertices><triangles material=\"m\"><input "
        "semantic=\"VERTEX\" source=\"#v\" offset=\"0\"/><p>0 1 2</p></triangles><triangles><input "
        "semantic=\"VERTEX\" source=\"#v\" offset=\"0\"/><p>0 1 3 1 2 3</p></triangles></mesh></geometry>"
        "</library_geometries><library_visual_scenes><visual_scene><node><instance_geometry url=\"#g\">"
        "<bind_material><technique_common><instance_material symbol=\"m\" target=\"#blue\"/></technique_common>"
        "</bind_material></instance_geometry></node></visual_scene></library_visual_scenes></COLLADA>");
  ASSERT_EQ(run(robot("<visual><geometry><mesh filename=\"two.dae\"/></geometry></visual>"), "dae").exit, 0);
  const json dae = looks("dae");
  ASSERT_EQ(dae["looks"].size(), 2u);
  EXPECT_FALSE(dae["looks"][0].contains("colour"));
  EXPECT_EQ(dae["looks"][1]["colour"], (json{0, 0, 1, 1}));

  // As MuJoCo's viewer: groups 0 to 2, whether they touch or not, but for what is not to be seen.
  const std::string model = write(
      "m.xml",
      "<mujoco><asset><material name=\"steel\" rgba=\"0.1 0.2 0.3 1\"/></asset><worldbody><geom type=\"plane\" "
      "size=\"1 "
      "1 1\"/><body name=\"b\"><freejoint/><geom name=\"touch\" group=\"3\" size=\"0.1\"/><geom type=\"box\" size=\"1 "
      "2 "
      "3\" contype=\"0\" conaffinity=\"0\" material=\"steel\" pos=\"0 0 1\"/><geom size=\"0.2\" rgba=\"1 1 0 0.5\"/>"
      "<geom size=\"0.3\" rgba=\"1 1 0 0\"/></body></worldbody></mujoco>");
  ASSERT_EQ(run(model, "mjcf").exit, 0);
  const json mjcf = looks("mjcf");
  ASSERT_EQ(mjcf["looks"].size(), 2u) << mjcf;
  EXPECT_EQ(mjcf["looks"][0]["type"], "box");
  EXPECT_EQ(mjcf["looks"][0]["colour"], (json{0.1, 0.2, 0.3, 1}));
  EXPECT_EQ(mjcf["looks"][0]["position"], (json{0, 0, 1}));
  EXPECT_EQ(mjcf["looks"][1]["colour"], (json{1, 1, 0, 0.5}));
  // The ground stays.
  EXPECT_EQ(mjcf["hidden"].size(), 4u) << mjcf["hidden"];
  EXPECT_NE(mjcf["hidden"].dump().find("touch"), std::string::npos);
  EXPECT_EQ(mjcf["hidden"].dump().find("plane"), std::string::npos);
}

TEST_F(SimctlLooksTest, LargeMeshesBecomeSmall) {
  std::string obj;  // 180,000 triangles
  constexpr int n = 300;
  for (int i = 0; i <= n; ++i) {
    for (int k = 0; k <= n; ++k) {
      obj += "v " + std::to_string(i * 0.01) + " " + std::to_string(k * 0.01) + " " +
             std::to_string(std::sin(i * 0.05) * std::cos(k * 0.07)) + "\n";
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int k = 1; k <= n; ++k) {
      const std::string a = std::to_string(i * (n + 1) + k), b = std::to_string(i * (n + 1) + k + 1),
                        c = std::to_string((i + 1) * (n + 1) + k), d = std::to_string((i + 1) * (n + 1) + k + 1);
      obj += "f " + a + " " + b + " " + c + "\nf " + b + " " + d + " " + c + "\n";
    }
  }
  write("hills.obj", obj);
  write("t.obj", kTetrahedron);
  std::string visuals = "<visual><geometry><mesh filename=\"t.obj\"/></geometry></visual>";
  for (int k = 0; k < 3; ++k) {
    visuals += "<visual><geometry><mesh filename=\"hills.obj\" scale=\"1 1 0." + std::to_string(k + 1) +
               "\"/></geometry></visual><visual><geometry><mesh filename=\"t.obj\"/></geometry></visual>";
  }
  ASSERT_EQ(run(robot(visuals), "out").exit, 0);
  const json all = looks("out");
  EXPECT_EQ(all["looks"].size(), 7u);
  ASSERT_EQ(all["meshes"].size(), 4u);  // each once
  std::size_t triangles = 0;
  for (const json& mesh : all["meshes"]) triangles += mesh["triangles"].get<std::string>().size() / 4 * 3 / 6;
  EXPECT_LE(triangles, 60'000u);
  EXPECT_GT(triangles, 30'000u);
  EXPECT_EQ(all["meshes"][0]["triangles"].get<std::string>().size(), 32u);  // 4 of 3 uint16: small ones stay
  EXPECT_LT(std::filesystem::file_size(path("out/report.html")), 2'000'000u);
}

TEST_F(SimctlLooksTest, GltfHasThem) {
  write("t.obj", kTetrahedron);
  const std::string mesh = "<visual><geometry><mesh filename=\"t.obj\"/></geometry></visual>";
  ASSERT_EQ(run(robot(kRedBox + mesh + mesh), "out").exit, 0);
  ASSERT_EQ(simctl({"report", "out", "--gltf", "r.glb"}).exit, 0);
  const std::string bytes = read("r.glb");
  const std::size_t begin = bytes.find("{"), end = bytes.find("BIN");
  const json gltf = json::parse(bytes.substr(begin, bytes.rfind('}', end) + 1 - begin));
  ASSERT_EQ(gltf["meshes"].size(), 2u);  // of the mesh that is drawn twice, one
  std::vector<int> drawn;
  for (const json& node : gltf["nodes"]) {
    if (node.contains("mesh")) drawn.push_back(node["mesh"]);
  }
  EXPECT_EQ(drawn, (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(gltf["materials"][0]["pbrMetallicRoughness"]["baseColorFactor"], (json{1, 0, 0, 1}));
  if (!three_can_read()) GTEST_SKIP() << "no chromium or no three.js here, or sanitizers look on";
  const json said = read_by_three(bytes, R"(
  let triangles = 0;
  gltf.scene.traverse(o => { if (o.geometry) triangles += o.geometry.index.count / 3; });
  tell({triangles});)");
  EXPECT_EQ(said["triangles"], 12 + 2 * 4) << said;
}

TEST_F(SimctlLooksTest, FilesOfOthersAreRefused) {
  write("t.obj", kTetrahedron);
  ASSERT_EQ(run(robot("<visual><geometry><mesh filename=\"t.obj\"/></geometry></visual>"), "out").exit, 0);
  const json good = looks("out");
  const auto refused = [&](const json& changed) {
    write("out/looks.json", changed.dump());
    const test::Outcome told = simctl({"report", "out"});
    EXPECT_EQ(told.exit, 3) << changed.dump();
    EXPECT_NE(told.err.find("looks.json"), std::string::npos) << told.err;
    EXPECT_EQ(simctl({"report", "out", "--gltf", "x.glb"}).exit, 3);
  };
  refused(json::array());
  for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{{"body", 2},
                                                                            {"body", -2},
                                                                            {"body", 1e300},
                                                                            {"body", -0.5},
                                                                            {"body", 0xFFFFFFFFFFFFFFFF},
                                                                            {"body", "0"},
                                                                            {"type", "</script>"},
                                                                            {"type", "plane"},
                                                                            {"mesh", 1},
                                                                            {"mesh", -1},
                                                                            {"scale", "x"},
                                                                            {"position", json::array({1, 2})},
                                                                            {"colour", json::array({1})}}) {
    json changed = good;
    changed["looks"][0][key] = value;
    refused(changed);
  }
  for (const auto& [key, value] : std::vector<std::pair<std::string, json>>{
           {"triangles", "////////"}, {"triangles", "AAAA"}, {"vertices", ""}, {"vertices", 7}, {"quantum", nullptr}}) {
    json changed = good;
    changed["meshes"][0][key] = value;
    refused(changed);
  }
  write("out/looks.json", good.dump());
  EXPECT_EQ(simctl({"report", "out"}).exit, 0);
}

}  // namespace
}  // namespace backdrive
