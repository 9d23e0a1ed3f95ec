#pragma once
// Where robots and what they refer to are found.
#include <filesystem>
#include <string>
#include <vector>

#include "scenes/document.h"

namespace backdrive::scene {

/// The folders that BACKDRIVE_ROBOT_PATH and ROS_PACKAGE_PATH name, in this order, with ':' between them.
std::vector<std::filesystem::path> robot_path_of_environment();

/// Finds the files that a robot file names. Only those inside of one of these folders, links followed, are opened: the
/// robot's own, the package it is in (the nearest folder above with a package.xml), the roots.
class RobotFiles {
 public:
  RobotFiles(const std::filesystem::path& robot_file, std::vector<std::filesystem::path> roots);

  /// The canonical path of `package://NAME/REST`, `file://PATH`, an absolute path, or one relative to the robot's
  /// folder or a root. A package is a folder NAME in a root or a root of that name; or one above the robot's file of
  /// that name, or one with a package.xml beside those above. Throws Error (input) about `place` with what was tried.
  std::filesystem::path find(const std::string& name, const Sources& sources, Place place,
                             const std::string& what) const;

 private:
  struct Candidate {
    std::filesystem::path path, inside;  ///< a file, and the folder it must be in
  };
  std::vector<Candidate> in_packages(std::string rest) const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> roots_;  ///< and the robot's folder and package, last
  std::size_t given_roots_;
};

}  // namespace backdrive::scene
