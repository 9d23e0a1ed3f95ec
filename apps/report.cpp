// simctl report: a result folder as one HTML file, to look at.
#include "apps/report.h"

#include <iostream>

#include "apps/atomic_output.h"
#include "apps/gltf.h"
#include "apps/log.h"
#include "apps/options.h"
#include "apps/report_data.h"
#include "apps/report_page.h"

namespace backdrive::app {
namespace {

struct ReportArguments : Options {
  std::string gltf;
};

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

int run_report(const ReportArguments& options) {
  if (!options.gltf.empty()) return run_gltf(options);
  const bool own = options.output.empty();
  const std::filesystem::path output =
      own ? std::filesystem::path(options.scene) / "report.html" : std::filesystem::path(options.output);
  const std::string page = report_page(report_data(options.scene));
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
                                               "Make one HTML file of a result folder of run or optimize: the motion "
                                               "to replay, with contact forces, and plots of\n"
                                               "states, controls and losses. It needs no other file and no network.");
  static ReportArguments options;
  command->add_option("folder", options.scene, "result folder")->type_name(kAnyPath)->required();
  command->add_option("-o,--output", options.output, "file to write [report.html in the folder]; -: stdout")
      ->type_name(kAnyPath);
  command
      ->add_option("--gltf", options.gltf, "write the motion as binary glTF (.glb) instead, for Blender and the like")
      ->type_name(kAnyPath);
  command->add_flag("--force", options.force, "replace an existing file at --output or --gltf");
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl report results/cartpole_swingup-1\n"
                 "  simctl report results/cartpole_swingup-1 --gltf swing.glb\n"
                 "  simctl run robot.urdf --report",
                 [] { return run_report(options); });
}

}  // namespace backdrive::app
