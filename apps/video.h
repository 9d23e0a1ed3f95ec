#pragma once
#include <filesystem>

namespace backdrive::app {

struct VideoOptions {
  int width = 1280, height = 720;  ///< even
  double frames_per_second = 30;
};

/// The motion of a result folder as MP4 (H.264), as its report draws it: frame k is at k / frames_per_second, between
/// the report's frames by interpolation. Needs chromium and ffmpeg; throws Error (usage) naming the Debian package of
/// what is missing. How many frames; fewer than 0: somebody interrupted, and nothing is left.
int write_video(const std::filesystem::path& folder, const std::filesystem::path& output, bool force,
                const VideoOptions& options, bool quiet);

}  // namespace backdrive::app
