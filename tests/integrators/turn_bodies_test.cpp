// Bodies that torsional and rolling friction stop: closed forms with their gradients at 480 steps per second, rest,
// slopes, bounds, momentum, and that models without it never notice.
#include <gtest/gtest.h>

#include <cmath>

#include "integrators/contact/contact_force.h"
#include "models/parameter_list.h"
#include "tests/support/contact_experiments.h"
#include "tests/support/turning_case.h"

namespace backdrive {
namespace {

using test::Experiment;
using test::kGravity;
using test::kPhases;
using test::Sensitivity;
using test::Support;

constexpr double kRate = 480, kStep = 1 / kRate, kRadius = 0.1, kMass = 1, kInertia = 0.4 * kMass * kRadius * kRadius;
const std::string kTorsional = "shapes/*/material/torsional_friction", kRolling = "shapes/*/material/rolling_friction";

/// Of a pair; both of its shapes have them.
struct Turning {
  double torsional = 0, rolling = 0;  ///< m
  double creep = 1e-4;                ///< m/s
};
ShapeOptions shape_of(const Turning& t, GeometryType type) {
  test::PairConstants pair;
  pair.stiffness = 3e4;
  pair.dissipation = 1;
  pair.friction = 0.8;
  pair.creep = t.creep;
  ShapeOptions shape = test::shape_of_pair(pair, type, {kRadius, 0, 0});
  shape.torsional_friction = t.torsional;
  shape.rolling_friction = t.rolling;
  return shape;
}
/// At rest on the plane, within the ramp of 1 mm: k d²/2w = m g.
const double kDepth = std::sqrt(2e-3 * kMass * kGravity / 3e4);
/// On which the force of the plane acts: in the middle of the overlap.
const double kArm = kRadius - 0.5 * kDepth;

BodyOptions ball() {
  return {kMass, {0, 0, 0}, {kInertia, kInertia, kInertia, 0, 0, 0}};
}

Experiment batch(Model model, double seconds) {
  Experiment e{std::move(model), {}};
  e.state = State<double>(e.model, kPhases);
  e.time_step = kStep;
  e.steps = static_cast<int>(std::lround(seconds * kRate));
  return e;
}
double phase_of(int world) {
  return (world + 0.5) / kPhases;
}

double relative(double ours, double truth) {
  return (ours - truth) / truth;
}

// ---- torsion --------------------------------------------------------------------------------------------------------

constexpr double kTorsionLength = 2e-3, kSpin = 4;
constexpr double kSpinLoss = kTorsionLength * kMass * kGravity / kInertia;  // rad/s²

double spin_of(int world) {
  return kSpin + phase_of(world) * kSpinLoss * kStep;
}
/// A ball that turns about the vertical on a joint that lets it sink and turn.
Experiment spinning_ball() {
  const Turning turning{.torsional = kTorsionLength};
  ModelBuilder builder;
  builder.set_gravity({0, 0, -kGravity});
  builder.add_body("lift", {});
  builder.add_body("ball", ball());
  builder.add_joint("lift", JointType::prismatic, ModelBuilder::world, 0);
  builder.add_joint("turn", JointType::revolute, 0, 1);
  builder.add_shape("ball", 1, shape_of(turning, GeometryType::sphere));
  builder.add_shape("floor", ModelBuilder::world, shape_of(turning, GeometryType::plane));
  Experiment e = batch(builder.build(), kSpin / kSpinLoss + 0.2);
  e.row = e.q_of("turn");
  for (int w = 0; w < kPhases; ++w) {
    e.state.q.set(e.q_of("lift"), w, kRadius - kDepth);
    e.state.qd.set(e.v_of("lift"), w, 0.5 * kGravity * kStep);
    e.state.qd.set(e.v_of("turn"), w, spin_of(w));
  }
  return e;
}

// I ω̇ = −μ_t m g: θ = ω²/2α with α = μ_t m g/I. The gradients' error is that of the last step's sawtooth, as of
// sliding.
TEST(TurnBodies, ASpinningBallKnowsWhenItStops) {
  const Experiment e = spinning_ball();
  const Sensitivity s(e, {kTorsional});
  const int row = e.v_of("turn");
  for (int w = 0; w < kPhases; ++w) {
    const double spin = spin_of(w), angle = spin * spin / (2 * kSpinLoss);
    EXPECT_NEAR(relative(s.end(w), angle), 0, 0.005) << w;
    EXPECT_NEAR(relative(s.by_velocity(row, w), spin / kSpinLoss), 0, 0.005) << w;
    EXPECT_NEAR(relative(s.by(kTorsional, w), -angle / kTorsionLength), 0, 0.005) << w;
  }
  const Trajectory<double> t = e.run(true);
  const int nv = e.state.qd.rows();
  for (int step = 1; step <= t.steps; ++step) {
    const double left = spin_of(0) - kSpinLoss * (step - 0.5) * kStep;  // reported is the middle of the step
    EXPECT_NEAR(t.reported(step * nv + row, 0), std::max(left, 0.), 0.005 * kSpin) << step;
  }
  EXPECT_LT(std::abs(t.final_reported(row, 0)), 1e-6);  // and stands
}

// ---- rolling --------------------------------------------------------------------------------------------------------

constexpr double kRollLength = 1e-2, kSpeed = 1;
/// m a (arm + k²/arm) = μ_r m g, with the radius of gyration k² = 2/5 r²: 5/7 μ_r g/r where the arm is the radius.
const double kRollLoss = kRollLength * kGravity / (kArm + kInertia / kMass / kArm);

double speed_of(int world) {
  return kSpeed + phase_of(world) * kRollLoss * kStep;
}
struct Rows {
  int along, height, turn;  ///< of q̇
  int q_along, q_height;
};
Rows rows_of(Support support) {
  if (support == Support::free) return {3, 5, 1, 4, 6};
  return {0, 1, 2, 0, 1};
}
Experiment rolling_ball(Support support, const Turning& turning, double seconds, double slope = 0) {
  ModelBuilder builder;
  builder.set_gravity({kGravity * std::sin(slope), 0, -kGravity * std::cos(slope)});
  builder.add_body("ball", ball());
  JointOptions upright;  // the joint's y is the world's z
  if (support == Support::joint) upright.frame.orientation = {std::sqrt(0.5), 0, 0, std::sqrt(0.5)};
  builder.add_joint("joint", support == Support::free ? JointType::free : JointType::planar, ModelBuilder::world, 0,
                    upright);
  builder.add_shape("ball", 0, shape_of(turning, GeometryType::sphere));
  builder.add_shape("floor", ModelBuilder::world, shape_of(turning, GeometryType::plane));
  Experiment e = batch(builder.build(), seconds);
  const Rows rows = rows_of(support);
  e.row = rows.q_along;
  for (int w = 0; w < kPhases; ++w) {
    e.state.q.set(rows.q_height, w, kRadius - kDepth);
    if (support == Support::free) continue;  // which begins at rest by itself
    e.state.qd.set(rows.height, w, 0.5 * kGravity * kStep * std::cos(slope));
  }
  return e;
}
/// Sign of the turn that goes with rolling along x: of a free ball about y, of a planar joint about its z, which is −y.
double turn_of(Support support) {
  return support == Support::free ? 1 / kArm : -1 / kArm;
}

class TurnBodiesOn : public testing::TestWithParam<Support> {};
INSTANTIATE_TEST_SUITE_P(TurnBodies, TurnBodiesOn, testing::Values(Support::joint, Support::free),
                         [](const auto& info) { return info.param == Support::free ? "Free" : "OnJoint"; });

// x = v²/2a. Speed and turn together, by which the gradient is that of what rolls.
TEST_P(TurnBodiesOn, ARollingBallKnowsWhereItStops) {
  const Support support = GetParam();
  Experiment e = rolling_ball(support, {.rolling = kRollLength}, kSpeed / kRollLoss + 0.3);
  const Rows rows = rows_of(support);
  for (int w = 0; w < kPhases; ++w) {
    e.state.qd.set(rows.along, w, speed_of(w));
    e.state.qd.set(rows.turn, w, speed_of(w) * turn_of(support));
  }
  EXPECT_NEAR(relative(kRollLoss, 5. / 7 * kRollLength * kGravity / kRadius), 0, 0.003);
  const Sensitivity s(e, {kRolling});
  for (int w = 0; w < kPhases; ++w) {
    const double v = speed_of(w), way = v * v / (2 * kRollLoss);
    EXPECT_NEAR(relative(s.end(w), way), 0, 0.005) << w;
    EXPECT_NEAR(relative(s.by_velocity(rows.along, w) + s.by_velocity(rows.turn, w) * turn_of(support), v / kRollLoss),
                0, 0.005)
        << w;
    EXPECT_NEAR(relative(s.by(kRolling, w), -way / kRollLength), 0, 0.005) << w;
  }
  const Trajectory<double> t = e.run(true);
  EXPECT_LT(std::abs(t.final_reported(rows.along, 0)), 1e-6);
}

// Where an optimiser starts that is to find it: x = v t − ½ a t² with a = μ_r g/(arm + k²/arm).
TEST_P(TurnBodiesOn, GradientsBeginAtNoFriction) {
  const Support support = GetParam();
  constexpr double seconds = 0.5;
  Experiment e = rolling_ball(support, {}, seconds);
  const Rows rows = rows_of(support);
  for (int w = 0; w < kPhases; ++w) {
    e.state.qd.set(rows.along, w, speed_of(w));
    e.state.qd.set(rows.turn, w, speed_of(w) * turn_of(support));
  }
  const Sensitivity s(e, {kRolling, kTorsional});
  const double truth = -0.5 * seconds * seconds * kRollLoss / kRollLength;
  for (int w = 0; w < kPhases; ++w) EXPECT_NEAR(relative(s.by(kRolling, w), truth), 0, 0.005) << w;
}

// ---- rest -----------------------------------------------------------------------------------------------------------

// m g sin φ · arm against μ_r m g cos φ: below it creeps as its share of the bound says, above it rolls as Coulomb
// says.
TEST_P(TurnBodiesOn, ABallOnASlopeHoldsBelowItsAngleAndRollsAbove) {
  const Support support = GetParam();
  const Rows rows = rows_of(support);
  const Turning turning{.rolling = kRollLength};
  const double steepest = std::atan(kRollLength / kArm), turn_creep = turning.creep / contact::kTurnLength;
  for (const double share : {0.5, 0.9}) {
    const Experiment e = rolling_ball(support, turning, 4, std::atan(share * kRollLength / kArm));
    const Trajectory<double> t = e.run();
    const double creep = turn_creep * share / std::sqrt(1 - share * share);
    EXPECT_LT(std::abs(t.final_reported(rows.turn, 0)), 1.1 * creep) << share;
    EXPECT_GT(std::abs(t.final_reported(rows.turn, 0)), 0.9 * creep) << share;
  }
  const double angle = steepest + 0.02;
  // Up to some ten times ε_ω it is held a little less than it will be: with this ε for 1 ms.
  const Trajectory<double> t = rolling_ball(support, {.rolling = kRollLength, .creep = 1e-5}, 2, angle).run();
  const double cos = std::cos(angle), depth = kDepth * std::sqrt(cos), arm = kRadius - 0.5 * depth;
  const double acceleration = kGravity * (std::sin(angle) * arm - kRollLength * cos) / (arm + kInertia / kMass / arm);
  EXPECT_NEAR(relative(t.final.q(rows.q_along, 0), 0.5 * acceleration * 4), 0, 0.01);
}

/// A thrown free ball that spins and rolls, on a floor, in the first world.
Experiment thrown_ball(const Turning& turning, double seconds) {
  Experiment e = rolling_ball(Support::free, turning, seconds);
  e.state = State<double>(e.model, 1);
  const double velocity[] = {3, -2, 5, 0.5, 0.3, 0};
  e.state.q.set(6, 0, kRadius + 0.05);
  for (int k = 0; k < 6; ++k) e.state.qd.set(k, 0, velocity[k]);
  return e;
}

TEST(TurnBodies, AThrownBallComesToRestAndStays) {
  const Trajectory<double> t = thrown_ball({.torsional = 2e-3, .rolling = 1e-2, .creep = 1e-5}, 10).run(true);
  const int half = t.steps / 2;
  for (int k = 0; k < 7; ++k) EXPECT_NEAR(t.final.q(k, 0), t.q(half * 7 + k, 0), 1e-9) << k;
  for (int k = 0; k < 6; ++k) EXPECT_LT(std::abs(t.final_reported(k, 0)), 1e-9) << k;
  // Without it, it goes on.
  const Trajectory<double> free = thrown_ball({}, 10).run();
  EXPECT_GT(std::hypot(free.final_reported(3, 0), free.final_reported(4, 0)), 0.1);
  EXPECT_GT(std::abs(free.final_reported(2, 0)), 1);
}

// About the vertical through the ball's centre only torsion has a moment.
TEST(TurnBodies, TorsionStaysWithinItsBound) {
  constexpr double bound = 2e-3;
  const Trajectory<double> t = thrown_ball({.torsional = bound, .rolling = 1e-2}, 3).run(true);
  int turning = 0, held = 0;
  for (int step = 0; step < t.steps; ++step) {
    const auto change = [&](int row) { return t.qd((step + 1) * 6 + row, 0) - t.qd(step * 6 + row, 0); };
    const double normal = kMass * (change(5) + kGravity * kStep), moment = std::abs(kInertia * change(2));
    EXPECT_LE(moment, bound * normal + 1e-12);
    turning += normal > 1e-6 && moment > 0.999 * bound * normal;
    held += normal > 1e-6 && moment < 0.5 * bound * normal;
  }
  EXPECT_GT(turning, 100);
  EXPECT_GT(held, 100);
}

// ---- pairs of bodies ------------------------------------------------------------------------------------------------

/// Two balls in space that meet, both turning.
Experiment colliding_balls(const Turning& turning) {
  ModelBuilder builder;
  builder.set_gravity({0, 0, 0});
  const char* const names[] = {"first", "second"};
  for (int b = 0; b < 2; ++b) {
    BodyOptions body = ball();
    body.mass *= 2 - b;
    for (double& x : body.inertia) x *= 2 - b;
    builder.add_body(names[b], body);
    builder.add_joint(names[b], JointType::free, ModelBuilder::world, b);
    builder.add_shape(names[b], b, shape_of(turning, GeometryType::sphere));
  }
  Experiment e = batch(builder.build(), 0.6);
  e.state = State<double>(e.model, 1);
  e.state.q.set(7 + 4, 0, 0.5), e.state.q.set(7 + 5, 0, 0.06);
  const double velocity[] = {5, -1, 2, 1, 0.1, 0, -3, 0, 1, -0.2, 0, 0};
  for (int k = 0; k < 12; ++k) e.state.qd.set(k, 0, velocity[k]);
  return e;
}
/// About the world's origin; balls' inertias know no axes.
Vec3<double> angular_momentum(const Trajectory<double>& t, int at, int moving) {
  Vec3<double> sum{0, 0, 0};
  for (int b = 0; b < 2; ++b) {
    const auto q = [&](int k) { return t.q((at * 2 + b) * 7 + k, 0); };
    const auto v = [&](int k) { return t.qd((moving * 2 + b) * 6 + k, 0); };
    sum += Vec3<double>{v(0), v(1), v(2)} * (kInertia * (2 - b));
    sum += cross(Vec3<double>{q(4), q(5), q(6)}, Vec3<double>{v(3), v(4), v(5)} * (kMass * (2 - b)));
  }
  return sum;
}

TEST(TurnBodies, CollidingBallsKeepTheirAngularMomentum) {
  const Trajectory<double> t = colliding_balls({.torsional = 0.02, .rolling = 0.02}).run(true);
  for (int step = 0; step < t.steps; ++step) {
    const Vec3<double> error = angular_momentum(t, step, step + 1) - angular_momentum(t, step, step);
    EXPECT_LT(std::sqrt(dot(error, error)), 1e-12) << step;
  }
  const Trajectory<double> smooth = colliding_balls({}).run();
  double changed = 0;
  for (int k : {0, 1, 2, 6, 7, 8}) changed = std::max(changed, std::abs(t.final.qd(k, 0) - smooth.final.qd(k, 0)));
  EXPECT_GT(changed, 0.1);
}

// ---- the adjoint ----------------------------------------------------------------------------------------------------

// The faults that mutation_test.cpp plants there are caught by the very same check.
TEST(TurnBodies, AdjointIsRightWhereTurnsAreAtTheirBounds) {
  const test::GradientCase c = test::turning_case();
  const test::CaseGradient gradient = test::gradient_by_tape<double>(c);
  for (const test::BlockError& e : test::compare_blocks(c, gradient, 7)) {
    EXPECT_LT(e.error, 1e-11) << e.block;
    if (e.block.ends_with("torsional_friction") || e.block.ends_with("rolling_friction")) {
      EXPECT_GT(e.size, 1e-6) << e.block;
    }
  }
  const Trajectory<double> t = rollout<double>(c.model, c.batch.state, c.batch.control, c.options);
  for (int w = 0; w < c.worlds(); ++w) {
    for (int row : {0, 1, 2}) EXPECT_GT(std::abs(t.final.qd(row, w)), 1) << row;  // ε_ω is 0.2 rad/s
  }
}

// ---- without --------------------------------------------------------------------------------------------------------

// Where gradients by it are wanted it is computed, and changes nothing as long as it is none.
TEST(TurnBodies, NoFrictionChangesNothing) {
  Experiment e = thrown_ball({}, 1);
  const Trajectory<double> without = e.run(true);
  ASSERT_FALSE(e.model.topology.contact_shapes[0].resists_turns);
  set_requires_grad(e.model, kRolling, true);
  ASSERT_TRUE(e.model.topology.contact_shapes[0].resists_turns);
  const Trajectory<double> with = e.run(true);
  for (int row = 0; row < without.q.rows(); ++row) EXPECT_EQ(without.q(row, 0), with.q(row, 0)) << row;
  for (int row = 0; row < without.qd.rows(); ++row) EXPECT_EQ(without.qd(row, 0), with.qd(row, 0)) << row;
}

TEST(TurnBodies, OneShapeOfAPairBringsIt) {
  const auto turned = [](double ball_friction, double floor_friction) {
    Experiment e = spinning_ball();
    e.model.shapes.material.torsional_friction.at(0) = ball_friction;
    e.model.shapes.material.torsional_friction.at(1) = floor_friction;
    validate(e.model);
    return e.run().final.q(e.row, 0);
  };
  const double both = turned(kTorsionLength, kTorsionLength);
  EXPECT_EQ(turned(2 * kTorsionLength, 0), both);
  EXPECT_EQ(turned(0, 2 * kTorsionLength), both);
  EXPECT_GT(turned(0, 0), 2 * both);
}

}  // namespace
}  // namespace backdrive
