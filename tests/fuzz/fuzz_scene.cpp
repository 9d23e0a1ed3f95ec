// libFuzzer target: whatever the bytes, the loader returns a scene or throws an Error of kind
// input, and a scene it accepts can be written and read again. Without libFuzzer, main replays
// files: fuzz_scene FILE…
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "scenes/scene.h"
#include "tests/support/own_folder.h"

namespace {

using namespace backdrive;

void die(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s\n%s\n", what, text.c_str());
  std::abort();
}

/// Nothing that a fuzzer finds may read files: there is nothing in this folder.
const std::filesystem::path& empty_folder() {
  static const test::OwnFolder folder;
  return folder;
}

void check(std::string_view text) {
  // Behind a line "--set path=value" at the end stands an override.
  Override set;
  bool has_set = false;
  constexpr std::string_view mark = "\n#--set ";
  if (const size_t at = text.rfind(mark); at != std::string_view::npos) {
    const std::string_view line = text.substr(at + mark.size());
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      set = {std::string(line.substr(0, equals)), std::string(line.substr(equals + 1))};
      has_set = true;
    }
  }
  std::string written;
  try {
    const Scene scene = parse_scene(text, "fuzz.yaml", empty_folder(), std::span(&set, has_set ? 1 : 0));
    written = scene_with_values(scene, scene.problem);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) die("not an input error:", error.what());
    const std::string_view message = error.what();
    if (message.find("expected") == std::string_view::npos) die("says not what was expected:", error.what());
    if (!message.starts_with("fuzz.yaml:") && !message.starts_with("--set ")) die("names no place:", error.what());
    return;
  }
  try {
    parse_scene(written, "written.yaml", empty_folder());
  } catch (const Error& error) {
    die(error.what(), written);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifndef BACKDRIVE_LIBFUZZER
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    check(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::printf("%d inputs replayed\n", argc - 1);
}
#endif
