// simctl report: one page that shows what the files hold, drawn by a real browser where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/apps/report_page_test.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using nlohmann::json;

class SimctlReportTest : public test::ReportPageTest {};

TEST_F(SimctlReportTest, PagesShowWhatTheFilesHold) {
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const std::vector<std::vector<std::string>> scenes{{"cartpole_swingup", "initial_state/hinge/position=100 deg"},
                                                     {"quadruped_hop"},
                                                     {"toss"},
                                                     {"double_pendulum"},
                                                     {"bounce_throw"},
                                                     {"robot_stand"}};
  std::vector<Question> questions;
  for (const auto& names : scenes) {
    const std::string& name = names[0];
    std::vector<std::string> arguments{"run", scene(name), "--report", "--output", name, "--quiet"};
    if (names.size() > 1) arguments.insert(arguments.end(), {"--set", names[1]});
    const test::Outcome run = simctl(arguments);
    ASSERT_EQ(run.exit, 0) << run.err;
    questions.push_back({name + "/report.html"});
  }
  const json all = verdicts(questions);
  ASSERT_EQ(all.size(), scenes.size());
  for (std::size_t k = 0; k < scenes.size(); ++k) {
    const std::string& name = scenes[k][0];
    SCOPED_TRACE(name);
    const json& said = all[k];
    EXPECT_EQ(said["errors"], json::array());
    EXPECT_EQ(said["requests"], 0);
    EXPECT_GT(said["colours"], 20);
    EXPECT_GT(said["moved"], 100);  // pixels
    EXPECT_EQ(said["slider"], said["frame"]);
    EXPECT_LT(said["off"], 3);  // pixels
    // The last row of the CSV is the last point of each line.
    const test::Rows rows = test::parse_csv(read(name + "/trajectory.csv"));
    for (const json& line : said["plotted"]) {
      const auto column = std::ranges::find(rows[0], line[0].get<std::string>()) - rows[0].begin();
      ASSERT_LT(column, static_cast<std::ptrdiff_t>(rows[0].size()));
      EXPECT_EQ(line[1], rows.size() - 1);
      const double wanted = test::number(rows.back()[column]);
      EXPECT_NEAR(line[2], wanted, 1e-6 * std::max(1.0, std::abs(wanted))) << line[0];  // float32
    }
    EXPECT_FALSE(said["plotted"].empty());
  }
}

/// A click on a cell of the map, the third across and the second up, and what is there then.
const char* const kSweepQuestions = R"(
  const sweep = window.backdriveSweep, page = window.backdrive, map = document.getElementById('map');
  verdict.columns = sweep.columns, verdict.counts = sweep.counts;
  verdict.table = Array.from(sweep.table), verdict.first = page.links.map(l => l.position.toArray());
  const {left, bottom, dx, dy} = sweep.mapped, box = map.getBoundingClientRect();
  map.dispatchEvent(new MouseEvent('click', {clientX: box.left + left + 2.5 * dx, clientY: box.top + bottom - 1.5 * dy}));
  verdict.at = sweep.at, verdict.said = document.getElementById('sweep-said').textContent;
  page.show(1e9);
  verdict.time = page.times[page.frame()];
  verdict.shown = window.backdrivePlot.data.datasets.filter(s => s.label !== 'limit').map(s => [s.label, s.data[s.data.length - 1].y]);
  verdict.position = page.links.map(l => l.position.toArray());
  verdict.slice = sweep.slice.data.datasets.map(s => s.data.map(p => [p.x, p.y]));
  document.getElementById('others').value = 'beside';
  document.getElementById('others').onchange();
  page.draw();
  verdict.instances = page.scene.children.length;
  const context = map.getContext('2d'), colours = new Set();
  for (let i = 0; i < sweep.counts[0]; ++i) for (let j = 0; j < sweep.counts[1]; ++j) {
    const r = devicePixelRatio, pixel = context.getImageData((left + (i + 0.25) * dx) * r, (bottom - (j + 0.25) * dy) * r, 1, 1).data;
    colours.add(pixel.slice(0, 3).join());
  }
  verdict.colours = colours.size;
)";

TEST_F(SimctlReportTest, SweepsAreMappedAndAClickReplaysAPoint) {
  const std::vector<std::string> arguments{"sweep",    scene("cartpole_swingup"),
                                           "--set",    "bodies/pole/mass=0.1,0.2,0.4",
                                           "--set",    "initial_state/hinge/position=100 deg,120 deg",
                                           "--report", "--output",
                                           "out"};
  const test::Outcome outcome = simctl(arguments);
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("out/report.html"), std::string::npos);
  EXPECT_EQ(entries("out"), (std::vector<std::string>{"details.json", "log.txt", "motions.json", "report.html",
                                                      "scene.yaml", "sweep.csv"}));
  const std::string page = read("out/report.html");
  EXPECT_EQ(simctl({"report", "out"}).exit, 0);
  EXPECT_EQ(read("out/report.html"), page);
  EXPECT_LT(page.size(), 2'000'000u);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const json said = verdict("out/report.html", kSweepQuestions);
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(said["errors"], json::array());
  EXPECT_EQ(said["requests"], 0);
  EXPECT_EQ(said["at"], json({2, 1}));
  EXPECT_GT(said["colours"], 3);
  const test::Rows rows = test::parse_csv(read("out/sweep.csv"));
  ASSERT_EQ(rows.size(), 7u);
  const auto cell = [&](std::size_t row, const std::string& name) {
    return test::number(rows[row][std::ranges::find(rows[0], name) - rows[0].begin()]);
  };
  const auto agree = [](double is, double wanted) {  // float32
    EXPECT_NEAR(is, wanted, 1e-6 * std::max(1.0, std::abs(wanted)));
  };
  const std::size_t width = said["columns"].size();
  for (std::size_t row = 1; row < rows.size(); ++row) {
    for (std::size_t c = 0; c < width; ++c) {
      agree(said["table"][(row - 1) * width + c], cell(row, said["columns"][c]));
    }
  }
  // Point (2, 1) is the last one: its plots end as its row does, and its cart stands there.
  EXPECT_NEAR(said["time"], 3, 1e-5);
  for (const json& line : said["shown"]) agree(line[1], cell(6, "final/" + line[0].get<std::string>()));
  EXPECT_NEAR(said["position"][0][0], cell(6, "final/slider/position"), 1e-3);  // quantised
  EXPECT_NE(said["position"], said["first"]);
  EXPECT_NE(said["said"].get<std::string>().find("bodies/pole/mass = 0.4"), std::string::npos);
  ASSERT_EQ(said["slice"].size(), 2u);
  for (std::size_t j = 0; j < 2; ++j) {
    for (std::size_t i = 0; i < 3; ++i) agree(said["slice"][j][i][1], cell(1 + 2 * i + j, "loss"));
  }
}

TEST_F(SimctlReportTest, LargeSweepsKeepACoarserGridOfMotionsAndSaySo) {
  std::string masses = "bodies/rod/mass=1", angles = "initial_state/hinge/position=0";
  constexpr int kValues = test::kSanitized ? 21 : 30;
  for (int k = 1; k < kValues; ++k) {
    masses += "," + std::to_string(1 + k);
    angles += "," + std::to_string(0.1 * k);
  }
  std::string pendulum = test::kPendulum;
  if (test::kSanitized) pendulum.replace(pendulum.find("duration: 1 s"), 13, "duration: 0.2 s");
  const test::Outcome outcome = simctl(
      {"sweep", write("p.yaml", pendulum), "--report", "--output", "out", "--quiet", "--set", masses, "--set", angles});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const json motions = json::parse(read("out/motions.json"));
  EXPECT_EQ(motions["of"], kValues * kValues);
  EXPECT_GT(motions["motions"].size(), 100u);
  EXPECT_LE(motions["motions"].size(), 401u);
  bool best = false, first = false, last = false;
  for (const json& motion : motions["motions"]) {
    best = best || motion["point"] == motions["best"];
    first = first || motion["point"] == 0;
    last = last || motion["point"] == kValues * kValues - 1;
  }
  EXPECT_TRUE(best && first && last);
  EXPECT_LT(std::filesystem::file_size(path("out/report.html")), 5'000'000u);
}

TEST_F(SimctlReportTest, OptimisedSweepsReplayTheirOptima) {
  ASSERT_EQ(simctl({"sweep", write("p.yaml", test::kPendulum), "--do", "optimize", "--report", "--output", "out",
                    "--quiet", "--set", "bodies/rod/mass=0.5,1"})
                .exit,
            0);
  const test::Rows rows = test::parse_csv(read("out/sweep.csv"));
  const json motions = json::parse(read("out/motions.json"));
  ASSERT_EQ(motions["motions"].size(), 2u);
  // Mass is no shape: what is drawn differs by its number alone.
  EXPECT_FALSE(motions["motions"][1].contains("shapes"));
  EXPECT_EQ(motions["motions"][1]["bodies"]["0"]["mass"], 1);
  EXPECT_FALSE(std::filesystem::exists(path("out/trajectory.csv")));
}

TEST_F(SimctlReportTest, ThePoleIsWhereTheTrajectorySays) {
  ASSERT_EQ(simctl({"run", scene("cartpole_swingup"), "--report", "--output", "out", "--quiet"}).exit, 0);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const json said = verdict("out/report.html");
  const test::Rows rows = test::parse_csv(read("out/trajectory.csv"));
  const auto slider = std::ranges::find(rows[0], "slider/position") - rows[0].begin();
  for (const auto& row : rows) {
    if (row == rows[0] || std::abs(test::number(row[0]) - said["time"].get<double>()) > 1e-4) continue;
    EXPECT_NEAR(said["position"][0], test::number(row[slider]), 1e-5);
    return;
  }
  FAIL() << "no row at " << said["time"];
}

TEST_F(SimctlReportTest, GltfIsWhatThreeLoads) {
  ASSERT_EQ(simctl({"run", scene("toss"), "--output", "out", "--quiet"}).exit, 0);
  ASSERT_EQ(simctl({"report", "out", "--gltf", "toss.glb"}).exit, 0);
  EXPECT_EQ(simctl({"report", "out", "--gltf", "toss.glb"}).exit, 2);  // exists
  const std::string bytes = read("toss.glb");
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < 4; ++k)
      value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + k])) << (8 * k);
    return value;
  };
  ASSERT_EQ(bytes.substr(0, 4), "glTF");
  EXPECT_EQ(number(4), 2u);
  EXPECT_EQ(number(8), bytes.size());
  const json gltf = json::parse(bytes.substr(20, number(12)));
  for (const json& view : gltf["bufferViews"]) {
    EXPECT_EQ(view["byteOffset"].get<int>() % 4, 0);
    EXPECT_LE(view["byteOffset"].get<int>() + view["byteLength"].get<int>(),
              gltf["buffers"][0]["byteLength"].get<int>());
  }
  if (!three_can_read()) GTEST_SKIP() << "no chromium or no three.js here, or sanitizers look on";
  // Where the last node is at the end, by three's own mixer.
  const json said = read_by_three(bytes, R"(
  const mixer = new THREE.AnimationMixer(gltf.scene), clip = gltf.animations[0];
  const action = mixer.clipAction(clip);
  action.setLoop(THREE.LoopOnce);
  action.clampWhenFinished = true;
  action.play();
  mixer.setTime ? mixer.setTime(clip.duration) : mixer.update(clip.duration);
  gltf.scene.updateMatrixWorld(true);
  const body = gltf.scene.getObjectByName(')" +
                                             gltf["nodes"][1]["name"].get<std::string>() + R"(');
  let triangles = 0;
  gltf.scene.traverse(o => { if (o.geometry) triangles += o.geometry.index.count / 3; });
  const p = body.getWorldPosition(new THREE.Vector3());
  tell({duration: clip.duration, tracks: clip.tracks.length, triangles, position: [p.x, p.y, p.z]});)");
  ASSERT_FALSE(said.contains("error")) << said;
  const test::Rows rows = test::parse_csv(read("out/trajectory.csv"));
  EXPECT_NEAR(said["duration"], test::number(rows.back()[0]), 1e-5);
  EXPECT_EQ(said["tracks"], gltf["animations"][0]["channels"].size());
  EXPECT_GT(said["triangles"], 10);
  const auto at = [&](const char* name) {
    const auto column = std::ranges::find(rows[0], name) - rows[0].begin();
    return test::number(rows.back()[column]);
  };
  // y up: (x, y, z) is at (x, z, −y).
  const std::string joint = rows[0][1].substr(0, rows[0][1].find('/'));
  EXPECT_NEAR(said["position"][0], at((joint + "/position/x").c_str()), 1e-4);
  EXPECT_NEAR(said["position"][1], at((joint + "/position/z").c_str()), 1e-4);
  EXPECT_NEAR(said["position"][2], -at((joint + "/position/y").c_str()), 1e-4);
}

TEST_F(SimctlReportTest, HostileNamesDoNoHarm) {
  const std::string hostile = "</script><script>document.title = 'taken'</script>";
  const std::string file =
      write("hostile.yaml", "name: \"" + hostile + "\"\ndescription: \"<img src=x onerror=alert(1)>\"\n" + R"(
simulation: {duration: 0.2 s}
model:
  bodies: {"<b>x": {mass: 1, inertia: [1, 1, 1], shapes: [{geometry: {type: sphere}}]}}
  joints: {"=1+1": {type: free, child: "<b>x"}}
)");
  ASSERT_EQ(simctl({"run", file, "--report", "--output", "out", "--quiet"}).exit, 0);
  const std::string page = read("out/report.html");
  EXPECT_EQ(page.find(hostile), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  ASSERT_EQ(simctl({"sweep", file, "--report", "--output", "swept", "--quiet", "--set", "bodies/<b>x/mass=1,2", "--set",
                    "description=\"</script><b>\",'=1+1'"})
                .exit,
            0);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const json both = verdicts({{"out/report.html"}, {"swept/report.html"}});
  ASSERT_EQ(both.size(), 2u);
  for (const json& said : both) {
    EXPECT_EQ(said["errors"], json::array());
    EXPECT_EQ(said["title"], hostile);
    EXPECT_EQ(said["name"], hostile);
  }
}

TEST_F(SimctlReportTest, FoldersOfOthersAreRefused) {
  std::filesystem::create_directory(path("mine"));
  const test::Outcome outcome = simctl({"report", "mine"});
  EXPECT_EQ(outcome.exit, 3);
  EXPECT_NE(outcome.err.find("expected a result folder of simctl run or optimize"), std::string::npos);
  EXPECT_TRUE(entries("mine").empty());
  EXPECT_EQ(simctl({"report", "none"}).exit, 3);
  ASSERT_EQ(simctl({"run", write("p.yaml", test::kPendulum), "--output", "out", "--quiet"}).exit, 0);
  write("out/trajectory.csv", "time,other/position\n0,1\n");
  EXPECT_EQ(simctl({"report", "out"}).exit, 3);
  write("out/trajectory.csv", "time,hinge/position\n0\n");
  const test::Outcome cut = simctl({"report", "out"});
  EXPECT_EQ(cut.exit, 3);
  EXPECT_NE(cut.err.find("trajectory.csv:2:1: 1 cells: expected 2"), std::string::npos) << cut.err;
  EXPECT_FALSE(std::filesystem::exists(path("out/report.html")));
}

TEST_F(SimctlReportTest, IsSmallAndStandsByItself) {
  ASSERT_EQ(simctl({"run", scene("cartpole_swingup"), "--output", "out", "--quiet"}).exit, 0);
  const json said = simctl({"report", "out", "--json"}).json();
  EXPECT_LT(said["bytes"], 1'500'000);
  EXPECT_EQ(std::filesystem::file_size(path("out/report.html")), said["bytes"]);
  EXPECT_EQ(simctl({"report", "out", "-o", "-"}).out, read("out/report.html"));
  EXPECT_EQ(simctl({"report", "out"}).exit, 0);  // again
  write("other.html", "mine");
  EXPECT_EQ(simctl({"report", "out", "-o", "other.html"}).exit, 2);
  EXPECT_EQ(read("other.html"), "mine");
}

}  // namespace
}  // namespace backdrive
