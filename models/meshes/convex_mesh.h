#pragma once
// Convex polyhedra with flat faces: what contact needs to know of a mesh.
#include <span>
#include <string>
#include <vector>

#include "models/meshes/triangle_mesh.h"

namespace backdrive {

/// Contact walks all vertices of a hull in every step, so hulls have no more than they need.
constexpr int kDefaultHullVertices = 64;
constexpr int kMostHullVertices = 1024;
/// Triangles of the hull that lie in one plane to this share of the extent are one face: files carry six digits.
constexpr double kCoplanar = 1e-6;
/// Points within this share of their extent of one plane bound nothing.
constexpr double kFlat = 1e-5;

struct ConvexMesh {
  /// The points x of the half space normal·x ≤ offset touch the face at its boundary.
  struct Face {
    Vec3<double> normal;  ///< unit, outward
    double offset;        ///< m; the largest of normal·x over the vertices
    int first, count;     ///< its vertices: face_vertices[first, first + count)
  };
  struct Edge {
    int from, to;     ///< vertices, from < to
    int left, right;  ///< faces; counterclockwise around `left` the edge runs from → to, around `right` to → from
  };

  std::vector<Vec3<double>> vertices;  ///< some of the given points, in their order
  std::vector<Face> faces;             ///< in the order of their vertices
  std::vector<int> face_vertices;      ///< of each face counterclockwise seen from outside, the lowest first
  std::vector<Edge> edges;             ///< in the order of (from, to)

  int full_vertices = 0;  ///< that the hull would have without a limit
  double deviation = 0;   ///< m; the largest distance of any given point from this hull, all of which the given contain

  std::span<const int> vertices_of(const Face& face) const {
    return std::span(face_vertices).subspan(face.first, face.count);
  }
};

/// The convex hull by qhull (Barber, Dobkin & Huhdanpaa 1996). One with more than `max_vertices` (4 to 1024) is
/// replaced by the hull of so many of its vertices, chosen one after the other (in rounds, later several at once) as
/// those that stick out the farthest; `deviation` says by how much others still do. The same points give the same hull,
/// bit for bit. Throws Error (input) for points that bound no volume, and Error (usage) for another `max_vertices`;
/// `name` is what errors call the points. O(n log n + n · faces · log(max_vertices)).
ConvexMesh convex_hull(std::span<const Vec3<double>> points, const std::string& name,
                       int max_vertices = kDefaultHullVertices);
inline ConvexMesh convex_hull(const TriangleMesh& mesh, const std::string& name,
                              int max_vertices = kDefaultHullVertices) {
  return convex_hull(mesh.vertices, name, max_vertices);
}

/// The hull's faces as fans about their first vertices; closed.
TriangleMesh triangles_of(const ConvexMesh& hull);

/// Volume, com and second moments of a hull.
inline SolidMoments<double> solid_moments(const ConvexMesh& hull) {
  return moments_of_closed(triangles_of(hull));
}

}  // namespace backdrive
