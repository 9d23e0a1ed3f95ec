// What a scene scores.
#include <algorithm>
#include <cmath>

#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

/// How near, in steps, a time has to come to that of a step to be it.
constexpr double kSameStep = 1e-6;

double weight_of(const View& weight, const char* part) {
  return weight.kind() == NodeKind::map ? weight[part].number() : weight.number();
}

bool is_record(const View& target) {
  return target.given("file") || target.given("times");
}

}  // namespace

void ProblemReader::read_loss() {
  const View loss = root_["optimize"]["loss"];
  for (const View& view : loss["terminal"].items()) read_term(view, {.name = "terminal"});
  for (const View& view : loss["running"].items()) read_term(view, running_term(view));
  for (const View& view : loss["waypoints"].items()) read_term(view, waypoint(view));
}

int ProblemReader::steps_until(const View& time) const {
  const Simulation& simulation = problem_.simulation;
  const double steps = time.number() / simulation.time_step;
  if (steps > simulation.steps + kSameStep) {
    time.refuse("a time within the run, which is of " + std::to_string(simulation.steps) + " steps of " +
                root_["simulation"]["time_step"].text());
  }
  return static_cast<int>(std::round(steps));
}

LossTerm ProblemReader::running_term(const View& view) const {
  LossTerm term{.name = "running", .terminal = false};
  term.first_step = steps_until(view["from"]) + 1;
  const View until = view["until"];
  term.last_step = until ? steps_until(until) : problem_.simulation.steps;
  if (term.last_step < term.first_step) {
    (until ? until : view["from"]).refuse("a time to end at that is a step or more after the one to begin at");
  }
  return term;
}

LossTerm ProblemReader::waypoint(const View& view) const {
  LossTerm term{.name = "waypoints", .terminal = false};
  term.first_step = term.last_step = steps_until(view["at"]);
  term.integral = false;
  if (term.first_step < 1) view["at"].refuse("a time that a step leads to: half a time step or more");
  return term;
}

void ProblemReader::follow(const View& target, const RecordedQuantity& what, LossTerm& term) const {
  term.record = read_record(directory_, target, what);
  const double step = problem_.simulation.time_step;
  const double first = std::max<double>(term.first_step, std::ceil(term.record.times.front() / step - kSameStep));
  const double last = std::min<double>(term.last_step, std::floor(term.record.times.back() / step + kSameStep));
  if (last < first) {
    target.refuse("a record with times within what is scored, from step " + std::to_string(term.first_step) + " to " +
                  std::to_string(term.last_step) + " of " + root_["simulation"]["time_step"].text());
  }
  term.first_step = static_cast<int>(first);
  term.last_step = static_cast<int>(last);
}

void ProblemReader::add_term(LossTerm term, const std::string& name) {
  term.name += "/" + name;
  // Equal names would make equal columns.
  const auto taken = [&](const std::string& candidate) {
    return std::any_of(problem_.loss.begin(), problem_.loss.end(),
                       [&](const LossTerm& other) { return other.name == candidate; });
  };
  std::string candidate = term.name;
  for (int k = 2; taken(candidate); ++k) candidate = term.name + "/" + std::to_string(k);
  term.name = std::move(candidate);
  problem_.loss.push_back(std::move(term));
}

int ProblemReader::contact_pair(const View& view, bool& swapped) const {
  const Model& model = problem_.model;
  const std::vector<View> names = view.items();
  if (names.size() != 2) view.refuse("two names of shapes");
  int shapes[2];
  for (int k = 0; k < 2; ++k) {
    shapes[k] = model.find_shape(names[k].text());
    if (shapes[k] >= 0) continue;
    names[k].refuse("the name of a shape", nearest_name(names[k].text().substr(0, 200), model.shape_names.list()));
  }
  const Topology& t = model.topology;
  for (std::size_t k = 0; k < t.contact_pairs.size(); ++k) {
    const int a = t.contact_shapes[t.contact_pairs[k].a].shape, b = t.contact_shapes[t.contact_pairs[k].b].shape;
    swapped = a == shapes[1] && b == shapes[0];
    if (swapped || (a == shapes[0] && b == shapes[1])) return static_cast<int>(k);
  }
  view.refuse("two shapes that may touch (see their types, `collision`, and `contacts`)");
}

void ProblemReader::read_contact_term(const View& view, LossTerm term) {
  bool swapped = false;
  const View names = view["contact"];
  term.quantity = LossQuantity::contact_force;
  term.index = contact_pair(names, swapped);
  const std::vector<double> force = view["force"].numbers();
  for (int k = 0; k < 3; ++k) term.target[k] = swapped ? -force[k] : force[k];
  term.weight = view["weight"].number();
  const std::vector<View> shapes = names.items();
  add_term(term, "contact/" + shapes[0].text() + "/" + shapes[1].text());
}

void ProblemReader::read_control_term(const View& view, LossTerm term) {
  const View name = view["control"];
  term.quantity = LossQuantity::control;
  term.index = joint_of_one_degree(name);
  term.channel = channel_of(view["channel"]);
  check_channel(term.index, term.channel, view["channel"]);
  const JointType* const type = &problem_.model.joint_types[term.index];
  term.target[0] = view["target"].number(dimension_of(term.channel), type);
  term.weight = view["weight"].number();
  const bool is_effort = term.channel == ControlChannel::effort;
  add_term(term, name.text() + "/" + (is_effort ? "effort" : view["channel"].text()));
}

bool ProblemReader::on_circle(const View& view, int joint) const {
  const JointParameters& joints = problem_.model.joints;
  const bool turns = problem_.model.joint_types[joint] == JointType::revolute;
  const bool unlimited = std::isinf(joints.limit.lower(joint)) && std::isinf(joints.limit.upper(joint));
  const bool result = view.given("on_circle") ? view["on_circle"].flag() : turns && unlimited;
  if (result && !turns) view["on_circle"].refuse("false for a joint that is not revolute");
  return result;
}

void ProblemReader::read_joint_term(const View& view, LossTerm term) {
  const View name = view["joint"];
  term.index = joint_of_one_degree(name);
  const JointType* const type = &problem_.model.joint_types[term.index];
  const auto add = [&](LossTerm one, const char* quantity, Dimension dimension) {
    const View target = view[quantity];
    if (is_record(target)) {
      follow(target, {{name.text()}, quantity, 1, dimension, type, false}, one);
    } else {
      one.target[0] = target.number(type);
    }
    one.weight = weight_of(view["weight"], quantity);
    add_term(std::move(one), name.text() + "/" + quantity);
  };
  if (view.given("position")) {
    LossTerm position = term;
    position.on_circle = on_circle(view, term.index);
    add(std::move(position), "position", Dimension::joint_position);
  }
  if (view.given("velocity")) {
    term.quantity = LossQuantity::joint_velocity;
    add(std::move(term), "velocity", Dimension::joint_velocity);
  }
}

std::vector<std::string> ProblemReader::record_owners(int body) const {
  const Model& model = problem_.model;
  std::vector<std::string> owners{model.body_names[body]};
  for (std::size_t joint = 0; joint < model.joint_names.size(); ++joint) {
    const int item = static_cast<int>(joint);
    if (model.joint_children[joint] != body || model.joint_types[joint] != JointType::free) continue;
    const Parameter &place = model.joints.frame.position, &turn = model.joints.frame.orientation;
    const bool at_origin = place(item, 0) == 0 && place(item, 1) == 0 && place(item, 2) == 0 && turn(item, 3) == 1;
    if (at_origin) owners.push_back(model.joint_names[joint]);
  }
  return owners;
}

void ProblemReader::read_body_term(const View& view, LossTerm term) {
  const View name = view["body"];
  term.index = body(name);
  const std::vector<double> point = view["point"].numbers();
  std::copy(point.begin(), point.end(), term.point.begin());
  if (view.given("position")) {
    LossTerm position = term;
    position.quantity = LossQuantity::body_position;
    const View target = view["position"];
    if (is_record(target)) {
      follow(target, {record_owners(term.index), "position", 3, Dimension::length, nullptr, false}, position);
    } else {
      const std::vector<double> place = target.numbers();
      std::copy(place.begin(), place.end(), position.target.begin());
    }
    position.weight = weight_of(view["weight"], "position");
    add_term(std::move(position), name.text() + "/position");
  }
  if (view.given("orientation")) {
    term.quantity = LossQuantity::body_orientation;
    const View target = view["orientation"];
    if (is_record(target)) {
      follow(target, {record_owners(term.index), "orientation", 4, Dimension::none, nullptr, true}, term);
    } else {
      term.target = read_orientation(target);
    }
    term.weight = weight_of(view["weight"], "orientation");
    add_term(std::move(term), name.text() + "/orientation");
  }
}

void ProblemReader::read_term(const View& view, LossTerm term) {
  if (view.given("control")) return read_control_term(view, std::move(term));
  if (view.given("contact")) return read_contact_term(view, std::move(term));
  const bool is_joint = view.given("joint");
  const char* const second = is_joint ? "velocity" : "orientation";
  if (!view.given("position") && !view.given(second)) {
    view.refuse(std::string("one of the keys position and ") + second);
  }
  is_joint ? read_joint_term(view, std::move(term)) : read_body_term(view, std::move(term));
}

}  // namespace backdrive::scene
