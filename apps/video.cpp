#include "apps/video.h"

#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "apps/atomic_output.h"
#include "apps/browser.h"
#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/progress.h"
#include "apps/report_data.h"
#include "apps/report_page.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

/// Bytes of base64 text.
std::string from_base64(std::string_view text) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = std::string_view(digits).find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  return bytes;
}

std::string file_address(const std::filesystem::path& path) {
  std::string address = "file://";
  for (const unsigned char c : path.string()) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", c);
    address +=
        std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.' ? std::string(1, static_cast<char>(c)) : code;
  }
  return address;
}

/// ffmpeg, which takes PNG after PNG.
class VideoEncoder {
 public:
  VideoEncoder(const std::filesystem::path& output, double frames_per_second) : said_(std::tmpfile()) {
    int pipe[2];
    if (!said_ || ::pipe2(pipe, O_CLOEXEC) != 0) usage_error("cannot make pipes for ffmpeg");
    to_ = pipe[1];
    // The same bytes every time: no dates, no names of versions.
    process_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{program(),    "-hide_banner", "-loglevel", "error",      "-f",
                                 "image2pipe", "-c:v",         "png",       "-framerate", exact(frames_per_second),
                                 "-i",         "pipe:0",       "-c:v",      "libx264",    "-crf",
                                 "18",         "-pix_fmt",     "yuv420p",   "-movflags",  "+faststart",
                                 "-fflags",    "+bitexact",    "-flags:v",  "+bitexact",  "-map_metadata",
                                 "-1",         "-f",           "mp4",       "-y",         output.string()},
        ChildProcess::Descriptors{{0, pipe[0]}, {2, ::fileno(said_)}});
    ::close(pipe[0]);
  }
  ~VideoEncoder() {
    process_.reset();
    if (to_ >= 0) ::close(to_);
    std::fclose(said_);
  }
  VideoEncoder(const VideoEncoder&) = delete;
  VideoEncoder& operator=(const VideoEncoder&) = delete;

  static std::string program() {
    std::string path = program_path("ffmpeg");
    if (path.empty()) usage_error("no ffmpeg here to encode with: expected the Debian package ffmpeg");
    return path;
  }

  void add(std::string_view png) {
    while (!png.empty()) {
      const ssize_t n = ::write(to_, png.data(), png.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail();
      png.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void finish() {
    ::close(std::exchange(to_, -1));
    if (process_->wait() != 0) fail();
  }

 private:
  [[noreturn]] void fail() {
    process_.reset();
    std::rewind(said_);
    std::string words(2000, '\0');
    words.resize(std::fread(words.data(), 1, words.size(), said_));
    usage_error("ffmpeg cannot write the video: " + words);
  }

  std::FILE* said_;
  int to_ = -1;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace

int write_video(const std::filesystem::path& folder, const std::filesystem::path& output, bool force,
                const VideoOptions& options, bool quiet) {
  catch_interrupts();
  VideoEncoder::program();
  const std::string page = report_page(report_data(folder));
  OutputFile file(output, force);
  Browser browser(options.width, options.height);
  const std::filesystem::path html = browser.folder() / "report.html";
  std::ofstream(html, std::ios::binary) << page;
  browser.open(file_address(html));
  if (browser.evaluate("!!window.backdriveStage") != true) {
    usage_error(folder.string() + ": its report draws no motion" +
                (browser.errors().empty() ? "" : " (" + browser.errors()[0] + ")"));
  }
  browser.evaluate("backdriveStage.fillWindow()");
  const double seconds = browser.evaluate("backdriveStage.time.times[backdriveStage.time.last]");
  const int frames = static_cast<int>(std::floor(seconds * options.frames_per_second + 1e-6)) + 1;
  VideoEncoder encoder(file.temporary(), options.frames_per_second);
  ProgressLine line(quiet);
  for (int k = 0; k < frames; ++k) {
    if (interrupted()) return -1;
    line.update([&] { return "frame " + std::to_string(k) + " of " + std::to_string(frames); });
    const std::string picture =
        browser.evaluate("backdriveStage.picture(" + exact(k / options.frames_per_second) + ")");
    encoder.add(from_base64(std::string_view(picture).substr(picture.find(',') + 1)));
  }
  encoder.finish();
  if (interrupted()) return -1;
  file.commit();
  return frames;
}

}  // namespace backdrive::app
