// Meshes and terrain, from files inside the scene's folder or from numbers in the scene.
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "models/meshes/text_reader.h"
#include "scenes/inside_file.h"
#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

/// What was made of files and is still in use: a sweep reads one scene again and again.
template <class Made>
class FileCache {
 public:
  /// What `make` makes of a file's bytes, unless it did so before and the file is as it was.
  template <class Make>
  std::shared_ptr<const Made> get(const InsideFile& file, Make&& make) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(made_, [](const auto& entry) { return entry.second.expired(); });
    const auto key = std::pair(lower_extension(file.name()), file.state());
    if (const auto found = made_.find(key); found != made_.end()) {
      if (std::shared_ptr<const Made> known = found->second.lock()) return known;
    }
    auto made = std::make_shared<const Made>(make(file.bytes()));
    made_[key] = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, InsideFile::State>, std::weak_ptr<const Made>> made_;  // by extension and file
};

/// A hull that is the hull of its own vertices to the last bit: that of another set of points is scaled and rounded a
/// little differently.
ConvexMesh settled_hull(std::span<const Vec3<double>> points, const std::string& name) {
  ConvexMesh hull = convex_hull(points, name);
  for (std::size_t vertices = 0; vertices != hull.vertices.size();) {
    vertices = hull.vertices.size();
    ConvexMesh again = convex_hull(hull.vertices, name);
    again.full_vertices = hull.full_vertices;
    again.deviation = hull.deviation;
    hull = std::move(again);
  }
  return hull;
}

/// What errors call numbers of the scene.
std::string place_name(const View& view) {
  return view.sources().name(view.node()->place) + ": " + view.path();
}

}  // namespace

std::shared_ptr<const ConvexMesh> load_mesh(const std::filesystem::path& directory, const View& file) {
  static FileCache<ConvexMesh> cache;
  const InsideFile mesh(directory, file, kMaxMeshBytes);
  return cache.get(mesh, [&](const std::string& bytes) {
    return settled_hull(parse_mesh(bytes, mesh.name()).vertices, mesh.name());
  });
}

std::shared_ptr<const HeightField> load_height_field(const std::filesystem::path& directory, const View& file) {
  static FileCache<HeightField> cache;
  const InsideFile image(directory, file, kMaxMeshBytes);
  check_height_field_name(image.name());
  return cache.get(image, [&](const std::string& bytes) { return parse_pgm(bytes, {{1, 1}, 0, 1}, image.name()); });
}

std::shared_ptr<const ConvexMesh> listed_mesh(const View& vertices) {
  std::vector<Vec3<double>> points;
  for (const View& vertex : vertices.items()) {
    const std::vector<double> x = vertex.numbers();
    points.push_back({x[0], x[1], x[2]});
  }
  return std::make_shared<const ConvexMesh>(settled_hull(points, place_name(vertices)));
}

std::shared_ptr<const HeightField> listed_height_field(const View& heights) {
  std::vector<double> values;
  const std::vector<View> rows = heights.items();
  std::size_t columns = 0;
  for (const View& row : rows) {
    const std::vector<double> own = row.numbers();
    if (columns == 0) columns = own.size();
    if (own.size() != columns) row.refuse("as many numbers as in the first row, which has " + std::to_string(columns));
    values.insert(values.end(), own.begin(), own.end());
  }
  return std::make_shared<const HeightField>(make_height_field(static_cast<int>(rows.size()), static_cast<int>(columns),
                                                               {1, 1}, std::move(values), place_name(heights)));
}

}  // namespace backdrive::scene
