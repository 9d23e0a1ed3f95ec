#include "apps/trajectory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <span>

#include "apps/body_states.h"
#include "apps/csv.h"
#include "apps/energy.h"
#include "autodiff/problem/inputs.h"
#include "engine/quaternion.h"
#include "models/coordinates.h"

namespace backdrive::app {
namespace {

constexpr std::array<std::pair<EffortPart, const char*>, 7> kParts{{{EffortPart::command, "command"},
                                                                    {EffortPart::drive, "drive"},
                                                                    {EffortPart::spring, "spring"},
                                                                    {EffortPart::damping, "damping"},
                                                                    {EffortPart::friction, "friction"},
                                                                    {EffortPart::limit, "limit"},
                                                                    {EffortPart::total, "total"}}};
constexpr const char* kAxes[] = {"x", "y", "z"};

/// A column: its name, in how many states or steps it has numbers, and these.
struct Column {
  std::string name;
  int rows;
  std::function<double(int row)> number;
};

/// Column by column, from numbers that are at hand.
class Columns {
 public:
  Columns(const Problem& problem, const RecordedColumns& asked, const SimulationResult& result)
      : problem_(problem),
        model_(problem.model),
        t_(problem.model.topology),
        asked_(asked),
        result_(result),
        control_(initial_control<double>(problem, 1)),
        efforts_(efforts_in_table(problem.model, asked)) {
    add("time", [&](int row) { return row * problem_.simulation.time_step; });
    states();
    controls();
    efforts();
    if (!asked.bodies.empty() || asked.energy || asked.momentum || asked.center_of_mass) {
      bodies_.emplace(model_, result.steps + 1, result.q, result.qd);
    }
    bodies();
    if (asked.center_of_mass) center_of_mass();
    if (asked.momentum) momentum();
    if (asked.energy) energy();
  }
  const std::vector<Column>& all() const { return columns_; }

 private:
  using Vec = Vec3<double>;
  using Number = std::function<double(int)>;

  void add(std::string name, Number number) {
    columns_.push_back({std::move(name), result_.steps + 1, std::move(number)});
  }
  /// Of what happened in the step that begins there: the mean over its substeps.
  void add_of_steps(std::string name, Number number) {
    const int substeps = problem_.simulation.substeps;
    if (substeps == 1) {
      columns_.push_back({std::move(name), result_.steps, std::move(number)});
      return;
    }
    columns_.push_back({std::move(name), result_.steps, [number = std::move(number), substeps, this](int row) {
                          const int count = std::min(substeps, result_.steps - row);
                          double sum = 0;
                          for (int k = 0; k < count; ++k) sum += number(row + k);
                          return sum / count;
                        }});
  }
  void add_vector(const std::string& name, const std::function<Vec(int)>& of) {
    for (int k = 0; k < 3; ++k) {
      add(name + "/" + kAxes[k], [of, k](int row) {
        const Vec v = of(row);
        return k == 0 ? v.x : k == 1 ? v.y : v.z;
      });
    }
  }

  void states() {
    const std::vector<std::string> positions = position_names(model_), velocities = velocity_names(model_);
    for (int i = 0; i < t_.joint_nq; ++i) {
      add(positions[i], [this, i](int row) { return result_.q[static_cast<std::size_t>(row) * t_.nq + i]; });
    }
    for (int i = 0; i < t_.joint_nv; ++i) add(velocities[i], [this, i](int row) { return velocity(row, i); });
    for (int c = 0; c < couplings(); ++c) {
      add(model_.coupling_names[c] + "/position",
          [=, this](int row) { return coupling_position(model_, c, state(result_.q, row, t_.nq)); });
      add(model_.coupling_names[c] + "/velocity",
          [=, this](int row) { return coupling_velocity(model_, c, state(result_.qd, row, t_.nv)); });
    }
  }
  int couplings() const { return static_cast<int>(model_.coupling_names.size()); }
  static std::span<const double> state(const std::vector<double>& all, int row, int count) {
    return std::span(all).subspan(static_cast<std::size_t>(row) * count, count);
  }
  double velocity(int row, int v) const { return result_.qd[static_cast<std::size_t>(row) * t_.nv + v]; }

  void controls() {
    for (const ControlRow& control : control_rows(model_)) {
      std::string name = control.name;
      if (control.channel == ControlChannel::effort) {
        const int term = find_effort(control.row, EffortPart::actuator);
        if (term >= 0) {
          add_of_steps(name, [this, term](int row) { return effort(row, term); });
          const auto components = effort_components(model_.joint_types[control.controlled]);
          name = model_.joint_names[control.controlled] + "/" + command_name(components[control.component]);
        }
      }
      columns_.push_back({std::move(name), problem_.simulation.steps, [this, at = control.row](int row) {
                            return control_.u.empty() ? 0 : control_.u(row * t_.nu + at, 0);
                          }});
    }
  }

  double effort(int row, int term) const {
    return result_.efforts[static_cast<std::size_t>(row) * efforts_.size() + static_cast<std::size_t>(term)];
  }
  /// Of the degree of freedom whose velocity is row v; −1: not in the table.
  int find_effort(int v, EffortPart part, bool power = false) const {
    for (std::size_t k = 0; k < efforts_.size(); ++k) {
      const EffortTerm& term = efforts_[k];
      if (t_.links[term.link].v + term.dof == v && term.part == part && term.power == power) return static_cast<int>(k);
    }
    return -1;
  }
  void efforts() {
    for (const int joint : asked_.efforts) {
      const std::string& name = model_.joint_names[joint];
      const int first = t_.links[model_.link_of_joint(joint)].v;
      std::vector<int> powers;
      int v = first;
      for (const JointComponent& component : effort_components(model_.joint_types[joint])) {
        for (const auto& [part, word] : kParts) {
          add_of_steps(name + "/" + component.name() + "/" + word,
                       [this, term = find_effort(v, part)](int row) { return effort(row, term); });
        }
        powers.push_back(find_effort(v++, EffortPart::actuator, true));
      }
      add_of_steps(name + "/power", [this, powers](int row) {
        double sum = 0;
        for (const int term : powers) sum += effort(row, term);
        return sum;
      });
    }
  }

  void bodies() {
    for (const int body : asked_.bodies) {
      const std::string name = "bodies/" + model_.body_names[body];
      add_vector(name + "/position", [this, body](int row) { return bodies_->position(row, body); });
      const char* const components[] = {"x", "y", "z", "w"};
      for (int k = 0; k < 4; ++k) {
        add(name + "/orientation/" + components[k], [this, body, k](int row) {
          const Mat3<double> axes = bodies_->axes(row, body);
          std::array<double, 9> rotation;
          std::copy_n(&axes.cx.x, 9, rotation.begin());
          return quaternion_of(rotation)[k];
        });
      }
      add_vector(name + "/velocity", [this, body](int row) { return bodies_->velocity(row, body); });
      add_vector(name + "/angular_velocity", [this, body](int row) { return bodies_->angular_velocity(row, body); });
    }
  }
  void center_of_mass() {
    add_vector("center_of_mass/position", [this](int row) { return bodies_->center_of_mass(row); });
    add_vector("center_of_mass/velocity", [this](int row) { return bodies_->velocity_of_center(row); });
  }
  void momentum() {
    add_vector("momentum/linear", [this](int row) { return bodies_->momentum(row); });
    add_vector("momentum/angular", [this](int row) { return bodies_->angular_momentum(row); });
  }
  void energy() {
    add("energy/kinetic",
        [this](int row) { return kinetic_energy(model_, *bodies_, row, state(result_.qd, row, t_.nv)); });
    add("energy/potential",
        [this](int row) { return potential_energy(model_, *bodies_, row, state(result_.q, row, t_.nq)); });
    // What actuators have done so far.
    work_.assign(static_cast<std::size_t>(result_.steps) + 1, 0.0);
    for (std::size_t k = 0; k < efforts_.size(); ++k) {
      if (!efforts_[k].power || efforts_[k].part != EffortPart::actuator) continue;
      double done = 0;
      for (int step = 0; step < result_.steps; ++step) {
        done += problem_.simulation.time_step * effort(step, static_cast<int>(k));
        work_[step + 1] += done;
      }
    }
    add("energy/work", [this](int row) { return work_[row]; });
  }

  const Problem& problem_;
  const Model& model_;
  const Topology& t_;
  const RecordedColumns& asked_;
  const SimulationResult& result_;
  const Control<double> control_;
  const std::vector<EffortTerm> efforts_;
  std::vector<Column> columns_;
  std::optional<BodyStates> bodies_;  ///< where a column asks for them
  std::vector<double> work_;
};

}  // namespace

std::vector<EffortTerm> efforts_in_table(const Model& model, const RecordedColumns& columns) {
  std::vector<EffortTerm> terms;
  for (int joint = 0; joint < static_cast<int>(model.joint_names.size()); ++joint) {
    const int degrees = joint_size(model.joint_types[joint]).nv;
    const bool asked = std::ranges::find(columns.efforts, joint) != columns.efforts.end();
    for (int k = 0; k < degrees; ++k) {
      const auto add = [&](EffortPart part, bool power = false) {
        terms.push_back(effort_term(model, joint, part, power, k));
      };
      if (is_driven(model, joint)) add(EffortPart::actuator);
      for (const auto& [part, word] : kParts) {
        if (asked) add(part);
      }
      if (asked || columns.energy) add(EffortPart::actuator, true);
    }
  }
  return terms;
}

void write_trajectory(std::ostream& stream, const Problem& problem, const RecordedColumns& columns,
                      const SimulationResult& result) {
  const Columns table(problem, columns, result);
  CsvWriter csv(stream);
  for (const Column& column : table.all()) csv.cell(column.name);
  csv.end_row();
  for (int row = 0; row <= result.steps; row += problem.simulation.substeps) {
    for (const Column& column : table.all()) {
      row < column.rows ? csv.cell(column.number(row)) : csv.blank();
    }
    csv.end_row();
  }
}

}  // namespace backdrive::app
