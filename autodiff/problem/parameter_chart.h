#pragma once
// How the numbers of a parameter variable become the parameter, and gradients come back: the same source for the host
// and for kernels.
#include <vector>

#include "engine/spatial.h"
#include "models/parameter_list.h"

namespace backdrive {

/// Σ (−s)^k / (2k + first)!: (1 − cos φ)/φ² for first = 2, (φ − sin φ)/φ³ for first = 3, with s = φ². Twenty terms
/// carry full precision to |φ| = 2π; turns beyond lose a digit each.
template <class C>
BACKDRIVE_HD inline C rotation_series(const C& s, int first) {
  C sum = constant<C>(0);
  for (int k = 19; k >= 0; --k) {
    // 1/(2k+first)! · (1 − s (2k+first)!/(2k+2+first)! · …), innermost first
    const double n = 2 * k + first;
    sum = constant<C>(1) - s * sum * constant<C>(1 / ((n + 1) * (n + 2)));
  }
  return sum * constant<C>(first == 2 ? 1.0 / 2 : 1.0 / 6);
}

/// Left Jacobian of exp, Jl(θ) v = v + B θ×v + C θ×(θ×v); Jr(θ) = Jl(−θ) = Jl(θ)ᵀ.
template <class C>
BACKDRIVE_HD inline Vec3<C> left_jacobian(const Vec3<C>& theta, const Vec3<C>& v) {
  const C s = dot(theta, theta);
  const Vec3<C> once = cross(theta, v);
  return v + once * rotation_series(s, 2) + cross(theta, once) * rotation_series(s, 3);
}

/// base · exp(θ) as a unit quaternion (x, y, z, w).
BACKDRIVE_HD inline void turned(const double* base, const Vec3<double>& theta, double* result) {
  const double angle = std::sqrt(dot(theta, theta));
  const double sine = angle < 1e-8 ? 0.5 : std::sin(angle / 2) / angle;
  const Vec3<double> a{base[0], base[1], base[2]}, b = theta * sine;
  const double aw = base[3], bw = std::cos(angle / 2);
  const Vec3<double> v = b * aw + a * bw + cross(a, b);
  const double w = aw * bw - dot(a, b);
  const double scale = 1 / std::sqrt(dot(v, v) + w * w);
  result[0] = v.x * scale, result[1] = v.y * scale, result[2] = v.z * scale, result[3] = w * scale;
}

/// What kernels know of a ParameterChart.
struct Chart {
  enum class Kind { plain, axis, orientation };

  Kind kind = Kind::plain;
  int size = 0;       ///< how many numbers are varied
  int selected = -1;  ///< the component that is; −1: the first `size` of them
  double base[6]{};   ///< all components of the value before

  BACKDRIVE_HD int component(int k) const { return selected < 0 ? k : selected; }
  /// Number k of the value before.
  BACKDRIVE_HD double start(int k) const { return kind == Kind::orientation ? 0 : base[component(k)]; }

  // Numbers are told one by one, numbers(k), and no arrays of a thread stand between: nvcc (13.0) took what a loop had
  // put into one for undefined where it was read by constant indices, and made NaN of it.

  /// Calls put(component, value) for each component that the numbers decide.
  template <class Numbers, class Put>
  BACKDRIVE_HD void write(const Numbers& numbers, const Put& put) const {
    if (kind == Kind::plain) {
      for (int k = 0; k < size; ++k) put(component(k), numbers(k));
      return;
    }
    const Vec3<double> v = three<double>(numbers);
    if (kind == Kind::axis) {
      const double length = std::sqrt(dot(v, v));
      put(0, v.x / length), put(1, v.y / length), put(2, v.z / length);
      return;
    }
    double q[4];
    turned(base, v, q);
    for (int c = 0; c < 4; ++c) put(c, q[c]);
  }

  /// Gradient with respect to the numbers, from that of the field, field_gradient(component): calls put(k, its number
  /// k). C is double or Dual<double>.
  template <class C, class Numbers, class FieldGradient, class Put>
  BACKDRIVE_HD void pull(const Numbers& numbers, const FieldGradient& field_gradient, const Put& put) const {
    if (kind == Kind::plain) {
      for (int k = 0; k < size; ++k) put(k, field_gradient(component(k)));
      return;
    }
    const Vec3<C> v = three<C>(numbers);
    Vec3<C> bar{field_gradient(0), field_gradient(1), field_gradient(2)};
    if (kind == Kind::axis) {
      // (1 − n nᵀ) g / |a|, and the gradient of an axis is tangent already.
      bar = bar * (constant<C>(1) / square_root(dot(v, v)));
    } else {
      bar = left_jacobian(v, bar);  // Jrᵀ = Jl
    }
    for (int k = 0; k < size; ++k) {
      const int c = component(k);
      put(k, c == 0 ? bar.x : c == 1 ? bar.y : bar.z);
    }
  }

  /// The three numbers of an axis or of θ, those that are not varied included.
  template <class C, class Numbers>
  BACKDRIVE_HD Vec3<C> three(const Numbers& numbers) const {
    const auto at = [&](int c) {
      const bool varied = selected < 0 ? c < size : c == selected;
      return varied ? numbers(selected < 0 ? c : 0) : constant<C>(kind == Kind::axis ? base[c] : 0);
    };
    return {at(0), at(1), at(2)};
  }
};

/// Turns the numbers of a parameter variable into the parameter, and gradients back. Most are taken as they are. An
/// axis is the three numbers a made a unit vector, a / |a|. An orientation is R₀ exp(θ) with θ three numbers in rad
/// that start at zero, about the axes of R₀, the value before. Of geometry.scale only what the shape's type uses is
/// varied.
class ParameterChart {
 public:
  /// `initial` replaces the model's value unless empty: one number for all components, or all components (of an
  /// orientation: the quaternion). Throws Error (input) for another count, and for component 3 of an orientation,
  /// which has three tangents.
  ParameterChart(const Model& model, const FieldSelection& selection, const std::vector<double>& initial = {});

  const Field& field() const { return *selection_.field; }
  int item() const { return selection_.item; }
  int size() const { return chart_.size; }
  const Chart& chart() const { return chart_; }
  /// The numbers of the value before. Size size().
  std::vector<double> start() const;
  /// Other numbers to start from; of a plain chart.
  void start_at(const double* numbers);
  /// Sets the parameter in one world, or in all (−1).
  void write(Parameter& to, const double* numbers, int world = -1) const;
  /// Gradient with respect to the numbers, from that of the field (`tangents` numbers). C is double or Dual<double>.
  template <class C>
  void pull(const C* numbers, const C* field_gradient, C* gradient) const {
    chart_.pull<C>([&](int k) { return numbers[k]; }, [&](int c) { return field_gradient[c]; },
                   [&](int k, const C& x) { gradient[k] = x; });
  }
  /// Tangent of the field (`tangents` numbers) as the numbers move along numbers_dot.
  void push(const double* numbers, const double* numbers_dot, double* field_dot) const;

 private:
  FieldSelection selection_;
  Chart chart_;
};

}  // namespace backdrive
