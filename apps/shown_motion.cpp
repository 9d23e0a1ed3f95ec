#include "apps/shown_motion.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "apps/json_text.h"
#include "apps/result_motion.h"
#include "engine/quaternion.h"
#include "integrators/reference/inverse_dynamics.h"
#include "models/coordinates.h"
#include "models/meshes/convex_mesh.h"
#include "models/parameter_reader.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;

constexpr double kLevels = 65535;
/// Of the largest body's size, as far as poses may be off.
constexpr double kUnseen = 1e-3;
constexpr std::size_t kNumbersOfPose = 7;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

std::string base64_of(const std::vector<std::int16_t>& numbers) {
  return base64(numbers.data(), numbers.size() * sizeof(std::int16_t));
}

/// Where positions lie along one axis, as whole numbers from −32768.
struct Grating {
  double origin = 0, quantum = 0;
};

Grating grating_of(const std::vector<float>& poses, std::size_t axis) {
  double low = kInfinity, high = -kInfinity;
  for (std::size_t i = axis; i < poses.size(); i += kNumbersOfPose) {
    low = std::min<double>(low, poses[i]);
    high = std::max<double>(high, poses[i]);
  }
  if (!(low <= high)) return {};
  return {low + (high - low) / kLevels * 32768, (high - low) / kLevels};
}

void add_poses(const std::vector<float>& poses, const Model& model, Json& motion) {
  double largest = 0;
  for (int s = 0; s < static_cast<int>(model.shape_names.size()); ++s) {
    if (model.shape_bodies[s] >= 0) largest = std::max(largest, reach_of(model, s));
  }
  std::array<Grating, 3> axes;
  bool fine = true;
  for (std::size_t k = 0; k < 3; ++k) {
    axes[k] = grating_of(poses, k);
    fine = fine && std::isfinite(axes[k].quantum) && (largest == 0 || axes[k].quantum <= kUnseen * largest);
  }
  if (!fine) {
    motion["poses"] = base64(poses);
    return;
  }
  std::vector<std::int16_t> numbers;
  numbers.reserve(poses.size());
  for (std::size_t i = 0; i < poses.size(); ++i) {
    const std::size_t k = i % kNumbersOfPose;
    double number = poses[i] * 32767.0;
    if (k < 3) number = axes[k].quantum > 0 ? (poses[i] - axes[k].origin) / axes[k].quantum : 0;
    numbers.push_back(static_cast<std::int16_t>(std::clamp(std::round(number), -32768.0, 32767.0)));
  }
  motion["poses"] = base64_of(numbers);
  motion["origin"] = {axes[0].origin, axes[1].origin, axes[2].origin};
  motion["quantum"] = {axes[0].quantum, axes[1].quantum, axes[2].quantum};
}

/// Of two lists of the same length what is other in the second, by index; else the second.
Json difference(const Json& first, const Json& second) {
  if (first.size() != second.size()) return second;
  Json changed = Json::object();
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] != second[i]) changed[std::to_string(i)] = second[i];
  }
  return changed;
}

/// The contacts of some steps.
void add_touches(const SimulationResult& result, const std::vector<std::size_t>& frames, ShownMotion& motion) {
  if (result.contacts.empty()) return;
  auto contact = result.contacts.begin();
  for (const std::size_t frame : frames) {
    motion.touch_starts.push_back(static_cast<int>(motion.touches.size() / 6));
    const int now = static_cast<int>(frame);
    while (contact != result.contacts.end() && contact->step < now) ++contact;
    for (; contact != result.contacts.end() && contact->step == now; ++contact) {
      for (const double x : contact->point) motion.touches.push_back(static_cast<float>(x));
      for (const double x : contact->force) motion.touches.push_back(static_cast<float>(x));
    }
  }
  motion.touch_starts.push_back(static_cast<int>(motion.touches.size() / 6));
}

}  // namespace

std::string base64(const void* bytes, std::size_t count) {
  static_assert(std::endian::native == std::endian::little);
  const auto* const data = static_cast<const unsigned char*>(bytes);
  std::string text;
  text.reserve((count + 2) / 3 * 4);
  for (std::size_t i = 0; i < count; i += 3) {
    const auto byte = [&](std::size_t k) { return i + k < count ? data[i + k] : 0u; };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int k = 0; k < 4; ++k) text += kDigits[group >> (18 - 6 * k) & 63];
    if (i + 1 >= count) text[text.size() - 2] = '=';
    if (i + 2 >= count) text.back() = '=';
  }
  return text;
}

std::string base64(const std::vector<float>& numbers) {
  return base64(numbers.data(), numbers.size() * sizeof(float));
}

std::vector<unsigned char> base64_bytes(std::string_view text) {
  std::array<int, 256> value;
  value.fill(-1);
  for (std::size_t k = 0; k < kDigits.size(); ++k) value[static_cast<unsigned char>(kDigits[k])] = static_cast<int>(k);
  std::vector<unsigned char> bytes;
  bytes.reserve(text.size() / 4 * 3);
  unsigned group = 0;
  int bits = 0;
  for (const char c : text) {
    const int digit = value[static_cast<unsigned char>(c)];
    if (digit < 0) break;
    group = group << 6 | static_cast<unsigned>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<unsigned char>(group >> bits & 255));
  }
  return bytes;
}

std::vector<std::size_t> picked(std::size_t rows, std::size_t stride, std::size_t most) {
  stride = std::max({stride, std::size_t{1}, (rows + most - 1) / most});
  std::vector<std::size_t> indices;
  for (std::size_t r = 0; r < rows; r += stride) indices.push_back(r);
  if (rows > 0 && indices.back() != rows - 1) indices.push_back(rows - 1);
  return indices;
}

std::size_t frame_stride(std::size_t rows, double time_step, double frames_per_second) {
  const double most = std::max(1.0, std::floor(static_cast<double>(rows) / kFewestFrames));
  return static_cast<std::size_t>(std::clamp(std::floor(1 / (frames_per_second * time_step) + 1e-9), 1.0, most));
}

void append_poses(const Model& model, const std::vector<double>& q, std::vector<float>& poses) {
  for (const reference::LinkPose& pose : reference::body_poses(model, q)) {
    for (const double x : pose.position) poses.push_back(static_cast<float>(x));
    for (const double x : quaternion_of(pose.rotation)) poses.push_back(static_cast<float>(x));
  }
}

ShownMotion shown_motion(const Problem& problem, const SimulationResult& result, double frames_per_second,
                         std::size_t most_frames) {
  const Model& model = problem.model;
  const auto nq = static_cast<std::size_t>(model.topology.nq), nv = static_cast<std::size_t>(model.topology.nv);
  const auto positions = static_cast<std::size_t>(model.topology.joint_nq),
             velocities = static_cast<std::size_t>(model.topology.joint_nv);
  const double dt = problem.simulation.time_step;
  const std::size_t rows = static_cast<std::size_t>(result.steps) + 1;
  const std::vector<std::size_t> frames = picked(rows, frame_stride(rows, dt, frames_per_second), most_frames);
  ShownMotion motion;
  motion.columns.emplace_back("time");
  for (const std::string& name : position_names(model)) motion.columns.push_back(name);
  for (const std::string& name : velocity_names(model)) motion.columns.push_back(name);
  std::vector<double> q(nq);
  for (const std::size_t frame : frames) {
    const auto time = static_cast<float>(static_cast<double>(frame) * dt);
    std::copy_n(&result.q[frame * nq], nq, q.begin());
    append_poses(model, q, motion.poses);
    motion.times.push_back(time);
    motion.rows.push_back(time);
    for (std::size_t i = 0; i < positions; ++i) motion.rows.push_back(static_cast<float>(q[i]));
    for (std::size_t i = 0; i < velocities; ++i) motion.rows.push_back(static_cast<float>(result.qd[frame * nv + i]));
  }
  add_touches(result, frames, motion);
  return motion;
}

nlohmann::json to_json(const ShownMotion& motion, const Model& model) {
  Json json{{"name", motion.name}, {"times", base64(motion.times)}};
  add_poses(motion.poses, model, json);
  if (!motion.touches.empty()) {
    json["contacts"] = base64(motion.touches);
    json["contactStarts"] = motion.touch_starts;
  }
  if (!motion.columns.empty()) {
    json["columns"] = motion.columns;
    json["rows"] = base64(motion.rows);
  }
  return json;
}

nlohmann::json shapes_json(const Model& model) {
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
               {"reach", finite_or_null(reach_of(model, s))}};
    const bool listed =
        model.shape_types[s] == GeometryType::mesh || model.shape_types[s] == GeometryType::height_field;
    if (listed) shape["triangles"] = base64(triangles_of_shape(model, s));
    shapes.push_back(shape);
  }
  return shapes;
}

nlohmann::json bodies_json(const Model& model) {
  Json bodies = Json::array();
  for (const std::string& name : model.body_names) bodies.push_back({{"name", name}});
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    if (model.joint_loops[j]) continue;
    const int joint = static_cast<int>(j), body = model.joint_children[j];
    const MassProperties<double> mass = body_mass(model, body, 0);
    const Sym3<double>& i = mass.inertia;
    bodies[body].update({{"joint", model.joint_names[j]},
                         {"type", to_string(model.joint_types[j])},
                         {"parent", model.joint_parents[j]},
                         {"mass", mass.mass},
                         {"com", {mass.com.x, mass.com.y, mass.com.z}},
                         {"inertia", {i.xx, i.yy, i.zz, i.xy, i.xz, i.yz}},
                         {"offset",
                          {model.joints.frame.position(joint, 0), model.joints.frame.position(joint, 1),
                           model.joints.frame.position(joint, 2)}}});
  }
  return bodies;
}

void add_differences(const nlohmann::json& shapes, const nlohmann::json& bodies, const Model& model,
                     nlohmann::json& motion) {
  const auto add = [&](const char* key, Json other) {
    if (other.is_array() || !other.empty()) motion[key] = std::move(other);
  };
  add("shapes", difference(shapes, shapes_json(model)));
  add("bodies", difference(bodies, bodies_json(model)));
}

}  // namespace backdrive::app
