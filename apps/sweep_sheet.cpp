#include "apps/sweep_sheet.h"

#include <cmath>

#include "apps/simulate.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

void append(nlohmann::json& row, const std::vector<double>& values, size_t columns, bool known) {
  for (size_t i = 0; i < columns; ++i) {
    if (known && i < values.size()) {
      row.push_back(values[i]);
    } else {
      row.push_back(nullptr);
    }
  }
}

std::vector<std::string> single_variables(const Problem& problem) {
  const VariableLayout layout = variable_layout(problem);
  std::vector<std::string> names;
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    if (layout.size[v] == 1 && !problem.variables[v].is_tied()) names.push_back(problem.variables[v].name);
  }
  return names;
}

}  // namespace

bool SweepPoint::finite() const {
  return !result.status.stopped() && std::isfinite(result.loss);
}

std::string SweepPoint::status() const {
  if (finite()) return "ok";
  if (!result.status.stopped()) return "non-finite loss";
  const auto& joints = problem.model.joint_names;
  return "non-finite in step " + std::to_string(result.status.stopped_step / problem.simulation.substeps) +
         (result.status.joint >= 0 ? " at joint " + joints.at(result.status.joint) : "");
}

nlohmann::json SweepSheet::heading(const Problem& problem) const {
  nlohmann::json row = nlohmann::json::array();
  for (const Axis& axis : grid_.axes) row.push_back(axis.path);
  row.push_back("status");
  if (!problem.loss.empty()) row.push_back("loss");
  for (const LossTerm& term : problem.loss) row.push_back("loss/" + term.name);
  if (optimised_) {
    for (const char* name : {"iterations", "stopped_by", "reached_goal"}) row.push_back(name);
    for (const std::string& name : single_variables(problem)) row.push_back("best/" + name);
  }
  for (const std::string& name : position_names(problem.model)) row.push_back("final/" + name);
  for (const std::string& name : velocity_names(problem.model)) row.push_back("final/" + name);
  return row;
}

void SweepSheet::add(long long index, const SweepPoint& point) {
  const nlohmann::json own = heading(point.problem);
  if (heading_.is_null()) {
    heading_ = own;
    sink_(heading_);
  } else if (own != heading_) {
    input_error("the points of a sweep need the same joints, variables and loss terms; point " + grid_.label(index) +
                " has others than the first one");
  }
  const PointResult& r = point.result;
  const Problem& problem = point.problem;
  const bool finite = point.finite();
  nlohmann::json row = nlohmann::json::array();
  for (const std::string& value : grid_.values(index)) row.push_back(value);
  row.push_back(point.status());
  if (!problem.loss.empty()) append(row, {r.loss}, 1, finite);
  append(row, r.terms, problem.loss.size(), finite);
  if (optimised_) {
    row.push_back(point.iterations);
    row.push_back(to_string(point.stopped_by));
    row.push_back(point.reached_goal ? "true" : "false");
    append(row, point.variables, single_variables(problem).size(), finite);
  }
  append(row, r.q, problem.model.topology.joint_nq, true);
  append(row, r.qd, problem.model.topology.joint_nv, true);
  sink_(row);
}

void write_row(CsvWriter& csv, const nlohmann::json& row) {
  for (const nlohmann::json& cell : row) {
    if (cell.is_null()) {
      csv.blank();
    } else if (cell.is_string()) {
      csv.cell(cell.get_ref<const std::string&>());
    } else {
      csv.cell(cell.get<double>());
    }
  }
  csv.end_row();
}

}  // namespace backdrive::app
