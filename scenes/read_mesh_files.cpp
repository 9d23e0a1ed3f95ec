// Meshes and terrain from files inside the scene's folder.
#include <map>
#include <mutex>
#include <tuple>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "models/meshes/text_reader.h"
#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

namespace fs = std::filesystem;

/// What was made of files and is still in use: a sweep reads one scene again and again.
template <class Made>
class FileCache {
 public:
  /// What `make` makes of a file, unless it did so before and the file is as it was.
  template <class Make>
  std::shared_ptr<const Made> get(const fs::path& path, Make&& make) {
    std::error_code code;
    const State state{path, fs::file_size(path, code), fs::last_write_time(path, code).time_since_epoch().count()};
    const std::scoped_lock lock(mutex_);
    std::erase_if(made_, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = made_.find(state); found != made_.end()) {
      if (std::shared_ptr<const Made> known = found->second.lock()) return known;
    }
    auto made = std::make_shared<const Made>(make());
    made_[state] = made;
    return made;
  }

 private:
  using State = std::tuple<fs::path, std::uintmax_t, fs::file_time_type::rep>;
  std::mutex mutex_;
  std::map<State, std::weak_ptr<const Made>> made_;
};

/// Its path as messages show it: by way of the scene's folder as the user named it.
fs::path shown_path(const fs::path& directory, const View& file) {
  return directory / file.text();
}

}  // namespace

std::shared_ptr<const ConvexMesh> load_mesh(const fs::path& directory, const View& file) {
  static FileCache<ConvexMesh> cache;
  const fs::path path = resolve_inside(directory, file, kMaxMeshBytes), shown = shown_path(directory, file);
  return cache.get(path, [&] { return convex_hull(read_mesh(shown), shown.string()); });
}

std::shared_ptr<const HeightField> load_height_field(const fs::path& directory, const View& file) {
  static FileCache<HeightField> cache;
  const fs::path path = resolve_inside(directory, file, kMaxMeshBytes), shown = shown_path(directory, file);
  return cache.get(path, [&] { return read_height_field(shown, {{1, 1}, 0, 1}); });
}

}  // namespace backdrive::scene
