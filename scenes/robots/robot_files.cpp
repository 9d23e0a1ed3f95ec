#include "scenes/robots/robot_files.h"

#include <algorithm>
#include <cstdlib>

namespace backdrive::scene {

namespace fs = std::filesystem;

std::vector<fs::path> robot_path_of_environment() {
  std::vector<fs::path> roots;
  for (const char* const variable : {"BACKDRIVE_ROBOT_PATH", "ROS_PACKAGE_PATH"}) {
    const char* const value = std::getenv(variable);
    std::string_view rest = value ? value : "";
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) roots.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return roots;
}

namespace {

bool is_inside(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

/// What is behind a scheme like "package://", or empty.
std::string_view behind(std::string_view name, std::string_view scheme) {
  return name.starts_with(scheme) ? name.substr(scheme.size()) : std::string_view();
}

}  // namespace

RobotFiles::RobotFiles(const fs::path& robot_file, std::vector<fs::path> roots) : roots_(std::move(roots)) {
  std::error_code code;
  for (fs::path& root : roots_) root = fs::weakly_canonical(root, code);
  given_roots_ = roots_.size();
  folder_ = fs::weakly_canonical(robot_file, code).parent_path();
  roots_.push_back(folder_);
  for (fs::path above = folder_; above.has_relative_path(); above = above.parent_path()) {
    if (!fs::exists(above / "package.xml", code)) continue;
    roots_.push_back(above);
    break;
  }
}

std::vector<RobotFiles::Candidate> RobotFiles::in_packages(std::string rest) const {
  while (rest.starts_with('/')) rest.erase(0, 1);  // package:///NAME/REST is written too
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos) return {};
  const std::string package = rest.substr(0, slash), file = rest.substr(slash + 1);
  std::vector<Candidate> candidates;
  for (const fs::path& root : roots_) {
    candidates.push_back({root / package / file, root});
    if (root.filename() == package) candidates.push_back({root / file, root});
  }
  std::error_code code;
  for (fs::path above = folder_; above.has_relative_path(); above = above.parent_path()) {
    if (above.filename() == package) candidates.push_back({above / file, above});
    const fs::path beside = above / package;
    if (fs::exists(beside / "package.xml", code)) candidates.push_back({beside / file, beside});
  }
  return candidates;
}

fs::path RobotFiles::find(const std::string& name, const Sources& sources, Place place, const std::string& what) const {
  const auto refuse = [&](const std::string& expected) {
    fail(sources, place, what, "value '" + excerpt(name) + "'", expected);
  };
  if (name.empty() || name.size() > 4000) refuse("the name of a file");
  std::vector<Candidate> candidates;
  if (const std::string_view rest = behind(name, "package://"); !rest.empty()) {
    candidates = in_packages(std::string(rest));
  } else {
    const std::string_view plain = name.starts_with("file://") ? behind(name, "file://") : std::string_view(name);
    // What an absolute path must be in is any of the folders.
    const bool absolute = fs::path(plain).is_absolute();
    for (const fs::path& root : roots_) {
      for (const fs::path& folder : roots_) candidates.push_back({(absolute ? root : folder_) / plain, folder});
      if (!absolute) candidates.push_back({root / plain, root});
    }
  }
  bool outside = false;
  std::error_code code;
  for (const Candidate& candidate : candidates) {
    const fs::path path = fs::canonical(candidate.path, code);
    if (code || !fs::is_regular_file(path, code)) continue;
    if (is_inside(fs::weakly_canonical(candidate.inside, code), path)) return path;
    outside = true;
  }
  const std::string hint = "--robot-path FOLDER, or BACKDRIVE_ROBOT_PATH, names folders with packages and meshes";
  if (outside) refuse("a file inside the robot's folder, its package or a robot path (" + hint + ")");
  std::string tried;
  for (std::size_t i = 0; i < given_roots_; ++i) tried += (i > 0 ? ", " : "") + roots_[i].string();
  refuse("an existing file (looked in and above " + folder_.string() + (tried.empty() ? "" : ", and in " + tried) +
         "; " + hint + ")");
  return {};
}

}  // namespace backdrive::scene
