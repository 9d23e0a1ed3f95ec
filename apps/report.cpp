// simctl report: a result folder as one HTML file, to look at.
#include "apps/report.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "apps/atomic_output.h"
#include "apps/console.h"
#include "apps/gltf.h"
#include "apps/log.h"
#include "apps/options.h"
#include "apps/report_check.h"
#include "apps/report_data.h"
#include "apps/report_page.h"
#include "apps/video.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

struct ReportArguments : Options {
  std::string gltf, video, size = "1280x720";
  double fps = 30;
  bool gradcheck = false;
  std::vector<std::string> folders;  ///< the first is `scene`
};

/// WIDTHxHEIGHT, both even and from 16 to 8192.
bool read_video_size(const std::string& text, VideoOptions& video) {
  int used = 0;
  const bool read = std::sscanf(text.c_str(), "%4dx%4d%n", &video.width, &video.height, &used) == 2 &&
                    used == static_cast<int>(text.size()) && text.find_first_not_of("0123456789x") == std::string::npos;
  const auto good = [](int n) { return n >= 16 && n <= 8192 && n % 2 == 0; };
  return read && good(video.width) && good(video.height);
}

int run_video(const ReportArguments& options) {
  VideoOptions video;
  video.frames_per_second = options.fps;
  read_video_size(options.size, video);  // which was checked
  const int frames = write_video(options.scene, options.video, options.force, video, options.quiet);
  if (frames < 0) {
    log_warning("interrupted; no video is left");
    return kInterrupted;
  }
  if (options.json) {
    print_json({{"video", options.video}, {"frames", frames}, {"exit_code", static_cast<int>(kDone)}});
  } else {
    std::cout << "video: " << options.video << "   (" << count(frames, "frame") << ")\n";
  }
  return kDone;
}

int run_gltf(const ReportArguments& options) {
  const std::string bytes = motion_as_gltf(options.scene);
  OutputFile file(options.gltf, options.force);
  file.stream() << bytes;
  file.commit();
  if (options.json) {
    print_json({{"gltf", options.gltf}, {"bytes", bytes.size()}, {"exit_code", static_cast<int>(kDone)}});
  } else {
    std::cout << "motion: " << options.gltf << "\n";
  }
  return kDone;
}

int run_report(ReportArguments& options) {
  options.scene = options.folders[0];
  if (options.folders.size() > 1 && !(options.gltf.empty() && options.video.empty())) {
    usage_error("--gltf and --video write one motion: expected one folder");
  }
  if (!options.gltf.empty()) return run_gltf(options);
  if (!options.video.empty()) return run_video(options);
  const bool own = options.output.empty();
  const std::filesystem::path output =
      own ? std::filesystem::path(options.scene) / "report.html" : std::filesystem::path(options.output);
  nlohmann::json data = report_data(options.folders);
  if (options.gradcheck) data["gradcheck"] = report_check(options.scene, options.threads, options.quiet);
  const std::string page = report_page(data);
  if (options.output == "-") {
    std::cout << page;
    finish_stdout();
    return kDone;
  }
  OutputFile file(output, own || options.force);
  file.stream() << page;
  file.commit();
  if (options.json) {
    print_json({{"report", output.string()}, {"bytes", page.size()}, {"exit_code", static_cast<int>(kDone)}});
  } else {
    std::cout << "report: " << output.string() << "   (open it in a browser)\n";
  }
  return kDone;
}

}  // namespace

std::filesystem::path write_report(const std::filesystem::path& folder) {
  const std::filesystem::path output = folder / "report.html";
  OutputFile file(output, true);
  file.stream() << report_page(report_data(folder));
  file.commit();
  return output;
}

void tell_report(const std::string& folder) {
  std::cout << "report: " << folder << "/report.html   (open it in a browser)\n";
}

void add_report(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand("report",
                                               "Make one HTML file of a result folder of run, optimize or sweep: the "
                                               "motion to replay, with contact forces, and plots\n"
                                               "of states, controls, losses and what was swept. It needs no other "
                                               "file and no network.");
  static ReportArguments options;
  command
      ->add_option("folders", options.folders,
                   "result folder; others behind it are drawn beside it, pale or side by side, and plotted with it")
      ->type_name(kAnyPath)
      ->required()
      ->expected(1, 64);
  command->add_option("-o,--output", options.output, "file to write [report.html in the first folder]; -: stdout")
      ->type_name(kAnyPath);
  command
      ->add_option("--gltf", options.gltf, "write the motion as binary glTF (.glb) instead, for Blender and the like")
      ->type_name(kAnyPath);
  command
      ->add_option("--video", options.video,
                   "write the motion as MP4 instead; needs the Debian packages chromium and ffmpeg")
      ->type_name(kAnyPath)
      ->excludes("--gltf");
  command->add_option("--size", options.size, "of the video, pixels")
      ->check(CLI::Validator(
          [](std::string& text) -> std::string {
            VideoOptions unused;
            return read_video_size(text, unused) ? "" : "'" + text + "', expected even WIDTHxHEIGHT as 1280x720";
          },
          ""))
      ->type_name("WxH")
      ->capture_default_str();
  command->add_option("--fps", options.fps, "of the video: frames a second")
      ->check(number_between(0.1, 240))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_flag("--gradcheck", options.gradcheck,
                 "check the gradients at the result, as simctl gradcheck does, and put the table in")
      ->excludes("--gltf")
      ->excludes("--video");
  command->add_flag("--force", options.force, "replace an existing file at --output, --gltf or --video");
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl report results/cartpole_swingup-1\n"
                 "  simctl report results/cartpole_swingup-1 --gradcheck\n"
                 "  simctl report results/soft results/stiff -o both.html\n"
                 "  simctl report results/cartpole_swingup-1 --gltf swing.glb\n"
                 "  simctl report results/cartpole_swingup-1 --video swing.mp4 --size 640x360 --fps 60\n"
                 "  simctl run robot.urdf --report",
                 [] { return run_report(options); });
}

}  // namespace backdrive::app
