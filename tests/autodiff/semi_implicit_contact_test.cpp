// Contact in maximal coordinates: gradients on a tape against dual numbers, block by block.
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

#include "tests/autodiff/semi_implicit_touching.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using test::InputDirection;
using test::kSteps;
using test::options_of;
using test::OutputWeights;
using test::Random;

TEST(SemiImplicitContact, GradientsOfEveryBlockAreThoseOfDuals) {
  std::vector<double> largest;
  std::vector<std::string> names;
  const std::vector<int> seeds = test::kSanitized ? std::vector{7} : std::vector{1, 2, 3, 4, 5, 6, 7, 10};
  for (const int seed : seeds) {
    const Model model = test::touching_model(seed, seed > 6);
    Random random(seed + 100);
    const OutputWeights w = test::random_weights(model, random);
    const InputDirection d = test::random_direction(model, random);
    const test::BlockSums blocks = test::along_adjoint(model, d, w, seed);
    const test::BlockSums duals = test::blocks_along_duals(model, d, w, seed, blocks);
    for (const auto& [block, error] : test::block_errors(duals, blocks)) {
      EXPECT_LT(error, 1e-11) << block << " of seed " << seed;
    }
    largest.resize(blocks.size()), names.resize(blocks.size());
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      largest[k] = std::max(largest[k], std::abs(blocks[k].second));
      names[k] = blocks[k].first;
    }
  }
  for (std::size_t k = 0; k < largest.size(); ++k) {
    if (test::kSanitized || names[k].starts_with("couplings/")) continue;
    EXPECT_GT(largest[k], 1e-6) << names[k];
  }
}

// ---- motion ---------------------------------------------------------------------------------------------------------

ShapeOptions shape(GeometryType type, const Numbers3& scale = {0, 0, 0}) {
  ShapeOptions options;
  options.type = type;
  options.scale = scale;
  return options;
}

Trajectory<double> simulate(const Model& model, const State<double>& state, double seconds, double time_step) {
  RolloutOptions options;
  options.time_step = time_step;
  options.steps = static_cast<int>(std::lround(seconds / time_step));
  const Trajectory<double> t =
      rollout<double>(model, place_bodies<double>(nullptr, model, state, options), {}, options);
  EXPECT_FALSE(t.any_stopped());
  return t;
}

/// A free box of 10 kg whose com is off its middle, over a floor at this height, m.
Model box_over(Integrator integrator, std::optional<double> height) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.set_gravity({0, 0, -9.81});
  builder.add_body("box", {10, {0.02, -0.01, 0.015}, {0.042, 0.083, 0.108, 0, 0, 0}});
  builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
  builder.add_shape("box", 0, shape(GeometryType::box, {0.15, 0.1, 0.05}));
  if (!height) return builder.build();
  ShapeOptions floor = shape(GeometryType::plane);
  floor.frame.position = {0, 0, *height};
  builder.add_shape("floor", ModelBuilder::world, floor);
  return builder.build();
}
State<double> thrown(const Model& model) {
  State<double> state(model, 1);
  const double velocity[] = {1, 2, 3, 0.5, 0.2, 0};
  state.q.set(6, 0, 0.1);
  for (int k = 0; k < 6; ++k) state.qd.set(k, 0, velocity[k]);
  return state;
}

// What is reported of a body at rest is rest: of its joint and of itself.
TEST(SemiImplicitContact, AThrownBoxComesToRest) {
  const Model model = box_over(Integrator::semi_implicit, 0);
  const Trajectory<double> t = simulate(model, thrown(model), 10, 1. / 240);
  for (int row = 0; row < model.topology.nv; ++row) EXPECT_LT(std::abs(t.final_velocity()(row, 0)), 1e-6) << row;
  EXPECT_GT(std::abs(t.final.qd(5, 0)), 0.01);  // the state's own velocity is half a step of gravity ahead
  // A quarter of the weight on each corner, 5,000/s² · 10 kg with a ramp of 1 mm: 1 mm, but for where its com is.
  EXPECT_NEAR(t.final.q(6, 0), 0.05 - (9.81 / 4 / 5e3 + 0.5e-3), 3e-4);
}

/// Where a thrown box is after half a second, in which it touches with several corners: largest difference of the
/// integrators' poses.
double difference_of_boxes(double time_step) {
  std::vector<double> end[2];
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    const Model model = box_over(integrator, 0);
    const Trajectory<double> t = simulate(model, thrown(model), 0.5, time_step);
    for (int r = 0; r < 7; ++r) end[integrator == Integrator::semi_implicit].push_back(t.final.q(r, 0));
  }
  double worst = 0;
  for (int r = 0; r < 7; ++r) worst = std::max(worst, std::abs(end[0][r] - end[1][r]));
  return worst;
}

// Both are of first order, but a tumbling body's turns differ by that much.
TEST(SemiImplicitContact, ATumblingBoxMovesAsWithFeatherstone) {
  const double coarse = difference_of_boxes(2e-3), fine = difference_of_boxes(2.5e-4);
  std::printf("tumbling box, 0.5 s: poses differ by %.1e at 2 ms, %.1e at 0.25 ms\n", coarse, fine);
  EXPECT_LT(fine, 2e-3);
  EXPECT_LT(fine, 0.4 * coarse);
  EXPECT_GT(fine, 0);
}

// A ball that does not turn has the same equations with either.
TEST(SemiImplicitContact, ABallBouncesAsWithFeatherstone) {
  double end[2][2];
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    ModelBuilder builder;
    builder.set_integrator(integrator);
    builder.set_gravity({0, 0, -9.81});
    builder.add_body("ball", {2, {0, 0, 0}, {0.01, 0.01, 0.01, 0, 0, 0}});
    builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
    builder.add_shape("ball", 0, shape(GeometryType::sphere, {0.1, 0, 0}));
    builder.add_shape("floor", ModelBuilder::world, shape(GeometryType::plane));
    const Model model = builder.build();
    State<double> state(model, 1);
    state.q.set(6, 0, 0.5);
    const Trajectory<double> t = simulate(model, state, 2, 1. / 240);
    double* const own = end[integrator == Integrator::semi_implicit];
    own[0] = t.final.q(6, 0), own[1] = t.final_velocity()(5, 0);
  }
  EXPECT_NEAR(end[0][0], end[1][0], 1e-12);
  EXPECT_NEAR(end[0][1], end[1][1], 1e-11);
}

/// Chains of two boxes each, hinged, that fly into each other in weightlessness; ways of their own fixed in between.
Model colliding_chains() {
  ModelBuilder builder;
  builder.set_integrator(Integrator::semi_implicit);
  builder.set_gravity({0, 0, 0});
  for (int i = 0; i < 4; ++i) {
    builder.add_body("box" + std::to_string(i), {1.0 + i, {0.01 * i, 0, 0.02}, {0.01, 0.012, 0.02, 0, 0.001, 0}});
    ShapeOptions ball = shape(GeometryType::sphere, {0.1 + 0.01 * i, 0, 0});
    ball.frame.position = {0.02, 0.01 * i, 0};
    builder.add_shape("ball" + std::to_string(i), i, ball);
  }
  JointOptions hinge;
  hinge.axis = {0, 1, 0};
  hinge.frame.position = {0, 0.1, 0.15};
  builder.add_joint("free0", JointType::free, ModelBuilder::world, 0);
  builder.add_joint("hinge0", JointType::revolute, 0, 1, hinge);
  builder.add_joint("free1", JointType::free, ModelBuilder::world, 2);
  builder.add_joint("hinge1", JointType::revolute, 2, 3, hinge);
  return builder.build();
}

struct Collision {
  Spatial<double> before, after;  ///< momenta about the world's origin
  double force;                   ///< largest number among the forces, N
};

/// A second in which the second chain flies into the first.
Collision collide(double time_step) {
  const Model model = colliding_chains();
  const Topology& t = model.topology;
  State<double> state(model, 1);
  const Link& second = t.links[model.link_of_joint(2)];
  state.q.set(second.q + 4, 0, 0.4), state.q.set(second.q + 6, 0, 0.05);
  state.qd.set(second.v + 3, 0, -2), state.qd.set(1, 0, 0.5), state.qd.set(second.v, 0, 1);
  RolloutOptions options;
  options.time_step = time_step;
  options.steps = static_cast<int>(std::lround(1 / time_step));
  options.keep_contact = true;
  const State<double> start = place_bodies<double>(nullptr, model, state, options);
  const Trajectory<double> run = rollout<double>(model, start, {}, options);
  const auto momentum = [&](int step) {
    Spatial<double> sum = zero6<double>();
    for (int i = 0; i < 4; ++i) {
      const auto q = [&](int k) { return run.q(step * t.nq + t.body_q(i) + k, 0); };
      const auto v = [&](int k) { return run.qd(step * t.nv + t.body_v(i) + k, 0); };
      const auto com = [&](int k) { return model.bodies.com(i, k); };
      const auto J = [&](int k) { return model.bodies.inertia(i, k); };
      const Mat3<double> R = rotation_matrix(Quaternion<double>{{q(0), q(1), q(2)}, q(3)});
      const Vec3<double> omega{v(0), v(1), v(2)}, lever = R * Vec3<double>{com(0), com(1), com(2)};
      const Vec3<double> p = (Vec3<double>{v(3), v(4), v(5)} + cross(omega, lever)) * model.bodies.mass(i);
      const Sym3<double> inertia = rotated(R, Sym3<double>{J(0), J(1), J(2), J(3), J(4), J(5)});
      sum += Spatial<double>{inertia * omega + cross(Vec3<double>{q(4), q(5), q(6)} + lever, p), p};
    }
    return sum;
  };
  Collision c{momentum(0), momentum(options.steps), 0};
  for (int r = 0; r < run.contact.rows(); ++r) {
    if (r % kContactRows < 3) c.force = std::max(c.force, std::abs(run.contact(r, 0)));
  }
  return c;
}

// Force and counterforce: linear momentum is kept to rounding. Bodies move on by the centred velocity while their
// momentum is that of the end of the step, which costs ½ Δt² v_rel × f of the angular one, as with Featherstone.
TEST(SemiImplicitContact, CollidingBodiesKeepTheirMomentum) {
  double angular[2];
  for (int k = 0; k < 2; ++k) {
    const Collision c = collide(k ? 1. / 3840 : 1. / 240);
    EXPECT_GT(c.force, 50);
    const Spatial<double> change = c.after - c.before;
    EXPECT_LT(std::sqrt(dot(change.lin, change.lin)), 1e-12 * std::sqrt(dot(c.before.lin, c.before.lin)));
    angular[k] = std::sqrt(dot(change.ang, change.ang) / dot(c.before.ang, c.before.ang));
    std::printf("colliding chains: linear momentum %.1e, angular %.1e\n",
                std::sqrt(dot(change.lin, change.lin) / dot(c.before.lin, c.before.lin)), angular[k]);
  }
  EXPECT_LT(angular[0], 1e-2);
  EXPECT_LT(angular[1], 0.2 * angular[0]);
}

// ---- bits -----------------------------------------------------------------------------------------------------------

template <class T>
class SemiImplicitContactBits : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(SemiImplicitContactBits, Precisions);

/// End and gradient of worlds by their names.
template <class T>
std::vector<Buffer<T>> run_worlds(const Model& model, const std::vector<int>& worlds) {
  const test::Batch<T> batch = test::random_batch<T>(model, kSteps, worlds, 4);
  Tape<T> tape;
  const RolloutOptions options = options_of(kSteps);
  const State<T> start = place_bodies(&tape, model, batch.state, options);
  const Trajectory<T> t = rollout(tape, model, start, batch.control, options);
  Seeds<T> seeds;
  seeds.add(t.final.q, t.final.q);
  seeds.add(t.final_reported, t.final_reported);
  const Gradients<T> g = std::move(tape).backward(seeds);
  return {t.final.q,           t.final.qd,           t.final_reported,     t.contact,
          g.of(batch.state.q), g.of(batch.state.qd), g.of(batch.control.u)};
}

// Whatever lies beside a world in its pack, and however far that is from touching anything.
TYPED_TEST(SemiImplicitContactBits, OfAWorldAreItsOwn) {
  const Model model = test::touching_model(2);
  std::vector<int> many = test::first_worlds(19);
  const auto all = run_worlds<TypeParam>(model, many);
  for (const int world : {0, 7, 18}) {
    const auto alone = run_worlds<TypeParam>(model, {world});
    for (std::size_t k = 0; k < all.size(); ++k) EXPECT_TRUE(test::same_bits(all[k], world, alone[k], 0)) << k;
  }
}

// ---- the contact-free step ------------------------------------------------------------------------------------------

// A floor far below changes nothing, to the bit, and what is reported is the state's own velocity.
TEST(SemiImplicitContact, OutOfReachNothingChanges) {
  const Model alone = box_over(Integrator::semi_implicit, {}), over_floor = box_over(Integrator::semi_implicit, -100);
  EXPECT_EQ(alone.topology.contact_pairs.size(), 0u);
  const Trajectory<double> a = simulate(alone, thrown(alone), 0.5, 1. / 240);
  const Trajectory<double> b = simulate(over_floor, thrown(over_floor), 0.5, 1. / 240);
  for (int r = 0; r < a.final.q.rows(); ++r) EXPECT_EQ(a.final.q(r, 0), b.final.q(r, 0)) << r;
  for (int r = 0; r < a.final.qd.rows(); ++r) {
    EXPECT_EQ(a.final.qd(r, 0), b.final.qd(r, 0)) << r;
    EXPECT_EQ(b.final_velocity()(r, 0), b.final.qd(r, 0)) << r;
  }
}

}  // namespace
}  // namespace backdrive
