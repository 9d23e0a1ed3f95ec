#include "apps/zero_gradient.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "models/parameter_list.h"

namespace backdrive::app {
namespace {

/// Points at once, and motions that are looked at for reasons.
constexpr std::size_t kPointsAtOnce = 256, kMotions = 4;

/// Whether a shape took part in any contact.
bool touched(const Problem& problem, const SimulationResult& motion, int shape) {
  const Topology& t = problem.model.topology;
  return std::ranges::any_of(motion.contacts, [&](const ContactRecord& c) {
    const ContactPair& pair = t.contact_pairs[c.pair];
    return t.contact_shapes[pair.a].shape == shape || t.contact_shapes[pair.b].shape == shape;
  });
}

/// What limits and drives act on: a joint of one degree of freedom, a ball joint's turn, a coupling's sum.
struct Coordinate {
  const LimitParameters& limit;
  const DriveParameters& drive;
  int item;
  int effort, target;  ///< control rows; target −1: no drive that is looked at
  std::function<std::pair<double, double>(const double* q, const double* qd)> at;  ///< position and velocity
};

Coordinate coordinate_of_coupling(const Model& model, int item) {
  const Topology& t = model.topology;
  const Coupling& coupling = t.couplings[item];
  return {model.couplings.limit,
          model.couplings.drive,
          item,
          coupling.effort,
          coupling.target,
          [&model, &t, &coupling, item](const double* q, const double* qd) {
            std::pair<double, double> sum{model.couplings.offset(item), 0};
            for (int k = 0; k < coupling.term_count; ++k) {
              const CouplingTerm& term = t.coupling_terms[coupling.first_term + k];
              const double ratio = model.couplings.ratios(coupling.first_term + k);
              sum.first += ratio * q[term.q];
              sum.second += ratio * qd[term.v];
            }
            return sum;
          }};
}

/// Of a joint or a coupling; nothing: of several degrees of freedom.
std::optional<Coordinate> coordinate_of(const Model& model, FieldGroup group, int item) {
  if (group == FieldGroup::couplings) {
    if (model.coupling_holds[item]) return std::nullopt;
    return coordinate_of_coupling(model, item);
  }
  const JointType type = model.joint_types[item];
  if (group != FieldGroup::joints || !(has_one_degree(type) || type == JointType::ball)) return std::nullopt;
  const Link& link = model.topology.links[model.link_of_joint(item)];
  Coordinate result{model.joints.limit, model.joints.drive, item, link.v, link.target, {}};
  if (type == JointType::ball) {
    result.target = -1;
    result.at = [&link](const double* q, const double* qd) {
      const double *const own = q + link.q, *const turns = qd + link.v;
      return std::pair{2 * std::atan2(std::hypot(own[0], own[1], own[2]), std::abs(own[3])),
                       std::hypot(turns[0], turns[1], turns[2])};
    };
  } else {
    result.at = [&link](const double* q, const double* qd) { return std::pair{q[link.q], qd[link.v]}; };
  }
  return result;
}

/// Calls visit(position, velocity, row of the step's controls), for each step's start.
template <class Visit>
void each_state(const Problem& problem, const SimulationResult& motion, const Coordinate& c, Visit&& visit) {
  const Topology& t = problem.model.topology;
  for (int step = 0; step < motion.steps; ++step) {
    const auto [position, velocity] =
        c.at(&motion.q[static_cast<std::size_t>(step) * t.nq], &motion.qd[static_cast<std::size_t>(step) * t.nv]);
    visit(position, velocity, step * t.nu);
  }
}

std::string limit_reason(const Problem& problem, const SimulationResult& motion, const Coordinate& c, bool of_speed) {
  bool reached = false;
  each_state(problem, motion, c, [&](double position, double velocity, int) {
    const bool now = of_speed ? std::abs(velocity) > c.limit.velocity(c.item)
                              : position > c.limit.upper(c.item) || position < c.limit.lower(c.item);
    reached = reached || now;
  });
  if (reached) return "";
  return of_speed ? "limit of speed never reached" : "limit never reached";
}

/// Of a drive: whether command and drive ask for more than the effort limit, always or never.
std::string drive_reason(const Problem& problem, const SimulationResult& motion, const Coordinate& c, bool of_limit) {
  if (c.target < 0) return "";
  const Control<double> control = initial_control<double>(problem, 1);
  const auto u = [&](int row) { return control.u.empty() ? 0.0 : control.u(row, 0); };
  int saturated = 0;
  each_state(problem, motion, c, [&](double position, double velocity, int row) {
    const double ahead = position + problem.simulation.time_step * velocity;
    const double asked = u(row + c.effort) + c.drive.stiffness(c.item) * (u(row + c.target) - ahead) +
                         c.drive.damping(c.item) * (u(row + c.target + 1) - velocity);
    if (std::abs(asked) > c.drive.effort_limit(c.item)) ++saturated;
  });
  if (of_limit) return saturated == 0 ? "drive never saturated" : "";
  return saturated == motion.steps && motion.steps > 0 ? "drive always saturated" : "";
}

/// At every point whose world did not stop, of which there is one.
bool is_zero(const Slopes& slopes, int offset, int size) {
  bool any = false;
  for (std::size_t k = 0; k < slopes.loss.size(); ++k) {
    if (!std::isfinite(slopes.loss[k])) continue;
    any = true;
    const auto first = slopes.gradient[k].begin() + offset;
    if (!std::all_of(first, first + size, [](double g) { return g == 0; })) return false;
  }
  return any;
}

}  // namespace

std::string zero_reason(const Problem& problem, const Variable& variable, const SimulationResult& motion) {
  const Model& model = problem.model;
  if (variable.kind == VariableKind::control) {
    const int joints = static_cast<int>(model.joint_names.size());
    const bool of_joint = variable.joint < joints;
    const auto driven = coordinate_of(model, of_joint ? FieldGroup::joints : FieldGroup::couplings,
                                      of_joint ? variable.joint : variable.joint - joints);
    return driven ? drive_reason(problem, motion, *driven, false) : "";
  }
  if (variable.kind != VariableKind::parameter) return "";
  const auto& [field, item, component] = variable.parameter;
  if (field->group == FieldGroup::shapes &&
      (field->leaf.starts_with("material/") || field->leaf == "geometry/margin")) {
    return touched(problem, motion, item) ? "" : "never in contact";
  }
  const std::optional<Coordinate> coordinate = coordinate_of(model, field->group, item);
  if (!coordinate) return "";
  if (field->leaf.starts_with("limit/")) {
    return limit_reason(problem, motion, *coordinate, field->leaf.starts_with("limit/velocity"));
  }
  if (field->leaf.starts_with("drive/")) {
    return drive_reason(problem, motion, *coordinate, field->leaf == "drive/effort_limit");
  }
  const SpringParameters& spring = field->group == FieldGroup::joints ? model.joints.spring : model.couplings.spring;
  return field->leaf == "spring/rest" && spring.stiffness(item) == 0 ? "no stiffness" : "";
}

Slopes slopes_at(const Problem& problem, const std::vector<std::vector<double>>& points, const ExecutionOptions& how) {
  Slopes slopes;
  const std::vector<VariableEntry> entries = variable_entries(problem);
  const std::unique_ptr<BatchObjective> objective = make_objective(problem, how);
  for (std::size_t begin = 0; begin < points.size(); begin += kPointsAtOnce) {
    const std::size_t end = std::min(points.size(), begin + kPointsAtOnce);
    const std::vector<std::vector<double>> batch(points.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 points.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<double> loss;
    std::vector<std::vector<double>> gradient;
    objective->evaluate(batch, loss, gradient);
    for (std::size_t k = 0; k < batch.size(); ++k) {
      for (std::size_t v = 0; v < entries.size(); ++v) {
        if (problem.variables[v].is_tied()) continue;  // it stands on numbers of another, in whose scale they are
        for (int n = 0; n < entries[v].size; ++n) gradient[k][entries[v].offset + n] /= entries[v].scale;
      }
      slopes.loss.push_back(loss[k]);
      slopes.gradient.push_back(std::move(gradient[k]));
      slopes.status.push_back(objective->status()[static_cast<int>(k)]);
    }
  }
  return slopes;
}

std::vector<ZeroGradient> zero_gradients(const Problem& problem, const std::vector<std::vector<double>>& points,
                                         const ExecutionOptions& how) {
  const Slopes slopes = slopes_at(problem, points, how);
  const VariableLayout layout = variable_layout(problem);
  std::vector<ZeroGradient> zeros;
  std::vector<int> which;
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    if (problem.variables[v].is_tied() || !is_zero(slopes, layout.offset[v], layout.size[v])) continue;
    zeros.push_back({problem.variables[v].name, ""});
    which.push_back(static_cast<int>(v));
  }
  if (zeros.empty()) return zeros;
  // A reason counts where it holds in every motion that is looked at.
  std::vector<bool> known(zeros.size(), true);
  const std::size_t motions = std::min(points.size(), kMotions);
  for (std::size_t m = 0; m < motions; ++m) {
    // Some from the beginning of the list, and the last: what was found.
    if (how.passed) how.passed(0);
    const Problem at = with_values(problem, m + 1 < motions ? points[m] : points.back());
    const SimulationResult motion = simulate(at, how);
    for (std::size_t k = 0; k < zeros.size(); ++k) {
      const std::string why = zero_reason(at, problem.variables[which[k]], motion);
      known[k] = known[k] && !why.empty() && (m == 0 || why == zeros[k].why);
      zeros[k].why = why;
    }
  }
  for (std::size_t k = 0; k < zeros.size(); ++k) {
    if (!known[k]) zeros[k].why.clear();
  }
  return zeros;
}

}  // namespace backdrive::app
