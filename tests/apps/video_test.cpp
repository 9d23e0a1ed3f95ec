// simctl report --video: frames at their times, the same every time, and nothing where somebody interrupts.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlVideoTest : public SimctlTest {
 protected:
  static bool has(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
  }
  /// Folders for what passes are made here; what is left of them is seen.
  Settings own_temporary_folder() const {
    std::filesystem::create_directory(path("tmp"));
    Settings settings;
    settings.environment = {"TMPDIR=" + path("tmp").string()};
    return settings;
  }
  bool is_tidy() const {
    return std::ranges::none_of(entries("tmp"), [](const std::string& name) { return name.starts_with("simctl"); });
  }
  static bool can_draw() { return has("chromium") && has("ffmpeg") && has("ffprobe"); }
  std::string said_by(const std::string& command) const {
    EXPECT_EQ(std::system(("cd " + path("").string() + " && " + command + " > said 2>&1").c_str()), 0) << read("said");
    return read("said");
  }
};

TEST_F(SimctlVideoTest, HasTheFramesThatItSays) {
  if (!can_draw()) GTEST_SKIP() << "no chromium or no ffmpeg here";
  // 1 s at 8 frames a second: 9 frames, the last at the end.
  ASSERT_EQ(simctl({"run", write("p.yaml", kPendulum), "--output", "out", "--quiet"}).exit, 0);
  const Outcome made = simctl({"report", "out", "--video", "a.mp4", "--size", "320x180", "--fps", "8", "--json"},
                              own_temporary_folder());
  ASSERT_EQ(made.exit, 0) << made.err;
  EXPECT_EQ(made.json()["frames"], 9);
  EXPECT_EQ(said_by("ffprobe -v error -count_frames -select_streams v -show_entries "
                    "stream=codec_name,width,height,r_frame_rate,nb_read_frames -of csv=p=0 a.mp4"),
            "h264,320,180,8/1,9\n");
  // Pictures differ as the pendulum moves, and come out the same another time.
  const std::string sums =
      said_by("ffmpeg -v error -i a.mp4 -f framemd5 - | grep -v '^#' | cut -d, -f6 | sort -u | wc -l");
  EXPECT_EQ(std::stoi(sums), 9);
  ASSERT_EQ(simctl({"report", "out", "--video", "b.mp4", "--size", "320x180", "--fps", "8"}).exit, 0);
  EXPECT_EQ(read("a.mp4"), read("b.mp4"));
  EXPECT_EQ(simctl({"report", "out", "--video", "a.mp4"}).exit, 2);  // exists
  EXPECT_TRUE(is_tidy());
  EXPECT_EQ(entries(), (std::vector<std::string>{"a.mp4", "b.mp4", "out", "p.yaml", "said", "tmp"}));
}

TEST_F(SimctlVideoTest, InterruptedLeavesNothing) {
  if (!can_draw()) GTEST_SKIP() << "no chromium or no ffmpeg here";
  ASSERT_EQ(simctl({"run", scene("toss"), "--output", "out", "--quiet"}).exit, 0);
  Settings settings = own_temporary_folder();
  settings.interrupt_at = "frame ";  // the first line of progress comes after two seconds
  const Outcome ended = simctl({"report", "out", "--video", "a.mp4", "--fps", "240"}, settings);
  EXPECT_EQ(ended.exit, 130) << ended.err;
  EXPECT_TRUE(is_tidy());
  EXPECT_EQ(entries(), (std::vector<std::string>{"out", "tmp"}));
}

TEST_F(SimctlVideoTest, SaysWhichPackageIsMissing) {
  ASSERT_EQ(simctl({"run", write("p.yaml", kPendulum), "--output", "out", "--quiet"}).exit, 0);
  std::filesystem::create_directory(path("bin"));
  Settings settings;
  settings.environment = {"PATH=" + path("bin").string()};
  const Outcome none = simctl({"report", "out", "--video", "a.mp4"}, settings);
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("Debian package ffmpeg"), std::string::npos) << none.err;
  chmod(write("bin/ffmpeg", "#!/bin/sh\n").c_str(), 0755);
  const Outcome half = simctl({"report", "out", "--video", "a.mp4"}, settings);
  EXPECT_EQ(half.exit, 2);
  EXPECT_NE(half.err.find("Debian package chromium"), std::string::npos) << half.err;
  // One that does not start.
  chmod(write("bin/chromium", "#!/bin/sh\nexit 1\n").c_str(), 0755);
  settings.environment.push_back(own_temporary_folder().environment[0]);
  EXPECT_EQ(simctl({"report", "out", "--video", "a.mp4"}, settings).exit, 2);
  EXPECT_TRUE(is_tidy());
  for (const char* const size : {"1280", "1281x720", "0x0", "1280x720x", "-2x2", "99999x16"}) {
    EXPECT_EQ(simctl({"report", "out", "--video", "a.mp4", "--size", size}).exit, 2) << size;
  }
  EXPECT_EQ(simctl({"report", "out", "--video", "a.mp4", "--fps", "0"}).exit, 2);
  EXPECT_EQ(simctl({"report", "out", "--video", "a.mp4", "--gltf", "a.glb"}).exit, 2);
  EXPECT_EQ(entries(), (std::vector<std::string>{"bin", "out", "p.yaml", "tmp"}));
}

}  // namespace
}  // namespace backdrive::test
