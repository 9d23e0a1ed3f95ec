// Khronos (2021), glTF 2.0 Specification: §3 (nodes, meshes, animations), §4 (the GLB container).
#include "apps/gltf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "apps/looks.h"
#include "apps/result_motion.h"
#include "models/meshes/convex_mesh.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;

// Numbers of the specification.
constexpr int kFloat = 5126, kUnsigned = 5125, kVertices = 34962, kIndices = 34963;

/// Triangles with a normal at every corner.
struct Surface {
  std::vector<float> positions, normals;
  std::vector<std::uint32_t> indices;

  std::uint32_t add(const Vec3<double>& x, const Vec3<double>& n) {
    for (const double v : {x.x, x.y, x.z}) positions.push_back(static_cast<float>(v));
    for (const double v : {n.x, n.y, n.z}) normals.push_back(static_cast<float>(v));
    return static_cast<std::uint32_t>(positions.size() / 3 - 1);
  }
  /// Flat, corners counterclockwise.
  void add_face(std::initializer_list<Vec3<double>> corners) {
    const Vec3<double>* const c = corners.begin();
    Vec3<double> n = cross(c[1] - c[0], c[2] - c[0]);
    const double length = std::sqrt(dot(n, n));
    n = length > 0 ? n * (1 / length) : Vec3<double>{0, 0, 1};
    const std::uint32_t first = add(c[0], n);
    for (std::size_t k = 1; k < corners.size(); ++k) add(c[k], n);
    for (std::uint32_t k = 2; k < corners.size(); ++k) indices.insert(indices.end(), {first, first + k - 1, first + k});
  }
};

/// A point of an outline (radius, z) and its normal.
struct Outline {
  double r, z, nr, nz;
};

/// The surface that an outline, from the lowest z up, makes when it turns about z.
Surface turned(const std::vector<Outline>& outline) {
  constexpr int sides = 32;
  Surface s;
  for (const Outline& p : outline) {
    for (int k = 0; k <= sides; ++k) {
      const double angle = 2 * std::numbers::pi * k / sides, c = std::cos(angle), d = std::sin(angle);
      s.add({p.r * c, p.r * d, p.z}, {p.nr * c, p.nr * d, p.nz});
    }
  }
  for (std::uint32_t row = 0; row + 1 < outline.size(); ++row) {
    for (std::uint32_t k = 0; k < sides; ++k) {
      const std::uint32_t a = row * (sides + 1) + k, b = a + 1, above = a + sides + 1;
      s.indices.insert(s.indices.end(), {a, b, above, b, above + 1, above});
    }
  }
  return s;
}

Surface ball(double radius, double half_length) {
  std::vector<Outline> outline;
  for (int k = 0; k <= 24; ++k) {
    const double angle = std::numbers::pi * (k / 24.0 - 0.5), c = std::cos(angle), d = std::sin(angle);
    outline.push_back({radius * c, radius * d + (k <= 12 ? -half_length : half_length), c, d});
    if (k == 12) outline.push_back({radius, half_length, 1, 0});
  }
  return turned(outline);
}

Surface box(double x, double y, double z) {
  Surface s;
  for (const double side : {-1.0, 1.0}) {
    s.add_face(
        {{side * x, -side * y, -z}, {side * x, side * y, -z}, {side * x, side * y, z}, {side * x, -side * y, z}});
    s.add_face(
        {{side * x, side * y, -z}, {-side * x, side * y, -z}, {-side * x, side * y, z}, {side * x, side * y, z}});
    s.add_face(
        {{-side * x, -y, side * z}, {side * x, -y, side * z}, {side * x, y, side * z}, {-side * x, y, side * z}});
  }
  return s;
}

Surface surface_of(GeometryType type, const Numbers3& size) {
  const auto scale = [&](int k) { return size[static_cast<std::size_t>(k)]; };
  switch (type) {
    case GeometryType::plane: {
      constexpr double half = 10;  // m; planes have no end
      Surface s;
      s.add_face({{-half, -half, 0}, {half, -half, 0}, {half, half, 0}, {-half, half, 0}});
      return s;
    }
    case GeometryType::sphere:
      return ball(scale(0), 0);
    case GeometryType::capsule:
      return ball(scale(0), scale(1));
    case GeometryType::ellipsoid: {
      Surface s = ball(1, 0);
      for (std::size_t i = 0; i < s.positions.size(); i += 3) {
        double n[3], length = 0;
        for (int k = 0; k < 3; ++k) {
          s.positions[i + k] *= static_cast<float>(scale(k));
          n[k] = s.normals[i + k] / scale(k);
          length += n[k] * n[k];
        }
        for (int k = 0; k < 3; ++k) s.normals[i + k] = static_cast<float>(n[k] / std::sqrt(length));
      }
      return s;
    }
    case GeometryType::box:
      return box(scale(0), scale(1), scale(2));
    case GeometryType::cylinder: {
      const double r = scale(0), h = scale(1);
      return turned({{0, -h, 0, -1}, {r, -h, 0, -1}, {r, -h, 1, 0}, {r, h, 1, 0}, {r, h, 0, 1}, {0, h, 0, 1}});
    }
    case GeometryType::mesh:
    case GeometryType::height_field:
      break;
  }
  return {};
}

Surface surface_of(const Model& model, int shape) {
  const GeometryType type = model.shape_types[shape];
  const auto scale = [&](int k) { return model.shapes.geometry.scale(shape, k); };
  if (type != GeometryType::mesh && type != GeometryType::height_field) {
    return surface_of(type, {scale(0), scale(1), scale(2)});
  }
  Surface s;
  const std::vector<float> corners = triangles_of_shape(model, shape);
  const auto at = [&](std::size_t i) { return Vec3<double>{corners[i], corners[i + 1], corners[i + 2]}; };
  for (std::size_t i = 0; i + 9 <= corners.size(); i += 9) s.add_face({at(i), at(i + 3), at(i + 6)});
  return s;
}

Surface surface_of(const LookMesh& mesh) {
  Surface s;
  const auto at = [&](std::size_t k) {
    const float* const v = &mesh.vertices[3 * mesh.triangles[k]];
    return Vec3<double>{v[0], v[1], v[2]};
  };
  for (std::size_t k = 0; k < mesh.triangles.size(); k += 3) s.add_face({at(k), at(k + 1), at(k + 2)});
  return s;
}

/// Colours of pages are sRGB, those of glTF linear.
double linear(double share) {
  return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
}

class GltfWriter {
 public:
  GltfWriter(const ResultMotion& motion, const Looks& looks)
      : motion_(motion), model_(motion.scene.problem.model), looks_(looks) {}

  std::string write() {
    gltf_ = {{"asset", {{"version", "2.0"}, {"generator", "Backdrive simctl"}}},
             {"scene", 0},
             {"scenes", {{{"nodes", {0}}, {"name", motion_.scene.name}}}},
             {"nodes", Json::array()}};
    // z up becomes y up by a quarter turn about x.
    const double half = std::sqrt(0.5);
    gltf_["nodes"].push_back({{"name", "world"}, {"rotation", {-half, 0, 0, half}}});
    Json children = Json::array();
    for (std::size_t b = 0; b < model_.body_names.size(); ++b) {
      children.push_back(gltf_["nodes"].size());
      gltf_["nodes"].push_back({{"name", model_.body_names[b]}});
    }
    std::vector<Json> shapes_of(model_.body_names.size() + 1, Json::array());
    for (int s = 0; s < static_cast<int>(model_.shape_names.size()); ++s) {
      const int body = model_.shape_bodies[s];
      if (std::ranges::find(looks_.hidden, model_.shape_names[s]) != looks_.hidden.end()) continue;
      shapes_of[body + 1].push_back(gltf_["nodes"].size());
      gltf_["nodes"].push_back(shape_node(s));
    }
    for (const Look& look : looks_.looks) {
      shapes_of[look.body + 1].push_back(gltf_["nodes"].size());
      gltf_["nodes"].push_back(look_node(look));
    }
    for (const Json& node : shapes_of[0]) children.push_back(node);
    if (!children.empty()) gltf_["nodes"][0]["children"] = children;
    for (std::size_t b = 0; b < model_.body_names.size(); ++b) {
      if (!shapes_of[b + 1].empty()) gltf_["nodes"][b + 1]["children"] = shapes_of[b + 1];
    }
    add_animation();
    if (!bytes_.empty()) gltf_["buffers"] = {{{"byteLength", bytes_.size()}}};
    return container();
  }

 private:
  /// Bytes of a view, which begin at a multiple of 4.
  template <class Number>
  int add_view(const std::vector<Number>& numbers, int target) {
    Json view{{"buffer", 0}, {"byteOffset", bytes_.size()}, {"byteLength", numbers.size() * sizeof(Number)}};
    if (target != 0) view["target"] = target;
    gltf_["bufferViews"].push_back(view);
    static_assert(std::endian::native == std::endian::little);
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + numbers.size() * sizeof(Number));
    if (!numbers.empty()) std::memcpy(bytes_.data() + begin, numbers.data(), numbers.size() * sizeof(Number));
    return static_cast<int>(gltf_["bufferViews"].size()) - 1;
  }
  template <class Number>
  int add_accessor(const std::vector<Number>& numbers, int components, const char* type, int target, bool bounds) {
    Json accessor{{"bufferView", add_view(numbers, target)},
                  {"componentType", std::is_same_v<Number, float> ? kFloat : kUnsigned},
                  {"count", numbers.size() / components},
                  {"type", type}};
    if (bounds) {
      Json low = Json::array(), high = Json::array();
      for (int c = 0; c < components; ++c) {
        Number least = numbers[c], most = numbers[c];
        for (std::size_t i = c; i < numbers.size(); i += components) {
          least = std::min(least, numbers[i]), most = std::max(most, numbers[i]);
        }
        low.push_back(least), high.push_back(most);
      }
      accessor["min"] = low, accessor["max"] = high;
    }
    gltf_["accessors"].push_back(accessor);
    return static_cast<int>(gltf_["accessors"].size()) - 1;
  }

  Json shape_node(int shape) {
    Json place = Json::array(), turn = Json::array();
    for (int k = 0; k < 3; ++k) place.push_back(model_.shapes.frame.position(shape, k));
    for (int k = 0; k < 4; ++k) turn.push_back(model_.shapes.frame.orientation(shape, k));
    return {{"name", model_.shape_names[shape]},
            {"mesh",
             add_mesh(surface_of(model_, shape), model_.shape_names[shape], material_of(model_.shape_bodies[shape]))},
            {"translation", place},
            {"rotation", turn}};
  }

  Json look_node(const Look& look) {
    const std::string name = (look.body < 0 ? "world" : model_.body_names[look.body]) + " visual";
    const int material = look_material(look);
    // One mesh may be drawn in many places.
    int mesh = -1;
    if (look.mesh >= 0) {
      const auto [known, is_new] = look_meshes_.try_emplace({look.mesh, material}, -1);
      if (is_new) known->second = add_mesh(surface_of(looks_.meshes[look.mesh]), name, material);
      mesh = known->second;
    } else {
      mesh = add_mesh(surface_of(look.type, look.scale), name, material);
    }
    return {{"name", name}, {"mesh", mesh}, {"translation", look.pose.position}, {"rotation", look.pose.orientation}};
  }

  int look_material(const Look& look) {
    if (!look.colour) return material_of(look.body);
    const std::array<double, 4>& colour = *look.colour;
    const auto [known, is_new] = look_materials_.try_emplace(colour, static_cast<int>(gltf_["materials"].size()));
    if (!is_new) return known->second;
    Json material = material_json("visual", {linear(colour[0]), linear(colour[1]), linear(colour[2]), colour[3]});
    if (colour[3] < 1) material["alphaMode"] = "BLEND";
    gltf_["materials"].push_back(material);
    return known->second;
  }

  static Json material_json(const std::string& name, const Json& colour) {
    return {
        {"name", name},
        {"doubleSided", true},
        {"pbrMetallicRoughness", {{"baseColorFactor", colour}, {"metallicFactor", 0.05}, {"roughnessFactor", 0.6}}}};
  }

  int add_mesh(const Surface& surface, const std::string& name, int material) {
    const int position = add_accessor(surface.positions, 3, "VEC3", kVertices, true);
    const int normal = add_accessor(surface.normals, 3, "VEC3", kVertices, false);
    const int indices = add_accessor(surface.indices, 1, "SCALAR", kIndices, false);
    gltf_["meshes"].push_back({{"name", name},
                               {"primitives",
                                {{{"attributes", {{"POSITION", position}, {"NORMAL", normal}}},
                                  {"indices", indices},
                                  {"material", material}}}}});
    return static_cast<int>(gltf_["meshes"].size()) - 1;
  }

  /// One colour a body, those of the report's page; grey for the world.
  int material_of(int body) {
    static constexpr double colours[][3] = {{0.30, 0.49, 0.86}, {0.88, 0.54, 0.24}, {0.31, 0.65, 0.42},
                                            {0.78, 0.35, 0.42}, {0.54, 0.42, 0.79}, {0.25, 0.65, 0.71}};
    Json& materials = gltf_["materials"];
    const auto [known, is_new] = body_materials_.try_emplace(body, static_cast<int>(materials.size()));
    if (!is_new) return known->second;
    const std::string name = body < 0 ? "world" : model_.body_names[body];
    Json colour = {0.6, 0.64, 0.7, 1.0};
    if (body >= 0) {
      for (int c = 0; c < 3; ++c) colour[c] = colours[static_cast<std::size_t>(body) % std::size(colours)][c];
    }
    materials.push_back(material_json(name, colour));
    return known->second;
  }

  void add_animation() {
    const std::size_t bodies = model_.body_names.size(), frames = motion_.times.size();
    if (bodies == 0 || frames == 0) return;
    const int input = add_accessor(motion_.times, 1, "SCALAR", 0, true);
    Json samplers = Json::array(), channels = Json::array();
    for (std::size_t b = 0; b < bodies; ++b) {
      std::vector<float> places, turns;
      for (std::size_t k = 0; k < frames; ++k) {
        const float* const pose = &motion_.poses[(k * bodies + b) * 7];
        places.insert(places.end(), pose, pose + 3);
        // The shorter way from the last one: q and −q are the same turn.
        double along = 0;
        for (int c = 0; k > 0 && c < 4; ++c) along += turns[turns.size() - 4 + c] * pose[3 + c];
        for (int c = 0; c < 4; ++c) turns.push_back(along < 0 ? -pose[3 + c] : pose[3 + c]);
      }
      const int outputs[] = {add_accessor(places, 3, "VEC3", 0, false), add_accessor(turns, 4, "VEC4", 0, false)};
      const char* const paths[] = {"translation", "rotation"};
      for (int p = 0; p < 2; ++p) {
        channels.push_back({{"sampler", samplers.size()}, {"target", {{"node", b + 1}, {"path", paths[p]}}}});
        samplers.push_back({{"input", input}, {"output", outputs[p]}, {"interpolation", "LINEAR"}});
      }
    }
    gltf_["animations"] = {{{"name", "motion"}, {"samplers", samplers}, {"channels", channels}}};
  }

  /// Header, JSON chunk, binary chunk.
  std::string container() const {
    std::string json = gltf_.dump(-1, ' ', true, Json::error_handler_t::replace);
    json.resize((json.size() + 3) / 4 * 4, ' ');
    std::string binary(bytes_.begin(), bytes_.end());
    binary.resize((binary.size() + 3) / 4 * 4, '\0');
    std::string file;
    const auto put = [&](std::size_t number) {
      for (int k = 0; k < 4; ++k) file += static_cast<char>(number >> (8 * k) & 255);
    };
    const std::size_t chunks = 12 + 8 + json.size() + (binary.empty() ? 0 : 8 + binary.size());
    file += "glTF";
    put(2), put(chunks);
    put(json.size()), put(0x4E4F534A);  // "JSON"
    file += json;
    if (binary.empty()) return file;
    put(binary.size()), put(0x004E4942);  // "BIN"
    return file + binary;
  }

  const ResultMotion& motion_;
  const Model& model_;
  const Looks& looks_;
  std::map<int, int> body_materials_;
  std::map<std::pair<int, int>, int> look_meshes_;  ///< of glTF, by mesh and material
  std::map<std::array<double, 4>, int> look_materials_;
  Json gltf_;
  std::vector<char> bytes_;
};

}  // namespace

std::string motion_as_gltf(const std::filesystem::path& folder) {
  const ResultMotion motion = read_motion(folder);
  const Looks looks = read_looks(folder, motion.scene.problem.model);
  return GltfWriter(motion, looks).write();
}

}  // namespace backdrive::app
