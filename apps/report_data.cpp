#include "apps/report_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "apps/result_motion.h"
#include "models/meshes/convex_mesh.h"
#include "models/parameter_reader.h"
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

std::string base64(const std::vector<float>& numbers) {
  static_assert(std::endian::native == std::endian::little);
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(numbers.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) { return i + k < bytes.size() ? bytes[i + k] : 0u; };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int k = 0; k < 4; ++k) text += digits[group >> (18 - 6 * k) & 63];
    if (i + 1 >= bytes.size()) text[text.size() - 2] = '=';
    if (i + 2 >= bytes.size()) text.back() = '=';
  }
  return text;
}

/// Null for what bounds nothing.
Json finite(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

/// How far a shape reaches from its body's origin, m; of planes without end.
double reach_of(const Model& model, int shape) {
  if (model.shape_types[shape] == GeometryType::plane) return kInfinity;
  const auto scale = [&](int k) { return model.shapes.geometry.scale(shape, k); };
  double size = std::hypot(scale(0), scale(1), scale(2));
  if (model.shape_types[shape] == GeometryType::sphere) size = scale(0);
  if (model.shape_types[shape] == GeometryType::capsule) size = scale(0) + scale(1);
  if (model.shape_types[shape] == GeometryType::mesh) {
    size = 0;
    for (const Vec3<double>& v : model.meshes[model.shape_meshes[shape]]->vertices) {
      size = std::max(size, std::hypot(v.x * scale(0), v.y * scale(1), v.z * scale(2)));
    }
  }
  const auto position = [&](int k) { return model.shapes.frame.position(shape, k); };
  return size + (model.shape_bodies[shape] < 0 ? 0 : std::hypot(position(0), position(1), position(2)));
}

Json shapes_json(const Model& model) {
  Json shapes = Json::array();
  for (int s = 0; s < static_cast<int>(model.shape_names.size()); ++s) {
    Json scale = Json::array(), position = Json::array(), orientation = Json::array();
    for (int k = 0; k < 3; ++k) scale.push_back(model.shapes.geometry.scale(s, k));
    for (int k = 0; k < 3; ++k) position.push_back(model.shapes.frame.position(s, k));
    for (int k = 0; k < 4; ++k) orientation.push_back(model.shapes.frame.orientation(s, k));
    Json shape{{"name", model.shape_names[s]},
               {"body", model.shape_bodies[s]},
               {"type", to_string(model.shape_types[s])},
               {"scale", scale},
               {"position", position},
               {"orientation", orientation},
               {"reach", finite(reach_of(model, s))}};
    const bool listed =
        model.shape_types[s] == GeometryType::mesh || model.shape_types[s] == GeometryType::height_field;
    if (listed) shape["triangles"] = base64(triangles_of_shape(model, s));
    shapes.push_back(shape);
  }
  return shapes;
}

Json bodies_json(const Model& model) {
  Json bodies = Json::array();
  for (const std::string& name : model.body_names) bodies.push_back({{"name", name}});
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    if (model.joint_loops[j]) continue;
    const int joint = static_cast<int>(j), body = model.joint_children[j];
    const MassProperties<double> mass = body_mass(model, body, 0);
    bodies[body].update({{"joint", model.joint_names[j]},
                         {"type", to_string(model.joint_types[j])},
                         {"parent", model.joint_parents[j]},
                         {"mass", mass.mass},
                         {"com", {mass.com.x, mass.com.y, mass.com.z}},
                         {"offset",
                          {model.joints.frame.position(joint, 0), model.joints.frame.position(joint, 1),
                           model.joints.frame.position(joint, 2)}}});
  }
  return bodies;
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

/// What touched, frame by frame: [x y z fx fy fz] of each contact, and where each frame's begin.
void add_contacts(const fs::path& file, const std::vector<std::size_t>& frames, Json& data) {
  std::vector<float> touches;
  std::vector<int> starts(frames.size() + 1, 0);
  if (fs::exists(file)) {
    const CsvTable contacts(file);
    const std::size_t step = contacts.column("step"), point = contacts.column("point/x"),
                      force = contacts.column("force/x");
    std::size_t row = 0;
    for (std::size_t k = 0; k < frames.size(); ++k) {
      starts[k] = static_cast<int>(touches.size() / 6);
      const auto now = static_cast<double>(frames[k]);
      while (row < contacts.rows.size() && contacts.number(row, step) < now) ++row;
      for (; row < contacts.rows.size() && contacts.number(row, step) == now; ++row) {
        for (std::size_t c = 0; c < 3; ++c) touches.push_back(static_cast<float>(contacts.number(row, point + c)));
        for (std::size_t c = 0; c < 3; ++c) touches.push_back(static_cast<float>(contacts.number(row, force + c)));
      }
    }
    starts.back() = static_cast<int>(touches.size() / 6);
  }
  data["contacts"] = base64(touches);
  data["contactStarts"] = starts;
}

void add_plots(const CsvTable& trajectory, Json& data) {
  std::vector<float> rows;
  for (const std::size_t r : picked(trajectory.rows.size(), 1, kMostRows)) {
    for (std::size_t c = 0; c < trajectory.columns.size(); ++c) {
      rows.push_back(static_cast<float>(trajectory.number(r, c)));
    }
  }
  data["columns"] = trajectory.columns;
  data["rows"] = base64(rows);
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

}  // namespace

Json report_data(const fs::path& folder) {
  const ResultMotion motion = read_motion(folder);
  const Model& model = motion.scene.problem.model;
  Json data{{"name", motion.scene.name},       {"description", motion.scene.description},
            {"scene", cut(motion.scene_text)}, {"log", cut(text_of_file(folder / "log.txt"))},
            {"shapes", shapes_json(model)},    {"bodies", bodies_json(model)},
            {"limits", limits_json(model)},    {"times", base64(motion.times)},
            {"poses", base64(motion.poses)},   {"history", history_json(folder / "history.csv")}};
  if (!motion.before.empty()) data["before"] = base64(motion.before);
  add_contacts(folder / "contacts.csv", motion.frames, data);
  add_plots(motion.trajectory, data);
  return data;
}

}  // namespace backdrive::app
