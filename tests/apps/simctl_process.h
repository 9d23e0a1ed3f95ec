#pragma once
// Runs the built simctl as its users do: in a folder of its own, from a command line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "tests/support/own_folder.h"
#include "tests/support/places.h"

namespace backdrive::test {

struct Outcome {
  int exit = -1;  ///< 128 + signal when one ended it
  std::string out, err;
  long peak_kib = 0;  ///< most memory that it had at a time
  /// stdout as exactly one JSON object; a failure, and null, when it is not.
  nlohmann::json json() const;
};

/// How simctl is called.
struct CallSettings {
  std::vector<std::string> environment;  ///< "NAME=value"
  /// Sends the signals (none: SIGINT), one after the other, when stderr or a log shows this text; empty: never.
  std::string interrupt_at;
  std::vector<int> signals;
  std::string stdout_to;       ///< a file in place of the one that is read back
  std::vector<int> ignored;    ///< signals that it finds ignored, as nohup has them
  std::vector<int> closed;     ///< descriptors that it finds closed
  long address_space_mib = 0;  ///< as of `ulimit -v`; 0: no limit
};

class SimctlTest : public ::testing::Test {
 protected:
  using Settings = CallSettings;
  Outcome simctl(const std::vector<std::string>& arguments, const Settings& settings = {}) const;

  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::filesystem::path& path) const;
  /// Everything in a folder of this test, also what is hidden, sorted.
  std::vector<std::string> entries(const std::string& folder = ".") const;
  static std::string scene(const std::string& name) { return test::kRepository + "/scenes/" + name + ".yaml"; }
  static bool has_chromium() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

 private:
  const OwnFolder folder_;
};

/// A pendulum whose swing-up takes a fraction of a second.
extern const char* const kPendulum;

using Rows = std::vector<std::vector<std::string>>;
/// Fields of CSV text without quotes.
Rows parse_csv(const std::string& text);
double number(const std::string& text);

}  // namespace backdrive::test
