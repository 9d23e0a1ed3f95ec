// The linearised step against closed forms, differences on the manifold, and its own composition.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "autodiff/tape/step_jacobians.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr double kStep = 0.01;

RolloutOptions some_steps(int steps = 1) {
  RolloutOptions options;
  options.time_step = kStep;
  options.steps = steps;
  return options;
}

Eigen::MatrixXd by_state(const StepJacobians<double>& of, int world) {
  Eigen::MatrixXd m(of.rows, of.rows);
  for (int r = 0; r < of.rows; ++r) {
    for (int c = 0; c < of.rows; ++c) m(r, c) = of.by_state(r, c, world);
  }
  return m;
}

Eigen::MatrixXd by_control(const StepJacobians<double>& of, int world) {
  Eigen::MatrixXd m(of.rows, of.control_rows);
  for (int r = 0; r < of.rows; ++r) {
    for (int c = 0; c < of.control_rows; ++c) m(r, c) = of.by_control(r, c, world);
  }
  return m;
}

/// Where a world's state, moved by `change` in tangent rows, is led.
struct Moved {
  std::vector<double> q, qd;
};
Moved led_to(const Model& model, const test::Batch<double>& at, int world, const Eigen::VectorXd& change,
             const Eigen::VectorXd& control) {
  const Topology& t = model.topology;
  std::vector<double> q = test::column(at.state.q, world), qd = test::column(at.state.qd, world);
  add_tangent(t, std::span(change.data(), static_cast<std::size_t>(t.nv)), q);
  State<double> state(model, 1);
  Control<double> u(model, 1, 1);
  for (int r = 0; r < t.nq; ++r) state.q.set(r, 0, q[r]);
  for (int v = 0; v < t.nv; ++v) state.qd.set(v, 0, qd[v] + change[t.nv + v]);
  for (int c = 0; c < t.nu; ++c) u.u.set(c, 0, at.control.u(c, world) + control[c]);
  const Trajectory<double> after = rollout(model, state, u, some_steps());
  return {test::column(after.final.q, 0), test::column(after.final.qd, 0)};
}

int pairs_that_push(const Model& model, const test::Batch<double>& at) {
  RolloutOptions options = some_steps();
  options.keep_contact = true;
  const Trajectory<double> after = rollout(model, at.state, at.control, options);
  int count = 0;
  for (int w = 0; w < after.contact.worlds(); ++w) {
    for (int pair = 0; 7 * pair < after.contact.rows(); ++pair) {
      const auto force = [&](int k) { return after.contact(7 * pair + k, w); };
      count += force(0) != 0 || force(1) != 0 || force(2) != 0;
    }
  }
  return count;
}

/// (b − a) / length, in tangent rows.
Eigen::VectorXd slope(const Model& model, const Moved& a, const Moved& b, double length) {
  const Topology& t = model.topology;
  std::vector<double> rate(t.nq), mean(t.nq);
  for (int r = 0; r < t.nq; ++r) rate[r] = (b.q[r] - a.q[r]) / length, mean[r] = (a.q[r] + b.q[r]) / 2;
  each_quaternion(t, [&](TurnSide side, int q, int) {
    const Vec3<double> turn = turn_of_rate(side, load_quaternion(&mean[q]), load_quaternion(&rate[q]));
    rate[q] = turn.x, rate[q + 1] = turn.y, rate[q + 2] = turn.z;
  });
  Eigen::VectorXd result(2 * t.nv);
  const std::vector<int> rows = tangent_rows(t);
  for (int v = 0; v < t.nv; ++v) result[v] = rate[rows[v]], result[t.nv + v] = (b.qd[v] - a.qd[v]) / length;
  return result;
}

Model tree(bool contact) {
  test::TreeOptions options;
  options.forces = options.rotations = true;
  options.couplings = 2;
  options.shapes = options.contact = contact;
  return test::random_tree(contact ? 31 : 30, options);
}

// x⁺ of a mass that slides: q̇ + Δt u/m, q + Δt q̇⁺.
TEST(StepJacobians, OfASlidingMassAreKnown) {
  const Model model = test::slider(2);
  const State<double> state(model, 3);
  const Control<double> control(model, 1, 3);
  const StepJacobians<double> of = step_jacobians(model, state, control, some_steps());
  ASSERT_EQ(of.rows, 2);
  ASSERT_EQ(of.control_rows, 1);
  for (int w = 0; w < 3; ++w) {
    Eigen::Matrix2d A;
    A << 1, kStep, 0, 1;
    EXPECT_NEAR((by_state(of, w) - A).norm(), 0, 1e-15);
    EXPECT_NEAR((by_control(of, w) - Eigen::Vector2d(kStep * kStep / 2, kStep / 2)).norm(), 0, 1e-16);
  }
}

// Central differences of h = 1e-5: rounding of numbers of some 10 takes 1e-15 / h, what is cut off h² times third
// derivatives. Contact's are as large as its stiffness over what it yields by.
TEST(StepJacobians, AgreeWithDifferencesOnTheManifold) {
  constexpr double h = 1e-5;
  for (const bool contact : {false, true}) {
    const Model model = tree(contact);
    const Topology& t = model.topology;
    const auto at = test::random_batch<double>(model, 1, test::first_worlds(2), 8);
    const StepJacobians<double> of = step_jacobians(model, at.state, at.control, some_steps());
    const double tolerance = contact ? 1e-5 : 1e-7;
    EXPECT_EQ(pairs_that_push(model, at) > 2, contact);
    for (int w = 0; w < 2; ++w) {
      const Eigen::MatrixXd A = by_state(of, w), B = by_control(of, w);
      const double scale = std::max(A.cwiseAbs().maxCoeff(), B.cwiseAbs().maxCoeff());
      for (int k = 0; k < of.rows + t.nu; ++k) {
        Eigen::VectorXd x = Eigen::VectorXd::Zero(of.rows), u = Eigen::VectorXd::Zero(t.nu);
        (k < of.rows ? x[k] : u[k - of.rows]) = h;
        const Eigen::VectorXd difference =
            slope(model, led_to(model, at, w, -x, -u), led_to(model, at, w, x, u), 2 * h);
        const Eigen::VectorXd exact = k < of.rows ? A.col(k) : B.col(k - of.rows);
        EXPECT_LT((difference - exact).cwiseAbs().maxCoeff(), tolerance * scale) << "column " << k << ", world " << w;
      }
    }
  }
}

// A of three steps is A₃ A₂ A₁, and the controls of the first step act through A₃ A₂: the nodes of a trajectory as
// worlds of one batch. In another order the product is another matrix.
TEST(StepJacobians, OfNodesMultiplyToThatOfAllSteps) {
  const Model model = tree(false);
  const Topology& t = model.topology;
  constexpr int kNodes = 3;
  const auto at = test::random_batch<double>(model, kNodes, {0}, 8);
  const Trajectory<double> path = rollout(model, at.state, at.control, some_steps(kNodes));
  State<double> nodes(model, kNodes);
  Control<double> controls(model, 1, kNodes);
  for (int k = 0; k < kNodes; ++k) {
    for (int r = 0; r < t.nq; ++r) nodes.q.set(r, k, path.q(k * t.nq + r, 0));
    for (int v = 0; v < t.nv; ++v) nodes.qd.set(v, k, path.qd(k * t.nv + v, 0));
    for (int c = 0; c < t.nu; ++c) controls.u.set(c, k, at.control.u(k * t.nu + c, 0));
  }
  const StepJacobians<double> each = step_jacobians(model, nodes, controls, some_steps());
  const StepJacobians<double> all = step_jacobians(model, at.state, at.control, some_steps(kNodes));
  const Eigen::MatrixXd A = by_state(all, 0), product = by_state(each, 2) * by_state(each, 1) * by_state(each, 0);
  const Eigen::MatrixXd B = by_state(each, 2) * by_state(each, 1) * by_control(each, 0);
  // Products of three, of numbers of some 10.
  EXPECT_LT((A - product).cwiseAbs().maxCoeff(), 1e-13 * A.cwiseAbs().maxCoeff());
  EXPECT_LT((by_control(all, 0).leftCols(t.nu) - B).cwiseAbs().maxCoeff(), 1e-13 * B.cwiseAbs().maxCoeff());
  const Eigen::MatrixXd wrong = by_state(each, 0) * by_state(each, 1) * by_state(each, 2);
  EXPECT_GT((A - wrong).cwiseAbs().maxCoeff(), 1e-4 * A.cwiseAbs().maxCoeff());
}

/// Row `row` of A and B of a world, by the adjoint of a recorded step.
template <class T>
std::vector<T> row_by_adjoint(const Model& model, const test::Batch<T>& at, int row, int world) {
  const Topology& t = model.topology;
  Tape<T> tape;
  const Trajectory<T> after = rollout(tape, model, at.state, at.control, some_steps());
  const std::vector<int> tangent = tangent_rows(t);
  const int worlds = at.state.q.worlds();
  Buffer<T> q_seed(t.nq, worlds), qd_seed(t.nv, worlds);
  row < t.nv ? q_seed.set(tangent[row], world, T(1)) : qd_seed.set(row - t.nv, world, T(1));
  Seeds<T> seeds;
  seeds.add(after.final.q, q_seed);
  seeds.add(after.final.qd, qd_seed);
  const Gradients<T> g = std::move(tape).backward(seeds, Disconnected::zero);
  std::vector<T> result;
  for (int v = 0; v < t.nv; ++v) result.push_back(g.of(at.state.q)(tangent[v], world));
  for (int v = 0; v < t.nv; ++v) result.push_back(g.of(at.state.qd)(v, world));
  for (int c = 0; c < t.nu; ++c) result.push_back(g.of(at.control.u)(c, world));
  return result;
}

/// The largest difference of any number from the adjoint's, of the largest of all.
template <class T>
double off_the_adjoint(const Model& model, int worlds, int threads) {
  const auto at = test::random_batch<T>(model, 1, test::first_worlds(worlds), 8);
  RolloutOptions options = some_steps();
  options.threads = threads;
  const StepJacobians<T> of = step_jacobians(model, at.state, at.control, options);
  double scale = 0, off = 0;
  for (int row = 0; row < of.rows; ++row) {
    const std::vector<T> exact = row_by_adjoint(model, at, row, worlds - 1);
    for (int k = 0; k < of.rows + of.control_rows; ++k) {
      const T x = k < of.rows ? of.by_state(row, k, worlds - 1) : of.by_control(row, k - of.rows, worlds - 1);
      scale = std::max(scale, std::abs(double(exact[k])));
      off = std::max(off, std::abs(double(x - exact[k])));
    }
  }
  return off / scale;
}

// The kernel of one step does the same sums as the adjoint of a rollout, but for the rows of q⁺, which are made from
// those of q̇⁺: some ten roundings of the largest number. (Rows of what a coupling holds are nothing but rounding.)
TEST(StepJacobians, OfOneStepAgreeWithTheAdjointOfARollout) {
  test::TreeOptions options;
  options.forces = options.rotations = true;
  for (int seed = 40; seed < 60; ++seed) {
    options.links = seed % 9 + 1;
    options.couplings = options.links > 6 ? 3 : 0;
    const Model model = test::random_tree(seed, options);
    EXPECT_LT(off_the_adjoint<double>(model, seed % 19 + 1, 1 + seed % 3), 30 * 2.2e-16) << "seed " << seed;
    EXPECT_LT(off_the_adjoint<float>(model, seed % 19 + 1, 1 + seed % 3), 30 * 1.2e-7) << "seed " << seed;
  }
}

// What acts is derived from the numbers as they are, however they were written.
TEST(StepJacobians, KnowWhatWasWrittenSinceTheModelWasBuilt) {
  Model model = test::chain(3);
  const auto at = test::random_batch<double>(model, 1, {0}, 8);
  const StepJacobians<double> before = step_jacobians(model, at.state, at.control, some_steps());
  model.joints.friction.set(1, 0, 0.7);
  model.joints.spring.stiffness.set(2, 0, 40);
  EXPECT_LT(off_the_adjoint<double>(model, 1, 1), 30 * 2.2e-16);
  const StepJacobians<double> after = step_jacobians(model, at.state, at.control, some_steps());
  EXPECT_GT((by_state(after, 0) - by_state(before, 0)).norm(), 1e-3);
}

// Of a world that ends in numbers that are none nothing is known; the others are as they were.
TEST(StepJacobians, OfWorldsThatStopAreNotNumbers) {
  for (const int steps : {1, 2}) {
    const Model model = test::chain(3);
    auto at = test::random_batch<double>(model, steps, test::first_worlds(11), 8);
    const StepJacobians<double> before = step_jacobians(model, at.state, at.control, some_steps(steps));
    at.state.qd.set(1, 4, 1e200);
    const StepJacobians<double> of = step_jacobians(model, at.state, at.control, some_steps(steps));
    for (int w = 0; w < 11; ++w) {
      for (int k = 0; k < of.A.rows(); ++k) {
        EXPECT_TRUE(w == 4 ? std::isnan(of.A(k, w)) : of.A(k, w) == before.A(k, w)) << w;
      }
      for (int k = 0; k < of.B.rows(); ++k) {
        EXPECT_TRUE(w == 4 ? std::isnan(of.B(k, w)) : of.B(k, w) == before.B(k, w)) << w;
      }
    }
  }
}

TEST(StepJacobians, OfSinglePrecisionAndOfEachWorldByItself) {
  const Model model = tree(false);
  constexpr int kWorlds = 300;  // of 2 nv rows each more than are recorded at a time
  const auto all = test::random_batch<double>(model, 1, test::first_worlds(kWorlds), 8);
  const auto last = test::random_batch<double>(model, 1, {kWorlds - 1}, 8);
  const auto single = test::random_batch<float>(model, 1, {kWorlds - 1}, 8);
  const StepJacobians<double> of_all = step_jacobians(model, all.state, all.control, some_steps());
  const StepJacobians<double> of_last = step_jacobians(model, last.state, last.control, some_steps());
  const StepJacobians<float> in_single = step_jacobians(model, single.state, single.control, some_steps());
  double scale = 0;
  for (int k = 0; k < of_last.A.rows(); ++k) scale = std::max(scale, std::abs(of_last.A(k, 0)));
  for (int k = 0; k < of_last.A.rows(); ++k) {
    EXPECT_EQ(of_all.A(k, kWorlds - 1), of_last.A(k, 0)) << k;
    // A step loses some hundred roundings of 6e-8.
    EXPECT_NEAR(in_single.A(k, 0), of_last.A(k, 0), 1e-5 * scale) << k;
  }
}

TEST(StepJacobians, OfBodiesInMaximalCoordinatesHaveRowsForThem) {
  test::TreeOptions options;
  options.integrator = Integrator::semi_implicit;
  const Model model = test::random_tree(5, options);
  const auto at = test::random_batch<double>(model, 1, {0, 1}, 8);
  const State<double> placed = place_bodies<double>(nullptr, model, at.state, some_steps());
  const StepJacobians<double> one = step_jacobians(model, placed, at.control, some_steps());
  EXPECT_EQ(one.rows, 2 * model.topology.nv);
  EXPECT_GT(by_state(one, 0).norm(), 1);
}

TEST(StepJacobians, RefuseParametersOfEachWorld) {
  Model model = test::slider(2);
  model.bodies.mass.spread(3);
  const State<double> state(model, 3);
  const Control<double> control(model, 1, 3);
  EXPECT_THROW(step_jacobians(model, state, control, some_steps()), Error);
}

}  // namespace
}  // namespace backdrive
