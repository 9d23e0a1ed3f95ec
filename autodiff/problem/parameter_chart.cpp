#include "autodiff/problem/parameter_chart.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"

namespace backdrive {

ParameterChart::ParameterChart(const Model& model, const FieldSelection& selection, const std::vector<double>& initial)
    : selection_(selection) {
  const Field& f = *selection.field;
  const Parameter& values = f.in(model);
  if (f.leaf == "axis") chart_.kind = Chart::Kind::axis;
  const bool orientation = f.tangents != f.components;
  if (orientation) chart_.kind = Chart::Kind::orientation;
  const int used = orientation ? f.tangents : used_components(model, f, selection.item);
  const std::string path = path_of(model, selection);
  if (selection.component >= used) {
    input_error(path + ": component " + std::to_string(selection.component) + " of a parameter that varies in " +
                std::to_string(used) + " ways");
  }
  chart_.selected = selection.component;
  chart_.size = selection.component < 0 ? used : 1;
  for (int c = 0; c < f.components; ++c) chart_.base[c] = values(selection.item, c);
  const int given = static_cast<int>(initial.size());
  if (given == 0) return;
  const bool one_for_all = given == 1 && chart_.kind == Chart::Kind::plain;
  const bool one = given == 1 && selection.component >= 0 && !orientation;
  const bool all = selection.component < 0 && (given == f.components || given == used);
  const bool quaternion = orientation && given == 4;
  if (!one_for_all && !one && !quaternion && (!all || orientation)) {
    input_error(path + ": " + std::to_string(given) + " initial values, expected " +
                (orientation ? "a quaternion" : std::to_string(size())));
  }
  for (int c = 0; c < (quaternion ? 4 : size()); ++c) {
    chart_.base[quaternion ? c : chart_.component(c)] = initial[given == 1 ? 0 : c];
  }
}

std::vector<double> ParameterChart::start() const {
  std::vector<double> numbers(size());
  for (int k = 0; k < size(); ++k) numbers[k] = chart_.start(k);
  return numbers;
}

void ParameterChart::start_at(const double* numbers) {
  for (int k = 0; k < size(); ++k) chart_.base[chart_.component(k)] = numbers[k];
}

void ParameterChart::write(Parameter& to, const double* numbers, int world) const {
  const auto put = [&](int c, double value) {
    if (world < 0) {
      to.set(item(), c, value);
    } else {
      to.at(item(), c, world) = value;
    }
  };
  chart_.write([&](int k) { return numbers[k]; }, put);
}

void ParameterChart::push(const double* numbers, const double* numbers_dot, double* field_dot) const {
  std::fill_n(field_dot, field().tangents, 0.0);
  for (int k = 0; k < size(); ++k) field_dot[chart_.component(k)] = numbers_dot[k];
  if (chart_.kind == Chart::Kind::plain) return;
  const Vec3<double> v = chart_.three<double>([&](int k) { return numbers[k]; });
  Vec3<double> dots{field_dot[0], field_dot[1], field_dot[2]};
  if (chart_.kind == Chart::Kind::axis) {
    const double square = dot(v, v);
    dots = (dots - v * (dot(v, dots) / square)) * (1 / std::sqrt(square));
  } else {
    dots = left_jacobian(-v, dots);
  }
  field_dot[0] = dots.x, field_dot[1] = dots.y, field_dot[2] = dots.z;
}

}  // namespace backdrive
