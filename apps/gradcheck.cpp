// simctl gradcheck: every gradient a scene can ask for, checked two ways.
#include <algorithm>
#include <iostream>
#include <map>

#include "apps/atomic_output.h"
#include "apps/console.h"
#include "apps/doubts.h"
#include "apps/gradcheck_files.h"
#include "apps/log.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/table.h"
#include "autodiff/check/gradient_check.h"

namespace backdrive::app {
namespace {

struct CheckArguments : Options {
  int controls = GradientCheckOptions{}.controls;
  bool all = false;
  std::string at = "start";
  std::string junit, record, against;
  double change = 1e-9;
};

nlohmann::json to_json(const Scene& scene, const GradientCheck& check, int exit_code) {
  nlohmann::json rows = nlohmann::json::array();
  for (const GradientCheckRow& r : check.rows) {
    rows.push_back({{"name", r.name},
                    {"unit", r.unit},
                    {"checked", r.count},
                    {"numbers", r.total},
                    {"worst_index", r.worst},
                    {"adjoint", r.adjoint},
                    {"differences",
                     {{"value", r.differences},
                      {"step", r.step},
                      {"error", r.differences_error},
                      {"tolerance", r.differences_tolerance}}},
                    {"dual", {{"value", r.dual}, {"error", r.dual_error}, {"tolerance", r.dual_tolerance}}},
                    {"tolerance_source", r.tolerance_source},
                    {"note", r.note},
                    {"used", r.used},
                    {"zero", r.zero},
                    {"rough", r.rough},
                    {"parted", r.parted},
                    {"unresolved", r.unresolved},
                    {"gradient", r.gradient},
                    {"passed", r.passed}});
  }
  return {{"scene", scene.name},
          {"loss", check.loss},
          {"numbers", check.numbers},
          {"passed", check.passed},
          {"zero_rows", check.zero_rows},
          {"unresolved_rows", check.unresolved_rows},
          {"rough_rows", check.rough_rows},
          {"parted_rows", check.parted_rows},
          {"seconds", check.seconds},
          {"rows", rows},
          {"exit_code", exit_code}};
}

/// Marks for the distinct sources of tolerances, so that the table holds a letter and the text stands once below it.
class Footnotes {
 public:
  std::string mark(const std::string& text) {
    if (text.empty()) return "";
    const auto known = std::find(texts_.begin(), texts_.end(), text);
    const size_t n = known - texts_.begin();
    if (known == texts_.end()) texts_.push_back(text);
    return "[" + std::to_string(n + 1) + "]";
  }
  std::string text() const {
    std::string all;
    for (size_t i = 0; i < texts_.size(); ++i) all += "[" + std::to_string(i + 1) + "] " + texts_[i] + "\n";
    return all;
  }

 private:
  std::vector<std::string> texts_;
};

/// Rows that no motion can depend on, or that are zero all round, say nothing new one by one.
bool is_plain_zero(const GradientCheckRow& row) {
  return row.passed && (!row.used || row.zero);
}

void print_zeros(const GradientCheck& check) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const GradientCheckRow& row : check.rows) {
    if (is_plain_zero(row)) by_reason[row.note.empty() ? "zero" : row.note].push_back(row.name);
  }
  for (const auto& [reason, names] : by_reason) {
    std::cout << '\n'
              << count(static_cast<long long>(names.size()), "row") << " with gradient zero (" << reason << "): ";
    for (size_t i = 0; i < names.size() && i < 4; ++i) std::cout << (i > 0 ? ", " : "") << names[i];
    std::cout << (names.size() > 4 ? ", ... (--all shows each)\n" : "\n");
  }
}

void print(const Scene& scene, const GradientCheck& check, bool all) {
  std::cout << scene.name << ": loss " << exact(check.loss) << '\n' << '\n';
  Table table({{"gradient of", Table::Align::left},
               {"per", Table::Align::left},
               {"checked"},
               {"worst at"},
               {"adjoint"},
               {"differences"},
               {"error"},
               {"tolerance"},
               {"dual"},
               {"error"},
               {"tolerance"},
               {"from", Table::Align::left},
               {"", Table::Align::left},
               {"", Table::Align::left}});
  Footnotes footnotes;
  for (const GradientCheckRow& r : check.rows) {
    if (!all && is_plain_zero(r)) continue;
    table.add({r.name, r.unit, std::to_string(r.count) + "/" + std::to_string(r.total), std::to_string(r.worst),
               number(r.adjoint), number(r.differences), number(r.differences_error), number(r.differences_tolerance),
               number(r.dual), number(r.dual_error), number(r.dual_tolerance), footnotes.mark(r.tolerance_source),
               r.passed ? green("pass") : red("FAIL"), r.note});
  }
  if (!table.empty()) std::cout << table.text() << '\n' << footnotes.text();
  if (!all) print_zeros(check);
  const long long failed =
      std::count_if(check.rows.begin(), check.rows.end(), [](const GradientCheckRow& r) { return !r.passed; });
  std::cout << '\n'
            << count(check.numbers, "number") << " checked in " << number(check.seconds) << " s: "
            << (check.passed ? green("all pass")
                             : red(count(failed, "row") + " of " + std::to_string(check.rows.size()) + " failed"))
            << '\n';
  const auto tell = [](int rows, const char* what) {
    if (rows > 0) std::cout << count(rows, "row") << what << '\n';
  };
  tell(check.zero_rows, " zero here, which says little: --at, --seed and the scene's own values choose another place");
  tell(check.unresolved_rows,
       " whose differences resolve no more than a tenth of the gradient: there the dual numbers alone count");
  tell(check.rough_rows,
       " without a difference to compare with: the motion is rough or chaotic there (contacts that come and go, a long "
       "run); adjoint and dual agree");
  tell(
      check.parted_rows,
      " where adjoint and dual agree and the loss goes on otherwise over the distance of the differences: an optimiser "
      "that moves so far will find another slope");
}

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

void write_file(const std::string& path, const std::string& text, bool force) {
  if (path.empty()) return;
  OutputFile file(path, force);
  file.stream() << text;
  file.commit();
}

/// The scene as the optimiser's second start has it, random parts included. The scene itself is often a rest position,
/// where most gradients are zero and prove nothing.
Problem at_start(const Problem& problem, std::uint64_t seed) {
  if (problem.variables.empty()) return problem;
  return with_values(problem, initial_points(problem, 2, seed)[1]);
}

int run_gradcheck(const CheckArguments& options) {
  const ExecutionOptions how = execution(options);
  const Scene scene = load(options);
  check_motion_fits(scene.problem);
  GradientCheckOptions check_options;
  check_options.threads = how.threads;
  check_options.device = how.devices.front();
  check_options.seed = how.seed;
  check_options.controls = options.controls;
  log_info("checking the gradients of '" + scene.name + "' over " + count(scene.problem.simulation.steps, "step") +
           (options.at == "start" ? ", at a random start" : "") + ", float64");
  for (const std::string& line : short_contacts(scene.problem)) log_warning(line);
  const Problem problem = options.at == "start" ? at_start(scene.problem, how.seed) : scene.problem;
  ProgressLine line(options.quiet);
  check_options.progress = [&](long long done, long long all) {
    line.update([&] { return "rollout " + std::to_string(done) + " of about " + std::to_string(all); });
  };
  const GradientCheck check = check_gradients(problem, check_options);
  ProgressLine::hide();
  write_file(options.junit, junit_xml(scene.name, check), options.force);
  write_file(options.record, gradient_baseline(scene.name, made_by(options, how), check), options.force);
  std::vector<ChangedRow> changed;
  if (!options.against.empty()) changed = changed_rows(options.against, check, options.change);
  const int exit_code = check.passed && changed.empty() ? kDone : kNotReached;
  if (options.json) {
    nlohmann::json object = to_json(scene, check, exit_code);
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
    print(scene, check, options.all);
    if (!options.against.empty()) print_changes(changed, options);
  }
  return exit_code;
}

}  // namespace

void add_gradcheck(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "gradcheck",
      "Check the gradient of a scene's loss with respect to everything it can depend on: initial state,\n"
      "controls, every parameter of every body, joint and shape. Each number of the adjoint stands against\n"
      "central differences and against the exact derivative by dual numbers; tolerances are measured, not\n"
      "chosen. Exit 1 where adjoint and dual differ; where both agree and differences do not, a line says so.\n"
      "In float64. With --device cuda the adjoint and the losses are the GPU's,\n"
      "the duals the processor's.");
  static CheckArguments options;
  add_scene(*command, options);
  command->add_option("--controls", options.controls, "controls checked one by one (all are, along one direction)")
      ->check(in_range(0, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--at", options.at,
                   "where to check: start, a random start of the optimiser, or scene, its own values")
      ->check(one_of({"start", "scene"}))
      ->type_name("PLACE")
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
      ->check(CLI::NonNegativeNumber)
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
