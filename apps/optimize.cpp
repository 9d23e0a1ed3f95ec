// simctl optimize: minimise a scene's loss over its variables.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "apps/atomic_output.h"
#include "apps/console.h"
#include "apps/contact_check.h"
#include "apps/crossings.h"
#include "apps/doubts.h"
#include "apps/energy.h"
#include "apps/fast_turns.h"
#include "apps/found_values.h"
#include "apps/gradient_doubts.h"
#include "apps/history_file.h"
#include "apps/interrupt.h"
#include "apps/log.h"
#include "apps/looks.h"
#include "apps/machine_memory.h"
#include "apps/optimize_details.h"
#include "apps/optimize_view.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/report.h"
#include "apps/simulate.h"
#include "apps/table.h"
#include "apps/trajectory.h"
#include "apps/web_server.h"
#include "apps/zero_gradient.h"

namespace backdrive::app {
namespace {

struct OptimizeArguments : Options {
  int worlds = 0;
  int iterations = -1;
  std::uint64_t memory_budget = 0;  ///< bytes, 0: any
  bool report_memory = false;
  bool view = false, open = false;
  int port = 0;
};

std::string progress_text(const OptimizeProgress& p) {
  const double rest = p.evaluated > 0 ? p.evaluation_seconds * (1 / p.evaluated - 1) : INFINITY;
  const std::string evaluation =
      "  evaluation " + number(std::floor(100 * p.evaluated)) + " % done, about " + duration(rest) + " left of it";
  if (!std::isfinite(p.best_loss) && p.evaluated < 1) return "the loss is not known yet" + evaluation;
  const int left = p.iterations - p.iteration;
  const double time_left = p.iteration > 0 ? p.seconds / p.iteration * left : INFINITY;
  return "iteration " + std::to_string(p.iteration) + "/" + std::to_string(p.iterations) + "  loss " +
         number(p.best_loss) + "  gradient " + number(p.gradient_norm) + "  " + with_prefix(p.world_steps_per_second) +
         " world-steps/s  " + count(p.running, "start") + " running  about " + duration(time_left) + " left" +
         (p.evaluated < 1 ? evaluation : "");
}

OptimizeResult optimize_with_progress(const Problem& problem, const ExecutionOptions& how, bool quiet,
                                      HistoryFile& history, OptimizeView* view) {
  ProgressLine line(quiet);
  const auto progress = [&](const OptimizeProgress& now) {
    line.update([&] { return progress_text(now); });
    if (view && std::isfinite(now.best_loss)) view->update(now);
    return !interrupted();
  };
  return optimize(problem, how, progress, [&](const OptimizeProgress& row) { history.add(row); });
}

/// The page of --view; where it is, said where logs go, for stdout is for results.
std::unique_ptr<OptimizeView> make_view(const Scene& scene, const ExecutionOptions& how,
                                        const OptimizeArguments& options) {
  if (!options.view) {
    if (options.open || options.port > 0) usage_error("--open and --port: expected --view too");
    return nullptr;
  }
  auto view = std::make_unique<OptimizeView>(scene, how, options.port);
  // Not into the log: its token is for who sits here.
  std::cerr << "view: " << view->address() << '\n';
  if (options.open && !open_in_browser(view->address())) log_warning(kNoBrowserOpens);
  return view;
}

/// Warns of variables whose gradient was zero wherever the search began and at the best it found: nothing could move
/// them.
std::vector<ZeroGradient> warn_of_zero_gradients(const Problem& problem, const OptimizeResult& result,
                                                 const ExecutionOptions& how) {
  constexpr int kMostStarts = 64;
  const int starts = static_cast<int>(result.starts.size());
  std::vector<std::vector<double>> points = initial_points(problem, starts, how.seed);
  if (starts > kMostStarts) points.resize(kMostStarts);
  points.push_back(result.starts[result.best].x);
  std::vector<ZeroGradient> zeros = zero_gradients(problem, points, how);
  for (const ZeroGradient& zero : zeros) {
    log_warning("the gradient by " + zero.name + " was zero at every start and at the best point" +
                (zero.why.empty() ? "" : ": " + zero.why) + "; nothing could move it");
  }
  return zeros;
}

/// Tells a user whose gradients say little about the next step.
void warn_of_contacts(const std::vector<ContactCheck>& checks) {
  const auto astray = std::ranges::count_if(checks, [](const ContactCheck& c) { return !c.agrees(); });
  if (astray == 0) return;
  const auto done = std::ranges::count_if(checks, &ContactCheck::done);
  log_warning(
      "at " + count(astray, "point") + " of " + std::to_string(done) +
      " in the history the loss changes along its gradient by less than half or more than twice what the gradient "
      "says (slope_ratio in history.csv): contacts come and go there; a softer or wider contact, a shorter time step "
      "or "
      "more starts may help");
}

/// At a goal there is nowhere further to go: what is left of the gradient there says nothing, whatever the loss does.
void warn_of_gradient(const Problem& problem, const OptimizeResult& result, const ExecutionOptions& how) {
  if (std::isfinite(problem.optimize.goal) && result.reached_goal) return;
  for (const std::string& line :
       gradient_doubts(problem, gradient_reach(problem, result.starts[result.best].x, how))) {
    log_warning("at the best point " + line);
  }
}

/// What comes next needs memory of other sizes.
void give_back_memory() {
  for (const Device& device : devices_in_use()) default_memory(device).trim();
}

/// What is to be said of a result beside it. After an interrupt what takes its time stays unsaid.
struct Findings {
  std::vector<ZeroGradient> zeros;
  std::vector<ContactCheck> checks;
};

Findings find_doubts(const Problem& problem, const OptimizeResult& result, const ExecutionOptions& how) {
  Findings findings;
  Patience patience;
  ExecutionOptions patient = how;
  patient.passed = [&patience](std::int64_t) { patience(); };
  try {
    findings.zeros = warn_of_zero_gradients(problem, result, patient);
    give_back_memory();
    findings.checks = check_contacts(problem, result, patient);
    warn_of_contacts(findings.checks);
    give_back_memory();
    warn_of_gradient(problem, result, patient);
  } catch (const Hurried&) {
    log_detail("interrupted: what more there is to say of the gradients at the result was not worked out");
  }
  return findings;
}

void log_start(const Scene& scene, const OptimizeArguments& options, const ExecutionOptions& how) {
  const Problem& problem = scene.problem;
  const int starts = options.worlds > 0 ? options.worlds : problem.optimize.starts;
  log_info("optimising '" + scene.name + "': " + count(variable_layout(problem).total, "number") + " in " +
           count(static_cast<long long>(problem.variables.size()), "variable") + ", " +
           count(static_cast<long long>(problem.loss.size()), "loss term") + ", " + count(starts, "start") + " of " +
           count(problem.simulation.steps, "step") + ", " + to_string(chosen_method(problem, how)) + ", at most " +
           count(problem.optimize.iterations, "iteration") + ", " + options.precision + ", " + device_text(how));
  if (const std::string words = contact_words(problem); !words.empty()) log_detail("contact: " + words);
  if (starts > largest_batch(problem, how)) {
    log_info(count(largest_batch(problem, how), "start") + " at a time" +
             (how.devices.front().is_cpu() ? "" : "; with --set optimize/method=adam all at once"));
  }
  const ObjectiveMemory memory = plan_objective(problem, how);
  log_info("memory: " + describe(memory.size, memory.plan));
}

std::string window_text(const WindowCounts& windows) {
  return count(windows.clipped, "gradient window") + " of " + std::to_string(windows.all) + " clipped";
}

void log_starts(const Problem& problem, const OptimizeResult& result) {
  for (size_t s = 0; s < result.starts.size(); ++s) {
    const StartResult& start = result.starts[s];
    log_detail("start " + std::to_string(s) + ": loss " + exact(start.loss) + ", gradient norm " +
               number(start.gradient_norm) + ", " + count(start.iterations, "iteration") + ", stopped by " +
               to_string(start.stopped_by) +
               (start.status.stopped() ? ": " + describe_stop(problem, static_cast<int>(s), start.status) : ""));
  }
  if (result.rounds_around > 0) {
    log_detail("every start stopped short of the goal: neighbours of the best point were searched from, " +
               count(result.rounds_around, "time"));
  }
}

/// Why there is nothing to write: no start has a finite loss.
void check_finite(const Problem& problem, const OptimizeResult& result) {
  const StartResult& best = result.starts.at(result.best);
  if (std::isfinite(best.loss)) return;
  const bool stopped = best.status.stopped();
  throw Error(ErrorKind::non_finite,
              (stopped ? describe_stop(problem, result.best, best.status)
                       : "the loss of world " + std::to_string(result.best) + " is not finite") +
                  ", and no other start fared better; try a shorter time step or smaller random starts");
}

int exit_code_of(const Problem& problem, const OptimizeResult& result, const std::vector<ZeroGradient>& zeros) {
  if (interrupted()) return kInterrupted;
  // Without a goal that says otherwise, what nothing could move was not optimised.
  const bool blind = zeros.size() == problem.variables.size() && !std::isfinite(problem.optimize.goal);
  return result.reached_goal && !blind ? kDone : kNotReached;
}

nlohmann::json to_json(const Scene& scene, const OptimizeResult& result, const SimulationResult& replay,
                       const std::string& output, const std::vector<ZeroGradient>& zeros) {
  const StartResult& best = result.starts[result.best];
  nlohmann::json terms = nlohmann::json::object(), starts = nlohmann::json::array();
  nlohmann::json found = nlohmann::json::object();
  for (const FoundValue& v : found_values(result.problem)) found[v.name] = v.value;
  nlohmann::json zero_names = nlohmann::json::object();
  for (const ZeroGradient& zero : zeros) zero_names[zero.name] = zero.why;
  const WindowCounts windows = result.history.empty() ? WindowCounts{} : result.history.back().windows;
  for (size_t i = 0; i < replay.term_names.size(); ++i) terms[replay.term_names[i]] = replay.terms[i];
  for (const StartResult& s : result.starts) {
    starts.push_back({{"loss", s.loss},
                      {"gradient_norm", s.gradient_norm},
                      {"iterations", s.iterations},
                      {"stopped_by", to_string(s.stopped_by)}});
  }
  return {{"scene", scene.name},
          {"output", output},
          {"loss", replay.loss},
          {"loss_terms", terms},
          {"found", found},
          {"goal", scene.problem.optimize.goal},
          {"reached_goal", result.reached_goal},
          {"gradient_norm", best.gradient_norm},
          {"best_start", result.best},
          {"starts", starts},
          {"iterations", best.iterations},
          {"rounds_around", result.rounds_around},
          {"stopped_by", to_string(best.stopped_by)},
          {"world_steps_per_second", result.history.empty() ? 0.0 : result.history.back().world_steps_per_second},
          {"seconds", result.seconds},
          {"gradient_windows", windows.all},
          {"clipped_windows", windows.clipped},
          {"zero_gradients", zero_names},
          {"exit_code", exit_code_of(scene.problem, result, zeros)}};
}

void print_summary(const Scene& scene, const OptimizeResult& result, const SimulationResult& replay,
                   const std::string& output) {
  const Problem& problem = scene.problem;
  const StartResult& best = result.starts[result.best];
  std::cout << loss_table(replay) << '\n';
  if (std::isfinite(problem.optimize.goal)) {
    std::cout << "goal: " << number(problem.optimize.goal) << ", "
              << (result.reached_goal ? green("reached") : red("not reached")) << '\n';
  }
  std::cout << "best of " << count(static_cast<long long>(result.starts.size()), "start") << ": number " << result.best
            << ", " << count(best.iterations, "iteration") << ", stopped by " << to_string(best.stopped_by) << ", "
            << number(result.seconds) << " s\n\n";
  const std::vector<FoundValue> found = found_values(result.problem);
  if (!found.empty()) std::cout << found_table(found) << '\n';
  std::cout << "state at the end\n"
            << state_table(problem, replay) << '\n'
            << "result: " << output << "\nreplay: simctl run " << output << "/result.yaml\n";
}

/// The motion that the best start began with, for comparison; where it ends before its time, there is none.
void write_before(OutputFolder& folder, const Scene& scene, const OptimizeResult& result, const ExecutionOptions& how) {
  const Problem& problem = scene.problem;
  const int starts = static_cast<int>(result.starts.size());
  const Problem before = with_values(problem, initial_points(problem, starts, how.seed)[result.best]);
  const SimulationResult motion = simulate(before, how, efforts_in_table(before.model, scene.record));
  if (!motion.status.stopped()) write_trajectory(folder.file("before.csv"), before, scene.record, motion);
}

/// What of it is for reports alone.
void write_details(OutputFolder& folder, const Problem& problem, const OptimizeResult& result,
                   const OptimizeArguments& options, const ExecutionOptions& how) {
  nlohmann::json details = optimize_details(problem, result, how);
  details["made_by"] = made_by(options, how);
  folder.file("details.json") << details.dump() << '\n';
  if (result.starts.size() > 1) {
    folder.file("motions.json") << motions_of_starts(problem, result, how).dump() << '\n';
  }
}

/// Interrupted before a gradient was there: nothing is better than the scene itself.
int tell_of_nothing(const Scene& scene, const OptimizeArguments& options) {
  log_warning("interrupted before the loss was known once; nothing is written");
  if (options.json) print_json({{"scene", scene.name}, {"output", nullptr}, {"exit_code", kInterrupted}});
  return kInterrupted;
}

int run_optimize(const OptimizeArguments& options) {
  ExecutionOptions how = execution(options);
  how.worlds = options.worlds;
  how.memory_budget = options.memory_budget;
  Scene scene = load(options);
  how.keep_points = options.report && variable_layout(scene.problem).total <= kMostKeptNumbers;
  if (options.iterations >= 0) scene.problem.optimize.iterations = options.iterations;
  keep_within_memory(scene.problem, how);
  OutputFolder folder(options.output, scene.name + "-optimize", options.force);
  LogFile log_file(folder.file("log.txt"));
  log_made_by(options, how);
  log_start(scene, options, how);
  for (const std::string& line : open_loops(scene.problem)) log_warning(line);
  for (const std::string& line : short_contacts(scene.problem)) log_warning(line);
  HistoryFile history(folder);
  const std::unique_ptr<OptimizeView> view = make_view(scene, how, options);
  const OptimizeResult result = optimize_with_progress(scene.problem, how, options.quiet, history, view.get());
  log_starts(scene.problem, result);
  if (interrupted() && result.history.empty()) return tell_of_nothing(scene, options);
  check_finite(scene.problem, result);
  if (interrupted()) log_warning("interrupted; the best so far is kept");
  if (scene.problem.optimize.window.clip > 0)
    log_info(window_text(result.history.empty() ? WindowCounts{} : result.history.back().windows));
  give_back_memory();

  // The trajectory and the table come from the very text that is written, so that a replay shows the same numbers.
  const std::string text = scene_with_values(scene, result.problem);
  folder.file("result.yaml") << text;
  write_looks(scene, folder);
  const Scene written = parse_scene(text, "result.yaml", scene.directory);
  const SimulationResult replay = simulate(written.problem, how, efforts_in_table(written.problem.model, scene.record));
  if (replay.status.stopped()) {
    throw Error(ErrorKind::non_finite,
                "the replay of the result failed: " + describe_stop(written.problem, 0, replay.status));
  }
  warn_of_unsolved(written.problem, replay.status);
  if (const std::string line = fast_turns(written.problem, replay); !line.empty()) log_warning(line);
  if (const std::string line = damped_turns(written.problem, replay); !line.empty()) log_warning(line);
  if (const std::string line = energy_growth(written.problem, replay); !line.empty()) log_warning(line);
  const contact::Crossings crossings = find_crossings(written.problem, replay);
  if (const std::string line = crossing_words(written.problem, crossings); !line.empty()) log_warning(line);
  const auto [zeros, checks] = find_doubts(scene.problem, result, how);
  history.finish(result, checks);
  write_trajectory(folder.file("trajectory.csv"), written.problem, scene.record, replay);
  write_before(folder, scene, result, how);
  write_details(folder, scene.problem, result, options, how);
  if (!checks.empty()) write_contacts(folder.file("contacts.csv"), written.problem, replay);
  log_detail("loss " + exact(replay.loss) + " in " + number(result.seconds) + " s");
  const std::string output = folder.commit().string();
  if (options.report) write_report(output);
  if (options.json) {
    nlohmann::json object = to_json(scene, result, replay, output, zeros);
    const ObjectiveMemory memory = plan_objective(scene.problem, how);
    object["made_by"] = made_by(options, how);
    if (may_touch(written.problem)) object["crossings"] = crossings_json(written.problem, crossings);
    object["memory_plan"] = describe(memory.size, memory.plan);
    if (options.report_memory) object["memory"] = memory_json();
    print_json(object);
  } else {
    print_summary(scene, result, replay, output);
    if (options.report) tell_report(output);
    if (options.report_memory) std::cout << '\n' << memory_table();
  }
  finish_stdout();
  if (view) view->finish(result);
  return exit_code_of(scene.problem, result, zeros);
}

}  // namespace

void add_optimize(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "optimize",
      "Minimise a scene's loss over its variables: controls, initial states, model parameters.\n"
      "Several random starts run as worlds of one batch. The result folder holds result.yaml (the scene\n"
      "with the best values filled in; 'simctl run' replays it), history.csv, trajectory.csv, before.csv (the\n"
      "motion that it began with) and log.txt.\n"
      "Ctrl-C stops early and keeps the best so far. Exit 1 when the scene's goal was not reached.");
  static OptimizeArguments options;
  add_scene(*command, options);
  command->add_option("--worlds", options.worlds, "number of starts [optimize/starts of the scene]")
      ->check(in_range(1, 1 << 20))
      ->type_name("N");
  command->add_option("--iterations", options.iterations, "at most this many [optimize/iterations of the scene]")
      ->check(in_range(0, 1 << 30))
      ->type_name("N");
  command
      ->add_option("--memory-budget", options.memory_budget,
                   "what states, controls and gradients may take, as 512MiB or 2GB: the fewer states fit, the more are "
                   "computed again, to the same bits [any]")
      ->check(CLI::Validator(
          [](std::string& word) -> std::string {
            const bool digits = !word.empty() && word[0] >= '0' && word[0] <= '9';
            // Beyond 64 bits it would be cut without a word.
            return digits && std::strtod(word.c_str(), nullptr) < 9e18 ? ""
                                                                       : "'" + word + "', expected a size as 512MiB";
          },
          ""))
      ->transform(CLI::AsSizeValue(true).description(""))
      ->type_name("SIZE");
  command->add_flag("--view", options.view,
                    "show the best motion so far and how the loss falls in a browser of this machine, at an address "
                    "that is printed on stderr (docs/view.md)");
  command->add_flag("--open", options.open, "with --view: open it in the desktop's browser (xdg-open)");
  command->add_option("--port", options.port, "with --view: port of 127.0.0.1 [one that is free]")
      ->check(in_range(0, 65535))
      ->type_name("N");
  command->add_flag("--report-memory", options.report_memory, "print memory counters at the end");
  add_report_flag(*command, options);
  add_output(*command, options, "result folder [results/SCENE-optimize-N]");
  add_precision(*command, options);
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(
      *command, invocation, options,
      "  simctl optimize scenes/cartpole_swingup.yaml\n"
      "  simctl optimize scenes/pendulum_swingup.yaml --worlds 4 --set optimize/method=adam\n"
      "  simctl optimize scenes/arm_reach.yaml --precision float32 --output results/arm --json",
      [] { return run_optimize(options); }, WhenInterrupted::keeps_results);
}

}  // namespace backdrive::app
