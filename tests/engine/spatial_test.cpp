// Spatial algebra: identities with full matrices, and each adjoint against dual numbers.
#include "engine/spatial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "engine/dual.h"

namespace backdrive {
namespace {

using D = Dual<double>;
using V = Vec3<double>;
using S6 = Spatial<double>;
constexpr double kTolerance = 1e-14;

class SpatialAlgebra : public testing::Test {
 protected:
  double number() { return std::uniform_real_distribution<double>(-1, 1)(random_); }
  V vector() { return {number(), number(), number()}; }
  S6 spatial() { return {vector(), vector()}; }
  Sym3<double> symmetric() { return {number(), number(), number(), number(), number(), number()}; }
  Mat3<double> matrix() { return {vector(), vector(), vector()}; }
  Mat3<double> rotation() {
    V a = vector(), b = vector();
    a = a * (1 / std::sqrt(dot(a, a)));
    b = b - a * dot(a, b);
    b = b * (1 / std::sqrt(dot(b, b)));
    return {a, b, cross(a, b)};
  }

 private:
  std::mt19937 random_{17};
};

void expect_near(const V& a, const V& b, double tolerance = kTolerance) {
  EXPECT_NEAR(a.x, b.x, tolerance);
  EXPECT_NEAR(a.y, b.y, tolerance);
  EXPECT_NEAR(a.z, b.z, tolerance);
}
void expect_near(const S6& a, const S6& b, double tolerance = kTolerance) {
  expect_near(a.ang, b.ang, tolerance);
  expect_near(a.lin, b.lin, tolerance);
}

Vec3<D> seeded(const V& v, const V& dot) {
  return {{v.x, dot.x}, {v.y, dot.y}, {v.z, dot.z}};
}
Spatial<D> seeded(const S6& v, const S6& dot) {
  return {seeded(v.ang, dot.ang), seeded(v.lin, dot.lin)};
}
V dots(const Vec3<D>& v) {
  return {v.x.dot, v.y.dot, v.z.dot};
}
S6 dots(const Spatial<D>& v) {
  return {dots(v.ang), dots(v.lin)};
}

TEST_F(SpatialAlgebra, CrossProduct) {
  expect_near(cross(V{1, 0, 0}, V{0, 1, 0}), {0, 0, 1});
  const V a = vector(), b = vector(), c = vector();
  EXPECT_NEAR(dot(a, cross(b, c)), dot(cross(a, b), c), kTolerance);
  expect_near(cross(a, a), {0, 0, 0});
}

TEST_F(SpatialAlgebra, AdjCrossAgreesWithDuals) {
  for (int k = 0; k < 10; ++k) {
    const V a = vector(), b = vector(), a_dot = vector(), b_dot = vector(), bar = vector();
    V a_bar = vector(), b_bar = vector();
    const V a_before = a_bar, b_before = b_bar;
    adj_cross(a, b, bar, a_bar, b_bar);
    const double forward = dot(bar, dots(cross(seeded(a, a_dot), seeded(b, b_dot))));
    const double backward = dot(a_bar - a_before, a_dot) + dot(b_bar - b_before, b_dot);
    EXPECT_NEAR(forward, backward, kTolerance);
    EXPECT_GT(std::abs(forward), 1e-6);
  }
}

TEST_F(SpatialAlgebra, AdjCrossMotionAgreesWithDuals) {
  for (int k = 0; k < 10; ++k) {
    const S6 v = spatial(), m = spatial(), v_dot = spatial(), m_dot = spatial(), bar = spatial();
    S6 v_bar = spatial(), m_bar = spatial();
    const S6 v_before = v_bar, m_before = m_bar;
    adj_cross_motion(v, m, bar, v_bar, m_bar);
    const double forward = dot(bar, dots(cross_motion(seeded(v, v_dot), seeded(m, m_dot))));
    const double of_v = dot(v_bar - v_before, v_dot), of_m = dot(m_bar - m_before, m_dot);
    EXPECT_NEAR(forward, of_v + of_m, kTolerance);
    EXPECT_GT(std::abs(of_v), 1e-6);
    EXPECT_GT(std::abs(of_m), 1e-6);
    // one argument at a time, so that no pair of errors can cancel
    EXPECT_NEAR(dot(bar, dots(cross_motion(seeded(v, v_dot), seeded(m, {})))), of_v, kTolerance);
  }
}

TEST_F(SpatialAlgebra, CrossForceIsMinusTheTransposeOfCrossMotion) {
  const S6 v = spatial(), m = spatial(), f = spatial();
  EXPECT_NEAR(dot(cross_force(v, f), m), -dot(f, cross_motion(v, m)), kTolerance);
  expect_near(cross_motion(v, v), zero6<double>());
  // Jacobi: u × (v × m) − v × (u × m) = (u × v) × m
  const S6 u = spatial();
  expect_near(cross_motion(u, cross_motion(v, m)) - cross_motion(v, cross_motion(u, m)),
              cross_motion(cross_motion(u, v), m));
}

TEST_F(SpatialAlgebra, Matrices) {
  const Mat3<double> A = matrix(), B = matrix();
  const V v = vector(), w = vector();
  expect_near((A * B) * v, A * (B * v));
  EXPECT_NEAR(dot(w, A * v), dot(transposed_times(A, w), v), kTolerance);
  expect_near(transposed(A) * v, transposed_times(A, v));
  expect_near(identity3<double>() * v, v);
}

TEST_F(SpatialAlgebra, RotatedInertia) {
  const Mat3<double> R = rotation();
  const Sym3<double> s = symmetric();
  const V v = vector();
  expect_near(rotated(R, s) * v, R * (s * transposed_times(R, v)));
}

TEST_F(SpatialAlgebra, ArticulatedInertiaIsSymmetric) {
  const ArticulatedInertia<double> I{symmetric(), matrix(), symmetric()};
  const S6 a = spatial(), b = spatial();
  EXPECT_NEAR(dot(a, I * b), dot(b, I * a), kTolerance);
}

TEST_F(SpatialAlgebra, InertiasAddUp) {
  ArticulatedInertia<double> I{symmetric(), matrix(), symmetric()};
  const ArticulatedInertia<double> J{symmetric(), matrix(), symmetric()};
  const S6 m = spatial();
  const S6 sum = I * m + J * m;
  I += J;
  expect_near(I * m, sum);
}

TEST_F(SpatialAlgebra, HandsInertiasOnLessOuterProducts) {
  const ArticulatedInertia<double> J{symmetric(), matrix(), symmetric()};
  const S6 U[2] = {spatial(), spatial()}, m = spatial();
  const double D_inverse[2] = {0.7, -1.3};
  const S6 UD[2] = {U[0] * D_inverse[0], U[1] * D_inverse[1]};
  const S6 handed = J * m - U[0] * dot(UD[0], m) - U[1] * dot(UD[1], m);

  ArticulatedInertia<double> I{symmetric(), matrix(), symmetric()};
  const S6 before = I * m;
  add_less_outer<2>(I, J, U, UD);
  expect_near(I * m, before + handed);

  RigidInertia<double> body;
  set(body, 2.3, vector(), symmetric());
  set(I, body);
  const S6 alone = I * m;
  set_less_outer<2>(I, body, J, U, UD);
  expect_near(I * m, alone + handed);
}

/// Kinetic energy of a rigid body, computed at its com.
TEST_F(SpatialAlgebra, RigidInertia) {
  const double mass = 2.3;
  const V com = vector();
  const Sym3<double> J = symmetric();
  const S6 v = spatial();
  const V at_com = v.lin + cross(v.ang, com);
  RigidInertia<double> rigid;
  set(rigid, mass, com, J);
  ArticulatedInertia<double> articulated;
  set(articulated, rigid);
  for (const S6& momentum : {rigid * v, articulated * v}) {
    expect_near(momentum.lin, at_com * mass, 1e-14);
    expect_near(momentum.ang, J * v.ang + cross(com, at_com * mass), 1e-14);
  }
}

}  // namespace
}  // namespace backdrive
