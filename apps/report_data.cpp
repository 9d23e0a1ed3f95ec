#include "apps/report_data.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "apps/json_text.h"
#include "apps/result_motion.h"
#include "apps/sweep_report.h"
#include "engine/error.h"
#include "models/coordinates.h"
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

/// Adds a limit of a column, where it bounds anything; the narrower of two.
void add_limit(Json& limits, const std::string& column, double lower, double upper) {
  if (limits.contains(column)) {
    const Json& known = limits[column];
    if (!known[0].is_null()) lower = std::max(lower, known[0].get<double>());
    if (!known[1].is_null()) upper = std::min(upper, known[1].get<double>());
  }
  if (std::isfinite(lower) || std::isfinite(upper)) limits[column] = {finite_or_null(lower), finite_or_null(upper)};
}

/// Of columns of the trajectory: positions, velocities and efforts by the model, controls by what may be found.
Json limits_json(const Problem& problem) {
  const Model& model = problem.model;
  Json limits = Json::object();
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const int joint = static_cast<int>(j);
    const JointType type = model.joint_types[j];
    const auto add = [&](std::span<const JointComponent> components, double lower, double upper) {
      for (const JointComponent& c : components) add_limit(limits, model.joint_names[j] + "/" + c.name(), lower, upper);
    };
    if (has_quaternion(type)) continue;  // theirs are of angles and sizes
    add(position_components(type), model.joints.limit.lower(joint), model.joints.limit.upper(joint));
    const double speed = model.joints.limit.velocity(joint), effort = model.joints.drive.effort_limit(joint);
    add(velocity_components(type), -speed, speed);
    if (is_driven(model, joint)) add(effort_components(type), -effort, effort);
  }
  for (const Variable& variable : problem.variables) {
    if (!variable.is_control() || variable.is_tied()) continue;
    const auto components = controlled_components(model, variable.joint, variable.channel);
    const JointComponent& c = components[variable.component];
    const bool joint = variable.joint < static_cast<int>(model.joint_names.size());
    // Where a drive acts as well, the effort is more than what is told.
    const bool told = variable.channel == ControlChannel::effort && joint && is_driven(model, variable.joint);
    add_limit(limits, name_of_controlled(model, variable.joint) + "/" + (told ? command_name(c) : c.name()),
              variable.lower, variable.upper);
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
    for (std::size_t c = 0; c < history.columns.size(); ++c) row.push_back(finite_or_null(history.number(r, c)));
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
               {"limits", limits_json(scene.problem)}});
}

/// The motion of a folder, with what touched and what is plotted.
Json motion_json(const ResultMotion& read, const fs::path& folder, const std::string& name) {
  ShownMotion motion;
  motion.name = name;
  motion.times = read.times;
  motion.poses = read.poses;
  add_contacts(folder / "contacts.csv", read.frames, motion);
  add_plots(read.trajectory, motion);
  return to_json(motion, read.scene.problem.model);
}

/// Of a folder of run or optimize: the motion, that before the optimisation, and those of other starts.
void add_motions(const fs::path& folder, Json& data) {
  const ResultMotion read = read_motion(folder);
  const Model& model = read.scene.problem.model;
  add_scene_texts(read.scene, read.scene_text, data);
  data["motions"] = Json::array({motion_json(read, folder, read.before.empty() ? "motion" : "after")});
  if (!read.before.empty()) {
    ShownMotion before;
    before.name = "before";
    before.times = read.times;
    before.poses = read.before;
    data["motions"].push_back(to_json(before, model));
  }
  if (!fs::exists(folder / "motions.json")) return;
  const Json others = details_of(folder / "motions.json");
  if (!others.is_object() || !others.contains("motions") || !others["motions"].is_array()) return;
  for (const Json& other : others["motions"]) data["motions"].push_back(other);
}

/// A result that is shown beside the first one: its motion, and its losses.
void add_compared(const fs::path& folder, const std::string& name, const ResultMotion& first, Json& data) {
  const ResultMotion read = read_motion(folder);
  const Model& model = read.scene.problem.model;
  if (model.body_names != first.scene.problem.model.body_names) {
    input_error(folder.string() +
                ": its bodies are not those of the first result: expected the same names, in the "
                "same order, to be drawn beside one another");
  }
  Json motion = motion_json(read, folder, name);
  add_differences(data["shapes"], data["bodies"], model, motion);
  data["motions"].push_back(std::move(motion));
  data["compared"].push_back({{"name", name}, {"history", history_json(folder / "history.csv")}});
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

Json report_data(const std::vector<std::string>& folders) {
  Json data = report_data(fs::path(folders[0]));
  if (folders.size() == 1) return data;
  const std::vector<std::string> names = names_of_folders(folders);
  const ResultMotion first = read_motion(folders[0]);  // refuses a sweep
  data["motions"][0]["name"] = names[0];
  data["compared"] = Json::array({Json{{"name", names[0]}, {"history", Json()}}});
  for (std::size_t k = 1; k < folders.size(); ++k) add_compared(folders[k], names[k], first, data);
  return data;
}

}  // namespace backdrive::app
