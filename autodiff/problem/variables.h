#pragma once
// How the numbers that an optimiser moves become states, controls and parameters, and how
// gradients come back.
#include <optional>
#include <vector>

#include "autodiff/problem/inputs.h"
#include "autodiff/problem/parameter_chart.h"

namespace backdrive {

/// Variables as one flat list of scaled numbers, variable by variable. Tied ones stand on the numbers of others.
struct VariableLayout {
  std::vector<int> offset;  ///< per variable
  std::vector<int> size;
  int total = 0;
};
VariableLayout variable_layout(const Problem& problem);
/// How the values of a variable come of its numbers: of a tied one from those of the other.
struct VariableScale {
  double scale, shift;  ///< value = number · scale + shift
};
VariableScale scale_of(const Problem& problem, const Variable& variable);

/// Where each start begins: [start][number], scaled, within bounds. Start 0 has no random part when there are several.
std::vector<std::vector<double>> initial_points(const Problem& problem, int starts, std::uint64_t seed);

/// The problem with the variables' values (unscaled from `x`) put in place of its own.
Problem with_values(const Problem& problem, const std::vector<double>& x);

/// Variables with everything that is known about them before the first evaluation.
struct VariableEntry {
  VariableKind kind;
  int offset, size;                ///< in the flat list of numbers
  double scale, shift;             ///< value = number · scale + shift
  int row = 0;                     ///< of q, of qd, or in one step of the control
  std::vector<KnotWeights> knots;  ///< of a control, per step
  std::optional<ParameterChart> chart;
};
/// Throws Error (input) when two variables drive the same number, or one cannot change the motion.
std::vector<VariableEntry> variable_entries(const Problem& problem);

/// Bounds of all scaled numbers; what must not be negative is bounded by zero, a length by 1 µm.
struct VariableBounds {
  std::vector<double> lower, upper;

  bool any() const;
  void clip(std::vector<double>& x) const;
  /// Euclidean norm of P(x − g) − x, where P clips: that of g where no bound is near.
  double projected_norm(const double* x, const double* gradient) const;
};
VariableBounds variable_bounds(const Problem& problem);

/// Adds cotangents of a control [steps·nu][world] to gradient[world][offset + knot], not scaled.
template <class T, class C>
void pull_control(const VariableEntry& entry, const Buffer<T>& control_bar, int nu,
                  std::vector<std::vector<C>>& gradient) {
  for (size_t step = 0; step < entry.knots.size(); ++step) {
    const KnotWeights& k = entry.knots[step];
    const T* bar = control_bar.row(static_cast<int>(step) * nu + entry.row);
    for (size_t w = 0; w < gradient.size(); ++w) {
      const C u_bar(bar[w]);
      gradient[w][entry.offset + k.first] += u_bar * C(k.first_weight);
      gradient[w][entry.offset + k.second] += u_bar * C(k.second_weight);
    }
  }
}

}  // namespace backdrive
