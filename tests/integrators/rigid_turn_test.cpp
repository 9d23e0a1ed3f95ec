// What flies as one body, alone or of several that are fixed to each other: (26) of docs/theory.md.
#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "models/builder.h"
#include "tests/support/rigid_case.h"

namespace backdrive {
namespace {

using Vector = Eigen::Vector3d;
using Matrix = Eigen::Matrix3d;

/// A piece of it: mass, kg, centre of mass in the frame of the root, m, moments about it, kg·m².
struct Piece {
  double mass;
  Vector com;
  Vector moments;
};

/// Of all together, in the frame of the root.
struct Whole {
  double mass = 0;
  Vector com = Vector::Zero();
  Matrix inertia = Matrix::Zero();  ///< about com

  explicit Whole(const std::vector<Piece>& pieces) {
    for (const Piece& p : pieces) mass += p.mass, com += p.mass * p.com;
    com /= mass;
    for (const Piece& p : pieces) {
      const Vector arm = p.com - com;
      inertia +=
          Matrix(p.moments.asDiagonal()) + p.mass * (arm.squaredNorm() * Matrix::Identity() - arm * arm.transpose());
    }
  }
};

/// Pieces of some size, m: one whose frame is off its centre of mass, or three in two branches.
std::vector<Piece> pieces_of(int count, double size) {
  const std::vector<Piece> all = {{0.5, {0.4, 0.1, 0.2}, {0.010, 0.022, 0.028}},
                                  {0.3, {-0.2, 0.6, 0.3}, {0.013, 0.008, 0.018}},
                                  {0.9, {0.1, -0.4, 0.5}, {0.030, 0.045, 0.020}}};
  std::vector<Piece> scaled(all.begin(), all.begin() + count);
  for (Piece& p : scaled) p.mass *= std::pow(size, 3), p.com *= size, p.moments *= std::pow(size, 5);
  return scaled;
}

Numbers3 numbers(const Vector& v) {
  return {v.x(), v.y(), v.z()};
}

/// What the pieces hang on, and whether they carry something on a hinge.
struct Mount {
  JointType type = JointType::free;
  bool on_carrier = false;  ///< which hangs on a ball joint
  bool limb = false;

  friend std::ostream& operator<<(std::ostream& out, const Mount& m) {
    return out << to_string(m.type) << (m.on_carrier ? " on a carrier" : "") << (m.limb ? " with a limb" : "");
  }
};

/// Pieces, each a body that is fixed to the first one, or all as one body.
Model mounted(const std::vector<Piece>& pieces, bool as_one, const Mount& mount = {}) {
  ModelBuilder builder;
  builder.set_gravity({0, 0, 0});
  BodyIndex parent = ModelBuilder::world;
  const auto add = [&](const std::string& name, const BodyOptions& body, JointType type, const Vector& at) {
    JointOptions joint;
    joint.frame.position = numbers(at);
    joint.axis = {0.6, 0, 0.8};
    joint.spins = type == JointType::revolute && name == "first";
    const BodyIndex index = builder.add_body(name, body);
    builder.add_joint(name, type, parent, index, joint);
    return index;
  };
  if (mount.on_carrier)
    parent = add("carrier", {0.4, {}, {4e-4, 5e-4, 6e-4, 0, 0, 0}}, JointType::ball, Vector::Zero());
  const Whole whole(pieces);
  const Matrix& J = whole.inertia;
  const BodyOptions together{whole.mass, numbers(whole.com), {J(0, 0), J(1, 1), J(2, 2), J(0, 1), J(0, 2), J(1, 2)}};
  for (std::size_t k = 0; k < (as_one ? 1 : pieces.size()); ++k) {
    const Piece& p = pieces[k];
    const Vector at = k == 0 ? Vector::Zero() : Vector(0.5 * p.com);
    const BodyOptions alone{p.mass, numbers(p.com - at), {p.moments.x(), p.moments.y(), p.moments.z(), 0, 0, 0}};
    const BodyIndex index = add(k == 0 ? "first" : "piece" + std::to_string(k), as_one ? together : alone,
                                k == 0 ? mount.type : JointType::fixed, at);
    if (k == 0) parent = index;
  }
  if (mount.limb)
    add("limb", {0.05 * whole.mass, {0, 0, 0.01}, {1e-6, 1e-6, 1e-6, 0, 0, 0}}, JointType::revolute, {0.02, 0, 0});
  return builder.build();
}

template <class T>
Trajectory<T> thrown(const Model& model, const Vector& spin, int steps, double others = 0) {
  State<T> start(model, 1);
  for (int k = 0; k < model.topology.nv; ++k) start.qd.set(k, 0, static_cast<T>(k < 3 ? spin[k] : others));
  RolloutOptions options;
  options.time_step = 1. / 240;
  options.steps = steps;
  return rollout<T>(model, start, {}, options);
}

/// By how much momentum and energy part from their start at most: of its size by the spin, and of itself.
struct Strays {
  double momentum = 0, energy = 0;
};
template <class T>
Strays strays(const Whole& whole, const Trajectory<T>& run, double size) {
  constexpr double dt = 1. / 240;
  const Topology& t = run.model->topology;
  Strays worst;
  Vector v_start = Vector::Zero();
  double energy_start = 0;
  for (int step = 1; step <= run.steps; ++step) {
    const auto q = [&](int k) { return static_cast<double>(run.q(step * t.nq + k, 0)); };
    const auto rate = [&](int k) { return static_cast<double>(run.qd(step * t.nv + k, 0)); };
    const Vector omega(rate(0), rate(1), rate(2)), v(rate(3), rate(4), rate(5));
    // q̇ is that of the middle of the step that led here.
    const Matrix half = Eigen::AngleAxisd(-0.5 * dt * omega.norm(), omega.normalized()).toRotationMatrix();
    const Matrix R = half * Eigen::Quaterniond(q(3), q(0), q(1), q(2)).normalized().toRotationMatrix();
    const Vector v_com = v + omega.cross(R * whole.com);
    const double energy =
        0.5 * whole.mass * v_com.squaredNorm() + 0.5 * omega.dot(R * whole.inertia * R.transpose() * omega);
    if (step == 1) v_start = v_com, energy_start = energy;
    worst.momentum = std::max(worst.momentum, (v_com - v_start).norm() / (size * omega.norm()));
    worst.energy = std::max(worst.energy, std::abs(energy / energy_start - 1));
  }
  return worst;
}

constexpr int kTenSeconds = 2400;

// Momentum: rounding of 2,400 steps. Energy: (12)'s, which strays by the square of what a step turns.
TEST(RigidTurn, KeepsMomentumAndEnergy) {
  for (const int count : {1, 3}) {
    for (const double size : {0.001, 0.1, 10.}) {
      const std::vector<Piece> pieces = pieces_of(count, size);
      const Whole whole(pieces);
      for (const double spin : {5., 20., 50., 100.}) {
        const Vector omega = Vector(0.9, 0.3, 0.32) * spin;
        const Model model = mounted(pieces, false);
        const Trajectory<double> run = thrown<double>(model, omega, kTenSeconds);
        ASSERT_FALSE(run.any_stopped());
        const Strays of = strays(whole, run, size);
        EXPECT_LT(of.momentum, 1e-12) << count << " of " << size << " m at " << spin << " rad/s";
        EXPECT_LT(of.energy, std::pow(0.2 * spin / 240, 2) * 4)
            << count << " of " << size << " m at " << spin << " rad/s";
        const Strays single = strays(whole, thrown<float>(model, omega, kTenSeconds), size);
        EXPECT_LT(single.momentum, 1e-3) << count << " of " << size << " m at " << spin << " rad/s";
      }
    }
  }
}

// Turns of 4 to 40 rad in a step, of which nothing is right but that energy stays within the ratio of the moments.
TEST(RigidTurn, FasterThanStepsCanTellItStaysBounded) {
  for (const int count : {1, 3}) {
    const std::vector<Piece> pieces = pieces_of(count, 0.1);
    const Whole whole(pieces);
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(whole.inertia);
    const double ratio = solver.eigenvalues()[2] / solver.eigenvalues()[0];
    for (const double spin : {1e3, 1e4}) {
      const Trajectory<double> run = thrown<double>(mounted(pieces, false), Vector(0.9, 0.3, 0.32) * spin, kTenSeconds);
      ASSERT_FALSE(run.any_stopped());
      EXPECT_LT(strays(whole, run, 0.1).energy, ratio) << count << " at " << spin << " rad/s";
    }
  }
}

// Bodies that are fixed to each other are one body with the sum of their inertias, whatever they hang on.
TEST(RigidTurn, WhatIsFixedTogetherMovesAsOne) {
  for (const Mount& mount :
       {Mount{JointType::free}, Mount{JointType::free, false, true}, Mount{JointType::ball},
        Mount{JointType::ball, true}, Mount{JointType::ball, true, true}, Mount{JointType::revolute, true}}) {
    const std::vector<Piece> pieces = pieces_of(3, 0.1);
    const Vector omega(30, -12, 9);
    const double others = mount.on_carrier ? 15 : 0;  // rad/s; of a free one they are m/s
    const Trajectory<double> several = thrown<double>(mounted(pieces, false, mount), omega, 240, others);
    const Trajectory<double> one = thrown<double>(mounted(pieces, true, mount), omega, 240, others);
    ASSERT_FALSE(one.any_stopped()) << mount;
    for (int k = 0; k < one.final.q.rows(); ++k)
      EXPECT_NEAR(several.final.q(k, 0), one.final.q(k, 0), 1e-9) << mount << k;
    for (int k = 0; k < one.final.qd.rows(); ++k) {
      EXPECT_NEAR(several.final.qd(k, 0), one.final.qd(k, 0), 1e-8) << mount << k;
    }
  }
}

// That this can fail is shown by mutation_test.cpp.
TEST(RigidTurn, AdjointIsTheTransposeOfTheDerivative) {
  const test::GradientCase c = test::rigid_case();
  for (const test::BlockError& e : test::compare_blocks(c, test::gradient_by_tape<double>(c), 11)) {
    EXPECT_LT(e.error, 1e-12) << e.block;
    const bool of_bodies = e.block.find("bodies/") == 0 && e.block != "bodies/gravity_compensation";
    if (of_bodies) {
      EXPECT_GT(e.size, 1e-7) << e.block;
    }
  }
}

}  // namespace
}  // namespace backdrive
