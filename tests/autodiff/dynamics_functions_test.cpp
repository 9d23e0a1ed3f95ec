// What controllers ask of a model beside forward and inverse dynamics: bias forces, the mass matrix on a tape,
// Jacobians of points, derivatives of accelerations, centre of mass, momentum and energy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autodiff/tape/dynamics.h"
#include "autodiff/tape/mass_motion.h"
#include "integrators/reference/dynamics_derivatives.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/coordinates.h"
#include "models/mass_properties.h"
#include "models/parameter_list.h"
#include "models/parameter_reader.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/random.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

constexpr int kWorlds = 9;  // more than one pack, and no whole number of them

Model some_robot(int seed) {
  test::TreeOptions options;
  options.forces = options.rotations = true;
  options.links = seed % 7 + 2;
  return test::random_tree(static_cast<std::uint64_t>(seed), options);
}

template <class T>
std::vector<double> column_of(const Buffer<T>& buffer, int world) {
  std::vector<double> column;
  for (int r = 0; r < buffer.rows(); ++r) column.push_back(double(buffer(r, world)));
  return column;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  double scale = 1;
  for (const double x : wanted) scale = std::max(scale, std::abs(x));
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], wanted[k], tolerance * scale) << k;
}

template <class T>
State<double> in_doubles(const Model& model, const State<T>& state) {
  State<double> result(model, state.q.worlds());
  for (int w = 0; w < state.q.worlds(); ++w) {
    for (int r = 0; r < state.q.rows(); ++r) result.q.set(r, w, double(state.q(r, w)));
    for (int r = 0; r < state.qd.rows(); ++r) result.qd.set(r, w, double(state.qd(r, w)));
  }
  return result;
}

const std::array<double, 3> kPoint{0.3, -0.2, 0.1};

/// By its definition, from the bodies' motions: position and velocity of the centre of mass, momenta.
std::vector<double> sums_over_bodies(const Model& model, const State<double>& state, int world) {
  std::vector<int> bodies(model.body_names.size());
  std::iota(bodies.begin(), bodies.end(), 0);
  const Buffer<double> motions = body_motions<double>(nullptr, model, state, bodies, {});
  using Vec = Vec3<double>;
  Vec first{0, 0, 0}, linear{0, 0, 0}, angular{0, 0, 0};
  double mass = 0;
  for (const int b : bodies) {
    const auto vector = [&](int row) {
      return Vec{motions(18 * b + row, world), motions(18 * b + row + 1, world), motions(18 * b + row + 2, world)};
    };
    const Mat3<double> R{vector(3), vector(6), vector(9)};
    const MassProperties<double> own = body_mass(model, b, world);
    const Vec lever = R * own.com, x = vector(0) + lever, omega = vector(15);
    const Vec p = (vector(12) + cross(omega, lever)) * own.mass;
    mass += own.mass;
    first += x * own.mass;
    linear += p;
    angular += cross(x, p) + R * (own.inertia * transposed_times(R, omega));
  }
  const Vec center = first * (1 / mass), velocity = linear * (1 / mass), spin = angular - cross(center, linear);
  std::vector<double> all;
  for (const Vec& v : {center, velocity, linear, spin}) all.insert(all.end(), {v.x, v.y, v.z});
  return all;
}

template <class T>
void agrees_with_reference(const Model& model, double tolerance) {
  const Topology& t = model.topology;
  const auto at = test::random_batch<T>(model, 1, test::first_worlds(kWorlds), 5);
  const State<double> exact = in_doubles(model, at.state);
  Buffer<T> tau(t.nv, kWorlds);
  for (int r = 0; r < t.nv; ++r) {
    for (int w = 0; w < kWorlds; ++w) tau.set(r, w, T(std::sin(r + 2.0 * w)));
  }
  const int body = static_cast<int>(model.body_names.size()) - 1;
  const Buffer<T> bias = bias_force<T>(nullptr, model, at.state),
                  J = jacobian<T>(nullptr, model, at.state.q, body, kPoint);
  const DynamicsDerivatives<T> by = dynamics_derivatives(model, at.state, tau, 2);
  const Buffer<T> center = center_of_mass<T>(nullptr, model, at.state), moves = momentum<T>(nullptr, model, at.state);
  const Buffer<T> energies = energy<T>(nullptr, model, at.state);
  const Buffer<double> motions = body_motions<double>(nullptr, model, exact, std::array{body}, {});
  for (int w = 0; w < kWorlds; ++w) {
    const std::vector<double> q = column_of(exact.q, w), qd = column_of(exact.qd, w);
    expect_close(column_of(bias, w), reference::inverse_dynamics(model, q, qd, std::vector<double>(t.nv, 0.0)),
                 tolerance);
    const reference::DynamicsDerivatives d = reference::dynamics_derivatives(model, q, qd, column_of(tau, w));
    expect_close(column_of(by.by_position, w), d.q, tolerance);
    expect_close(column_of(by.by_velocity, w), d.qd, tolerance);
    expect_close(column_of(by.by_effort, w), d.tau, tolerance);
    // J q̇ is how the point moves and the body turns.
    std::vector<double> moved(6, 0.0), expected;
    for (int k = 0; k < 6; ++k) {
      for (int v = 0; v < t.nv; ++v) moved[k] += double(J(k * t.nv + v, w)) * qd[v];
    }
    const auto vector = [&](int row) {
      return Vec3<double>{motions(row, w), motions(row + 1, w), motions(row + 2, w)};
    };
    const Vec3<double> lever = vector(3) * kPoint[0] + vector(6) * kPoint[1] + vector(9) * kPoint[2];
    const Vec3<double> velocity = vector(12) + cross(vector(15), lever), omega = vector(15);
    expect_close(moved, {velocity.x, velocity.y, velocity.z, omega.x, omega.y, omega.z}, tolerance);
    std::vector<double> sums = column_of(center, w), both = column_of(moves, w);
    sums.insert(sums.end(), both.begin(), both.end());
    expect_close(sums, sums_over_bodies(model, exact, w), tolerance);
    expect_close(column_of(energies, w),
                 {reference::kinetic_energy(model, q, qd), reference::potential_energy(model, q)}, tolerance);
  }
}

TEST(DynamicsFunctions, AgreeWithTheReference) {
  for (int seed = 40; seed < (test::kSanitized ? 43 : 54); ++seed) {
    SCOPED_TRACE(seed);
    agrees_with_reference<double>(some_robot(seed), 1e-10);
    agrees_with_reference<float>(some_robot(seed), 3e-3);
  }
}

using Function = std::function<Buffer<double>(Tape<double>*, const Model&, const State<double>&)>;

/// Σ (1 + k/10) (what the function gives)_k of one world.
double weighed(const Function& function, const Model& model, const State<double>& state) {
  const Buffer<double> y = function(nullptr, model, state);
  double sum = 0;
  for (int k = 0; k < y.rows(); ++k) sum += (1 + 0.1 * k) * y(k, 0);
  return sum;
}

class DynamicsGradients {
 public:
  DynamicsGradients(const Function& function, Model model) : function_(function), model_(std::move(model)) {
    for (const char* path : {"bodies/*/mass", "bodies/*/com", "bodies/*/inertia", "bodies/*/gravity_compensation",
                             "joints/*/armature", "joints/*/axis", "joints/*/frame/position", "gravity"}) {
      set_requires_grad(model_, path, true);
    }
    state_ = test::random_batch<double>(model_, 1, {0}, 5).state;
    Tape<double> tape;
    const Buffer<double> result = function(&tape, model_, state_);
    Buffer<double> one(result.rows(), 1);
    for (int k = 0; k < result.rows(); ++k) one.set(k, 0, 1 + 0.1 * k);
    Seeds<double> seeds;
    seeds.add(result, one);
    gradients_.emplace(std::move(tape).backward(seeds, Disconnected::zero));
  }

  /// How many numbers have a slope.
  int check() {
    const Parameters& by = gradients_->parameters();
    const int bodies = static_cast<int>(model_.body_names.size()), joints = static_cast<int>(model_.joint_names.size());
    for (int b = 0; b < bodies; ++b) {
      check("mass", model_.bodies.mass, by.bodies.mass, b, 1);
      check("gravity_compensation", model_.bodies.gravity_compensation, by.bodies.gravity_compensation, b, 1);
      check("com", model_.bodies.com, by.bodies.com, b, 3);
      check("inertia", model_.bodies.inertia, by.bodies.inertia, b, 6);
    }
    for (int j = 0; j < joints; ++j) {
      check("armature", model_.joints.armature, by.joints.armature, j, 1);
      if (has_one_degree(model_.joint_types[j])) check_axis(by.joints.axis, j);
      check("position", model_.joints.frame.position, by.joints.frame.position, j, 3);
    }
    check("gravity", model_.gravity, by.gravity, 0, 3);
    check_state();
    return seen_;
  }

 private:
  static constexpr double h = 1e-6;

  void expect(double exact, double above, double below, const std::string& what) {
    const double slope = (above - below) / (2 * h);
    EXPECT_NEAR(exact, slope, 1e-6 * std::max({1.0, std::abs(slope), std::abs(above)})) << what;
    seen_ += std::abs(slope) > 1e-3;
  }
  void check(const char* path, Parameter& p, const Parameter& by, int item, int components) {
    for (int c = 0; c < components; ++c) {
      const double x = p(item, c);
      p.set(item, c, x + h);
      const double above = weighed(function_, model_, state_);
      p.set(item, c, x - h);
      const double below = weighed(function_, model_, state_);
      p.set(item, c, x);
      expect(by(item, c), above, below, std::string(path) + " of " + std::to_string(item) + "/" + std::to_string(c));
    }
  }
  /// An axis stays a unit vector.
  void check_axis(const Parameter& by, int joint) {
    Parameter& axis = model_.joints.axis;
    const std::array<double, 3> own{axis(joint, 0), axis(joint, 1), axis(joint, 2)};
    const auto at = [&](int component, double change) {
      std::array<double, 3> other = own;
      other[component] += change;
      const double length = std::hypot(other[0], other[1], other[2]);
      for (int c = 0; c < 3; ++c) axis.set(joint, c, other[c] / length);
      const double result = weighed(function_, model_, state_);
      for (int c = 0; c < 3; ++c) axis.set(joint, c, own[c]);
      return result;
    };
    for (int c = 0; c < 3; ++c) expect(by(joint, c), at(c, h), at(c, -h), "axis of " + std::to_string(joint));
  }
  void check_state() {
    const Topology& t = model_.topology;
    const std::vector<int> tangent = tangent_rows(t);
    const std::vector<double> q = column_of(state_.q, 0);
    for (int v = 0; v < t.nv; ++v) {
      const auto at = [&](double by_q, double by_qd) {
        std::vector<double> small(t.nv, 0.0), moved = q;
        small[v] = by_q;
        add_tangent(t, small, moved);
        State<double> other(model_, 1);
        for (int r = 0; r < t.nq; ++r) other.q.set(r, 0, moved[r]);
        for (int r = 0; r < t.nv; ++r) other.qd.set(r, 0, state_.qd(r, 0) + (r == v ? by_qd : 0));
        return weighed(function_, model_, other);
      };
      expect(gradients_->of(state_.q)(tangent[v], 0), at(h, 0), at(-h, 0), "position " + std::to_string(v));
      if (!gradients_->has(state_.qd)) continue;
      expect(gradients_->of(state_.qd)(v, 0), at(0, h), at(0, -h), "velocity " + std::to_string(v));
    }
  }

  const Function& function_;
  Model model_;
  State<double> state_;
  std::optional<Gradients<double>> gradients_;
  int seen_ = 0;
};

// Central differences of the functions themselves, of numbers of some hundred: 1e-7 from rounding.
TEST(DynamicsFunctions, GradientsAgreeWithDifferences) {
  const std::pair<const char*, Function> all[] = {
      {"bias_force", [](auto* tape, const Model& m, const State<double>& s) { return bias_force<double>(tape, m, s); }},
      {"mass_matrix",
       [](auto* tape, const Model& m, const State<double>& s) { return mass_matrix<double>(tape, m, s.q); }},
      {"jacobian",
       [](auto* tape, const Model& m, const State<double>& s) {
         return jacobian<double>(tape, m, s.q, static_cast<int>(m.body_names.size()) - 1, kPoint);
       }},
      {"center_of_mass",
       [](auto* tape, const Model& m, const State<double>& s) { return center_of_mass<double>(tape, m, s); }},
      {"momentum", [](auto* tape, const Model& m, const State<double>& s) { return momentum<double>(tape, m, s); }},
      {"energy", [](auto* tape, const Model& m, const State<double>& s) { return energy<double>(tape, m, s); }}};
  for (const auto& [name, function] : all) {
    for (int seed = 40; seed < 47; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      EXPECT_GT(DynamicsGradients(function, some_robot(seed)).check(), seed % 7);
    }
  }
}

/// Of models whose numbers differ from world to world.
TEST(DynamicsFunctions, EveryWorldHasItsOwnNumbers) {
  Model model = some_robot(41);
  Parameter& mass = model.bodies.mass;
  mass.spread(kWorlds);
  for (int w = 0; w < kWorlds; ++w) mass.at(2, 0, w) *= 1 + 0.1 * w;
  set_requires_grad(model, "bodies/body2/mass", true);
  const State<double> state = test::random_batch<double>(model, 1, test::first_worlds(kWorlds), 5).state;
  Tape<double> tape;
  const Buffer<double> energies = energy<double>(&tape, model, state);
  Buffer<double> ones(2, kWorlds);
  ones.fill(1);
  Seeds<double> seeds;
  seeds.add(energies, ones);
  const Gradients<double> g = std::move(tape).backward(seeds, Disconnected::zero);
  for (int w = 0; w < kWorlds; ++w) {
    const std::vector<double> q = column_of(state.q, w), qd = column_of(state.qd, w);
    const auto all = [&] {
      return reference::kinetic_energy(model, q, qd, w) + reference::potential_energy(model, q, w);
    };
    const double here = all(), x = mass(2, 0, w);
    expect_close({energies(0, w) + energies(1, w)}, {here}, 1e-10);
    mass.at(2, 0, w) = x + 1;  // it is linear in that
    EXPECT_NEAR(g.parameters().bodies.mass(2, 0, w), all() - here, 1e-9 * std::max(1.0, std::abs(here))) << w;
    mass.at(2, 0, w) = x;
  }
}

/// That of energy is there.
TEST(DynamicsFunctions, TheMassMatrixHasNoGradientByGravity) {
  Model model = test::chain(3);
  set_requires_grad(model, "gravity", true);
  const State<double> state(model, 1);
  for (const bool potential : {false, true}) {
    Tape<double> tape;
    const Buffer<double> result =
        potential ? energy<double>(&tape, model, state) : mass_matrix<double>(&tape, model, state.q);
    Buffer<double> ones(result.rows(), 1);
    ones.fill(1);
    Seeds<double> seeds;
    seeds.add(result, ones);
    const Gradients<double> g = std::move(tape).backward(seeds, Disconnected::zero);
    double by = 0;
    for (int c = 0; c < 3 && potential; ++c) by = std::max(by, std::abs(g.parameters().gravity(0, c)));
    EXPECT_EQ(by > 0.1, potential);
  }
}

TEST(DynamicsFunctions, RefuseWhatIsNotTheirOwn) {
  const Model model = test::chain(3);
  const State<double> state(model, 1);
  test::expect_usage_error([&] { jacobian<double>(nullptr, model, state.q, 3, {0, 0, 0}); }, {"body", "3"});
  test::expect_usage_error([&] { dynamics_derivatives(model, state, Buffer<double>(2, 1)); },
                           {"forward_dynamics: tau has 2 rows"});
  test::TreeOptions options;
  options.integrator = Integrator::semi_implicit;
  const Model bodies = test::random_tree(5, options);
  const State<double> placed(bodies, 1);
  test::expect_usage_error([&] { energy<double>(nullptr, bodies, placed); }, {"expected the integrator featherstone"});
  test::expect_usage_error(
      [&] {
        jacobian<double>(nullptr, bodies, placed.q, 0, {0, 0, 0});
      },
      {"jacobian: a model in maximal coordinates"});
}

}  // namespace
}  // namespace backdrive
