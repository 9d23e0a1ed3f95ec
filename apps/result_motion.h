#pragma once
// What a result folder of simctl holds, read back to be shown.
#include <filesystem>
#include <string>
#include <vector>

#include "apps/shown_motion.h"
#include "scenes/scene.h"

namespace backdrive::app {

/// All of a file; empty when there is none.
std::string text_of_file(const std::filesystem::path& path);

/// Comma-separated values as simctl writes them, quotes included.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  explicit CsvTable(const std::filesystem::path& path);
  /// Throws Error (input) naming the file.
  std::size_t column(const std::string& name) const;
  /// NaN where the cell is no number.
  double number(std::size_t row, std::size_t column) const;

 private:
  void add(std::vector<std::string> row);
  std::filesystem::path path_;
};

/// A motion as it is shown: at most 60 frames a second and 3,600 in all, the first and the last state among them.
struct ResultMotion {
  Scene scene;
  std::string scene_text;
  CsvTable trajectory;
  std::vector<std::size_t> frames;  ///< rows of the trajectory
  std::vector<float> times;         ///< s, of the frames
  std::vector<float> poses;         ///< by frame and body: position (m), quaternion (x, y, z, w)
  std::vector<float> before;        ///< the same before an optimisation; empty: none
};

/// Of a folder of run or optimize: result.yaml or scene.yaml, trajectory.csv, before.csv. Throws Error (input) where
/// the folder is none, or its files do not belong together.
ResultMotion read_motion(const std::filesystem::path& folder);
/// The scene of such a folder. Throws Error (input).
std::filesystem::path scene_file_in(const std::filesystem::path& folder);

/// Corners of the triangles of a mesh's hull or a height field, three numbers each, in the shape's frame.
std::vector<float> triangles_of_shape(const Model& model, int shape);

}  // namespace backdrive::app
