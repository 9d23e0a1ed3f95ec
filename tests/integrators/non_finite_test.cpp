// A world that goes non-finite stops alone: its status names the step and the joint, its state stays what it was before
// that step, its gradient is NaN, and sums over worlds leave it out.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/builder.h"
#include "models/parameter_list.h"
#include "tests/support/batch.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr int kSteps = 8, kWorlds = 11, kBad = 6, kStep = 3;

template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

template <class T>
struct Fixture {
  Model model = [] {
    Model m = test::chain(5);
    test::require_all(m);
    return m;
  }();
  test::Batch<T> batch = test::random_batch<T>(model, kSteps, test::first_worlds(kWorlds), 2);
  RolloutOptions options = [] {
    RolloutOptions o;
    o.steps = kSteps;
    o.time_step = 0.01;
    return o;
  }();
  int nu = model.topology.nu, nq = model.topology.nq;
};

template <class T>
class NonFinite : public testing::Test, public Fixture<T> {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(NonFinite, Precisions);

TYPED_TEST(NonFinite, StopsAloneAndForGood) {
  using T = TypeParam;
  const Trajectory<T> good = rollout(this->model, this->batch.state, this->batch.control, this->options);
  for (const T effort : {kNaN<T>, std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::max()}) {
    Control<T> control;
    control.u = this->batch.control.u.clone(default_memory());
    control.u.set(kStep * this->nu + 2, kBad, effort);
    for (const int threads : {1, 3}) {
      this->options.threads = threads;
      const Trajectory<T> t = rollout(this->model, this->batch.state, control, this->options);
      ASSERT_TRUE(t.any_stopped());
      for (int w = 0; w < kWorlds; ++w) {
        const WorldStatus status = (*t.status)[w];
        if (w != kBad) {
          EXPECT_FALSE(status.stopped());
          EXPECT_TRUE(test::same_bits(t.q, w, good.q, w));
          EXPECT_TRUE(test::same_bits(t.qd, w, good.qd, w));
          continue;
        }
        EXPECT_EQ(status.stopped_step, kStep);
        EXPECT_EQ(status.joint, 2) << "effort " << effort;
        // Up to the step as if nothing were wrong, from there on unmoved: though the efforts of later steps are sound.
        for (int k = 0; k <= kSteps; ++k) {
          EXPECT_EQ(test::column(t.q, w, k * this->nq, this->nq),
                    test::column(good.q, w, std::min(k, kStep) * this->nq, this->nq))
              << "state " << k;
          EXPECT_EQ(test::column(t.qd, w, k * this->nq, this->nq),
                    test::column(good.qd, w, std::min(k, kStep) * this->nq, this->nq))
              << "state " << k;
        }
        EXPECT_EQ(test::column(t.final.q, w), test::column(good.q, w, kStep * this->nq, this->nq));
      }
    }
  }
}

TYPED_TEST(NonFinite, NamesTheJointAtFault) {
  using T = TypeParam;
  for (int joint = 0; joint < 5; ++joint) {
    for (const bool velocity : {false, true}) {
      for (const T value : {kNaN<T>, std::numeric_limits<T>::infinity(), std::numeric_limits<T>::max()}) {
        // Finite but huge positions are angles like any other.
        if (!velocity && value == std::numeric_limits<T>::max()) continue;
        auto batch = test::random_batch<T>(this->model, kSteps, test::first_worlds(kWorlds), 2);
        (velocity ? batch.state.qd : batch.state.q).set(joint, kBad, value);
        const Trajectory<T> t = rollout(this->model, batch.state, batch.control, this->options);
        EXPECT_EQ((*t.status)[kBad].stopped_step, 0) << "value " << value << " velocity " << velocity;
        EXPECT_EQ((*t.status)[kBad].joint, joint) << "value " << value << " velocity " << velocity;
      }
    }
  }
}

// However much a drive may saturate: no number comes of none.
TYPED_TEST(NonFinite, StopsThroughASaturatedDrive) {
  using T = TypeParam;
  test::TreeOptions tree;
  tree.branched = tree.sliding = tree.fixed = false;
  tree.forces = true;
  const Model model = test::random_tree(3, tree);
  const Link& link = model.topology.links[3];
  ASSERT_TRUE(link.acts.drive && std::isfinite(model.joints.drive.effort_limit(3, 0)));
  const auto batch = test::random_batch<T>(model, kSteps, test::first_worlds(kWorlds), 2);
  for (const int row : {link.v, link.target, link.target + 1}) {
    Control<T> control;
    control.u = batch.control.u.clone(default_memory());
    control.u.set(kStep * model.topology.nu + row, kBad, kNaN<T>);
    const Trajectory<T> t = rollout(model, batch.state, control, this->options);
    for (int w = 0; w < kWorlds; ++w) EXPECT_EQ((*t.status)[w].stopped_step, w == kBad ? kStep : -1) << "row " << row;
    EXPECT_EQ((*t.status)[kBad].joint, link.joint) << "row " << row;
  }
}

// A massless link without armature, let through since nobody validated it.
TYPED_TEST(NonFinite, NamesTheJointThatMovesNoInertia) {
  using T = TypeParam;
  Model model = this->model;
  model.bodies.mass.set(4, 0, 0);
  for (int k = 0; k < 6; ++k) model.bodies.inertia.set(4, k, 0);
  model.joints.armature.set(4, 0, 0);
  model.joints.damping.set(4, 0, 0);
  RolloutOptions options = this->options;
  EXPECT_THROW(rollout(model, this->batch.state, this->batch.control, options), ModelError);
  options.checked = true;  // to see what then happens
  const Trajectory<T> t = rollout(model, this->batch.state, this->batch.control, options);
  for (int w = 0; w < kWorlds; ++w) {
    EXPECT_EQ((*t.status)[w].stopped_step, 0);
    EXPECT_EQ((*t.status)[w].joint, 4);
  }
}

/// Gradients of Σ |q|² + |q̇|² + poses, with one world bad or with that world left out.
template <class T>
Gradients<T> gradient(const Fixture<T>& f, const test::Batch<T>& batch, Trajectory<T>* trajectory = nullptr) {
  Tape<T> tape;
  const Trajectory<T> t = rollout(tape, f.model, batch.state, batch.control, f.options);
  const std::vector<int> bodies{4};
  const Buffer<T> poses = body_poses(&tape, f.model, t.q, bodies, f.options, tape.memory());
  Seeds<T> seeds;
  for (const Buffer<T>& b : {t.q, t.qd, poses}) seeds.add(b, b.clone(tape.memory()));
  if (trajectory) *trajectory = t;
  return std::move(tape).backward(seeds);
}

template <class T>
void expect_sum_without_bad(const Parameters& with, const Parameters& without) {
  for (const Field& field : fields()) {
    const Parameter &a = field.in(with), &b = field.in(without);
    for (int i = 0; i < a.items(); ++i) {
      for (int k = 0; k < a.components(); ++k) {
        EXPECT_EQ(a(i, k), b(i, k)) << field.leaf << " item " << i << " component " << k;
      }
    }
  }
}

TYPED_TEST(NonFinite, GradientIsNaNThereAndSumsLeaveItOut) {
  using T = TypeParam;
  std::vector<int> others;
  for (int w = 0; w < kWorlds; ++w) {
    if (w != kBad) others.push_back(w);
  }
  const auto fewer = test::random_batch<T>(this->model, kSteps, others, 2);
  const Gradients<T> want = gradient<T>(*this, fewer);
  auto batch = test::random_batch<T>(this->model, kSteps, test::first_worlds(kWorlds), 2);
  batch.control.u.set(kStep * this->nu + 1, kBad, kNaN<T>);
  const Gradients<T> got = gradient<T>(*this, batch);
  EXPECT_EQ(got.stopped_worlds(), 1);
  EXPECT_EQ(want.stopped_worlds(), 0);
  for (std::size_t k = 0; k < others.size(); ++k) {
    EXPECT_TRUE(test::same_bits(got.of(batch.state.q), others[k], want.of(fewer.state.q), static_cast<int>(k)));
    EXPECT_TRUE(test::same_bits(got.of(batch.state.qd), others[k], want.of(fewer.state.qd), static_cast<int>(k)));
    EXPECT_TRUE(test::same_bits(got.of(batch.control.u), others[k], want.of(fewer.control.u), static_cast<int>(k)));
  }
  for (const Buffer<T>* input : {&batch.state.q, &batch.state.qd, &batch.control.u}) {
    for (const T x : test::column(got.of(*input), kBad)) EXPECT_TRUE(std::isnan(x));
  }
  expect_sum_without_bad<T>(got.parameters(), want.parameters());
}

// Per-world parameters of the stopped world are NaN, of the others the same as ever.
TYPED_TEST(NonFinite, PerWorldParametersAreNaNThere) {
  using T = TypeParam;
  this->model.joints.damping.spread(kWorlds);
  this->model.bodies.mass.spread(kWorlds);
  const Gradients<T> want = gradient<T>(*this, this->batch);
  auto batch = test::random_batch<T>(this->model, kSteps, test::first_worlds(kWorlds), 2);
  batch.control.u.set(kStep * this->nu + 1, kBad, kNaN<T>);
  const Gradients<T> got = gradient<T>(*this, batch);
  for (int w = 0; w < kWorlds; ++w) {
    for (int j = 0; j < 5; ++j) {
      const double damping = got.parameters().joints.damping(j, 0, w);
      const double mass = got.parameters().bodies.mass(j, 0, w);
      EXPECT_EQ(std::isnan(damping), w == kBad);
      EXPECT_EQ(std::isnan(mass), w == kBad);
      if (w != kBad) {
        EXPECT_EQ(damping, want.parameters().joints.damping(j, 0, w));
        EXPECT_EQ(mass, want.parameters().bodies.mass(j, 0, w));
      }
    }
  }
  EXPECT_TRUE(std::isfinite(got.parameters().gravity(0, 2)));
}

// The same when every step is recorded by itself: a world that stopped in one step has no gradient on the whole tape,
// and takes no part in sums of steps before or after.
TYPED_TEST(NonFinite, StepByStep) {
  using T = TypeParam;
  const auto run = [&](const std::vector<int>& worlds, bool bad) {
    auto batch = test::random_batch<T>(this->model, kSteps, worlds, 2);
    if (bad) batch.control.u.set(kStep * this->nu + 1, kBad, kNaN<T>);
    Tape<T> tape;
    State<T> state = batch.state;
    for (int k = 0; k < kSteps; ++k) {
      Control<T> control(this->model, 1, static_cast<int>(worlds.size()));
      for (int r = 0; r < this->nu; ++r) {
        for (std::size_t w = 0; w < worlds.size(); ++w) {
          control.u.set(r, static_cast<int>(w), batch.control.u(k * this->nu + r, static_cast<int>(w)));
        }
      }
      state = step(tape, this->model, state, control, this->options);
    }
    Seeds<T> seeds;
    seeds.add(state.q, state.q.clone(tape.memory()));
    const Gradients<T> g = std::move(tape).backward(seeds);
    EXPECT_EQ(g.stopped_worlds(), bad ? 1 : 0);
    if (bad) {
      EXPECT_TRUE(std::isnan(g.of(batch.state.q)(0, kBad)));
    }
    EXPECT_TRUE(std::isfinite(g.of(batch.state.q)(0, 0)));
    return g.parameters();
  };
  std::vector<int> others;
  for (int w = 0; w < kWorlds; ++w) {
    if (w != kBad) others.push_back(w);
  }
  expect_sum_without_bad<T>(run(test::first_worlds(kWorlds), true), run(others, false));
}

}  // namespace
}  // namespace backdrive
