#include "scenes/robots/mjcf_mesh.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/triangle_mesh.h"

namespace backdrive::scene {
namespace {

/// As MuJoCo takes the moments of a mesh (`inertia`, by default "legacy": volumes count as positive), whether it is
/// closed or not: the centre of mass by cones from the mean of the surface, then volume and second moments by cones
/// from there.
SolidMoments<double> moments_of_cones(const TriangleMesh& mesh, bool exact) {
  double area = 0;
  Vec3<double> middle{};
  for (const auto& [a, b, c] : mesh.triangles) {
    const Vec3<double>&A = mesh.vertices[a], &B = mesh.vertices[b], &C = mesh.vertices[c];
    const Vec3<double> normal = cross(B - A, C - A);
    const double twice = std::sqrt(dot(normal, normal));
    area += twice;
    middle += (A + B + C) * (twice / 3);
  }
  if (!(area > 0)) return {};
  middle = middle * (1 / area);
  const Cones count = exact ? Cones::by_side : Cones::positive;
  const ConeSums from_middle = sum_of_cones(mesh, middle, count);
  if (!(from_middle.volume > 0)) return {};
  const Vec3<double> com = middle + from_middle.first * (1 / from_middle.volume);
  const ConeSums from_com = sum_of_cones(mesh, com, count);
  return {from_com.volume, com, from_com.second};
}

class MjcfMeshReader {
 public:
  MjcfMeshReader(bool needs_mass, const MjcfDocument& document, const RobotFiles& files, const Sources& sources)
      : needs_mass_(needs_mass), document_(document), files_(files), sources_(sources), values_(sources) {}

  MjcfMesh read(const XmlElement& mesh) const {
    MjcfMesh result;
    result.visual = looks(mesh);
    TriangleMesh form = result.visual.listed ? *result.visual.listed : read_mesh(result.visual.file);
    place_mesh(mesh, form, result);
    return result;
  }

  /// What the element says, with the file that it names.
  Visual looks(const XmlElement& mesh) const {
    Visual visual;
    visual.type = GeometryType::mesh;
    visual.place = sources_.name(mesh.place);
    if (const XmlAttribute* const factors = mesh.attribute("scale")) visual.scale = values_.numbers<3>(mesh, *factors);
    if (const XmlAttribute* const position = mesh.attribute("refpos")) {
      visual.reference.position = values_.numbers<3>(mesh, *position);
    }
    if (const XmlAttribute* const turn = mesh.attribute("refquat")) {
      const std::optional<Turn> given = turn_of_wxyz(values_.numbers<4>(mesh, *turn));
      if (!given) values_.refuse(mesh, *turn, "a quaternion (w, x, y, z) that is not zero");
      visual.reference.orientation = *given;
    }
    if (const XmlAttribute* const name = mesh.attribute("file")) {
      visual.file = found(mesh, *name);
    } else {
      visual.listed = std::make_shared<const TriangleMesh>(listed(mesh));
    }
    return visual;
  }

 private:
  std::filesystem::path found(const XmlElement& mesh, const XmlAttribute& name) const {
    std::filesystem::path path = name.value;
    if (document_.compiler().strip_paths) path = path.filename();
    if (path.is_relative()) path = document_.compiler().mesh_folder / path;
    if (path.extension() == ".msh") {
      fail(sources_, name.place, title(mesh) + ": file", "value '" + excerpt(name.value) + "'",
           "an OBJ, STL or COLLADA file");
    }
    return files_.find(path.string(), sources_, name.place, title(mesh) + ": file");
  }

  /// A mesh whose vertices, and maybe triangles, are in the text.
  TriangleMesh listed(const XmlElement& mesh) const {
    const XmlAttribute& vertex = values_.attribute(mesh, "vertex", "or 'file', of the mesh");
    const std::vector<double> numbers = values_.list(mesh, vertex, 12, 600'000);
    if (numbers.size() % 3 != 0) values_.refuse(mesh, vertex, "three numbers a vertex");
    TriangleMesh form;
    for (std::size_t i = 0; i < numbers.size(); i += 3) {
      form.vertices.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
    }
    const XmlAttribute* const face = mesh.attribute("face");
    if (!face) return form;
    const std::vector<double> corners = values_.list(mesh, *face, 3, 1'200'000);
    if (corners.size() % 3 != 0) values_.refuse(mesh, *face, "three vertices a triangle");
    for (std::size_t i = 0; i < corners.size(); i += 3) {
      std::array<int, 3> triangle{};
      for (std::size_t k = 0; k < 3; ++k) {
        const double corner = corners[i + k];
        if (!(corner >= 0 && corner < static_cast<double>(form.vertices.size())) || corner != std::floor(corner)) {
          values_.refuse(mesh, *face, "numbers of vertices, from 0");
        }
        triangle[k] = static_cast<int>(corner);
      }
      form.triangles.push_back(triangle);
    }
    return form;
  }

  /// Scaled, about its reference; by its file where a scene can say the same of that.
  void place_mesh(const XmlElement& mesh, TriangleMesh& form, MjcfMesh& result) const {
    const auto& [reference, turn] = result.visual.reference;
    const Numbers3& scale = result.visual.scale;
    const Mat3<double> back = transposed(matrix_of(turn));
    for (Vec3<double>& v : form.vertices) {
      v = back * Vec3<double>{v.x - reference[0], v.y - reference[1], v.z - reference[2]};
      v = {v.x * scale[0], v.y * scale[1], v.z * scale[2]};
    }
    if (scale[0] * scale[1] * scale[2] < 0) {
      for (auto& corners : form.triangles) std::swap(corners[1], corners[2]);
    }
    const bool as_file = !result.visual.listed && !mesh.attribute("refpos") && !mesh.attribute("refquat") &&
                         std::ranges::all_of(scale, [](double f) { return f > 0; });
    const auto add = [&](const char* key, NodePtr value, Place place) {
      result.geometry.push_back({key, place, std::move(value)});
    };
    if (as_file) {
      add("file", make_scalar(result.visual.file.string(), mesh.place, true), mesh.place);
      if (scale != Numbers3{1, 1, 1}) add("scale", list_of(scale, mesh.place), mesh.place);
    } else {
      NodePtr vertices = make_list(mesh.place);
      for (const Vec3<double>& v : form.vertices)
        vertices->list.push_back(list_of(Numbers3{v.x, v.y, v.z}, mesh.place));
      add("vertices", vertices, mesh.place);
    }
    if (!needs_mass_) return;
    const XmlAttribute* const way = mesh.attribute("inertia");
    if (way && way->value == "shell") values_.refuse(mesh, *way, "another one: shapes are solid");
    const bool hull = form.triangles.empty() || (way && way->value == "convex");
    const SolidMoments<double> m = hull ? solid_moments(convex_hull(form, title(mesh), kMostHullVertices))
                                        : moments_of_cones(form, way && way->value == "exact");
    if (!(m.volume > 0)) values_.missing(mesh, "a surface that bounds a volume, as mass and inertia come from it");
    result.moments = m;
  }

  bool needs_mass_;
  const MjcfDocument& document_;
  const RobotFiles& files_;
  const Sources& sources_;
  XmlValues values_;
};

}  // namespace

MjcfMesh read_mjcf_mesh(const XmlElement& mesh, bool needs_mass, const MjcfDocument& document, const RobotFiles& files,
                        const Sources& sources) {
  return MjcfMeshReader(needs_mass, document, files, sources).read(mesh);
}

Visual mjcf_mesh_visual(const XmlElement& mesh, const MjcfDocument& document, const RobotFiles& files,
                        const Sources& sources) {
  return MjcfMeshReader(false, document, files, sources).looks(mesh);
}

}  // namespace backdrive::scene
