#include "tests/support/contact_experiments.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/dual.h"
#include "models/parameter_list.h"

namespace backdrive::test {
namespace {

using D = Dual<double>;

/// Share of a time step at which world `world` touches.
double phase_of(int world) {
  return (world + 0.5) / kPhases;
}

JointType joint_type(Support support) {
  return support == Support::free ? JointType::free : JointType::prismatic;
}
/// Row of the position along `axis` in q, and of its velocity in q̇, of a body on a sliding or a free joint.
int position_row(const Experiment& e, Support support, const char* joint, int axis) {
  return e.q_of(joint) + (support == Support::free ? 4 + axis : 0);
}
int velocity_row(const Experiment& e, Support support, const char* joint, int axis) {
  return e.v_of(joint) + (support == Support::free ? 3 + axis : 0);
}

/// A solid ball.
BodyOptions ball_of(double mass, double radius) {
  const double inertia = 0.4 * mass * radius * radius;
  return {mass, {0, 0, 0}, {inertia, inertia, inertia, 0, 0, 0}};
}
BodyOptions box_of(double mass, const Numbers3& half) {
  const auto about = [&](int j, int k) { return mass / 3 * (half[j] * half[j] + half[k] * half[k]); };
  return {mass, {0, 0, 0}, {about(1, 2), about(0, 2), about(0, 1), 0, 0, 0}};
}

void start_batch(Experiment& e, double rate, double seconds) {
  e.state = State<double>(e.model, kPhases);
  e.time_step = 1 / rate;
  e.steps = static_cast<int>(std::lround(seconds * rate));
}

}  // namespace

ShapeOptions shape_of_pair(const PairConstants& pair, GeometryType type, const Numbers3& scale) {
  ShapeOptions shape;
  shape.type = type;
  shape.scale = scale;
  shape.stiffness = 2 * pair.stiffness;
  shape.width = pair.width;
  shape.dissipation = pair.dissipation;
  shape.friction = pair.friction;
  shape.creep = pair.creep;
  return shape;
}

Trajectory<double> Experiment::run(bool keep_states) const {
  RolloutOptions options;
  options.time_step = time_step;
  options.steps = steps;
  options.keep_states = keep_states;
  return rollout<double>(model, place_bodies<double>(nullptr, model, state, options), {}, options);
}

Sensitivity::Sensitivity(Experiment experiment, const std::vector<std::string>& paths)
    : experiment_(std::move(experiment)) {
  Experiment& e = experiment_;
  const int worlds = e.state.q.worlds();
  for (const std::string& path : paths) {
    for (const FieldSelection& selected : select_fields(e.model, path)) selected.field->of(e.model).spread(worlds);
    set_requires_grad(e.model, path, true);
  }
  RolloutOptions options;
  options.time_step = e.time_step;
  options.steps = e.steps;
  Tape<double> tape;
  const State<double> start = place_bodies(&tape, e.model, e.state, options);
  const Trajectory<double> t = rollout<double>(tape, e.model, start, {}, options);
  if (t.any_stopped()) throw std::runtime_error("a world stopped");
  Buffer<double> seed(t.final.q.rows(), worlds);
  end_ = Buffer<double>(1, worlds);
  for (int w = 0; w < worlds; ++w) {
    seed.set(e.row, w, 1);
    end_.set(0, w, t.final.q(e.row, w));
  }
  Seeds<double> seeds;
  seeds.add(t.final.q, seed);
  gradients_ = std::move(tape).backward(seeds);
}

double Sensitivity::by(const std::string& path, int world) const {
  double sum = 0;
  for (const FieldSelection& selected : select_fields(experiment_.model, path)) {
    sum += selected.field->in(gradients_.parameters())(selected.item, std::max(selected.component, 0), world);
  }
  return sum;
}

double worst(const std::function<double(int world)>& error) {
  double result = 0;
  for (int w = 0; w < kPhases; ++w) {
    const double e = std::abs(error(w));
    if (!(e <= result)) result = e;  // also what is no number
  }
  return result;
}

// ---- bounce ---------------------------------------------------------------------------------------------------------

double bounce_start(const BounceOptions& options, int world) {
  const double speed = std::sqrt(options.velocity * options.velocity + 2 * options.gravity * 0.2);
  return 0.3 + phase_of(world) * speed / options.rate;
}

Experiment bounce(const BounceOptions& options) {
  ModelBuilder builder;
  builder.set_integrator(options.integrator);
  builder.set_gravity({0, 0, -options.gravity});
  builder.add_body("ball", ball_of(kBallMass, kBallRadius));
  builder.add_joint("joint", joint_type(options.support), ModelBuilder::world, 0);
  builder.add_shape("ball", 0, shape_of_pair(options.pair, GeometryType::sphere, {kBallRadius, 0, 0}));
  builder.add_shape("floor", ModelBuilder::world, shape_of_pair(options.pair, GeometryType::plane));
  Experiment e{builder.build(), {}};
  start_batch(e, options.rate, options.seconds);
  e.row = position_row(e, options.support, "joint", 2);
  // Semi-implicit Euler falls as if it had been half a step of gravity slower.
  const double velocity = options.velocity + 0.5 * options.gravity * e.time_step;
  for (int w = 0; w < kPhases; ++w) {
    e.state.q.set(e.row, w, bounce_start(options, w));
    e.state.qd.set(velocity_row(e, options.support, "joint", 2), w, velocity);
    if (options.support != Support::free) continue;
    for (int axis = 0; axis < 3; ++axis) e.state.qd.set(axis, w, 1 - axis);  // that it turns changes nothing
  }
  return e;
}

double restitution(double dissipation, double speed) {
  if (dissipation == 0) return 1;
  const auto integrand = [&](double u) {
    const double z = 1 + dissipation * u;
    return u / (z >= 0.5 ? z : 0.5 * (z + 0.5) * (z + 0.5));
  };
  const auto integral = [&](double from, double to) {  // Simpson's rule
    constexpr int n = 4000;
    const double h = (to - from) / n;
    double sum = integrand(from) + integrand(to);
    for (int i = 1; i < n; ++i) sum += (i % 2 == 1 ? 4 : 2) * integrand(from + i * h);
    return sum * h / 3;
  };
  const double brought = integral(0, speed);
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double e = 0.5 * (low + high);
    (brought + integral(-e * speed, 0) > 0 ? low : high) = e;
  }
  return low;
}

namespace {

/// Φ′/k of docs/contact.md, 1.
D ramp(const D& depth, double width) {
  if (depth.value <= 0) return D(0);
  return depth.value < width ? depth * depth * D(0.5 / width) : depth - D(0.5 * width);
}
D damped(const D& z) {
  if (z.value >= 0.5) return z;
  const D shifted = z + D(0.5);
  return z.value <= -0.5 ? D(0) : shifted * shifted * D(0.5);
}

struct BounceInputs {
  D start, velocity, stiffness, mass, radius;
};
/// The classical Runge-Kutta method; the law's second derivative jumps, which leaves it an error of the square of its
/// step: 1e-10 here.
D integrate(const BounceOptions& options, const BounceInputs& in) {
  constexpr int per_second = 100000;
  const int steps = static_cast<int>(std::lround(options.seconds * per_second));
  const D h(1.0 / per_second), half(0.5 / per_second), gravity(options.gravity);
  const auto acceleration = [&](const D& y, const D& v) {
    const D force = in.stiffness * ramp(in.radius - y, options.pair.width);
    return force * damped(D(1) - D(options.pair.dissipation) * v) / in.mass - gravity;
  };
  D y = in.start, v = in.velocity;
  for (int i = 0; i < steps; ++i) {
    const D a1 = acceleration(y, v), v2 = v + half * a1;
    const D a2 = acceleration(y + half * v, v2), v3 = v + half * a2;
    const D a3 = acceleration(y + half * v2, v3), v4 = v + h * a3;
    const D a4 = acceleration(y + h * v3, v4);
    y += h * D(1. / 6) * (v + D(2) * (v2 + v3) + v4);
    v += h * D(1. / 6) * (a1 + D(2) * (a2 + a3) + a4);
  }
  return y;
}
D spring_height(const BounceOptions& options, const BounceInputs& in) {
  const D T(options.seconds), g(options.gravity);
  const D omega = square_root(in.stiffness / in.mass);
  const D impact = square_root(in.velocity * in.velocity + D(2) * g * (in.start - in.radius));
  // Without gravity (v₁ + v)/g is 0/0: the time to touch-down is (y₀ − r) over the mean of both speeds.
  const D until = D(2) * (in.start - in.radius) / (impact - in.velocity);
  const D ratio = g / (omega * impact);
  const D angle(std::atan(ratio.value), ratio.dot / (1 + ratio.value * ratio.value));
  const D after = T - until - (D(M_PI) + D(2) * angle) / omega;
  return in.radius + impact * after - D(0.5) * g * after * after;
}

template <class Height>
BounceTruth truth_of(const BounceOptions& options, double start, double mass, double radius, const Height& height) {
  const auto by = [&](int input) {
    const auto dual = [&](double x, int number) { return D(x, number == input); };
    return height(options, BounceInputs{dual(start, 0), dual(options.velocity, 1), dual(options.pair.stiffness, 2),
                                        dual(mass, 3), dual(radius, 4)});
  };
  return {by(0).value, by(0).dot, by(1).dot, by(2).dot, by(3).dot, by(4).dot};
}

}  // namespace

BounceTruth integrated_bounce(const BounceOptions& options, double start, double mass, double radius) {
  return truth_of(options, start, mass, radius, integrate);
}
BounceTruth spring_bounce(const BounceOptions& options, double start) {
  return truth_of(options, start, kBallMass, kBallRadius, spring_height);
}

// ---- two balls ------------------------------------------------------------------------------------------------------

Experiment two_balls(const TwoBallsOptions& options) {
  ModelBuilder builder;
  builder.set_integrator(options.integrator);
  builder.set_gravity({0, 0, 0});
  JointOptions along_x;
  along_x.axis = {1, 0, 0};
  const char* const names[] = {"first", "second"};
  for (int i = 0; i < 2; ++i) {
    builder.add_body(names[i], ball_of(options.masses[i], kBallRadius));
    builder.add_joint(names[i], joint_type(options.support), ModelBuilder::world, i, along_x);
    builder.add_shape(names[i], i, shape_of_pair(options.pair, GeometryType::sphere, {kBallRadius, 0, 0}));
  }
  Experiment e{builder.build(), {}};
  start_batch(e, options.rate, 1);
  e.row = position_row(e, options.support, "second", 0);
  for (int w = 0; w < kPhases; ++w) {
    e.state.q.set(position_row(e, options.support, "first", 0), w, -phase_of(w) / options.rate);
    e.state.q.set(e.row, w, 0.52);
    e.state.qd.set(velocity_row(e, options.support, "first", 0), w, 1);
  }
  return e;
}

// ---- sliding --------------------------------------------------------------------------------------------------------

double slide_speed(const SlideOptions& options, int world) {
  return 2 + phase_of(world) * options.friction * kGravity / options.rate;
}

Experiment slide(const SlideOptions& options) {
  constexpr double mass = 10;
  const Numbers3 half{0.15, 0.1, 0.05};
  PairConstants pair;
  pair.stiffness = 3e4;
  pair.dissipation = 1;
  pair.friction = options.friction;
  pair.creep = options.creep;
  ModelBuilder builder;
  builder.set_integrator(options.integrator);
  builder.set_gravity({0, 0, -kGravity});
  builder.add_body("body", box_of(mass, half));
  const bool free = options.support == Support::free;
  int points = 4;
  if (free) {
    builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
    builder.add_shape("box", 0, shape_of_pair(pair, GeometryType::box, half));
  } else {  // the joint's y is the world's z
    JointOptions upright;
    upright.frame.orientation = {std::sqrt(0.5), 0, 0, std::sqrt(0.5)};
    builder.add_joint("joint", JointType::planar, ModelBuilder::world, 0, upright);
    points = 2;
    for (const double side : {-1., 1.}) {
      ShapeOptions foot = shape_of_pair(pair, GeometryType::sphere, {0.02, 0, 0});
      foot.frame.position = {side * half[0], 0.02 - half[2], 0};
      builder.add_shape(side < 0 ? "rear" : "front", 0, foot);
    }
  }
  builder.add_shape("floor", ModelBuilder::world, shape_of_pair(pair, GeometryType::plane));
  Experiment e{builder.build(), {}};
  start_batch(e, options.rate, slide_speed(options, 0) / (options.friction * kGravity) + 0.3);
  e.row = free ? 4 : 0;
  const double depth = mass * kGravity / points / pair.stiffness + pair.width / 2;  // at rest
  for (int w = 0; w < kPhases; ++w) {
    e.state.q.set(free ? 6 : 1, w, half[2] - depth);
    e.state.qd.set(free ? 5 : 1, w, 0.5 * kGravity * e.time_step);
    e.state.qd.set(free ? 3 : 0, w, slide_speed(options, w));
  }
  return e;
}

}  // namespace backdrive::test
