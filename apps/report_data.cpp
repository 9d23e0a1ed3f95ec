#include "apps/report_data.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "apps/result_motion.h"
#include "apps/sweep_report.h"
#include "engine/error.h"
#include "scenes/scene.h"

namespace backdrive::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMostRows = 3000;
constexpr std::uintmax_t kMostText = 2 << 20;  ///< bytes of the scene and of the log that a page holds

/// The text, or its beginning.
std::string cut(std::string text) {
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "\n...";
  return text;
}

/// Null for what bounds nothing.
Json finite(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

Json limits_json(const Model& model) {
  Json limits = Json::object();
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const int joint = static_cast<int>(j);
    if (has_quaternion(model.joint_types[j])) continue;
    const double lower = model.joints.limit.lower(joint), upper = model.joints.limit.upper(joint);
    if (!std::isfinite(lower) && !std::isfinite(upper)) continue;
    for (const JointComponent& c : position_components(model.joint_types[j])) {
      limits[model.joint_names[j] + "/" + c.name()] = {finite(lower), finite(upper)};
    }
  }
  return limits;
}

/// What touched, frame by frame.
void add_contacts(const fs::path& file, const std::vector<std::size_t>& frames, ShownMotion& motion) {
  if (!fs::exists(file)) return;
  const CsvTable contacts(file);
  const std::size_t step = contacts.column("step"), point = contacts.column("point/x"),
                    force = contacts.column("force/x");
  std::size_t row = 0;
  for (const std::size_t frame : frames) {
    motion.touch_starts.push_back(static_cast<int>(motion.touches.size() / 6));
    const auto now = static_cast<double>(frame);
    while (row < contacts.rows.size() && contacts.number(row, step) < now) ++row;
    for (; row < contacts.rows.size() && contacts.number(row, step) == now; ++row) {
      for (std::size_t c = 0; c < 3; ++c) motion.touches.push_back(static_cast<float>(contacts.number(row, point + c)));
      for (std::size_t c = 0; c < 3; ++c) motion.touches.push_back(static_cast<float>(contacts.number(row, force + c)));
    }
  }
  motion.touch_starts.push_back(static_cast<int>(motion.touches.size() / 6));
}

void add_plots(const CsvTable& trajectory, ShownMotion& motion) {
  for (const std::size_t r : picked(trajectory.rows.size(), 1, kMostRows)) {
    for (std::size_t c = 0; c < trajectory.columns.size(); ++c) {
      motion.rows.push_back(static_cast<float>(trajectory.number(r, c)));
    }
  }
  motion.columns = trajectory.columns;
}

Json history_json(const fs::path& file) {
  if (!fs::exists(file)) return Json();
  const CsvTable history(file);
  Json rows = Json::array();
  for (const std::size_t r : picked(history.rows.size(), 1, kMostRows)) {
    Json row = Json::array();
    for (std::size_t c = 0; c < history.columns.size(); ++c) row.push_back(finite(history.number(r, c)));
    rows.push_back(row);
  }
  return {{"columns", history.columns}, {"rows", rows}};
}

Json details_of(const fs::path& file) {
  try {
    return Json::parse(text_of_file(file));
  } catch (const Json::exception& error) {
    input_error(file.string() + ": expected a file that simctl wrote (" + error.what() + ")");
  }
}

void add_scene_texts(const Scene& scene, const std::string& text, Json& data) {
  const Model& model = scene.problem.model;
  data.update({{"name", scene.name},
               {"description", scene.description},
               {"scene", cut(text)},
               {"shapes", shapes_json(model)},
               {"bodies", bodies_json(model)},
               {"limits", limits_json(model)}});
}

/// Of a folder of run or optimize: the motion, and that before the optimisation.
void add_motions(const fs::path& folder, Json& data) {
  const ResultMotion read = read_motion(folder);
  const Model& model = read.scene.problem.model;
  add_scene_texts(read.scene, read.scene_text, data);
  ShownMotion motion;
  motion.name = read.before.empty() ? "motion" : "after";
  motion.times = read.times;
  motion.poses = read.poses;
  add_contacts(folder / "contacts.csv", read.frames, motion);
  add_plots(read.trajectory, motion);
  data["motions"] = Json::array({to_json(motion, model)});
  if (read.before.empty()) return;
  ShownMotion before;
  before.name = "before";
  before.times = read.times;
  before.poses = read.before;
  data["motions"].push_back(to_json(before, model));
}

}  // namespace

Json report_data(const fs::path& folder) {
  const fs::path details = folder / "details.json";
  Json data{{"log", cut(text_of_file(folder / "log.txt"))}, {"history", history_json(folder / "history.csv")}};
  if (fs::exists(details)) data["details"] = details_of(details);
  if (fs::exists(folder / "sweep.csv") && fs::exists(folder / "scene.yaml")) {
    add_scene_texts(load_scene(folder / "scene.yaml"), text_of_file(folder / "scene.yaml"), data);
    add_sweep(folder, data);
  } else {
    add_motions(folder, data);
  }
  return data;
}

}  // namespace backdrive::app
