#include "apps/body_states.h"

#include <numeric>

#include "integrators/rollout/arguments.h"
#include "models/parameter_reader.h"

namespace backdrive::app {
namespace {

/// Σ of(body)
template <class Of>
Vec3<double> sum_over(int bodies, const Of& of) {
  Vec3<double> sum{0, 0, 0};
  for (int body = 0; body < bodies; ++body) sum = sum + of(body);
  return sum;
}

Buffer<double> buffer_of(std::span<const double> numbers, int rows) {
  Buffer<double> buffer(rows, 1);
  for (std::size_t k = 0; k < numbers.size(); ++k) buffer.set(static_cast<int>(k), 0, numbers[k]);
  return buffer;
}

}  // namespace

BodyStates::BodyStates(const Model& model, int count, std::span<const double> q, std::span<const double> qd) {
  State<double> states;
  states.q = buffer_of(q, row_count(count, model.topology.nq));
  states.qd = buffer_of(qd, row_count(count, model.topology.nv));
  std::vector<int> bodies(model.body_names.size());
  std::iota(bodies.begin(), bodies.end(), 0);
  motions_ = body_motions<double>(nullptr, model, states, bodies, {});
  for (const int body : bodies) {
    masses_.push_back(body_mass(model, body, 0));
    mass_of_all_ += masses_.back().mass;
  }
}

double BodyStates::number(int state, int body, int which) const {
  return motions_((state * bodies() + body) * kMotionRows + which, 0);
}

Vec3<double> BodyStates::vector(int state, int body, int first) const {
  return {number(state, body, first), number(state, body, first + 1), number(state, body, first + 2)};
}

Mat3<double> BodyStates::axes(int state, int body) const {
  return {vector(state, body, 3), vector(state, body, 6), vector(state, body, 9)};
}

BodyStates::Center BodyStates::center(int state, int body) const {
  const Vec lever = axes(state, body) * masses_[body].com;
  return {masses_[body].mass, position(state, body) + lever,
          velocity(state, body) + cross(angular_velocity(state, body), lever)};
}

Vec3<double> BodyStates::spin(int state, int body) const {
  const Mat3<double> R = axes(state, body);
  return R * (masses_[body].inertia * transposed_times(R, angular_velocity(state, body)));
}

Vec3<double> BodyStates::center_of_mass(int state) const {
  return sum_over(bodies(), [&](int body) { return center(state, body).position * mass(body); }) * (1 / mass_of_all_);
}

Vec3<double> BodyStates::momentum(int state) const {
  return sum_over(bodies(), [&](int body) { return center(state, body).velocity * mass(body); });
}

Vec3<double> BodyStates::angular_momentum(int state) const {
  const Vec origin = center_of_mass(state);
  return sum_over(bodies(), [&](int body) {
    const Center c = center(state, body);
    return cross(c.position - origin, c.velocity * c.mass) + spin(state, body);
  });
}

}  // namespace backdrive::app
