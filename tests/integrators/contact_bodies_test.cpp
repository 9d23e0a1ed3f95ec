// Bodies that touch: that they come to rest and stay, hold and slide on slopes, roll, collide and keep their momentum,
// and that a world's numbers are its own.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/integrators/contact_bodies.h"
#include "tests/support/batch.h"

namespace backdrive {
namespace {

using test::contact_bodies::ball_of;
using test::contact_bodies::box_of;
using test::contact_bodies::kRate;
using test::contact_bodies::largest;
using test::contact_bodies::norm;
using test::contact_bodies::shape;
using test::contact_bodies::simulate;

constexpr double kStep = 1 / kRate, kGravity = 9.81;
constexpr double kFriction = 0.8, kCreep = 1e-5;  // the defaults of shapes
const Numbers3 kHalf{0.15, 0.1, 0.05};            // half extents of the box
constexpr double kBoxMass = 10;

/// A free box of 10 kg over the plane z = 0. q: quaternion, then position; q̇: angular, then linear velocity.
Model box_on_plane(double slope = 0) {
  ModelBuilder builder;
  builder.set_gravity({kGravity * std::sin(slope), 0, -kGravity * std::cos(slope)});
  builder.add_body("box", box_of(kBoxMass, kHalf));
  builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
  builder.add_shape("box", 0, shape(GeometryType::box, kHalf));
  builder.add_shape("floor", ModelBuilder::world, shape(GeometryType::plane));
  return builder.build();
}
/// Depth of a box's corners at rest, m: a quarter of its weight on each pair of 3e4 N/m with a ramp of 1 mm.
constexpr double kRestDepth = kBoxMass * kGravity / 4 / 3e4 + 0.5e-3;

template <class T>
State<T> thrown_box(const Model& model, int worlds = 1) {
  State<T> state(model, worlds);
  const double velocity[] = {1, 2, 3, 0.5, 0.2, 0};
  for (int w = 0; w < worlds; ++w) {
    state.q.set(6, w, static_cast<T>(kHalf[2] + 0.05));
    for (int k = 0; k < 6; ++k) state.qd.set(k, w, static_cast<T>(velocity[k]));
  }
  return state;
}

// ---- rest -----------------------------------------------------------------------------------------------------------

// Settled after 10 s it stays for another 60: what is reported is within ε (1e-6 m/s and rad/s), and as nothing pulls
// it sideways it creeps nowhere. 1e-9 m is what the slowest decay leaves, and no more than that.
TEST(ContactBodies, AThrownBoxComesToRestAndStays) {
  const Model model = box_on_plane();
  const Trajectory<double> settling = simulate(model, thrown_box<double>(model), 10);
  EXPECT_GT(std::abs(settling.final.q(4, 0)), 0.01);  // it had gone somewhere
  const Trajectory<double> rest = simulate(model, settling.final, 60, true);
  double speed = 0, moved = 0;
  for (int step = 1; step <= rest.steps; ++step) {
    speed = std::max(speed, largest(rest.reported, step * 6, 6));
    for (int k = 0; k < 7; ++k) moved = std::max(moved, std::abs(rest.q(step * 7 + k, 0) - rest.q(k, 0)));
  }
  EXPECT_LT(speed, 1e-6);
  EXPECT_LT(moved, 1e-9);
  EXPECT_NEAR(rest.final.q(6, 0), kHalf[2] - kRestDepth, 1e-9);
  // The state's q̇ is half a step of gravity ahead; that is why there is a drift.
  EXPECT_NEAR(rest.final.qd(5, 0), 0.5 * kGravity * kStep, 1e-6);
}

// What a step changes the momentum by, beside gravity, is the impulse of the floor: up, and within the cone. At rest it
// carries the weight.
TEST(ContactBodies, TheFloorsImpulseIsWithinTheCone) {
  const Model model = box_on_plane();
  const Trajectory<double> t = simulate(model, thrown_box<double>(model), 4, true);
  int slides = 0, touches = 0;
  double carried = 0;
  for (int step = 0; step < t.steps; ++step) {
    const auto impulse = [&](int axis) {
      return kBoxMass * (t.qd((step + 1) * 6 + 3 + axis, 0) - t.qd(step * 6 + 3 + axis, 0));
    };
    const double normal = impulse(2) + kBoxMass * kGravity * kStep;
    const double tangential = std::hypot(impulse(0), impulse(1));
    EXPECT_GE(normal, -1e-12);  // rounding of a momentum of 10 kg m/s
    EXPECT_LE(tangential, kFriction * normal + 1e-12);
    touches += normal > 1e-9;
    slides += normal > 1e-9 && tangential > 0.999 * kFriction * normal;
    if (step >= 3 * kRate) carried += normal;
  }
  EXPECT_GT(touches, 3 * kRate);
  EXPECT_GT(slides, 5);
  EXPECT_NEAR(carried, kBoxMass * kGravity, 1e-4);  // of a second
}

/// The box on a slope of `angle`, after `seconds`, started at rest.
Trajectory<double> on_slope(double angle, double seconds) {
  const Model model = box_on_plane(angle);
  State<double> state(model, 1);
  state.q.set(6, 0, kHalf[2] - kRestDepth);
  return simulate(model, state, seconds, true);
}

/// Largest speed along the slope from `seconds` on.
double creep(const Trajectory<double>& t, double seconds) {
  double result = 0;
  for (int step = static_cast<int>(seconds * kRate); step <= t.steps; ++step) {
    result = std::max(result, std::abs(t.reported(step * 6 + 3, 0)));
  }
  return result;
}
constexpr double kDegree = std::numbers::pi / 180;

// Coulomb: ẍ = g (sin − μ cos), a difference of numbers thirty times as large: 3 % of the way are 0.1 % of friction.
TEST(ContactBodies, ABoxSlidesOneDegreeAboveTheAngleOfFriction) {
  const double angle = std::atan(kFriction) + kDegree;
  const double way = 0.5 * kGravity * (std::sin(angle) - kFriction * std::cos(angle)) * 64;
  EXPECT_NEAR(on_slope(angle, 8).final.q(4, 0), way, 0.03 * way);
}

/// What a slip of u carries is u/√(u² + ε²) of the cone.
double creep_under(double share) {
  return kCreep * share / std::sqrt(1 - share * share);
}

// Once it holds it creeps, by what carries its load: 0.96 of the cone, 4e-5 m/s. Before that it leans downhill, and
// slips by some millimetres.
TEST(ContactBodies, ABoxHoldsOneDegreeBelowTheAngleOfFriction) {
  const double angle = std::atan(kFriction) - kDegree;
  const Trajectory<double> t = on_slope(angle, 8);
  EXPECT_LT(creep(t, 2), 1.2 * creep_under(std::tan(angle) / kFriction));
  EXPECT_LT(t.final.q(4, 0), 5e-3);
}
// Points that share a load unevenly must not throw it to and fro between them: a turn of 1 mrad/s dies out.
TEST(ContactBodies, ATurnOfALoadedBoxDiesOut) {
  for (const double share : {0.8, 0.9, 0.95}) {
    const Model model = box_on_plane(std::atan(share * kFriction));
    State<double> state(model, 1);
    state.q.set(6, 0, kHalf[2] - kRestDepth);
    state.qd.set(2, 0, 1e-3);
    EXPECT_LT(std::abs(simulate(model, state, 2).final.qd(2, 0)), 1e-9) << share;
  }
}

// In a minute a load of a half moves by 3e-4 m. The corners carry unequal weights: 20 %.
TEST(ContactBodies, StickingDriftIsBoundedByTheCreep) {
  for (const double share : {0.1, 0.5, 0.8}) {
    const Trajectory<double> t = on_slope(std::atan(share * kFriction), 8);
    EXPECT_LT(creep(t, 4), 1.2 * creep_under(share)) << share;
    EXPECT_GT(t.final_reported(3, 0), 0.8 * creep_under(share)) << share;
    EXPECT_LT(t.final.q(4, 0), 1e-3) << share;
  }
}

// A solid ball keeps 5/7 of its speed, from m v = ∫f and 2/5 m r² ω = r ∫f; then its slip is what holds no load: none.
TEST(ContactBodies, ASlidingBallEndsUpRolling) {
  constexpr double radius = 0.1, speed = 2, mass = 1;
  ModelBuilder builder;
  builder.add_body("ball", ball_of(mass, radius));
  builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
  builder.add_shape("ball", 0, shape(GeometryType::sphere, {radius, 0, 0}));
  builder.add_shape("floor", ModelBuilder::world, shape(GeometryType::plane));
  const Model model = builder.build();
  State<double> state(model, 1);
  const double depth = std::sqrt(2 * 1e-3 * mass * kGravity / 3e4);  // within the ramp: k d²/2w
  state.q.set(6, 0, radius - depth);
  state.qd.set(3, 0, speed);
  const Trajectory<double> t = simulate(model, state, 2);
  // The force acts in the middle of the overlap, on an arm that is shorter by half the depth, 0.4 %: of m v = ∫f and
  // I ω = a ∫f, v = a ω, v = v₀ a²/(a² + I/m).
  const double arm = radius - 0.5 * depth, gyration = 0.4 * radius * radius;
  EXPECT_NEAR(t.final_reported(3, 0), speed * arm * arm / (arm * arm + gyration), 1e-5);
  EXPECT_NEAR(t.final_reported(3, 0), 5. / 7 * speed, 0.003 * speed);
  EXPECT_NEAR(t.final_reported(3, 0) - arm * t.final_reported(1, 0), 0, kCreep);
  EXPECT_GT(t.final.q(4, 0), 2.5);
}

// ---- collisions -----------------------------------------------------------------------------------------------------

struct Momentum {
  Vec3<double> linear{0, 0, 0}, angular{0, 0, 0};  ///< about the world's origin
};
/// Of free bodies with inertia `inertia` about their coms in link axes, com at the origin, at state `at` of q and state
/// `moving` of q̇.
Momentum momentum(const Model& model, const Trajectory<double>& t, int at, int moving) {
  Momentum sum;
  for (int b = 0; b < model.bodies.mass.items(); ++b) {
    const auto q = [&](int k) { return t.q((at * 2 + b) * 7 + k, 0); };
    const auto v = [&](int k) { return t.qd((moving * 2 + b) * 6 + k, 0); };
    const Quaternion<double> turn{{q(0), q(1), q(2)}, q(3)};
    const Vec3<double> x{q(4), q(5), q(6)}, w{v(0), v(1), v(2)},
        p = Vec3<double>{v(3), v(4), v(5)} * model.bodies.mass(b);
    const Mat3<double> R = rotation_matrix(turn);
    const Vec3<double> own = transposed_times(R, w);
    const auto& J = model.bodies.inertia;
    sum.linear += p;
    sum.angular += cross(x, p) + R * Vec3<double>{J(b, 0) * own.x, J(b, 1) * own.y, J(b, 2) * own.z};
  }
  return sum;
}
/// Two free bodies in space that meet off centre, one of them turning.
Model two_bodies(GeometryType type) {
  ModelBuilder builder;
  builder.set_gravity({0, 0, 0});
  for (int b = 0; b < 2; ++b) {
    const std::string name = b == 0 ? "first" : "second";
    const double mass = 2 - b;
    builder.add_body(name, type == GeometryType::box ? box_of(mass, kHalf) : ball_of(mass, 0.1));
    builder.add_joint(name, JointType::free, ModelBuilder::world, b);
    builder.add_shape(name, b, shape(type, type == GeometryType::box ? kHalf : Numbers3{0.1, 0, 0}));
  }
  return builder.build();
}
Trajectory<double> collision(const Model& model, double rate) {
  State<double> state(model, 1);
  state.q.set(7 + 4, 0, 0.5), state.q.set(7 + 5, 0, 0.06), state.q.set(7 + 6, 0, 0.03);
  const double first[] = {0.5, -1, 2, 1, 0.1, 0};
  for (int k = 0; k < 6; ++k) state.qd.set(k, 0, first[k]);
  return simulate(model, state, 0.6, true, rate);
}

// Force and counterforce at one point: linear momentum is kept to rounding, and so is the angular momentum of balls in
// every step, taken where the step found the bodies.
TEST(ContactBodies, CollidingBallsKeepTheirMomentum) {
  const Model model = two_bodies(GeometryType::sphere);
  const Trajectory<double> t = collision(model, kRate);
  const Momentum before = momentum(model, t, 0, 0);
  for (int step = 0; step < t.steps; ++step) {
    const Momentum a = momentum(model, t, step, step), b = momentum(model, t, step, step + 1);
    EXPECT_LT(norm(b.linear - before.linear), 1e-12);
    EXPECT_LT(norm(b.angular - a.angular), 1e-12);
  }
  EXPECT_GT(t.final.qd(6 + 3, 0), 0.5);                                     // they did meet,
  EXPECT_GT(std::abs(t.final.qd(6, 0)) + std::abs(t.final.qd(7, 0)), 0.1);  // and friction turned the other
}

// From step to step the bodies move on by the centred velocity while their momentum is that of the end of the step:
// ½Δt² v_rel × f of angular momentum, and of a box what Euler's equations lose: an error that goes with the step.
TEST(ContactBodies, AngularMomentumOfACollisionIsKeptAsTheStepShrinks) {
  for (const GeometryType type : {GeometryType::sphere, GeometryType::box}) {
    const Model model = two_bodies(type);
    const auto change = [&](double rate) {
      const Trajectory<double> t = collision(model, rate);
      const Momentum a = momentum(model, t, 0, 0), b = momentum(model, t, t.steps, t.steps);
      EXPECT_LT(norm(b.linear - a.linear), 1e-12);
      EXPECT_GT(norm(a.angular), 0.01);
      return norm(b.angular - a.angular) / norm(a.angular);
    };
    const double coarse = change(240), fine = change(1920);
    EXPECT_LT(coarse, 0.03) << to_string(type);
    EXPECT_LT(fine, 0.2 * coarse) << to_string(type);
  }
}

// ---- worlds ---------------------------------------------------------------------------------------------------------

/// Boxes of which every third starts so high that it touches nothing.
template <class T>
State<T> boxes(const Model& model, const std::vector<int>& names) {
  State<T> state(model, static_cast<int>(names.size()));
  for (int w = 0; w < state.q.worlds(); ++w) {
    test::Random random(1000 + names[w]);
    state.q.set(6, w, static_cast<T>(names[w] % 3 == 0 ? 3 : 0.12 + random.symmetric(0.02)));
    for (int k = 0; k < 6; ++k) state.qd.set(k, w, static_cast<T>(random.symmetric(1)));
  }
  return state;
}

template <class T>
struct BoxesRun {
  Trajectory<T> trajectory;
  Buffer<T> by_q, by_qd;
};
template <class T>
BoxesRun<T> run_boxes(const Model& model, const std::vector<int>& names) {
  const State<T> state = boxes<T>(model, names);
  RolloutOptions options;
  options.time_step = kStep;
  options.steps = 60;
  Tape<T> tape;
  const Trajectory<T> t = rollout<T>(tape, model, state, {}, options);
  Buffer<T> seed(7, state.q.worlds());
  for (int w = 0; w < state.q.worlds(); ++w) seed.set(4, w, 1);
  Seeds<T> seeds;
  seeds.add(t.final.q, seed);
  const Gradients<T> g = std::move(tape).backward(seeds);
  return {t, g.of(state.q), g.of(state.qd)};
}

// A world's states and gradients have the same bits alone, elsewhere in a batch, and beside others that touch or not.
template <class T>
void expect_own_bits() {
  const Model model = box_on_plane();
  const std::vector<int> all = test::first_worlds(37);
  std::vector<int> reversed(all.rbegin(), all.rend());
  const BoxesRun<T> a = run_boxes<T>(model, all), b = run_boxes<T>(model, reversed);
  int moved = 0;
  for (const int name : all) {
    const BoxesRun<T> alone = run_boxes<T>(model, {name});
    const int there = static_cast<int>(all.size()) - 1 - name;
    for (const auto& [other, w] : {std::pair{&b, there}, std::pair{&alone, 0}}) {
      EXPECT_TRUE(test::same_bits(a.trajectory.q, name, other->trajectory.q, w));
      EXPECT_TRUE(test::same_bits(a.trajectory.qd, name, other->trajectory.qd, w));
      EXPECT_TRUE(test::same_bits(a.trajectory.reported, name, other->trajectory.reported, w));
      EXPECT_TRUE(test::same_bits(a.by_q, name, other->by_q, w));
      EXPECT_TRUE(test::same_bits(a.by_qd, name, other->by_qd, w));
    }
    moved += a.by_qd(2, name) != 0;
  }
  EXPECT_GT(moved, 10);  // it was deflected by contact, and its gradient knows
}
TEST(ContactBodies, AWorldHasItsOwnBits) {
  expect_own_bits<double>();
  expect_own_bits<float>();
}

// A point that goes over from slipping to sticking has a speed of about ε = 1e-5 m/s, as the difference of velocities
// of 1 m/s whose ulp in float is 6e-8: 1 % of its friction, of some 0.3 m/s that friction changes corners by, is left
// open.
TEST(ContactBodies, SinglePrecisionAgreesAfterTouching) {
  const Model model = box_on_plane();
  const Trajectory<double> exact = simulate(model, thrown_box<double>(model), 0.25, true);
  const Trajectory<float> t = simulate(model, thrown_box<float>(model), 0.25, true);
  int first = 0;
  while (exact.qd((first + 1) * 6 + 5, 0) < exact.qd(first * 6 + 5, 0)) ++first;
  ASSERT_LT(first + 20, exact.steps);
  double position = 0, velocity = 0;
  for (int step = 1; step <= first + 20; ++step) {
    for (int k = 0; k < 7; ++k)
      position = std::max(position, std::abs(t.q(step * 7 + k, 0) - exact.q(step * 7 + k, 0)));
    for (int k = 0; k < 6; ++k) {
      velocity = std::max(velocity, std::abs(t.reported(step * 6 + k, 0) - exact.reported(step * 6 + k, 0)));
    }
  }
  EXPECT_LT(position, 1e-4);
  EXPECT_LT(velocity, 3e-2);  // several such points, on a box that turns by 5 rad/s
  EXPECT_GT(position, 1e-9);  // it is another precision
}

// A body that is fixed to the world is the world to what touches it, however light it is.
TEST(ContactBodies, WhatIsFixedCountsAsTheWorld) {
  const auto dropped = [](bool on_body) {
    ModelBuilder builder;
    builder.add_body("ball", ball_of(2, 0.1));
    builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
    builder.add_shape("ball", 0, shape(GeometryType::sphere, {0.1, 0, 0}));
    builder.add_body("table", ball_of(0.01, 0.1));
    builder.add_joint("fixed", JointType::fixed, ModelBuilder::world, 1);
    builder.add_shape("table", on_body ? BodyIndex(1) : ModelBuilder::world, shape(GeometryType::box, {1, 1, 0.1}));
    const Model model = builder.build();
    State<double> state(model, 1);
    state.q.set(6, 0, 0.25);
    state.qd.set(3, 0, 1);
    return simulate(model, state, 1).final.q;
  };
  const Buffer<double> on_body = dropped(true), on_world = dropped(false);
  for (int k = 0; k < 7; ++k) EXPECT_NEAR(on_body(k, 0), on_world(k, 0), 1e-12) << k;
}

}  // namespace
}  // namespace backdrive
