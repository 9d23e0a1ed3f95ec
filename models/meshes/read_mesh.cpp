#include "models/meshes/text_reader.h"
#include "models/meshes/triangle_mesh.h"

namespace backdrive {

TriangleMesh read_mesh(const std::filesystem::path& path) {
  const std::string extension = lower_extension(path);
  if (extension != ".obj" && extension != ".stl" && extension != ".dae") {
    refuse_file(path.string(), "value '" + printable(extension) + "' as the extension",
                "a mesh file, .obj, .stl or .dae");
  }
  const std::string bytes = read_bytes(path);
  if (extension == ".dae") return parse_dae(bytes, path.string());
  return extension == ".obj" ? parse_obj(bytes, path.string()) : parse_stl(bytes, path.string());
}

}  // namespace backdrive
