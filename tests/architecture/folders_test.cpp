// Tests run side by side, also those of two trees: what one writes into a folder that others know can be another's
// before it is read. So a file is written in a folder of the test's own, test::OwnFolder.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/support/places.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;

/// Whether a source names a folder of all programs.
bool shares_a_folder(const std::string& text) {
  static const std::regex shared("temp_directory_path\\(|TempDir\\(|\"/tmp");
  return std::regex_search(text, shared);
}

TEST(Folders, AreATestsOwn) {
  int sharing = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(test::kRepository) / "tests")) {
    const fs::path& path = entry.path();
    if ((path.extension() != ".h" && path.extension() != ".cpp") || path.filename() == "folders_test.cpp") continue;
    std::ifstream file(path);
    if (!shares_a_folder({std::istreambuf_iterator<char>(file), {}})) continue;
    ++sharing;
    EXPECT_EQ(path.filename(), "own_folder.h") << path;
  }
  EXPECT_EQ(sharing, 1);
}

}  // namespace
}  // namespace backdrive
