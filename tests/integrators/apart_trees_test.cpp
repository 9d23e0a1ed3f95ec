// Trees that are far from all that they may touch (apart_trees.h): bounds hold, and steps have the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "autodiff/tape/recorded.h"
#include "autodiff/tape/rollout.h"
#include "integrators/featherstone/rollout_kernel.h"
#include "integrators/kernels.h"
#include "models/builder.h"
#include "tests/support/batch.h"
#include "tests/support/random.h"

namespace backdrive::apart_trees_test {
namespace {

using test::Random;

constexpr double kRate = 240;
/// Of balls, with which nothing is watched.
constexpr int kTooMany = featherstone::kMostWatchedPairs;

/// Shapes of a robot meet those of the world alone.
const CollisionFilter kOfRobot{1, 2}, kOfWorld{2, 1};

/// Two trees at random, on a free root or a ball, each link with two shapes, over a floor and, a kilometre away,
/// `balls`. Their joints are listed by turns and branches as they come, so that degrees of freedom stand in no order of
/// links.
Model robot(std::uint64_t seed, int balls = 0) {
  Random random(seed);
  ModelBuilder builder;
  builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane, .filter = kOfWorld});
  for (int k = 0; k < balls; ++k) {
    builder.add_shape("ball" + std::to_string(k), ModelBuilder::world,
                      {.scale = {0.1, 0, 0}, .frame = {.position = {1000, 10. * k, 0}}, .filter = kOfWorld});
  }
  const auto place = [&](double most) {
    return Numbers3{random.symmetric(most), random.symmetric(most), random.symmetric(most)};
  };
  std::vector<BodyIndex> trees[2];
  for (int i = 0; i < 10; ++i) {
    std::vector<BodyIndex>& tree = trees[i % 2];
    const bool root = tree.empty();
    const std::string name = std::to_string(i);
    const BodyIndex body = builder.add_body(name, {.mass = 1, .inertia = {0.01, 0.01, 0.01, 0, 0, 0}});
    for (const GeometryType type : {GeometryType::box, GeometryType::capsule}) {
      builder.add_shape(name + (type == GeometryType::box ? "b" : "c"), body,
                        {.type = type,
                         .scale = {random.uniform(0.01, 0.1), random.uniform(0.01, 0.1), random.uniform(0.01, 0.1)},
                         .margin = 0.001 * i,
                         .frame = {.position = place(0.1)},
                         .filter = kOfRobot});
    }
    const JointType types[] = {JointType::revolute, JointType::ball, JointType::fixed, JointType::universal};
    const JointType of_root = seed % 3 == 0 ? JointType::ball : JointType::free;
    builder.add_joint(name, root ? of_root : types[random.index(4)],
                      root ? ModelBuilder::world : tree[random.index(int(tree.size()))], body,
                      {.frame = {.position = root ? Numbers3{5. * i, 0, 0} : place(0.3)}});
    tree.push_back(body);
  }
  return builder.build();
}

/// A step's working set in plain numbers.
struct Step {
  using Set = featherstone::Workspace<featherstone::PackRollout<double, true>>;

  explicit Step(Model m)
      : model(std::move(m)),
        kernel_model(model, nullptr, 1, memory),
        start(model, 1),
        launch(launch_of(kernel_model, 1 / kRate, 1, start.q)) {
    RolloutArguments<double> a{};
    a.launch = launch;
    block = memory.allocate(bytes_of<Set>(a));
    Arena arena(block.get());
    featherstone::lay_out(a, 0, arena, set);
    load_state(launch, start.q.row(0), start.qd.row(0), 0, set);
  }

  Memory memory;
  Model model;
  KernelModel<double> kernel_model;
  State<double> start;
  Launch<double> launch;
  std::shared_ptr<std::byte> block;
  Set set;
};

/// Positions, rates and accelerations of a joint's at random.
void set_at_random(Step& step, Random& random, double rate) {
  auto& ws = step.set;
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    const JointSize size = joint_size(link.type);
    for (int k = 0; k < size.nq; ++k) ws.q[link.q + k] = random.symmetric(3);
    if (size.nq >= 4) {
      double square = 0;
      for (int k = 0; k < 4; ++k) square += ws.q[link.q + k] * ws.q[link.q + k];
      for (int k = 0; k < 4; ++k) ws.q[link.q + k] /= std::sqrt(square);
    }
  }
  for (int v = 0; v < ws.nv; ++v) ws.qd[v] = random.symmetric(rate), ws.dof[v].x = random.symmetric(rate * kRate);
}

// Of every shape the place and the reach that find_contacts.h goes by, beside what its tree says; by one hinge that
// turns alone they come to a third of that and more.
TEST(ApartTrees, NoShapeReachesFurtherThanItsTreeSays) {
  double furthest = 0, fastest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Step step(robot(seed));
    auto& ws = step.set;
    ASSERT_EQ(ws.watch.pair_count, 2);
    Random random(seed + 100);
    for (int round = 0; round < 50; ++round) {
      set_at_random(step, random, std::pow(10., random.uniform(-2, 3)));
      const int alone = round % 2 == 0 ? random.index(ws.nv) : -1;
      for (int v = 0; v < ws.nv && alone >= 0; ++v) ws.qd[v] *= v == alone, ws.dof[v].x *= v == alone;
      featherstone::kinematics(ws);
      std::vector<Spatial<double>> twists(ws.link_count, zero6<double>());
      for (int i = 0; i < ws.link_count; ++i) {
        const Link& link = ws.links[i];
        if (link.parent >= 0) twists[i] = twists[link.parent];
        for (int v = link.v; v < link.v + joint_size(link.type).nv; ++v) twists[i] += ws.dof[v].S * ws.dof[v].x;
        contact::widen_balls(ws, i, twists[i] * ws.dt);
      }
      for (int k = 0; k < ws.contact.shape_count; ++k) {
        const auto& ball = ws.contact.balls[k];
        if (featherstone::carrier_of(ws, k).link < 0) continue;
        const auto& tree = ws.watch.trees[featherstone::carrier_of(ws, k).root == ws.watch.trees[0].root ? 0 : 1];
        const double speed = featherstone::greatest_speed(ws, tree, [&](int v) { return ws.qd[v]; });
        const double change = featherstone::greatest_speed(ws, tree, [&](int v) { return ws.dt * ws.dof[v].x; });
        const double far = std::sqrt(dot(ball.centre, ball.centre)) + ball.extent;
        EXPECT_LE(far, tree.span * (1 + 1e-12));
        EXPECT_LE(ball.reach, tree.margin + ws.dt * (2 * speed + change + contact::kPush / 2));
        furthest = std::max(furthest, far / tree.span);
        fastest = std::max(fastest, (ball.reach - ball.still_reach) / (ws.dt * (2 * speed + change)));
      }
    }
  }
  EXPECT_GT(furthest, 0.7);
  EXPECT_GT(fastest, 0.3);
}

TEST(ApartTrees, AreWatchedWhereThatPays) {
  Step step(robot(1));
  auto& ws = step.set;
  EXPECT_EQ(ws.watch.pair_count, 2);
  const Link& other = ws.links[ws.watch.trees[1].root];
  const auto apart_at = [&](double height) {
    ws.q[6] = ws.q[other.q + 6] = height;
    ws.watch.near = 0;
    ws.watch.apart = false;
    featherstone::look_at_trees(ws);
    return ws.watch.apart;
  };
  const auto& tree = ws.watch.trees[0];
  // Neither of the two.
  const auto reach_of = [&](const auto& x) { return x.span + x.margin + ws.dt * contact::kPush; };
  const double still = std::max(reach_of(tree), reach_of(ws.watch.trees[1]));
  EXPECT_TRUE(apart_at(still + 0.001));
  EXPECT_FALSE(apart_at(still - 0.001));
  EXPECT_EQ(ws.watch.near, featherstone::kStaysNear);
  EXPECT_FALSE(apart_at(-100));  // under the floor
  EXPECT_FALSE(apart_at(NAN));
  // What falls at 20 m/s may be three times as far within a step: its way, once more, and as much as may be added.
  ws.qd[5] = ws.qd[other.v + 5] = -20;
  const double falling = still + 3 * ws.dt * 20 * featherstone::kSlideWeight;
  EXPECT_FALSE(apart_at(falling - 0.001));
  EXPECT_TRUE(apart_at(falling + 0.001));
  // More than that: it is looked at after all.
  const double most = 20 + contact::kPush / featherstone::kSlideWeight;
  for (int v = 0; v < ws.nv; ++v) ws.dof[v].x = 0;
  const auto x = &featherstone::DofScratch<double>::x;
  ws.contact.sought = false;
  ws.dof[5].x = (most - 0.01) / ws.dt;
  EXPECT_TRUE(featherstone::trees_stayed_apart(ws, x));
  EXPECT_FALSE(ws.contact.sought);
  ws.dof[5].x = (most + 0.01) / ws.dt;
  EXPECT_FALSE(featherstone::trees_stayed_apart(ws, x));
  EXPECT_TRUE(ws.contact.sought);
  EXPECT_FALSE(ws.watch.apart);

  EXPECT_EQ(Step(robot(1, 3)).set.watch.pair_count, 8);
  EXPECT_EQ(Step(robot(1, kTooMany)).set.watch.pair_count, 0);
}

/// Robots thrown at the floor from near and far, in some worlds struck by their motors on the way.
template <class T>
void expect_the_same_bits() {
  constexpr int worlds = 19, steps = 120;
  for (const std::uint64_t seed : {1, 2, 4}) {  // on a free root
    SCOPED_TRACE(seed);
    const Model watched = robot(seed), looked_at = robot(seed, kTooMany);
    State<T> state(watched, worlds);
    Control<T> control(watched, steps, worlds);
    Random random(seed);
    const int nu = watched.topology.nu;
    for (int w = 0; w < worlds; ++w) {
      for (const Link& link : watched.topology.links) {
        if (joint_size(link.type).nq >= 4) state.q.set(link.q + 3, w, T(1));
        if (link.type == JointType::free) state.q.set(link.q + 6, w, T(0.8 + 0.2 * w));
      }
      for (int v = 0; v < watched.topology.nv; ++v) state.qd.set(v, w, T(random.symmetric(w % 3 == 0 ? 0.1 : 3)));
      if (w % 2 == 0) continue;
      const int strike = 5 + 9 * w % 100;
      for (int k = 0; k < nu; ++k) control.u.set(strike * nu + k, w, T(random.symmetric(w % 4 == 1 ? 5 : 1000)));
    }
    RolloutOptions options;
    options.steps = steps;
    options.time_step = 1 / kRate;
    const auto run = [&](const Model& model) {
      Tape<T> tape;
      struct {
        Trajectory<T> motion;
        Buffer<T> bar;
      } out{rollout(tape, model, state, control, options), {}};
      Seeds<T> seeds;
      Buffer<T> ones(out.motion.final.qd.rows(), worlds);
      ones.fill(T(1));
      seeds.add(out.motion.final_velocity(), ones);
      out.bar = std::move(tape).backward(seeds).of(control.u);
      return out;
    };
    const auto a = run(watched), b = run(looked_at);
    for (int w = 0; w < worlds; ++w) {
      EXPECT_TRUE(test::same_bits(a.motion.q, w, b.motion.q, w)) << w;
      EXPECT_TRUE(test::same_bits(a.motion.qd, w, b.motion.qd, w)) << w;
      EXPECT_TRUE(test::same_bits(a.bar, w, b.bar, w)) << w;
    }
  }
}

TEST(ApartTrees, AreNotLookedAtToTheSameBits) {
  expect_the_same_bits<double>();
  expect_the_same_bits<float>();
}

}  // namespace
}  // namespace backdrive::apart_trees_test
