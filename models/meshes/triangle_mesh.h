#pragma once
// Triangle meshes: what files hold and what solids are bounded by.
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spatial.h"
#include "models/meshes/solid_moments.h"

namespace backdrive {

constexpr int kMaxTriangles = 1'000'000;
constexpr int kMaxVertices = 3 * kMaxTriangles;

struct TriangleMesh {
  std::vector<Vec3<double>> vertices;         ///< in the file's unit of length
  std::vector<std::array<int, 3>> triangles;  ///< indices of vertices, counterclockwise seen from outside
  std::vector<int> colours = {};              ///< of triangles, 0xRRGGBB or kNoColour; empty: of none
};
constexpr int kNoColour = -1;

/// The box about some points, along the axes.
struct Bounds {
  Vec3<double> centre{};
  double extent = 0;  ///< largest side
};
Bounds bounds_of(std::span<const Vec3<double>> points);

/// Reads a mesh by the file's extension, .obj, .stl or .dae in any case. Throws Error (input) that names the file, line
/// and column (in binary files the byte), the value and what was expected: see parse_obj, parse_stl and parse_dae.
TriangleMesh read_mesh(const std::filesystem::path& path);
/// The same of a file's bytes; `name` has its extension and is what errors call it.
TriangleMesh parse_mesh(std::string_view bytes, const std::string& name);

/// Wavefront OBJ: `v` (what follows the three coordinates is passed over) and `f` (v, v/vt, v//vn, v/vt/vn; negative
/// indices count backwards from the last vertex so far; polygons become fans about their first corner). Other keywords
/// are passed over: materials, groups, normals, lines, free-form surfaces. The result is welded(). `name` is what
/// errors call the text.
TriangleMesh parse_obj(std::string_view text, const std::string& name);

/// STL, binary or ASCII. Many binary files begin with "solid" too: the size they state tells them apart. The stated
/// normals are passed over, as the order of the vertices says which side is out. The result is welded().
TriangleMesh parse_stl(std::string_view bytes, const std::string& name);

/// COLLADA 1.4 or 1.5: triangles, polylists and polygons of all geometries, placed as the nodes of the visual scenes do
/// (all at the origin where there are none), in m by the file's unit. Its up axis is passed over, as the programs of
/// ROS do: many exporters state a wrong one. Colours are the diffuse ones of its materials; textures are passed over.
/// The result is welded().
TriangleMesh parse_dae(std::string_view text, const std::string& name);

/// Vertices at the very same place become one, in order of first use; vertices that no triangle has are dropped, and so
/// are triangles with two corners in one place, which bound nothing. O(n log n).
TriangleMesh welded(const TriangleMesh& mesh);

/// Why a mesh bounds no volume: an edge that is not run along exactly once in each direction. Empty when it is closed.
std::optional<std::string> why_not_closed(const TriangleMesh& mesh);

/// Volumes of cones over triangles: positive where they are seen from inside, or all positive.
enum class Cones { by_side, positive };
struct ConeSums {
  double volume = 0;      ///< m³
  Vec3<double> first{};   ///< ∫(x − apex) dV
  Sym3<double> second{};  ///< ∫(x − apex)(x − apex)ᵀ dV
};
/// Over the tetrahedra between an apex and each triangle (a, b, c), as in Blow & Binstock, "How to find the inertia
/// tensor (or other mass properties) of a 3D solid body represented by a triangle mesh" (2004), with the tetrahedron's
/// moments in closed form: with the apex as origin, V = a·(b×c)/6 and s = a + b + c,
///   ∫x dV = V s/4        ∫x xᵀ dV = V/20 (a aᵀ + b bᵀ + c cᵀ + s sᵀ).
ConeSums sum_of_cones(const TriangleMesh& mesh, const Vec3<double>& apex, Cones count);

/// Volume, com and second moments of what a closed mesh bounds. Throws Error (input) when it is open, inside out or
/// flat; `name` is what the error calls it. O(n log n).
SolidMoments<double> solid_moments(const TriangleMesh& mesh, const std::string& name);

/// The same of triangles that are known to be closed.
SolidMoments<double> moments_of_closed(const TriangleMesh& mesh);

}  // namespace backdrive
