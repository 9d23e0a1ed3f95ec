#include "tests/support/contact_trust.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/check/gradient_reach.h"
#include "engine/rotation.h"
#include "models/meshes/convex_mesh.h"

namespace backdrive::test {
namespace {

constexpr int kFreeQ = 7, kFreeV = 6;

/// Half lengths along the axes, of the shape's bounding box.
Numbers3 half_lengths(Thing thing, double size) {
  switch (thing) {
    case Thing::sphere:
      return {size, size, size};
    case Thing::capsule:
      return {0.4 * size, 0.4 * size, size};
    case Thing::cylinder:
      return {0.8 * size, 0.8 * size, size};
    case Thing::rod:
      return {0.1 * size, 0.1 * size, size};
    case Thing::disc:
    case Thing::lens:
      return {size, size, 0.1 * size};
    case Thing::box:
    case Thing::mesh:
    case Thing::two_links:
    case Thing::egg:
      return {size, 0.66 * size, 0.33 * size};
  }
  return {};
}

std::shared_ptr<const ConvexMesh> wedge() {
  static const auto mesh = [] {
    const std::vector<Vec3<double>> corners{{1, 0.66, -0.33}, {1, -0.66, -0.33}, {-1, 0.66, -0.33}, {-1, -0.66, -0.33},
                                            {0.5, 0.3, 0.33}, {0.5, -0.3, 0.33}, {-0.6, 0.2, 0.33}, {-0.6, -0.4, 0.33}};
    return std::make_shared<const ConvexMesh>(convex_hull(corners, "wedge"));
  }();
  return mesh;
}

ShapeOptions shape_of(Thing thing, double size) {
  ShapeOptions shape;
  const Numbers3 half = half_lengths(thing, size);
  switch (thing) {
    case Thing::sphere:
      shape.type = GeometryType::sphere, shape.scale = {size, 0, 0};
      break;
    case Thing::capsule:
      shape.type = GeometryType::capsule, shape.scale = {half[0], half[2] - half[0], 0};
      break;
    case Thing::cylinder:
    case Thing::rod:
    case Thing::disc:
      shape.type = GeometryType::cylinder, shape.scale = {half[0], half[2], 0};
      break;
    case Thing::egg:
    case Thing::lens:
      shape.type = GeometryType::ellipsoid, shape.scale = half;
      break;
    case Thing::mesh:
      shape.type = GeometryType::mesh, shape.scale = {size, size, size}, shape.mesh = wedge();
      break;
    case Thing::box:
    case Thing::two_links:
      shape.type = GeometryType::box, shape.scale = half;
      break;
  }
  return shape;
}

/// As of a box that fills the bounding box, or of an ellipsoid.
Numbers3 inertia_of(Thing thing, double mass, double size) {
  const Numbers3 h = half_lengths(thing, size);
  const bool round = thing == Thing::sphere || thing == Thing::egg || thing == Thing::lens;
  const double share = round ? 0.2 : thing == Thing::box || thing == Thing::two_links ? 1. / 3 : 0.25;
  return {share * mass * (h[1] * h[1] + h[2] * h[2]), share * mass * (h[0] * h[0] + h[2] * h[2]),
          share * mass * (h[0] * h[0] + h[1] * h[1])};
}

void set_turn(const Numbers3& axis, double angle, int row, int world, State<double>& state) {
  const double norm = std::sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
  for (int k = 0; k < 3; ++k) state.q.set(row + k, world, axis[k] / norm * std::sin(angle / 2));
  state.q.set(row + 3, world, std::cos(angle / 2));
}

}  // namespace

const char* name_of(Thing thing) {
  constexpr const char* names[] = {"sphere", "capsule", "box",       "cylinder", "rod",
                                   "disc",   "mesh",    "two links", "egg",      "lens"};
  return names[static_cast<int>(thing)];
}
const char* name_of(Motion motion) {
  constexpr const char* names[] = {"drop", "toss", "slide", "roll", "tip", "pile", "mixed"};
  return names[static_cast<int>(motion)];
}

namespace {

struct ThrownBody {
  Thing thing;
  double mass, size;

  Numbers3 half() const { return half_lengths(thing, size); }
};

/// Alike; of a mixed pile the others are of any thing, half to twice as large, a third to three times as heavy.
std::vector<ThrownBody> bodies_of(const Throw& what, Motion motion, Random& random) {
  const bool is_mixed = motion == Motion::mixed;
  std::vector<ThrownBody> bodies(motion == Motion::pile || is_mixed ? 3 : 1, {what.thing, what.mass, what.size});
  for (std::size_t i = 1; is_mixed && i < bodies.size(); ++i) {
    do {
      bodies[i].thing = kThings[static_cast<int>(random.uniform(0, std::size(kThings)))];
    } while (bodies[i].thing == Thing::two_links);
    bodies[i].size *= std::exp2(random.symmetric(1));
    bodies[i].mass *= std::pow(3, random.symmetric(1));
  }
  return bodies;
}

}  // namespace

Experiment thrown(const Throw& what, Motion motion, int worlds, double seconds, std::uint64_t seed) {
  Random random(seed);
  const std::vector<ThrownBody> bodies = bodies_of(what, motion, random);
  ModelBuilder builder;
  builder.set_integrator(what.integrator);
  builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
  const bool links = what.thing == Thing::two_links;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const auto& [thing, mass, size] = bodies[i];
    const Numbers3 inertia = inertia_of(thing, mass, size), half = bodies[i].half();
    const std::string name = "body" + std::to_string(i);
    const auto add = [&, thing = thing, mass = mass, size = size](const std::string& own, const Numbers3& centre) {
      const BodyIndex body = builder.add_body(own, {mass, centre, {inertia[0], inertia[1], inertia[2], 0, 0, 0}});
      ShapeOptions shape = shape_of(thing, size);
      shape.frame.position = centre;
      builder.add_shape(own, body, shape);
      return body;
    };
    const BodyIndex body = add(name, {0, 0, 0});
    builder.add_joint(name, JointType::free, ModelBuilder::world, body);
    if (!links) continue;
    JointOptions hinge;
    hinge.axis = {0, 1, 0};
    hinge.frame.position = {half[0] * 1.1, 0, 0};
    hinge.damping = 0.02 * mass * size * size;
    builder.add_joint(name + "_hinge", JointType::revolute, body, add(name + "_second", {half[0] * 1.1, 0, 0}), hinge);
  }
  Experiment e{builder.build(), {}};
  e.state = State<double>(e.model, worlds);
  e.time_step = 1 / what.rate;
  e.steps = static_cast<int>(std::lround(seconds * what.rate));
  e.row = e.q_of("body0") + 4;
  const auto vector = [&](double bound) {
    return Numbers3{random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
  };
  // Speeds and spins as of things of this size: those of a fall by their own length, at most 1 m/s and 3 rad/s of 0.1
  // m.
  const double lively = std::sqrt(what.size / 0.1), speed = std::min(1.0, lively), spin = 3 / lively;
  for (int w = 0; w < worlds; ++w) {
    double top = 0;  // of the body before
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const std::string name = "body" + std::to_string(i);
      const Numbers3 half = bodies[i].half();
      const int q = e.q_of(name.c_str()), v = e.v_of(name.c_str());
      const bool random_attitude =
          motion == Motion::toss || motion == Motion::drop || motion == Motion::pile || motion == Motion::mixed;
      const double lowest = std::sqrt(half[0] * half[0] + half[1] * half[1] + half[2] * half[2]);
      Numbers3 velocity{0, 0, 0}, turn{0, 0, 0};
      const double reach = (links ? 3 : 1) * lowest;
      double height = reach + random.uniform(0.2, 1) * what.size + 2.3 * lowest * i;
      // None of a pile begins in another: what their springs store would count as gained.
      if (i > 0) height = std::max(height, top + reach);
      top = height + reach;
      set_turn(vector(1), random_attitude ? random.uniform(0, 3) : 1e-9, q, w, e.state);
      switch (motion) {
        case Motion::drop:
          break;
        case Motion::toss:
          velocity = vector(speed), turn = vector(spin);
          break;
        case Motion::slide:
          height = half[2] * (1 + 1e-3 * random.uniform(0, 1));
          velocity = {random.uniform(0.5, 1) * speed, random.symmetric(0.3) * speed, 0};
          break;
        case Motion::roll:  // about y, lying
          height = (what.thing == Thing::sphere ? half[0] : half[1]) * 1.001;
          set_turn({1, 0, 0}, M_PI / 2, q, w, e.state);
          velocity = {random.uniform(0.3, 1) * speed, 0, 0};
          turn = {0, velocity[0] / half[0], 0};
          break;
        case Motion::tip: {
          const double tilt = random.uniform(0.1, 0.6);
          set_turn({0, 1, 0}, tilt, q, w, e.state);
          height = half[0] * std::sin(tilt) + half[2] * std::cos(tilt) + 1e-4 * what.size;
          if (what.thing == Thing::sphere) height = half[2] * 1.0001;
          turn = {0, random.symmetric(0.5) * spin, 0};
          velocity = {random.symmetric(0.2) * speed, 0, 0};
          break;
        }
        case Motion::pile:
        case Motion::mixed:
          velocity = {random.symmetric(0.1) * speed, random.symmetric(0.1) * speed, 0};
          break;
      }
      e.state.q.set(q + 6, w, height);
      for (int k = 0; k < 3; ++k) {
        e.state.qd.set(v + k, w, turn[k]);
        e.state.qd.set(v + 3 + k, w, velocity[k]);
      }
    }
  }
  return e;
}

std::uint64_t table_seed(const Throw& what) {
  return 1 + static_cast<int>(what.mass * 7 + what.rate);
}

template <class T>
State<T> start_of(const Experiment& e, int first, int worlds) {
  RolloutOptions options;
  options.time_step = e.time_step;
  const State<double> placed = place_bodies<double>(nullptr, e.model, e.state, options);
  State<T> state(e.model, worlds);
  for (int w = 0; w < worlds; ++w) {
    for (int r = 0; r < placed.q.rows(); ++r) state.q.set(r, w, static_cast<T>(placed.q(r, first + w)));
    for (int r = 0; r < placed.qd.rows(); ++r) state.qd.set(r, w, static_cast<T>(placed.qd(r, first + w)));
  }
  return state;
}
template State<float> start_of<float>(const Experiment&, int, int);
template State<double> start_of<double>(const Experiment&, int, int);

template <class T>
double kinetic_energy(const Trajectory<T>& t, const FreeBody& body, int step, int world) {
  const int first_q = (step * body.of + body.number) * kFreeQ, first_v = (step * body.of + body.number) * kFreeV;
  double q[kFreeQ], v[kFreeV];
  for (int k = 0; k < kFreeQ; ++k) q[k] = t.q(first_q + k, world);
  for (int k = 0; k < kFreeV; ++k) v[k] = t.reported(first_v + k, world);
  const Mat3<double> R = rotation_matrix(q[0], q[1], q[2], q[3]);
  const Vec3<double> omega = transposed_times(R, Vec3<double>{v[0], v[1], v[2]});
  const Numbers3& J = body.inertia;
  return 0.5 * (J[0] * omega.x * omega.x + J[1] * omega.y * omega.y + J[2] * omega.z * omega.z) +
         0.5 * body.mass * (v[3] * v[3] + v[4] * v[4] + v[5] * v[5]);
}
template double kinetic_energy<float>(const Trajectory<float>&, const FreeBody&, int, int);
template double kinetic_energy<double>(const Trajectory<double>&, const FreeBody&, int, int);

namespace {

/// One world's kinetic energy and that of weight after each step, the start among them; HUGE_VAL after it stopped.
struct EnergyRecord {
  std::vector<double> energy;
  bool is_solved = true;
};
template <class T>
std::vector<EnergyRecord> energies(const Experiment& e) {
  RolloutOptions options;
  options.time_step = e.time_step;
  options.steps = e.steps;
  options.keep_states = true;
  const int worlds = e.state.q.worlds(), rows = e.state.q.rows() / kFreeQ;  // of loose bodies one more, the world
  const Trajectory<T> t = rollout<T>(e.model, start_of<T>(e, 0, worlds), {}, options);
  const auto& of = e.model.bodies;
  std::vector<EnergyRecord> result(worlds);
  for (int w = 0; w < worlds; ++w) {
    result[w].is_solved = (*t.status)[w].unsolved_step < 0;
    for (int step = 0; step <= e.steps; ++step) {
      double energy = 0;
      for (int body = 0; body < of.mass.items(); ++body) {
        const FreeBody free{of.mass(body), {of.inertia(body, 0), of.inertia(body, 1), of.inertia(body, 2)}, body, rows};
        energy +=
            kinetic_energy<T>(t, free, step, w) + free.mass * kGravity * t.q((step * rows + body) * kFreeQ + 6, w);
      }
      const int stopped = (*t.status)[w].stopped_step;
      result[w].energy.push_back(stopped >= 0 && step > stopped ? HUGE_VAL : energy);
    }
  }
  return result;
}

double largest(const std::vector<double>& numbers, double from, double to) {
  const auto at = [&](double share) { return numbers.begin() + static_cast<std::ptrdiff_t>(share * numbers.size()); };
  return *std::max_element(at(from), at(to));
}

}  // namespace

template <class T>
std::vector<ThrownEnergy> largest_energy(const Experiment& e) {
  std::vector<ThrownEnergy> result;
  for (const auto& [energy, is_solved] : energies<T>(e)) {
    result.push_back({largest(energy, 0, 1) / energy[0], is_solved});
  }
  return result;
}
template std::vector<ThrownEnergy> largest_energy<float>(const Experiment&);
template std::vector<ThrownEnergy> largest_energy<double>(const Experiment&);

std::vector<double> energy_growth(const Experiment& e) {
  std::vector<double> result;
  for (const auto& [energy, is_solved] : energies<double>(e)) {
    result.push_back((largest(energy, 2. / 3, 1) - largest(energy, 1. / 3, 2. / 3)) / energy[0]);
  }
  return result;
}

std::vector<Slope> slopes(const Experiment& e, double near, double far) {
  const int row = e.v_of("body0") + 3, worlds = e.state.q.worlds();
  const Sensitivity s(e, {});
  std::vector<Slope> result(worlds);
  const auto differences = [&](double by, double Slope::*to) {
    std::vector<double> ends[2];
    for (const int side : {0, 1}) {
      Experiment shifted = e;
      shifted.state.qd = Buffer<double>(e.state.qd.rows(), worlds);
      for (int w = 0; w < worlds; ++w) {
        for (int r = 0; r < e.state.qd.rows(); ++r) {
          shifted.state.qd.set(r, w, e.state.qd(r, w) + (r == row ? (side ? by : -by) : 0));
        }
      }
      const Trajectory<double> t = shifted.run();
      for (int w = 0; w < worlds; ++w) ends[side].push_back(t.final.q(e.row, w));
    }
    for (int w = 0; w < worlds; ++w) result[w].*to = (ends[1][w] - ends[0][w]) / (2 * by);
  };
  for (int w = 0; w < worlds; ++w) result[w].adjoint = s.by_velocity(row, w);
  differences(near, &Slope::near);
  differences(far, &Slope::far);
  return result;
}

namespace {

/// A slope as a user asks for it: where one world's body0 ends along x, by its velocity along x at the start.
Problem slope_problem(const Experiment& e, int world) {
  constexpr double none = std::numeric_limits<double>::infinity();
  Problem problem;
  problem.model = e.model;
  problem.simulation.time_step = e.time_step;
  problem.simulation.steps = e.steps;
  for (int r = 0; r < e.state.q.rows(); ++r) problem.initial_position.push_back(e.state.q(r, world));
  for (int r = 0; r < e.state.qd.rows(); ++r) problem.initial_velocity.push_back(e.state.qd(r, world));
  // A target so far off that the loss is linear, and only along x.
  LossTerm end;
  end.name = "terminal/body0/position";
  end.quantity = LossQuantity::body_position;
  end.measure = ErrorMeasure::absolute;
  end.index = 0;
  end.target = {-100, -none, -none, 1};
  end.upper = {kNoRange, none, none};
  problem.loss.push_back(end);
  Variable velocity;
  velocity.name = "initial_state/body0/velocity";
  velocity.kind = VariableKind::initial_velocity;
  velocity.joint = e.model.find_joint("body0");
  velocity.component = 3;
  problem.variables.push_back(velocity);
  return problem;
}

}  // namespace

bool is_doubted(const Experiment& e, int world) {
  const Problem problem = slope_problem(e, world);
  const int row = e.v_of("body0") + 3;
  return gradient_reach(problem, {e.state.qd(row, world)}, {}).is_doubtful();
}

}  // namespace backdrive::test
