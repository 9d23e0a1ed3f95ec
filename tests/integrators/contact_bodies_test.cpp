// Bodies that touch: that they come to rest and stay, hold and slide on slopes, roll, collide and keep their momentum,
// with every shape on every other that it may lie on; and that a world's numbers are its own.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "autodiff/tape/rollout.h"
#include "models/builder.h"
#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "tests/support/batch.h"

namespace backdrive {
namespace {

constexpr double kRate = 240, kStep = 1 / kRate, kGravity = 9.81;
constexpr double kFriction = 0.8, kCreep = 1e-5;  // the defaults of shapes
const Numbers3 kHalf{0.15, 0.1, 0.05};            // half extents of the box
constexpr double kBoxMass = 10;

template <class T>
Trajectory<T> simulate(const Model& model, const State<T>& state, double seconds, bool keep_states = false,
                       double rate = kRate) {
  RolloutOptions options;
  options.time_step = 1 / rate;
  options.steps = static_cast<int>(std::lround(seconds * rate));
  options.keep_states = keep_states;
  const Trajectory<T> t = rollout<T>(model, state, {}, options);
  EXPECT_FALSE(t.any_stopped());
  return t;
}

BodyOptions box_of(double mass, const Numbers3& h) {
  const auto about = [&](int j, int k) { return mass / 3 * (h[j] * h[j] + h[k] * h[k]); };
  return {mass, {0, 0, 0}, {about(1, 2), about(0, 2), about(0, 1), 0, 0, 0}};
}
BodyOptions ball_of(double mass, double radius) {
  const double inertia = 0.4 * mass * radius * radius;
  return {mass, {0, 0, 0}, {inertia, inertia, inertia, 0, 0, 0}};
}
ShapeOptions shape(GeometryType type, const Numbers3& scale = {0, 0, 0}) {
  ShapeOptions options;
  options.type = type;
  options.scale = scale;
  options.stiffness = 6e4;  // 3e4 of a pair: k/m = 3e3 of the box
  return options;
}

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

template <class T>
double largest(const Buffer<T>& buffer, int first, int count, int world = 0) {
  double result = 0;
  for (int r = first; r < first + count; ++r) result = std::max(result, std::abs(double(buffer(r, world))));
  return result;
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
  state.qd.set(5, 0, 0.5 * kGravity * kStep);
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
double norm(const Vec3<double>& v) {
  return std::sqrt(dot(v, v));
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

// ---- every shape on every other -------------------------------------------------------------------------------------

/// An irregular polyhedron of some 0.12 m.
std::shared_ptr<const ConvexMesh> stone() {
  static const auto mesh = [] {
    test::Random random(7);
    std::vector<Vec3<double>> points;
    while (points.size() < 24) {
      const Vec3<double> p{random.symmetric(1), random.symmetric(1), random.symmetric(1)};
      const double length = norm(p);
      if (length > 0.2 && length < 1) points.push_back(p * (0.12 / length));
    }
    return std::make_shared<const ConvexMesh>(convex_hull(points, "stone"));
  }();
  return mesh;
}
/// A bowl of 2 x 2 m, 0.2 m deep, lowest in the middle at z = 0.
std::shared_ptr<const HeightField> bowl() {
  static const auto field = [] {
    std::vector<double> heights;
    for (int row = 0; row < 9; ++row) {
      for (int column = 0; column < 9; ++column) {
        heights.push_back(0.1 * ((row - 4) * (row - 4) + (column - 4) * (column - 4)) / 16.);
      }
    }
    return std::make_shared<const HeightField>(make_height_field(9, 9, {0.25, 0.25}, heights, "bowl"));
  }();
  return field;
}

Numbers3 size_of(GeometryType type) {
  switch (type) {
    case GeometryType::sphere:
      return {0.1, 0, 0};
    case GeometryType::ellipsoid:
      return {0.15, 0.12, 0.08};
    case GeometryType::capsule:
      return {0.06, 0.15, 0};
    case GeometryType::box:
      return {0.15, 0.12, 0.06};
    case GeometryType::cylinder:
      return {0.12, 0.06, 0};
    default:
      return {1, 1, 1};
  }
}

enum class Ground { plane, height_field, stand };
struct Resting {
  GeometryType body;
  Ground ground;
  GeometryType stand = GeometryType::plane;  ///< four of these, on a body that is fixed to the world
};
std::string name_of(const Resting& r) {
  const std::string ground = r.ground == Ground::plane          ? "plane"
                             : r.ground == Ground::height_field ? "height_field"
                                                                : to_string(r.stand);
  return std::string(to_string(r.body)) + "_on_" + ground;
}
std::vector<Resting> all_restings() {
  using G = GeometryType;
  std::vector<Resting> all;
  for (const Ground ground : {Ground::plane, Ground::height_field}) {
    for (const G body : {G::sphere, G::ellipsoid, G::capsule, G::box, G::cylinder, G::mesh}) {
      all.push_back({body, ground});
    }
  }
  for (const G body : {G::sphere, G::capsule, G::box, G::cylinder, G::mesh}) {
    for (const G stand : {G::sphere, G::capsule, G::box, G::cylinder, G::mesh}) {
      all.push_back({body, Ground::stand, stand});
    }
  }
  return all;
}

/// How far a body that lies reaches down from its centre, or a part of the stand up.
double reach(GeometryType type, bool stands) {
  const Numbers3 size = size_of(type);
  switch (type) {
    case GeometryType::sphere:
      return size[0];
    case GeometryType::capsule:
      return stands ? size[0] + size[1] : size[0];
    case GeometryType::box:
      return stands ? 0.08 : size[2];
    case GeometryType::ellipsoid:
      return size[2];
    case GeometryType::cylinder:
      return size[1];
    default:
      return 0.12;
  }
}

Model resting_model(const Resting& r) {
  ModelBuilder builder;
  builder.add_body("body", {});
  JointOptions air;
  air.damping = 0.05;  // stops what rolls, which friction does not
  builder.add_joint("joint", JointType::free, ModelBuilder::world, 0, air);
  ShapeOptions own = shape(r.body, size_of(r.body));
  own.density = 500;
  if (r.body == GeometryType::mesh) own.mesh = stone();
  if (r.body == GeometryType::capsule) own.frame.orientation = {0, std::sqrt(0.5), 0, std::sqrt(0.5)};  // lies along x
  builder.add_shape("body", 0, own);
  if (r.ground == Ground::plane) builder.add_shape("ground", ModelBuilder::world, shape(GeometryType::plane));
  if (r.ground == Ground::height_field) {
    ShapeOptions field = shape(GeometryType::height_field, {1, 1, 1});
    field.height_field = bowl();
    builder.add_shape("ground", ModelBuilder::world, field);
  }
  if (r.ground != Ground::stand) return builder.build();
  builder.add_body("stand", box_of(1, {0.2, 0.2, 0.1}));
  builder.add_joint("fixed", JointType::fixed, ModelBuilder::world, 1);
  for (int k = 0; k < 4; ++k) {
    ShapeOptions part = shape(r.stand, r.stand == GeometryType::box ? Numbers3{0.08, 0.08, 0.08} : size_of(r.stand));
    part.frame.position = {k % 2 == 0 ? -0.1 : 0.1, k < 2 ? -0.1 : 0.1, 0};
    if (r.stand == GeometryType::mesh) part.mesh = stone();
    builder.add_shape("stand" + std::to_string(k), 1, part);
  }
  return builder.build();
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

// A cylinder rolls on a box, and stands on it, as on the plane through the box's top; on the end face of a larger
// cylinder, too, but that this one's middle stands beneath it as a point more.
TEST(ContactBodies, CylindersRollAndStandOnFacesAsOnAPlane) {
  const auto thrown = [](GeometryType ground, bool stands) {
    ModelBuilder builder;
    const double half = 0.05, radius = 0.1;
    builder.add_body("wheel", {4, {0, 0, 0}, {0.013, 0.013, 0.02, 0, 0, 0}});
    builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
    builder.add_shape("wheel", 0, shape(GeometryType::cylinder, {radius, half, 0}));
    ShapeOptions floor = shape(ground, ground == GeometryType::cylinder ? Numbers3{3, 0.2, 0} : Numbers3{3, 3, 0.2});
    if (ground != GeometryType::plane) floor.frame.position = {0, 0, -0.2};
    builder.add_shape("floor", ModelBuilder::world, floor);
    const Model model = builder.build();
    State<double> state(model, 1);
    state.q.set(6, 0, (stands ? half : radius) + 0.01);
    if (!stands) state.q.set(0, 0, std::sqrt(0.5)), state.q.set(3, 0, std::sqrt(0.5));  // its axis along y
    state.qd.set(3, 0, 1);
    state.qd.set(0, 0, 0.2);
    return simulate(model, state, 1).final.q;
  };
  for (const bool stands : {true, false}) {
    const Buffer<double> plane = thrown(GeometryType::plane, stands);
    EXPECT_GT(plane(4, 0), 0.05);
    for (const GeometryType ground : {GeometryType::box, GeometryType::cylinder}) {
      const Buffer<double> face = thrown(ground, stands);
      const double tolerance = ground == GeometryType::box ? 1e-9 : 1e-3;
      for (int k = 0; k < 7; ++k) EXPECT_NEAR(face(k, 0), plane(k, 0), tolerance) << to_string(ground) << " " << k;
    }
  }
}

// End faces that lie on each other hold with points that stay while they tilt by little: with the lowest points of both,
// which wander over all of a face and past the other's rim, discs kept rocking at 0.5 rad/s for good.
TEST(ContactBodies, DiscsComeToRestOnDiscs) {
  const double radius = 0.0215, half = radius / 10;
  for (const bool on_free_disc : {true, false}) {
    ModelBuilder builder;
    ShapeOptions disc;  // of the default material
    disc.type = GeometryType::cylinder, disc.scale = {radius, half, 0};
    const BodyOptions body{0.01, {0, 0, 0}, {2.3e-6, 2.3e-6, 2.3e-6, 0, 0, 0}};
    builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
    builder.add_joint("joint", JointType::free, ModelBuilder::world, builder.add_body("disc", body));
    builder.add_shape("disc", 0, disc);
    if (on_free_disc) {
      builder.add_joint("second", JointType::free, ModelBuilder::world, builder.add_body("second", body));
      builder.add_shape("second", 1, disc);
    } else {
      disc.scale = {1, half, 0}, disc.frame.position = {0, 0, half};
      builder.add_shape("plate", ModelBuilder::world, disc);
    }
    const Model model = builder.build();
    State<double> state(model, 1);
    state.q.set(0, 0, 0.05), state.q.set(3, 0, std::sqrt(1 - 0.05 * 0.05));
    state.q.set(6, 0, 3 * half + 0.02);
    if (on_free_disc) state.q.set(11, 0, 0.006), state.q.set(12, 0, 0.004), state.q.set(13, 0, half);
    const Trajectory<double> t = simulate(model, state, 6);
    EXPECT_LT(largest(t.final_reported, 0, model.topology.nv), 1e-3);
    EXPECT_GT(t.final.q(6, 0), 2 * half);  // on top
  }
}

class ContactBodiesResting : public testing::TestWithParam<Resting> {};
INSTANTIATE_TEST_SUITE_P(All, ContactBodiesResting, testing::ValuesIn(all_restings()),
                         [](const auto& info) { return name_of(info.param); });

/// Dropped from 3 cm, a little tilted.
struct Drop {
  double start, support;  ///< heights, m
  Trajectory<double> path;
};
Drop drop(const Resting& r, double seconds, double rate) {
  const Model model = resting_model(r);
  State<double> state(model, 1);
  const double support = r.ground == Ground::stand ? reach(r.stand, true) : 0;
  const double start = support + reach(r.body, false) + 0.03;
  constexpr double tilt = 0.05;
  state.q.set(6, 0, start);
  state.q.set(1, 0, std::sin(tilt / 2));
  state.q.set(3, 0, std::cos(tilt / 2));
  return {start, support, simulate(model, state, seconds, true, rate)};
}

/// What rolls in a bowl or rocks on its round side, which friction does not stop; and what lies across the gap between
/// boxes, or cylinders, and turns from edge to edge.
bool rocks(const Resting& r) {
  using G = GeometryType;
  if (r.body == G::ellipsoid) return true;
  if (r.ground == Ground::height_field && (r.body == G::sphere || r.body == G::capsule)) return true;
  return (r.stand == G::box || r.stand == G::cylinder) && (r.body == G::capsule || r.body == G::mesh);
}

// It stays on what carries it: within 0.1 m of where it was dropped, for a stone turns onto one of its faces, and as
// good as at rest; what rocks takes longer than these two seconds for the last 10 cm/s.
TEST_P(ContactBodiesResting, StaysOnWhatCarriesIt) {
  const Resting& r = GetParam();
  const Drop d = drop(r, 2, 960);
  double lowest = d.start, highest = 0;
  for (int step = 0; step <= d.path.steps; ++step) {
    lowest = std::min(lowest, d.path.q(step * 7 + 6, 0));
    highest = std::max(highest, d.path.q(step * 7 + 6, 0));
  }
  EXPECT_GT(lowest, 0.045);  // half the thickness of the flattest, but for the depth; a stand's parts are about z = 0
  EXPECT_LT(highest, d.start + 1e-9);
  EXPECT_LT(largest(d.path.final.q, 4, 2), 0.1);
  EXPECT_LT(largest(d.path.final_reported, 3, 3), rocks(r) ? 0.1 : 0.05);
}

// At the rate that the defaults are for.
TEST_P(ContactBodiesResting, ComesToRestAt240StepsPerSecond) {
  const Drop d = drop(GetParam(), 8, 240);
  EXPECT_LT(largest(d.path.final_reported, 0, 6), rocks(GetParam()) ? 0.3 : 1e-3);
  EXPECT_LT(largest(d.path.final.q, 4, 2), 0.1);
}

}  // namespace
}  // namespace backdrive
