#pragma once
// What the subcommands share: options, where results go, exit codes.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autodiff/optimize/optimize.h"
#include "scenes/scene.h"

namespace backdrive::app {

enum Exit { kDone = 0, kNotReached = 1, kUsage = 2, kBadInput = 3, kNonFinite = 4, kNoDevice = 5, kInterrupted = 130 };

/// The options of every subcommand; each takes those that mean something for it.
struct Options {
  std::string scene;
  std::vector<std::string> set;
  std::vector<std::string> robot_path;
  bool strict = false;
  bool json = false, quiet = false, force = false;
  std::string device = "cpu";
  std::string precision = "float64";
  std::string isa;  ///< empty: the highest that build and processor have
  int threads = 0;  ///< 0: all
  std::uint64_t seed = 0;
  std::string output;
  bool report = false;

  bool is_float32() const { return precision == "float32"; }
};

/// What main() runs once the command line is understood, and how errors are to be told.
struct Invocation {
  bool quiet = false;
  bool keeps_results = false;  ///< an interrupted one writes what it has; others end at once
  std::function<int()> body;
};

/// Type names of values that completion knows, beside words: a scene file and any path.
inline constexpr const char* kSceneFile = "FILE";
inline constexpr const char* kAnyPath = "PATH";

/// A check of whole numbers that keeps its bounds out of the help text; the error names them.
CLI::Validator in_range(int lowest, int highest);
/// The same of numbers, among which NaN is none.
CLI::Validator number_between(double lowest, double highest);
/// Of 64 bits, not negative.
CLI::Validator whole_number();
/// One of these words, which completion offers.
CLI::Validator one_of(const std::vector<std::string>& words);
/// For transform(): words that as_one makes one of these are taken as that.
CLI::Validator one_of(const std::vector<std::string>& words, std::string (*as_one)(std::string));
/// Any value; completion offers these words.
CLI::Validator suggest(const std::vector<std::string>& words);
/// The words of one_of() or suggest(); none for other options.
std::vector<std::string> offered_words(CLI::Option& option);

void add_json_and_quiet(CLI::App& command, Options& options);
/// The scene's path, --set, --robot-path and --strict.
void add_scene(CLI::App& command, Options& options, bool required = true);
/// --device, --isa, --threads, --seed.
void add_execution(CLI::App& command, Options& options);
void add_precision(CLI::App& command, Options& options);
void add_output(CLI::App& command, Options& options, const std::string& meaning);
/// --report, of commands that write result folders.
void add_report_flag(CLI::App& command, Options& options);
/// Ends the help text: examples, then exit codes; says what the subcommand does when it is chosen, and when it is
/// interrupted.
enum class WhenInterrupted { ends_at_once, keeps_results };
void finish_command(CLI::App& command, Invocation& invocation, const Options& options, const std::string& examples,
                    std::function<int()> body, WhenInterrupted when = WhenInterrupted::ends_at_once);

/// Checks --device and --isa, and turns the options into those of the library. Throws Error (device, usage).
ExecutionOptions execution(const Options& options);

/// What a result came from, for who wants it again to the same bits: {"version", "build_type", "instruction_set",
/// "device", "processor", "precision", "threads", "seed", "command"}.
nlohmann::json made_by(const Options& options, const ExecutionOptions& how);
/// The same as lines of the log file.
void log_made_by(const Options& options, const ExecutionOptions& how);
/// As the system calls it; empty when it does not say.
std::string processor_name();
/// For made_by().
void remember_command_line(int argc, char** argv);

/// Where it runs: "2 threads", "cuda:0".
std::string device_text(const ExecutionOptions& how);

/// The scene with its overrides, after warnings of what a robot file says in vain. Throws Error (usage) for a --set
/// without '='.
Scene load(const Options& options);
LoadOptions load_options(const Options& options);
void warn_of_notes(const Scene& scene);
std::vector<Override> overrides(const std::vector<std::string>& set);

/// What the library's memory counters say, per device.
std::string memory_table();
nlohmann::json memory_json();

/// The one JSON object of --json.
void print_json(const nlohmann::json& object);

/// "480 steps of 0.00416667 s", and of how many substeps each.
std::string steps_text(const Simulation& simulation);

/// "world 3 became non-finite in step 12 (0.06 s) at joint 'hinge'"
std::string describe_stop(const Problem& problem, int world, const WorldStatus& status);
/// A sentence where a step of a world was not solved; empty: all were.
std::string unsolved_words(const Problem& problem, const WorldStatus& status);
/// Warns with it.
void warn_of_unsolved(const Problem& problem, const WorldStatus& status);

/// Names of the subcommands, for suggestions.
const std::vector<std::string>& command_names();

// One per file.
void add_optimize(CLI::App& app, Invocation& invocation);
void add_run(CLI::App& app, Invocation& invocation);
void add_gradcheck(CLI::App& app, Invocation& invocation);
void add_gradient(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_sweep(CLI::App& app, Invocation& invocation);
void add_validate(CLI::App& app, Invocation& invocation);
void add_info(CLI::App& app, Invocation& invocation);
void add_report(CLI::App& app, Invocation& invocation);
void add_plot(CLI::App& app, Invocation& invocation);
void add_view(CLI::App& app, Invocation& invocation);
void add_dynamics(CLI::App& app, Invocation& invocation);
void add_convert(CLI::App& app, Invocation& invocation);
void add_schema(CLI::App& app, Invocation& invocation);
void add_completion(CLI::App& app, Invocation& invocation);
void add_manual(CLI::App& app, Invocation& invocation);

}  // namespace backdrive::app
