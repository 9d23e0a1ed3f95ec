// What a scene scores.
#include <algorithm>
#include <cmath>
#include <limits>

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

bool is_range(const View& target) {
  return target.given("at_least") || target.given("at_most");
}

/// A target, numbers of which may be `none`, or a range.
void read_target(const View& view, Dimension dimension, const JointType* joint, LossTerm& term) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const bool range = is_range(view);
  const int numbers = term.target_numbers();
  const auto end = [&](const char* key, double none, auto& to) {
    for (int k = 0; k < numbers; ++k) to[k] = none;
    if (!view.given(key)) return;
    const std::vector<double> given = view[key].numbers(dimension, joint);
    for (int k = 0; k < numbers; ++k) to[k] = std::isnan(given[k]) ? none : given[k];
  };
  if (range) {
    end("at_least", -infinite, term.target);
    end("at_most", infinite, term.upper);
    for (int k = 0; k < numbers; ++k) {
      if (term.target[k] > term.upper[k]) view["at_most"].refuse("numbers that are not below those of at_least");
    }
  } else {
    const std::vector<double> given = view.numbers(dimension, joint);
    for (int k = 0; k < numbers; ++k) {
      term.target[k] = std::isnan(given[k]) ? -infinite : given[k];
      if (std::isnan(given[k])) term.upper[k] = infinite;
    }
  }
  for (int k = 0; k < numbers; ++k) {
    if (!std::isinf(term.target[k]) || !std::isinf(term.range(k).upper)) return;
  }
  view.refuse("a number that is not none");
}

/// The k-th of as many numbers.
struct NumberOf {
  std::size_t k, count;
};

/// The target or range of one of a joint's numbers, from a number or a list; false where it is `none`.
bool read_number(const View& view, const NumberOf& which, Dimension dimension, JointType unit, LossTerm& term) {
  const auto number = [&](const View& of) {
    const bool listed = of.kind() == NodeKind::list;
    if (listed != (which.count > 1) || (listed && of.node()->list.size() != which.count)) {
      of.refuse(which.count > 1 ? std::to_string(which.count) + " numbers, of which some may be none" : "a number");
    }
    return of.number_at(which.k, dimension, unit);
  };
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto is_none = [](const View& of) {
    const auto& list = of.node()->list;
    return std::ranges::all_of(list, [](const NodePtr& x) { return x->text == "none"; }) && !list.empty();
  };
  if (!is_range(view)) {
    if (is_none(view)) view.refuse("a number that is not none");
    term.target[0] = number(view);
    return !std::isnan(term.target[0]);
  }
  const auto end = [&](const char* key, double none) {
    const double x = view.given(key) ? number(view[key]) : none;
    return std::isnan(x) ? none : x;
  };
  term.target[0] = end("at_least", -infinite);
  term.upper[0] = end("at_most", infinite);
  if (term.target[0] > term.upper[0]) view["at_most"].refuse("numbers that are not below those of at_least");
  const bool all_none =
      (!view.given("at_least") || is_none(view["at_least"])) && (!view.given("at_most") || is_none(view["at_most"]));
  if (all_none) view.refuse("a number that is not none");
  return !std::isinf(term.target[0]) || !std::isinf(term.upper[0]);
}

}  // namespace

void ProblemReader::read_loss() {
  const auto read = [&](const View& loss, const char* list, const auto& term_of) {
    mistakes_.attempt([&] {
      for (const View& view : loss[list].items()) {
        LossTerm term{.name = list, .terminal = list == std::string_view("terminal")};
        mistakes_.attempt([&] { term_of(view, term); });
        mistakes_.attempt([&] { read_term(view, std::move(term)); });
      }
    });
  };
  mistakes_.attempt([&] {
    const View loss = root_["optimize"]["loss"];
    read(loss, "terminal", [](const View&, LossTerm&) {});
    read(loss, "running", [&](const View& view, LossTerm& term) { time_running_term(view, term); });
    read(loss, "waypoints", [&](const View& view, LossTerm& term) { time_waypoint(view, term); });
  });
}

int ProblemReader::steps_until(const View& time) const {
  const Simulation& run = simulation();
  const double steps = time.number() / run.time_step;
  if (steps > run.steps + kSameStep) {
    time.refuse("a time within the run, which is of " + std::to_string(run.control_steps()) + " steps of " +
                root_["simulation"]["time_step"].text());
  }
  return static_cast<int>(std::round(steps));
}

void ProblemReader::time_running_term(const View& view, LossTerm& term) const {
  const std::string& over = view["over"].text();
  term.over = over == "least" ? OverTime::least : over == "greatest" ? OverTime::greatest : OverTime::sum;
  term.first_step = steps_until(view["from"]) + 1;
  const View until = view["until"];
  term.last_step = until ? steps_until(until) : simulation().steps;
  if (term.last_step < term.first_step) {
    (until ? until : view["from"]).refuse("a time to end at that is a step or more after the one to begin at");
  }
}

void ProblemReader::time_waypoint(const View& view, LossTerm& term) const {
  term.first_step = term.last_step = steps_until(view["at"]);
  term.integral = false;
  if (term.first_step < 1) view["at"].refuse("a time that a step leads to: half a time step or more");
}

void ProblemReader::follow(const View& target, const RecordedQuantity& what, LossTerm& term) const {
  term.record = read_record(target, what);
  term.record_path = target.path();
  term.record_part = static_cast<int>(what.part);
  const double step = simulation().time_step;
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
  std::string candidate = term.name;
  for (int& k = next_of_name_.try_emplace(term.name, 2).first->second; !term_names_.insert(candidate).second; ++k) {
    candidate = term.name + "/" + std::to_string(k);
  }
  term.name = std::move(candidate);
  problem_.loss.push_back(std::move(term));
}

int ProblemReader::contact_pair(const View& view, bool& swapped) const {
  const Model& model = problem_.model;
  const std::vector<View> names = view.items();
  if (names.size() != 2) view.refuse("two names of shapes");
  if (unread_.contacts) Mistakes::leave_off();
  int shapes[2];
  for (int k = 0; k < 2; ++k) {
    shapes[k] = model.find_shape(names[k].text());
    if (shapes[k] < 0) refuse_name(names[k], "the name of a shape", "shapes", model.shape_names.list(), mistakes_);
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
  read_target(view["force"], Dimension::joint_effort, nullptr, term);
  for (int k = 0; swapped && k < 3; ++k) {  // the force on the other one
    const LossTerm::Range range = term.range(k);
    term.target[k] = -range.upper;
    if (term.upper[k] != kNoRange) term.upper[k] = -range.lower;
  }
  term.weight = view["weight"].number();
  const std::vector<View> shapes = names.items();
  add_term(term, "contact/" + shapes[0].text() + "/" + shapes[1].text());
}

void ProblemReader::read_distance_term(const View& view, LossTerm term) {
  const View names = view["distance"], points = view["points"];
  const std::vector<View> bodies = names.items(), at = points.items();
  if (bodies.size() != 2) names.refuse("two names of bodies, or one and world");
  if (at.size() != 2) points.refuse("two points, one of each body");
  if (bodies[0].text() == bodies[1].text()) names.refuse("two different bodies, or one and world");
  term.quantity = LossQuantity::distance;
  // The world may be named first.
  const int first = bodies[0].text() == "world" ? 1 : 0, second = 1 - first;
  term.index = body(bodies[first]);
  term.other = bodies[second].text() == "world" ? -1 : body(bodies[second]);
  const auto take = [&](int which, std::array<double, 3>& to) {
    const std::vector<double> point = at[which].numbers();
    std::copy(point.begin(), point.end(), to.begin());
  };
  take(first, term.point);
  take(second, term.other_point);
  read_target(view["target"], Dimension::length, nullptr, term);
  term.weight = view["weight"].number();
  add_term(term, "distance/" + bodies[0].text() + "/" + bodies[1].text());
}

void ProblemReader::read_control_term(const View& view, LossTerm term) {
  const View name = view["control"];
  term.quantity = LossQuantity::control;
  term.index = controlled(name);
  const std::string& word = view["channel"].text();
  term.channel = channel_of(word);
  term.weight = view["weight"].number();
  for (const NamedComponent& part : asked_parts(channel_parts(term.index, word, view["channel"]), view)) {
    LossTerm one = term;
    one.component = part.index;
    read_target(view["target"], dimension_of(term.channel), part.unit(), one);
    add_term(std::move(one), name.text() + "/" + part.component.name());
  }
}

bool ProblemReader::on_circle(const View& view, int joint, const NamedComponent& part) const {
  need_limits(joint);
  const JointParameters& joints = problem_.model.joints;
  const JointType type = problem_.model.joint_types[joint];
  const bool turns = part.component.turns;
  const bool unlimited = std::isinf(joints.limit.lower(joint)) && std::isinf(joints.limit.upper(joint));
  const bool range = is_range(view["position"]);
  const bool result = view.given("on_circle") ? view["on_circle"].flag() : turns && unlimited && !range;
  if (result && !turns && type == JointType::planar) return false;
  if (result && !turns) view["on_circle"].refuse("false for a position that is no angle");
  if (result && range) view["on_circle"].refuse("false beside a range");
  return result;
}

void ProblemReader::read_quantity_term(const View& view, const RecordedQuantity& what, LossTerm term,
                                       const std::string& owner) {
  const char* const quantity = what.quantity.c_str();
  const View target = view[quantity];
  if (is_record(target)) {
    follow(target, what, term);
  } else if (what.turns) {
    term.target = read_orientation(target);
  } else {
    read_target(target, what.dimension, what.joint, term);
  }
  term.weight = weight_of(view["weight"], quantity);
  add_term(std::move(term), owner + "/" + quantity);
}

void ProblemReader::read_joint_quantity(const View& view, LossQuantity of, const RecordedQuantity& what,
                                        const LossTerm& term, const std::vector<NamedComponent>& parts) {
  const View target = view[what.quantity];
  const std::size_t several = parts.size();
  for (std::size_t k = 0; k < several; ++k) {
    const JointType unit = *parts[k].unit();
    LossTerm one = term;
    one.quantity = of;
    one.component = parts[k].index;
    RecordedQuantity number = what;
    number.joint = &unit;
    number.axis = parts[k].component.axis;
    number.part = k, number.parts = several;
    if (of == LossQuantity::joint_position) one.on_circle = on_circle(view, term.index, parts[k]);
    if (is_record(target)) {
      follow(target, number, one);
    } else if (!read_number(target, {k, several}, what.dimension, unit, one)) {
      continue;  // none: not scored
    }
    one.weight = weight_of(view["weight"], what.quantity.c_str());
    const std::string suffix = number.axis.empty() ? "" : "/" + number.axis;
    add_term(std::move(one), what.owners.front() + "/" + what.quantity + suffix);
  }
}

void ProblemReader::read_limit_margin(const View& view, LossTerm term) {
  const View margin = view["limit_margin"];
  if (!margin) return;
  const JointType type = problem_.model.joint_types[term.index];
  if (has_quaternion(type)) margin.refuse(std::string("no such key for a ") + to_string(type) + " joint");
  need_limits(term.index);
  const LimitParameters& limit = problem_.model.joints.limit;
  const double by = margin.number(Dimension::joint_position, type == JointType::planar ? nullptr : &type);
  term.target[0] = limit.lower(term.index) + by;
  term.upper[0] = limit.upper(term.index) - by;
  if (std::isinf(term.target[0]) && std::isinf(term.upper[0])) {
    margin.refuse("no such key for a joint without limits");
  }
  if (term.target[0] > term.upper[0]) margin.refuse("at most half of the way between the limits");
  term.weight = weight_of(view["weight"], "limit_margin");
  int component = 0;
  for (const JointComponent& c : position_components(type)) {
    LossTerm one = term;
    one.component = component++;
    add_term(std::move(one), view["joint"].text() + "/limit_margin" + (*c.axis ? std::string("/") + c.axis : ""));
  }
}

void ProblemReader::read_joint_term(const View& view, LossTerm term) {
  const View name = view["joint"];
  const int joint = term.index = moving_joint(name);
  const JointType type = problem_.model.joint_types[joint];
  const std::string is = "no such key for joint '" + name.text() + "', which is " + to_string(type);
  const auto add = [&](LossQuantity of, const char* quantity, std::span<const JointComponent> components,
                       Dimension dimension) {
    mistakes_.attempt([&] {
      if (!view.given(quantity)) return;
      std::vector<NamedComponent> parts;
      for (std::size_t k = 0; k < components.size(); ++k) {
        if (quantity == std::string_view(components[k].quantity)) parts.push_back({static_cast<int>(k), components[k]});
      }
      if (parts.empty()) view[quantity].refuse(is);
      read_joint_quantity(view, of, {{name.text()}, quantity, 1, dimension, nullptr, false}, term, parts);
    });
  };
  const auto positions = position_components(type), velocities = velocity_components(type);
  add(LossQuantity::joint_position, "position", positions, Dimension::joint_position);
  mistakes_.attempt([&] {
    if (!view.given("orientation")) return;
    if (!has_quaternion(type)) view["orientation"].refuse(is + " (ball and free have it)");
    LossTerm one = term;
    one.quantity = LossQuantity::joint_orientation;
    read_quantity_term(view, {{name.text()}, "orientation", 4, Dimension::none, nullptr, true}, std::move(one),
                       name.text());
  });
  add(LossQuantity::joint_velocity, "velocity", velocities, Dimension::joint_velocity);
  add(LossQuantity::joint_velocity, "angular_velocity", velocities, Dimension::joint_velocity);
  mistakes_.attempt([&] { read_limit_margin(view, term); });
  if (term.terminal) return;
  constexpr const char* parts[] = {"actuator", "command", "drive", "spring", "damping", "friction", "limit", "total"};
  const std::string& part = view["part"].text();
  term.part = static_cast<EffortPart>(std::ranges::find(parts, part) - std::begin(parts));
  for (const char* const quantity : {"effort", "torque", "force"}) {
    add(LossQuantity::joint_effort, quantity, effort_components(type), Dimension::joint_effort);
  }
  const JointComponent power[] = {{"power", "", has_one_degree(type) && type == JointType::revolute}};
  if (view.given("power") && !has_one_degree(type)) view["power"].refuse(is);
  add(LossQuantity::joint_power, "power", power, Dimension::power);
}

std::vector<std::string> ProblemReader::record_owners(int body) const {
  const Model& model = problem_.model;
  std::vector<std::string> owners{"bodies/" + model.body_names[body], model.body_names[body]};
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
  const auto add = [&](LossQuantity of, const char* quantity, std::size_t numbers, Dimension dimension) {
    mistakes_.attempt([&] {
      if (!view.given(quantity)) return;
      LossTerm one = term;
      one.quantity = of;
      const RecordedQuantity what{record_owners(term.index), quantity, numbers, dimension, nullptr, numbers == 4};
      read_quantity_term(view, what, std::move(one), name.text());
    });
  };
  add(LossQuantity::body_position, "position", 3, Dimension::length);
  add(LossQuantity::body_velocity, "velocity", 3, Dimension::velocity);
  add(LossQuantity::body_orientation, "orientation", 4, Dimension::none);
  add(LossQuantity::body_angular_velocity, "angular_velocity", 3, Dimension::angular_velocity);
}

void ProblemReader::read_term(const View& view, LossTerm term) {
  term.measure = view["measure"].text() == "absolute" ? ErrorMeasure::absolute : ErrorMeasure::squared;
  if (view.given("control")) return read_control_term(view, std::move(term));
  if (view.given("contact")) return read_contact_term(view, std::move(term));
  if (view.given("distance")) return read_distance_term(view, std::move(term));
  const bool is_joint = view.given("joint");
  const std::vector<const char*> quantities =
      !is_joint       ? std::vector{"position", "velocity", "orientation", "angular_velocity"}
      : term.terminal ? std::vector{"position", "velocity", "limit_margin", "orientation", "angular_velocity"}
                      : std::vector{"position", "velocity", "limit_margin", "orientation", "angular_velocity",
                                    "effort",   "torque",   "force",        "power"};
  std::string words;
  for (const char* const quantity : quantities) words += (words.empty() ? "" : ", ") + std::string(quantity);
  if (std::ranges::none_of(quantities, [&](const char* quantity) { return view.given(quantity); })) {
    view.refuse("one of the keys " + words);
  }
  is_joint ? read_joint_term(view, std::move(term)) : read_body_term(view, std::move(term));
}

}  // namespace backdrive::scene
