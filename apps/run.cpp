// simctl run: simulate a scene and write what happened.
#include <cmath>
#include <iostream>
#include <optional>

#include "apps/atomic_output.h"
#include "apps/console.h"
#include "apps/crossings.h"
#include "apps/doubts.h"
#include "apps/energy.h"
#include "apps/fast_turns.h"
#include "apps/interrupt.h"
#include "apps/log.h"
#include "apps/looks.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/report.h"
#include "apps/simulate.h"
#include "apps/trajectory.h"

namespace backdrive::app {
namespace {

SimulationResult simulate_with_progress(const Scene& scene, const ExecutionOptions& how, bool quiet) {
  const Problem& problem = scene.problem;
  ProgressLine line(quiet);
  const int steps = problem.simulation.steps;
  return simulate(problem, how, efforts_in_table(problem.model, scene.record), [&](int done) {
    line.update([&] {
      return "step " + std::to_string(done) + " of " + std::to_string(steps) + " (" +
             std::to_string(static_cast<long long>(done) * 100 / steps) + " %)";
    });
    return !interrupted();
  });
}

nlohmann::json to_json(const Scene& scene, const SimulationResult& result, int exit_code, const std::string& output) {
  const Problem& problem = scene.problem;
  const Topology& t = problem.model.topology;
  nlohmann::json terms = nlohmann::json::object(), state = nlohmann::json::object();
  for (size_t i = 0; i < result.term_names.size(); ++i) terms[result.term_names[i]] = result.terms[i];
  const auto put = [&](std::size_t joint, std::span<const JointComponent> components, const double* values) {
    nlohmann::json& own = state[problem.model.joint_names[joint]];
    for (const JointComponent& c : components) {
      if (*c.axis) {
        own[c.quantity].push_back(*values++);  // a list, as scenes have it
      } else {
        own[c.quantity] = *values++;
      }
    }
  };
  for (std::size_t joint = 0; joint < problem.model.joint_names.size(); ++joint) {
    const JointType type = problem.model.joint_types[joint];
    if (joint_size(type).nq == 0) continue;
    const Link& link = t.links[problem.model.link_of_joint(static_cast<int>(joint))];
    put(joint, position_components(type), &result.q[static_cast<size_t>(result.steps) * t.nq + link.q]);
    put(joint, velocity_components(type), &result.qd[static_cast<size_t>(result.steps) * t.nv + link.v]);
  }
  nlohmann::json object = {{"scene", scene.name},
                           {"steps", result.steps / problem.simulation.substeps},
                           {"time", result.steps * problem.simulation.time_step},
                           {"final_state", state},
                           {"interrupted", result.interrupted},
                           {"seconds", result.seconds},
                           {"exit_code", exit_code}};
  if (!result.term_names.empty()) {
    object["loss_terms"] = terms;
    object["loss"] = result.loss;
  }
  if (!output.empty()) object["output"] = output;
  if (result.status.stopped()) {
    object["error"] = {{"kind", "non_finite"},
                       {"message", describe_stop(problem, 0, result.status)},
                       {"step", result.status.stopped_step / problem.simulation.substeps},
                       {"world", 0}};
  }
  return object;
}

int run_run(const Options& options) {
  const ExecutionOptions how = execution(options);
  const bool to_stdout = options.output == "-";
  if (to_stdout && options.report) usage_error("--output - and --report: expected a folder for the report");
  if (to_stdout && options.json) usage_error("--output - and --json both want stdout; expected one of them");
  const Scene scene = load(options);
  check_motion_fits(scene.problem, efforts_in_table(scene.problem.model, scene.record).size());
  std::optional<OutputFolder> folder;
  std::optional<LogFile> log_file;
  if (!to_stdout) {
    folder.emplace(options.output, scene.name + "-run", options.force);
    log_file.emplace(folder->file("log.txt"));
    log_made_by(options, how);
  }
  const Problem& problem = scene.problem;
  log_info("running '" + scene.name + "': " + steps_text(problem.simulation) + ", " + options.precision);
  if (const std::string words = contact_words(problem); !words.empty()) log_detail("contact: " + words);
  for (const std::string& line : open_loops(problem)) log_warning(line);
  for (const std::string& line : short_contacts(problem)) log_warning(line);
  const SimulationResult result = simulate_with_progress(scene, how, options.quiet);
  int exit_code = kDone;
  warn_of_unsolved(problem, result.status);
  if (const std::string line = fast_turns(problem, result); !line.empty()) log_warning(line);
  if (const std::string line = damped_turns(problem, result); !line.empty()) log_warning(line);
  if (const std::string line = energy_growth(problem, result); !line.empty()) log_warning(line);
  const contact::Crossings crossings = find_crossings(problem, result);
  if (const std::string line = crossing_words(problem, crossings); !line.empty()) log_warning(line);
  if (result.status.stopped()) {
    exit_code = kNonFinite;
    log_error(describe_stop(problem, 0, result.status) + "; what came before is kept");
  } else if (!std::isfinite(result.loss)) {
    exit_code = kNonFinite;
    log_error("the loss is " + number(result.loss) + ", expected a finite one");
  } else if (result.interrupted) {
    exit_code = kInterrupted;
    log_warning("interrupted after " + count(result.steps / problem.simulation.substeps, "step") + "; they are kept");
  }
  log_detail("done in " + number(result.seconds) + " s");

  if (to_stdout) {
    write_trajectory(std::cout, problem, scene.record, result);
    return exit_code;
  }
  write_trajectory(folder->file("trajectory.csv"), problem, scene.record, result);
  if (may_touch(problem)) write_contacts(folder->file("contacts.csv"), problem, result);
  folder->file("scene.yaml") << scene_with_values(scene, problem);
  write_looks(scene, *folder);
  folder->file("details.json") << nlohmann::json{{"made_by", made_by(options, how)}}.dump() << '\n';
  log_file.reset();
  const std::string output = folder->commit().string();
  if (options.report) write_report(output);
  if (options.json) {
    nlohmann::json object = to_json(scene, result, exit_code, output);
    object["made_by"] = made_by(options, how);
    if (may_touch(problem)) object["crossings"] = crossings_json(problem, crossings);
    print_json(object);
    return exit_code;
  }
  std::cout << "state after " << number(result.steps * problem.simulation.time_step) << " s\n"
            << state_table(problem, result);
  if (!result.term_names.empty()) std::cout << '\n' << loss_table(result);
  std::cout << "\nresult: " << output << "\n";
  if (options.report) tell_report(output);
  return exit_code;
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "run",
      "Simulate a scene. Writes trajectory.csv (time, position, velocity, effort and controls of every joint,\n"
      "and what the scene's `record` asks for),\n"
      "contacts.csv (what touched, and the forces), scene.yaml (what was run) and log.txt to a result folder; prints "
      "the last state and, when the "
      "scene has a loss, its terms.");
  static Options options;
  add_scene(*command, options);
  add_report_flag(*command, options);
  add_output(*command, options, "result folder, or - for the trajectory as CSV on stdout [results/SCENE-run-N]");
  add_precision(*command, options);
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(
      *command, invocation, options,
      "  simctl run scenes/double_pendulum.yaml\n"
      "  simctl run scenes/double_pendulum.yaml --set 'initial_state/shoulder/position=90 deg'\n"
      "  simctl run scenes/double_pendulum.yaml --output - --quiet | head\n"
      "  simctl run results/cartpole_swingup-optimize-1/result.yaml --json",
      [] { return run_run(options); }, WhenInterrupted::keeps_results);
}

}  // namespace backdrive::app
