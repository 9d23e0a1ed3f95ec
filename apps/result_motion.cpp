#include "apps/result_motion.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "engine/error.h"
#include "models/coordinates.h"
#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "scenes/csv_cells.h"

namespace backdrive::app {

namespace fs = std::filesystem;

namespace {

constexpr double kFramesPerSecond = 60;
constexpr std::size_t kMostFrames = 3600;

}  // namespace

std::string text_of_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

CsvTable::CsvTable(const fs::path& path) {
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

std::size_t CsvTable::column(const std::string& name) const {
  const auto found = std::ranges::find(columns, name);
  if (found == columns.end()) {
    input_error(path_.string() + ":1:1: no column '" + name + "': expected the columns of the scene beside it");
  }
  return static_cast<std::size_t>(found - columns.begin());
}

double CsvTable::number(std::size_t row, std::size_t column) const {
  const std::string& cell = rows[row][column];
  double value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool good = code == std::errc() && end == cell.data() + cell.size();
  return good ? value : std::numeric_limits<double>::quiet_NaN();
}

void CsvTable::add(std::vector<std::string> row) {
  if (columns.empty()) {
    for (const std::string& name : row) columns.emplace_back(scene::unmarked(name));
  } else {
    rows.push_back(std::move(row));
  }
}

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

namespace {

/// Poses of all bodies in some rows of a trajectory: position and quaternion of each.
std::vector<float> poses_of(const Model& model, const CsvTable& trajectory, const std::vector<std::size_t>& frames) {
  const std::vector<std::string> names = position_names(model);
  std::vector<std::size_t> columns;
  for (int row = 0; row < model.topology.joint_nq; ++row) columns.push_back(trajectory.column(names[row]));
  std::vector<float> poses;
  std::vector<double> q(model.topology.nq, 0.0);
  for (const std::size_t frame : frames) {
    for (std::size_t row = 0; row < columns.size(); ++row) q[row] = trajectory.number(frame, columns[row]);
    append_poses(model, q, poses);
  }
  return poses;
}

}  // namespace

std::vector<std::string> names_of_folders(const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    fs::path path = fs::path(folder).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    names.push_back(path.filename().string());
  }
  return std::set<std::string>(names.begin(), names.end()).size() == names.size() ? names : folders;
}

fs::path scene_file_in(const fs::path& folder) {
  if (!fs::is_directory(folder)) input_error(folder.string() + ": expected a result folder of simctl run or optimize");
  for (const char* const name : {"result.yaml", "scene.yaml"}) {
    if (fs::exists(folder / name) && fs::exists(folder / "trajectory.csv")) return folder / name;
  }
  input_error(
      folder.string() +
      ": expected a result folder of simctl run or optimize, with trajectory.csv and result.yaml or scene.yaml");
}

ResultMotion read_motion(const fs::path& folder) {
  const fs::path file = scene_file_in(folder);
  ResultMotion motion{load_scene(file), text_of_file(file), CsvTable(folder / "trajectory.csv"), {}, {}, {}, {}};
  const double dt = motion.scene.problem.simulation.control_time_step();
  const std::size_t rows = motion.trajectory.rows.size();
  motion.frames = picked(rows, frame_stride(rows, dt, kFramesPerSecond), kMostFrames);
  for (const std::size_t frame : motion.frames) {
    motion.times.push_back(static_cast<float>(motion.trajectory.number(frame, 0)));
  }
  motion.poses = poses_of(motion.scene.problem.model, motion.trajectory, motion.frames);
  if (fs::exists(folder / "before.csv")) {
    const CsvTable before(folder / "before.csv");
    if (before.rows.size() == motion.trajectory.rows.size()) {
      motion.before = poses_of(motion.scene.problem.model, before, motion.frames);
    }
  }
  return motion;
}

}  // namespace backdrive::app
