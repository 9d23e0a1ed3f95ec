// One step at a time, with a policy between the steps as a custom operation, against the fused rollout and dual
// numbers.
#include <gtest/gtest.h>

#include "models/parameter_list.h"
#include "tests/support/batch.h"
#include "tests/support/models.h"
#include "tests/support/policy.h"

namespace backdrive {
namespace {

constexpr int kSteps = 12, kWorlds = 3;

Model step_model() {
  test::TreeOptions options;
  options.forces = true;
  Model model = test::random_tree(17, options);
  test::require_all(model);
  return model;
}

RolloutOptions step_options(int steps = 1) {
  RolloutOptions options;
  options.time_step = 0.01;
  options.steps = steps;
  return options;
}

/// Rows [first, first + rows) as a buffer of their own.
Buffer<double> rows_of(const Buffer<double>& from, int first, int rows) {
  Buffer<double> to(rows, from.worlds());
  for (int r = 0; r < rows; ++r) {
    for (int w = 0; w < from.worlds(); ++w) to.set(r, w, from(first + r, w));
  }
  return to;
}

void expect_parameters_near(const Parameters& a, const Parameters& b, double tolerance) {
  for (const Field& field : fields()) {
    const Parameter &x = field.in(a), &y = field.in(b);
    double scale = 0;
    for (int i = 0; i < y.items(); ++i) {
      for (int k = 0; k < y.components(); ++k) scale = std::max(scale, std::abs(y(i, k)));
    }
    for (int i = 0; i < y.items(); ++i) {
      for (int k = 0; k < y.components(); ++k) EXPECT_NEAR(x(i, k), y(i, k), tolerance * scale) << field.leaf;
    }
  }
}

// Open loop: the states and the gradients of states and controls are the same bits; gradients of parameters are added
// up in another order (twelve steps, a few roundings of 1e-16 each).
TEST(Step, ByItselfEqualsTheFusedRollout) {
  const Model model = step_model();
  const int nu = model.topology.nu;
  const auto batch = test::random_batch<double>(model, kSteps, test::first_worlds(kWorlds), 5);
  Tape<double> fused_tape;
  const auto fused = rollout(fused_tape, model, batch.state, batch.control, step_options(kSteps));
  Seeds<double> fused_seeds;
  fused_seeds.add(fused.final.q, fused.final.q);
  fused_seeds.add(fused.final.qd, fused.final.qd);
  const Gradients<double> want = std::move(fused_tape).backward(fused_seeds);

  Tape<double> tape;
  State<double> state = batch.state;
  std::vector<Control<double>> controls;
  for (int k = 0; k < kSteps; ++k) {
    controls.emplace_back();
    controls.back().u = rows_of(batch.control.u, k * nu, nu);
    state = step(tape, model, state, controls.back(), step_options());
  }
  EXPECT_EQ(tape.nodes(), static_cast<std::size_t>(kSteps));
  EXPECT_TRUE(test::same_bits(state.q, fused.final.q));
  EXPECT_TRUE(test::same_bits(state.qd, fused.final.qd));
  Seeds<double> seeds;
  seeds.add(state.q, state.q);
  seeds.add(state.qd, state.qd);
  const Gradients<double> got = std::move(tape).backward(seeds);
  EXPECT_TRUE(test::same_bits(got.of(batch.state.q), want.of(batch.state.q)));
  EXPECT_TRUE(test::same_bits(got.of(batch.state.qd), want.of(batch.state.qd)));
  for (int k = 0; k < kSteps; ++k) {
    EXPECT_TRUE(test::same_bits(got.of(controls[k].u), rows_of(want.of(batch.control.u), k * nu, nu)));
  }
  expect_parameters_near(got.parameters(), want.parameters(), 1e-13);
}

/// Closed loop: final |q|² + |q̇|² of all worlds under u = K (q, q̇, 1).
struct ClosedLoop {
  Model model = step_model();
  State<double> start = test::random_batch<double>(model, 1, test::first_worlds(kWorlds), 6).state;
  Buffer<double> gains = [&] {
    Buffer<double> k = test::policy_gains<double>(model, kWorlds);
    test::Random random(2);
    for (int r = 0; r < k.rows(); ++r) {
      for (int w = 0; w < kWorlds; ++w) k.set(r, w, random.symmetric(0.5));
    }
    return k;
  }();

  Gradients<double> gradient() const {
    Tape<double> tape;
    State<double> state = start;
    for (int k = 0; k < kSteps; ++k) {
      state = step(tape, model, state, test::apply_policy(&tape, model, gains, state), step_options());
    }
    EXPECT_EQ(tape.nodes(), 2u * kSteps);
    Seeds<double> seeds;
    seeds.add(state.q, state.q);
    seeds.add(state.qd, state.qd);
    return std::move(tape).backward(seeds);
  }

  /// Derivative of ½(|q|² + |q̇|²) along one number, by dual numbers through policy and steps.
  double derivative(const Buffer<Dual<double>>& dual_gains, const State<Dual<double>>& dual_start) const {
    using D = Dual<double>;
    State<D> state = dual_start;
    for (int k = 0; k < kSteps; ++k) {
      const Control<D> control = test::apply_policy<D>(nullptr, model, dual_gains, state);
      state = rollout(model, state, control, step_options()).final;
    }
    double sum = 0;
    for (const Buffer<D>& b : {state.q, state.qd}) {
      for (int r = 0; r < b.rows(); ++r) {
        for (int w = 0; w < kWorlds; ++w) sum += b(r, w).value * b(r, w).dot;
      }
    }
    return sum;
  }
};

Buffer<Dual<double>> dual(const Buffer<double>& from) {
  Buffer<Dual<double>> to(from.rows(), from.worlds());
  for (int r = 0; r < from.rows(); ++r) {
    for (int w = 0; w < from.worlds(); ++w) to.set(r, w, from(r, w));
  }
  return to;
}

// The gradient of every gain in every world, and of the start, against the exact derivative of the same loop.
TEST(Step, GradientsThroughAPolicyAreExact) {
  const ClosedLoop loop;
  const Gradients<double> g = loop.gradient();
  const Buffer<double>& gains_bar = g.of(loop.gains);
  double largest = 0;
  for (int r = 0; r < gains_bar.rows(); ++r) {
    for (int w = 0; w < kWorlds; ++w) largest = std::max(largest, std::abs(gains_bar(r, w)));
  }
  EXPECT_GT(largest, 1e-3);
  const Buffer<Dual<double>> gains = dual(loop.gains);
  State<Dual<double>> start;
  start.q = dual(loop.start.q);
  start.qd = dual(loop.start.qd);
  for (int r = 0; r < gains_bar.rows(); r += 5) {
    const int w = r % kWorlds;
    Buffer<Dual<double>> moved = dual(loop.gains);
    moved.set(r, w, {loop.gains(r, w), 1});
    EXPECT_NEAR(gains_bar(r, w), loop.derivative(moved, start), 1e-12 * largest) << "gain " << r;
  }
  for (int r = 0; r < loop.start.q.rows(); ++r) {
    State<Dual<double>> moved = start;
    moved.q = dual(loop.start.q);
    moved.q.set(r, 1, {loop.start.q(r, 1), 1});
    const double want = loop.derivative(gains, moved);
    EXPECT_NEAR(g.of(loop.start.q)(r, 1), want, 1e-12 * (1 + std::abs(want)));
  }
}

// The closed loop's states under recorded controls are those of the open loop: same bits from the fused rollout.
TEST(Step, ControlsOfAPolicyReplayInAFusedRollout) {
  const ClosedLoop loop;
  const int nu = loop.model.topology.nu;
  Control<double> all(loop.model, kSteps, kWorlds);
  Tape<double> tape;
  State<double> state = loop.start;
  for (int k = 0; k < kSteps; ++k) {
    const Control<double> control = test::apply_policy(&tape, loop.model, loop.gains, state);
    for (int r = 0; r < nu; ++r) {
      for (int w = 0; w < kWorlds; ++w) all.u.set(k * nu + r, w, control.u(r, w));
    }
    state = step(tape, loop.model, state, control, step_options());
  }
  const auto fused = rollout(loop.model, loop.start, all, step_options(kSteps));
  EXPECT_TRUE(test::same_bits(state.q, fused.final.q));
  EXPECT_TRUE(test::same_bits(state.qd, fused.final.qd));
}

}  // namespace
}  // namespace backdrive
