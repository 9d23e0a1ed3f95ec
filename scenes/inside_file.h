#pragma once
// Files that a scene names: inside its folder, opened once.
#include <sys/stat.h>

#include <compare>
#include <filesystem>
#include <string>

namespace backdrive::scene {

class View;

/// All of a regular file that stands at its canonical path, no part of which may have become a link. Throws Error
/// (input) that names it where it cannot be read or has more than `most_bytes`.
std::string bytes_of_canonical(const std::filesystem::path& path, std::size_t most_bytes);

/// What is checked is what is read: the file is opened by its canonical path, no part of which may have become a link
/// meanwhile, and everything else is asked of the open file.
class InsideFile {
 public:
  /// `file` names it, relative to the folder `directory`; links are followed as long as they stay inside. What a robot
  /// file names was found by RobotFiles (scenes/robots/robot_files.h) and stands as its canonical path. Throws Error
  /// (input) at `file` for paths that leave the folder, for what is no regular file, and for more than `most_bytes`.
  InsideFile(const std::filesystem::path& directory, const View& file, std::size_t most_bytes);
  ~InsideFile();
  InsideFile(const InsideFile&) = delete;
  InsideFile& operator=(const InsideFile&) = delete;

  /// All of it. Throws Error (input) where reading fails or finds more than `most_bytes`.
  std::string bytes() const;
  /// How messages name it: by way of the scene's folder as the user named that.
  const std::string& name() const { return name_; }

  /// The same for as long as nobody writes to the file.
  struct State {
    unsigned long long device, inode;
    long long size, seconds, nanoseconds;  ///< of the last change
    auto operator<=>(const State&) const = default;
  };
  State state() const;

 private:
  const View& file_;
  std::string name_;
  std::size_t most_bytes_;
  int descriptor_ = -1;
  struct stat status_ {};
};

}  // namespace backdrive::scene
