// After its first iterations a gradient loop asks the system for nothing: neither buffers, nor nodes, nor snapshots.
#include <gtest/gtest.h>

#include "autodiff/problem/loss.h"
#include "tests/engine/allocation_count.h"
#include "tests/support/batch.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr int kWorlds = 37, kSteps = 12;

Problem problem() {
  test::TreeOptions options;
  options.links = 9;
  options.forces = options.shapes = true;
  Problem p;
  p.model = test::random_tree(4, options);
  p.simulation.time_step = 0.005;
  p.simulation.steps = kSteps;
  for (const LossQuantity quantity :
       {LossQuantity::joint_position, LossQuantity::joint_velocity, LossQuantity::body_position,
        LossQuantity::body_orientation, LossQuantity::control}) {
    LossTerm& term = p.loss.emplace_back();
    term.name = "a name too long to be kept within a string object";
    term.quantity = quantity;
    term.terminal = quantity != LossQuantity::control;
    term.index = 1;
    term.integral = false;  // of the control: a window
    term.first_step = 3;
    if (term.is_control()) continue;
    LossTerm& record = p.loss.emplace_back(term);
    record.terminal = false;
    record.record = {{0, 0.1}, {{0.3, 0.1, 0.2, 0.9}, {0.1, 0.4, 0.2, 0.9}}};
  }
  return p;
}

/// Calls of operator new in the last of a few runs of `iteration`.
template <class Iteration>
std::uint64_t allocations_of(const Iteration& iteration) {
  iteration();
  iteration();
  const std::uint64_t before = test::system_allocations();
  iteration();
  return test::system_allocations() - before;
}

template <class T>
class Allocations : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Allocations, Precisions);

TYPED_TEST(Allocations, NoneInALaterIteration) {
  using T = TypeParam;
  for (const bool parameters : {false, true}) {
    for (const bool per_world : {false, true}) {
      Problem p = problem();
      if (parameters) test::require_all(p.model);
      if (per_world) p.model.bodies.mass.spread(kWorlds);
      const test::Batch<T> batch = test::random_batch<T>(p.model, kSteps, test::first_worlds(kWorlds), 5);
      RolloutOptions options;
      options.time_step = p.simulation.time_step;
      options.steps = kSteps;
      options.threads = 2;
      const auto forward = [&] { rollout<T>(p.model, batch.state, batch.control, options); };
      const auto gradient = [&] {
        Tape<T> tape;
        const Trajectory<T> t = rollout(tape, p.model, batch.state, batch.control, options);
        const LossResult<T> loss = evaluate_loss<T>(p, t, batch.control, options, &tape);
        const Gradients<T> g = std::move(tape).backward(loss.seeds);
        ASSERT_NE(g.of(batch.control.u)(0, 0), T(0));
      };
      EXPECT_EQ(allocations_of(forward), 0u) << "per world " << per_world;
      EXPECT_EQ(allocations_of(gradient), 0u) << "parameters " << parameters << ", per world " << per_world;
    }
  }
}

TEST(AllocationsAreCounted, OneByOne) {
  EXPECT_EQ(allocations_of([] { ::operator delete(::operator new(16)); }), 1u);
}

}  // namespace
}  // namespace backdrive
