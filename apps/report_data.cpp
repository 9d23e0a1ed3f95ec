#include "apps/report_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/error.h"
#include "integrators/reference/inverse_dynamics.h"
#include "models/coordinates.h"
#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "models/parameter_reader.h"
#include "scenes/scene.h"

namespace backdrive::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr double kFramesPerSecond = 60;
constexpr std::size_t kMostFrames = 3600, kMostRows = 3000;
constexpr std::uintmax_t kMostText = 2 << 20;  ///< bytes of the scene and of the log that a page holds

std::string text_of_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The text, or its beginning.
std::string cut(std::string text) {
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "\n...";
  return text;
}

/// Comma-separated values as simctl writes them, quotes included.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  explicit CsvTable(const fs::path& path) {
    const std::string text = text_of_file(path);
    std::vector<std::string> row(1);
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quoted) {
        if (c != '"') {
          row.back() += c;
        } else if (i + 1 < text.size() && text[i + 1] == '"') {
          row.back() += text[++i];
        } else {
          quoted = false;
        }
      } else if (c == '"') {
        quoted = true;
      } else if (c == ',') {
        row.emplace_back();
      } else if (c == '\n') {
        add(std::move(row));
        row.assign(1, "");
      } else if (c != '\r') {
        row.back() += c;
      }
    }
    if (row.size() > 1 || !row[0].empty()) add(std::move(row));
    if (columns.empty()) input_error(path.string() + ":1:1: no columns: expected a file that simctl wrote");
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].size() == columns.size()) continue;
      input_error(path.string() + ":" + std::to_string(r + 2) + ":1: " + std::to_string(rows[r].size()) +
                  " cells: expected " + std::to_string(columns.size()) + ", as in the first line");
    }
    path_ = path;
  }

  std::size_t column(const std::string& name) const {
    const auto found = std::ranges::find(columns, name);
    if (found == columns.end()) {
      input_error(path_.string() + ":1:1: no column '" + name + "': expected the columns of the scene beside it");
    }
    return static_cast<std::size_t>(found - columns.begin());
  }
  double number(std::size_t row, std::size_t column) const {
    const std::string& cell = rows[row][column];
    double value = 0;
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool good = code == std::errc() && end == cell.data() + cell.size();
    return good ? value : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  void add(std::vector<std::string> row) {
    if (columns.empty()) {
      columns = std::move(row);
    } else {
      rows.push_back(std::move(row));
    }
  }
  fs::path path_;
};

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

/// Corners of triangles, three numbers each.
std::vector<float> triangles_of_shape(const Model& model, int shape) {
  std::vector<float> corners;
  const Numbers3 scale{model.shapes.geometry.scale(shape, 0), model.shapes.geometry.scale(shape, 1),
                       model.shapes.geometry.scale(shape, 2)};
  const auto add = [&](double x, double y, double z) {
    for (const double number : {x, y, z}) corners.push_back(static_cast<float>(number));
  };
  if (model.shape_types[shape] == GeometryType::mesh) {
    const TriangleMesh mesh = triangles_of(*model.meshes[model.shape_meshes[shape]]);
    for (const auto& triangle : mesh.triangles) {
      for (const int corner : triangle) {
        const Vec3<double>& v = mesh.vertices[corner];
        add(v.x * scale[0], v.y * scale[1], v.z * scale[2]);
      }
    }
    return corners;
  }
  const HeightField& field = *model.height_fields[model.shape_meshes[shape]];
  const int rows = static_cast<int>(field.heights.size()) / field.columns;
  const int step = std::max(1, std::max(rows, field.columns) / 200);  // what an eye can see
  const auto at = [&](int r, int c) {
    r = std::min(r, rows - 1), c = std::min(c, field.columns - 1);
    add(scale[0] * (2.0 * c / (field.columns - 1) - 1), scale[1] * (2.0 * r / (rows - 1) - 1),
        scale[2] * field.heights[static_cast<std::size_t>(r) * field.columns + c]);
  };
  for (int r = 0; r + 1 < rows; r += step) {
    for (int c = 0; c + 1 < field.columns; c += step) {
      at(r, c), at(r, c + step), at(r + step, c + step);
      at(r, c), at(r + step, c + step), at(r + step, c);
    }
  }
  return corners;
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
    if (!has_one_degree(model.joint_types[j])) continue;
    const double lower = model.joints.limit.lower(joint), upper = model.joints.limit.upper(joint);
    if (!std::isfinite(lower) && !std::isfinite(upper)) continue;
    limits[model.joint_names[j] + "/position"] = {finite(lower), finite(upper)};
  }
  return limits;
}

/// Unit quaternion (x, y, z, w) of a rotation, column by column: of the four ways the one without cancellation
/// (Shepperd, 1978).
std::array<double, 4> quaternion_of(const std::array<double, 9>& R) {
  const double trace = R[0] + R[4] + R[8];
  const double t[4] = {R[0] - R[4] - R[8], R[4] - R[0] - R[8], R[8] - R[0] - R[4], trace};
  const int k = static_cast<int>(std::max_element(t, t + 4) - t);
  const double s = std::sqrt(1 + t[k]) * 2;
  const double xy = R[1] + R[3], xz = R[2] + R[6], yz = R[5] + R[7], x = R[5] - R[7], y = R[6] - R[2], z = R[1] - R[3];
  if (k == 0) return {s / 4, xy / s, xz / s, x / s};
  if (k == 1) return {xy / s, s / 4, yz / s, y / s};
  if (k == 2) return {xz / s, yz / s, s / 4, z / s};
  return {x / s, y / s, z / s, s / 4};
}

/// Every n-th of `rows` and the last, at most `most`.
std::vector<std::size_t> picked(std::size_t rows, std::size_t stride, std::size_t most) {
  stride = std::max({stride, std::size_t{1}, (rows + most - 1) / most});
  std::vector<std::size_t> indices;
  for (std::size_t r = 0; r < rows; r += stride) indices.push_back(r);
  if (rows > 0 && indices.back() != rows - 1) indices.push_back(rows - 1);
  return indices;
}

/// Poses of all bodies in some rows of a trajectory: position and quaternion of each.
std::string poses_of(const Model& model, const CsvTable& trajectory, const std::vector<std::size_t>& frames) {
  const std::vector<std::string> names = position_names(model);
  std::vector<std::size_t> columns;
  for (int row = 0; row < model.topology.joint_nq; ++row) columns.push_back(trajectory.column(names[row]));
  std::vector<float> poses;
  std::vector<double> q(model.topology.nq, 0.0);
  for (const std::size_t frame : frames) {
    for (std::size_t row = 0; row < columns.size(); ++row) q[row] = trajectory.number(frame, columns[row]);
    for (const reference::LinkPose& pose : reference::body_poses(model, q)) {
      for (const double x : pose.position) poses.push_back(static_cast<float>(x));
      for (const double x : quaternion_of(pose.rotation)) poses.push_back(static_cast<float>(x));
    }
  }
  return base64(poses);
}

/// Poses of all bodies, times, and what touched, frame by frame; and poses before, where there are any.
void add_motion(const Problem& problem, const CsvTable& trajectory, const fs::path& folder, Json& data) {
  const double dt = problem.simulation.time_step;
  const auto stride = static_cast<std::size_t>(std::max(1.0, std::floor(1 / (kFramesPerSecond * dt) + 1e-9)));
  const std::vector<std::size_t> frames = picked(trajectory.rows.size(), stride, kMostFrames);
  std::vector<float> times;
  for (const std::size_t frame : frames) times.push_back(static_cast<float>(trajectory.number(frame, 0)));
  data["times"] = base64(times);
  data["poses"] = poses_of(problem.model, trajectory, frames);
  if (fs::exists(folder / "before.csv")) {
    const CsvTable before(folder / "before.csv");
    if (before.rows.size() == trajectory.rows.size()) data["before"] = poses_of(problem.model, before, frames);
  }

  std::vector<float> touches;
  std::vector<int> starts(frames.size() + 1, 0);
  if (fs::exists(folder / "contacts.csv")) {
    const CsvTable contacts(folder / "contacts.csv");
    const std::size_t step = contacts.column("step"), point = contacts.column("point/x"),
                      force = contacts.column("force/x");
    std::size_t row = 0;
    for (std::size_t k = 0; k < frames.size(); ++k) {
      starts[k] = static_cast<int>(touches.size() / 6);
      while (row < contacts.rows.size() && contacts.number(row, step) < static_cast<double>(frames[k])) ++row;
      for (; row < contacts.rows.size() && contacts.number(row, step) == static_cast<double>(frames[k]); ++row) {
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
  if (!fs::is_directory(folder)) input_error(folder.string() + ": expected a result folder of simctl run or optimize");
  std::optional<fs::path> file;
  for (const char* const name : {"result.yaml", "scene.yaml"}) {
    if (!file && fs::exists(folder / name)) file = folder / name;
  }
  if (!file || !fs::exists(folder / "trajectory.csv")) {
    input_error(
        folder.string() +
        ": expected a result folder of simctl run or optimize, with trajectory.csv and result.yaml or scene.yaml");
  }
  const Scene scene = load_scene(*file);
  const CsvTable trajectory(folder / "trajectory.csv");
  Json data{{"name", scene.name},
            {"description", scene.description},
            {"scene", cut(text_of_file(*file))},
            {"log", cut(text_of_file(folder / "log.txt"))},
            {"shapes", shapes_json(scene.problem.model)},
            {"bodies", bodies_json(scene.problem.model)},
            {"limits", limits_json(scene.problem.model)},
            {"history", history_json(folder / "history.csv")}};
  add_motion(scene.problem, trajectory, folder, data);
  add_plots(trajectory, data);
  return data;
}

}  // namespace backdrive::app
