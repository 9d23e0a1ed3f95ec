#pragma once
// What tests of robot files share: a folder for them, and what they read of a model.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/parameter_reader.h"
#include "scenes/scene.h"

namespace backdrive {

/// A folder of its own, gone at the end.
class RobotFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("backdrive_robots_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  /// The error of a scene that does not load.
  static std::string refusal(const std::filesystem::path& file, const std::vector<Override>& set = {},
                             const LoadOptions& options = {}) {
    try {
      load_scene(file, set, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 3);
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path folder_;
};

inline std::vector<double> numbers(const Parameter& parameter, int item) {
  std::vector<double> values;
  for (int c = 0; c < parameter.components(); ++c) values.push_back(parameter(item, c));
  return values;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

}  // namespace backdrive
