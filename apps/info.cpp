// simctl info: this build and this machine, or what is in a scene or robot.
#include <fstream>
#include <iostream>

#include "apps/console.h"
#include "apps/devices.h"
#include "apps/model_text.h"
#include "apps/options.h"
#include "apps/table.h"
#include "engine/isa.h"
#include "engine/parallel.h"
#include "integrators/kernels.h"

namespace backdrive::app {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return "unknown";
#endif
}

int run_info(const Options& options) {
  if (!options.scene.empty()) {
    const Scene scene = load(options);
    if (options.json) {
      print_json(model_json(scene));
    } else {
      std::cout << model_text(scene);
    }
    return kDone;
  }
  const std::string build_type = BACKDRIVE_BUILD_TYPE;
  std::vector<std::string> available;
  for (const Isa isa : {Isa::v2, Isa::v3, Isa::v4}) {
    if (supports(isa)) available.push_back(with_architecture(isa));
  }
  const std::string used = with_architecture(kernel_isa());
  const int threads = hardware_threads();
  std::string no_cuda;
  const int gpus = device_count(DeviceKind::cuda, &no_cuda);
  if (options.json) {
    nlohmann::json devices = {{{"name", "cpu"}, {"description", processor_name()}, {"threads", threads}}};
    for (int k = 0; k < gpus; ++k) devices.push_back(device_json({DeviceKind::cuda, k}));
    print_json({{"version", BACKDRIVE_VERSION},
                {"build_type", build_type},
                {"compiler", compiler()},
                {"instruction_set", {{"used", used}, {"available", available}}},
                {"threads", threads},
                {"cuda", {{"devices", gpus}, {"why_none", no_cuda}}},
                {"devices", devices}});
    return kDone;
  }
  std::string list;
  for (const std::string& name : available) list += (list.empty() ? "" : ", ") + name;
  Table table({{"simctl", Table::Align::left}, {BACKDRIVE_VERSION, Table::Align::left}});
  table.add({"build", build_type + ", " + compiler()});
  table.add({"instruction set", used + " (this processor has " + list + ")"});
  table.add({"threads", std::to_string(threads)});
  table.add({"device cpu", processor_name()});
  if (gpus == 0) table.add({"device cuda", no_cuda});
  for (int k = 0; k < gpus; ++k) {
    const Device device{DeviceKind::cuda, k};
    table.add({"device " + to_string(device), device_description(device)});
  }
  std::cout << table.text();
  if (gpus > 0) std::cout << '\n' << kernel_table({DeviceKind::cuda, 0});
  return kDone;
}

}  // namespace

void add_info(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand("info",
                                               "Print version, build, instruction sets and devices; of a scene or "
                                               "robot (URDF, MJCF): the tree of its joints and\n"
                                               "bodies with masses, limits and shapes.");
  static Options options;
  add_scene(*command, options, false);
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl info\n"
                 "  simctl info panda.urdf\n"
                 "  BACKDRIVE_ISA=v3 simctl info --json   # choose the instruction set: v2, v3 or v4",
                 [] { return run_info(options); });
}

}  // namespace backdrive::app
