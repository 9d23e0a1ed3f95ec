#include "autodiff/check/gradient_rows.h"

#include <cstdio>
#include <string>

namespace backdrive {
namespace {

/// A tolerance above this part of the gradient resolves nothing of it.
constexpr double kResolved = 0.1;
/// A tolerance above this part of the gradient is pointed out.
constexpr double kRough = 1e-2;

std::string text(const char* format, auto... arguments) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, format, arguments...);
  return buffer;
}

}  // namespace

void fill_row(GradientCheckRow& row, const std::vector<Comparison>& all, const std::vector<int>& index,
              bool noisy_loss) {
  size_t worst = 0;
  bool exact_zero = true, near_zero = true, derivative = true;
  double largest = 0, widest = 0;  // widest: tolerance of what does not agree as it is
  for (const Comparison& c : all) largest = std::max(largest, std::abs(c.dual));
  for (const Comparison& c : all) {
    if (!(c.dual_error() <= kAgreement * largest)) widest = std::max(widest, c.dual_tolerance);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const Comparison& c = all[i];
    row.gradient.push_back(c.adjoint);
    derivative = derivative && c.is_derivative();
    if (c.is_derivative() < all[worst].is_derivative() ||
        (c.is_derivative() == all[worst].is_derivative() && c.badness() > all[worst].badness())) {
      worst = i;
    }
    exact_zero = exact_zero && c.adjoint == 0 && c.dual == 0;
    // What rounding may make anything of is not known to be zero.
    near_zero = near_zero && c.dual_tolerance <= std::max(c.small, 1e-300) && std::abs(c.adjoint) <= c.dual_tolerance &&
                std::abs(c.dual) <= c.dual_tolerance &&
                (!c.difference.taken || std::abs(c.difference.value) <= c.difference.tolerance());
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
  const bool taken = c.difference.taken;
  row.passed = derivative && (!taken || std::isfinite(c.difference.value));
  row.zero = agrees && (near_zero || exact_zero);
  row.undecided = row.passed && !row.zero && !c.difference.kink && widest > kResolved * largest;
  row.unresolved = row.passed && !row.zero && taken && c.difference.tolerance() > kResolved * std::abs(c.dual);
  row.truncation = kSafety * c.difference.truncation;
  row.round_off = kSafety * c.difference.round_off;
  row.tolerance_source = text(
      "differences: %.0f × (truncation, from h against 8h, + round-off, from the loss with inputs "
      "disturbed by %.0e, over h); dual: %.0f × rounding, from the gradient with the same inputs",
      kSafety, kDisturbance, kSafety);
  if (row.zero) row.note = exact_zero ? "zero: the loss does not depend on it" : "zero to rounding";
  if (!row.zero && taken && c.difference.tolerance() > kRough * std::abs(c.dual)) {
    row.note = text("differences resolve only %.0e of it here", c.difference.tolerance() / std::abs(c.dual));
  }
  if (c.difference.kink) {
    row.note =
        text("on a kink of the loss: slopes %.6g and %.6g to its sides", c.difference.value, c.difference.other_slope);
  }
  if (row.undecided) row.note = text("rounding leaves %.0e of it uncertain", widest / largest);
  // Only then do the differences say nothing of the gradient, which two ways of computing it agree on.
  const bool no_measure = noisy_loss || (!c.difference.settles && !c.difference.kink);
  row.rough = row.passed && !agrees && no_measure;
  row.parted = row.passed && !agrees && !no_measure;
  if (row.rough) row.note = "differences do not settle as their step shrinks";
  if (row.parted) row.note = text("over %.0e to each side the loss has another slope", c.difference.step);
  if (taken && !std::isfinite(c.difference.value)) row.note = "differences: the loss is not finite at any step";
  if (!std::isfinite(c.adjoint)) row.note = "the adjoint's gradient is not finite";
}

void fill_float32(GradientCheckRow& row, std::span<const Float32Check> all, const std::vector<int>& index) {
  double worst = -1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Float32Check& c = all[i];
    const double badness = c.passed ? c.error / std::max(c.tolerance, 1e-300) : kInfinity;
    if (!(badness > worst)) continue;
    worst = badness;
    row.float32 = c;
    row.float32.worst = index[i];
    row.float32.unresolved = c.passed && !row.zero && c.resolution > kResolved * std::abs(c.dual);
  }
  row.passed = row.passed && row.float32.passed;
  if (!row.float32.passed) row.note = "in float32 the adjoint is another";
}

void fill_macroscopic(GradientCheckRow& row, std::span<const MacroscopicSlope> all, const std::vector<int>& index) {
  double worst = -1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const MacroscopicSlope& m = all[i];
    const double gap = std::isfinite(m.slope) ? std::abs(m.slope - m.derivative) * m.distance : kInfinity;
    const double badness = m.parts ? 1 + gap : gap / (1 + gap);
    if (!m.done || !(badness > worst)) continue;
    worst = badness;
    row.macroscopic = m;
    row.macroscopic.worst = index[i];
  }
}

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

}  // namespace backdrive
