// The same bits for any number of threads, any batch size, any order of worlds, and run to run: states, gradients per
// world, and gradients of parameters that all worlds share.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/parallel.h"
#include "models/parameter_list.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr int kSteps = 15;
constexpr std::uint64_t kSeed = 9;

Model bits_model() {
  test::TreeOptions options;
  options.links = 9;
  options.forces = options.shapes = options.rotations = true;
  Model model = test::random_tree(12, options);
  test::require_all(model);
  return model;
}

/// Per-world parameters of the worlds named: they depend on the name alone, as the states do.
void spread_parameters(Model& model, const std::vector<int>& worlds) {
  const int count = static_cast<int>(worlds.size());
  for (Parameter* p : {&model.bodies.mass, &model.joints.damping, &model.gravity}) {
    p->spread(count);
    for (int w = 0; w < count; ++w) {
      for (int i = 0; i < p->items(); ++i) p->at(i, 0, w) += 0.01 * worlds[w];
    }
  }
}

template <class T>
struct Outcome {
  Trajectory<T> trajectory;
  Buffer<T> q0, qd0, control;
  Parameters parameters;
};

/// Σ over steps of |q|² and |q̇|² as the loss: the seeds of a world depend on its own states only.
template <class T>
Outcome<T> run(const Model& model, const std::vector<int>& worlds, int threads) {
  const test::Batch<T> batch = test::random_batch<T>(model, kSteps, worlds, kSeed);
  RolloutOptions options;
  options.steps = kSteps;
  options.time_step = 0.01;
  options.threads = threads;
  Tape<T> tape;
  Outcome<T> o;
  o.trajectory = rollout(tape, model, batch.state, batch.control, options);
  const std::vector<int> bodies{1, static_cast<int>(model.body_names.size()) - 1};
  const Buffer<T> poses = body_poses(&tape, model, o.trajectory.q, bodies, options, tape.memory());
  Seeds<T> seeds;
  for (const Buffer<T>& b : {o.trajectory.q, o.trajectory.qd, poses}) seeds.add(b, b.clone(tape.memory()));
  const Gradients<T> g = std::move(tape).backward(seeds);
  o.q0 = g.of(batch.state.q);
  o.qd0 = g.of(batch.state.qd);
  o.control = g.of(batch.control.u);
  o.parameters = g.parameters();
  return o;
}

/// World wa of a and wb of b have the same bits in everything that belongs to one world.
template <class T>
void expect_same_world(const Outcome<T>& a, int wa, const Outcome<T>& b, int wb) {
  EXPECT_TRUE(test::same_bits(a.trajectory.q, wa, b.trajectory.q, wb));
  EXPECT_TRUE(test::same_bits(a.trajectory.qd, wa, b.trajectory.qd, wb));
  EXPECT_TRUE(test::same_bits(a.trajectory.final.q, wa, b.trajectory.final.q, wb));
  EXPECT_TRUE(test::same_bits(a.q0, wa, b.q0, wb));
  EXPECT_TRUE(test::same_bits(a.qd0, wa, b.qd0, wb));
  EXPECT_TRUE(test::same_bits(a.control, wa, b.control, wb));
}

/// Uniform parameters to the bit; per-world ones of world wa and wb.
void expect_same_parameters(const Parameters& a, const Parameters& b, const std::vector<int>& world_of_b) {
  int numbers = 0;
  for (const Field& field : fields()) {
    const Parameter &x = field.in(a), &y = field.in(b);
    ASSERT_EQ(x.uniform(), y.uniform());
    for (int w = 0; w < x.worlds(); ++w) {
      for (int i = 0; i < x.items(); ++i) {
        for (int k = 0; k < x.components(); ++k) {
          const double u = x(i, k, w), v = y(i, k, x.uniform() ? 0 : world_of_b[w]);
          EXPECT_EQ(std::memcmp(&u, &v, sizeof u), 0) << field.leaf << " " << u << " " << v;
          numbers += u != 0;
        }
      }
    }
  }
  EXPECT_GT(numbers, 100);
}

template <class T>
class Bits : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(Bits, Precisions);

TYPED_TEST(Bits, AnyThreadsAndRunToRun) {
  const std::vector<int> worlds = test::first_worlds(37);
  for (const bool per_world : {false, true}) {
    Model model = bits_model();
    if (per_world) spread_parameters(model, worlds);
    const auto one = run<TypeParam>(model, worlds, 1);
    for (const int threads : {1, 2, 3, 7, 64}) {
      const auto other = run<TypeParam>(model, worlds, threads);
      for (const int w : worlds) expect_same_world(one, w, other, w);
      expect_same_parameters(one.parameters, other.parameters, worlds);
    }
  }
}

TYPED_TEST(Bits, AnyOrderOfWorlds) {
  const std::vector<int> worlds = test::first_worlds(37);
  std::vector<int> shuffled = worlds;
  test::Random random(4);
  for (int k = 36; k > 0; --k) std::swap(shuffled[k], shuffled[random.index(k + 1)]);
  for (const bool per_world : {false, true}) {
    Model model = bits_model(), other_model = model;
    if (per_world) {
      spread_parameters(model, worlds);
      spread_parameters(other_model, shuffled);
    }
    const auto one = run<TypeParam>(model, worlds, 1), other = run<TypeParam>(other_model, shuffled, 2);
    std::vector<int> place(37);
    for (int k = 0; k < 37; ++k) {
      expect_same_world(one, shuffled[k], other, k);
      place[shuffled[k]] = k;
    }
    expect_same_parameters(one.parameters, other.parameters, place);
  }
}

TYPED_TEST(Bits, AnyBatchSize) {
  const Model model = bits_model();
  const auto all = run<TypeParam>(model, test::first_worlds(70), 2);
  for (const int count : {1, 2, 4, 5, 8, 15, 16, 17, 33}) {
    const auto some = run<TypeParam>(model, test::first_worlds(count), 1);
    for (int w = 0; w < count; ++w) expect_same_world(all, w, some, w);
  }
  for (const int alone : {0, 3, 16, 69}) expect_same_world(all, alone, run<TypeParam>(model, {alone}, 1), 0);
}

// A world that stops, beside the others, leaves no trace in them.
TYPED_TEST(Bits, BesideAWorldThatStops) {
  using T = TypeParam;
  const Model model = bits_model();
  const std::vector<int> worlds = test::first_worlds(20);
  const auto good = run<T>(model, worlds, 1);
  for (const int bad : {0, 5, 19}) {
    auto batch = test::random_batch<T>(model, kSteps, worlds, kSeed);
    batch.state.qd.set(0, bad, std::numeric_limits<T>::infinity());
    RolloutOptions options;
    options.steps = kSteps;
    options.time_step = 0.01;
    const Trajectory<T> t = rollout(model, batch.state, batch.control, options);
    for (const int w : worlds) {
      EXPECT_EQ((*t.status)[w].stopped(), w == bad);
      if (w != bad) {
        EXPECT_TRUE(test::same_bits(t.q, w, good.trajectory.q, w));
      }
    }
  }
}

// Keeping the states or not, and one launch or one step at a time, is the same arithmetic.
TYPED_TEST(Bits, OneLaunchOrStepByStep) {
  using T = TypeParam;
  const Model model = bits_model();
  const auto batch = test::random_batch<T>(model, kSteps, test::first_worlds(6), kSeed);
  RolloutOptions options;
  options.steps = kSteps;
  options.time_step = 0.01;
  const Trajectory<T> whole = rollout(model, batch.state, batch.control, options);
  options.keep_states = false;
  const Trajectory<T> end = rollout(model, batch.state, batch.control, options);
  EXPECT_TRUE(end.q.empty());
  EXPECT_TRUE(test::same_bits(end.final.q, whole.final.q));
  EXPECT_TRUE(test::same_bits(end.final.qd, whole.final.qd));
  options.steps = 1;
  State<T> state = batch.state;
  for (int k = 0; k < kSteps; ++k) {
    Control<T> control(model, 1, 6);
    const int nu = model.topology.nu;
    for (int r = 0; r < nu; ++r) {
      for (int w = 0; w < 6; ++w) control.u.set(r, w, batch.control.u(k * nu + r, w));
    }
    state = rollout(model, state, control, options).final;
    for (int w = 0; w < 6; ++w) {
      EXPECT_EQ(test::column(state.q, w), test::column(whole.q, w, (k + 1) * model.topology.nq, model.topology.nq));
    }
  }
}

}  // namespace
}  // namespace backdrive
