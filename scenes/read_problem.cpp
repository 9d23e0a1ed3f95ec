// Simulation, initial state, controls and options of a scene.
#include <algorithm>
#include <cmath>

#include "autodiff/problem/dependence.h"
#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

constexpr double kMostSteps = 1e7;

}  // namespace

ProblemReader::ProblemReader(const View& root, std::filesystem::path directory, Problem& problem, Mistakes& mistakes,
                             const UnreadParts& unread)
    : root_(root), directory_(std::move(directory)), problem_(problem), mistakes_(mistakes), unread_(unread) {
  const Model& model = problem_.model;
  link_of_joint_.assign(model.joint_names.size(), -1);
  for (size_t i = 0; i < model.topology.links.size(); ++i) {
    if (model.topology.links[i].first) link_of_joint_[model.topology.links[i].joint] = static_cast<int>(i);
  }
}

template <class Read>
void ProblemReader::with_part(const char* key, const Read& read) {
  mistakes_.attempt([&] { read(root_[key]); });
}

const Simulation& ProblemReader::simulation() const {
  if (!has_steps_) Mistakes::leave_off();
  return problem_.simulation;
}

void ProblemReader::need_limits(int joint) const {
  if (mistakes_.empty()) return;
  const NodePtr limit = value_at(root_.node(), {"model", "joints", problem_.model.joint_names[joint], "limit"});
  if (limit && is_told(*limit)) Mistakes::leave_off();
}

void ProblemReader::refuse_path(const View& path, const Error& error) const {
  const std::string_view text = path.text();
  if (mistakes_.names_lost(text.substr(0, text.find('/')))) Mistakes::leave_off();
  path.refuse(std::string("the path of a model parameter (") + error.what() + ")");
}

int ProblemReader::moving_joint(const std::string& name, Place place, const std::string& path) const {
  const Model& model = problem_.model;
  if (unread_.joints.contains(name)) Mistakes::leave_off();
  const std::string what = "value '" + excerpt(name) + "'";
  const int joint = model.find_joint(name);
  if (joint < 0) {
    if (mistakes_.names_lost("joints")) Mistakes::leave_off();
    fail(root_.sources(), place, path, what, "the name of a joint",
         nearest_name(name.substr(0, 200), model.joint_names.list()));
  }
  if (joint_size(model.joint_types[joint]).nv == 0) {
    fail(root_.sources(), place, path, what, "a joint that moves (this one is fixed)");
  }
  return joint;
}

int ProblemReader::body(const View& view) const {
  const int body = problem_.model.find_body(view.text());
  if (body < 0) refuse_name(view, "the name of a body", "bodies", problem_.model.body_names.list(), mistakes_);
  return body;
}

void ProblemReader::read_simulation() {
  with_part("simulation", [&](const View& view) {
    Simulation& simulation = problem_.simulation;
    const double time_step = view["time_step"].number();
    const int substeps = view["substeps"].integer();
    double steps;
    if (view.given("steps")) {
      steps = view["steps"].integer();
    } else {
      const View duration = view["duration"];
      steps = std::round((duration ? duration.number() : 1.0) / time_step);
      if (!(steps >= 1 && steps <= kMostSteps)) {
        (duration ? duration : view["time_step"])
            .refuse("a run of 1 to 10000000 steps of " + view["time_step"].text() + " (duration / time_step)");
      }
    }
    if (steps * substeps > kMostSteps) {
      view["substeps"].refuse("a run of at most 10000000 substeps; " + std::to_string(static_cast<int>(steps)) +
                              " steps have " + std::to_string(static_cast<std::int64_t>(steps) * substeps));
    }
    simulation.substeps = substeps;
    simulation.time_step = time_step / substeps;
    simulation.steps = static_cast<int>(steps) * substeps;
    has_steps_ = true;
  });
}

void ProblemReader::read_initial_state() {
  const Model& model = problem_.model;
  problem_.initial_position = neutral_positions(model.topology);
  problem_.initial_velocity.assign(model.topology.nv, 0.0);
  std::vector<bool> positions(model.joint_names.size(), false), velocities = positions;
  with_part("initial_state", [&](const View& part) {
    for (const auto& [name, view, place] : part.entries()) {
      mistakes_.attempt(
          [&, &name = name, &view = view, &place = place] { read_start(name, view, place, positions, velocities); });
    }
  });
  if (mistakes_.empty()) follow_couplings(std::move(positions), std::move(velocities));
}

void ProblemReader::read_start(const std::string& name, const View& view, Place place, std::vector<bool>& positions,
                               std::vector<bool>& velocities) {
  const Model& model = problem_.model;
  const int joint = moving_joint(name, place, view.path());
  if (model.joint_loops[joint]) view.refuse(kJointOfTheTree);
  const Link& link = model.topology.links[link_of_joint_[joint]];
  const JointType type = model.joint_types[joint];
  positions[joint] = view.given("position");
  velocities[joint] = view.given("velocity");
  mistakes_.attempt([&] {
    read_components(view["position"], joint, "position", position_components(type), &problem_.initial_position[link.q]);
  });
  mistakes_.attempt([&] {
    read_components(view["velocity"], joint, "velocity", velocity_components(type), &problem_.initial_velocity[link.v]);
  });
  const auto read_turning = [&](const char* key, const auto& read) {
    mistakes_.attempt([&] {
      const View value = view[key];
      if (!value) return;
      if (!has_quaternion(type)) {
        value.refuse("no such key for joint '" + name + "', which is " + to_string(type) + " (ball and free have it)");
      }
      read(value);
    });
  };
  read_turning("orientation", [&](const View& orientation) {
    const std::array<double, 4> q = read_orientation(orientation);
    std::copy(q.begin(), q.end(), problem_.initial_position.begin() + link.q);
  });
  read_turning("angular_velocity", [&](const View& angular) {
    const std::vector<double> omega = angular.numbers();
    std::copy(omega.begin(), omega.end(), problem_.initial_velocity.begin() + link.v);
  });
}

void ProblemReader::follow_couplings(std::vector<bool> positions, std::vector<bool> velocities) {
  const Topology& t = problem_.model.topology;
  const CouplingParameters& own = problem_.model.couplings;
  for (std::size_t c = 0; c < t.couplings.size(); ++c) {
    if (!t.couplings[c].holds) continue;
    // The first of its joints that nothing is said of, neither by the scene nor by a coupling before.
    const auto settle = [&](std::vector<bool>& given, std::vector<double>& numbers, int CouplingTerm::*row,
                            double sum) {
      int free = -1;
      const int first = t.couplings[c].first_term;
      for (int k = first; k < first + t.couplings[c].term_count; ++k) {
        const CouplingTerm& term = t.coupling_terms[k];
        if (free < 0 && !given[term.joint] && own.ratios(k) != 0) {
          free = k;
        } else {
          sum += own.ratios(k) * numbers[term.*row];
        }
      }
      if (free < 0) return;
      given[t.coupling_terms[free].joint] = true;
      numbers[t.coupling_terms[free].*row] = sum == 0 ? 0 : -sum / own.ratios(free);
    };
    settle(positions, problem_.initial_position, &CouplingTerm::q, own.offset(static_cast<int>(c)));
    settle(velocities, problem_.initial_velocity, &CouplingTerm::v, 0);
  }
}

void ProblemReader::read_components(const View& view, int joint, std::string_view quantity,
                                    std::span<const JointComponent> components, double* values) const {
  if (!view) return;
  const auto is_asked = [&](const JointComponent& c) { return quantity == c.quantity; };
  const std::string of = " for joint '" + problem_.model.joint_names[joint] + "', which is " +
                         to_string(problem_.model.joint_types[joint]);
  const auto count = std::count_if(components.begin(), components.end(), is_asked);
  const bool by_name = view.kind() == NodeKind::map;
  const std::size_t given = view.kind() == NodeKind::scalar ? 1 : view.node()->list.size();
  if (count == 0 || (by_name ? count == 1 : given != static_cast<std::size_t>(count))) {
    view.refuse((count == 0 ? "no such key" : count == 1 ? "a number" : std::to_string(count) + " numbers") + of);
  }
  if (by_name) {
    const auto has = [&](const std::string& axis) {
      return std::ranges::any_of(components, [&](const JointComponent& c) { return is_asked(c) && axis == c.axis; });
    };
    for (const Entry& entry : view.node()->map) {
      if (!has(entry.key)) view[entry.key].refuse("no such component" + of);
    }
  }
  const Dimension dimension = quantity == "position" ? Dimension::joint_position : Dimension::joint_velocity;
  std::size_t next = 0;
  for (const JointComponent& c : components) {
    const JointType unit = c.turns ? JointType::revolute : JointType::prismatic;
    if (is_asked(c) && !by_name) *values = view.number_at(next++, dimension, unit);
    if (is_asked(c) && by_name && view.given(c.axis)) *values = view[c.axis].number(dimension, &unit);
    ++values;
  }
}

Dimension dimension_of(ControlChannel channel) {
  switch (channel) {
    case ControlChannel::effort:
      return Dimension::joint_effort;
    case ControlChannel::target_position:
      return Dimension::joint_position;
    case ControlChannel::target_velocity:
      return Dimension::joint_velocity;
  }
  return Dimension::joint_effort;
}

int ProblemReader::controlled(const std::string& name, Place place, const View& at) const {
  const Model& model = problem_.model;
  if (unread_.couplings.contains(name)) Mistakes::leave_off();
  const int coupling = model.find_coupling(name);
  if (coupling < 0 && model.find_joint(name) < 0 && mistakes_.names_lost("couplings")) Mistakes::leave_off();
  if (coupling < 0) return moving_joint(name, place, at.path());
  if (!model.coupling_holds[coupling]) return find_controlled(model, name);
  at.refuse("a coupling that is not held (the motion of this one is given), or a joint");
}

void ProblemReader::check_channel(int controlled, ControlChannel channel, const View& view) const {
  if (channel == ControlChannel::effort) return;
  if (control_row(problem_.model, controlled, channel) >= 0) return;
  const bool is_joint = controlled < static_cast<int>(problem_.model.joint_names.size());
  view.refuse(std::string("channel effort: the ") + (is_joint ? "joint" : "coupling") + " '" +
              name_of_controlled(problem_.model, controlled) + "' has no drive to give targets to");
}

void ProblemReader::check_knots(size_t knots, const View& view) const {
  if (knots > static_cast<size_t>(simulation().control_steps())) {
    view.refuse("at most as many knots as steps, which are " + std::to_string(simulation().control_steps()));
  }
}

std::vector<ProblemReader::NamedComponent> ProblemReader::channel_parts(int controlled, const std::string& word,
                                                                        const View& view) const {
  const Model& model = problem_.model;
  const ControlChannel channel = channel_of(word);
  std::vector<NamedComponent> parts;
  std::string known;
  int index = 0;
  for (const JointComponent& c : controlled_components(model, controlled, channel)) {
    const bool has_unit = unit_of_controlled(model, controlled, channel, index);
    if (word == c.quantity) parts.push_back({index, c, has_unit});
    if (known.find(c.quantity) == std::string::npos) known += (known.empty() ? "" : " or ") + std::string(c.quantity);
    ++index;
  }
  const std::string of = described(controlled);
  if (parts.empty() && channel != ControlChannel::effort) view.refuse("channel effort: " + of + ", has no drive");
  if (parts.empty()) view.refuse("channel " + known + " of " + of);
  check_channel(controlled, channel, view);
  return parts;
}

std::string ProblemReader::described(int controlled) const {
  const Model& model = problem_.model;
  const std::string name = "'" + name_of_controlled(model, controlled) + "'";
  if (controlled >= static_cast<int>(model.joint_names.size())) return "coupling " + name;
  return "joint " + name + ", which is " + to_string(model.joint_types[controlled]);
}

std::vector<ProblemReader::NamedComponent> ProblemReader::asked_parts(std::vector<NamedComponent> parts,
                                                                      const View& view) {
  const View asked = view["component"];
  if (!asked) return parts;
  std::string known;
  for (const NamedComponent& part : parts) {
    const char* const axis = part.component.axis;
    if (asked.text() == axis) return {part};
    known += (known.empty() ? "one of " : ", ") + std::string(axis);
  }
  asked.refuse(parts.size() == 1 ? "no such key: there is one number" : known);
}

ControlSignal ProblemReader::read_signal(int controlled, ControlChannel channel, const NamedComponent& part,
                                         const View& view) const {
  const Dimension dimension = dimension_of(channel);
  ControlSignal signal{controlled, channel, {}, false, part.index};
  const JointType* const unit = part.unit();
  if (view.kind() != NodeKind::map) {
    signal.values = view.numbers(dimension, unit);
  } else if (view.given("values")) {
    signal.values = view["values"].numbers(dimension, unit);
  } else if (view.given("file")) {
    const std::string owner = name_of_controlled(problem_.model, controlled) + "/";
    std::vector<std::string> columns{owner + part.component.name()};
    // Where a table has both, `effort` is what acted (docs/scenes.md).
    if (channel == ControlChannel::effort) columns.insert(columns.begin(), owner + command_name(part.component));
    signal.values = read_column(view["file"], columns, dimension, unit);
  } else {
    view.refuse("one of the keys values and file");
  }
  if (view.kind() == NodeKind::map) signal.hold = view["hold"].flag();
  check_knots(signal.values.size(), view);
  return signal;
}

void ProblemReader::read_channel(int controlled, const std::string& word, const View& view) {
  const std::vector<NamedComponent> parts = channel_parts(controlled, word, view);
  const ControlChannel channel = channel_of(word);
  if (parts.size() == 1 && *parts[0].component.axis == 0) {
    const std::vector<Entry> none;
    for (const Entry& entry : view.kind() == NodeKind::map ? view.node()->map : none) {
      if (entry.key != "values" && entry.key != "file" && entry.key != "hold") {
        view[entry.key].refuse("no such component of " + described(controlled));
      }
    }
    problem_.controls.push_back(read_signal(controlled, channel, parts[0], view));
    return;
  }
  std::string known;
  for (const NamedComponent& part : parts) known += (known.empty() ? "" : ", ") + std::string(part.component.axis);
  const std::string expected = "a map of the components " + known + " of " + described(controlled);
  if (view.kind() != NodeKind::map) view.refuse(expected);
  for (const Entry& entry : view.node()->map) {
    const auto found =
        std::ranges::find_if(parts, [&](const NamedComponent& p) { return entry.key == p.component.axis; });
    if (found == parts.end()) view[entry.key].refuse(expected);
    problem_.controls.push_back(read_signal(controlled, channel, *found, view[entry.key]));
  }
}

void ProblemReader::read_controls() {
  with_part("controls", [&](const View& part) {
    for (const auto& [name, view, place] : part.entries()) {
      mistakes_.attempt([&, &name = name, &view = view, &place = place] { read_control(name, view, place); });
    }
  });
}

void ProblemReader::read_control(const std::string& name, const View& view, Place place) {
  const int owner = controlled(name, place, view);
  if (view.kind() != NodeKind::map) return read_channel(owner, "effort", view);
  for (const char* const key : {"effort", "torque", "force", "target_position", "target_velocity"}) {
    mistakes_.attempt([&] {
      if (view.given(key)) read_channel(owner, key, view[key]);
    });
  }
}

void ProblemReader::read_requires_grad() {
  with_part("requires_grad", [&](const View& paths) {
    for (const View& view : paths.items()) {
      mistakes_.attempt([&] {
        const bool on = view.kind() != NodeKind::map;
        const View path = on ? view : view["off"];
        try {
          set_requires_grad(problem_.model, path.text(), on);
        } catch (const Error& error) {
          refuse_path(path, error);
        }
      });
    }
  });
}

void ProblemReader::check_dependence() {
  if (problem_.loss.empty()) return;
  const LinkDependence links = loss_dependence(problem_);
  for (size_t v = 0; v < problem_.variables.size(); ++v) {
    const Variable& variable = problem_.variables[v];
    const char* const why = disconnected_reason(problem_, links, variable);
    if (!why) continue;
    mistakes_.attempt(
        [&] { variable_views_[v].refuse("a variable that the loss depends on (" + variable.name + ": " + why + ")"); });
  }
  for (const View& view : root_["requires_grad"].items()) {
    if (view.kind() == NodeKind::map) continue;
    const char* why = nullptr;
    for (const FieldSelection& s : select_fields(problem_.model, view.text())) {
      why = disconnected_reason(problem_.model, links, *s.field, s.item);
      if (!why) break;
    }
    if (!why) continue;
    mistakes_.attempt([&] { view.refuse(std::string("a parameter that the loss depends on (") + why + ")"); });
  }
}

RecordedColumns ProblemReader::read_recorded_columns() {
  const Model& model = problem_.model;
  RecordedColumns columns;
  const auto add = [](int item, std::vector<int>& to) {
    if (std::ranges::find(to, item) == to.end()) to.push_back(item);
  };
  const auto read = [&](const View& record, const char* key, const auto& all, const auto& index_of,
                        std::vector<int>& to) {
    mistakes_.attempt([&] {
      for (const View& name : record[key].items_or_itself()) {
        mistakes_.attempt([&] { name.text() == "*" ? all() : add(index_of(name), to); });
      }
    });
  };
  with_part("record", [&](const View& record) {
    read(
        record, "efforts",
        [&] {
          for (int joint = 0; joint < static_cast<int>(model.joint_names.size()); ++joint) {
            if (joint_size(model.joint_types[joint]).nv > 0) add(joint, columns.efforts);
          }
        },
        [&](const View& name) { return moving_joint(name); }, columns.efforts);
    read(
        record, "bodies",
        [&] {
          for (int one = 0; one < static_cast<int>(model.body_names.size()); ++one) add(one, columns.bodies);
        },
        [&](const View& name) { return body(name); }, columns.bodies);
    columns.energy = record["energy"].flag();
    columns.momentum = record["momentum"].flag();
    columns.center_of_mass = record["center_of_mass"].flag();
  });
  return columns;
}

void ProblemReader::read_options() {
  OptimizeOptions& options = problem_.optimize;
  const auto read = [&](const View& view, const char* key, const auto& take) {
    mistakes_.attempt([&] {
      if (const View value = view[key]) take(value);
    });
  };
  with_part("optimize", [&](const View& view) {
    read(view, "method", [&](const View& method) {
      for (const OptimizeMethod one : {OptimizeMethod::lbfgs, OptimizeMethod::adam}) {
        if (method.text() == to_string(one)) options.method = one;
      }
    });
    read(view, "iterations", [&](const View& x) { options.iterations = x.integer(); });
    read(view, "tolerance", [&](const View& x) { options.tolerance = x.number(); });
    read(view, "learning_rate", [&](const View& x) { options.learning_rate = x.number(); });
    read(view, "starts", [&](const View& x) { options.starts = x.integer(); });
    read(view, "goal", [&](const View& x) { options.goal = x.number(); });
    const View gradient = view["gradient"];
    read(gradient, "window", [&](const View& window) {
      options.window.steps = std::min(window.integer(), simulation().control_steps()) * simulation().substeps;
    });
    read(gradient, "cut", [&](const View& cut) {
      options.window.cut = cut.flag();
      if (options.window.cut && !gradient["window"]) cut.refuse("false where there is no `window`");
    });
    read(gradient, "clip", [&](const View& clip) { options.window.clip = clip.number(); });
  });
}

}  // namespace backdrive::scene
