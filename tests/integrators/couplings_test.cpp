// Couplings against dense routes: the mass matrix and inverse dynamics of integrators/reference with Lagrange
// multipliers where a coupling holds, and with what acts implicitly in the matrix elsewhere. That their gradients are
// right, gradient_test.cpp shows.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <cstdio>

#include "autodiff/tape/rollout.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/coordinates.h"
#include "tests/support/batch.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

/// Of a sum over couplings: C, row by row, and the positions of the couplings.
struct Rows {
  Eigen::MatrixXd C;
  Eigen::VectorXd s;
};

Rows rows_of(const Model& model, const std::vector<double>& q) {
  const Topology& t = model.topology;
  const int n = static_cast<int>(t.couplings.size());
  Rows rows{Eigen::MatrixXd::Zero(n, t.nv), Eigen::VectorXd(n)};
  for (int c = 0; c < n; ++c) {
    rows.s[c] = model.couplings.offset(c);
    for (int k = t.couplings[c].first_term; k < t.couplings[c].first_term + t.couplings[c].term_count; ++k) {
      rows.C(c, t.coupling_terms[k].v) += model.couplings.ratios(k);
      rows.s[c] += model.couplings.ratios(k) * q[t.coupling_terms[k].q];
    }
  }
  return rows;
}

/// q̈ of the first step, of couplings with springs, dampers, armatures and holds alone, joints without implicit forces.
Eigen::VectorXd dense_accelerations(const Model& model, const std::vector<double>& q, const std::vector<double>& qd,
                                    const std::vector<double>& u, double dt) {
  const int n = model.topology.nv, m = static_cast<int>(model.topology.couplings.size());
  const std::vector<double> M = reference::mass_matrix(model, q);
  const std::vector<double> h = reference::inverse_dynamics(model, q, qd, std::vector<double>(n, 0.0));
  const Rows rows = rows_of(model, q);
  const Eigen::VectorXd rate = rows.C * Eigen::Map<const Eigen::VectorXd>(qd.data(), n);
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(n + m, n + m);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(n + m);
  A.topLeftCorner(n, n) = Eigen::Map<const Eigen::MatrixXd>(M.data(), n, n);
  for (int i = 0; i < n; ++i) b[i] = u[i] - h[i];
  for (int c = 0; c < m; ++c) {
    const Eigen::RowVectorXd row = rows.C.row(c);
    if (model.coupling_holds[c]) {  // C q̈ = what brings s to zero, and a multiplier
      A.block(n + c, 0, 1, n) = row;
      A.block(0, n + c, n, 1) = row.transpose();
      b[n + c] = -(rows.s[c] / dt + rate[c]) / dt;
      continue;
    }
    A(n + c, n + c) = 1;  // no multiplier
    const double k = model.couplings.spring.stiffness(c), d = model.couplings.damping(c);
    const double next = rows.s[c] + dt * rate[c] - model.couplings.spring.rest(c);
    const double effort = u[model.topology.couplings[c].effort] - k * next - d * rate[c];
    A.topLeftCorner(n, n) += (dt * dt * k + dt * d + model.couplings.armature(c)) * row.transpose() * row;
    b.head(n) += effort * row.transpose();
  }
  return A.fullPivLu().solve(b).head(n);
}

struct Coupled {
  std::uint64_t seed;
  int links, couplings;
};
void PrintTo(const Coupled& c, std::ostream* out) {
  *out << c.links << " links, " << c.couplings << " couplings";
}

/// Springs and dampers of any strength, and holds.
Model coupled_tree(const Coupled& c) {
  test::Random random(c.seed + 7);
  test::TreeOptions options;
  options.links = c.links;
  options.couplings = c.couplings;
  Model model = test::random_tree(c.seed, options);
  CouplingParameters& own = model.couplings;
  for (int k = 0; k < c.couplings; ++k) {
    own.friction.at(k) = 0;
    own.limit.lower.at(k) = -kInfinity;
    own.limit.upper.at(k) = own.limit.velocity.at(k) = kInfinity;
    own.drive.stiffness.at(k) = own.drive.damping.at(k) = 0;
    own.drive.effort_limit.at(k) = kInfinity;
    if (!model.coupling_holds[k]) own.spring.stiffness.at(k) = std::pow(10.0, random.uniform(0, 7));
  }
  validate(model);
  return model;
}

class DenseCouplings : public testing::TestWithParam<Coupled> {};

// Relative to the largest acceleration. M has condition numbers of some 1e3 and stiff couplings bring 1e7: a solve by
// either route keeps 1e-16 times some thousand.
TEST_P(DenseCouplings, AccelerationsAreThoseOfLagrangeMultipliers) {
  const Model model = coupled_tree(GetParam());
  const double dt = 1.0 / 240;
  const Topology& t = model.topology;
  // So slow that velocity terms are those of the start (theory.md, (24)).
  const test::Batch<double> batch =
      test::random_batch<double>(model, 1, test::first_worlds(3), GetParam().seed, {.qd = 0.02});
  RolloutOptions options;
  options.steps = 1;
  options.time_step = dt;
  const Trajectory<double> after = rollout(model, batch.state, batch.control, options);
  for (int w = 0; w < 3; ++w) {
    const std::vector<double> q = test::column(batch.state.q, w), qd = test::column(batch.state.qd, w);
    const Eigen::VectorXd dense = dense_accelerations(model, q, qd, test::column(batch.control.u, w), dt);
    for (int v = 0; v < t.nv; ++v) {
      EXPECT_NEAR((after.final.qd(v, w) - qd[v]) / dt, dense[v], 1e-9 * dense.lpNorm<Eigen::Infinity>()) << v;
    }
    const Rows rows = rows_of(model, test::column(after.final.q, w));
    for (int c = 0; c < GetParam().couplings; ++c) {
      if (!model.coupling_holds[c]) continue;
      // The rounding of a step from up to 1 rad, and of velocities of up to 100 rad/s.
      EXPECT_NEAR(rows.s[c], 0, 1e-13) << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DenseCouplings,
                         testing::Values(Coupled{1, 2, 1}, Coupled{2, 4, 2}, Coupled{3, 6, 3}, Coupled{4, 9, 5},
                                         Coupled{5, 14, 6}, Coupled{6, 24, 8}));

/// Two fingers on a palm that gravity swings, held together by a coupling and pressed apart: 10 s at 1/240 s.
Model fingers(const CouplingOptions& coupling, Integrator integrator = Integrator::featherstone) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.add_body("palm", {.mass = 0.5, .inertia = {1e-3, 1e-3, 1e-3, 0, 0, 0}});
  JointOptions swing;
  swing.axis = {1, 0, 0};
  swing.frame.position = {0, 0, 1};
  builder.add_joint("swing", JointType::revolute, ModelBuilder::world, 0, swing);
  for (int side = 0; side < 2; ++side) {
    const std::string name = side == 0 ? "left" : "right";
    builder.add_body(name, {.mass = 0.1, .com = {0, 0, -0.05}, .inertia = {2e-4, 2e-4, 2e-5, 0, 0, 0}});
    JointOptions knuckle;
    knuckle.axis = {0, 1, 0};
    knuckle.frame.position = {side == 0 ? -0.04 : 0.04, 0, -0.2};
    knuckle.damping = 0.01;
    builder.add_joint(name, JointType::revolute, 0, side + 1, knuckle);
  }
  CouplingOptions own = coupling;
  own.ratios = {{1, 1}, {2, 1}};
  builder.add_coupling("mimic", own);
  return builder.build();
}

/// The largest |left + right| of 10 s, with a load that swings between ±0.5 N·m on one finger alone, at so many steps a
/// second.
template <class T>
double largest_gap(const Model& model) {
  RolloutOptions options;
  options.steps = 2400;
  options.time_step = 1.0 / 240;
  State<T> state(model, 1);
  state.q.set(0, 0, T(1));
  Control<T> control(model, options.steps, 1);
  const int nu = model.topology.nu;
  for (int step = 0; step < options.steps; ++step) control.u.set(step * nu + 2, 0, T(0.5 * std::sin(0.05 * step)));
  const Trajectory<T> t = rollout(model, place_bodies<T>(nullptr, model, state, options), control, options);
  EXPECT_EQ((*t.status)[0].stopped_step, -1);
  double largest = 0, moved = 0;
  for (int step = 1; step <= options.steps; ++step) {
    const int row = step * model.topology.nq;
    const double left = double(t.q(row + 1, 0)), right = double(t.q(row + 2, 0));
    largest = std::max(largest, std::abs(left + right));
    moved = std::max(moved, std::abs(left));
  }
  EXPECT_GT(moved, 0.3);
  return largest;
}

TEST(Couplings, FingersFollowUnderLoad) {
  CouplingOptions hold;
  hold.hold = true;
  // Positions are rounded once a step, at 1 rad or less: 1e-16, in float32 6e-8, and the next step takes it back.
  EXPECT_LT(largest_gap<double>(fingers(hold)), 1e-14);
  EXPECT_LT(largest_gap<float>(fingers(hold)), 1e-6);
}

// As stiff as the load over 1e-6 rad asks for, without smaller steps.
TEST(Couplings, StiffOnesNeedNoSmallerSteps) {
  CouplingOptions stiff;
  double gap = HUGE_VAL;
  for (const double stiffness : {1e3, 1e5, 1e7}) {
    stiff.spring.stiffness = stiffness;
    const double now = largest_gap<double>(fingers(stiff));
    EXPECT_LT(now, 2 * 0.5 / stiffness) << stiffness;  // the load's, and some inertia of what swings
    EXPECT_LT(now, gap / 50);
    gap = now;
  }
  // In float32 a sum of two angles of up to 1 rad is known to 1e-7, which 1e7 N·m/rad make forces of; implicitly they
  // come to rest at once.
  stiff.spring.stiffness = 1e7;
  EXPECT_LT(largest_gap<float>(fingers(stiff)), 1e-6);
}

TEST(Couplings, HeldIsTheLimitOfStiff) {
  CouplingOptions held, stiff;
  held.hold = true;
  stiff.spring.stiffness = 1e10;
  const auto end = [](const Model& model) {
    RolloutOptions options;
    options.steps = 480;
    options.time_step = 1.0 / 240;
    State<double> state(model, 1);
    state.q.set(0, 0, 1);
    state.q.set(1, 0, 0.3), state.q.set(2, 0, -0.3);
    return test::column(rollout(model, state, Control<double>(model, options.steps, 1), options).final.q, 0);
  };
  const std::vector<double> a = end(fingers(held)), b = end(fingers(stiff));
  // What loads of 1 N·m make of 1e10 N·m/rad, and what 2 s of swinging make of that.
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(a[k], b[k], 1e-8) << k;
}

// Where axes are parallel, rates of joints are those of their positions at all times: what is left is rounding.
TEST(Couplings, FingersOfLooseBodiesFollow) {
  CouplingOptions hold;
  hold.hold = true;
  EXPECT_LT(largest_gap<double>(fingers(hold, Integrator::semi_implicit)), 1e-12);
  EXPECT_LT(largest_gap<float>(fingers(hold, Integrator::semi_implicit)), 1e-4);
  CouplingOptions stiff;
  stiff.spring.stiffness = 1e6;
  EXPECT_LT(largest_gap<double>(fingers(stiff, Integrator::semi_implicit)), 1e-6);
}

/// A hull in weightlessness with two arms and a slide, coupled in two ways; how it moves at first.
struct Floater {
  Model model;
  State<double> start;
};
Floater floater(bool coupled, bool held_alone = false) {
  ModelBuilder builder;
  builder.set_integrator(Integrator::semi_implicit);
  builder.set_gravity({0, 0, 0});
  builder.add_body("hull", {.mass = 2, .com = {0.02, 0.01, 0}, .inertia = {0.02, 0.03, 0.025, 0.001, 0, 0}});
  builder.add_joint("float", JointType::free, ModelBuilder::world, 0, {});
  const JointType types[] = {JointType::revolute, JointType::revolute, JointType::prismatic};
  const Numbers3 axes[] = {{1, 0, 0}, {0, 1, 0.5}, {0, 0, 1}};
  for (int k = 0; k < 3; ++k) {
    const std::string name = "limb" + std::to_string(k);
    builder.add_body(name, {.mass = 0.5, .com = {0.1, 0.05, -0.1}, .inertia = {4e-3, 3e-3, 2e-3, 0, 0, 1e-4}});
    JointOptions joint;
    joint.axis = axes[k];
    joint.frame.position = {0.1 * (k - 1), 0.1, 0.05};
    builder.add_joint(name, types[k], k == 2 ? 1 : 0, k + 1, joint);
  }
  if (coupled) {
    CouplingOptions gear, tendon;
    gear.hold = true, gear.ratios = {{1, 1}, {2, -2}};
    tendon.ratios = {{2, 0.5}, {3, 3}};
    tendon.spring = {40, 0.1}, tendon.damping = 0.2, tendon.armature = 0.01;
    builder.add_coupling("gear", gear);
    if (!held_alone) builder.add_coupling("tendon", tendon);
  }
  Floater f{builder.build(), {}};
  const Topology& t = f.model.topology;
  State<double> state(f.model, 1);
  const std::vector<double> q = neutral_positions(t);
  for (int r = 0; r < t.nq; ++r) state.q.set(r, 0, q[r]);
  for (int v = 0; v < t.joint_nv; ++v) state.qd.set(v, 0, 0.3 * (v + 1));
  f.start = place_bodies<double>(nullptr, f.model, state, {});
  return f;
}

/// [Σ x × m v + R J Rᵀ ω; Σ m v], about the world's origin.
Eigen::Matrix<double, 6, 1> momentum(const Model& model, const Trajectory<double>& t, int step) {
  Eigen::Matrix<double, 6, 1> sum = Eigen::Matrix<double, 6, 1>::Zero();
  const Topology& topology = model.topology;
  for (int i = 0; i < static_cast<int>(model.body_names.size()); ++i) {
    const auto q = [&](int k) { return t.q(step * topology.nq + topology.joint_nq + 7 * i + k, 0); };
    const auto v = [&](int k) { return t.qd(step * topology.nv + topology.joint_nv + 6 * i + k, 0); };
    const Eigen::Matrix3d R = Eigen::Quaterniond(q(3), q(0), q(1), q(2)).toRotationMatrix();
    const auto number = [&](int k) { return model.bodies.inertia(i, k); };
    Eigen::Matrix3d J;
    J << number(0), number(3), number(4), number(3), number(1), number(5), number(4), number(5), number(2);
    const Eigen::Vector3d lever =
        R * Eigen::Vector3d(model.bodies.com(i, 0), model.bodies.com(i, 1), model.bodies.com(i, 2));
    const Eigen::Vector3d omega(v(0), v(1), v(2));
    const Eigen::Vector3d p = model.bodies.mass(i) * (Eigen::Vector3d(v(3), v(4), v(5)) + omega.cross(lever));
    sum.head<3>() += (Eigen::Vector3d(q(4), q(5), q(6)) + lever).cross(p) + R * J * R.transpose() * omega;
    sum.tail<3>() += p;
  }
  return sum;
}

// What couplings push with goes where the joints' own impulses go, in pairs that act at one point: what is left is
// rounding, some 1e-16 of the largest momentum a step.
TEST(Couplings, LooseBodiesKeepTheirMomentum) {
  RolloutOptions options;
  options.steps = 1000;
  options.time_step = 1.0 / 240;
  const Floater f = floater(true), free = floater(false);
  const Trajectory<double> t = rollout<double>(f.model, f.start, {}, options);
  const Trajectory<double> alone = rollout<double>(free.model, free.start, {}, options);
  const auto start = momentum(f.model, t, 0);
  double lost = 0, moved = 0;
  for (int step = 1; step <= options.steps; ++step) {
    lost = std::max(lost, (momentum(f.model, t, step) - start).lpNorm<Eigen::Infinity>());
    const int row = step * f.model.topology.nq + 7;  // behind those of the hull's joint
    for (int k = 0; k < 3; ++k) moved = std::max(moved, std::abs(t.q(row + k, 0) - alone.q(row + k, 0)));
  }
  EXPECT_LT(lost, 1e-12 * start.lpNorm<Eigen::Infinity>());
  EXPECT_GT(moved, 0.3);
}

// Axes turn against each other here: what is left is the rounding of positions of some radians.
TEST(Couplings, LooseBodiesAreHeldToRounding) {
  const Floater f = floater(true);
  RolloutOptions options;
  options.steps = 480;
  options.time_step = 1.0 / 240;
  const Trajectory<double> t = rollout<double>(f.model, f.start, {}, options);
  double gap = 0;
  for (int step = 2; step <= options.steps; ++step) {  // it begins where it is not held
    gap = std::max(
        gap, std::abs(rows_of(f.model, test::column(t.q, 0, step * f.model.topology.nq, f.model.topology.nq)).s[0]));
  }
  EXPECT_LT(gap, 1e-12);
}

// Lagrange's multiplier is the effort that, by the ratios, on the joints of a model without the coupling brings its
// position to zero: found by differences here, of the step's end by the effort. Rounding of s over what an effort does
// to it in a step leaves 1e-10 of the multiplier.
TEST(Couplings, LooseBodiesAreHeldByLagrangeMultipliers) {
  const Floater f = floater(true, true), alone = floater(false);
  const Topology& t = f.model.topology;
  RolloutOptions options;
  options.steps = 1;
  options.time_step = 1.0 / 240;
  State<double> at = f.start;
  double pushed = 0;
  for (int step = 0; step < 60; ++step) {
    const State<double> held = rollout<double>(f.model, at, {}, options).final;
    const auto pushed_by = [&](double effort) {
      Control<double> control(alone.model, 1, 1);
      control.u.set(control_row(alone.model, 1, ControlChannel::effort), 0, effort);
      control.u.set(control_row(alone.model, 2, ControlChannel::effort), 0, -2 * effort);
      return rollout(alone.model, at, control, options).final;
    };
    const auto gap = [&](const State<double>& state) { return rows_of(f.model, test::column(state.q, 0)).s[0]; };
    double effort = 0, other = 1;
    for (int i = 0; i < 12 && std::abs(gap(pushed_by(effort))) > 1e-16; ++i) {  // secants
      const double here = gap(pushed_by(effort)), there = gap(pushed_by(other));
      if (here == there) break;
      other = std::exchange(effort, effort - here * (other - effort) / (there - here));
    }
    const State<double> dense = pushed_by(effort);
    EXPECT_NEAR(gap(held), 0, 1e-13);
    for (int r = 0; r < t.nq; ++r) EXPECT_NEAR(held.q(r, 0), dense.q(r, 0), 1e-12) << step;
    for (int r = 0; r < t.nv; ++r) EXPECT_NEAR(held.qd(r, 0), dense.qd(r, 0), 1e-9) << step;
    pushed = std::max(pushed, std::abs(effort));
    at = held;
  }
  EXPECT_GT(pushed, 0.01);
}

TEST(Couplings, IntegratorsAgree) {
  for (const bool held : {true, false}) {
    CouplingOptions options;
    options.hold = held;
    if (!held) {
      options.spring = {2, 0.3};
      options.damping = 0.01, options.armature = 1e-4, options.friction = 0.02;
      options.limit = {-0.2, 0.4, 50, 0.1};
      options.driven = true;
      options.drive = {1, 0.02, 0.5};
    }
    const auto end = [&](Integrator integrator, double dt) {
      const Model model = fingers(options, integrator);
      RolloutOptions rollouts;
      rollouts.time_step = dt;
      rollouts.steps = static_cast<int>(std::lround(0.5 / dt));
      State<double> state(model, 1);
      state.q.set(0, 0, 1), state.q.set(1, 0, 0.3), state.q.set(2, 0, -0.3);
      Control<double> control(model, rollouts.steps, 1);
      for (int r = 0; r < control.u.rows(); ++r) control.u.set(r, 0, r % model.topology.nu > 2 ? 0.1 : 0.02);
      const State<double> start = place_bodies<double>(nullptr, model, state, rollouts);
      return test::column(rollout(model, start, control, rollouts).final.q, 0, 0, 3);
    };
    double before = 0;
    for (const double dt : {1e-3, 2.5e-4}) {
      const std::vector<double> a = end(Integrator::featherstone, dt), b = end(Integrator::semi_implicit, dt);
      double gap = 0;
      for (int k = 0; k < 3; ++k) gap = std::max(gap, std::abs(a[k] - b[k]));
      EXPECT_LT(gap, 5e-3 * dt / 1e-3);  // both are of first order
      if (before > 0) {
        EXPECT_LT(gap, before / 2);
      }
      before = gap;
    }
  }
}

}  // namespace
}  // namespace backdrive
