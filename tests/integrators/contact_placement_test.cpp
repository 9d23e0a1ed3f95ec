// Gaps, points and normals of placements that can be seen through; continuity of the points; what random cases cover.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/integrators/contact_cases.h"

namespace backdrive {
namespace {

using V = Vec3<double>;
using test::ContactPoint;
using test::PairCase;
using test::PairKinds;
using test::Points;
using test::Random;
using K = test::ShapeKind;

double norm(const V& v) {
  return std::sqrt(dot(v, v));
}

PairCase place(PairKinds kinds, const V& scale_a, const V& at, const V& scale_b, const Mat3<double>& axes) {
  return {test::geometry_of(kinds.a),
          test::geometry_of(kinds.b),
          {{axes, at}, scale_a},
          {{identity3<double>(), {0, 0, 0}}, scale_b}};
}
void expect_near(const V& a, const V& b, double tolerance) {
  EXPECT_NEAR(norm(a - b), 0, tolerance) << a.x << " " << a.y << " " << a.z;
}
const Mat3<double> kUpright = identity3<double>();
const Mat3<double> kAlongX = test::turn({0, M_PI / 2, 0});

TEST(ContactPlacements, Spheres) {
  const Points p = test::points_of(place({K::sphere, K::sphere}, {0.2, 0, 0}, {0.5, 0, 0}, {0.4, 0, 0}, kUpright));
  EXPECT_NEAR(p[0].gap, -0.1, 1e-15);
  expect_near(p[0].normal, {1, 0, 0}, 1e-15);
  expect_near(p[0].point, {0.35, 0, 0}, 1e-15);
}

/// Parallel capsules, overlapping over z in [0.1, 0.5]: a point at either end of the overlap.
TEST(ContactPlacements, ParallelCapsules) {
  const Points p =
      test::points_of(place({K::capsule, K::capsule}, {0.1, 0.5, 0}, {0.15, 0, 0.6}, {0.1, 0.5, 0}, kUpright));
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(p[i].gap, -0.05, 1e-9);  // the places are drawn along by β: its square
    EXPECT_NEAR(p[i].point.z, i == 0 ? 0.1 : 0.5, 0.11);
    expect_near(p[i].normal, {1, 0, 0}, 0.02);
  }
}

TEST(ContactPlacements, CapsuleOnBox) {
  // lying on the top face: its two ends, found to ε/β by a tilt of ε
  Points p = test::points_of(place({K::capsule, K::box}, {0.1, 0.3, 0}, {0.2, 0, 0.59}, {1, 1, 0.5}, kAlongX));
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(p[i].gap, -0.01, 1e-15);
    expect_near(p[i].normal, {0, 0, 1}, 1e-15);
    expect_near(p[i].point, {0.2 + (i == 0 ? -0.3 : 0.3), 0, 0.495}, 3e-11);
  }
  // reaching past the rim: one end, and the rim
  p = test::points_of(place({K::capsule, K::box}, {0.1, 0.3, 0}, {0.9, 0, 0.59}, {1, 1, 0.5}, kAlongX));
  expect_near(p[0].point, {0.6, 0, 0.495}, 3e-11);
  EXPECT_NEAR(p[1].point.x, 1.0, 2e-3);  // past the rim by β |u| / (distance gained per length)
  EXPECT_NEAR(p[1].gap, -0.01, 1e-5);
}

TEST(ContactPlacements, SphereInsideBox) {
  const Points p = test::points_of(place({K::sphere, K::box}, {0.1, 0, 0}, {0.2, -0.7, 0.1}, {1, 1, 1}, kUpright));
  EXPECT_NEAR(p[0].gap, -0.4, 1e-15);
  expect_near(p[0].normal, {0, -1, 0}, 0);
  expect_near(p[0].point, {0.2, -0.8, 0.1}, 1e-15);
}

/// Four points at the corners, whichever way rounding takes the choice between the two faces.
TEST(ContactPlacements, BoxesOfOneSizeInAStack) {
  for (double shift : {-1e-9, -1e-16, 0.0, 1e-16, 1e-9}) {
    const Points p = test::points_of(
        place({K::box, K::box}, {0.5, 0.5, 0.5}, {shift, shift, 0.999}, {0.5, 0.5, 0.5}, test::turn({0, 0, shift})));
    V sum{0, 0, 0};
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(p[i].gap, -0.001, 1e-12);
      expect_near(p[i].normal, {0, 0, 1}, 1e-12);
      EXPECT_NEAR(std::abs(p[i].point.x), 0.5, 1e-8);
      EXPECT_NEAR(std::abs(p[i].point.y), 0.5, 1e-8);
      EXPECT_NEAR(p[i].point.z, 0.4995, 1e-12);
      sum += p[i].point;
    }
    expect_near(sum, {0, 0, 4 * 0.4995}, 1e-7);
    EXPECT_TRUE(test::is_far(p[4]));
  }
}

/// No corner of one is over the other: four points at the corners of the square that they share.
TEST(ContactPlacements, CrossedPlanks) {
  const Points p =
      test::points_of(place({K::box, K::box}, {1, 0.1, 0.05}, {0, 0, 0.099}, {0.1, 1, 0.05}, test::turn({0, 0, 0})));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(p[i].gap, -0.001, 1e-15);
    EXPECT_NEAR(std::abs(p[i].point.x), 0.1, 1e-15);
    EXPECT_NEAR(std::abs(p[i].point.y), 0.1, 1e-15);
  }
}

TEST(ContactPlacements, BoxEdgeAcrossBoxEdge) {
  // both standing on an edge: A's along y below, B's along x above
  const Mat3<double> on_edge_y = test::turn({0, M_PI / 4, 0}), on_edge_x = test::turn({M_PI / 4, 0, 0});
  const double reach = std::sqrt(2.0);
  PairCase c = place({K::box, K::box}, {1, 1, 1}, {0.1, 0.2, 2 * reach - 0.01}, {1, 1, 1}, on_edge_y);
  c.b.pose.axes = on_edge_x;
  const Points p = test::points_of(c);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(test::is_far(p[i]));
  EXPECT_NEAR(p[4].gap, -0.01, 1e-14);
  expect_near(p[4].normal, {0, 0, 1}, 1e-14);
  expect_near(p[4].point, {0.1, 0, reach - 0.005}, 1e-14);
}

TEST(ContactPlacements, MeshesThatLieOnEachOther) {
  // crossed planks as meshes: the crossings of the edges
  PairCase c = place({K::box, K::box}, {1, 0.1, 0.05}, {0, 0, 0.099}, {0.1, 1, 0.05}, kUpright);
  c.ga.kind = c.gb.kind = K::mesh;
  int crossings = 0;
  for (const ContactPoint<double>& p : test::points_of(c)) {
    if (test::is_far(p)) continue;
    ++crossings;
    EXPECT_NEAR(p.gap, -0.001, 1e-14);
    expect_near(p.normal, {0, 0, 1}, 1e-14);
    EXPECT_NEAR(std::abs(p.point.x) + std::abs(p.point.y), 0.2, 1e-14);
  }
  EXPECT_EQ(crossings, 4);
  // a smaller one on a larger one: the smaller one's corners
  c.a.scale = {0.05, 0.08, 0.05};
  int corners = 0;
  for (const ContactPoint<double>& p : test::points_of(c)) corners += std::abs(p.gap + 0.001) < 1e-14;
  EXPECT_EQ(corners, 4);
}

TEST(ContactPlacements, Cylinder) {
  // upright: the lower rim's four points and the face's centre carry, all at one height
  Points p = test::points_of(place({K::cylinder, K::plane}, {0.2, 0.3, 0}, {0, 0, 0.29}, {0, 0, 0}, kUpright));
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(p[i].gap, -0.01, 1e-15);
    EXPECT_NEAR(norm({p[i].point.x, p[i].point.y, 0}), i == 0 ? 0 : 0.2, 1e-15);
    EXPECT_NEAR(p[5 + i].gap, 0.59, 1e-15);
  }
  // lying: one point at either end, the others drawn into the axis
  p = test::points_of(place({K::cylinder, K::plane}, {0.2, 0.3, 0}, {0, 0, 0.19}, {0, 0, 0}, kAlongX));
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(p[i].gap, i % 5 == 0 ? -0.01 : 0.19, 1e-15);
}

/// A sphere over the line between the two triangles of a box's face, which is no edge of its mesh.
TEST(ContactPlacements, SphereOverTheDiagonalOfAFace) {
  for (int i = 0; i <= 100; ++i) {
    const double x = -0.9 + 0.018 * i;
    PairCase c = place({K::sphere, K::box}, {0.1, 0, 0}, {x / 3, x / 7, 1.09}, {1.0 / 3, 1.0 / 7, 1}, kUpright);
    c.gb.kind = K::mesh;
    EXPECT_NEAR(test::points_of(c)[0].gap, -0.01, 1e-14);
  }
}

// ---- what the random cases cover, and what is continuous ------------------------------------------------------------

/// Spheres meet all sorts of features of a box, outside and inside.
TEST(RandomCases, CoverFacesEdgesAndVertices) {
  Random random(47);
  int met[4] = {0, 0, 0, 0};
  for (int i = 0; i < 400; ++i) {
    const PairCase c = test::random_case({K::sphere, K::box}, random);
    const V n = transposed_times(c.b.pose.axes, test::points_of(c)[0].normal);
    ++met[(std::abs(n.x) > 1e-9) + (std::abs(n.y) > 1e-9) + (std::abs(n.z) > 1e-9)];
  }
  EXPECT_EQ(met[0], 0);
  for (int k = 1; k <= 3; ++k) EXPECT_GT(met[k], 20) << k;
}

/// Points as close together as the shapes' placements: of every point, the next placement has one nearby.
double largest_jump(const Points& before, const Points& after) {
  double worst = 0;  // also when there is none before
  for (const ContactPoint<double>& p : before) {
    double nearest = 1e9;
    for (const ContactPoint<double>& q : after) {
      const double change = std::abs(p.gap - q.gap) + (test::is_far(p) ? 0 : norm(p.point - q.point));
      nearest = std::min(nearest, change);
    }
    worst = std::max(worst, nearest);
  }
  return worst;
}

/// A box that slides and turns on another, past its rims: four points throughout, none moving faster than some lengths
/// per length.
TEST(ContactContinuity, BoxSlidingOnABox) {
  constexpr double step = 1e-4;
  Points before;
  for (double way = -0.9; way < 0.9; way += step) {
    const Points p = test::points_of(
        place({K::box, K::box}, {0.5, 0.3, 0.1}, {way, 0.3 * way, 0.299}, {0.5, 0.5, 0.2}, test::turn({0, 0, way})));
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(p[i].gap, -0.001, 1e-12);
    EXPECT_LT(largest_jump(before, p), 10 * step) << "at " << way;
    before = p;
  }
}

/// A capsule that turns over another, through parallel: the points run from ends to crossing within about √β.
TEST(ContactContinuity, CapsuleTurningOverACapsule) {
  const double step = 0.01 * std::sqrt(contact::kSegmentPull);
  Points before;
  for (double angle = -0.05; angle < 0.05; angle += step) {
    const Points p = test::points_of(
        place({K::capsule, K::capsule}, {0.1, 0.5, 0}, {0.19, 0.02, 0.3}, {0.1, 0.5, 0}, test::turn({angle, 0, 0})));
    for (const ContactPoint<double>& q : p) EXPECT_NEAR(q.gap, -0.01, 0.01);
    EXPECT_LT(largest_jump(before, p), 0.05) << "at " << angle;
    before = p;
  }
}

}  // namespace
}  // namespace backdrive
