#pragma once
// How the numbers that an optimiser moves become states, controls and parameters, and how
// gradients come back.
#include <array>
#include <optional>
#include <vector>

#include "autodiff/dependence.h"
#include "autodiff/loss.h"
#include "autodiff/optimize.h"
#include "engine/dual.h"
#include "engine/spatial.h"

namespace backdrive {

/// Turns the numbers of a parameter variable into the parameter, and gradients back. Most are taken
/// as they are. An axis is the three numbers a made a unit vector, a / |a|. An orientation is R₀
/// exp(θ) with θ three numbers in rad that start at zero, about the axes of R₀, the value before.
/// Of geometry.scale only what the shape's type uses is varied.
class ParameterChart {
 public:
  /// `initial` replaces the model's value unless empty: one number for all components, or all
  /// components (of an orientation: the quaternion). Throws Error (input) for another count, and
  /// for component 3 of an orientation, which has three tangents.
  ParameterChart(const Model& model, const FieldSelection& selection, const std::vector<double>& initial = {});

  const Field& field() const { return *selection_.field; }
  int item() const { return selection_.item; }
  int size() const { return size_; }
  /// The numbers of the value before. Size size().
  std::vector<double> start() const;
  /// Sets the parameter in one world, or in all (−1).
  void write(Parameter& to, const double* numbers, int world = -1) const;
  /// Gradient with respect to the numbers, from that of the field (`tangents` numbers). C is double
  /// or Dual<double>.
  template <class C>
  void pull(const C* numbers, const C* field_gradient, C* gradient) const;
  /// Tangent of the field (`tangents` numbers) as the numbers move along numbers_dot.
  void push(const double* numbers, const double* numbers_dot, double* field_dot) const;

 private:
  enum class Kind { plain, axis, orientation };
  int component(int k) const { return selection_.component < 0 ? k : selection_.component; }
  template <class C>
  Vec3<C> three(const C* numbers) const;

  FieldSelection selection_;
  Kind kind_ = Kind::plain;
  int size_ = 0;
  std::array<double, 6> base_{};  ///< all components of the field
};

/// Variables with everything that is known about them before the first evaluation.
struct VariableEntry {
  VariableKind kind;
  int offset, size;                ///< in the flat list of numbers
  double scale;                    ///< value = number · scale
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

/// Row within one step of a control.
int channel_row(const Link& link, ControlChannel channel);

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
