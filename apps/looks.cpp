#include "apps/looks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "apps/console.h"
#include "apps/log.h"
#include "apps/result_motion.h"
#include "apps/shown_motion.h"
#include "engine/error.h"
#include "models/meshes/simplified.h"

namespace backdrive::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uintmax_t kMostLookBytes = std::uintmax_t{256} << 20;  ///< of all files of meshes
constexpr std::size_t kMostLooks = 5000;
constexpr std::size_t kMostColours = 32;  ///< of a mesh; others become one of them
constexpr double kLookLevels = 65535;

/// What makes a mesh: its file or list, how it is placed, and whether colours of its own count.
using MeshKey = std::tuple<std::string, const TriangleMesh*, Numbers3, Numbers3, scene::Turn, bool>;

MeshKey key_of(const Visual& visual) {
  return {visual.file.string(),      visual.listed.get(),          visual.scale,
          visual.reference.position, visual.reference.orientation, visual.colour.has_value()};
}

/// The most triangles that each mesh may have, so that all have no more than fit together.
std::size_t triangles_each(const std::vector<TriangleMesh>& meshes) {
  std::vector<std::size_t> counts;
  for (const TriangleMesh& mesh : meshes) counts.push_back(mesh.triangles.size());
  std::ranges::sort(counts);
  std::size_t left = kMostLookTriangles, others = counts.size();
  for (const std::size_t count : counts) {
    if (count * others > left) return std::max<std::size_t>(left / others, 1);
    left -= count;
    --others;
  }
  return kMostLookTriangles;
}

LookMesh look_mesh(const TriangleMesh& mesh) {
  LookMesh result;
  for (const Vec3<double>& v : mesh.vertices) {
    for (const double x : {v.x, v.y, v.z}) result.vertices.push_back(static_cast<float>(x));
  }
  for (const auto& triangle : mesh.triangles) {
    for (const int corner : triangle) result.triangles.push_back(static_cast<std::uint32_t>(corner));
  }
  return result;
}

/// Reads the visuals of a scene.
class LookReader {
 public:
  explicit LookReader(const Scene& scene) : scene_(scene), model_(scene.problem.model) {
    for (std::size_t b = 0; b < model_.body_names.size(); ++b) bodies_[model_.body_names[b]] = static_cast<int>(b);
    bodies_["world"] = -1;
  }

  Looks read() {
    for (const Visual& visual : scene_.looks.visuals) add(visual);
    drop_failed();
    find_hidden();
    const std::size_t most = triangles_each(meshes_);
    for (const TriangleMesh& mesh : meshes_) result_.meshes.push_back(look_mesh(simplified(mesh, most)));
    if (failures_ > 0) {
      log_warning(count(failures_, "visual") + " of the robot " + (failures_ > 1 ? "are" : "is") +
                  " not drawn, but what touches in place: " + first_failure_);
    }
    return std::move(result_);
  }

 private:
  void add(const Visual& visual) {
    const auto body = bodies_.find(visual.body);
    if (body == bodies_.end()) return;
    const Look look{body->second, visual.type, visual.scale, visual.pose, visual.colour, -1};
    const bool is_mesh = visual.type == GeometryType::mesh;
    if (is_mesh && !visual.listed && visual.file.empty()) return void(failed_.insert(look.body));  // told by the reader
    if (!is_mesh) return add_look(look);
    const std::vector<Patch>& patches = patches_of(visual);
    if (patches.empty()) fail(look);
    for (const Patch& patch : patches) {
      Look own = look;
      own.scale = {1, 1, 1};
      own.mesh = patch.mesh;
      if (!own.colour && patch.colour != kNoColour) {
        const auto share = [&](int shift) { return (patch.colour >> shift & 255) / 255.0; };
        own.colour = {share(16), share(8), share(0), 1};
      }
      add_look(own);
    }
  }
  void add_look(const Look& look) {
    if (result_.looks.size() < kMostLooks) return result_.looks.push_back(look);
    fail_once("more than " + std::to_string(kMostLooks) + " visuals");
    fail(look);
  }
  void fail(const Look& look) {
    ++failures_;
    failed_.insert(look.body);
  }

  /// What of a mesh has one colour.
  struct Patch {
    int mesh, colour;
  };

  /// None where it cannot be drawn.
  const std::vector<Patch>& patches_of(const Visual& visual) {
    const auto [known, is_new] = known_.try_emplace(key_of(visual));
    if (!is_new) return known->second;
    try {
      if (!visual.listed) {
        bytes_ += fs::file_size(visual.file);
        if (bytes_ > kMostLookBytes) {
          fail_once(visual.place + ": more than " + std::to_string(kMostLookBytes >> 20) + " MiB of meshes");
          return known->second;
        }
      }
      known->second = patched(visual_mesh(visual), visual.colour.has_value());
    } catch (const Error& error) {
      fail_once(error.what());
    } catch (const fs::filesystem_error& error) {
      fail_once(error.what());
    }
    return known->second;
  }
  std::vector<Patch> patched(const TriangleMesh& mesh, bool in_one) {
    std::map<int, TriangleMesh> by_colour;
    for (std::size_t t = 0; t < mesh.triangles.size(); ++t) {
      int colour = in_one || mesh.colours.empty() ? kNoColour : mesh.colours[t];
      if (by_colour.size() == kMostColours && !by_colour.contains(colour)) colour = by_colour.rbegin()->first;
      by_colour[colour].triangles.push_back(mesh.triangles[t]);
    }
    std::vector<Patch> patches;
    for (auto& [colour, part] : by_colour) {
      part.vertices = mesh.vertices;
      TriangleMesh own = simplified(by_colour.size() > 1 ? welded(part) : part, kMostLookTriangles);
      if (own.triangles.empty()) continue;
      patches.push_back({static_cast<int>(meshes_.size()), colour});
      meshes_.push_back(std::move(own));
      part = {};
    }
    return patches;
  }
  void fail_once(const std::string& why) {
    if (first_failure_.empty()) first_failure_ = why;
  }

  /// Bodies of which something is missing are drawn as they touch, where they do.
  void drop_failed() {
    std::erase_if(result_.looks, [&](const Look& look) {
      return failed_.contains(look.body) &&
             std::ranges::find(model_.shape_bodies, look.body) != model_.shape_bodies.end();
    });
  }

  void find_hidden() {
    std::set<int> drawn;
    for (const Look& look : result_.looks) drawn.insert(look.body);
    const std::set<std::string> of_robots(scene_.looks.shapes.begin(), scene_.looks.shapes.end());
    for (std::size_t s = 0; s < model_.shape_names.size(); ++s) {
      const GeometryType type = model_.shape_types[s];
      const bool is_ground = type == GeometryType::plane || type == GeometryType::height_field;
      if (is_ground || !drawn.contains(model_.shape_bodies[s]) || !of_robots.contains(model_.shape_names[s])) continue;
      result_.hidden.push_back(model_.shape_names[s]);
    }
  }

  const Scene& scene_;
  const Model& model_;
  std::map<std::string, int, std::less<>> bodies_;
  std::map<MeshKey, std::vector<Patch>> known_;
  std::vector<TriangleMesh> meshes_;
  std::set<int> failed_;  ///< bodies
  std::uintmax_t bytes_ = 0;
  int failures_ = 0;
  std::string first_failure_;
  Looks result_;
};

Json mesh_json(const LookMesh& mesh) {
  double low[3], high[3], extent = 0;
  Json origin = Json::array();
  for (std::size_t k = 0; k < 3; ++k) {
    low[k] = high[k] = mesh.vertices[k];
    for (std::size_t i = k; i < mesh.vertices.size(); i += 3) {
      low[k] = std::min<double>(low[k], mesh.vertices[i]);
      high[k] = std::max<double>(high[k], mesh.vertices[i]);
    }
    extent = std::max(extent, high[k] - low[k]);
    origin.push_back((low[k] + high[k]) / 2);
  }
  const double quantum = extent > 0 ? extent / kLookLevels : 1;
  std::vector<std::int16_t> vertices;
  for (std::size_t i = 0; i < mesh.vertices.size(); ++i) {
    const double n = std::round((mesh.vertices[i] - origin[i % 3].get<double>()) / quantum);
    vertices.push_back(static_cast<std::int16_t>(std::clamp(n, -32768.0, 32767.0)));
  }
  Json json{{"vertices", base64(vertices.data(), vertices.size() * sizeof(std::int16_t))},
            {"origin", origin},
            {"quantum", quantum}};
  if (mesh.vertices.size() / 3 > 65536) {
    json["triangles"] = base64(mesh.triangles.data(), mesh.triangles.size() * sizeof(std::uint32_t));
  } else {
    const std::vector<std::uint16_t> corners(mesh.triangles.begin(), mesh.triangles.end());
    json["triangles"] = base64(corners.data(), corners.size() * sizeof(std::uint16_t));
  }
  return json;
}

/// How far a look reaches from its body's origin, m.
double reach_of_look(const Look& look, const Looks& all) {
  double size = std::hypot(look.scale[0], look.scale[1], look.scale[2]);
  if (look.type == GeometryType::sphere) size = look.scale[0];
  if (look.type == GeometryType::capsule) size = look.scale[0] + look.scale[1];
  if (look.mesh >= 0) {
    size = 0;
    const std::vector<float>& v = all.meshes[look.mesh].vertices;
    for (std::size_t i = 0; i < v.size(); i += 3) size = std::max<double>(size, std::hypot(v[i], v[i + 1], v[i + 2]));
  }
  return size + (look.body < 0 ? 0 : std::hypot(look.pose.position[0], look.pose.position[1], look.pose.position[2]));
}

// ---- back from JSON

struct NotOurs {};  ///< of a file that simctl did not write

template <class Number>
std::vector<Number> numbers_of(const Json& text) {
  const std::vector<unsigned char> bytes = base64_bytes(text.get_ref<const std::string&>());
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

LookMesh mesh_of_json(const Json& json) {
  LookMesh mesh;
  const auto origin = json.at("origin").get<Numbers3>();
  const double quantum = json.at("quantum").get<double>();
  const std::vector<std::int16_t> vertices = numbers_of<std::int16_t>(json.at("vertices"));
  if (vertices.empty() || vertices.size() % 3 != 0 || !std::isfinite(quantum)) throw NotOurs();
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    mesh.vertices.push_back(static_cast<float>(origin[i % 3] + quantum * vertices[i]));
  }
  if (vertices.size() / 3 > 65536) {
    mesh.triangles = numbers_of<std::uint32_t>(json.at("triangles"));
  } else {
    const std::vector<std::uint16_t> corners = numbers_of<std::uint16_t>(json.at("triangles"));
    mesh.triangles.assign(corners.begin(), corners.end());
  }
  const auto known = [&](std::uint32_t corner) { return corner < vertices.size() / 3; };
  if (mesh.triangles.size() % 3 != 0 || !std::ranges::all_of(mesh.triangles, known)) throw NotOurs();
  return mesh;
}

GeometryType look_type(const std::string& name) {
  for (const GeometryType type : {GeometryType::sphere, GeometryType::capsule, GeometryType::box, GeometryType::mesh,
                                  GeometryType::ellipsoid, GeometryType::cylinder}) {
    if (name == to_string(type)) return type;
  }
  throw NotOurs();
}

/// An index of -1 to `end`, exclusive.
int index_of_json(const Json& json, std::size_t end) {
  const double index = json.get<double>();
  if (!(index >= -1 && index < static_cast<double>(end)) || index != std::floor(index)) throw NotOurs();
  return static_cast<int>(index);
}

Look look_of_json(const Json& json, const Looks& all, const Model& model) {
  Look look;
  look.body = index_of_json(json.at("body"), model.body_names.size());
  look.type = look_type(json.at("type").get<std::string>());
  look.scale = json.at("scale").get<Numbers3>();
  look.pose.position = json.at("position").get<Numbers3>();
  look.pose.orientation = json.at("orientation").get<scene::Turn>();
  if (json.contains("colour")) look.colour = json["colour"].get<std::array<double, 4>>();
  const bool is_mesh = look.type == GeometryType::mesh;
  look.mesh = json.contains("mesh") ? index_of_json(json["mesh"], is_mesh ? all.meshes.size() : 0) : -1;
  if (is_mesh && look.mesh < 0) throw NotOurs();
  return look;
}

}  // namespace

Looks looks_of(const Scene& scene) {
  return LookReader(scene).read();
}

nlohmann::json looks_json(const Looks& looks) {
  Json list = Json::array(), meshes = Json::array();
  for (const Look& look : looks.looks) {
    Json json{{"body", look.body},
              {"type", to_string(look.type)},
              {"scale", look.scale},
              {"position", look.pose.position},
              {"orientation", look.pose.orientation},
              {"reach", reach_of_look(look, looks)}};
    if (look.colour) json["colour"] = *look.colour;
    if (look.mesh >= 0) json["mesh"] = look.mesh;
    list.push_back(std::move(json));
  }
  for (const LookMesh& mesh : looks.meshes) meshes.push_back(mesh_json(mesh));
  return {{"looks", list}, {"meshes", meshes}, {"hidden", looks.hidden}};
}

void write_looks(const Scene& scene, OutputFolder& folder) {
  if (scene.looks.visuals.empty()) return;
  const Looks looks = looks_of(scene);
  if (!looks.looks.empty()) folder.file("looks.json") << looks_json(looks).dump() << '\n';
}

Looks read_looks(const fs::path& folder, const Model& model) {
  const fs::path file = folder / "looks.json";
  Looks looks;
  if (!fs::exists(file)) return looks;
  const auto refuse = [&](const std::string& why) {
    input_error(file.string() + ": expected a file that simctl wrote" + why);
  };
  try {
    const Json json = Json::parse(text_of_file(file));
    for (const Json& mesh : json.at("meshes")) looks.meshes.push_back(mesh_of_json(mesh));
    for (const Json& look : json.at("looks")) looks.looks.push_back(look_of_json(look, looks, model));
    looks.hidden = json.at("hidden").get<std::vector<std::string>>();
  } catch (const Json::exception& error) {
    refuse(std::string(" (") + error.what() + ")");
  } catch (const NotOurs&) {
    refuse(", for the bodies of the scene beside it");
  }
  return looks;
}

}  // namespace backdrive::app
