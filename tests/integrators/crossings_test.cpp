// Shapes that go through each other are found, and nothing else is.
#include "integrators/contact/crossings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "tests/support/contact_trust.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using namespace test;
using contact::CrossingKind;
using contact::Crossings;

constexpr double kStep = 1. / 480;

/// What flies at what stands: of every length L, at speeds of as many L/s. No weight: then auto makes the same of all.
struct Shot {
  ShapeOptions flying, standing;
  double length = 1;
  Integrator integrator = Integrator::featherstone;
  Numbers3 from = {0, 0, 1}, velocity = {0, 0, -1}, spin = {0, 0, 0};
  double standing_mass = 0;  ///< kg; 0: on the world

  /// Springs that stop nothing, N/m.
  Shot& softened(double stiffness = 1) {
    flying.stiffness = standing.stiffness = stiffness;
    return *this;
  }
};

ShapeOptions sized(ShapeOptions shape, double length) {
  for (double& x : shape.scale) x *= length;
  shape.width *= length, shape.creep *= length;
  return shape;
}

Model model_of(const Shot& shot) {
  ModelBuilder builder;
  builder.set_integrator(shot.integrator);
  builder.set_gravity({0, 0, 0});
  const double inertia = 0.01 * shot.length * shot.length;
  const BodyIndex body = builder.add_body("flying", {1, {0, 0, 0}, {inertia, inertia, inertia, 0, 0, 0}});
  builder.add_joint("flight", JointType::free, ModelBuilder::world, body);
  builder.add_shape("flying", body, sized(shot.flying, shot.length));
  BodyIndex standing = ModelBuilder::world;
  if (const double m = shot.standing_mass; m > 0) {
    const double turning = 0.01 * m * shot.length * shot.length;
    standing = builder.add_body("standing", {m, {0, 0, 0}, {turning, turning, turning, 0, 0, 0}});
    builder.add_joint("stand", JointType::free, ModelBuilder::world, standing);
  }
  builder.add_shape("standing", standing, sized(shot.standing, shot.length));
  return builder.build();
}

template <class T>
Crossings crossings_of(const Model& model, const Trajectory<T>& t, double step, int world = 0) {
  contact::CrossingFinder finder(model, step, world);
  std::vector<int> bodies(model.body_names.size());
  std::iota(bodies.begin(), bodies.end(), 0);
  const int nq = model.topology.nq;
  for (int state = 0; state <= t.steps; ++state) {
    Buffer<double> q(nq, 1);
    for (int k = 0; k < nq; ++k) q.set(k, 0, static_cast<double>(t.q(state * nq + k, world)));
    const Buffer<double> rows = body_poses<double>(nullptr, model, q, bodies, {});
    std::vector<double> poses;
    for (int k = 0; k < rows.rows(); ++k) poses.push_back(rows(k, 0));
    finder.see(poses);
  }
  return finder.found();
}

struct Flight {
  Crossings crossings;
  double end[3];  ///< in L, of what flies less what stands
  double lowest;  ///< of the third of these, in all states
};

/// 40 phases of the step in which it arrives.
template <class T>
std::vector<Flight> fly(const Shot& shot, double seconds) {
  const Model model = model_of(shot);
  State<T> state(model, kPhases);
  for (int w = 0; w < kPhases; ++w) {
    for (int k = 0; k < 3; ++k) {
      const double place = shot.from[k] + shot.velocity[k] * kStep * w / kPhases;
      state.q.set(4 + k, w, static_cast<T>(place * shot.length));
      state.qd.set(k, w, static_cast<T>(shot.spin[k]));
      state.qd.set(3 + k, w, static_cast<T>(shot.velocity[k] * shot.length));
    }
  }
  RolloutOptions options;
  options.time_step = kStep;
  options.steps = static_cast<int>(std::lround(seconds / kStep));
  const Trajectory<T> t = rollout<T>(model, place_bodies<T>(nullptr, model, state, options), {}, options);
  std::vector<Flight> flights;
  for (int w = 0; w < kPhases; ++w) {
    const auto at = [&](int state, int k) {
      const int row = state * model.topology.nq + k;
      const double standing = shot.standing_mass > 0 ? static_cast<double>(t.q(row + 11, w)) : 0;
      return (static_cast<double>(t.q(row + 4, w)) - standing) / shot.length;
    };
    Flight flight{crossings_of(model, t, kStep, w), {at(t.steps, 0), at(t.steps, 1), at(t.steps, 2)}, HUGE_VAL};
    for (int state = 0; state <= t.steps; ++state) flight.lowest = std::min(flight.lowest, at(state, 2));
    flights.push_back(flight);
  }
  return flights;
}

ShapeOptions shape(GeometryType type, Numbers3 scale) {
  ShapeOptions s{.type = type, .scale = scale, .dissipation = 0};
  if (type != GeometryType::mesh) return s;
  std::vector<Vec3<double>> corners;
  for (int i = 0; i < 8; ++i) corners.push_back({i & 1 ? 1. : -1., i & 2 ? 1. : -1., i & 4 ? 1. : -1.});
  s.mesh = std::make_shared<const ConvexMesh>(convex_hull(corners, "cube"));
  return s;
}

template <class Visit>
void each_size(const Visit& visit) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const double length : {1., 1e-2, 100.}) {  // the ball: 1 cm, 0.1 mm, 1 m
      visit(integrator, length);
      if (test::kSanitized) break;
    }
  }
}

/// Those that are told and those that came to the other side are the same, whether or not they came back.
int told_as_it_is(const std::vector<Flight>& flights, const char* what) {
  int passed = 0;
  for (std::size_t w = 0; w < flights.size(); ++w) {
    const bool through = flights[w].lowest < 0;
    passed += through;
    EXPECT_EQ(flights[w].crossings.count > 0, through) << what << ", phase " << w << ", comes to " << flights[w].lowest;
    EXPECT_EQ(flights[w].crossings.first.pair, through ? 0 : -1) << what << w;
  }
  return passed;
}

// At 200 m/s a ball of 1 cm moves by 42 cm in a step. Some of these springs stop it, and others do not.
TEST(Crossings, ABallThroughABoxIsToldWhereItPasses) {
  each_size([](Integrator integrator, double length) {
    int passed = 0, all = 0;
    for (const double stiffness : {1., 1e2, 1e6, 1e8}) {
      for (const double dissipation : {0., 0.01 / length}) {
        Shot shot{shape(GeometryType::sphere, {0.01, 0, 0}), shape(GeometryType::box, {0.1, 0.1, 0.1}), length,
                  integrator};
        shot.softened(stiffness).flying.dissipation = shot.standing.dissipation = dissipation;
        shot.from = {0, 0, 1.5}, shot.velocity = {0, 0, -200};
        const int of_double = told_as_it_is(fly<double>(shot, 0.05), "float64"),
                  of_float = told_as_it_is(fly<float>(shot, 0.05), "float32");
        passed += of_double + of_float, all += 2 * kPhases;
      }
    }
    EXPECT_GT(passed, all / 10);
    EXPECT_LT(passed, all - all / 10);
  });
}

TEST(Crossings, ABallThroughAThinBoxIsToldInAllPhases) {
  each_size([](Integrator integrator, double length) {
    Shot shot{shape(GeometryType::sphere, {0.05, 0, 0}), shape(GeometryType::box, {0.02, 0.02, 0.02}), length,
              integrator};
    shot.from = {0, 0, 0.3}, shot.velocity = {0, 0, -20};
    EXPECT_EQ(told_as_it_is(fly<double>(shot.softened(), 0.1), "float64"), kPhases);
  });
}

// With auto the second spring stops both, on the world and each other, also where a step is 42 cm and the box 20 cm.
TEST(Crossings, FastPairsAreStopped) {
  each_size([](Integrator integrator, double length) {
    for (const double mass : {0., 0.1, 1., 100.}) {
      SCOPED_TRACE(std::to_string(mass) + " kg, " + std::to_string(length) + " m");
      Shot thin{shape(GeometryType::sphere, {0.05, 0, 0}), shape(GeometryType::box, {0.02, 0.02, 0.02}), length,
                integrator};
      thin.from = {0, 0, 0.3}, thin.velocity = {0, 0, -20}, thin.standing_mass = mass;
      Shot thick{shape(GeometryType::sphere, {0.01, 0, 0}), shape(GeometryType::box, {0.1, 0.1, 0.1}), length,
                 integrator};
      thick.from = {0, 0, 1.5}, thick.velocity = {0, 0, -200}, thick.standing_mass = mass;
      for (const Shot& shot : {thin, thick}) {
        const double seconds = 1.4 * -shot.from[2] / shot.velocity[2] + 0.02;
        for (const Flight& f : fly<double>(shot, seconds)) EXPECT_GT(f.end[2], 0);
        for (const Flight& f : fly<float>(shot, seconds)) EXPECT_GT(f.end[2], 0) << "float32";
        Shot soft = shot;
        int passed = 0;
        for (const Flight& f : fly<double>(soft.softened(), seconds)) passed += f.end[2] < 0;
        EXPECT_EQ(passed, kPhases);
      }
    }
  });
}

// 1 m/s against auto goes in by 14 mm of 11 cm.
TEST(Crossings, ABallThatBouncesIsNotTold) {
  for (const GeometryType type : {GeometryType::box, GeometryType::mesh}) {
    Shot shot{shape(GeometryType::sphere, {0.05, 0, 0}), shape(type, {0.1, 0.1, 0.1})};
    shot.from = {0.07, 0.02, 0.3}, shot.velocity = {0.1, 0, -1};
    EXPECT_EQ(told_as_it_is(fly<double>(shot, 1), to_string(type)), 0);
  }
}

// Every kind of pair, off its middle, at a speed that nothing holds; and past each other by a little.
TEST(Crossings, EveryPairOfKindsIsToldAndWhatFliesPastIsNot) {
  const ShapeOptions kinds[] = {shape(GeometryType::sphere, {0.1, 0, 0}), shape(GeometryType::capsule, {0.1, 0.1, 0}),
                                shape(GeometryType::box, {0.1, 0.2, 0.1}), shape(GeometryType::mesh, {0.2, 0.1, 0.1})};
  for (const ShapeOptions& a : kinds) {
    for (const ShapeOptions& b : kinds) {
      SCOPED_TRACE(std::string(to_string(a.type)) + " and " + to_string(b.type));
      Shot shot = Shot{a, b}.softened();
      shot.from = {0.01, 0.02, 2}, shot.velocity = {0, 0, -300}, shot.spin = {3, 2, 1};
      EXPECT_EQ(told_as_it_is(fly<double>(shot, 0.03), to_string(a.type)), kPhases) << to_string(b.type);
      shot.from = {0.01, 0.75, 2};
      for (const Flight& f : fly<double>(shot, 0.03)) EXPECT_EQ(f.crossings.count, 0) << to_string(a.type);
    }
  }
}

/// A rod of 1:100 on a hinge about z, from 1 rad before the ball that stands on the world.
Crossings swung(double speed, Integrator integrator) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.set_gravity({0, 0, 0});
  const BodyIndex rod = builder.add_body("rod", {1, {0, 0, 0}, {0.1, 0.1, 0.1, 0, 0, 0}});
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, rod, {.axis = {0, 0, 1}});
  ShapeOptions thin = shape(GeometryType::capsule, {0.005, 0.5, 0});
  thin.frame.orientation = {0, M_SQRT1_2, 0, M_SQRT1_2};  // along x
  builder.add_shape("rod", rod, thin);
  ShapeOptions ball = shape(GeometryType::sphere, {0.01, 0, 0});
  ball.frame.position = {0.4, 0, 0};
  builder.add_shape("ball", ModelBuilder::world, ball);
  Model model = builder.build();
  if (speed > 1) {  // springs that stop nothing
    for (int k = 0; k < 2; ++k) model.shapes.material.stiffness.set(k, 0, 1);
  }
  State<double> state(model, 1);
  state.q.set(0, 0, -1), state.qd.set(0, 0, speed);
  RolloutOptions options;
  options.time_step = kStep;
  options.steps = static_cast<int>(2 / speed / kStep);
  return crossings_of(model, rollout<double>(model, place_bodies<double>(nullptr, model, state, options), {}, options),
                      kStep);
}

TEST(Crossings, ASpinningRodIsTold) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const double speed : {50., 100., 200.}) EXPECT_EQ(swung(speed, integrator).count, 1) << speed;
    EXPECT_EQ(swung(0.3, integrator).count, 0);
  }
}

std::shared_ptr<const HeightField> ridge() {
  std::vector<double> heights;
  for (int row = 0; row < 5; ++row) {
    for (int column = 0; column < 41; ++column) heights.push_back(column == 20 ? 0.5 : 0);
  }
  return std::make_shared<const HeightField>(make_height_field(5, 41, {0.05, 0.5}, heights, "ridge"));
}

TEST(Crossings, GroundIsToldWhereABodyIsLostInIt) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    Shot shot{shape(GeometryType::sphere, {0.01, 0, 0}), shape(GeometryType::plane, {0, 0, 0}), 1, integrator};
    shot.from = {0, 0, 0.3}, shot.velocity = {0, 0, -20};
    for (const Flight& f : fly<double>(shot, 0.1)) EXPECT_EQ(f.crossings.count, 0);
    Shot soft = shot;
    for (const Flight& f : fly<double>(soft.softened(), 0.1)) {
      EXPECT_EQ(f.crossings.count, 1);
      EXPECT_EQ(f.crossings.first.kind, CrossingKind::under);
    }
    shot.velocity = {0, 0, -1};
    for (const Flight& f : fly<double>(shot, 1)) EXPECT_EQ(f.crossings.count, 0);
    // Over level ground at 60 m/s, 12 cm a step, through a ridge that is 10 cm thick and 0.5 m high.
    shot.standing = shape(GeometryType::height_field, {1, 1, 1});
    shot.standing.height_field = ridge();
    shot.from = {-1, 0, 0.4}, shot.velocity = {300, 0, 0};
    int told = 0;
    for (const Flight& f : fly<double>(shot, 0.004)) told += f.crossings.count > 0;
    EXPECT_EQ(told, kPhases);
    shot.from = {-1, 0, 0.6};
    for (const Flight& f : fly<double>(shot, 0.004)) EXPECT_EQ(f.crossings.count, 0);
  }
}

TEST(Crossings, WhatBeginsInsideIsTold) {
  Shot shot{shape(GeometryType::sphere, {0.01, 0, 0}), shape(GeometryType::box, {0.1, 0.1, 0.1})};
  shot.from = {0, 0, 0.01}, shot.velocity = {0, 0, 0};
  for (const Flight& f : fly<double>(shot, 0.01)) {
    EXPECT_GE(f.crossings.count, 1);
    EXPECT_EQ(f.crossings.first.kind, CrossingKind::started);
    EXPECT_EQ(f.crossings.first.step, 0);
  }
  shot.from = {0, 0, 0.107};
  for (const Flight& f : fly<double>(shot, 0.01)) EXPECT_EQ(f.crossings.count, 0);
}

// What falls, rolls, tumbles and piles up, of 1 g to 1 t.
TEST(Crossings, OrdinaryContactIsNotTold) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const Thing thing : kThings) {
      for (const Motion motion : kMotions) {
        for (const double mass : {1e-3, 1e3}) {
          if (test::kSanitized && mass > 1) continue;
          const Throw what{thing, mass, 0.1, 240, integrator};
          Experiment e = thrown(what, motion, 4, test::kSanitized ? 0.4 : 1, 5);
          const Trajectory<double> t = e.run(true);
          for (int w = 0; w < 4; ++w) {
            const Crossings c = crossings_of(e.model, t, e.time_step, w);
            // Some of a pile begin deep in one another.
            EXPECT_TRUE(c.count == 0 || (motion == Motion::pile && c.first.kind == CrossingKind::started))
                << name_of(thing) << ' ' << name_of(motion) << ' ' << mass;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace backdrive
