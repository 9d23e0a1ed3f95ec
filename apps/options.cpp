#include "apps/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "apps/atomic_output.h"
#include "apps/command_text.h"
#include "apps/console.h"
#include "apps/log.h"
#include "apps/table.h"
#include "engine/isa.h"
#include "engine/parallel.h"
#include "integrators/kernels.h"

namespace backdrive::app {

CLI::Validator in_range(int lowest, int highest) {
  return CLI::Range(lowest, highest).description("");
}

namespace {

/// The words travel in the validator's name, which is shown nowhere: its description would be, in the help.
constexpr const char* kWords = "words";

std::string name_of_words(const std::vector<std::string>& words) {
  std::string name = kWords;
  for (const std::string& word : words) name += " " + word;
  return name;
}

}  // namespace

CLI::Validator whole_number() {
  // CLI11 reads -1 as the largest of 64 bits, and nothing as zero.
  CLI::Validator check(
      [](std::string& word) -> std::string {
        const bool digits =
            !word.empty() && word.size() <= 20 && word.find_first_not_of("0123456789") == std::string::npos;
        if (digits && (word.size() < 20 || word <= "18446744073709551615")) return "";
        return "'" + word + "', expected a whole number from 0 to 18446744073709551615";
      },
      "");
  return check;
}

CLI::Validator number_between(double lowest, double highest) {
  CLI::Validator check(
      [=](std::string& word) -> std::string {
        double value = NAN;
        const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
        const bool whole = read.ec == std::errc() && read.ptr == word.data() + word.size();
        if (whole && value >= lowest && value <= highest) return "";
        std::ostringstream expected;
        expected << "'" << word << "', expected a number from " << lowest << " to " << highest;
        return expected.str();
      },
      "");
  return check;
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return CLI::IsMember(words).description("").name(name_of_words(words));
}

CLI::Validator one_of(const std::vector<std::string>& words, std::string (*as_one)(std::string)) {
  return CLI::IsMember(words, as_one).description("").name(name_of_words(words));
}

CLI::Validator suggest(const std::vector<std::string>& words) {
  return CLI::Validator([](std::string&) { return std::string(); }, "", name_of_words(words));
}

std::vector<std::string> offered_words(CLI::Option& option) {
  try {
    for (int i = 0;; ++i) {
      std::istringstream name(option.get_validator(i)->get_name());
      std::string word;
      if (!(name >> word) || word != kWords) continue;
      return {std::istream_iterator<std::string>(name), {}};
    }
  } catch (const CLI::OptionNotFound&) {
    return {};  // the only way to learn how many validators an option has
  }
}

void add_json_and_quiet(CLI::App& command, Options& options) {
  command.add_flag("--json", options.json, "print the result as exactly one JSON object on stdout");
  command.add_flag("--quiet", options.quiet, "no progress and no log lines on stderr, only warnings and errors");
}

void add_scene(CLI::App& command, Options& options, bool required) {
  command.add_option("scene", options.scene, "scene file (YAML; docs/scenes.md) or robot (URDF, MJCF; docs/robots.md)")
      ->type_name(kSceneFile)
      ->required(required);
  // One value each: without the limit the option would take the scene's path for a second one.
  command
      .add_option("--set", options.set,
                  "override anything in the scene, as joints/hinge/damping=0.02; * stands for every name; repeatable")
      ->type_name("PATH=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  command
      .add_option("--robot-path", options.robot_path,
                  "folder with robots, packages and meshes, before those of BACKDRIVE_ROBOT_PATH; repeatable")
      ->type_name(kAnyPath)
      ->take_all()
      ->allow_extra_args(false);
  command.add_flag("--strict", options.strict, "what a robot file says and is not supported is an error");
}

void add_execution(CLI::App& command, Options& options) {
  command
      .add_option("--device", options.device,
                  "where to compute: cpu; cuda (the first GPU), cuda:1, cuda:0,1 or cuda:all (optimize and sweep split "
                  "their worlds, others take the first)")
      ->check(suggest({"cpu", "cuda", "cuda:all"}))
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option(
          "--isa", options.isa,
          "instruction set of the kernels, x86-64-v2 to v4: results differ in their last bits [the highest that "
          "is there]")
      ->transform(one_of({"v2", "v3", "v4"}, without_architecture))
      ->type_name("NAME");
  command.add_option("--threads", options.threads, "processor threads [all]; results do not depend on it")
      ->check(in_range(1, 4096))
      ->type_name("N");
  command.add_option("--seed", options.seed, "seed of everything random")
      ->check(whole_number())
      ->type_name("N")
      ->capture_default_str();
}

void add_precision(CLI::App& command, Options& options) {
  command.add_option("--precision", options.precision, "float32 or float64")
      ->check(one_of({"float32", "float64"}))
      ->type_name("NAME")
      ->capture_default_str();
}

void add_output(CLI::App& command, Options& options, const std::string& meaning) {
  command.add_option("--output", options.output, meaning)->type_name(kAnyPath);
  command.add_flag("--force", options.force, "replace an existing result at --output");
}

void add_report_flag(CLI::App& command, Options& options) {
  command.add_flag("--report", options.report, "write report.html into the result folder too (simctl report)");
}

void finish_command(CLI::App& command, Invocation& invocation, const Options& options, const std::string& examples,
                    std::function<int()> body, WhenInterrupted when) {
  // A blank line before "Usage:".
  command.description(command.get_description() + "\n");
  command.footer("Examples:\n" + examples + "\n\n" + exit_codes_text());
  command.callback([&invocation, &options, when, body = std::move(body)] {
    invocation.quiet = options.quiet;
    invocation.keeps_results = when == WhenInterrupted::keeps_results;
    invocation.body = body;
  });
}

ExecutionOptions execution(const Options& options) {
  if (!options.isa.empty()) {
    for (const Isa isa : {Isa::v2, Isa::v3, Isa::v4}) {
      if (options.isa == to_string(isa)) choose_isa(isa);
    }
    if (options.isa != to_string(kernel_isa())) {
      usage_error("--isa " + options.isa + ": this build has kernels for " + with_architecture(kernel_isa()) +
                  "; expected that, or a build by cmake --preset portable");
    }
  }
  ExecutionOptions result;
  result.devices = parse_devices(options.device);
  result.precision = options.is_float32() ? Precision::float32 : Precision::float64;
  result.threads = options.threads > 0 ? options.threads : hardware_threads();
  result.seed = options.seed;
  return result;
}

namespace {

std::vector<std::string>& command_line() {
  static std::vector<std::string> words;
  return words;
}

/// As a shell takes it.
std::string quoted(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./=:,+@%", c);
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string processor_name() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

void remember_command_line(int argc, char** argv) {
  command_line().assign(argv, argv + argc);
  if (!command_line().empty()) command_line()[0] = "simctl";
}

nlohmann::json made_by(const Options& options, const ExecutionOptions& how) {
  std::string command;
  for (const std::string& word : command_line()) command += (command.empty() ? "" : " ") + quoted(word);
  return {{"version", BACKDRIVE_VERSION},
          {"build_type", BACKDRIVE_BUILD_TYPE},
          {"instruction_set", with_architecture(kernel_isa())},
          {"device", options.device},
          {"processor", processor_name()},
          {"precision", options.precision},
          {"threads", how.threads},
          {"seed", how.seed},
          {"command", command}};
}

void log_made_by(const Options& options, const ExecutionOptions& how) {
  const nlohmann::json all = made_by(options, how);
  const auto text = [&](const char* key) { return all.at(key).get<std::string>(); };
  log_detail("simctl " + text("version") + " (" + text("build_type") + "), " + text("instruction_set") + ", " +
             text("device") + ", " + count(how.threads, "thread") + ", " + text("precision") + ", seed " +
             std::to_string(how.seed));
  log_detail("command: " + text("command"));
}

std::vector<Override> overrides(const std::vector<std::string>& set) {
  std::vector<Override> result;
  for (const std::string& text : set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      usage_error("--set '" + text + "': expected PATH=VALUE, as in joints/hinge/damping=0.02");
    }
    result.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return result;
}

Scene load(const Options& options) {
  Scene scene = load_scene(options.scene, overrides(options.set), load_options(options));
  warn_of_notes(scene);
  return scene;
}

LoadOptions load_options(const Options& options) {
  return {{options.robot_path.begin(), options.robot_path.end()}, options.strict};
}

void warn_of_notes(const Scene& scene) {
  for (const SceneNote& note : scene.notes) {
    if (note.changes_motion) {
      log_warning("not taken over: " + note.text);
    } else {
      log_info("not taken over: " + note.text);
    }
  }
}

void print_json(const nlohmann::json& object) {
  std::cout << object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  finish_stdout();
}

std::string device_text(const ExecutionOptions& how) {
  if (how.devices.front().is_cpu()) return count(how.threads, "thread");
  std::string names;
  for (const Device& device : how.devices) names += (names.empty() ? "" : ", ") + to_string(device);
  return names;
}

std::string memory_table() {
  const TapeCounters tapes = tape_counters();
  Table table({{"memory", Table::Align::left},
               {"live"},
               {"peak"},
               {"pooled"},
               {"from the system"},
               {"handed out"},
               {"tape nodes"},
               {"backwards"}});
  for (const Device& device : devices_in_use()) {
    const MemoryCounters c = default_memory(device).counters();
    const bool first = device.is_cpu();
    table.add({to_string(device), bytes_text(c.live_bytes), bytes_text(c.peak_bytes), bytes_text(c.pooled_bytes),
               std::to_string(c.allocations), std::to_string(c.requests), first ? std::to_string(tapes.nodes) : "",
               first ? std::to_string(tapes.backwards) : ""});
  }
  return table.text();
}

nlohmann::json memory_json() {
  nlohmann::json devices = nlohmann::json::object();
  for (const Device& device : devices_in_use()) {
    const MemoryCounters c = default_memory(device).counters();
    devices[to_string(device)] = {{"live_bytes", c.live_bytes},
                                  {"peak_bytes", c.peak_bytes},
                                  {"pooled_bytes", c.pooled_bytes},
                                  {"allocations", c.allocations},
                                  {"requests", c.requests}};
  }
  const TapeCounters tapes = tape_counters();
  devices["cpu"]["tape_nodes"] = tapes.nodes;
  devices["cpu"]["backwards"] = tapes.backwards;
  return devices;
}

std::string steps_text(const Simulation& simulation) {
  return count(simulation.control_steps(), "step") + " of " + number(simulation.control_time_step()) + " s" +
         (simulation.substeps > 1 ? " in " + std::to_string(simulation.substeps) + " substeps each" : "");
}

std::string describe_stop(const Problem& problem, int world, const WorldStatus& status) {
  const double time = status.stopped_step * problem.simulation.time_step;
  const auto& names = problem.model.joint_names;
  const bool known = status.joint >= 0 && status.joint < static_cast<int>(names.size());
  return "world " + std::to_string(world) + " became non-finite in step " +
         std::to_string(status.stopped_step / problem.simulation.substeps) + " (at " + number(time) + " s)" +
         (known ? " at joint '" + names[status.joint] + "'" : "");
}

std::string unsolved_words(const Problem& problem, const WorldStatus& status) {
  if (status.unsolved_step < 0) return "";
  return "contact could not be solved in step " + std::to_string(status.unsolved_step / problem.simulation.substeps) +
         " (at " + number(status.unsolved_step * problem.simulation.time_step) +
         " s), and perhaps later: forces there, and gradients through them, cannot be trusted; softer contact, less "
         "friction or a shorter time step would do";
}

void warn_of_unsolved(const Problem& problem, const WorldStatus& status) {
  if (const std::string line = unsolved_words(problem, status); !line.empty()) log_warning(line);
}

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names = {"optimize", "run",    "gradient",   "gradcheck", "bench", "sweep",
                                                 "validate", "info",   "report",     "plot",      "view",  "dynamics",
                                                 "convert",  "schema", "completion", "manual"};
  return names;
}

}  // namespace backdrive::app
