// Convex hulls against their definition: every point inside every face, vertices among the points, Euler's formula.
#include "models/meshes/convex_mesh.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/error.h"
#include "engine/rotation.h"

namespace backdrive {
namespace {

using Point = Vec3<double>;

double length(const Point& v) {
  return std::sqrt(dot(v, v));
}

bool operator==(const Point& a, const Point& b) {
  return a.x == b.x && a.y == b.y && a.z == b.z;
}

Point turned(const Point& p) {
  const double q[4] = {0.1, -0.3, 0.5, std::sqrt(1 - 0.35)};
  return rotation_matrix(q[0], q[1], q[2], q[3]) * p;
}

std::vector<Point> random_points(int count, unsigned seed, bool on_sphere) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    const Point p{normal(random), normal(random), normal(random)};
    points.push_back(on_sphere ? p * (1 / length(p)) : p);
  }
  return points;
}

/// Corners of a box, points inside it and on its faces and edges, some twice, turned and moved.
std::vector<Point> box_points(const Point& size, double noise = 0) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> u(-1, 1);
  std::vector<Point> points;
  for (int i = 0; i <= 4; ++i) {
    for (int j = 0; j <= 4; ++j) {
      for (int k = 0; k <= 4; ++k) {
        const Point p{size.x * i / 4, size.y * j / 4, size.z * k / 4};
        points.push_back(turned(p) + Point{7, -2, 3} + Point{u(random), u(random), u(random)} * noise);
        if ((i + j + k) % 2 == 0) points.push_back(points.back());
      }
    }
  }
  std::shuffle(points.begin(), points.end(), random);
  return points;
}

/// What every hull must be. Distances beyond faces are in `tolerance`.
void expect_hull(const ConvexMesh& hull, const std::vector<Point>& points, double tolerance) {
  // Euler's formula, and every edge in two faces.
  EXPECT_EQ(hull.vertices.size() + hull.faces.size(), hull.edges.size() + 2);
  EXPECT_EQ(hull.face_vertices.size(), 2 * hull.edges.size());
  for (const Point& v : hull.vertices) {
    EXPECT_TRUE(std::any_of(points.begin(), points.end(), [&](const Point& p) { return p == v; }));
  }
  std::set<std::tuple<int, int, int>> sides;  // from, to, face
  for (size_t f = 0; f < hull.faces.size(); ++f) {
    const ConvexMesh::Face& face = hull.faces[f];
    EXPECT_NEAR(length(face.normal), 1, 1e-14);
    for (const Point& p : points) EXPECT_LE(dot(face.normal, p), face.offset + tolerance);
    const auto corners = hull.vertices_of(face);
    ASSERT_GE(corners.size(), 3u);
    EXPECT_EQ(corners[0], *std::min_element(corners.begin(), corners.end()));
    for (size_t k = 0; k < corners.size(); ++k) {
      const int from = corners[k], to = corners[(k + 1) % corners.size()], on = corners[(k + 2) % corners.size()];
      const Point &a = hull.vertices[from], &b = hull.vertices[to], &c = hull.vertices[on];
      EXPECT_NEAR(dot(face.normal, a), face.offset, tolerance);
      EXPECT_GT(dot(face.normal, cross(b - a, c - b)), 0);  // convex, counterclockwise from outside
      sides.insert({from, to, static_cast<int>(f)});
    }
  }
  for (const ConvexMesh::Edge& edge : hull.edges) {
    EXPECT_LT(edge.from, edge.to);
    EXPECT_TRUE(sides.contains({edge.from, edge.to, edge.left}));
    EXPECT_TRUE(sides.contains({edge.to, edge.from, edge.right}));
  }
  EXPECT_FALSE(why_not_closed(triangles_of(hull)));
}

/// Vertices of the hull of points in general position: those with three points on a plane that has all others behind
/// it.
std::vector<Point> brute_force_vertices(const std::vector<Point>& points) {
  std::set<size_t> found;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      for (size_t k = j + 1; k < points.size(); ++k) {
        const Point n = cross(points[j] - points[i], points[k] - points[i]);
        bool before = false, behind = false;
        for (size_t l = 0; l < points.size() && !(before && behind); ++l) {
          if (l == i || l == j || l == k) continue;
          (dot(n, points[l] - points[i]) > 0 ? before : behind) = true;
        }
        if (!(before && behind)) found.insert({i, j, k});
      }
    }
  }
  std::vector<Point> vertices;
  for (size_t i : found) vertices.push_back(points[i]);
  return vertices;
}

TEST(ConvexHull, OfRandomPointsIsThatOfBruteForce) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<Point> points = random_points(40, seed, false);
    const ConvexMesh hull = convex_hull(points, "points");
    expect_hull(hull, points, 1e-14);
    const std::vector<Point> expected = brute_force_vertices(points);
    ASSERT_EQ(hull.vertices.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(hull.vertices[i] == expected[i]);  // in their order, too
    EXPECT_EQ(hull.faces.size(), 2 * expected.size() - 4);
    EXPECT_EQ(hull.full_vertices, static_cast<int>(expected.size()));
    EXPECT_EQ(hull.deviation, 0);
  }
}

TEST(ConvexHull, OfABoxWithRepeatedAndInnerPoints) {
  for (const Point size : {Point{1, 1, 1}, Point{2, 0.1, 0.3}, Point{1, 1, 1e-3}, Point{1e-3, 1e-3, 1}}) {
    const std::vector<Point> points = box_points(size);
    const ConvexMesh hull = convex_hull(points, "box");
    expect_hull(hull, points, 1e-12);
    EXPECT_EQ(hull.vertices.size(), 8u);
    EXPECT_EQ(hull.faces.size(), 6u);
    EXPECT_EQ(hull.edges.size(), 12u);
    EXPECT_LT(hull.deviation, 1e-13);
    EXPECT_NEAR(solid_moments(hull).volume, size.x * size.y * size.z, 1e-12);
  }
}

/// Of float32 files, say.
TEST(ConvexHull, FacesThatAreFlatButForNoiseAreOne) {
  const std::vector<Point> points = box_points({1, 1, 1}, 1e-7);
  const ConvexMesh hull = convex_hull(points, "box");
  expect_hull(hull, points, 1e-6);
  EXPECT_EQ(hull.vertices.size(), 8u);
  EXPECT_EQ(hull.faces.size(), 6u);
  EXPECT_GT(hull.deviation, 1e-9);  // points that the noise put outside
  EXPECT_LT(hull.deviation, 1e-6);
}

TEST(ConvexHull, OfACylinderHasTwoPolygons) {
  std::vector<Point> points;
  for (int i = 0; i < 30; ++i) {
    for (double z : {-0.5, 0.0, 0.5}) points.push_back(turned({std::cos(M_PI * i / 15), std::sin(M_PI * i / 15), z}));
  }
  const ConvexMesh hull = convex_hull(points, "cylinder");
  expect_hull(hull, points, 1e-14);
  EXPECT_EQ(hull.vertices.size(), 60u);
  EXPECT_EQ(hull.faces.size(), 32u);
  EXPECT_EQ(std::count_if(hull.faces.begin(), hull.faces.end(), [](const auto& face) { return face.count == 30; }), 2);
}

// ---- fewer vertices -------------------------------------------------------------------------------------------------

/// Distance of p from the hull by projecting onto its half spaces in turn (Dykstra 1983): slow, and nothing in common
/// with what it checks.
double distance_by_projections(const ConvexMesh& hull, const Point& p) {
  Point x = p;
  std::vector<Point> correction(hull.faces.size());
  for (int sweep = 0; sweep < 3000; ++sweep) {
    for (size_t f = 0; f < hull.faces.size(); ++f) {
      const Point y = x + correction[f];
      const double excess = std::max(0.0, dot(hull.faces[f].normal, y) - hull.faces[f].offset);
      x = y - hull.faces[f].normal * excess;
      correction[f] = y - x;
    }
  }
  return length(p - x);
}

TEST(ConvexHull, WithALimitSaysHowFarItDeviates) {
  const std::vector<Point> points = random_points(200, 5, true);
  double last = 3;
  for (int limit : {4, 8, 16, 32, 64, 128}) {
    const ConvexMesh hull = convex_hull(points, "sphere", limit);
    ASSERT_EQ(hull.vertices.size(), static_cast<size_t>(limit));
    EXPECT_EQ(hull.full_vertices, 200);
    expect_hull(hull, points, hull.deviation + 1e-14);
    // With v vertices, each covers a share of 4π: a cap of height of about 4/v. Twice that is not badly chosen.
    EXPECT_LT(hull.deviation, limit < 16 ? last : 8.0 / limit);
    EXPECT_LT(hull.deviation, last);
    last = hull.deviation;
  }
  const ConvexMesh hull = convex_hull(points, "sphere", 20);
  double farthest = 0;
  for (const Point& p : points) farthest = std::max(farthest, distance_by_projections(hull, p));
  EXPECT_GT(farthest, 0.01);
  EXPECT_NEAR(hull.deviation, farthest, 1e-4 * farthest);
}

TEST(ConvexHull, HasNoMoreThanSixtyFourVerticesByDefault) {
  const ConvexMesh hull = convex_hull(random_points(5000, 6, true), "sphere");
  EXPECT_EQ(hull.vertices.size(), 64u);
  EXPECT_GT(hull.full_vertices, 4900);
  EXPECT_LT(hull.deviation, 0.125);
}

TEST(ConvexHull, KeepsWhatSticksOutUnderALimit) {
  std::vector<Point> points = random_points(1000, 7, true);
  points.push_back({0, 0, 3});
  points.push_back({0, -2, 0});
  const ConvexMesh hull = convex_hull(points, "spikes", 12);
  EXPECT_TRUE(std::any_of(hull.vertices.begin(), hull.vertices.end(), [](const Point& p) { return p.z == 3; }));
  EXPECT_TRUE(std::any_of(hull.vertices.begin(), hull.vertices.end(), [](const Point& p) { return p.y == -2; }));
}

TEST(ConvexHull, IsTheSameEveryTime) {
  const std::vector<Point> points = random_points(3000, 8, true);
  const ConvexMesh first = convex_hull(points, "sphere");
  std::vector<std::vector<char>> elsewhere;  // so that pointers differ
  for (int i = 0; i < 3; ++i) {
    elsewhere.emplace_back(100'000 + 12345 * i);
    const ConvexMesh again = convex_hull(points, "sphere");
    EXPECT_EQ(again.face_vertices, first.face_vertices);
    EXPECT_EQ(again.deviation, first.deviation);
    ASSERT_EQ(again.vertices.size(), first.vertices.size());
    for (size_t v = 0; v < first.vertices.size(); ++v) EXPECT_TRUE(again.vertices[v] == first.vertices[v]);
    for (size_t f = 0; f < first.faces.size(); ++f) EXPECT_TRUE(again.faces[f].normal == first.faces[f].normal);
    for (size_t e = 0; e < first.edges.size(); ++e) {
      EXPECT_EQ(again.edges[e].left, first.edges[e].left);
      EXPECT_EQ(again.edges[e].right, first.edges[e].right);
    }
  }
}

TEST(ConvexHull, DoesNotDependOnPlaceOrSize) {
  const std::vector<Point> points = random_points(300, 9, true);
  const ConvexMesh hull = convex_hull(points, "sphere", 32);
  std::vector<Point> moved;
  for (const Point& p : points) moved.push_back(p * 0x1p-10 + Point{1, 2, 3} * 0x1p-6);
  const ConvexMesh small = convex_hull(moved, "sphere", 32);
  EXPECT_EQ(small.face_vertices, hull.face_vertices);
  EXPECT_NEAR(small.deviation, hull.deviation * 0x1p-10, 1e-12);
}

// ---- what bounds nothing --------------------------------------------------------------------------------------------

std::string message_of(const std::vector<Point>& points, int limit = kDefaultHullVertices) {
  try {
    convex_hull(points, "part.stl", limit);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConvexHull, RefusesWhatBoundsNoVolume) {
  EXPECT_EQ(message_of({}), "part.stl: 0 different points: expected at least 4 that bound a volume");
  const std::vector<Point> same(10, {1, 2, 3});
  EXPECT_EQ(message_of(same), "part.stl: 1 different point: expected at least 4 that bound a volume");
  EXPECT_EQ(message_of({{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {-0.0, 0, 0}}),
            "part.stl: 3 different points: expected at least 4 that bound a volume");
  std::vector<Point> line, plane, film;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> u(-1, 1);
  for (int i = 0; i < 100; ++i) {
    line.push_back(turned({u(random), 0, 0}));
    plane.push_back(turned({u(random), u(random), 0}));
    film.push_back(turned({u(random), u(random), 1e-6 * u(random)}));
  }
  EXPECT_EQ(message_of(line),
            "part.stl: all points lie within 1e-05 of their extent of one line: expected points that bound "
            "a volume");
  EXPECT_EQ(message_of(plane),
            "part.stl: all points lie within 1e-05 of their extent of one plane: expected points that bound "
            "a volume");
  EXPECT_EQ(message_of(film), message_of(plane));
  EXPECT_EQ(message_of({{0, 0, 0}, {1e-10, 0, 0}, {0, 1e-10, 0}, {0, 0, 1e-10}}),
            "part.stl: points 1e-10 apart at most: expected an extent of at least 1e-09");
  EXPECT_EQ(message_of({{0, 0, 0}, {1, 0, NAN}, {0, 1, 0}, {0, 0, 1}}),
            "part.stl: value '[1, 0, nan]' as a point: expected numbers of magnitude up to 1e+09");
  EXPECT_EQ(message_of({{0, 0, 0}, {1, 0, 0}, {0, 1, -INFINITY}, {0, 0, 1}}),
            "part.stl: value '[0, 1, -inf]' as a point: expected numbers of magnitude up to 1e+09");
}

TEST(ConvexHull, RefusesLimitsThatMakeNoSense) {
  const std::vector<Point> points = random_points(10, 1, true);
  EXPECT_EQ(message_of(points, 3), "convex_hull: max_vertices 3: expected 4 to 1024");
  EXPECT_EQ(message_of(points, 1025), "convex_hull: max_vertices 1025: expected 4 to 1024");
  EXPECT_EQ(message_of(points, 4), "accepted");
}

/// Points in few places, on lines and planes through others, in clusters, in needles: what merging faces has to stand.
TEST(ConvexHull, StandsNearlyDegeneratePoints) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> u(-1, 1);
  int made = 0;
  for (int trial = 0; trial < 600; ++trial) {
    std::vector<Point> points;
    const auto any = [&]() -> const Point& { return points[random() % points.size()]; };
    for (int i = 0; i < 40; ++i) {
      Point p{u(random), u(random), u(random)};
      if (trial % 5 == 0) p = {std::round(2 * p.x), std::round(2 * p.y), std::round(2 * p.z) + 1e-7 * u(random)};
      if (trial % 5 == 1 && i > 4) p = any() * 0.5 + any() * 0.5 + p * 1e-7;
      if (trial % 5 == 2 && i > 4) p = any() + p * 1e-6;
      if (trial % 5 == 3) p = {p.x, p.y * 1e-3, p.z * 1e-3};
      if (trial % 5 == 4 && i > 4) p = (any() + any() + any()) * (1.0 / 3);
      points.push_back(turned(p));
    }
    const ConvexMesh hull = convex_hull(points, "points", trial % 3 ? 64 : 4 + trial % 20);
    for (const auto& face : hull.faces) {
      for (int v : hull.vertices_of(face)) EXPECT_NEAR(dot(face.normal, hull.vertices[v]), face.offset, 4e-5);
      for (const Point& p : points) EXPECT_LE(dot(face.normal, p), face.offset + hull.deviation + 1e-12);
    }
    EXPECT_GT(solid_moments(hull).volume, 0);
    made += hull.vertices.size() + hull.faces.size() == hull.edges.size() + 2;
  }
  EXPECT_EQ(made, 600);
}

}  // namespace
}  // namespace backdrive
