// simctl gradcheck: every gradient a scene can ask for, checked two ways.
#include <iostream>

#include "apps/atomic_output.h"
#include "apps/console.h"
#include "apps/crossings.h"
#include "apps/doubts.h"
#include "apps/energy.h"
#include "apps/fast_turns.h"
#include "apps/gradcheck_text.h"
#include "apps/log.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/table.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

struct CheckArguments : Options {
  int controls = GradientCheckOptions{}.controls;
  bool all = false;
  std::string at = "scene,random";
  int states = 2, differences = 64;
  double distance = GradientCheckOptions{}.distance;
  std::string states_to, junit, record, against;
  double change = 1e-9;
};

/// Prints what is not as in the baseline.
void print_changes(const std::vector<ChangedRow>& changed, const CheckArguments& options) {
  if (changed.empty()) {
    std::cout << "gradients as in " << options.against << " to " << number(options.change)
              << " of each row's largest\n";
    return;
  }
  Table table({{"changed gradient", Table::Align::left}, {"before"}, {"now"}, {"change"}});
  for (const ChangedRow& row : changed) {
    table.add({row.name, number(row.before), number(row.now), row.what.empty() ? number(row.change) : row.what});
  }
  std::cout << '\n' << table.text();
}

/// What cannot be written or read is told before minutes of work.
BaselineRows check_files(const CheckArguments& options) {
  for (const std::string& path : {options.junit, options.record}) {
    if (!path.empty()) OutputFile(path, options.force);
  }
  return options.against.empty() ? BaselineRows{} : read_baseline(options.against);
}

void write_file(const std::string& path, const std::string& text, bool force) {
  if (path.empty()) return;
  OutputFile file(path, force);
  file.stream() << text;
  file.commit();
}

GradientCheckOptions check_options(const CheckArguments& options, const ExecutionOptions& how) {
  GradientCheckOptions check;
  check.threads = how.threads;
  check.device = how.devices.front();
  check.seed = how.seed;
  check.controls = options.controls;
  check.float32 = options.precision == "both";
  check.distance = options.distance;
  return check;
}

/// Of the motions from these places what gradients cannot be trusted in.
void warn_of_motions(const std::vector<CheckPlace>& places) {
  for (const CheckPlace& place : places) {
    Problem unscored = place.problem;
    unscored.loss.clear();
    const SimulationResult motion = simulate(unscored, {});
    const std::string crossed = crossing_words(unscored, find_crossings(unscored, motion));
    for (const std::string& line : {unsolved_words(unscored, motion.status), fast_turns(unscored, motion),
                                    damped_turns(unscored, motion), energy_growth(unscored, motion), crossed}) {
      if (!line.empty()) log_warning("at " + place.name + ": " + line);
    }
  }
}

/// `differences`: how many numbers are held against them at random states.
std::vector<CheckedPlace> check_all(std::vector<CheckPlace> places, GradientCheckOptions how, int differences,
                                    bool quiet) {
  std::vector<CheckedPlace> checked;
  const std::string of = std::to_string(places.size());
  for (CheckPlace& place : places) {
    const std::string at = "at " + place.name + " (" + std::to_string(checked.size() + 1) + " of " + of + ")";
    Ticker ticker(quiet, at);
    const bool random = place.name.starts_with("random");
    how.differences = random ? differences : -1;
    how.progress = [&](long long done, long long all) {
      ticker.say(at + ": rollout " + std::to_string(done) + " of about " + std::to_string(all));
    };
    GradientCheck check = check_gradients(place.problem, how);
    checked.push_back({std::move(place), std::move(check)});
  }
  return checked;
}

int run_gradcheck(const CheckArguments& options) {
  const ExecutionOptions how = execution(options);
  const PlaceNames names = parse_places(options.at, options.states);
  const Scene scene = load(options);
  BaselineRows before = check_files(options);
  check_motion_fits(scene.problem);
  for (const std::string& line : short_contacts(scene.problem)) log_warning(line);
  log_info("checking the gradients of '" + scene.name + "' over " + count(scene.problem.simulation.steps, "step") +
           ", at " + options.at + ", float64" + (options.precision == "both" ? " and float32" : ""));
  std::vector<CheckPlace> places = check_places(scene.problem, names, how.seed);
  if (places.empty()) usage_error("--at " + options.at + " --states " + std::to_string(options.states) + ": no place");
  if (!options.states_to.empty()) write_places(scene, places, options.states_to, options.force);
  warn_of_motions(places);
  const std::vector<CheckedPlace> checked =
      check_all(std::move(places), check_options(options, how), options.differences, options.quiet);
  write_file(options.junit, junit_xml(scene.name, checked), options.force);
  write_file(options.record, gradient_baseline(scene.name, made_by(options, how), checked), options.force);
  std::vector<ChangedRow> changed;
  if (!options.against.empty()) changed = changed_rows(std::move(before), checked, options.change);
  const int exit_code = all_passed(checked) && changed.empty() ? kDone : kNotReached;
  if (options.json) {
    nlohmann::json object = gradcheck_json(scene, checked);
    object["exit_code"] = exit_code;
    object["made_by"] = made_by(options, how);
    if (!options.against.empty()) {
      object["changed"] = nlohmann::json::array();
      for (const ChangedRow& row : changed) {
        object["changed"].push_back(
            {{"name", row.name}, {"before", row.before}, {"now", row.now}, {"change", row.change}, {"what", row.what}});
      }
    }
    print_json(object);
  } else {
    print_gradcheck(scene, checked, options.all);
    if (!options.against.empty()) print_changes(changed, options);
  }
  return exit_code;
}

}  // namespace

void add_gradcheck(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "gradcheck",
      "Check the gradient of a scene's loss with respect to everything it can depend on: initial state,\n"
      "controls, every parameter of every body, joint and shape. Each number of the adjoint, in float64 and in\n"
      "float32, stands against the exact derivative by dual numbers and against central differences; tolerances\n"
      "are measured, not chosen. Beside it stands the loss's slope over a distance that a user would move.\n"
      "All this at the scene's own state and at random ones in motion, some of them let down to the ground.\n"
      "Exit 1 where adjoint and dual differ; where both agree and differences do not, a line says so.\n"
      "With --device cuda the adjoint and the losses are the GPU's, the duals the processor's.");
  static CheckArguments options;
  add_scene(*command, options);
  command->add_option("--controls", options.controls, "controls checked one by one (all are, along one direction)")
      ->check(in_range(0, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--at", options.at,
                   "where to check, one or several with commas between: scene, its own state; start, a random start of "
                   "the optimiser; random, states in motion; random:3, the third of these alone")
      ->check(suggest({"scene", "start", "random", "scene,start,random"}))
      ->type_name("PLACES")
      ->capture_default_str();
  command->add_option("--states", options.states, "how many random states; which, --seed says")
      ->check(in_range(0, 10'000))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option(
          "--differences", options.differences,
          "how many numbers are held against differences at each random state, where all are against duals; at "
          "other places every one is")
      ->check(in_range(0, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--states-to", options.states_to,
                   "write each random state as a scene into this folder, random-1.yaml")
      ->type_name("FOLDER");
  command
      ->add_option("--distance", options.distance,
                   "how far a user would move a number, as a part of its size (of its variable's `scale`, where it has "
                   "one); 0: no slopes over it")
      ->check(number_between(0, 1))
      ->type_name("PART")
      ->capture_default_str();
  options.precision = "both";
  command->add_option("--precision", options.precision, "of the adjoint: float64, or both it and float32")
      ->check(one_of({"both", "float64"}))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--junit", options.junit, "write a report that CI reads, a test case for each row")
      ->type_name("FILE");
  command->add_option("--record", options.record, "write every number of the gradient, for --against")
      ->type_name("FILE");
  command
      ->add_option("--against", options.against,
                   "compare with such a file: exit 1, and which rows changed by how much, where they differ")
      ->type_name("FILE");
  command->add_option("--change", options.change, "how much, of the largest number of a row, is a change")
      ->check(number_between(0, 1e300))
      ->type_name("PART")
      ->capture_default_str();
  command->add_flag("--force", options.force, "replace these files where they exist");
  command->add_flag("--all", options.all, "show gradients that are zero row by row, too");
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl gradcheck scenes/cartpole_swingup.yaml\n"
                 "  simctl gradcheck scenes/arm_reach.yaml --set simulation/steps=20 --all\n"
                 "  simctl gradcheck scenes/chain32.yaml --controls 8 --json\n"
                 "  simctl gradcheck scene.yaml --record gradients.json        and later, in CI:\n"
                 "  simctl gradcheck scene.yaml --against gradients.json --junit gradcheck.xml",
                 [] { return run_gradcheck(options); });
}

}  // namespace backdrive::app
