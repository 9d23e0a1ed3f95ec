// (K8) of docs/known_gradients.md: the energy error of an undamped pendulum shrinks as the order of the integrator
// says, and does not grow with time, as the integrator is symplectic.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/tape/rollout.h"
#include "integrators/reference/inverse_dynamics.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

struct Swing {
  double worst = 0;     ///< largest |E − E₀| over the run
  double first = 0;     ///< the same over its first half
  double position = 0;  ///< where joint 0 ends
};

Swing swing(const Model& model, double seconds, double dt) {
  State<double> state(model, 1);
  state.q.set(0, 0, 1.2);
  if (model.topology.nq > 1) state.q.set(1, 0, 0.5);
  RolloutOptions options;
  options.time_step = dt;
  options.steps = static_cast<int>(std::lround(seconds / dt));
  const Trajectory<double> t = rollout<double>(model, state, {}, options);
  const int n = model.topology.nq;
  const auto energy = [&](int k) {
    std::vector<double> q, qd;
    for (int i = 0; i < n; ++i) {
      q.push_back(t.q(k * n + i, 0));
      qd.push_back(t.qd(k * n + i, 0));
    }
    return reference::kinetic_energy(model, q, qd) + reference::potential_energy(model, q);
  };
  Swing result;
  const double start = energy(0);
  for (int k = 1; k <= options.steps; ++k) {
    const double error = std::abs(energy(k) - start);
    result.worst = std::max(result.worst, error);
    if (2 * k <= options.steps) result.first = result.worst;
  }
  result.position = t.final.q(0, 0);
  return result;
}

/// Slope of log(error) over log(Δt) between each step and half of it.
void expect_first_order(const Model& model, double seconds) {
  double before = 0;
  for (const double dt : {1.0 / 500, 1.0 / 1000, 1.0 / 2000, 1.0 / 4000}) {
    const double error = swing(model, seconds, dt).worst;
    EXPECT_GT(error, 1e-6);
    if (before > 0) {
      // The next term of the expansion is a factor Δt·(rate of a few rad/s) smaller: a percent here.
      EXPECT_NEAR(std::log2(before / error), 1, 0.03) << "dt " << dt;
    }
    before = error;
  }
}

TEST(ClosedFormEnergy, ErrorOfAPendulumIsOfFirstOrder) {
  expect_first_order(test::pendulum(), 2);
}
TEST(ClosedFormEnergy, ErrorOfADoublePendulumIsOfFirstOrder) {
  expect_first_order(test::double_pendulum(), 1);
}

// Symplectic: over twenty swings the energy goes to and fro, and its error is what it was in the first ten.
TEST(ClosedFormEnergy, DoesNotDrift) {
  const Swing r = swing(test::pendulum(), 40, 1.0 / 240);
  EXPECT_LT(r.worst, 1.001 * r.first);
  EXPECT_LT(r.worst, 0.05 * 9.81);  // of m g l
}

// The state converges too: halving the step halves the distance to what twice the order (by extrapolation) says.
TEST(ClosedFormEnergy, StateConvergesAtFirstOrder) {
  const Model model = test::pendulum();
  const auto end = [&](double dt) { return swing(model, 1, dt).position; };
  const double a = end(1.0 / 250), b = end(1.0 / 500), c = end(1.0 / 1000), d = end(1.0 / 2000);
  EXPECT_NEAR(std::log2((a - b) / (b - c)), 1, 0.05);
  EXPECT_NEAR(std::log2((b - c) / (c - d)), 1, 0.03);
}

}  // namespace
}  // namespace backdrive
