// Two routes to everything: the kernels (articulated bodies, one common frame) against integrators/reference
// (Newton-Euler and composite bodies in link coordinates, read from the parameters).
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <complex>

#include "engine/error.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/coordinates.h"
#include "tests/integrators/accelerations.h"
#include "tests/support/models.h"
#include "tests/support/random.h"

namespace backdrive {
namespace {

using test::Random;

struct Configuration {
  std::vector<double> q, qd, tau;
};

Configuration random_configuration(const Model& model, std::uint64_t seed) {
  Random random(seed);
  Configuration c;
  for (int i = 0; i < model.topology.nq; ++i) c.q.push_back(random.symmetric(2));
  each_quaternion(model.topology, [&](TurnSide, int row, int) {
    double square = 0;
    for (int k = 0; k < 4; ++k) square += c.q[row + k] * c.q[row + k];
    for (int k = 0; k < 4; ++k) c.q[row + k] /= std::sqrt(square);
  });
  for (int i = 0; i < model.topology.nv; ++i) c.qd.push_back(random.symmetric(1));
  for (int i = 0; i < model.topology.nv; ++i) c.tau.push_back(random.symmetric(10));
  return c;
}

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double x : values) result = std::max(result, std::abs(x));
  return result;
}

Eigen::MatrixXd matrix_of(const Model& model, const std::vector<double>& q) {
  const std::vector<double> M = reference::mass_matrix(model, q);
  const int n = model.topology.nv;
  return Eigen::Map<const Eigen::MatrixXd>(M.data(), n, n);
}

struct Tree {
  std::uint64_t seed;
  int links;
  bool branched;
  bool rotations = false;
};
void PrintTo(const Tree& tree, std::ostream* out) {
  *out << tree.links << (tree.branched ? " branched" : " serial") << (tree.rotations ? ", rotations" : "") << ", seed "
       << tree.seed;
}

class Routes : public testing::TestWithParam<Tree> {
 protected:
  Routes() {
    test::TreeOptions options;
    options.links = GetParam().links;
    options.branched = GetParam().branched;
    options.shapes = GetParam().links < 20;
    options.rotations = GetParam().rotations;
    // Long chains stay a few metres long: the tests are of the algorithm, not of huge levers.
    options.spread = options.links > 20 && !options.branched ? 0.1 : 0.25;
    model = test::random_tree(GetParam().seed, options);
  }
  Model model;
};

// The residual of M q̈ + h = τ is measured against what is added up in it, Σ |M_ij q̈_j| + |h_i| + |τ_i|: a backward
// stable solve leaves a small multiple of 1e-16 of that per link. 1e-10 is what the engine promises.
TEST_P(Routes, InverseDynamicsOfForwardDynamicsIsTheEffort) {
  for (int k = 0; k < 4; ++k) {
    const Configuration c = random_configuration(model, GetParam().seed * 10 + k);
    const std::vector<double> qdd = test::accelerations(model, c.q, c.qd, c.tau);
    const std::vector<double> tau = reference::inverse_dynamics(model, c.q, c.qd, qdd);
    const std::vector<double> zero(qdd.size(), 0.0);
    const std::vector<double> h = reference::inverse_dynamics(model, c.q, c.qd, zero);
    const Eigen::MatrixXd M = matrix_of(model, c.q);
    for (std::size_t i = 0; i < tau.size(); ++i) {
      double scale = std::abs(c.tau[i]) + std::abs(h[i]);
      for (std::size_t j = 0; j < qdd.size(); ++j) scale += std::abs(M(i, j) * qdd[j]);
      EXPECT_LT(std::abs(tau[i] - c.tau[i]), 1e-10 * scale) << "joint " << i;
    }
  }
}

// Cholesky and the articulated bodies err by a few 1e-16 times the condition number of M per link.
TEST_P(Routes, ForwardDynamicsAgreesWithCompositeBodiesAndCholesky) {
  for (int k = 0; k < 4; ++k) {
    const Configuration c = random_configuration(model, GetParam().seed * 10 + k);
    const std::vector<double> ours = test::accelerations(model, c.q, c.qd, c.tau);
    const std::vector<double> dense = reference::forward_dynamics_dense(model, c.q, c.qd, c.tau);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(matrix_of(model, c.q));
    ASSERT_GT(eigen.eigenvalues()(0), 0);
    const double condition = eigen.eigenvalues().maxCoeff() / eigen.eigenvalues()(0);
    const double n = static_cast<double>(ours.size());
    const double tolerance = 1e-16 * condition * (4 * n + 20) * largest(dense);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_LT(std::abs(ours[i] - dense[i]), tolerance) << "joint " << i;
    }
  }
}

TEST_P(Routes, PosesAgree) {
  const Configuration c = random_configuration(model, GetParam().seed);
  Buffer<double> q(model.topology.nq, 1);
  for (int i = 0; i < model.topology.nq; ++i) q.set(i, 0, c.q[i]);
  std::vector<int> bodies(model.body_names.size());
  for (std::size_t b = 0; b < bodies.size(); ++b) bodies[b] = static_cast<int>(b);
  const Buffer<double> ours = body_poses<double>(nullptr, model, q, bodies, {});
  const std::vector<reference::LinkPose> theirs = reference::body_poses(model, c.q);
  double reach = 1;
  for (const auto& pose : theirs)
    reach = std::max(reach, std::abs(pose.position[0]) + std::abs(pose.position[1]) + std::abs(pose.position[2]));
  // One rounding of the reach per link on the way.
  const double tolerance = 1e-15 * GetParam().links * reach;
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    for (int k = 0; k < 12; ++k) {
      const double want = k < 3 ? theirs[b].position[k] : theirs[b].rotation[k - 3];
      EXPECT_NEAR(ours(static_cast<int>(b) * 12 + k, 0), want, tolerance) << "body " << b;
    }
  }
}

// ½ q̇ᵀ M q̇ two ways, and ∂(potential)/∂q = gravity's part of inverse dynamics, by central differences (h² · third
// derivative ≈ 1e-10 of the energy, and rounding 1e-16 / 1e-5 of it).
TEST_P(Routes, EnergiesAgree) {
  const Configuration c = random_configuration(model, GetParam().seed);
  const int n = model.topology.nv;
  const Eigen::Map<const Eigen::VectorXd> qd(c.qd.data(), n);
  const double kinetic = reference::kinetic_energy(model, c.q, c.qd);
  EXPECT_NEAR(kinetic, 0.5 * qd.dot(matrix_of(model, c.q) * qd), 1e-12 * kinetic);
  const std::vector<double> zero(n, 0.0);
  const std::vector<double> holding = reference::inverse_dynamics(model, c.q, zero, zero);
  const double scale = 1 + std::abs(reference::potential_energy(model, c.q)) + largest(holding);
  for (int i = 0; i < n; ++i) {
    constexpr double h = 1e-5;
    std::vector<double> up = c.q, down = c.q, change = zero;
    change[i] = h;
    add_tangent(model.topology, change, up);
    change[i] = -h;
    add_tangent(model.topology, change, down);
    const double slope = (reference::potential_energy(model, up) - reference::potential_energy(model, down)) / (2 * h);
    EXPECT_NEAR(slope, holding[i], 1e-9 * scale) << "joint " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Trees, Routes,
                         testing::Values(Tree{1, 1, false}, Tree{2, 2, false}, Tree{3, 7, false}, Tree{4, 7, true},
                                         Tree{5, 18, true}, Tree{6, 30, true}, Tree{7, 32, false}, Tree{8, 64, true},
                                         Tree{9, 128, true}, Tree{10, 128, false}, Tree{11, 1, false, true},
                                         Tree{12, 3, false, true}, Tree{13, 8, false, true}, Tree{14, 20, true, true}));

TEST(Reference, ComplexStepDifferentiatesInverseDynamics) {
  test::TreeOptions options;
  options.links = 6;
  const Model model = test::random_tree(21, options);
  const Configuration c = random_configuration(model, 3);
  using Complex = std::complex<double>;
  const auto complex = [](const std::vector<double>& x) { return std::vector<Complex>(x.begin(), x.end()); };
  std::vector<Complex> q = complex(c.q);
  q[1] += Complex(0, 1e-30);
  const std::vector<Complex> exact = reference::inverse_dynamics(model, q, complex(c.qd), complex(c.tau));
  std::vector<double> up = c.q, down = c.q;
  constexpr double h = 1e-5;
  up[1] += h;
  down[1] -= h;
  const auto above = reference::inverse_dynamics(model, up, c.qd, c.tau);
  const auto below = reference::inverse_dynamics(model, down, c.qd, c.tau);
  for (std::size_t i = 0; i < above.size(); ++i) {
    EXPECT_NEAR(exact[i].imag() * 1e30, (above[i] - below[i]) / (2 * h), 1e-8 * (1 + largest(above)));
  }
}

TEST(Reference, WrongSizesAreUsageErrors) {
  const Model model = test::double_pendulum();
  const std::vector<double> one{0}, two{0, 0};
  EXPECT_THROW(reference::inverse_dynamics(model, one, two, two), Error);
  EXPECT_THROW(reference::inverse_dynamics(model, two, two, one), Error);
  EXPECT_THROW(reference::mass_matrix(model, one), Error);
  EXPECT_THROW(reference::forward_dynamics_dense(model, two, two, one), Error);
  EXPECT_THROW(reference::potential_energy(model, one), Error);
}

}  // namespace
}  // namespace backdrive
