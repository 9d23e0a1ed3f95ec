#include "apps/optimize_details.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "apps/console.h"
#include "apps/found_values.h"
#include "apps/interrupt.h"
#include "apps/json_text.h"
#include "apps/shown_motion.h"
#include "autodiff/check/gradient_over_time.h"
#include "autodiff/check/standard_errors.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;

constexpr int kTimes = 200;                ///< at which the gradient by the state is told
constexpr std::size_t kMostTermRows = 48;  ///< each is a run
constexpr std::size_t kMostStarts = 64;    ///< as courses are kept of
constexpr std::size_t kMostStartMotions = 8;
constexpr double kMostHessianSteps = 2e6;  ///< steps of Hessian products, as a guard of time

Json found_json(const Problem& problem, const OptimizeResult& result) {
  const std::vector<double>& x = result.starts[result.best].x;
  const double cost = static_cast<double>(x.size()) * problem.simulation.steps;
  const bool affordable = cost < kMostHessianSteps && !interrupted();
  const auto errors = affordable ? standard_errors(problem, x) : std::nullopt;
  const VariableLayout layout = variable_layout(problem);
  Json rows = Json::array();
  for (const FoundValue& value : found_values(result.problem)) {
    const auto v = static_cast<std::size_t>(value.variable);
    const Variable& variable = problem.variables[v];
    Json row{{"name", value.name},
             {"value", value.value},
             {"unit", value.unit},
             {"note", value.note},
             {"lower", finite_or_null(variable.lower)},
             {"upper", finite_or_null(variable.upper)}};
    if (errors && layout.size[v] == 1 && !variable.is_tied()) {
      row["standard_error"] = finite_or_null((*errors)[static_cast<std::size_t>(layout.offset[v])] * variable.scale);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json starts_json(const OptimizeResult& result) {
  Json starts = Json::array();
  for (const StartResult& start : std::span(result.starts).first(std::min(result.starts.size(), kMostStarts))) {
    starts.push_back({{"loss", finite_or_null(start.loss)},
                      {"gradient_norm", finite_or_null(start.gradient_norm)},
                      {"iterations", start.iterations},
                      {"stopped_by", to_string(start.stopped_by)}});
  }
  return starts;
}

Json courses_json(const OptimizeResult& result) {
  Json courses = Json::array();
  for (const std::vector<CoursePoint>& course : result.courses) {
    Json points = Json::array();
    for (const CoursePoint& point : course) points.push_back({point.iteration, point.loss});
    courses.push_back(std::move(points));
  }
  return courses;
}

/// The terms of the loss at points of the history.
Json terms_json(const Problem& problem, const OptimizeResult& result, const ExecutionOptions& how) {
  std::vector<const OptimizeProgress*> rows;
  for (const OptimizeProgress& row : result.history) {
    if (how.keep_points && !row.x.empty()) rows.push_back(&row);
  }
  Json names = Json::array(), iterations = Json::array(), values = Json::array();
  for (const std::size_t k : picked(rows.size(), 1, kMostTermRows)) {
    if (interrupted()) return {};
    const SimulationResult run = simulate(with_values(problem, rows[k]->x), how);
    if (run.status.stopped()) continue;
    if (names.empty()) names = run.term_names;
    iterations.push_back(rows[k]->iteration);
    values.push_back(run.terms);
  }
  if (iterations.size() < 2) return {};
  return {{"names", names}, {"iterations", iterations}, {"values", values}};
}

Json over_time_json(const Problem& problem, int threads) {
  if (interrupted()) return {};
  const GradientOverTime over = gradient_over_time(problem, kTimes, threads);
  if (over.steps.size() < 2) return {};
  Json time = Json::array(), growth = Json::array();
  for (const int step : over.steps) time.push_back(step * problem.simulation.time_step);
  for (const double x : over.growth) growth.push_back(finite_or_null(x));
  return {{"time", time}, {"position", over.position}, {"velocity", over.velocity}, {"growth", growth}};
}

}  // namespace

Json optimize_details(const Problem& problem, const OptimizeResult& result, const ExecutionOptions& how) {
  Json details{
      {"found", found_json(problem, result)}, {"starts", starts_json(result)}, {"starts_over", courses_json(result)}};
  const auto add = [&](const char* key, Json value) {
    if (!value.is_null()) details[key] = std::move(value);
  };
  const auto has_error = [](const Json& row) { return row.contains("standard_error"); };
  if (std::ranges::any_of(details["found"], has_error)) {
    details["found_words"] =
        "The standard errors are those of least squares at the optimum: 2 s² H⁻¹ with the Hessian H of the loss, and "
        "s² "
        "its value over the samples less the numbers found. They hold where the errors of the samples are independent "
        "and equally large.";
  }
  add("terms", terms_json(problem, result, how));
  add("gradient_over_time", over_time_json(result.problem, how.threads));
  return details;
}

Json motions_of_starts(const Problem& problem, const OptimizeResult& result, const ExecutionOptions& how) {
  std::vector<std::size_t> order(result.starts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::less{}, [&](std::size_t s) { return result.starts[s].loss; });
  const Json shapes = shapes_json(result.problem.model), bodies = bodies_json(result.problem.model);
  Json motions = Json::array();
  for (const std::size_t s : order) {
    const StartResult& start = result.starts[s];
    const bool other = static_cast<int>(s) != result.best && std::isfinite(start.loss);
    if (!other || motions.size() == kMostStartMotions || interrupted()) continue;
    const Problem own = with_values(problem, start.x);
    ShownMotion motion = shown_motion(own, simulate(own, how), 30, 600);
    motion.name = "start " + std::to_string(s) + ": loss " + number(start.loss);
    Json json = to_json(motion, own.model);
    add_differences(shapes, bodies, own.model, json);
    motions.push_back(std::move(json));
  }
  return {{"motions", motions}};
}

}  // namespace backdrive::app
