#include <algorithm>
#include <cmath>

#include "autodiff/variables.h"
#include "engine/error.h"
#include "engine/spatial.h"

namespace backdrive {
namespace {

/// Σ (−s)^k / (2k + first)!: (1 − cos φ)/φ² for first = 2, (φ − sin φ)/φ³ for first = 3, with s =
/// φ². Twenty terms carry full precision to |φ| = 2π; turns beyond lose a digit each.
template <class C>
C rotation_series(const C& s, int first) {
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
Vec3<C> left_jacobian(const Vec3<C>& theta, const Vec3<C>& v) {
  const C s = dot(theta, theta);
  const Vec3<C> once = cross(theta, v);
  return v + once * rotation_series(s, 2) + cross(theta, once) * rotation_series(s, 3);
}

/// base · exp(θ) as unit quaternions (x, y, z, w).
std::array<double, 4> turned(const double* base, const Vec3<double>& theta) {
  const double angle = std::sqrt(dot(theta, theta));
  const double sine = angle < 1e-8 ? 0.5 : std::sin(angle / 2) / angle;
  const Vec3<double> a{base[0], base[1], base[2]}, b = theta * sine;
  const double aw = base[3], bw = std::cos(angle / 2);
  const Vec3<double> v = b * aw + a * bw + cross(a, b);
  const double w = aw * bw - dot(a, b);
  const double scale = 1 / std::sqrt(dot(v, v) + w * w);
  return {v.x * scale, v.y * scale, v.z * scale, w * scale};
}

}  // namespace

ParameterChart::ParameterChart(const Model& model, const FieldSelection& selection, const std::vector<double>& initial)
    : selection_(selection) {
  const Field& f = *selection.field;
  const Parameter& values = f.in(model);
  if (f.leaf == "axis") kind_ = Kind::axis;
  if (f.tangents != f.components) kind_ = Kind::orientation;
  int used = f.tangents;
  if (f.leaf == "geometry/scale") used = scale_components(model.shape_types[selection.item]);
  const std::string path = path_of(model, selection);
  if (selection.component >= used) {
    input_error(path + ": component " + std::to_string(selection.component) + " of a parameter that varies in " +
                std::to_string(used) + " ways");
  }
  size_ = selection.component < 0 ? used : 1;
  for (int c = 0; c < f.components; ++c) base_[c] = values(selection.item, c);
  const int given = static_cast<int>(initial.size());
  if (given == 0) return;
  const bool one_for_all = given == 1 && kind_ == Kind::plain;
  const bool one = given == 1 && selection.component >= 0 && kind_ != Kind::orientation;
  const bool all = selection.component < 0 && (given == f.components || given == used);
  const bool quaternion = kind_ == Kind::orientation && given == 4;
  if (!one_for_all && !one && !quaternion && (!all || kind_ == Kind::orientation)) {
    input_error(path + ": " + std::to_string(given) + " initial values, expected " +
                (kind_ == Kind::orientation ? "a quaternion" : std::to_string(size_)));
  }
  for (int c = 0; c < (quaternion ? 4 : size_); ++c) {
    base_[quaternion ? c : component(c)] = initial[given == 1 ? 0 : c];
  }
}

std::vector<double> ParameterChart::start() const {
  std::vector<double> numbers(size_, 0.0);
  if (kind_ == Kind::orientation) return numbers;
  for (int k = 0; k < size_; ++k) numbers[k] = base_[component(k)];
  return numbers;
}

/// The three numbers of an axis or of θ, those that are not varied included.
template <class C>
Vec3<C> ParameterChart::three(const C* numbers) const {
  C v[3];
  for (int c = 0; c < 3; ++c) v[c] = constant<C>(kind_ == Kind::axis ? base_[c] : 0);
  for (int k = 0; k < size_; ++k) v[component(k)] = numbers[k];
  return {v[0], v[1], v[2]};
}

void ParameterChart::write(Parameter& to, const double* numbers, int world) const {
  const auto put = [&](int c, double value) {
    if (world < 0) {
      to.set(item(), c, value);
    } else {
      to.at(item(), c, world) = value;
    }
  };
  if (kind_ == Kind::plain) {
    for (int k = 0; k < size_; ++k) put(component(k), numbers[k]);
    return;
  }
  const Vec3<double> v = three(numbers);
  if (kind_ == Kind::axis) {
    const double length = std::sqrt(dot(v, v));
    put(0, v.x / length), put(1, v.y / length), put(2, v.z / length);
    return;
  }
  const std::array<double, 4> q = turned(base_.data(), v);
  for (int c = 0; c < 4; ++c) put(c, q[c]);
}

template <class C>
void ParameterChart::pull(const C* numbers, const C* field_gradient, C* gradient) const {
  if (kind_ == Kind::plain) {
    for (int k = 0; k < size_; ++k) gradient[k] = field_gradient[component(k)];
    return;
  }
  const Vec3<C> v = three(numbers);
  Vec3<C> bar{field_gradient[0], field_gradient[1], field_gradient[2]};
  if (kind_ == Kind::axis) {
    // (1 − n nᵀ) g / |a|, and the gradient of an axis is tangent already.
    bar = bar * (constant<C>(1) / square_root(dot(v, v)));
  } else {
    bar = left_jacobian(v, bar);  // Jrᵀ = Jl
  }
  const C all[3] = {bar.x, bar.y, bar.z};
  for (int k = 0; k < size_; ++k) gradient[k] = all[component(k)];
}
template void ParameterChart::pull<double>(const double*, const double*, double*) const;
template void ParameterChart::pull<Dual<double>>(const Dual<double>*, const Dual<double>*, Dual<double>*) const;

void ParameterChart::push(const double* numbers, const double* numbers_dot, double* field_dot) const {
  std::fill_n(field_dot, field().tangents, 0.0);
  for (int k = 0; k < size_; ++k) field_dot[component(k)] = numbers_dot[k];
  if (kind_ == Kind::plain) return;
  const Vec3<double> v = three(numbers);
  Vec3<double> dots{field_dot[0], field_dot[1], field_dot[2]};
  if (kind_ == Kind::axis) {
    const double square = dot(v, v);
    dots = (dots - v * (dot(v, dots) / square)) * (1 / std::sqrt(square));
  } else {
    dots = left_jacobian(-v, dots);
  }
  field_dot[0] = dots.x, field_dot[1] = dots.y, field_dot[2] = dots.z;
}

}  // namespace backdrive
