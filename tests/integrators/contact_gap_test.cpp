// Gaps of all pairs by another route: all features tried, or many points of a surface.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/integrators/contact_cases.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using V = Vec3<double>;
using test::CaseOptions;
using test::ContactPoint;
using test::PairCase;
using test::PairKinds;
using test::Points;
using test::Random;
using K = test::ShapeKind;

double norm(const V& v) {
  return std::sqrt(dot(v, v));
}

// ---- distance of rounded polyhedra by trying all features -----------------------------------------------------------

struct Polyhedron {
  std::vector<V> vertices;
  std::vector<std::array<int, 2>> edges;
  std::vector<std::array<int, 3>> faces;
  double radius = 0;
};

Polyhedron polyhedron_of(const test::Geometry<double>& g, const test::Shape<double>& s) {
  Polyhedron p;
  const auto place = [&](const V& q) { p.vertices.push_back(contact::carried_point(s.pose, q)); };
  if (g.kind == K::sphere || g.kind == K::capsule) {
    p.radius = s.scale.x;
    place({0, 0, -s.scale.y});
    if (g.kind == K::capsule) place({0, 0, s.scale.y}), p.edges.push_back({0, 1});
    return p;
  }
  for (int i = 0; i < g.mesh.vertex_count; ++i) place(contact::times(s.scale, contact::vertex<double>(g.mesh, i)));
  for (int i = 0; i < g.mesh.edge_count; ++i) p.edges.push_back({g.mesh.edges[4 * i], g.mesh.edges[4 * i + 1]});
  for (int i = 0; i < g.mesh.face_count; ++i) {
    p.faces.push_back({g.mesh.faces[3 * i], g.mesh.faces[3 * i + 1], g.mesh.faces[3 * i + 2]});
  }
  return p;
}

double point_segment(const V& x, const V& a, const V& b) {
  const V w = b - a;
  const double square = dot(w, w), s = square > 0 ? std::clamp(dot(x - a, w) / square, 0.0, 1.0) : 0;
  return norm(x - a - w * s);
}
/// A convex function of the place on the first: golden section.
double segment_segment(const V& a, const V& b, const V& c, const V& d) {
  const double golden = 0.6180339887498949;
  double low = 0, high = 1;
  for (int i = 0; i < 70; ++i) {
    const double l = high - golden * (high - low), h = low + golden * (high - low);
    (point_segment(a + (b - a) * l, c, d) < point_segment(a + (b - a) * h, c, d) ? high : low) =
        point_segment(a + (b - a) * l, c, d) < point_segment(a + (b - a) * h, c, d) ? h : l;
  }
  return point_segment(a + (b - a) * low, c, d);
}
/// Distance in front of the triangle when x stands over its inside; large otherwise.
double point_face(const V& x, const V& a, const V& b, const V& c) {
  const V area = cross(b - a, c - a), n = area * (1 / norm(area));
  const V p[3] = {a, b, c};
  for (int i = 0; i < 3; ++i) {
    if (dot(cross(n, p[(i + 1) % 3] - p[i]), x - p[i]) < 0) return 1e9;
  }
  return std::abs(dot(n, x - a));
}

/// The greatest gap between planes along any normal of a face and any product of two edges: depth when negative.
double separation(const Polyhedron& a, const Polyhedron& b) {
  double best = -1e9;
  const auto along = [&](const V& v) {
    if (norm(v) < 1e-9) return;
    const V n = v * (1 / norm(v));
    double low[2] = {1e9, 1e9}, high[2] = {-1e9, -1e9};
    for (const V& x : a.vertices) low[0] = std::min(low[0], dot(n, x)), high[0] = std::max(high[0], dot(n, x));
    for (const V& x : b.vertices) low[1] = std::min(low[1], dot(n, x)), high[1] = std::max(high[1], dot(n, x));
    best = std::max({best, low[0] - high[1], low[1] - high[0]});
  };
  for (const Polyhedron* p : {&a, &b}) {
    for (const auto& f : p->faces) {
      along(cross(p->vertices[f[1]] - p->vertices[f[0]], p->vertices[f[2]] - p->vertices[f[0]]));
    }
  }
  for (const auto& e : a.edges) {
    for (const auto& f : b.edges) {
      along(cross(a.vertices[e[1]] - a.vertices[e[0]], b.vertices[f[1]] - b.vertices[f[0]]));
    }
  }
  return best;
}

double distance(const Polyhedron& a, const Polyhedron& b) {
  double best = 1e9;
  for (const V& x : a.vertices) {
    for (const V& y : b.vertices) best = std::min(best, norm(x - y));
    for (const auto& e : b.edges) best = std::min(best, point_segment(x, b.vertices[e[0]], b.vertices[e[1]]));
    for (const auto& f : b.faces) {
      best = std::min(best, point_face(x, b.vertices[f[0]], b.vertices[f[1]], b.vertices[f[2]]));
    }
  }
  for (const V& x : b.vertices) {
    for (const auto& e : a.edges) best = std::min(best, point_segment(x, a.vertices[e[0]], a.vertices[e[1]]));
    for (const auto& f : a.faces) {
      best = std::min(best, point_face(x, a.vertices[f[0]], a.vertices[f[1]], a.vertices[f[2]]));
    }
  }
  for (const auto& e : a.edges) {
    for (const auto& f : b.edges) {
      best = std::min(best, segment_segment(a.vertices[e[0]], a.vertices[e[1]], b.vertices[f[0]], b.vertices[f[1]]));
    }
  }
  return best;
}

struct Exact {
  double gap;
  bool cores_apart;  ///< the polyhedra without their radii do not overlap
};
Exact exact_gap(const PairCase& c) {
  const Polyhedron a = polyhedron_of(c.ga, c.a), b = polyhedron_of(c.gb, c.b);
  const double depth = a.faces.empty() && b.faces.empty() ? 0 : separation(a, b);
  const bool apart = depth >= 0;
  return {(apart ? distance(a, b) : depth) - a.radius - b.radius, apart};
}

/// Golden section finds a place to √ε and so a distance to ε, relative to lengths of 1.
constexpr double kExact = 1e-12;

class RoundGaps : public testing::TestWithParam<PairKinds> {};
INSTANTIATE_TEST_SUITE_P(All, RoundGaps,
                         testing::Values(PairKinds{K::sphere, K::sphere}, PairKinds{K::sphere, K::capsule},
                                         PairKinds{K::sphere, K::box}, PairKinds{K::sphere, K::mesh},
                                         PairKinds{K::capsule, K::capsule}, PairKinds{K::capsule, K::box},
                                         PairKinds{K::capsule, K::mesh}),
                         [](const auto& info) { return test::name_of(info.param); });

TEST_P(RoundGaps, AreDistances) {
  Random random(23);
  for (double low : {-0.15, -0.03, 0.02}) {
    CaseOptions options;
    options.low = low, options.high = low + 0.05;
    for (int i = 0; i < 100; ++i) {
      const PairCase c = test::random_case(GetParam(), random, options);
      const Exact exact = exact_gap(c);
      const double gap = test::least_gap(test::points_of(c));
      if (GetParam().a == K::sphere) {
        EXPECT_NEAR(gap, exact.gap, kExact);
      } else if (exact.cores_apart) {
        // kSegmentPull: at most β (|u|² + |v|²) / 2(gap + radii) more than exact
        const double reach = exact.gap + c.a.scale.x + (GetParam().b == K::capsule ? c.b.scale.x : 0);
        const double lengths =
            4 * (c.a.scale.y * c.a.scale.y + (GetParam().b == K::capsule ? c.b.scale.y * c.b.scale.y : 0));
        EXPECT_GE(gap, exact.gap - kExact);
        EXPECT_LE(gap, exact.gap + contact::kSegmentPull * lengths / (2 * reach) + kExact);
      }
    }
  }
}

/// Box and mesh among each other, a little inside: the deepest point has the depth of least penetration unless an edge
/// or vertex of one lies past the rim of the other's face, which is rare, and never more than that (boxes: than that of
/// the best face, which may be by kFaceBias short of edges').
TEST(PolyhedronGaps, AreDepths) {
  Random random(29);
  for (const PairKinds kinds : {PairKinds{K::box, K::box}, PairKinds{K::box, K::mesh}, PairKinds{K::mesh, K::mesh}}) {
    CaseOptions options;
    options.low = -0.01, options.high = -0.002;
    int same = 0;
    constexpr int cases = test::kSanitized ? 12 : 60;
    for (int i = 0; i < cases; ++i) {
      const PairCase c = test::random_case(kinds, random, options);
      const double gap = test::least_gap(test::points_of(c)), exact = exact_gap(c).gap;
      const double bias = kinds.b == K::box ? contact::kFaceBias * 0.4 : contact::kFarGap;
      EXPECT_GE(gap, exact - bias - kExact);
      same += std::abs(gap - exact) < 1e-10;
    }
    EXPECT_GE(same, cases * 3 / 4) << test::name_of(kinds);
  }
}

// ---- cylinders and ellipsoids by their support functions ------------------------------------------------------------

/// The furthest that a shape reaches along a unit direction.
double reach(const test::Geometry<double>& g, const test::Shape<double>& s, const V& n) {
  const V m = transposed_times(s.pose.axes, n);
  const double o = dot(n, s.pose.origin);
  switch (g.kind) {
    case K::sphere:
      return o + s.scale.x;
    case K::capsule:
      return o + s.scale.x + s.scale.y * std::abs(m.z);
    case K::cylinder:
      return o + s.scale.x * std::hypot(m.x, m.y) + s.scale.y * std::abs(m.z);
    case K::ellipsoid:
      return o + norm(contact::times(s.scale, m));
    default: {
      double most = -1e9;
      for (int i = 0; i < g.mesh.vertex_count; ++i) {
        most = std::max(most, dot(m, contact::times(s.scale, contact::vertex<double>(g.mesh, i))));
      }
      return o + most;
    }
  }
}
/// The gap between two planes with that normal, from B to A, that hold them.
double separation_along(const PairCase& c, const V& n) {
  return -reach(c.ga, c.a, -n) - reach(c.gb, c.b, n);
}
/// The greatest, along any direction: a distance, or the depth of least penetration. By steps at
/// random, from several directions at random.
double greatest_separation(const PairCase& c, Random& random) {
  double best = -1e9;
  for (int start = 0; start < 40; ++start) {
    V n = contact::direction(V{random.symmetric(1), random.symmetric(1), random.symmetric(1)});
    double here = separation_along(c, n);
    int failed = 0;
    for (double step = 0.5; step > 1e-8;) {
      const V m = contact::direction(n + V{random.symmetric(step), random.symmetric(step), random.symmetric(step)});
      const double there = separation_along(c, m);
      if (there > here) {
        here = there, n = m, failed = 0;
      } else if (++failed > 12) {
        step *= 0.6, failed = 0;
      }
    }
    best = std::max(best, here);
  }
  return best;
}

constexpr PairKinds kOnCylinder[] = {{K::sphere, K::cylinder},
                                     {K::capsule, K::cylinder},
                                     {K::box, K::cylinder},
                                     {K::cylinder, K::cylinder},
                                     {K::cylinder, K::mesh}};

/// The rims of samples are regularised (kRimWidth). Where the deepest place of one lies past the other's rim, what is
/// told is the depth of the features that do meet; that is rare, but where the two stand nearly parallel.
TEST(CylinderGaps, AreSeparations) {
  Random random(61);
  for (const PairKinds kinds : kOnCylinder) {
    for (const double tilt : {4., 0.01}) {
      CaseOptions options;
      options.low = -0.01, options.high = -0.002, options.tilt = tilt;
      const int cases = test::kSanitized ? 8 : 50;
      int same = 0;
      for (int i = 0; i < cases; ++i) {
        const PairCase c = test::random_case(kinds, random, options);
        const double gap = test::least_gap(test::points_of(c)), exact = greatest_separation(c, random);
        const bool round = kinds.a == K::sphere || kinds.a == K::capsule;
        const double above = round ? 1e-4 : 0.31 * contact::kRimWidth * std::max(c.a.scale.x, c.b.scale.x);
        const bool is_same = gap > exact - 1e-4 && gap < exact + above;
        EXPECT_TRUE(is_same || !round) << test::name_of(kinds) << " " << gap << " " << exact;
        EXPECT_LT(gap, 0.02) << test::name_of(kinds);  // something touches
        same += is_same;
      }
      EXPECT_GE(same, cases * 9 / 10) << test::name_of(kinds) << ", tilt " << tilt;
    }
  }
}

/// Puts A along a way from B, up to that far, where it stops being too near, by so many halvings.
template <class TooNear>
void part_along(PairCase& c, const V& way, double furthest, int halvings, const TooNear& too_near) {
  const V from = c.b.pose.origin;
  double low = 0, high = furthest;
  for (int k = 0; k < halvings; ++k) {
    const double middle = 0.5 * (low + high);
    c.a.pose.origin = from + way * middle;
    (too_near() ? low : high) = middle;
  }
}

/// Two cylinders of these sizes at random, `depth` in each other by the depth of least penetration.
PairCase cylinders_at(const V (&scale)[2], double depth, Random& random) {
  PairCase c = test::random_case({K::cylinder, K::cylinder}, random);
  c.a.scale = scale[0], c.b.scale = scale[1];
  const V way = contact::direction(test::random_point(random, 1));
  part_along(c, way, 1, 14, [&] { return greatest_separation(c, random) < -depth; });
  return c;
}

// Thin ones meet at rims of ends that do not look at each other, and near the rim of a face: one pair of discs in
// twenty came 2 mm into each other, and further, before anything touched.
TEST(CylinderGaps, OfDiscsCansAndRodsAreSeparations) {
  Random random(73);
  const V disc{0.1, 0.01, 0}, coin{0.05, 0.005, 0}, can{0.1, 0.1, 0}, rod{0.01, 0.1, 0};
  const V pairs[][2] = {{disc, disc}, {disc, coin}, {disc, can}, {disc, rod}, {can, can}, {can, rod}, {rod, rod}};
  for (const auto& pair : pairs) {
    for (int i = 0; i < (test::kSanitized ? 2 : 40); ++i) {
      const PairCase c = cylinders_at(pair, 0.001, random);
      const double gap = test::least_gap(test::points_of(c)), exact = greatest_separation(c, random);
      EXPECT_GT(gap, exact - 2e-4) << pair[0].x << " " << pair[1].x << " " << i;
      EXPECT_LT(gap, exact + 0.31 * contact::kRimWidth * 0.1 + 1e-4) << pair[0].x << " " << pair[1].x << " " << i;
    }
  }
}

/// One deep in the other is always told of.
TEST(CylinderGaps, OfWhatIsDeepInsideAreNegative) {
  Random random(67);
  for (const PairKinds kinds : kOnCylinder) {
    for (int i = 0; i < 40; ++i) {
      PairCase c = test::random_case(kinds, random);
      c.a.pose.origin = c.b.pose.origin + V{random.symmetric(0.02), random.symmetric(0.02), random.symmetric(0.02)};
      EXPECT_LT(test::least_gap(test::points_of(c)), 0) << test::name_of(kinds) << " " << i;
    }
  }
}

/// Ellipsoids, some up to forty times as long as they are thick, as far from the other shape, or in it, as `gap` says.
PairCase flat_case(K other, bool flat, double gap, Random& random) {
  PairCase c = test::random_case({K::ellipsoid, other}, random);
  if (flat) (random.uniform(0, 1) < 0.5 ? c.a.scale.x : c.a.scale.z) *= random.uniform(0.1, 1);
  const V way = contact::direction(c.a.pose.origin - c.b.pose.origin);
  part_along(c, way, 2, 40, [&] { return test::least_gap(test::points_of(c)) < gap; });
  return c;
}

constexpr K kUnderEllipsoid[] = {K::ellipsoid, K::sphere, K::capsule, K::box, K::cylinder, K::mesh};

/// A separation along the normal, and none is greater: to rounding of lengths of 1. Flat ones, whose rims' radii of
/// curvature are down to 0.3 mm, less deep in the other: beyond these several ways out are as short.
TEST(EllipsoidGaps, AreSeparations) {
  Random random(71);
  for (const K other : kUnderEllipsoid) {
    for (int i = 0; i < (test::kSanitized ? 10 : 80); ++i) {
      const bool flat = i % 2;
      const PairCase c = flat_case(other, flat, random.uniform(flat ? -0.002 : -0.01, 0.05), random);
      const ContactPoint<double> p = test::points_of(c)[0];
      EXPECT_NEAR(p.gap, separation_along(c, p.normal), 1e-12) << test::name_of(other) << " " << i;
      EXPECT_GT(p.gap, greatest_separation(c, random) - 1e-12) << test::name_of(other) << " " << i;
    }
  }
}

// Inside, near the rim of a flat one, the equation that is solved for the nearest place takes the most steps.
TEST(EllipsoidGaps, NearestPlacesInsideAreFound) {
  Random random(83);
  for (const double flat : {0.1, 0.025}) {
    for (int i = 0; i < 300; ++i) {
      const V e{random.uniform(0.1, 0.3), random.uniform(0.1, 0.3), flat * random.uniform(0.1, 0.3)};
      const double angle = random.symmetric(M_PI), in = 1 - flat * random.uniform(0, 0.5);
      const V y{e.x * std::cos(angle) * in, e.y * std::sin(angle) * in, e.z * random.symmetric(0.1)};
      const V m = contact::normal_towards(e, y), on = contact::times(e, contact::direction(contact::times(e, m)));
      EXPECT_LT(norm(cross(y - on, m)), 1e-9) << flat << " " << i;
    }
  }
}

// An ellipsoid that is a disc without thickness, or a line, and one that is a point.
TEST(EllipsoidGaps, RadiiOfZeroAreFine) {
  Random random(79);
  for (const K other : kUnderEllipsoid) {
    for (const V& kept : {V{1, 1, 0}, V{0, 1, 0}, V{0, 0, 0}}) {
      // Its gap is at least 0.03 to 1e-3, and that of what is inside it no less.
      PairCase c = test::random_case({K::ellipsoid, other}, random, {0.03, 0.05, 4});
      c.a.scale = contact::times(c.a.scale, kept);
      const ContactPoint<double> p = test::points_of(c)[0];
      EXPECT_NEAR(p.gap, separation_along(c, p.normal), 1e-12) << test::name_of(other);
      EXPECT_GT(p.gap, 0.029 - 1e-12) << test::name_of(other);
      const test::PairMotion bar = test::points_adjoint(c, {{1, {1, 1, 1}, {1, 1, 1}}});
      EXPECT_TRUE(std::isfinite(test::inner(bar, bar))) << test::name_of(other);
    }
  }
}

TEST(EllipsoidGaps, OfWhatIsDeepInsideAreNegative) {
  Random random(73);
  for (const K other : kUnderEllipsoid) {
    for (int i = 0; i < 40; ++i) {
      PairCase c = test::random_case({K::ellipsoid, other}, random);
      c.a.scale.z *= random.uniform(0.1, 1);
      c.a.pose.origin = c.b.pose.origin + V{random.symmetric(0.02), random.symmetric(0.02), random.symmetric(0.02)};
      EXPECT_LT(test::least_gap(test::points_of(c)), 0) << test::name_of(other) << " " << i;
    }
  }
}

// ---- grounds --------------------------------------------------------------------------------------------------------

/// The lowest of many points on the surface; above the lowest of all by less than `coarse` squared times curvatures.
double sampled_height(const PairCase& c) {
  const V &n = c.b.pose.axes.cz, &s = c.a.scale;
  double least = 1e9;
  constexpr int steps = 400;
  const auto take = [&](const V& q) {
    least = std::min(least, dot(n, contact::carried_point(c.a.pose, q) - c.b.pose.origin));
  };
  for (int i = 0; i < 2 * steps; ++i) {
    const double phi = M_PI * i / steps;
    if (c.ga.kind == K::cylinder) {
      for (double end : {-s.y, s.y}) take({s.x * std::cos(phi), s.x * std::sin(phi), end});
      continue;
    }
    for (int j = 0; j <= steps; ++j) {
      const double theta = M_PI * j / steps;
      const V u{std::sin(theta) * std::cos(phi), std::sin(theta) * std::sin(phi), std::cos(theta)};
      if (c.ga.kind == K::ellipsoid) take(contact::times(s, u));
      if (c.ga.kind == K::sphere) take(u * s.x);
      if (c.ga.kind == K::capsule) take(u * s.x + V{0, 0, u.z < 0 ? -s.y : s.y});
    }
  }
  return least;
}

TEST(PlaneGaps, AreHeights) {
  Random random(31);
  // half a step of 2π/800 off the lowest point, twice: R (π/800)² for radii up to 0.4, and curvatures up to 4 times
  // that
  const double coarse = 4 * 0.4 * std::pow(M_PI / 800, 2);
  for (K kind : {K::sphere, K::ellipsoid, K::capsule, K::cylinder, K::box, K::mesh}) {
    for (int i = 0; i < 10; ++i) {
      const PairCase c = test::random_case({kind, K::plane}, random);
      const double gap = test::least_gap(test::points_of(c));
      if (kind == K::box || kind == K::mesh) {
        double least = 1e9;
        for (const V& x : polyhedron_of(c.ga, c.a).vertices) {
          least = std::min(least, dot(c.b.pose.axes.cz, x - c.b.pose.origin));
        }
        EXPECT_NEAR(gap, least, 1e-14);
        continue;
      }
      const double sampled = sampled_height(c);
      const double regularised = kind == K::cylinder ? 0.31 * contact::kRimWidth * c.a.scale.x : 0;
      EXPECT_LE(gap, sampled + regularised + 1e-14) << test::name_of(kind);
      EXPECT_GE(gap, sampled - coarse) << test::name_of(kind);
    }
  }
}

/// Spheres above the field: nearest of many points of all triangles. Probes of boxes: height over the triangle.
TEST(FieldGaps, AreDistances) {
  Random random(37);
  constexpr int steps = 60;
  for (int i = 0; i < 20; ++i) {
    const PairCase c = test::random_case({K::sphere, K::height_field}, random);
    const V x = contact::local_point(c.b.pose, c.a.pose.origin);
    const auto& field = c.gb.field;
    double least = 1e9;
    for (double cx = 0; cx < field.nx - 1; ++cx) {
      for (double cy = 0; cy < field.ny - 1; ++cy) {
        const auto cell = contact::field_cell(field, cx, cy);
        for (int t = 0; t < 2; ++t) {
          const auto triangle = cell.triangle(t);
          for (int a = 0; a <= steps; ++a) {
            for (int b = 0; a + b <= steps; ++b) {
              const V q = triangle.v[0] + (triangle.v[1] - triangle.v[0]) * (a / double(steps)) +
                          (triangle.v[2] - triangle.v[0]) * (b / double(steps));
              least = std::min(least, norm(x - contact::times(c.b.scale, q)));
            }
          }
        }
      }
    }
    const double gap = test::points_of(c)[0].gap, reach = gap + c.a.scale.x;
    const double coarse = std::pow(0.6 / steps, 2) / (2 * reach);  // cells of 0.6: at most one step off
    EXPECT_LE(gap, least - c.a.scale.x + 1e-12);
    EXPECT_GE(gap, least - c.a.scale.x - coarse);
  }
}

// ---- swapped --------------------------------------------------------------------------------------------------------

/// The same set of points with normals turned; boxes' faces choose the same reference either way.
TEST(SwappedPairs, TurnNormalsAndKeepPoints) {
  Random random(41);
  for (const PairKinds kinds : test::all_pairs()) {
    for (int i = 0; i < 30; ++i) {
      const PairCase c = test::random_case(kinds, random);
      const Points there = test::points_of(c);
      for (const ContactPoint<double>& q : test::points_of({c.gb, c.ga, c.b, c.a})) {
        double nearest = 1e9;
        for (const ContactPoint<double>& p : there) {
          nearest = std::min(nearest, std::abs(p.gap - q.gap) + norm(p.point - q.point) +
                                          (test::is_far(p) ? 0 : norm(p.normal + q.normal)));
        }
        EXPECT_LT(nearest, 1e-9) << test::name_of(kinds);  // ε/β where segments are nearly parallel
      }
    }
  }
}

}  // namespace
}  // namespace backdrive
