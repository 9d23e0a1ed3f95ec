// What is left out of a step before its points are sought: never a pair whose points are in reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "integrators/contact/find_contacts.h"
#include "tests/integrators/contact_bodies.h"
#include "tests/integrators/contact_cases.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using test::PairCase;
using test::PairKinds;
using test::Random;
using K = test::ShapeKind;

/// As geometry_table.cpp has it.
test::Geometry<double> with_half(test::Geometry<double> g) {
  for (int i = 0; g.kind == K::mesh && i < g.mesh.vertex_count; ++i) {
    for (int k = 0; k < 3; ++k) g.half[k] = std::max(g.half[k], std::abs(g.mesh.vertices[3 * i + k]));
  }
  return g;
}

/// Shapes that stand for themselves: what bounds.h and near_pairs.h ask of a working set.
struct Layout {
  using Real = double;
  using Touch = contact::TouchLink<double>;
  using ShapeRows = const ShapeConstants<double>*;
};
struct LooseShapes {
  using Real = double;
  double dt = 1. / 240;
  double far = 0;  ///< where all are one tree, x of its O, m; 0: each is one of its own
  contact::ContactSpace<Layout> contact{};
  std::vector<test::Geometry<double>> geometry;
  std::vector<ShapeConstants<double>> constants;
  std::vector<contact::ShapeBall<double>> balls;
  std::vector<Mat3<double>> axes;
  std::vector<contact::ListedShape<double>> listed;
  std::vector<ContactPair> pairs;
  std::vector<contact::PairPlan> plans;
  std::vector<int> near_pairs;

  void add(const test::Geometry<double>& g, const test::Shape<double>& shape) {
    geometry.push_back(with_half(g));
    ShapeConstants<double> c{};
    c.rotation = shape.pose.axes, c.position = shape.pose.origin, c.scale = shape.scale;
    constants.push_back(c);
    balls.push_back(contact::ball_of<double>(geometry.back(), c, dt, -1));
    balls.back().boxed = contact::has_box(g.kind);
    axes.push_back(c.rotation);
  }
  /// All pairs but those of two planes, the plane second.
  void pair_all() {
    for (int a = 0; a < int(balls.size()); ++a) {
      for (int b = a + 1; b < int(balls.size()); ++b) {
        const bool first = geometry[a].kind == K::plane, second = geometry[b].kind == K::plane;
        if (!(first && second)) pairs.push_back(first ? ContactPair{b, a} : ContactPair{a, b});
      }
    }
    for (const ContactPair& pair : pairs) {
      const bool plane = geometry[pair.b].kind == K::plane;
      plans.push_back({plane, balls[pair.a].capsule || balls[pair.b].capsule, false, far > 0, far > 0 ? 0 : pair.a,
                       plane     ? -1
                       : far > 0 ? 0
                                 : pair.b});
    }
    listed.resize(balls.size()), near_pairs.resize(pairs.size());
  }
  /// The working set over what is here.
  void begin() {
    contact.geometry = geometry.data(), contact.constants = constants.data(), contact.balls = balls.data();
    contact.box_axes = axes.data(), contact.listed = listed.data(), contact.pairs = pairs.data();
    contact.plans = plans.data(), contact.near_pairs = near_pairs.data();
    contact.shape_count = int(balls.size()), contact.pair_count = int(pairs.size());
  }
};
contact::Carrier carrier_of(const LooseShapes& s, int shape) {
  const bool fixed = s.geometry[shape].kind == K::plane;
  return {fixed ? -1 : shape, fixed ? -1 : s.far > 0 ? 0 : shape, fixed};
}
Vec3<double> tree_origin(const LooseShapes& s, int) {
  return {s.far, 0, 0};
}

bool balls_may_meet(const LooseShapes& s, const ContactPair& pair, bool plane, double reach) {
  const auto &a = s.balls[pair.a], &b = s.balls[pair.b];
  if (!plane) return contact::may_meet<double>(a, b, a.centre - b.centre, reach, a.capsule || b.capsule);
  const Vec3<double> normal = s.constants[pair.b].rotation.cz;
  return contact::PlaneBelow<double>{normal, -dot(normal, b.centre)}.may_meet(a, reach, a.capsule);
}

/// As find_contacts.h asks.
bool may_meet(const PairCase& c, double reach) {
  LooseShapes s;
  s.add(c.ga, c.a);
  s.add(c.gb, c.b);
  s.begin();
  if (!balls_may_meet(s, {0, 1}, c.gb.kind == K::plane, reach)) return false;
  if (contact::is_ground(c.gb.kind)) return true;
  if (!s.balls[0].boxed && !s.balls[1].boxed) return true;
  return !(contact::gap_of_boxes(s, 0, 1, s.balls[0].centre - s.balls[1].centre) > reach);
}

class ContactReach : public testing::TestWithParam<PairKinds> {};
INSTANTIATE_TEST_SUITE_P(All, ContactReach, testing::ValuesIn(test::all_pairs()),
                         [](const auto& info) { return test::name_of(info.param); });

TEST_P(ContactReach, NoPairInReachIsLeftOut) {
  Random random(77);
  for (int round = 0; round < (test::kSanitized ? 100 : 500); ++round) {
    const PairCase c = test::random_case(GetParam(), random, {-0.03, 0.4, 4});
    const double gap = test::least_gap(test::points_of(c));
    // Of two polyhedra that are apart a gap may be that of a face's plane, which is nearer than they are.
    const auto has_faces = [](K kind) { return kind == K::box || kind == K::cylinder || kind == K::mesh; };
    if (has_faces(GetParam().a) && has_faces(GetParam().b) && gap > 0) continue;
    EXPECT_TRUE(may_meet(c, gap + 1e-12)) << round;
    EXPECT_TRUE(may_meet(c, std::max(gap, 0.0) + random.uniform(0, 0.1))) << round;
  }
}

// Balls that hold these leave out a tenth.
TEST(ContactReach, MostCapsulesApartAreLeftOut) {
  Random random(78);
  int out = 0;
  constexpr int tries = 2000;
  for (int round = 0; round < tries; ++round) {
    const PairCase c = test::random_case({K::capsule, K::capsule}, random, {0.05, 0.4, 4});
    out += !may_meet(c, test::least_gap(test::points_of(c)) / 2);
  }
  EXPECT_GT(out, tries / 2);
}

TEST(ContactReach, MostBoxesApartAreLeftOut) {
  Random random(79);
  for (const PairKinds kinds :
       {PairKinds{K::capsule, K::box}, PairKinds{K::box, K::box}, PairKinds{K::cylinder, K::box}}) {
    SCOPED_TRACE(test::name_of(kinds));
    int out = 0;
    constexpr int tries = 500;
    for (int round = 0; round < tries; ++round) {
      const PairCase c = test::random_case(kinds, random, {0.05, 0.4, 4});
      out += !may_meet(c, test::least_gap(test::points_of(c)) / 2);
    }
    EXPECT_GT(out, tries / 2);
  }
}

// Thirty balls and capsules of 1 to 30 cm, each as fast as it likes, one thrown elsewhere now and then: over a plane,
// and of one tree that is where numbers are a tenth of a metre apart.
class NearPairs : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(All, NearPairs, testing::Values(0, 1e15));

TEST_P(NearPairs, NoneThatMayMeetIsMissing) {
  Random random(80);
  for (const double fastest : {0.0, 0.3, 30.0}) {
    SCOPED_TRACE(fastest);
    LooseShapes s;
    s.far = GetParam();
    std::vector<Vec3<double>> velocity;
    for (int k = 0; k < 30; ++k) {
      const K kind = k % 2 ? K::capsule : K::sphere;
      const test::Shape<double> shape{{test::turn(test::random_point(random, 3)), test::random_point(random, 2)},
                                      {random.uniform(0.01, 0.15), random.uniform(0.01, 0.15), 0}};
      s.add(test::geometry_of(kind), shape);
      velocity.push_back(test::random_point(random, fastest));
    }
    if (s.far == 0) s.add(test::geometry_of(K::plane), {{identity3<double>(), {0, 0, -2}}, {0, 0, 0}});
    s.pair_all();
    s.begin();
    contact::begin_near_pairs(s);
    ASSERT_TRUE(s.contact.lists_pairs);
    int made = 0, looked_at = 0;
    constexpr int steps = 200;
    for (int step = 0; step < steps; ++step) {
      if (step % 50 == 49) s.balls[step % 30].centre = test::random_point(random, 2);
      for (int k = 0; k < 30; ++k) {
        auto& ball = s.balls[k];
        const Vec3<double> pushed = velocity[k] * random.uniform(0, 1);
        ball.centre = ball.centre + pushed * s.dt;
        ball.reach = ball.still_reach + 2 * s.dt * contact::sum_of_magnitudes(velocity[k]);
        if (ball.capsule) ball.half = test::turn(test::random_point(random, 3)) * ball.axis;
      }
      const auto before = s.listed[0].centre;
      contact::update_near_pairs(s);
      made += step == 0 || before.x != s.listed[0].centre.x;
      looked_at += s.contact.near_count;
      std::vector<bool> listed(s.pairs.size());
      for (int n = 0; n < s.contact.near_count; ++n) listed[s.near_pairs[n]] = true;
      for (int k = 0; k < int(s.pairs.size()); ++k) {
        const ContactPair& pair = s.pairs[k];
        const double reach = s.balls[pair.a].reach + s.balls[pair.b].reach;
        if (balls_may_meet(s, pair, s.plans[k].plane, reach)) {
          ASSERT_TRUE(listed[k]) << step << ": " << pair.a << ", " << pair.b;
        }
      }
    }
    EXPECT_LT(looked_at, steps * int(s.pairs.size()) / 3);
    EXPECT_LT(made, steps / 3);  // a step of theirs may be as long as half of what it reaches beyond that at rest
    if (fastest == 0) {
      EXPECT_LE(made, 1 + 2 * steps / 50);
    }
  }
}

// A ball of 1 t hits one of 10 g that stands 1 mm before a third, which nothing else would reach in that step.
TEST(ContactReach, WhatIsPushedMeetsInTheSameStep) {
  using namespace test::contact_bodies;
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    SCOPED_TRACE(to_string(integrator));
    ModelBuilder builder;
    builder.set_integrator(integrator);
    builder.set_gravity({0, 0, 0});
    const double masses[] = {1000, 0.01, 1};
    for (int k = 0; k < 3; ++k) {
      const std::string name = "ball" + std::to_string(k);
      const BodyIndex body = builder.add_body(name, ball_of(masses[k], 0.05));
      builder.add_joint(name + "_flight", JointType::free, ModelBuilder::world, body);
      ShapeOptions options = shape(GeometryType::sphere, {0.05, 0.05, 0.05});
      options.stiffness = 1e7;
      builder.add_shape(name, body, options);
    }
    const Model model = builder.build();
    State<double> state(model, 1);
    const double places[] = {-0.105, 0, 0.101};
    for (int k = 0; k < 3; ++k) state.q.set(7 * k + 3, 0, 1), state.q.set(7 * k + 4, 0, places[k]);
    state.qd.set(3, 0, 4);
    RolloutOptions options;
    options.time_step = 1 / kRate, options.steps = 1, options.keep_contact = true;
    const Trajectory<double> t = rollout<double>(
        model, integrator == Integrator::semi_implicit ? place_bodies<double>(nullptr, model, state, options) : state,
        {}, options);
    const auto& pairs = model.topology.contact_pairs;
    for (int k = 0; k < int(pairs.size()); ++k) {
      const double force = std::abs(t.contact(k * kContactRows, 0));
      const bool ends = pairs[k].a + pairs[k].b == 2;  // the first and the third
      EXPECT_EQ(force > 1, !ends) << k << ": " << force;
    }
  }
}

}  // namespace
}  // namespace backdrive
