#include "apps/zero_gradient.h"

#include <algorithm>
#include <cmath>

#include "models/fields.h"

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

/// Calls visit(q, q̇, row of the step's controls) of a joint of one degree of freedom, for each step's start.
template <class Visit>
void each_state(const Problem& problem, const SimulationResult& motion, int joint, Visit&& visit) {
  const Topology& t = problem.model.topology;
  const Link& link = t.links[problem.model.link_of_joint(joint)];
  for (int step = 0; step < motion.steps; ++step) {
    visit(motion.q[static_cast<std::size_t>(step) * t.nq + link.q],
          motion.qd[static_cast<std::size_t>(step) * t.nv + link.v], step * t.nu);
  }
}

std::string limit_reason(const Problem& problem, const SimulationResult& motion, int joint) {
  const LimitParameters& limit = problem.model.joints.limit;
  bool reached = false;
  each_state(problem, motion, joint,
             [&](double q, double, int) { reached = reached || q > limit.upper(joint) || q < limit.lower(joint); });
  return reached ? "" : "limit never reached";
}

/// Of a drive: whether command and drive ask for more than the effort limit, always or never.
std::string drive_reason(const Problem& problem, const SimulationResult& motion, int joint, bool of_limit) {
  const DriveParameters& drive = problem.model.joints.drive;
  const Link& link = problem.model.topology.links[problem.model.link_of_joint(joint)];
  if (link.target < 0 || !has_one_degree(problem.model.joint_types[joint])) return "";
  const Control<double> control = initial_control<double>(problem, 1);
  const auto u = [&](int row) { return control.u.empty() ? 0.0 : control.u(row, 0); };
  int saturated = 0;
  each_state(problem, motion, joint, [&](double q, double qd, int row) {
    const double asked = u(row + link.v) +
                         drive.stiffness(joint) * (u(row + link.target) - q - problem.simulation.time_step * qd) +
                         drive.damping(joint) * (u(row + link.target + 1) - qd);
    if (std::abs(asked) > drive.effort_limit(joint)) ++saturated;
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
  const int joint = variable.joint;
  if (variable.kind == VariableKind::control) {
    if (joint >= static_cast<int>(problem.model.joint_names.size())) return "";
    return has_one_degree(problem.model.joint_types[joint]) ? drive_reason(problem, motion, joint, false) : "";
  }
  if (variable.kind != VariableKind::parameter) return "";
  const auto& [field, item, component] = variable.parameter;
  if (field->group == FieldGroup::shapes &&
      (field->leaf.starts_with("material/") || field->leaf == "geometry/margin")) {
    return touched(problem, motion, item) ? "" : "never in contact";
  }
  if (field->group != FieldGroup::joints || !has_one_degree(problem.model.joint_types[item])) return "";
  if (field->leaf.starts_with("limit/")) return limit_reason(problem, motion, item);
  if (field->leaf.starts_with("drive/")) {
    return drive_reason(problem, motion, item, field->leaf == "drive/effort_limit");
  }
  return field->leaf == "spring/rest" && problem.model.joints.spring.stiffness(item) == 0 ? "no stiffness" : "";
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
