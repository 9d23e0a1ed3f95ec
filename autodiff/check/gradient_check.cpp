#include "autodiff/check/gradient_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>

#include "autodiff/check/gradient_probes.h"
#include "models/model_validity.h"

namespace backdrive {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// Steps of the differences: scale · kSmallest · kRatioᵏ.
constexpr int kSteps = 6;
constexpr double kSmallest = 0x1p-24, kSmallestAgain = 0x1p-39, kRatio = 8;
/// Worlds with disturbed inputs, and how much they are disturbed: some 45 ulp, what a rollout's own
/// rounding amounts to.
constexpr int kDisturbedWorlds = 16;
constexpr double kDisturbance = 1e-14;
/// Room around the measured errors: they are estimates, and a maximum of sixteen draws is not the
/// worst case.
constexpr double kSafety = 4;
/// Rounding that a disturbance of the inputs does not show, relative to the row's largest gradient.
constexpr double kRelativeFloor = 1e-12;
/// A loss that a disturbance of its inputs moves by more than this part of itself has no difference quotients.
constexpr double kNoisyLoss = 1e-3;
/// Adjoint and dual that agree to this part of the derivative are the same.
constexpr double kAgreement = 1e-9;
/// What would move the loss by less than this part of what the largest gradient does, over numbers of their own size, is
/// what rounding leaves of zero.
constexpr double kNegligible = 1e-12;
/// A tolerance above this part of the gradient resolves nothing of it.
constexpr double kResolved = 0.1;
/// A tolerance above this part of the gradient is pointed out.
constexpr double kRough = 1e-2;

std::string text(const char* format, auto... arguments) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, arguments...);
  return buffer;
}

/// How far anything computed moves under the disturbance.
struct Rounding {
  double loss = 0;
  std::vector<double> gradient;
};

Rounding measure_rounding(const ProbedGradients& disturbed) {
  Rounding rounding;
  const std::vector<double>& loss = disturbed.loss;
  const std::vector<std::vector<double>>& g = disturbed.gradient;
  rounding.gradient.assign(g[0].size(), 0.0);
  rounding.loss = 4 * kEpsilon * std::abs(loss[0]);
  for (size_t w = 1; w < loss.size(); ++w) {
    rounding.loss = std::max(rounding.loss, std::abs(loss[w] - loss[0]));
    for (size_t i = 0; i < g[0].size(); ++i) {
      rounding.gradient[i] = std::max(rounding.gradient[i], std::abs(g[w][i] - g[0][i]));
    }
  }
  return rounding;
}

/// A difference quotient with the least estimated error of all steps.
struct Difference {
  double value = std::numeric_limits<double>::quiet_NaN();
  double step = 0, truncation = kInfinity, round_off = kInfinity;
  bool settles = true;  ///< as the step shrinks, until rounding takes over
  bool kink = false;    ///< one-sided, since the loss has another slope on the other side
  double other_slope = 0;
  double tolerance() const { return kSafety * (truncation + round_off); }
  bool agrees_with(double slope) const { return std::abs(value - slope) <= tolerance(); }
};

/// Losses of one probe at x ± h for each step of a ladder.
struct Ladder {
  const double* losses;  ///< +h and −h for each step, in order
  double smallest;
  double scale;  ///< bounds x, whose own rounding makes h uncertain by ε·scale
  double loss_rounding;

  double step(int k) const { return smallest * std::pow(kRatio, k); }
  double central(int k) const { return (losses[2 * k] - losses[2 * k + 1]) / (2 * step(k)); }
  /// From x, where the loss is f0, to x + sign·h.
  double one_sided(int k, double f0, int sign) const { return sign * (losses[2 * k + (sign < 0)] - f0) / step(k); }
};

/// The best of D(h) for all steps h. The truncation of a central D(h) is c h² + … where the loss is
/// smooth at that scale, 1/63 of |D(8h) − D(h)|. A rollout may have finer features (friction, a
/// limit's onset), so only first order is claimed, a seventh of that change, and this only when the
/// change to D(64h) is larger by `growth` as it should be. Where it is not and round-off does not
/// explain it, h is too large: no use (but for the smallest, if there is none better).
template <class Quotient>
Difference best_difference(const Ladder& ladder, double growth, Quotient quotient) {
  Difference best;
  bool settles = true, judged = false;
  for (int k = 0; k + 2 < kSteps; ++k) {
    const double h = ladder.step(k), value = quotient(k);
    const double near = std::abs(quotient(k + 1) - value), far = std::abs(quotient(k + 2) - quotient(k + 1));
    const double round_off = (ladder.loss_rounding + kEpsilon * ladder.scale * std::abs(value)) / h;
    const bool grows = far >= growth * near, explained = near <= kRatio * round_off;
    if (!explained && !judged) {  // the smallest step that rounding leaves something of
      settles = grows;
      judged = true;
    }
    if (!grows && !explained && k > 0) continue;
    const double truncation = grows ? std::max(near, far / (kRatio * kRatio)) / (kRatio - 1) : near;
    const Difference now{value, h, truncation, round_off};
    const bool finite = std::isfinite(now.value) && std::isfinite(now.truncation);
    if (finite && now.tolerance() < best.tolerance()) best = now;
  }
  best.settles = settles;
  return best;
}

/// What the differences are to be compared with.
struct Slopes {
  double adjoint, dual;
};

/// The central difference; or, where that is not the exact derivative, the one-sided one that the
/// adjoint agrees with, if the other side has another slope: x stands on a kink, and the gradient
/// is that of one branch (not always the dual's).
Difference difference_at(const Ladder& ladder, double f0, const Slopes& slopes) {
  const Difference central = best_difference(ladder, kRatio, [&](int k) { return ladder.central(k); });
  if (central.agrees_with(slopes.dual)) return central;
  // One-sided quotients are of first order: changes grow by about the ratio itself.
  const auto side = [&](int sign) {
    return best_difference(ladder, kRatio / 2, [&](int k) { return ladder.one_sided(k, f0, sign); });
  };
  Difference right = side(1), left = side(-1);
  if (std::abs(right.value - left.value) <= right.tolerance() + left.tolerance()) return central;
  right.kink = left.kink = true;
  right.other_slope = left.value;
  left.other_slope = right.value;
  if (right.agrees_with(slopes.adjoint)) return right;
  return left.agrees_with(slopes.adjoint) ? left : central;
}

/// The numbers of one probe, as they go into a row.
struct Comparison {
  double adjoint, per_world, dual, dual_tolerance;
  Difference difference;

  double difference_error() const { return std::abs(adjoint - difference.value); }
  /// The adjoint runs on two routes, uniform and per-world parameters; both must agree with the
  /// dual.
  double dual_error() const { return std::max(std::abs(adjoint - dual), std::abs(per_world - dual)); }
  /// Largest error in units of its tolerance; NaN counts as infinite.
  double badness() const {
    const auto ratio = [](double error, double tolerance) {
      if (error == 0 && std::isfinite(tolerance)) return 0.0;
      const double r = error / tolerance;
      return std::isfinite(error) && std::isfinite(tolerance) && !std::isnan(r) ? r : kInfinity;
    };
    return std::max(ratio(difference_error(), difference.tolerance()), ratio(dual_error(), dual_tolerance));
  }
  bool is_derivative() const { return dual_error() <= dual_tolerance; }
};

/// `noisy_loss`: as in kNoisyLoss.
void fill_row(GradientCheckRow& row, const std::vector<Comparison>& all, const std::vector<int>& index,
              bool noisy_loss) {
  size_t worst = 0;
  bool exact_zero = true, near_zero = true, derivative = true;
  for (size_t i = 0; i < all.size(); ++i) {
    const Comparison& c = all[i];
    row.gradient.push_back(c.adjoint);
    derivative = derivative && c.is_derivative();
    if (c.is_derivative() < all[worst].is_derivative() ||
        (c.is_derivative() == all[worst].is_derivative() && c.badness() > all[worst].badness())) {
      worst = i;
    }
    exact_zero = exact_zero && c.adjoint == 0 && c.dual == 0;
    near_zero = near_zero && std::abs(c.adjoint) <= c.dual_tolerance && std::abs(c.dual) <= c.dual_tolerance &&
                std::abs(c.difference.value) <= c.difference.tolerance();
  }
  // Of those equally good show the largest gradient.
  for (size_t i = 0; i < all.size(); ++i) {
    const bool as_bad =
        all[i].badness() == all[worst].badness() && all[i].is_derivative() == all[worst].is_derivative();
    if (as_bad && std::abs(all[i].adjoint) > std::abs(all[worst].adjoint)) worst = i;
  }
  const Comparison& c = all[worst];
  row.count = static_cast<int>(all.size());
  row.worst = index[worst];
  row.adjoint = c.adjoint;
  row.dual = c.dual;
  row.differences = c.difference.value;
  row.step = c.difference.step;
  row.differences_error = c.difference_error();
  row.differences_tolerance = c.difference.tolerance();
  row.dual_error = c.dual_error();
  row.dual_tolerance = c.dual_tolerance;
  const bool agrees = c.badness() <= 1;
  row.passed = derivative && std::isfinite(c.difference.value);
  row.zero = agrees && near_zero;
  row.unresolved = row.passed && !row.zero && c.difference.tolerance() > kResolved * std::abs(c.dual);
  row.truncation = kSafety * c.difference.truncation;
  row.round_off = kSafety * c.difference.round_off;
  row.tolerance_source = text(
      "differences: %.0f × (truncation, from h against 8h, + round-off, from the loss with inputs "
      "disturbed by %.0e, over h); dual: %.0f × rounding, from the gradient with the same inputs",
      kSafety, kDisturbance, kSafety);
  if (row.zero) row.note = exact_zero ? "zero: the loss does not depend on it" : "zero to rounding";
  if (!row.zero && c.difference.tolerance() > kRough * std::abs(c.dual)) {
    row.note = text("differences resolve only %.0e of it here", c.difference.tolerance() / std::abs(c.dual));
  }
  if (c.difference.kink) {
    row.note =
        text("on a kink of the loss: slopes %.6g and %.6g to its sides", c.difference.value, c.difference.other_slope);
  }
  // Only then do the differences say nothing of the gradient, which two ways of computing it agree on.
  const bool no_measure = noisy_loss || (!c.difference.settles && !c.difference.kink);
  row.rough = row.passed && !agrees && no_measure;
  row.parted = row.passed && !agrees && !no_measure;
  if (row.rough) row.note = "differences do not settle as their step shrinks";
  if (row.parted) row.note = text("over %.0e to each side the loss has another slope", c.difference.step);
  if (!std::isfinite(c.difference.value)) row.note = "differences: the loss is not finite at any step";
  if (!std::isfinite(c.adjoint)) row.note = "the adjoint's gradient is not finite";
}

/// A parameter that no motion depends on must have a gradient of exactly zero.
void fill_unused(GradientCheckRow& row, const ProbeGroup& group, const Parameters& gradient) {
  row.used = false;
  row.passed = row.zero = true;
  row.note = std::string("not used: ") + group.unused;
  const Parameter& p = group.field.field->in(gradient);
  for (int c = 0; c < p.components(); ++c) {
    if (p(group.field.item, c) == 0) continue;
    row.adjoint = p(group.field.item, c);
    row.worst = c;
    row.passed = row.zero = false;
    row.note += ", but its gradient is not zero";
  }
}

/// How much the solve of a step amplifies rounding: with attachments Δt² K/m or Δt² K/J of the lightest body, which a
/// disturbance of the inputs does not show; 1 without.
double amplification(const Problem& problem) {
  const Model& model = problem.model;
  double most = 1;
  const double square = problem.simulation.time_step * problem.simulation.time_step;
  for (std::size_t j = 0; model.topology.has_bodies() && j < model.joint_names.size(); ++j) {
    for (const int body : {model.joint_parents[j], model.joint_children[j]}) {
      if (body < 0) continue;
      const MassProperties<double> m = body_mass(model, body, 0);
      const int joint = static_cast<int>(j);
      most = std::max({most, square * model.joints.attachment.stiffness(joint) / m.mass,
                       square * model.joints.attachment.angular_stiffness(joint) / principal_moments(m.inertia).least});
    }
  }
  return most;
}

std::vector<Probe> all_probes(const ProbedProblem& probed) {
  std::vector<Probe> probes;
  for (const ProbeGroup& group : probed.groups()) {
    probes.insert(probes.end(), group.probes.begin(), group.probes.end());
  }
  return probes;
}

/// The loss at x and its rounding.
struct Baseline {
  double loss, loss_rounding;
};

std::vector<Difference> differences_of(const ProbedProblem& probed, std::span<const Probe> probes,
                                       std::span<const Slopes> slopes, double smallest, const Baseline& baseline) {
  std::vector<ProbedProblem::Step> steps;
  for (const Probe& probe : probes) {
    for (int k = 0; k < kSteps; ++k) {
      const double h = probe.scale * smallest * std::pow(kRatio, k);
      steps.push_back({probe, h});
      steps.push_back({probe, -h});
    }
  }
  const std::vector<double> losses = probed.losses(steps);
  std::vector<Difference> result;
  for (size_t i = 0; i < probes.size(); ++i) {
    const double scale = probes[i].scale;
    const Ladder ladder{&losses[2 * kSteps * i], scale * smallest, scale, baseline.loss_rounding};
    result.push_back(difference_at(ladder, baseline.loss, slopes[i]));
  }
  return result;
}

/// Differences of all probes. Where they disagree with the exact derivative the motion may be so
/// sensitive that even the smallest step was too large: those are taken again with a ladder of
/// smaller steps, and judged by that.
std::vector<Difference> all_differences(const ProbedProblem& probed, const std::vector<Probe>& probes,
                                        const std::vector<Slopes>& slopes, const Baseline& baseline) {
  std::vector<Difference> result = differences_of(probed, probes, slopes, kSmallest, baseline);
  std::vector<Probe> again;
  std::vector<Slopes> again_slopes;
  std::vector<size_t> which;
  for (size_t i = 0; i < probes.size(); ++i) {
    if (result[i].kink || result[i].agrees_with(slopes[i].dual)) continue;
    again.push_back(probes[i]);
    again_slopes.push_back(slopes[i]);
    which.push_back(i);
  }
  const std::vector<Difference> finer = differences_of(probed, again, again_slopes, kSmallestAgain, baseline);
  for (size_t i = 0; i < which.size(); ++i) result[which[i]] = finer[i];
  return result;
}

}  // namespace

GradientCheck check_gradients(const Problem& problem, const GradientCheckOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const ProbedProblem probed(problem, options);
  const std::vector<Probe> probes = all_probes(probed);
  const ProbedGradients adjoint = probed.gradients();
  const ProbedGradients disturbed = probed.disturbed_gradients(kDisturbedWorlds, kDisturbance);
  const Rounding rounding = measure_rounding(disturbed);
  const std::vector<double> dual = probed.derivatives(probes);
  std::vector<Slopes> slopes;
  for (size_t i = 0; i < probes.size(); ++i) slopes.push_back({adjoint.gradient[0][i], dual[i]});
  const std::vector<Difference> differences = all_differences(probed, probes, slopes, {adjoint.loss[0], rounding.loss});

  // What a gradient of the loss's size would be along each probe bounds rounding from below.
  double largest = 0;
  for (size_t i = 0; i < probes.size(); ++i) {
    largest = std::max(largest, std::abs(dual[i]) * probes[i].scale);
  }
  const double stiff = amplification(problem);
  GradientCheck check;
  check.loss = adjoint.loss[0];
  check.passed = true;
  size_t at = 0;
  for (const ProbeGroup& group : probed.groups()) {
    GradientCheckRow row;
    row.name = group.name;
    row.unit = group.unit;
    row.total = group.total;
    if (group.unused) {
      fill_unused(row, group, adjoint.parameters);
    } else {
      const double factor = row.name == options.fault_row ? options.fault_factor : 1;
      const size_t first = at;
      double row_largest = 0;
      for (size_t i = 0; i < group.probes.size(); ++i) {
        row_largest = std::max(row_largest, std::abs(dual[first + i]));
      }
      std::vector<Comparison> all;
      for (; at < first + group.probes.size(); ++at) {
        const double floor = std::max(kRelativeFloor, 16 * kEpsilon * stiff) * row_largest +
                             std::max(kNegligible, 4 * kEpsilon * stiff) * largest / probes[at].scale;
        all.push_back({factor * adjoint.gradient[0][at], factor * disturbed.gradient[0][at], dual[at],
                       std::max(kSafety * (rounding.gradient[at] + floor), kAgreement * std::abs(dual[at])),
                       differences[at]});
      }
      fill_row(row, all, group.index, rounding.loss > kNoisyLoss * std::abs(check.loss));
      check.numbers += row.count;
    }
    check.passed = check.passed && row.passed;
    check.zero_rows += row.used && row.zero;
    check.unresolved_rows += row.unresolved;
    check.rough_rows += row.rough;
    check.parted_rows += row.parted;
    check.rows.push_back(std::move(row));
  }
  check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return check;
}

}  // namespace backdrive
