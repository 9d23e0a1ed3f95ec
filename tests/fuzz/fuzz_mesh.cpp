// libFuzzer target: whatever the bytes, the readers of OBJ, STL, COLLADA and graymaps return something sound or throw
// an Error of kind input that says what was expected; a mesh that they accept has a convex hull, or an Error that says
// why not. Without libFuzzer, main replays files: fuzz_mesh FILE…
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/error.h"
#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"

namespace {

using namespace backdrive;

void die(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s\n%s\n", what, text.c_str());
  std::abort();
}

template <class Read>
void guarded(Read read) {
  try {
    read();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (error.kind() != ErrorKind::input) die("not an input error:", error.what());
    if (message.find(": expected ") == std::string_view::npos) die("says not what was expected:", error.what());
    if (!message.starts_with("fuzz:")) die("names no place:", error.what());
  }
}

void check_mesh(const TriangleMesh& mesh) {
  const int count = static_cast<int>(mesh.vertices.size());
  for (const auto& corners : mesh.triangles) {
    for (int corner : corners) {
      if (corner < 0 || corner >= count) die("a corner is no vertex", std::to_string(corner));
    }
  }
  guarded([&] {
    if (!(solid_moments(mesh, "fuzz").volume > 0)) die("a closed mesh without volume", "");
  });
  if (count > 500) return;  // more is slow and shows no more
  guarded([&] {
    const ConvexMesh hull = convex_hull(mesh, "fuzz", 16);
    if (hull.vertices.size() > 16) die("more vertices than asked for", std::to_string(hull.vertices.size()));
    if (hull.vertices.size() + hull.faces.size() != hull.edges.size() + 2) die("no polyhedron", "");
    if (!(solid_moments(hull).volume > 0)) die("a hull without volume", "");
    for (const ConvexMesh::Face& face : hull.faces) {
      if (!(std::abs(dot(face.normal, face.normal) - 1) < 1e-9)) die("a face without a normal", "");
    }
  });
}

void check(std::string_view bytes) {
  guarded([&] { check_mesh(parse_obj(bytes, "fuzz")); });
  guarded([&] { check_mesh(parse_stl(bytes, "fuzz")); });
  guarded([&] { check_mesh(parse_dae(bytes, "fuzz")); });
  guarded([&] {
    const HeightField field = parse_pgm(bytes, {{1, 1}, 0, 1}, "fuzz");
    if (!(field.lowest >= 0 && field.highest <= 1)) die("heights beyond black and white", "");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifndef BACKDRIVE_LIBFUZZER
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    check(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::printf("%d inputs replayed\n", argc - 1);
}
#endif
