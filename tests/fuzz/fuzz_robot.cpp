// libFuzzer target: whatever the bytes, the reader of robot files returns a scene or throws an Error of kind input that
// says where and what was expected; a robot that it accepts can be written as a scene and read again, to the same
// number of bodies. Without libFuzzer, main replays files: fuzz_robot FILE…
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

/// A folder with nothing but what is tried.
const test::OwnFolder& folder() {
  static const test::OwnFolder own;
  return own;
}

void check(std::string_view text) {
  // Without a '<' it is a scene, which is another target's affair.
  const std::string robot = "<" + std::string(text.substr(text.starts_with('<') ? 1 : 0));
  const std::filesystem::path file = folder() / "fuzz.urdf";
  std::ofstream(file, std::ios::binary) << robot;
  std::string written;
  std::size_t bodies = 0;
  try {
    const Scene scene = load_scene(file);
    bodies = scene.problem.model.body_names.size();
    written = scene_with_values(scene, scene.problem);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) die("not an input error:", error.what());
    const std::string_view message = error.what();
    if (message.find("expected") == std::string_view::npos) die("says not what was expected:", error.what());
    if (!message.starts_with(folder().path().string())) die("names no place:", error.what());
    return;
  }
  try {
    const Scene again = parse_scene(written, "written.yaml", folder());
    if (again.problem.model.body_names.size() != bodies) die("another robot", written);
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
