// Meshes with fewer triangles.
#include "models/meshes/simplified.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace backdrive {
namespace {

/// A unit ball of 2 · rings · (rings − 1) triangles.
TriangleMesh ball(int rings) {
  TriangleMesh mesh;
  for (int i = 0; i <= rings; ++i) {
    for (int k = 0; k < rings; ++k) {
      const double polar = M_PI * i / rings, around = 2 * M_PI * k / rings;
      mesh.vertices.push_back(
          {std::sin(polar) * std::cos(around), std::sin(polar) * std::sin(around), std::cos(polar)});
    }
  }
  for (int i = 0; i < rings; ++i) {
    for (int k = 0; k < rings; ++k) {
      const int a = i * rings + k, b = i * rings + (k + 1) % rings, c = a + rings, d = b + rings;
      if (i > 0) mesh.triangles.push_back({a, c, b});
      if (i + 1 < rings) mesh.triangles.push_back({b, c, d});
    }
  }
  return mesh;
}

double volume(const TriangleMesh& mesh) {
  return sum_of_cones(mesh, {0, 0, 0}, Cones::by_side).volume;
}

TEST(SimplifiedMeshes, AreSmallAndLookAlike) {
  const TriangleMesh fine = ball(200);
  ASSERT_GT(fine.triangles.size(), 79'000u);
  const TriangleMesh coarse = simplified(fine, 2000);
  EXPECT_LE(coarse.triangles.size(), 2000u);
  EXPECT_GT(coarse.triangles.size(), 500u);  // what was allowed is used
  // Facets of about 0.1 rad: vertices within a cell's half, of a ball of which an eye sees no more.
  for (const Vec3<double>& v : coarse.vertices) EXPECT_NEAR(std::sqrt(dot(v, v)), 1, 0.03);
  EXPECT_NEAR(volume(coarse), volume(fine), 0.03 * volume(fine));
  for (const auto& t : coarse.triangles) {
    EXPECT_EQ(std::set<int>(t.begin(), t.end()).size(), 3u);
    for (const int corner : t) {
      EXPECT_GE(corner, 0);
      EXPECT_LT(corner, static_cast<int>(coarse.vertices.size()));
    }
  }
}

TEST(SimplifiedMeshes, KeepCornersWherePlanesMeet) {
  // A cube of 6 · 40² · 2 triangles: its corners stay where they are, whatever the grid.
  TriangleMesh cube;
  constexpr int n = 40;
  for (int side = 0; side < 6; ++side) {
    const int axis = side / 2, first = static_cast<int>(cube.vertices.size());
    for (int i = 0; i <= n; ++i) {
      for (int k = 0; k <= n; ++k) {
        double x[3];
        x[axis] = side % 2 ? 1 : -1;
        x[(axis + 1) % 3] = 2.0 * i / n - 1;
        x[(axis + 2) % 3] = 2.0 * k / n - 1;
        cube.vertices.push_back({x[0], x[1], x[2]});
      }
    }
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < n; ++k) {
        const int a = first + i * (n + 1) + k, b = a + n + 1;
        cube.triangles.push_back(side % 2 ? std::array{a, b, a + 1} : std::array{a, a + 1, b});
        cube.triangles.push_back(side % 2 ? std::array{b, b + 1, a + 1} : std::array{b, a + 1, b + 1});
      }
    }
  }
  const TriangleMesh coarse = simplified(welded(cube), 600);
  EXPECT_LE(coarse.triangles.size(), 600u);
  // By 1e-3 of the trace the corner is drawn to the mean of its cell, about 0.1 away.
  EXPECT_NEAR(volume(coarse), 8, 8 * 0.002);
}

TEST(SimplifiedMeshes, StayAsTheyAreWhereTheyAreSmall) {
  const TriangleMesh mesh = ball(8);
  const TriangleMesh same = simplified(mesh, mesh.triangles.size());
  EXPECT_EQ(same.triangles, mesh.triangles);
  EXPECT_EQ(same.vertices.size(), mesh.vertices.size());
}

TEST(SimplifiedMeshes, EndWhateverTheyAreMadeOf) {
  EXPECT_LE(simplified(ball(30), 1).triangles.size(), 1u);
  TriangleMesh point;  // many triangles in one place
  for (int i = 0; i < 300; ++i) point.vertices.push_back({5, 5, 5});
  for (int i = 0; i + 2 < 300; ++i) point.triangles.push_back({i, i + 1, i + 2});
  EXPECT_TRUE(simplified(point, 10).triangles.empty());
  TriangleMesh line = point;  // without any area, and as far as coordinates may be
  for (int i = 0; i < 300; ++i) line.vertices[i] = {-1e9 + 6e6 * i, 0, 0};
  EXPECT_LE(simplified(line, 10).triangles.size(), 10u);
}

}  // namespace
}  // namespace backdrive
