#include "models/meshes/text_reader.h"
#include "models/meshes/triangle_mesh.h"

namespace backdrive {

namespace {

std::string checked_extension(const std::filesystem::path& path) {
  std::string extension = lower_extension(path);
  if (extension != ".obj" && extension != ".stl" && extension != ".dae") {
    refuse_file(path.string(), "value '" + printable(extension) + "' as the extension",
                "a mesh file, .obj, .stl or .dae");
  }
  return extension;
}

}  // namespace

TriangleMesh parse_mesh(std::string_view bytes, const std::string& name) {
  const std::string extension = checked_extension(name);
  if (extension == ".dae") return parse_dae(bytes, name);
  return extension == ".obj" ? parse_obj(bytes, name) : parse_stl(bytes, name);
}

TriangleMesh read_mesh(const std::filesystem::path& path) {
  checked_extension(path);
  return parse_mesh(read_bytes(path), path.string());
}

}  // namespace backdrive
