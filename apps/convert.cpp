// simctl convert: a robot, or a scene that names robots, as a scene that stands by itself.
#include <iostream>

#include "apps/atomic_output.h"
#include "apps/log.h"
#include "apps/options.h"

namespace backdrive::app {
namespace {

int run_convert(const Options& options) {
  const Scene scene = load(options);
  const std::string text = scene_with_values(scene, scene.problem);
  if (!scene.looks.visuals.empty()) log_info("visuals are left out: a scene has the shapes that touch");
  if (options.output.empty() || options.output == "-") {
    std::cout << text;
    finish_stdout();
    return kDone;
  }
  OutputFile file(options.output, options.force);
  file.stream() << text;
  file.commit();
  log_info("wrote " + options.output);
  return kDone;
}

}  // namespace

void add_convert(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "convert",
      "Write a robot (URDF, MJCF), or a scene that names robots, as a scene that needs no other file: the same bodies, "
      "joints\n"
      "and shapes, to the bit, in the form of docs/scenes.md. Meshes are written as the vertices of their hulls; "
      "visuals are left out.");
  static Options options;
  add_scene(*command, options);
  command->add_option("-o,--output", options.output, "file to write [-: stdout]")->type_name(kAnyPath);
  command->add_flag("--force", options.force, "replace an existing file");
  command->add_flag("--quiet", options.quiet, "no log lines on stderr, only warnings and errors");
  finish_command(*command, invocation, options,
                 "  simctl convert panda.urdf -o panda.yaml\n"
                 "  simctl convert go2.urdf --set model/base=floating | less",
                 [] { return run_convert(options); });
}

}  // namespace backdrive::app
