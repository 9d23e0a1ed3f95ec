// simctl validate: read a scene, say what is in it, simulate nothing.
#include <cmath>
#include <iostream>

#include "apps/console.h"
#include "apps/doubts.h"
#include "apps/options.h"
#include "apps/simulate.h"
#include "apps/table.h"
#include "scenes/document.h"

namespace backdrive::app {
namespace {

nlohmann::json texts(const std::vector<SceneNote>& notes) {
  nlohmann::json lines = nlohmann::json::array();
  for (const SceneNote& note : notes) lines.push_back(note.text);
  return lines;
}

nlohmann::json to_json(const Scene& scene) {
  const Problem& p = scene.problem;
  const Topology& t = p.model.topology;
  nlohmann::json variables = nlohmann::json::array(), loss = nlohmann::json::array();
  for (const Variable& v : p.variables) variables.push_back(v.name);
  for (const LossTerm& term : p.loss) loss.push_back(term.name);
  return {{"valid", true},
          {"scene", scene.name},
          {"description", scene.description},
          {"bodies", p.model.body_names.list()},
          {"joints", p.model.joint_names.list()},
          {"shapes", p.model.shape_names.list()},
          {"couplings", p.model.coupling_names.list()},
          {"contact_pairs", t.contact_pairs.size()},
          {"degrees_of_freedom", t.joint_nv},
          {"controls", t.nu},
          {"integrator", to_string(t.integrator)},
          {"time_step", p.simulation.control_time_step()},
          {"steps", p.simulation.control_steps()},
          {"substeps", p.simulation.substeps},
          {"variables", variables},
          {"numbers", variable_layout(p).total},
          {"loss", loss},
          {"warnings", doubts(scene)},
          {"not_taken_over", texts(scene.notes)},
          {"method", to_string(p.optimize.method)},
          {"starts", p.optimize.starts},
          {"goal", p.optimize.goal},
          {"exit_code", static_cast<int>(kDone)}};
}

/// "a, b, c" cut to what a screen holds.
std::string listing(const std::vector<std::string>& names) {
  std::string text = std::to_string(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? ": " : ", ";
    if (text.size() > 80) return text + "...";
    text += names[i];
  }
  return text;
}

std::string joints_by_type(const Model& model) {
  std::vector<std::string> parts;
  for (const JointType type : kJointTypes) {
    int n = 0;
    for (const JointType t : model.joint_types) n += t == type;
    if (n > 0) parts.push_back(std::to_string(n) + " " + to_string(type));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

void print(const Scene& scene) {
  const Problem& p = scene.problem;
  Table table({{"scene", Table::Align::left}, {scene.name, Table::Align::left}});
  if (!scene.description.empty()) table.add({"description", scene::excerpt(std::string_view(scene.description), 100)});
  table.add({"bodies", listing(p.model.body_names)});
  table.add({"joints", listing(p.model.joint_names)});
  table.add({"", joints_by_type(p.model)});
  table.add({"shapes", std::to_string(p.model.shape_names.size())});
  if (!p.model.coupling_names.empty()) table.add({"couplings", listing(p.model.coupling_names)});
  table.add({"pairs that may touch", std::to_string(p.model.topology.contact_pairs.size())});
  if (const std::string words = contact_words(p); !words.empty()) table.add({"contact", words});
  table.add({"degrees of freedom", std::to_string(p.model.topology.joint_nv)});
  table.add({"time", steps_text(p.simulation) + ": " + number(p.simulation.steps * p.simulation.time_step) + " s"});
  if (!p.variables.empty()) {
    std::vector<std::string> names;
    for (const Variable& v : p.variables) names.push_back(v.name);
    table.add({"variables", listing(names)});
    table.add({"", count(variable_layout(p).total, "number")});
  }
  if (!p.loss.empty()) {
    std::vector<std::string> names;
    for (const LossTerm& term : p.loss) names.push_back(term.name);
    table.add({"loss terms", listing(names)});
  }
  if (!p.variables.empty()) {
    table.add({"optimiser", std::string(to_string(p.optimize.method)) + ", " + count(p.optimize.starts, "start") +
                                ", at most " + count(p.optimize.iterations, "iteration")});
    if (std::isfinite(p.optimize.goal)) table.add({"goal", number(p.optimize.goal)});
  }
  std::cout << table.text();
  for (const std::string& line : doubts(scene)) std::cout << "warning: " << line << "\n";
  std::cout << green("OK") << "\n";
}

int run_validate(const Options& options) {
  const Scene scene = load(options);
  if (options.json) {
    print_json(to_json(scene));
  } else {
    print(scene);
  }
  return kDone;
}

}  // namespace

void add_validate(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "validate",
      "Check a scene without running it. Prints OK and a summary, or every error (twenty at most) with file,\n"
      "line, column, the offending value and what was expected (exit 3; with --json as objects). Warns of\n"
      "what is hardly meant: angles of more than a turn without a unit, starts beyond limits, shapes that begin\n"
      "in one another, quaternions that look like (w, x, y, z), loops that are open.");
  static Options options;
  add_scene(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl validate scenes/arm_reach.yaml\n"
                 "  simctl validate my_robot.yaml --set joints/elbow/damping=0.1 --json",
                 [] { return run_validate(options); });
}

}  // namespace backdrive::app
