#include "autodiff/check/gradient_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "autodiff/check/differences.h"
#include "autodiff/check/gradient_probes.h"
#include "autodiff/check/gradient_rows.h"
#include "models/model_validity.h"

namespace backdrive {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// Steps of the differences: scale · kSmallest · kRatioᵏ.
constexpr double kSmallest = 0x1p-24, kSmallestAgain = 0x1p-39;
constexpr int kSteps = Ladder::kSteps;
constexpr double kRatio = Ladder::kRatio;
/// Worlds with disturbed inputs.
constexpr int kDisturbedWorlds = 16;
/// A loss that a disturbance of its inputs moves by more than this part of itself has no difference quotients.
constexpr double kNoisyLoss = 1e-3;
/// Rounding that a disturbance of the inputs does not show, relative to the row's largest gradient.
constexpr double kRelativeFloor = 1e-12;
/// What would move the loss by less than this part of what the largest gradient does, over numbers of their own size,
/// is what rounding leaves of zero.
constexpr double kNegligible = 1e-12;
/// In float32: how much inputs are disturbed, as many ulp as in float64; what is left of a zero, as kNegligible; and
/// which part of a row's largest gradient is another gradient, not rounding: impacts and stiff friction cost some per
/// cent.
constexpr double kDisturbanceFloat32 = 5.4e-6, kNegligibleFloat32 = 1e-6, kAnotherFloat32 = 0.1;
/// A slope over a distance outside [kParts, 1 / kParts] of the derivative is another.
constexpr double kParts = 0.5;
/// Changes of the loss over a distance are none below this part of the largest.
constexpr double kSmallChange = 1e-6;

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

/// Differences of probes. Where they disagree with the exact derivative the motion may be so
/// sensitive that even the smallest step was too large: those are taken again with a ladder of
/// smaller steps, and judged by that.
std::vector<Difference> best_differences(const ProbedProblem& probed, std::span<const Probe> probes,
                                         std::span<const Slopes> slopes, const Baseline& baseline) {
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

/// Numbers 0 to n − 1, or a seeded sample of `count` of them, in their order.
std::vector<size_t> sampled(size_t n, int count, std::uint64_t seed) {
  std::vector<size_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  if (count < 0 || static_cast<size_t>(count) >= n) return numbers;
  std::mt19937_64 generator(seed);
  for (size_t k = 0; k < static_cast<size_t>(count); ++k) std::swap(numbers[k], numbers[k + generator() % (n - k)]);
  numbers.resize(static_cast<size_t>(count));
  std::ranges::sort(numbers);
  return numbers;
}

/// The loss's slopes over the distance that a user would move each number.
std::vector<MacroscopicSlope> macroscopic_slopes(const ProbedProblem& probed, std::span<const Probe> probes,
                                                 std::span<const double> dual, double distance,
                                                 const Baseline& baseline) {
  std::vector<MacroscopicSlope> slopes(probes.size());
  if (!(distance > 0)) return slopes;
  std::vector<ProbedProblem::Step> steps;
  for (const Probe& probe : probes) {
    const double h = distance * (probe.unit > 0 ? probe.unit : probe.scale);
    steps.push_back({probe, h});
    steps.push_back({probe, probed.may_fall(probe, h) ? -h : 0});
  }
  const std::vector<double> losses = probed.losses(steps);
  double largest = 0;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    MacroscopicSlope& m = slopes[i];
    m.done = true;
    m.distance = steps[2 * i].amount;
    m.derivative = dual[i];
    m.slope = (losses[2 * i] - losses[2 * i + 1]) / (m.distance - steps[2 * i + 1].amount);
    const double change = std::max(std::abs(m.slope), std::abs(m.derivative)) * m.distance;
    if (std::isfinite(change)) largest = std::max(largest, change);
  }
  for (MacroscopicSlope& m : slopes) {
    const double gap = std::abs(m.slope - m.derivative);
    const double most = std::max(std::abs(m.slope), std::abs(m.derivative));
    const bool small = gap * m.distance <= std::max(kSafety * baseline.loss_rounding, kSmallChange * largest);
    m.parts = std::isnan(gap) || (!small && gap > kParts * most);
  }
  return slopes;
}

/// What was computed of every probe.
struct Findings {
  ProbedGradients adjoint, disturbed;
  Rounding rounding;
  std::vector<double> dual;
  /// Of duals that are not the adjoint within what it was measured to move by: how far they move themselves.
  std::vector<double> dual_rounding;
  double step_defect = 0;  ///< where there are such
  std::vector<Difference> differences;
  std::vector<MacroscopicSlope> macroscopic;
  std::vector<Float32Check> float32;  ///< empty: not asked for
  double largest = 0;                 ///< of what the numbers' own sizes change the loss by, to first order
};

/// The adjoint in float32 of all probes.
std::vector<Float32Check> float32_checks(const ProbedProblem& probed, std::span<const Probe> probes, const Findings& f,
                                         const GradientCheckOptions& options) {
  const ProbedGradients adjoint = probed.gradients<float>();
  const Rounding rounding = measure_rounding(probed.disturbed_gradients<float>(kDisturbedWorlds, kDisturbanceFloat32));
  // The exact gradient, too, is another where it is taken that far away: where contacts come or go in between, what the
  // worlds in float32 have in common says nothing of the place itself.
  const Rounding around = measure_rounding(probed.disturbed_gradients<double>(kDisturbedWorlds, kDisturbanceFloat32));
  std::vector<Float32Check> checks;
  std::size_t at = 0;
  for (const ProbeGroup& group : probed.groups()) {
    const double factor = group.name == options.fault_row ? options.fault_factor_float32 : 1;
    double row_largest = 0;
    for (std::size_t i = 0; i < group.probes.size(); ++i) row_largest = std::max(row_largest, std::abs(f.dual[at + i]));
    for (std::size_t i = 0; i < group.probes.size(); ++i, ++at) {
      // Along a random direction of unit length: what comes of single ones, some of which cancel.
      if (probes[at].kind == Probe::Kind::all_controls)
        row_largest = std::max(row_largest, 3 * f.adjoint.by_controls[0]);
      Float32Check c;
      c.done = true;
      c.adjoint = factor * adjoint.gradient[0][at];
      c.dual = f.dual[at];
      c.error = std::abs(c.adjoint - c.dual);
      c.resolution = kSafety * std::max(rounding.gradient[at], around.gradient[at]) +
                     kNegligibleFloat32 * f.largest / probes[at].scale;
      c.tolerance = c.resolution + kAnotherFloat32 * row_largest;
      c.passed = c.error <= c.tolerance;
      checks.push_back(c);
    }
  }
  return checks;
}

Findings find_all(const ProbedProblem& probed, const GradientCheckOptions& options) {
  const std::vector<Probe> probes = all_probes(probed);
  Findings f;
  f.adjoint = probed.gradients<double>();
  f.disturbed = probed.disturbed_gradients<double>(kDisturbedWorlds, kDisturbance);
  f.rounding = measure_rounding(f.disturbed);
  f.dual = probed.derivatives(probes);
  f.dual_rounding.assign(probes.size(), 0);
  const std::vector<size_t> sample = sampled(probes.size(), options.differences, options.seed);
  std::vector<Probe> chosen;
  std::vector<Slopes> slopes;
  std::vector<double> dual;
  for (const size_t i : sample) {
    chosen.push_back(probes[i]);
    slopes.push_back({f.adjoint.gradient[0][i], f.dual[i]});
    dual.push_back(f.dual[i]);
  }
  const Baseline baseline{f.adjoint.loss[0], f.rounding.loss};
  const std::vector<Difference> differences = best_differences(probed, chosen, slopes, baseline);
  const std::vector<MacroscopicSlope> macroscopic =
      macroscopic_slopes(probed, chosen, dual, options.distance, baseline);
  f.differences.assign(probes.size(), Difference{.taken = false});
  f.macroscopic.resize(probes.size());
  for (size_t k = 0; k < sample.size(); ++k) {
    f.differences[sample[k]] = differences[k];
    f.macroscopic[sample[k]] = macroscopic[k];
  }
  // What a gradient of the loss's size would be along each probe bounds rounding from below.
  for (size_t i = 0; i < probes.size(); ++i) f.largest = std::max(f.largest, std::abs(f.dual[i]) * probes[i].scale);
  if (options.float32) f.float32 = float32_checks(probed, probes, f, options);
  return f;
}

/// How far adjoint and dual may be apart in a row: numbers `first` to `first` + count. `stiff`: amplification().
struct RowTolerance {
  const Findings& f;
  std::span<const Probe> probes;
  size_t first;
  double stiff, largest = 0;

  RowTolerance(const Findings& found, const ProbeGroup& group, size_t at, double amplified)
      : f(found), probes(group.probes), first(at), stiff(amplified) {
    for (size_t i = 0; i < probes.size(); ++i) largest = std::max(largest, std::abs(f.dual[first + i]));
  }
  double operator()(size_t i) const {
    const double floor = std::max(kRelativeFloor, 16 * kEpsilon * stiff) * largest +
                         std::max(kNegligible, 4 * kEpsilon * stiff) * f.largest / probes[i].scale;
    const double rounding = f.rounding.gradient[first + i] + f.dual_rounding[first + i];
    return std::max(kSafety * (rounding + floor), kAgreement * std::abs(f.dual[first + i]));
  }
};

/// The probes of a group, which begin at `first`, as they go into its row.
std::vector<Comparison> comparisons(const Findings& f, const ProbeGroup& group, const RowTolerance& tolerance,
                                    double factor) {
  std::vector<Comparison> all;
  for (size_t i = 0; i < group.probes.size(); ++i) {
    const size_t at = tolerance.first + i;
    all.push_back({factor * f.adjoint.gradient[0][at], factor * f.disturbed.gradient[0][at], f.dual[at], tolerance(i),
                   kSmallChange * f.largest / group.probes[i].scale, f.differences[at]});
  }
  return all;
}

/// Adjoint and dual round on different ways: numbers that cancel to zero in one of them need not in the other, and how
/// far the adjoint moves says nothing of that. And each is taken at its own solution of contact. Where they part, the
/// rounding of both is measured, under a disturbance of what steps in their two kinds of numbers differ by.
void measure_where_they_part(const ProbedProblem& probed, const GradientCheckOptions& options, double stiff,
                             Findings& f) {
  std::vector<Probe> parted;
  std::vector<size_t> which;
  size_t first = 0;
  for (const ProbeGroup& group : probed.groups()) {
    const RowTolerance tolerance(f, group, first, stiff);
    const double factor = group.name == options.fault_row ? options.fault_factor : 1;
    const std::vector<Comparison> all = comparisons(f, group, tolerance, factor);
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].is_derivative()) continue;
      parted.push_back(group.probes[i]);
      which.push_back(first + i);
    }
    first += group.probes.size();
  }
  if (which.empty()) return;
  f.step_defect = probed.step_defect();
  const double disturbance = std::max(kDisturbance, f.step_defect);
  const std::vector<double> of_dual = probed.derivative_rounding(parted, kDisturbedWorlds, disturbance);
  const Rounding of_adjoint = measure_rounding(probed.disturbed_gradients<double>(kDisturbedWorlds, disturbance));
  for (size_t k = 0; k < which.size(); ++k) {
    const size_t at = which[k];
    f.rounding.gradient[at] = std::max(f.rounding.gradient[at], of_adjoint.gradient[at]);
    f.dual_rounding[at] = of_dual[k];
  }
}

void count_row(const GradientCheckRow& row, GradientCheck& check) {
  check.numbers += row.count;
  check.passed = check.passed && row.passed;
  check.zero_rows += row.used && row.zero;
  check.unresolved_rows += row.unresolved;
  check.undecided_rows += row.undecided;
  check.rough_rows += row.rough;
  check.parted_rows += row.parted;
  check.float32_unresolved_rows += row.float32.unresolved;
  check.macroscopic_rows += row.macroscopic.parts;
}

}  // namespace

GradientCheck check_gradients(const Problem& problem, const GradientCheckOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const ProbedProblem probed(problem, options);
  Findings found = find_all(probed, options);
  const double stiff = amplification(problem);
  measure_where_they_part(probed, options, stiff, found);
  GradientCheck check;
  check.loss = found.adjoint.loss[0];
  check.step_defect = found.step_defect;
  check.passed = true;
  size_t at = 0;
  for (const ProbeGroup& group : probed.groups()) {
    GradientCheckRow row;
    row.name = group.name;
    row.unit = group.unit;
    row.total = group.total;
    const size_t count = group.probes.size();
    if (group.unused) {
      fill_unused(row, group, found.adjoint.parameters);
    } else {
      const bool faulty = row.name == options.fault_row;
      const RowTolerance tolerance(found, group, at, stiff);
      fill_row(row, comparisons(found, group, tolerance, faulty ? options.fault_factor : 1), group.index,
               found.rounding.loss > kNoisyLoss * std::abs(check.loss));
      if (options.float32) {
        fill_float32(row, std::span(found.float32).subspan(at, count), group.index);
      }
      fill_macroscopic(row, std::span(found.macroscopic).subspan(at, count), group.index);
    }
    at += count;
    count_row(row, check);
    check.rows.push_back(std::move(row));
  }
  check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return check;
}

}  // namespace backdrive
