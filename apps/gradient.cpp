// simctl gradient: every component of every gradient that a scene asks for.
#include <cmath>
#include <iostream>

#include "apps/console.h"
#include "apps/doubts.h"
#include "apps/gradient_doubts.h"
#include "apps/log.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/table.h"
#include "apps/zero_gradient.h"
#include "autodiff/problem/dependence.h"
#include "autodiff/tape/activity.h"

namespace backdrive::app {
namespace {

struct GradientArguments : Options {
  std::string at = "scene";
};

struct Row {
  std::string name;
  double value, gradient;
  std::string why;  ///< it is zero, as far as that is known
};

struct GradientTable {
  double loss = 0;
  std::vector<Row> rows;
};

/// The parameters whose gradient the scene requires, as variables; those that no chart has (limits that are not there)
/// and those that act on nothing as rows.
std::vector<Variable> required_parameters(const Model& model, std::vector<Row>& rows) {
  std::vector<Variable> variables;
  for (const Field& field : fields()) {
    const Parameter& parameter = field.in(model);
    for (int item = 0; item < parameter.items(); ++item) {
      if (!parameter.requires_grad(item)) continue;
      const std::string path = path_of(model, {&field, item, -1});
      if (field.may_be_infinite && !std::isfinite(parameter(item))) {
        rows.push_back({path, parameter(item), 0, "there is none"});
        continue;
      }
      // Of a path to several, some may be of what this one does not have.
      if (const char* const why = unused_reason(model, field, item)) {
        rows.push_back({path, field.components == 1 ? parameter(item) : std::nan(""), 0, why});
        continue;
      }
      Variable variable;
      variable.name = path;
      variable.kind = VariableKind::parameter;
      variable.parameter = {&field, item};
      variables.push_back(std::move(variable));
    }
  }
  return variables;
}

/// Takes out what the loss cannot depend on, and says so in rows.
void take_out_disconnected(Problem& problem, std::vector<Row>& rows) {
  const LinkDependence links = loss_dependence(problem);
  std::erase_if(problem.variables, [&](const Variable& variable) {
    const char* const why = disconnected_reason(problem, links, variable);
    if (why) rows.push_back({variable.name, std::nan(""), 0, why});
    return why != nullptr;
  });
}

/// Of one of a variable's numbers: the path of a parameter's component, or a knot's index.
std::string number_name(const Model& model, const Variable& variable, int k, int size) {
  if (size == 1) return variable.name;
  if (variable.kind != VariableKind::parameter) return variable.name + "/" + std::to_string(k);
  return path_of(model, {variable.parameter.field, variable.parameter.item, k});
}

/// Adds the gradient of everything that the problem has for variables. Throws Error (non_finite) where its motion
/// stops.
void add_rows(Problem problem, const GradientArguments& options, const ExecutionOptions& how, GradientTable& table) {
  take_out_disconnected(problem, table.rows);
  if (problem.variables.empty()) return;
  const std::vector<double> x = initial_points(problem, 2, how.seed)[options.at == "start" ? 1 : 0];
  const Slopes slopes = slopes_at(problem, {x}, how);
  if (slopes.status[0].stopped()) {
    throw Error(ErrorKind::non_finite, describe_stop(problem, 0, slopes.status[0]));
  }
  // What the rollout makes is finite, and its cotangents are not: an objective then says that there is no loss.
  if (!std::isfinite(slopes.loss[0])) {
    throw Error(ErrorKind::non_finite, "the loss, or a gradient of it, is not finite; try a shorter time step or run" +
                                           std::string(options.is_float32() ? ", or --precision float64" : ""));
  }
  for (const std::string& line : gradient_doubts(problem, gradient_reach(problem, x, how))) log_warning(line);
  table.loss = slopes.loss[0];
  const Problem at = with_values(problem, x);
  SimulationResult motion;
  const VariableLayout layout = variable_layout(problem);
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    if (variable.is_tied()) continue;  // counted with the one that it is tied to
    for (int k = 0; k < layout.size[v]; ++k) {
      const int n = layout.offset[v] + k;
      Row row{number_name(problem.model, variable, k, layout.size[v]), x[n] * variable.scale, slopes.gradient[0][n],
              ""};
      if (row.gradient == 0) {
        if (motion.steps == 0) motion = simulate(at, how);
        row.why = zero_reason(at, variable, motion);
      }
      table.rows.push_back(std::move(row));
    }
  }
}

nlohmann::json to_json(const Scene& scene, const GradientTable& table) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Row& row : table.rows) {
    nlohmann::json object = {{"name", row.name}, {"gradient", row.gradient}};
    if (std::isfinite(row.value)) object["value"] = row.value;
    if (row.gradient == 0) object["zero_because"] = row.why;
    rows.push_back(std::move(object));
  }
  return {{"scene", scene.name}, {"loss", table.loss}, {"rows", rows}, {"exit_code", kDone}};
}

void print(const Scene& scene, const GradientTable& table) {
  std::cout << scene.name << ": loss " << exact(table.loss) << "\n\n";
  Table text({{"gradient of the loss by", Table::Align::left}, {"value"}, {"gradient"}, {"", Table::Align::left}});
  int zeros = 0;
  for (const Row& row : table.rows) {
    const bool zero = row.gradient == 0;
    zeros += zero;
    text.add({row.name, std::isfinite(row.value) ? number(row.value) : "", exact(row.gradient),
              zero ? (row.why.empty() ? "zero" : "zero: " + row.why) : ""});
  }
  std::cout << text.text() << '\n'
            << count(static_cast<long long>(table.rows.size()), "number") << ", " << zeros << " of them zero\n";
}

int run_gradient(const GradientArguments& options) {
  ExecutionOptions how = execution(options);
  const Scene scene = load(options);
  keep_within_memory(scene.problem, how);
  for (const std::string& line : short_contacts(scene.problem)) log_warning(line);
  GradientTable table;
  // Parameters at the same point as the variables.
  const bool moved = options.at == "start" && !scene.problem.variables.empty();
  Problem required = moved ? with_values(scene.problem, initial_points(scene.problem, 2, how.seed)[1]) : scene.problem;
  required.variables = required_parameters(required.model, table.rows);
  if (required.variables.empty() && table.rows.empty() && scene.problem.variables.empty()) {
    input_error(scene.name + ": asks for no gradient, expected paths in requires_grad, or optimize/variables");
  }
  if (scene.problem.loss.empty()) input_error(scene.name + ": has no loss, expected optimize/loss");
  {
    const Ticker ticker(options.quiet, "gradient over " + count(scene.problem.simulation.steps, "step"));
    add_rows(scene.problem, options, how, table);
    add_rows(std::move(required), options, how, table);
  }
  if (options.json) {
    nlohmann::json object = to_json(scene, table);
    object["made_by"] = made_by(options, how);
    print_json(object);
  } else {
    print(scene, table);
  }
  return kDone;
}

}  // namespace

void add_gradient(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "gradient",
      "Print the gradient of a scene's loss: every component of every variable, and of every parameter whose path is\n"
      "in requires_grad, with its value; of a zero the reason, where one is known. Of a control every knot, of an\n"
      "orientation the three numbers of a small turn (docs/orientations.md).");
  static GradientArguments options;
  add_scene(*command, options);
  command
      ->add_option("--at", options.at,
                   "where: scene, its own values, or start, a random start of the optimiser (--seed)")
      ->check(one_of({"scene", "start"}))
      ->type_name("PLACE")
      ->capture_default_str();
  add_precision(*command, options);
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl gradient scenes/cartpole_swingup.yaml\n"
                 "  simctl gradient scenes/leg_length.yaml --at start --seed 3 --json",
                 [] { return run_gradient(options); });
}

}  // namespace backdrive::app
