#pragma once
// How robots look, as pages and files of motions draw it: the visuals of their files, with meshes that are small
// enough.
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/atomic_output.h"
#include "scenes/scene.h"

namespace backdrive::app {

/// A body's form. Meshes have no scale.
struct Look {
  int body = -1;  ///< −1: the world
  GeometryType type = GeometryType::box;
  Numbers3 scale{1, 1, 1};
  scene::Pose pose;
  std::optional<std::array<double, 4>> colour;  ///< red, green, blue, opacity, 0 to 1; none: the body's
  int mesh = -1;
};

struct LookMesh {
  std::vector<float> vertices;           ///< three numbers each, m
  std::vector<std::uint32_t> triangles;  ///< three vertices each
};

struct Looks {
  std::vector<Look> looks;
  std::vector<LookMesh> meshes;
  std::vector<std::string> hidden;  ///< shapes that the looks of their bodies stand for
};

/// Triangles of all meshes together: larger ones than fit are simplified.
constexpr std::size_t kMostLookTriangles = 60'000;

/// Those of a scene's robots. Meshes that cannot be read, or are more than 256 MiB together, are told as warnings; of
/// their bodies the shapes that touch are drawn instead, where there are any.
Looks looks_of(const Scene& scene);

/// {"looks", "meshes", "hidden"}. Vertices are three int16 each, origin + quantum · n, a 65,535th of the mesh apart;
/// triangles are uint16 or, where there are more than 65,536 vertices, uint32.
nlohmann::json looks_json(const Looks& looks);

/// Writes looks.json into a result folder that is being made, where the scene's robots have any.
void write_looks(const Scene& scene, OutputFolder& folder);
/// Of a result folder; empty where it has none. Throws Error (input) for a file that simctl did not write.
Looks read_looks(const std::filesystem::path& folder, const Model& model);

}  // namespace backdrive::app
