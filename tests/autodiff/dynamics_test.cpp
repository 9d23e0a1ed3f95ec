// Forward and inverse dynamics as functions, against the reference route, each other, and its exact derivatives.
#include "autodiff/tape/dynamics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "integrators/reference/dynamics_derivatives.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/parameter_list.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/random.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

constexpr int kWorlds = 11;  // more than one pack, and no whole number of them

/// With springs, limits, couplings and so on, none of which has a part in it.
Model some_tree(int seed) {
  test::TreeOptions options;
  options.forces = options.rotations = true;
  options.links = seed % 9 + 1;
  options.couplings = options.links > 6 ? 3 : 0;
  return test::random_tree(static_cast<std::uint64_t>(seed), options);
}

template <class T>
Buffer<T> random_rows(int rows, int worlds, std::uint64_t seed) {
  test::Random random(seed);
  Buffer<T> buffer(rows, worlds);
  for (int r = 0; r < rows; ++r) {
    for (int w = 0; w < worlds; ++w) buffer.set(r, w, T(random.symmetric(2)));
  }
  return buffer;
}

template <class T>
std::vector<double> doubles(const Buffer<T>& buffer, int world) {
  std::vector<double> column;
  for (int r = 0; r < buffer.rows(); ++r) column.push_back(double(buffer(r, world)));
  return column;
}

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double number : x) most = std::max(most, std::abs(number));
  return most;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Both against the dense route, of numbers of type T, within `tolerance` of the largest number.
template <class T>
void agree_with_reference(const Model& model, double tolerance, int seed) {
  const Topology& t = model.topology;
  const auto at = test::random_batch<T>(model, 1, test::first_worlds(kWorlds), 5);
  const Buffer<T> given = random_rows<T>(t.nv, kWorlds, 77);
  const Buffer<T> qdd = forward_dynamics<T>(nullptr, model, at.state, given, 1 + seed % 3);
  const Buffer<T> tau = inverse_dynamics<T>(nullptr, model, at.state, given, 1 + seed % 3);
  const Buffer<T> M = mass_matrix<T>(model, at.state.q);
  for (int w = 0; w < kWorlds; ++w) {
    const std::vector<double> q = doubles(at.state.q, w), qd = doubles(at.state.qd, w), x = doubles(given, w);
    const std::vector<double> accelerations = reference::forward_dynamics_dense(model, q, qd, x);
    const std::vector<double> efforts = reference::inverse_dynamics(model, q, qd, x);
    const std::vector<double> mass = reference::mass_matrix(model, q);
    EXPECT_LT(distance(doubles(qdd, w), accelerations), tolerance * std::max(1.0, largest(accelerations))) << seed;
    EXPECT_LT(distance(doubles(tau, w), efforts), tolerance * std::max(1.0, largest(efforts))) << seed;
    EXPECT_LT(distance(doubles(M, w), mass), tolerance * std::max(1.0, largest(mass))) << seed;
  }
}

// A solve loses some hundred roundings times the condition of M, 1e3 or so of these trees.
TEST(Dynamics, AgreesWithTheDenseRoute) {
  for (int seed = 60; seed < 80; ++seed) {
    const Model model = some_tree(seed);
    agree_with_reference<double>(model, 1e-10, seed);
    agree_with_reference<float>(model, 2e-3, seed);
  }
}

TEST(Dynamics, InverseUndoesForward) {
  for (int seed = 60; seed < 70; ++seed) {
    const Model model = some_tree(seed);
    const auto at = test::random_batch<double>(model, 1, test::first_worlds(kWorlds), 5);
    const Buffer<double> tau = random_rows<double>(model.topology.nv, kWorlds, 78);
    const Buffer<double> again =
        inverse_dynamics<double>(nullptr, model, at.state, forward_dynamics<double>(nullptr, model, at.state, tau));
    for (int w = 0; w < kWorlds; ++w) EXPECT_LT(distance(doubles(again, w), doubles(tau, w)), 1e-10) << seed;
  }
}

// 1 g in millimetres to 1 t in tens of metres: what comes back is what was given, within 1e-10 of the largest effort,
// or of what gravity does to bodies of that length, g / length, which takes part in every solve.
TEST(Dynamics, InverseUndoesForwardForAnyMassAndSize) {
  for (const auto& [length, mass] : {std::pair(1e-3, 1e-3), {1e-3, 1e3}, {1.0, 1e-3}, {10.0, 1e3}}) {
    test::TreeOptions options;
    options.rotations = true;
    options.links = 8;
    options.spread = 0.25 * length;
    Model model = test::random_tree(91, options);
    for (int b = 0; b < static_cast<int>(model.body_names.size()); ++b) {
      model.bodies.mass.set(b, 0, mass * model.bodies.mass(b));
      for (int c = 0; c < 3; ++c) model.bodies.com.set(b, c, length * model.bodies.com(b, c));
      for (int c = 0; c < 6; ++c) model.bodies.inertia.set(b, c, mass * length * length * model.bodies.inertia(b, c));
    }
    for (int j = 0; j < static_cast<int>(model.joint_names.size()); ++j) {
      model.joints.armature.set(j, 0, mass * length * length * model.joints.armature(j));
    }
    const auto at = test::random_batch<double>(model, 1, test::first_worlds(kWorlds), 5);
    const Buffer<double> given = random_rows<double>(model.topology.nv, kWorlds, 82);
    const Buffer<double> tau = inverse_dynamics<double>(nullptr, model, at.state, given);
    const Buffer<double> qdd = forward_dynamics<double>(nullptr, model, at.state, tau);
    const Buffer<double> again = inverse_dynamics<double>(nullptr, model, at.state, qdd);
    for (int w = 0; w < kWorlds; ++w) {
      EXPECT_LT(distance(doubles(qdd, w), doubles(given, w)),
                1e-10 * std::max(largest(doubles(given, w)), 9.81 / length))
          << length << " m, " << mass << " kg";
      EXPECT_LT(distance(doubles(again, w), doubles(tau, w)), 1e-10 * largest(doubles(tau, w)))
          << length << " m, " << mass << " kg";
    }
  }
}

/// Cotangents of q (tangent rows), q̇ and what is given, for the seed 1 of a row of the result in every world.
struct Rows {
  Buffer<double> q, qd, given;
};
Rows rows_of(const Model& model, const State<double>& state, const Buffer<double>& given, bool inverse, int row) {
  Tape<double> tape;
  const Buffer<double> result = inverse ? inverse_dynamics<double>(&tape, model, state, given)
                                        : forward_dynamics<double>(&tape, model, state, given);
  Buffer<double> seed(result.rows(), result.worlds());
  for (int w = 0; w < result.worlds(); ++w) seed.set(row, w, 1);
  Seeds<double> seeds;
  seeds.add(result, seed);
  const Gradients<double> g = std::move(tape).backward(seeds, Disconnected::zero);
  return {g.of(state.q), g.of(state.qd), g.of(given)};
}

// The reference has them by complex steps, exact to rounding.
TEST(Dynamics, AdjointOfForwardAgreesWithExactDerivatives) {
  for (int seed = 60; seed < (test::kSanitized ? 63 : 72); ++seed) {
    const Model model = some_tree(seed);
    const Topology& t = model.topology;
    const auto at = test::random_batch<double>(model, 1, test::first_worlds(kWorlds), 5);
    const Buffer<double> tau = random_rows<double>(t.nv, kWorlds, 79);
    const std::vector<int> tangent = tangent_rows(t);
    std::vector<reference::DynamicsDerivatives> exact;
    for (int w = 0; w < kWorlds; ++w) {
      exact.push_back(
          reference::dynamics_derivatives(model, doubles(at.state.q, w), doubles(at.state.qd, w), doubles(tau, w)));
    }
    for (int row = 0; row < t.nv; ++row) {
      const Rows rows = rows_of(model, at.state, tau, false, row);
      for (int w = 0; w < kWorlds; ++w) {
        const reference::DynamicsDerivatives& d = exact[w];
        const double scale = std::max({1.0, largest(d.q), largest(d.qd), largest(d.tau)});
        for (int v = 0; v < t.nv; ++v) {
          EXPECT_NEAR(rows.q(tangent[v], w), d.q[row * t.nv + v], 1e-10 * scale) << seed;
          EXPECT_NEAR(rows.qd(v, w), d.qd[row * t.nv + v], 1e-10 * scale) << seed;
          EXPECT_NEAR(rows.given(v, w), d.tau[row * t.nv + v], 1e-10 * scale) << seed;
        }
      }
    }
  }
}

// ∂τ/∂q̈ = M, and with q̈ of τ: ∂τ/∂x = −M ∂q̈/∂x.
TEST(Dynamics, AdjointOfInverseIsThatOfForwardTimesTheMassMatrix) {
  for (int seed = 60; seed < 72; ++seed) {
    const Model model = some_tree(seed);
    const Topology& t = model.topology;
    const auto at = test::random_batch<double>(model, 1, {0}, 5);
    const Buffer<double> tau = random_rows<double>(t.nv, 1, 80);
    const Buffer<double> qdd = forward_dynamics<double>(nullptr, model, at.state, tau);
    const std::vector<double> M = reference::mass_matrix(model, doubles(at.state.q, 0));
    const reference::DynamicsDerivatives d =
        reference::dynamics_derivatives(model, doubles(at.state.q, 0), doubles(at.state.qd, 0), doubles(tau, 0));
    const std::vector<int> tangent = tangent_rows(t);
    const double scale = std::max(1.0, largest(M)) * std::max({1.0, largest(d.q), largest(d.qd)});
    for (int row = 0; row < t.nv; ++row) {
      const Rows rows = rows_of(model, at.state, qdd, true, row);
      for (int v = 0; v < t.nv; ++v) {
        double by_q = 0, by_qd = 0;
        for (int k = 0; k < t.nv; ++k) {
          by_q -= M[row * t.nv + k] * d.q[k * t.nv + v];
          by_qd -= M[row * t.nv + k] * d.qd[k * t.nv + v];
        }
        EXPECT_NEAR(rows.q(tangent[v], 0), by_q, 1e-11 * scale) << seed;
        EXPECT_NEAR(rows.qd(v, 0), by_qd, 1e-11 * scale) << seed;
        EXPECT_NEAR(rows.given(v, 0), M[row * t.nv + v], 1e-11 * scale) << seed;
      }
    }
  }
}

/// Σ c_k (what is asked for)_k of one world.
double weighed(const Model& model, const State<double>& state, const Buffer<double>& given, bool inverse) {
  const std::vector<double> q = doubles(state.q, 0), qd = doubles(state.qd, 0), x = doubles(given, 0);
  const std::vector<double> y =
      inverse ? reference::inverse_dynamics(model, q, qd, x) : reference::forward_dynamics_dense(model, q, qd, x);
  double sum = 0;
  for (std::size_t k = 0; k < y.size(); ++k) sum += (1 + 0.1 * static_cast<double>(k)) * y[k];
  return sum;
}

// Central differences of the dense route over h = 1e-6 of a number of about 1: 1e-9 from rounding, of numbers of some
// hundred 1e-7, of every number that decides it.
TEST(Dynamics, GradientsOfParametersAgreeWithDifferences) {
  constexpr double h = 1e-6;
  for (const bool inverse : {false, true}) {
    for (int seed = 60; seed < 70; ++seed) {
      Model model = some_tree(seed);
      const Topology& t = model.topology;
      for (const char* path : {"bodies/*/mass", "bodies/*/com", "bodies/*/inertia", "bodies/*/gravity_compensation",
                               "joints/*/armature", "joints/*/frame/position", "gravity"}) {
        set_requires_grad(model, path, true);
      }
      const auto at = test::random_batch<double>(model, 1, {0}, 5);
      const Buffer<double> given = random_rows<double>(t.nv, 1, 81);
      Tape<double> tape;
      const Buffer<double> result = inverse ? inverse_dynamics<double>(&tape, model, at.state, given)
                                            : forward_dynamics<double>(&tape, model, at.state, given);
      Buffer<double> one(t.nv, 1);
      for (int k = 0; k < t.nv; ++k) one.set(k, 0, 1 + 0.1 * k);
      Seeds<double> seeds;
      seeds.add(result, one);
      const Gradients<double> g = std::move(tape).backward(seeds, Disconnected::zero);
      int seen = 0;
      const auto check = [&](Parameter& p, const Parameter& by, int item, int component) {
        const double x = p(item, component);
        p.set(item, component, x + h);
        const double above = weighed(model, at.state, given, inverse);
        p.set(item, component, x - h);
        const double below = weighed(model, at.state, given, inverse);
        p.set(item, component, x);
        const double slope = (above - below) / (2 * h), exact = by(item, component);
        EXPECT_NEAR(exact, slope, 1e-5 * std::max({1.0, std::abs(slope), std::abs(above)}))
            << "seed " << seed << (inverse ? " inverse, item " : " forward, item ") << item << "/" << component;
        seen += std::abs(slope) > 1e-3;
      };
      const Parameters& by = g.parameters();
      const int bodies = static_cast<int>(model.body_names.size()), joints = static_cast<int>(model.joint_names.size());
      for (int b = 0; b < bodies; ++b) {
        check(model.bodies.mass, by.bodies.mass, b, 0);
        check(model.bodies.gravity_compensation, by.bodies.gravity_compensation, b, 0);
        for (int c = 0; c < 3; ++c) check(model.bodies.com, by.bodies.com, b, c);
        for (int c = 0; c < 6; ++c) check(model.bodies.inertia, by.bodies.inertia, b, c);
      }
      for (int j = 0; j < joints; ++j) {
        check(model.joints.armature, by.joints.armature, j, 0);
        for (int c = 0; c < 3; ++c) check(model.joints.frame.position, by.joints.frame.position, j, c);
      }
      for (int c = 0; c < 3; ++c) check(model.gravity, by.gravity, 0, c);
      EXPECT_GT(seen, t.nv) << seed;
    }
  }
}

TEST(Dynamics, RefusesWhatIsNotItsOwn) {
  const Model model = test::chain(3);
  State<double> state(model, 2);
  test::expect_usage_error([&] { forward_dynamics<double>(nullptr, model, state, Buffer<double>(2, 2)); },
                           {"tau has 2 rows of 2 worlds; expected 3 rows of 2"});
  test::expect_usage_error([&] { inverse_dynamics<double>(nullptr, model, state, Buffer<double>(3, 1)); },
                           {"qdd has 3 rows of 1 worlds; expected 3 rows of 2"});
  const Model floating = some_tree(62);  // its root is free
  State<double> turned(floating, 1);
  turned.q.set(3, 0, 2);
  const Buffer<double> zeros(floating.topology.nv, 1);
  test::expect_usage_error([&] { inverse_dynamics<double>(nullptr, floating, turned, zeros); },
                           {"quaternion", "expected"});
  test::TreeOptions options;
  options.integrator = Integrator::semi_implicit;
  const Model bodies = test::random_tree(5, options);
  const State<double> placed(bodies, 1);
  test::expect_usage_error([&] { forward_dynamics<double>(nullptr, bodies, placed, Buffer<double>(1, 1)); },
                           {"expected the integrator featherstone"});
}

}  // namespace
}  // namespace backdrive
