// Gradients with known answers (docs/known_gradients.md): (K1) free fall, (K2) the oscillator, (K7) the derivatives of
// forward dynamics.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <complex>

#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "tests/integrators/accelerations.h"
#include "tests/support/models.h"
#include "tests/support/random.h"

namespace backdrive {
namespace {

// 1. Semi-implicit Euler under constant acceleration: x_N = x₀ + N Δt v₀ + Δt² N(N+1)/2 g + Σ Δt² (N−k) f_k / m. Sums
// of N ≤ 64 terms: N roundings of 1e-16.
TEST(ClosedFormFreeFall, IsExactToRounding) {
  constexpr double mass = 2.5, dt = 1.0 / 240;
  for (const int N : {1, 7, 64}) {
    Model model = test::slider(mass);
    test::require_all(model);
    State<double> state(model, 1);
    Control<double> control(model, N, 1);
    state.q.set(0, 0, 0.3);
    state.qd.set(0, 0, -1.2);
    double x = 0.3 - 1.2 * N * dt - 9.81 * dt * dt * N * (N + 1) / 2;
    for (int k = 0; k < N; ++k) {
      const double f = 3 - 0.2 * k;
      control.u.set(k, 0, f);
      x += dt * dt * (N - k) * f / mass;
    }
    RolloutOptions options;
    options.steps = N;
    options.time_step = dt;
    Tape<double> tape;
    const Trajectory<double> t = rollout(tape, model, state, control, options);
    EXPECT_NEAR(t.final.q(0, 0), x, 1e-15 * N);
    Buffer<double> one(1, 1);
    one.set(0, 0, 1);
    Seeds<double> seeds;
    seeds.add(t.final.q, one);
    const Gradients<double> g = std::move(tape).backward(seeds);
    const double relative = 2.3e-16 * (N + 2);
    EXPECT_EQ(g.of(state.q)(0, 0), 1);
    EXPECT_NEAR(g.of(state.qd)(0, 0), N * dt, relative * N * dt);
    for (int k = 0; k < N; ++k) {
      const double want = dt * dt * (N - k) / mass;
      EXPECT_NEAR(g.of(control.u)(k, 0), want, relative * want);
    }
    const double fall = dt * dt * N * (N + 1) / 2;
    EXPECT_NEAR(g.parameters().gravity(0, 2), fall, relative * fall);
    EXPECT_EQ(g.parameters().gravity(0, 0), 0);
    // A frame that moves takes the axis along: x is measured in it. The mass enters through f/m alone.
    double by_mass = 0;
    for (int k = 0; k < N; ++k) by_mass -= dt * dt * (N - k) * (3 - 0.2 * k) / (mass * mass);
    EXPECT_NEAR(g.parameters().bodies.mass(0), by_mass, 1e-13);
  }
}

/// Rows (∂x_N, ∂v_N)/∂(x₀, v₀) of a slide on a spring: one world per row.
Eigen::Matrix2d oscillator_gradient(const Model& model, int N, double dt, bool policy, double k) {
  State<double> start(model, 2);
  for (int w = 0; w < 2; ++w) {
    start.q.set(0, w, 0.1);
    start.qd.set(0, w, -0.4);
  }
  RolloutOptions options;
  options.time_step = dt;
  Tape<double> tape;
  State<double> state = start;
  for (int step_index = 0; step_index < N; ++step_index) {
    Control<double> control(model, 1, 2);
    if (policy) {  // f = −k x, an explicit spring
      const Buffer<double> x = state.q, f = control.u;
      for (int w = 0; w < 2; ++w) control.u.set(0, w, -k * x(0, w));
      tape.record({{x}, {f}, [x, f, k](Cotangents<double>& bars) {
                     const Buffer<double>* f_bar = bars.find(f);
                     Buffer<double>& x_bar = bars.of(x);
                     for (int w = 0; w < 2; ++w) x_bar.write(0)[w] -= k * (*f_bar)(0, w);
                   }});
    }
    state = step(tape, model, state, control, options);
  }
  Buffer<double> on_q(1, 2), on_qd(1, 2);
  on_q.set(0, 0, 1);
  on_qd.set(0, 1, 1);
  Seeds<double> seeds;
  seeds.add(state.q, on_q);
  seeds.add(state.qd, on_qd);
  const Gradients<double> g = std::move(tape).backward(seeds);
  Eigen::Matrix2d A;
  for (int w = 0; w < 2; ++w) A.row(w) << g.of(start.q)(0, w), g.of(start.qd)(0, w);
  return A;
}

Eigen::Matrix2d power(const Eigen::Matrix2d& A, int n) {
  Eigen::Matrix2d result = Eigen::Matrix2d::Identity();
  for (int k = 0; k < n; ++k) result = A * result;
  return result;
}

// 2. An explicit spring, as a policy in the loop: A = [[1 − ω²Δt², Δt], [−ω²Δt, 1]], det A = 1.
TEST(ClosedFormOscillator, ExplicitSpringIsAToTheN) {
  constexpr double mass = 0.7, k = 30, dt = 0.02;
  constexpr double w2 = k / mass;
  const Model model = test::slider(mass);
  Eigen::Matrix2d A;
  A << 1 - w2 * dt * dt, dt, -w2 * dt, 1;
  EXPECT_NEAR(A.determinant(), 1, 1e-15);
  for (const int N : {1, 2, 50}) {
    const Eigen::Matrix2d ours = oscillator_gradient(model, N, dt, true, k), want = power(A, N);
    EXPECT_LT((ours - want).norm(), 1e-15 * (N + 5) * want.norm());
    EXPECT_NEAR(ours.determinant(), 1, 1e-13);
  }
}

// The spring of a joint is that map about its rest position, step by step the same, so that energy stays for as long as
// one likes; ∂/∂k follows from Σ Aᴺ⁻¹⁻ⁱ ∂A/∂k Aⁱ, and what a rest position moves is (1 − Aᴺ) of it.
TEST(ClosedFormOscillator, SpringOfAJointIsAToTheN) {
  constexpr double mass = 0.7, k = 30, dt = 0.02, w2 = k / mass;
  Model model = test::slider(mass, [&](JointOptions& joint) { joint.spring = {.stiffness = k, .rest = 0.25}; });
  model.gravity.set(0, 2, 0);
  set_requires_grad(model, "joints/*/spring", true);
  Eigen::Matrix2d A, by_k;
  A << 1 - w2 * dt * dt, dt, -w2 * dt, 1;
  by_k << -dt * dt / mass, 0, -dt / mass, 0;
  for (const int N : {1, 2, 50, 20000}) {
    State<double> start(model, 1);
    start.q.set(0, 0, 0.35), start.qd.set(0, 0, -0.4);
    Tape<double> tape;
    const Trajectory<double> t = rollout(tape, model, start, {}, {.time_step = dt, .steps = N});
    Buffer<double> on_q(1, 1);
    on_q.set(0, 0, 1);
    Seeds<double> seeds;
    seeds.add(t.final.q, on_q);
    const Gradients<double> g = std::move(tape).backward(seeds);
    Eigen::Vector2d x(0.1, -0.4), change(0, 0);  // from the rest position
    for (int i = 0; i < N; ++i) change = A * change + by_k * x, x = A * x;
    const Eigen::Matrix2d whole = power(A, N);
    const double room = 1e-14 * (N + 5);
    EXPECT_NEAR(t.final.q(0, 0), 0.25 + x[0], room);
    EXPECT_NEAR(t.final.qd(0, 0), x[1], 10 * room);
    EXPECT_NEAR(g.of(start.q)(0, 0), whole(0, 0), 10 * room);
    EXPECT_NEAR(g.parameters().joints.spring.stiffness(0), change[0], room * (1 + std::abs(change[0])));
    EXPECT_NEAR(g.parameters().joints.spring.rest(0), 1 - whole(0, 0), 10 * room);
    EXPECT_GT(std::abs(change[0]), 1e-5);
  }
}

// The drive's implicit spring and damper: v⁺ = (v − Δt ω² x) / (1 + Δt ω² Δt + Δt d/m), x⁺ = x + Δt v⁺.
TEST(ClosedFormOscillator, ImplicitDriveIsItsOwnAToTheN) {
  constexpr double mass = 0.7, k = 30, d = 0.4, dt = 0.02;
  const Model model = test::slider(mass, [&](JointOptions& joint) {
    joint.driven = true;
    joint.drive.stiffness = k;
    joint.drive.damping = d;
  });
  const double share = 1 / (1 + dt * (d + dt * k) / mass);
  Eigen::Matrix2d A;
  A << 1 - dt * dt * k / mass * share, dt * share, -dt * k / mass * share, share;
  for (const int N : {1, 2, 50}) {
    const Eigen::Matrix2d ours = oscillator_gradient(model, N, dt, false, k), want = power(A, N);
    EXPECT_LT((ours - want).norm(), 1e-15 * (N + 5));
  }
}

/// ∂(M q̈ + h)/∂x along each component of x, by complex step.
enum class Input { q, qd };
Eigen::MatrixXd inverse_dynamics_derivative(const Model& model, Input input, const std::vector<double>& q,
                                            const std::vector<double>& qd, const std::vector<double>& qdd) {
  using Complex = std::complex<double>;
  const int n = model.topology.nv;
  Eigen::MatrixXd D(n, n);
  for (int j = 0; j < n; ++j) {
    std::vector<Complex> cq(q.begin(), q.end()), cqd(qd.begin(), qd.end()), cqdd(qdd.begin(), qdd.end());
    (input == Input::q ? cq : cqd)[j] += Complex(0, 1e-30);
    const std::vector<Complex> tau = reference::inverse_dynamics(model, cq, cqd, cqdd);
    for (int i = 0; i < n; ++i) D(i, j) = tau[i].imag() * 1e30;
  }
  return D;
}

// 7. ∂q̈/∂τ = M⁻¹, symmetric; ∂q̈/∂q = −M⁻¹ ∂(inverse dynamics)/∂q, and the same for q̇. M by composite bodies, inverse
// dynamics by complex step. Tolerance: condition of M in units of 1e-16, times the joints.
TEST(ClosedFormDerivatives, AreThoseOfInverseDynamics) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    test::TreeOptions options;
    options.links = 9;
    options.shapes = seed % 2 == 0;
    const Model model = test::random_tree(seed, options);
    const int n = model.topology.nv;
    test::Random random(seed);
    std::vector<double> q, qd, tau;
    for (int i = 0; i < n; ++i) {
      q.push_back(random.symmetric(2));
      qd.push_back(random.symmetric(1));
      tau.push_back(random.symmetric(5));
    }
    const std::vector<double> qdd = test::accelerations(model, q, qd, tau);
    const std::vector<double> numbers = reference::mass_matrix(model, q);
    const Eigen::MatrixXd M = Eigen::Map<const Eigen::MatrixXd>(numbers.data(), n, n);
    const Eigen::MatrixXd inverse = M.llt().solve(Eigen::MatrixXd::Identity(n, n));
    const Eigen::MatrixXd by_q = -inverse * inverse_dynamics_derivative(model, Input::q, q, qd, qdd);
    const Eigen::MatrixXd by_qd = -inverse * inverse_dynamics_derivative(model, Input::qd, q, qd, qdd);
    const test::AccelerationDerivatives d = test::acceleration_derivatives(model, q, qd, tau);
    const double tolerance = 2e-16 * n * M.norm() * inverse.norm();
    for (int w = 0; w < n; ++w) {
      for (int i = 0; i < n; ++i) {
        const double by_tau = d.tau[w][i];
        EXPECT_NEAR(by_tau, inverse(w, i), tolerance * inverse.norm());
        EXPECT_NEAR(by_tau, d.tau[i][w], tolerance * inverse.norm());
        EXPECT_NEAR(d.q[w][i], by_q(w, i), tolerance * by_q.norm());
        EXPECT_NEAR(d.qd[w][i], by_qd(w, i), tolerance * (1 + by_qd.norm()));
      }
    }
    EXPECT_GT(by_q.norm(), 0.1);
    EXPECT_GT(by_qd.norm(), 0.01);
  }
}

}  // namespace
}  // namespace backdrive
