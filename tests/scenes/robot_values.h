#pragma once
// What tests of robot files share: a folder for them, and what they read of a model.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/parameter_reader.h"
#include "scenes/scene.h"
#include "tests/support/own_folder.h"

namespace backdrive {

/// A folder of its own, gone at the end.
class RobotFolder : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
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

  const test::OwnFolder folder_;
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
