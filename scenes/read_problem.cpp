// Simulation, initial state, controls and options of a scene.
#include <algorithm>
#include <cmath>

#include "autodiff/problem/dependence.h"
#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

constexpr double kMostSteps = 1e7;

}  // namespace

ProblemReader::ProblemReader(const View& root, std::filesystem::path directory, Problem& problem)
    : root_(root), directory_(std::move(directory)), problem_(problem) {
  const Model& model = problem_.model;
  link_of_joint_.assign(model.joint_names.size(), -1);
  for (size_t i = 0; i < model.topology.links.size(); ++i) {
    if (model.topology.links[i].first) link_of_joint_[model.topology.links[i].joint] = static_cast<int>(i);
  }
}

int ProblemReader::moving_joint(const std::string& name, Place place, const std::string& path) const {
  const Model& model = problem_.model;
  const std::string what = "value '" + excerpt(name) + "'";
  const int joint = model.find_joint(name);
  if (joint < 0) {
    fail(root_.sources(), place, path, what, "the name of a joint",
         nearest_name(name.substr(0, 200), model.joint_names.list()));
  }
  if (joint_size(model.joint_types[joint]).nv == 0) {
    fail(root_.sources(), place, path, what, "a joint that moves (this one is fixed)");
  }
  return joint;
}

int ProblemReader::joint_of_one_degree(const View& name) const {
  const int joint = moving_joint(name.text(), name.node()->place, name.path());
  const JointType type = problem_.model.joint_types[joint];
  if (!has_one_degree(type)) {
    name.refuse("a revolute or prismatic joint (this one is " + std::string(to_string(type)) + ")");
  }
  return joint;
}

int ProblemReader::body(const View& view) const {
  const int body = problem_.model.find_body(view.text());
  if (body < 0) {
    view.refuse("the name of a body", nearest_name(view.text().substr(0, 200), problem_.model.body_names.list()));
  }
  return body;
}

void ProblemReader::read_simulation() {
  const View view = root_["simulation"];
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
}

void ProblemReader::read_initial_state() {
  const Model& model = problem_.model;
  problem_.initial_position = neutral_positions(model.topology);
  problem_.initial_velocity.assign(model.topology.nv, 0.0);
  for (const auto& [name, view, place] : root_["initial_state"].entries()) {
    const int joint = moving_joint(name, place, view.path());
    if (model.joint_loops[joint]) view.refuse(kJointOfTheTree);
    const Link& link = model.topology.links[link_of_joint_[joint]];
    const JointType type = model.joint_types[joint];
    read_components(view["position"], joint, "position", position_components(type), &problem_.initial_position[link.q]);
    read_components(view["velocity"], joint, "velocity", velocity_components(type), &problem_.initial_velocity[link.v]);
    for (const char* const key : {"orientation", "angular_velocity"}) {
      if (view.given(key) && !has_quaternion(type)) {
        view[key].refuse("no such key for joint '" + name + "', which is " + to_string(type) +
                         " (ball and free have it)");
      }
    }
    if (const View orientation = view["orientation"]) {
      const std::array<double, 4> q = read_orientation(orientation);
      std::copy(q.begin(), q.end(), problem_.initial_position.begin() + link.q);
    }
    if (const View angular = view["angular_velocity"]) {
      const std::vector<double> omega = angular.numbers();
      std::copy(omega.begin(), omega.end(), problem_.initial_velocity.begin() + link.v);
    }
  }
}

void ProblemReader::read_components(const View& view, int joint, std::string_view quantity,
                                    std::span<const JointComponent> components, double* values) const {
  if (!view) return;
  const auto is_asked = [&](const JointComponent& c) { return quantity == c.quantity; };
  const auto count = std::count_if(components.begin(), components.end(), is_asked);
  const std::size_t given = view.kind() == NodeKind::scalar ? 1 : view.node()->list.size();
  if (given != static_cast<std::size_t>(count)) {
    view.refuse((count == 0   ? "no such key"
                 : count == 1 ? "a number"
                              : std::to_string(count) + " numbers") +
                std::string(" for joint '") + problem_.model.joint_names[joint] + "', which is " +
                to_string(problem_.model.joint_types[joint]));
  }
  const Dimension dimension = quantity == "position" ? Dimension::joint_position : Dimension::joint_velocity;
  std::size_t next = 0;
  for (const JointComponent& c : components) {
    if (is_asked(c)) *values = view.number_at(next++, dimension, c.turns ? JointType::revolute : JointType::prismatic);
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

void ProblemReader::check_channel(int joint, ControlChannel channel, const View& view) const {
  if (channel == ControlChannel::effort) return;
  if (problem_.model.topology.links[link_of_joint_[joint]].target >= 0) return;
  view.refuse("channel effort: the joint '" + problem_.model.joint_names[joint] + "' has no drive to give targets to");
}

void ProblemReader::check_knots(size_t knots, const View& view) const {
  if (knots > static_cast<size_t>(problem_.simulation.control_steps())) {
    view.refuse("at most as many knots as steps, which are " + std::to_string(problem_.simulation.control_steps()));
  }
}

ControlSignal ProblemReader::read_signal(int joint, ControlChannel channel, const View& view) const {
  const Dimension dimension = dimension_of(channel);
  const JointType* type = &problem_.model.joint_types[joint];
  ControlSignal signal{joint, channel, {}, false};
  if (view.kind() != NodeKind::map) {
    signal.values = view.numbers(dimension, type);
  } else if (view.given("values")) {
    signal.values = view["values"].numbers(dimension, type);
  } else if (view.given("file")) {
    const char* const names[] = {"effort", "target_position", "target_velocity"};
    const std::string owner = problem_.model.joint_names[joint] + "/";
    std::vector<std::string> columns{owner + names[static_cast<int>(channel)]};
    // Where a table has both, `effort` is what acted (docs/scenes.md).
    if (channel == ControlChannel::effort) columns.insert(columns.begin(), owner + "command");
    signal.values = read_column(view["file"], columns, dimension, type);
  } else {
    view.refuse("one of the keys values and file");
  }
  if (view.kind() == NodeKind::map) signal.hold = view["hold"].flag();
  check_knots(signal.values.size(), view);
  return signal;
}

void ProblemReader::read_controls() {
  for (const auto& [name, view, place] : root_["controls"].entries()) {
    const int joint = moving_joint(name, place, view.path());
    if (!has_one_degree(problem_.model.joint_types[joint])) {
      view.refuse(std::string("controls of a revolute or prismatic joint (this one is ") +
                  to_string(problem_.model.joint_types[joint]) + ")");
    }
    if (view.kind() != NodeKind::map) {
      problem_.controls.push_back(read_signal(joint, ControlChannel::effort, view));
      continue;
    }
    const std::pair<const char*, ControlChannel> channels[] = {{"effort", ControlChannel::effort},
                                                               {"target_position", ControlChannel::target_position},
                                                               {"target_velocity", ControlChannel::target_velocity}};
    for (const auto& [key, channel] : channels) {
      if (!view.given(key)) continue;
      check_channel(joint, channel, view[key]);
      problem_.controls.push_back(read_signal(joint, channel, view[key]));
    }
  }
}

void ProblemReader::read_requires_grad() {
  for (const View& view : root_["requires_grad"].items()) {
    const bool on = view.kind() != NodeKind::map;
    const View path = on ? view : view["off"];
    try {
      set_requires_grad(problem_.model, path.text(), on);
    } catch (const Error& error) {
      path.refuse(std::string("the path of a model parameter (") + error.what() + ")");
    }
  }
}

void ProblemReader::check_dependence() const {
  if (problem_.loss.empty()) return;
  const LinkDependence links = loss_dependence(problem_);
  for (size_t v = 0; v < problem_.variables.size(); ++v) {
    const Variable& variable = problem_.variables[v];
    const char* const why = disconnected_reason(problem_, links, variable);
    if (why) variable_views_[v].refuse("a variable that the loss depends on (" + variable.name + ": " + why + ")");
  }
  for (const View& view : root_["requires_grad"].items()) {
    if (view.kind() == NodeKind::map) continue;
    const char* why = nullptr;
    for (const FieldSelection& s : select_fields(problem_.model, view.text())) {
      why = disconnected_reason(problem_.model, links, *s.field, s.item);
      if (!why) break;
    }
    if (why) view.refuse(std::string("a parameter that the loss depends on (") + why + ")");
  }
}

RecordedColumns ProblemReader::read_recorded_columns() const {
  const View record = root_["record"];
  const Model& model = problem_.model;
  RecordedColumns columns;
  const auto add = [](int item, std::vector<int>& to) {
    if (std::ranges::find(to, item) == to.end()) to.push_back(item);
  };
  for (const View& name : record["efforts"].items()) {
    for (int joint = 0; name.text() == "*" && joint < static_cast<int>(model.joint_names.size()); ++joint) {
      if (has_one_degree(model.joint_types[joint])) add(joint, columns.efforts);
    }
    if (name.text() != "*") add(joint_of_one_degree(name), columns.efforts);
  }
  for (const View& name : record["bodies"].items()) {
    for (int one = 0; name.text() == "*" && one < static_cast<int>(model.body_names.size()); ++one) {
      add(one, columns.bodies);
    }
    if (name.text() != "*") add(body(name), columns.bodies);
  }
  columns.energy = record["energy"].flag();
  columns.momentum = record["momentum"].flag();
  columns.center_of_mass = record["center_of_mass"].flag();
  return columns;
}

void ProblemReader::read_options() {
  const View view = root_["optimize"];
  OptimizeOptions& options = problem_.optimize;
  const std::string& method = view["method"].text();
  for (const OptimizeMethod one : {OptimizeMethod::lbfgs, OptimizeMethod::adam}) {
    if (method == to_string(one)) options.method = one;
  }
  options.iterations = view["iterations"].integer();
  options.tolerance = view["tolerance"].number();
  options.learning_rate = view["learning_rate"].number();
  options.starts = view["starts"].integer();
  if (const View goal = view["goal"]) options.goal = goal.number();
  const View gradient = view["gradient"];
  if (const View window = gradient["window"]) {
    const Simulation& simulation = problem_.simulation;
    options.window.steps = std::min(window.integer(), simulation.control_steps()) * simulation.substeps;
  }
  options.window.cut = gradient["cut"].flag();
  if (const View clip = gradient["clip"]) options.window.clip = clip.number();
  if (options.window.cut && options.window.steps == 0) gradient["cut"].refuse("false where there is no `window`");
}

}  // namespace backdrive::scene
