#pragma once
// How the numbers that an optimiser moves become states, controls and parameters, and how
// gradients come back.
#include <optional>
#include <vector>

#include "autodiff/problem/inputs.h"
#include "autodiff/problem/parameter_chart.h"

namespace backdrive {

/// Variables as one flat list of scaled numbers, variable by variable. Tied ones stand on the numbers of others, those
/// that are expressions on numbers of their own behind all others, which are computed.
struct VariableLayout {
  std::vector<int> offset;  ///< per variable
  std::vector<int> size;
  int total = 0;     ///< numbers that may be moved
  int computed = 0;  ///< behind them
};
VariableLayout variable_layout(const Problem& problem);

/// A product that computed numbers are the sum of, as kernels read it: factor · Π factors[first, first + count) is
/// added to `size` numbers from `to` on.
struct TieProduct {
  int variable, to, size;
  double factor;
  int first, count;
};
/// value = number · scale: of one number for each number of the product (step 1), or of one for all.
struct TieFactor {
  int offset, step;
  double scale;
};
/// The numbers of one world, which stand `stride` apart.
template <class N>
struct WorldNumbers {
  N* first;
  std::size_t stride = 1;
  BACKDRIVE_HD N& operator[](int k) const { return first[k * stride]; }
};
struct TieProducts {
  std::vector<TieProduct> products;
  std::vector<TieFactor> factors;

  /// A factor's value in the k-th number of a product.
  template <class N>
  static BACKDRIVE_HD N value(const TieFactor& f, int k, WorldNumbers<const N> numbers) {
    return numbers[f.offset + f.step * k] * N(f.scale);
  }
  /// A product without its factor number `but` (-1: with all).
  template <class N>
  static BACKDRIVE_HD N times(const TieProduct& p, const TieFactor* factors, int k, int but,
                              WorldNumbers<const N> numbers) {
    N result(p.factor);
    for (int i = p.first; i < p.first + p.count; ++i) {
      if (i != but) result = result * value<N>(factors[i], k, numbers);
    }
    return result;
  }
  /// Sets the computed numbers, which are zero, from the others.
  template <class N>
  static BACKDRIVE_HD void add(const TieProduct& p, const TieFactor* factors, WorldNumbers<N> numbers) {
    for (int k = 0; k < p.size; ++k) {
      N& to = numbers[p.to + k];
      to = to + times<N>(p, factors, k, -1, {numbers.first, numbers.stride});
    }
  }
  /// Chain rule: what a cotangent of the product's k-th number adds to those of the numbers that it is made of.
  template <class N>
  static BACKDRIVE_HD void pull(const TieProduct& p, const TieFactor* factors, int k, const N& bar,
                                WorldNumbers<const N> numbers, WorldNumbers<N> gradient) {
    for (int i = p.first; i < p.first + p.count; ++i) {
      N& to = gradient[factors[i].offset + factors[i].step * k];
      to = to + bar * times<N>(p, factors, k, i, numbers) * N(factors[i].scale);
    }
  }
};
TieProducts tie_products(const Problem& problem, const VariableLayout& layout);
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
