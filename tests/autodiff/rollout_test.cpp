// What a rollout takes and leaves: shapes, layouts, and errors for what cannot be.
#include "autodiff/tape/rollout.h"

#include <gtest/gtest.h>

#include "models/parameter_list.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

using test::expect_usage_error;

RolloutOptions options_of(int steps) {
  RolloutOptions options;
  options.steps = steps;
  return options;
}

TEST(Rollout, KeepsEveryStateAndTheLast) {
  const Model model = test::chain(3);
  const auto batch = test::random_batch<double>(model, 5, test::first_worlds(4), 1);
  const Trajectory<double> t = rollout(model, batch.state, batch.control, options_of(5));
  EXPECT_EQ(t.steps, 5);
  ASSERT_EQ(t.q.rows(), 6 * 3);
  ASSERT_EQ(t.qd.rows(), 6 * 3);
  EXPECT_EQ(t.status->size(), 4u);
  EXPECT_FALSE(t.any_stopped());
  for (int w = 0; w < 4; ++w) {
    EXPECT_EQ(test::column(t.q, w, 0, 3), test::column(batch.state.q, w));
    EXPECT_EQ(test::column(t.qd, w, 0, 3), test::column(batch.state.qd, w));
    EXPECT_EQ(test::column(t.q, w, 15, 3), test::column(t.final.q, w));
    EXPECT_EQ(test::column(t.qd, w, 15, 3), test::column(t.final.qd, w));
  }
}

TEST(Rollout, NoControlIsZeroControl) {
  test::TreeOptions tree;
  tree.forces = true;
  const Model model = test::random_tree(3, tree);
  const auto batch = test::random_batch<double>(model, 5, test::first_worlds(4), 1);
  const Control<double> zero(model, 5, 4);
  const auto with = rollout(model, batch.state, zero, options_of(5));
  const auto without = rollout<double>(model, batch.state, {}, options_of(5));
  EXPECT_TRUE(test::same_bits(with.q, without.q));
  Tape<double> tape;
  const auto recorded = rollout<double>(tape, model, batch.state, {}, options_of(5));
  Seeds<double> seeds;
  seeds.add(recorded.q, recorded.q);
  const Gradients<double> g = std::move(tape).backward(seeds);
  EXPECT_NE(g.of(batch.state.q)(0, 0), 0);
  EXPECT_FALSE(g.has(zero.u));
}

// Row step·nu + channel: the effort of a joint, then target position and velocity of each driven one.
TEST(Rollout, ControlChannelsAreWhereTheTopologySays) {
  ModelBuilder builder;
  for (int i = 0; i < 2; ++i) {
    builder.add_body("b" + std::to_string(i), {2, {}, {0.1, 0.1, 0.1, 0, 0, 0}});
    JointOptions joint;
    joint.driven = i == 1;
    joint.drive = {30, 4, 1e9};
    joint.axis = {1, 0, 0};
    builder.add_joint("j" + std::to_string(i), JointType::prismatic, ModelBuilder::world, i, joint);
  }
  const Model model = builder.build();
  ASSERT_EQ(model.topology.nu, 4);
  const double dt = options_of(1).time_step;
  const State<double> rest(model, 1);
  const auto velocity = [&](int channel) {
    Control<double> control(model, 1, 1);
    control.u.set(channel, 0, 1);
    const auto t = rollout(model, rest, control, options_of(1));
    return std::array<double, 2>{t.final.qd(0, 0), t.final.qd(1, 0)};
  };
  const double driven = 2 + dt * (4 + dt * 30);  // mass and implicit increments
  EXPECT_NEAR(velocity(0)[0], dt / 2, 1e-17);
  EXPECT_EQ(velocity(0)[1], 0);
  EXPECT_NEAR(velocity(1)[1], dt / driven, 1e-17);
  EXPECT_NEAR(velocity(2)[1], dt * 30 / driven, 1e-16);
  EXPECT_NEAR(velocity(3)[1], dt * 4 / driven, 1e-16);
  EXPECT_EQ(velocity(3)[0], 0);
}

TEST(Rollout, WrongShapesAreErrorsThatNameThem) {
  const Model model = test::chain(3);
  const auto batch = test::random_batch<double>(model, 5, test::first_worlds(4), 1);
  const auto run = [&](const State<double>& s, const Control<double>& c, const RolloutOptions& o) {
    Tape<double> tape;
    expect_usage_error([&] { rollout(tape, model, s, c, o); }, {});
    return [=, &model] { rollout(model, s, c, o); };
  };
  State<double> state = batch.state;
  state.q = Buffer<double>(2, 4);
  expect_usage_error(run(state, batch.control, options_of(5)), {"state.q", "2 rows", "expected 3"});
  state = batch.state;
  state.qd = Buffer<double>(3, 5);
  expect_usage_error(run(state, batch.control, options_of(5)), {"state.qd", "5 worlds", "rows of 4"});
  expect_usage_error(run(batch.state, batch.control, options_of(6)), {"control.u", "15 rows", "18"});
  expect_usage_error(run(batch.state, batch.control, options_of(0)), {"0 steps"});
  RolloutOptions options = options_of(5);
  options.time_step = 0;
  expect_usage_error(run(batch.state, batch.control, options), {"time step"});
  options.time_step = std::numeric_limits<double>::quiet_NaN();
  expect_usage_error(run(batch.state, batch.control, options), {"time step"});
  options = options_of(5);
  options.threads = 0;
  expect_usage_error(run(batch.state, batch.control, options), {"threads"});
}

TEST(Rollout, ParametersOfAnotherNumberOfWorldsAreAnError) {
  Model model = test::chain(3);
  model.bodies.mass.spread(5);
  const auto batch = test::random_batch<double>(model, 2, test::first_worlds(4), 1);
  expect_usage_error([&] { rollout(model, batch.state, batch.control, options_of(2)); }, {"5 worlds", "4"});
  const std::vector<int> bodies{0};
  expect_usage_error([&] { body_poses<double>(nullptr, model, batch.state.q, bodies, {}); }, {"5 worlds", "4"});
}

TEST(Rollout, PosesOfBodiesThatAreNotThereAreAnError) {
  const Model model = test::chain(3);
  const Buffer<double> q(3, 1), uneven(4, 1);
  for (const int body : {-1, 3}) {
    const std::vector<int> bodies{body};
    expect_usage_error([&] { body_poses<double>(nullptr, model, q, bodies, {}); }, {"body index", "3 bodies"});
  }
  const std::vector<int> bodies{0};
  expect_usage_error([&] { body_poses<double>(nullptr, model, uneven, bodies, {}); }, {"4 rows", "multiple of 3"});
}

// A body may be asked for twice, and the order is the caller's.
TEST(Rollout, PosesComeInTheOrderAskedFor) {
  const Model model = test::chain(3);
  const auto batch = test::random_batch<double>(model, 1, test::first_worlds(2), 1);
  const std::vector<int> order{2, 0, 2}, one{2};
  const Buffer<double> poses = body_poses<double>(nullptr, model, batch.state.q, order, {});
  const Buffer<double> alone = body_poses<double>(nullptr, model, batch.state.q, one, {});
  ASSERT_EQ(poses.rows(), 36);
  for (int w = 0; w < 2; ++w) {
    EXPECT_EQ(test::column(poses, w, 0, 12), test::column(alone, w));
    EXPECT_EQ(test::column(poses, w, 24, 12), test::column(alone, w));
    EXPECT_NE(test::column(poses, w, 12, 12), test::column(alone, w));
  }
  // Both get their cotangent.
  Tape<double> tape;
  const Buffer<double> recorded = body_poses(&tape, model, batch.state.q, order, {}, tape.memory());
  Buffer<double> seed(36, 2);
  seed.set(0, 0, 1);
  seed.set(24, 0, 2);
  Seeds<double> seeds;
  seeds.add(recorded, seed);
  const Gradients<double> g = std::move(tape).backward(seeds);
  Tape<double> other;
  const Buffer<double> single = body_poses(&other, model, batch.state.q, one, {}, other.memory());
  Buffer<double> three(12, 2);
  three.set(0, 0, 3);
  Seeds<double> single_seeds;
  single_seeds.add(single, three);
  const Gradients<double> want = std::move(other).backward(single_seeds);
  for (int r = 0; r < 3; ++r) EXPECT_NEAR(g.of(batch.state.q)(r, 0), want.of(batch.state.q)(r, 0), 1e-15);
}

// Nothing moves, and that is no error.
TEST(Rollout, AModelOfFixedJointsOnly) {
  ModelBuilder builder;
  builder.add_body("post", {1, {}, {0.1, 0.1, 0.1, 0, 0, 0}});
  JointOptions weld;
  weld.frame.position = {1, 2, 3};
  builder.add_joint("weld", JointType::fixed, ModelBuilder::world, 0, weld);
  const Model model = builder.build();
  const State<double> state(model, 2);
  const Trajectory<double> t = rollout<double>(model, state, {}, options_of(3));
  EXPECT_FALSE(t.any_stopped());
  EXPECT_EQ(t.q.rows(), 0);
}

TEST(Rollout, AnEmptyBatchIsNoWork) {
  const Model model = test::chain(2);
  const State<double> state(model, 0);
  const Trajectory<double> t = rollout<double>(model, state, {}, options_of(3));
  EXPECT_EQ(t.status->size(), 0u);
}

}  // namespace
}  // namespace backdrive
