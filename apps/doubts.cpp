#include "apps/doubts.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "apps/console.h"
#include "apps/machine_memory.h"
#include "apps/simulate.h"
#include "integrators/contact/pair_stiffness.h"
#include "scenes/reader.h"

namespace backdrive::app {
namespace {

using scene::Node;
using scene::NodeKind;
using scene::NodePtr;
using scene::value_at;
using Lines = std::vector<std::string>;

/// Shapes that stand begin a little in one another, and those whose size is searched for more: what counts is a share
/// of the smaller one's least radius or half length.
constexpr double kDeep = 0.25, kDeepWhereSearched = 0.75;
/// Of a quaternion's first number, above, and its last, below: read as (w, x, y, z) it is a turn of less than 60°.
constexpr double kMostlyFirst = 0.866, kLittleLast = 0.5;

/// Of a plain number.
void doubt_angle(const NodePtr& node, const std::string& path, Lines& lines) {
  if (!node || node->kind != NodeKind::scalar) return;
  scene::Quantity quantity;
  if (!scene::parse_quantity(node->text, quantity).expected.empty() || quantity.has_unit) return;
  if (!(std::abs(quantity.value) > 2 * std::numbers::pi)) return;
  lines.push_back(path + ": " + node->text + " without a unit is in rad, " +
                  number(std::abs(quantity.value) / (2 * std::numbers::pi)) + " turns; for degrees write `" +
                  node->text + " deg`");
}

/// Angles of revolute joints: limits, where they begin, where they should be.
void doubt_angles(const Model& model, const NodePtr& root, Lines& lines) {
  std::set<std::string> turning;
  for (std::size_t j = 0; j < model.joint_types.size(); ++j) {
    if (model.joint_types[j] == JointType::revolute) turning.insert(model.joint_names[j]);
  }
  for (const std::string& name : turning) {
    for (const char* side : {"lower", "upper"}) {
      doubt_angle(value_at(root, {"model", "joints", name, "limit", side}), "joints/" + name + "/limit/" + side, lines);
    }
    doubt_angle(value_at(root, {"initial_state", name, "position"}), "initial_state/" + name + "/position", lines);
  }
  for (const char* part : {"running", "terminal", "waypoints"}) {
    const NodePtr terms = value_at(root, {"optimize", "loss", part});
    for (std::size_t i = 0; terms && i < terms->list.size(); ++i) {
      const std::string index = std::to_string(i);
      const NodePtr joint = value_at(terms, {index, "joint"});
      if (!joint || !turning.contains(joint->text)) continue;
      doubt_angle(value_at(terms, {index, "position"}), std::string("loss/") + part + "/" + index + "/position", lines);
    }
  }
}

void doubt_starts(const Problem& problem, Lines& lines) {
  const Model& model = problem.model;
  for (std::size_t j = 0; j < model.joint_types.size(); ++j) {
    const int joint = static_cast<int>(j);
    if (has_quaternion(model.joint_types[j]) || model.joint_loops[j]) continue;
    const double lower = model.joints.limit.lower(joint), upper = model.joints.limit.upper(joint);
    int row = model.topology.links[model.link_of_joint(joint)].q;
    for (const JointComponent& c : position_components(model.joint_types[j])) {
      const double q = problem.initial_position[row++];
      if (q >= lower && q <= upper) continue;
      lines.push_back("initial_state/" + model.joint_names[j] + "/" + c.name() + ": begins at " + number(q) +
                      ", beyond its " +
                      (q < lower ? "lower limit, " + number(lower) : "upper limit, " + number(upper)));
    }
  }
}

/// The first step brings what is held to where it is held.
void doubt_held(const Problem& problem, Lines& lines) {
  const Model& model = problem.model;
  for (std::size_t c = 0; c < model.coupling_names.size(); ++c) {
    if (!model.coupling_holds[c]) continue;
    const double s = coupling_position(model, static_cast<int>(c), problem.initial_position);
    if (std::abs(s) < 1e-9) continue;
    const JointType* const unit = unit_of_coupling(model, static_cast<int>(c));
    const std::string name = !unit ? "" : *unit == JointType::revolute ? " rad" : " m";
    lines.push_back("couplings/" + model.coupling_names[c] + ": begins " + number(s) + name +
                    " from where it is held, and moves there in the first step, at " +
                    number(std::abs(s) / problem.simulation.time_step) + name + (unit ? "/s" : " a second"));
  }
}

bool is_size_searched(const Problem& problem, int shape) {
  return std::ranges::any_of(problem.variables, [&](const Variable& v) {
    const FieldSelection& p = v.parameter;
    return v.kind == VariableKind::parameter && p.field && p.field->group == FieldGroup::shapes && p.item == shape &&
           p.field->leaf.starts_with("geometry/");
  });
}

void doubt_overlaps(const Problem& problem, Lines& lines) {
  if (!may_touch(problem)) return;
  Problem first = problem;
  first.simulation.steps = 1;
  first.loss.clear();
  first.variables.clear();
  const SimulationResult motion = simulate(first, {});
  const Topology& t = problem.model.topology;
  for (const ContactRecord& contact : motion.contacts) {
    const ContactPair& pair = t.contact_pairs[contact.pair];
    const int a = t.contact_shapes[pair.a].shape, b = t.contact_shapes[pair.b].shape;
    const double size = std::min(least_size(problem.model, a), least_size(problem.model, b));
    const bool searched = is_size_searched(problem, a) || is_size_searched(problem, b);
    if (!(contact.depth > (searched ? kDeepWhereSearched : kDeep) * size)) continue;
    lines.push_back("shapes '" + problem.model.shape_names[a] + "' and '" + problem.model.shape_names[b] + "' begin " +
                    number(contact.depth * 1e3) + " mm deep in one another");
  }
}

void doubt_quaternions(const NodePtr& node, const std::string& path, Lines& lines) {
  const auto below = [&](const std::string& name) { return path.empty() ? name : path + "/" + name; };
  for (const scene::Entry& entry : node->map) {
    doubt_quaternions(entry.value, below(entry.key), lines);
    // Robot files have orders of their own, which their readers know.
    if (entry.value->place.source < 0) continue;
    if (entry.key != "orientation" || entry.value->list.size() != 4) continue;
    scene::Quantity numbers[4];
    bool plain = true;
    for (int k = 0; k < 4; ++k) {
      plain = plain && entry.value->list[k]->kind == NodeKind::scalar &&
              scene::parse_quantity(entry.value->list[k]->text, numbers[k]).expected.empty();
    }
    if (!plain || std::abs(numbers[0].value) < kMostlyFirst || std::abs(numbers[3].value) > kLittleLast) continue;
    lines.push_back(below("orientation") + ": a turn by " +
                    number(2 * std::acos(std::min(1.0, std::abs(numbers[3].value))) * 180 / std::numbers::pi) +
                    " deg, since quaternions are (x, y, z, w); this looks like one of (w, x, y, z)");
  }
  for (std::size_t i = 0; i < node->list.size(); ++i) doubt_quaternions(node->list[i], below(std::to_string(i)), lines);
}

/// Steps of an impact below which gradients depend on where in a step it begins more than on anything else.
constexpr double kStepsOfImpact = 5;
/// Pairs that are told one by one.
constexpr std::size_t kToldPairs = 3;

}  // namespace

std::string contact_words(const Problem& problem) {
  const double step = problem.simulation.time_step;
  const std::vector<contact::PairStiffness> pairs = contact::pair_stiffnesses(problem.model, step);
  if (pairs.empty()) return {};
  double least = kInfinity, most = 0, shortest = kInfinity, longest = 0;
  for (const contact::PairStiffness& pair : pairs) {
    const double steps = pair.impact() / step;
    least = std::min(least, pair.stiffness), most = std::max(most, pair.stiffness);
    shortest = std::min(shortest, steps), longest = std::max(longest, steps);
  }
  const auto range = [](double from, double to) {
    return number(from) + (number(from) == number(to) ? "" : " to " + number(to));
  };
  return range(least, most) + " N/m, impacts of " + range(shortest, longest) + " steps";
}

Lines short_contacts(const Problem& problem) {
  const Model& model = problem.model;
  const Topology& t = model.topology;
  const double step = problem.simulation.time_step;
  const std::vector<contact::PairStiffness> pairs = contact::pair_stiffnesses(model, step);
  Lines lines;
  std::size_t count = 0;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const double steps = pairs[k].impact() / step;
    if (!(steps < kStepsOfImpact)) continue;
    if (++count > kToldPairs) continue;
    const auto name = [&](int shape) { return model.shape_names[t.contact_shapes[shape].shape]; };
    const double softer = pairs[k].stiffness * steps * steps / (kStepsOfImpact * kStepsOfImpact);
    lines.push_back("shapes '" + name(t.contact_pairs[k].a) + "' and '" + name(t.contact_pairs[k].b) +
                    "': an impact at " + number(pairs[k].stiffness) + " N/m lasts " + number(steps) +
                    " steps, and gradients through it need " + number(kStepsOfImpact) + ": with at most " +
                    number(softer) + " N/m (stiffness: auto), or steps of at most " +
                    number(pairs[k].impact() / kStepsOfImpact) + " s (simulation/substeps)");
  }
  if (count > kToldPairs) lines.push_back("so do " + std::to_string(count - kToldPairs) + " more pairs of shapes");
  return lines;
}

std::vector<std::string> doubts(const Scene& scene) {
  const NodePtr root = std::make_shared<Node>(*scene.document);
  Lines lines = open_loops(scene.problem);
  doubt_angles(scene.problem.model, root, lines);
  doubt_quaternions(root, "", lines);
  doubt_starts(scene.problem, lines);
  doubt_held(scene.problem, lines);
  doubt_overlaps(scene.problem, lines);
  for (const std::string& line : short_contacts(scene.problem)) lines.push_back(line);
  if (const std::string line = motion_too_large(scene.problem); !line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace backdrive::app
