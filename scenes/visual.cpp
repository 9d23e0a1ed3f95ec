#include "scenes/visual.h"

#include <utility>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/text_reader.h"
#include "scenes/inside_file.h"

namespace backdrive {

TriangleMesh visual_mesh(const Visual& visual) {
  TriangleMesh mesh;
  if (!visual.listed) {
    mesh = parse_mesh(scene::bytes_of_canonical(visual.file, kMaxMeshBytes), visual.file.string());
  } else if (visual.listed->triangles.empty()) {
    mesh = triangles_of(convex_hull(visual.listed->vertices, visual.place));
  } else {
    mesh = *visual.listed;
  }
  const Mat3<double> back = transposed(scene::matrix_of(visual.reference.orientation));
  const Numbers3 &p = visual.reference.position, &s = visual.scale;
  for (Vec3<double>& v : mesh.vertices) {
    v = back * Vec3<double>{v.x - p[0], v.y - p[1], v.z - p[2]};
    v = {v.x * s[0], v.y * s[1], v.z * s[2]};
  }
  if (s[0] * s[1] * s[2] < 0) {
    for (auto& corners : mesh.triangles) std::swap(corners[1], corners[2]);
  }
  return mesh;
}

}  // namespace backdrive
