// What reports tell beside the motion: of an optimisation, of gradients, of several results at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "tests/apps/report_page_test.h"

namespace backdrive::test {
namespace {

using Json = nlohmann::json;

class SimctlReportDetailsTest : public ReportPageTest {
 protected:
  double cell(const Rows& rows, std::size_t row, const std::string& name) const {
    const auto column = std::ranges::find(rows[0], name) - rows[0].begin();
    EXPECT_LT(column, static_cast<std::ptrdiff_t>(rows[0].size())) << name;
    return number(rows[row][column]);
  }
};

const char* const kDetailQuestions = R"(
  document.getElementById('terms-how').value = 'values';
  document.getElementById('terms-how').onchange();
  const sets = list => list.map(set => ({label: set.label, points: set.data.map(p => [p.x, p.y])}));
  verdict.loss = sets(window.backdriveHistory.loss), verdict.terms = sets(window.backdriveHistory.terms);
  verdict.over = window.backdriveOver ? sets(window.backdriveOver.data.datasets) : null;
  verdict.motions = [...document.getElementById('which').options].map(o => o.textContent);
  const quantity = document.getElementById('quantity');
  quantity.value = 'all: effort', quantity.onchange();
  verdict.effort = sets(window.backdrivePlot.data.datasets);
  const table = id => [...document.getElementById(id).rows].map(row => [...row.cells].map(cell => cell.textContent));
  verdict.made = table('made'), verdict.found = table('found'), verdict.check = table('check');
  verdict.checked = document.getElementById('check-words').textContent;
  const page = window.backdrive;
  window.backdriveOver && window.backdriveOver.options.onClick({x: window.backdriveOver.scales.x.getPixelForValue(0.5)}, [], window.backdriveOver);
  verdict.time = page.times[page.frame()];
)";

TEST_F(SimctlReportDetailsTest, OptimisationsTellTermsStartsAndGradients) {
  ASSERT_EQ(simctl({"optimize", write("p.yaml", kPendulum), "--report", "--output", "out", "--quiet"}).exit, 0);
  const Json details = Json::parse(read("out/details.json"));
  const Rows history = parse_csv(read("out/history.csv"));
  // The terms add up to the loss of the row of that iteration.
  const Json& terms = details["terms"];
  ASSERT_EQ(terms["names"].size(), 3u);
  ASSERT_EQ(terms["iterations"].size(), terms["values"].size());
  for (std::size_t k = 0; k < terms["values"].size(); ++k) {
    double sum = 0;
    for (const Json& value : terms["values"][k]) sum += value.get<double>();
    bool found = false;
    for (std::size_t r = 1; r < history.size() && !found; ++r) {
      const double loss = cell(history, r, "loss");
      found = cell(history, r, "iteration") == terms["iterations"][k] && std::abs(loss - sum) <= 1e-9 * loss;
    }
    EXPECT_TRUE(found) << sum;
  }
  // Every start ends at its loss, and none rises.
  ASSERT_EQ(details["starts"].size(), 3u);
  for (std::size_t s = 0; s < 3; ++s) {
    const Json& course = details["starts_over"][s];
    EXPECT_EQ(course.back()[1], details["starts"][s]["loss"]);
    for (std::size_t k = 1; k < course.size(); ++k) EXPECT_LE(course[k][1], course[k - 1][1]);
  }
  // At the begin the gradient by the state is what dual numbers say of the initial state.
  const Json check =
      simctl({"gradcheck", "out/result.yaml", "--at", "scene", "--controls", "0", "--precision", "float64", "--json"})
          .json();
  const Json& over = details["gradient_over_time"];
  EXPECT_EQ(over["time"][0], 0);
  EXPECT_EQ(over["time"].size(), over["position"].size());
  int told = 0;
  for (const Json& row : check["rows"]) {
    for (const std::string of : {"position", "velocity"}) {
      if (row["name"] != "initial_state/hinge/" + of) continue;
      const double wanted = std::abs(row["dual"]["value"].get<double>());
      EXPECT_NEAR(over[of][0], wanted, 1e-9 * wanted + 1e-12);
      ++told;
    }
  }
  EXPECT_EQ(told, 2);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const Json said = verdict("out/report.html", kDetailQuestions);
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(said["errors"], Json::array());
  EXPECT_EQ(said["loss"].size(), 4u);  // the best, and every start
  ASSERT_EQ(said["terms"].size(), 3u);
  EXPECT_EQ(said["terms"][0]["points"].size(), terms["iterations"].size());
  EXPECT_EQ(said["terms"][0]["points"][1][1], terms["values"][1][0]);
  ASSERT_GE(said["over"].size(), 2u);
  EXPECT_EQ(said["over"][0]["points"][0][1], over["position"][0]);
  // The control with its bounds.
  ASSERT_EQ(said["effort"].size(), 3u);
  EXPECT_EQ(said["effort"][1]["points"][0][1], -20);
  EXPECT_EQ(said["effort"][2]["points"][1][1], 20);
  EXPECT_NEAR(said["time"], 0.5, 0.02);  // a click there moved the replay
  EXPECT_EQ(said["motions"].size(), 3u);
  const Json& made = said["made"];
  EXPECT_TRUE(std::ranges::any_of(made, [](const Json& row) {
    return row[0] == "command" && row[1].get<std::string>().starts_with("simctl optimize");
  })) << made;
}

TEST_F(SimctlReportDetailsTest, FitsTellBoundsAndStandardErrors) {
  // A cart that slides freely: where it began and how fast, from positions with errors.
  std::string record = "time,slider/position\n";
  for (int k = 1; k <= 40; ++k) {
    record +=
        std::to_string(0.05 * k) + "," + std::to_string(0.3 + 0.8 * 0.05 * k + 0.05 * std::sin(17.0 * k * k)) + "\n";
  }
  write("record.csv", record);
  const std::string scene = write("fit.yaml", R"(
simulation: {time_step: 50 ms, duration: 2 s}
model:
  bodies: {cart: {mass: 2, inertia: [1, 1, 1]}}
  joints: {slider: {type: prismatic, child: cart, axis: [1, 0, 0]}}
optimize:
  variables:
    - {initial_state: slider, quantity: position, bounds: [-5, 5]}
    - {initial_state: slider, quantity: velocity, bounds: [-5, 5]}
  loss:
    running: [{joint: slider, position: {file: record.csv}}]
)");
  const Outcome o = simctl({"optimize", scene, "--report", "--output", "out", "--quiet"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const Json details = Json::parse(read("out/details.json")), &found = details["found"];
  ASSERT_EQ(found.size(), 2u);
  // The line of regression of the same points.
  const Rows rows = parse_csv(record);
  const double n = static_cast<double>(rows.size() - 1);
  double mean_t = 0, mean_y = 0, tt = 0, ty = 0, squares = 0;
  for (std::size_t r = 1; r < rows.size(); ++r) mean_t += number(rows[r][0]) / n, mean_y += number(rows[r][1]) / n;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    tt += std::pow(number(rows[r][0]) - mean_t, 2);
    ty += (number(rows[r][0]) - mean_t) * (number(rows[r][1]) - mean_y);
  }
  const double v = ty / tt;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    squares += std::pow(number(rows[r][1]) - mean_y - v * (number(rows[r][0]) - mean_t), 2);
  }
  const double s = std::sqrt(squares / (n - 2));
  EXPECT_NEAR(found[1]["value"], v, 1e-5);
  EXPECT_NEAR(found[1]["standard_error"], s / std::sqrt(tt), 1e-5 * s);
  EXPECT_NEAR(found[0]["standard_error"], s * std::sqrt(1 / n + mean_t * mean_t / tt), 1e-5 * s);
  EXPECT_EQ(found[0]["lower"], -5);
  EXPECT_NE(details["found_words"].get<std::string>().find("2 s² H⁻¹"), std::string::npos);
}

TEST_F(SimctlReportDetailsTest, GradchecksStandInATable) {
  ASSERT_EQ(simctl({"run", write("p.yaml", kPendulum), "--output", "out", "--quiet"}).exit, 0);
  const Outcome o = simctl({"report", "out", "--gradcheck", "--quiet"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const Json check =
      simctl({"gradcheck", "out/scene.yaml", "--at", "scene", "--controls", "16", "--precision", "float64", "--json"})
          .json();
  EXPECT_EQ(simctl({"report", "out", "--gradcheck", "--gltf", "a.glb"}).exit, 2);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const Json said = verdict("out/report.html", R"(
    verdict.rows = [...document.getElementById('check').rows].map(row => [...row.cells].map(cell => cell.textContent));
    verdict.words = document.getElementById('check-words').textContent;)");
  EXPECT_EQ(said["errors"], Json::array());
  std::set<std::string> names, wanted;
  for (const Json& row : said["rows"]) names.insert(row[0]);
  for (const Json& row : check["rows"]) {
    if (row["used"] == true && row["zero"] == false) wanted.insert(row["name"]);
  }
  names.erase("gradient of");
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(names, wanted);
  EXPECT_NE(said["words"].get<std::string>().find("all agree"), std::string::npos) << said["words"];
}

TEST_F(SimctlReportDetailsTest, SeveralResultsAreDrawnAtOnce) {
  const std::string file = write("p.yaml", kPendulum);
  for (const char* const damping : {"0.02", "0.9"}) {
    ASSERT_EQ(simctl({"optimize", file, "--output", std::string("d") + damping, "--quiet", "--set",
                      std::string("joints/hinge/damping=") + damping, "--set", "optimize/goal=1e9"})
                  .exit,
              0);
  }
  const Outcome o = simctl({"report", "d0.02", "d0.9", "-o", "both.html", "--json"});
  ASSERT_EQ(o.exit, 0) << o.err;
  EXPECT_FALSE(std::filesystem::exists(path("d0.02/report.html")));
  EXPECT_EQ(simctl({"report", "d0.02", "d0.9", "--gltf", "a.glb"}).exit, 2);
  ASSERT_EQ(simctl({"run", scene("cartpole_swingup"), "--output", "other", "--quiet"}).exit, 0);
  const Outcome other = simctl({"report", "d0.02", "other", "-o", "no.html"});
  EXPECT_EQ(other.exit, 3);
  EXPECT_NE(other.err.find("other: its bodies are not those"), std::string::npos) << other.err;
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const Json said = verdict("both.html", R"(
    verdict.motions = [...document.getElementById('which').options].map(o => o.textContent);
    verdict.others = document.getElementById('others').value;
    verdict.loss = window.backdriveHistory.loss.map(set => [set.label, set.data[set.data.length - 1].y]);
    const page = window.backdrive;
    page.open(verdict.motions.length); // behind "before", which is not in the list
    page.show(1e9);
    verdict.shown = window.backdrivePlot.data.datasets.map(s => [s.label, s.data[s.data.length - 1].y]);
    document.getElementById('inertias').click();
    window.backdriveStage.dropShadows();
    page.draw();
    verdict.boxes = 0;
    page.scene.traverse(part => { if (part.isLineSegments && part.visible && part.geometry.type === 'EdgesGeometry') ++verdict.boxes; });)");
  EXPECT_EQ(said["errors"], Json::array());
  EXPECT_EQ(said["others"], "pale");
  EXPECT_TRUE(std::ranges::any_of(said["motions"], [](const Json& name) { return name == "d0.9"; })) << said;
  ASSERT_EQ(said["loss"].size(), 2u);
  for (std::size_t k = 0; k < 2; ++k) {
    const std::string folder = k == 0 ? "d0.02" : "d0.9";
    EXPECT_EQ(said["loss"][k][0], folder);
    const Rows history = parse_csv(read(folder + "/history.csv"));
    EXPECT_EQ(said["loss"][k][1], cell(history, history.size() - 1, "loss"));
  }
  const Rows rows = parse_csv(read("d0.9/trajectory.csv"));
  EXPECT_NEAR(said["shown"][0][1], cell(rows, rows.size() - 1, said["shown"][0][0]), 1e-5);
  EXPECT_EQ(said["boxes"], 1);
  const Rows first = parse_csv(read("d0.02/trajectory.csv"));
  const std::string column = said["shown"][0][0];
  const auto beside =
      std::ranges::find_if(said["shown"], [&](const Json& set) { return set[0] == "d0.02: " + column; });
  ASSERT_NE(beside, said["shown"].end()) << said["shown"];
  EXPECT_NEAR((*beside)[1], cell(first, first.size() - 1, column), 1e-5);
}

TEST_F(SimctlReportDetailsTest, OthersStandBeside) {
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  for (const char* const masses : {"1,2,3", "1,2,3,4,5,6,7,8,9,10,11"}) {
    const std::string folder = "n" + std::to_string(std::string(masses).size());
    ASSERT_EQ(simctl({"sweep", scene("cartpole_swingup"), "--report", "--output", folder, "--quiet", "--set",
                      std::string("bodies/pole/mass=") + masses})
                  .exit,
              0);
    const Json said = verdict(folder + "/report.html", R"(
    const stage = window.backdriveStage, canvas = document.getElementById('scene'), others = document.getElementById('others');
    const pixels = () => {
      stage.draw();
      const copy = document.createElement('canvas');
      copy.width = canvas.width, copy.height = canvas.height;
      copy.getContext('2d').drawImage(canvas, 0, 0);
      return copy.getContext('2d').getImageData(0, 0, copy.width, copy.height).data;
    };
    const drawnOf = how => {
      others.value = how, others.onchange();
      stage.draw();
      stage.robot.visible = false;
      const with_ = pixels();
      stage.others.visible = false;
      const without = pixels();
      stage.robot.visible = stage.others.visible = true;
      let count = 0, low = canvas.width, high = 0;
      for (let i = 0; i < with_.length; i += 4) {
        if (with_[i] === without[i] && with_[i + 1] === without[i + 1]) continue;
        const x = i / 4 % canvas.width;
        ++count, low = Math.min(low, x), high = Math.max(high, x);
      }
      return [count, (high - low) / canvas.width];
    };
    verdict.pale = drawnOf('pale'), verdict.beside = drawnOf('beside');
    verdict.spread = stage.spread, verdict.size = stage.size;)");
    EXPECT_EQ(said["errors"], Json::array());
    EXPECT_GT(said["pale"][0], 100) << said;
    EXPECT_GT(said["beside"][0], 100) << said;
    EXPECT_GT(said["beside"][1], 0.15) << said;  // of the view's width; all in one place had 0.04
    EXPECT_GT(said["spread"][0].get<double>() + said["spread"][1].get<double>(), said["size"].get<double>() / 2)
        << said;
  }
}

TEST_F(SimctlReportDetailsTest, ShortMotionsMoveToo) {
  const std::vector<std::string> set{"--set", "simulation/time_step=0.1 ms", "--set", "simulation/steps=400"};
  std::vector<std::string> run{"run", write("p.yaml", kPendulum), "--report", "--output", "out", "--quiet"};
  run.insert(run.end(), set.begin(), set.end());
  ASSERT_EQ(simctl(run).exit, 0);
  run = {"sweep", "p.yaml", "--report", "--output", "sweep", "--quiet", "--set", "bodies/rod/mass=1"};
  run.insert(run.end(), set.begin(), set.end());
  ASSERT_EQ(simctl(run).exit, 0);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const std::string asked = R"(
    window.backdrive.show(1);
    verdict.frames = window.backdrive.times.length, verdict.clock = document.getElementById('clock').textContent;
    verdict.kept = document.getElementById('sweep-kept').textContent;)";
  const Json all = verdicts({{"out/report.html", asked}, {"sweep/report.html", asked}});
  for (const Json& said : all) {
    EXPECT_EQ(said["errors"], Json::array());
    EXPECT_EQ(said["frames"], 101) << said;  // of 401 rows; 60 a second would be 4
    EXPECT_EQ(said["clock"], "0.00040 of 0.0400 s");
  }
  EXPECT_EQ(all[1]["kept"], "Its motion is here.");
}

TEST_F(SimctlReportDetailsTest, BoxesHaveTheInertiaOfTheirBody) {
  // A box of 0.2, 0.4, 0.6 m, turned by 40 degrees about (1, 2, 3) in its body.
  ASSERT_EQ(simctl({"run", write("box.yaml", R"(
simulation: {duration: 0.1 s}
model:
  bodies:
    box:
      shapes:
        - geometry: {type: box, scale: [0.1, 0.2, 0.3]}
          density: 500
          frame: {position: [0.5, 0, 0], orientation: {axis: [1, 2, 3], angle: 40 deg}}
  joints: {base: {type: free, child: box}}
)"),
                    "--report", "--output", "out", "--quiet"})
                .exit,
            0);
  if (!has_browser()) GTEST_SKIP() << "no chromium here, or sanitizers look on";
  const Json said = verdict("out/report.html", R"(
    const body = window.backdrive.data.bodies[0], shape = window.backdrive.data.shapes[0], box = BackdriveShapes.inertiaBox(body);
    const corners = (geometry, thing) => { const at = geometry.attributes.position, list = [];
      for (let i = 0; i < at.count; ++i) list.push(new THREE.Vector3().fromBufferAttribute(at, i).applyQuaternion(thing.quaternion).add(thing.position));
      return list; };
    const drawn = corners(box.geometry, box), turn = {quaternion: new THREE.Quaternion(...shape.orientation), position: new THREE.Vector3(...shape.position)};
    const wanted = corners(BackdriveShapes.geometries(shape)[0], turn);
    // Each corner of the shape is one of the box's.
    verdict.off = Math.max(...wanted.map(w => Math.min(...drawn.map(d => d.distanceTo(w)))));)");
  EXPECT_EQ(said["errors"], Json::array());
  EXPECT_LT(said["off"], 1e-5);
}

}  // namespace
}  // namespace backdrive::test
