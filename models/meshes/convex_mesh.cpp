#include "models/meshes/convex_mesh.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "engine/error.h"
#include "models/meshes/qhull.h"
#include "models/meshes/text_reader.h"

namespace backdrive {
namespace {

using Point = Vec3<double>;

double length(const Point& v) {
  return std::sqrt(dot(v, v));
}

/// Indices of the points without repetition, in the order of the first ones.
std::vector<int> distinct(std::span<const Point> points) {
  std::vector<int> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) { return std::tie(points[i].x, points[i].y, points[i].z); };
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return key(i) < key(j); });
  order.erase(std::unique(order.begin(), order.end(), [&](int i, int j) { return key(i) == key(j); }), order.end());
  std::sort(order.begin(), order.end());
  return order;
}

/// The point at which `measure` is largest, the first of those.
template <class Measure>
int farthest(std::span<const Point> points, Measure measure) {
  int best = 0;
  double largest = -1;
  for (size_t i = 0; i < points.size(); ++i) {
    const double value = measure(points[i]);
    if (value > largest) {
      largest = value;
      best = static_cast<int>(i);
    }
  }
  return best;
}

/// Four of the points (in a box about the origin with a largest side of 1) that bound a volume, far apart: from the
/// first to the farthest, from the line to the farthest, from the plane to the farthest.
std::vector<int> spread_points(std::span<const Point> points, const std::string& name) {
  const std::string expected = "points that bound a volume";
  const std::string within = "all points lie within " + shown(kFlat) + " of their extent of one ";
  const int a = farthest(points, [](const Point& p) { return length(p); });
  const int b = farthest(points, [&](const Point& p) { return length(p - points[a]); });
  const Point along = (points[b] - points[a]) * (1 / length(points[b] - points[a]));
  const auto from_line = [&](const Point& p) { return length(cross(along, p - points[a])); };
  const int c = farthest(points, from_line);
  if (from_line(points[c]) < kFlat) refuse_file(name, within + "line", expected);
  const Point across = cross(along, points[c] - points[a]);
  const Point normal = across * (1 / length(across));
  const auto from_plane = [&](const Point& p) { return std::abs(dot(normal, p - points[a])); };
  const int d = farthest(points, from_plane);
  if (from_plane(points[d]) < kFlat) refuse_file(name, within + "plane", expected);
  return {a, b, c, d};
}

std::vector<Polygon> polygons_of(std::span<const Point> points, const std::string& name) {
  std::string trouble;
  // Where merging what is nearly flat leads nowhere, only what is flat to rounding is merged.
  for (const double coplanar : {kCoplanar, 1e-9, 0.0}) {
    HullPolygons hull = hull_polygons(points, coplanar);
    if (!hull.faces.empty()) return std::move(hull.faces);
    trouble = hull.trouble;
  }
  refuse_file(name, "no convex hull (qhull: " + printable(trouble, 200) + ")", "points that bound a volume");
}

struct Plane {
  Point normal;
  double offset;
  double excess(const Point& p) const { return dot(normal, p) - offset; }
};

/// Through a polygon with the normal of its area, as far out as the farthest of `all`.
Plane supporting_plane(std::span<const Point> points, const Polygon& polygon, const std::vector<int>& all) {
  Point area{};
  for (size_t k = 0; k + 2 < polygon.size(); ++k) {
    const Point& origin = points[polygon[0]];
    area += cross(points[polygon[k + 1]] - origin, points[polygon[k + 2]] - origin);
  }
  const Point normal = area * (1 / length(area));
  double offset = dot(normal, points[polygon[0]]);
  for (int v : all) offset = std::max(offset, dot(normal, points[v]));
  return {normal, offset};
}

std::vector<int> vertices_of(const std::vector<Polygon>& polygons) {
  std::vector<int> all;
  for (const Polygon& polygon : polygons) all.insert(all.end(), polygon.begin(), polygon.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// A hull by indices of the points: polygons with the lowest vertex first, sorted.
struct Hull {
  std::vector<Polygon> polygons;
  std::vector<int> vertices;
  std::vector<Plane> planes;
};

Hull with_planes(std::span<const Point> points, std::vector<Polygon> polygons) {
  for (Polygon& polygon : polygons) {
    std::rotate(polygon.begin(), std::min_element(polygon.begin(), polygon.end()), polygon.end());
  }
  std::sort(polygons.begin(), polygons.end());
  Hull hull{std::move(polygons), {}, {}};
  hull.vertices = vertices_of(hull.polygons);
  hull.planes.reserve(hull.polygons.size());
  for (const Polygon& polygon : hull.polygons) {
    hull.planes.push_back(supporting_plane(points, polygon, hull.vertices));
  }
  return hull;
}

Hull hull_of(std::span<const Point> points, const std::vector<int>& chosen, const std::string& name) {
  std::vector<Point> own;
  own.reserve(chosen.size());
  for (int i : chosen) own.push_back(points[i]);
  std::vector<Polygon> polygons = polygons_of(own, name);
  for (Polygon& polygon : polygons) {
    for (int& v : polygon) v = chosen[v];
  }
  return with_planes(points, std::move(polygons));
}

/// Hull of at most `limit` of the candidates. Each round adds, of the points farthest beyond each face, the farthest:
/// one while there are few, up to a quarter of what is there later, so that the number of rounds grows with the
/// logarithm.
Hull simplified(std::span<const Point> points, const std::vector<int>& candidates, size_t limit,
                const std::string& name) {
  std::vector<Point> own;
  for (int i : candidates) own.push_back(points[i]);
  std::vector<int> chosen = spread_points(own, name);
  for (int& v : chosen) v = candidates[v];
  std::vector<char> taken(points.size(), 0);
  for (int v : chosen) taken[v] = 1;
  Hull hull = hull_of(points, chosen, name);
  while (chosen.size() < limit) {
    std::vector<std::pair<double, int>> beyond(hull.planes.size(), {0, -1});  // of each face: −excess, point
    for (int i : candidates) {
      if (taken[i]) continue;
      double largest = kCoplanar;
      size_t face = hull.planes.size();
      for (size_t f = 0; f < hull.planes.size(); ++f) {
        const double excess = hull.planes[f].excess(points[i]);
        if (excess > largest) {
          largest = excess;
          face = f;
        }
      }
      if (face < hull.planes.size()) beyond[face] = std::min(beyond[face], {-largest, i});
    }
    std::erase_if(beyond, [](const std::pair<double, int>& one) { return one.second < 0; });
    if (beyond.empty()) break;
    std::sort(beyond.begin(), beyond.end());
    const size_t more = std::min({beyond.size(), std::max<size_t>(1, chosen.size() / 4), limit - chosen.size()});
    for (size_t k = 0; k < more; ++k) {
      chosen.push_back(beyond[k].second);
      taken[beyond[k].second] = 1;
    }
    hull = hull_of(points, chosen, name);
  }
  return hull;
}

/// Distance of a point beyond a face's plane from the face.
double distance_from_face(std::span<const Point> points, const Polygon& polygon, const Plane& plane, const Point& p) {
  bool above = true;  // its foot lies in the face
  double least = INFINITY;
  for (size_t k = 0; k < polygon.size(); ++k) {
    const Point& a = points[polygon[k]];
    const Point edge = points[polygon[(k + 1) % polygon.size()]] - a;
    above = above && dot(cross(plane.normal, edge), p - a) >= 0;
    const double t = std::clamp(dot(edge, p - a) / dot(edge, edge), 0.0, 1.0);
    least = std::min(least, length(p - a - edge * t));
  }
  return above ? plane.excess(p) : least;
}

/// The nearest point of a polyhedron lies on a face that can be seen. No plane lies nearer than that, but for faces
/// that are not quite flat, where the farthest plane counts.
double distance_from_hull(std::span<const Point> points, const Hull& hull, const Point& p) {
  constexpr double rounding = 1e-14;
  double nearest = INFINITY, beyond = 0;
  for (size_t f = 0; f < hull.planes.size(); ++f) {
    const double excess = hull.planes[f].excess(p);
    if (excess < rounding) continue;
    beyond = std::max(beyond, excess);
    nearest = std::min(nearest, distance_from_face(points, hull.polygons[f], hull.planes[f], p));
  }
  return std::isinf(nearest) ? 0 : std::max(nearest, beyond);
}

/// Both faces of every edge.
std::vector<ConvexMesh::Edge> edges_of(const ConvexMesh& mesh) {
  std::map<std::pair<int, int>, ConvexMesh::Edge> edges;
  for (size_t f = 0; f < mesh.faces.size(); ++f) {
    const std::span<const int> corners = mesh.vertices_of(mesh.faces[f]);
    for (size_t k = 0; k < corners.size(); ++k) {
      const int from = corners[k], to = corners[(k + 1) % corners.size()];
      ConvexMesh::Edge& edge = edges[std::minmax(from, to)];
      edge.from = std::min(from, to);
      edge.to = std::max(from, to);
      (from < to ? edge.left : edge.right) = static_cast<int>(f);
    }
  }
  std::vector<ConvexMesh::Edge> list;
  list.reserve(edges.size());
  for (const auto& [ends, edge] : edges) list.push_back(edge);
  return list;
}

/// The hull with the given points as vertices. Normals are those of the points moved to a box of size 1.
ConvexMesh as_mesh(const Hull& hull, std::span<const Point> given) {
  ConvexMesh mesh;
  std::map<int, int> renamed;
  for (int v : hull.vertices) {
    renamed[v] = static_cast<int>(mesh.vertices.size());
    mesh.vertices.push_back(given[v]);
  }
  for (size_t f = 0; f < hull.polygons.size(); ++f) {
    const Point& normal = hull.planes[f].normal;
    double offset = -INFINITY;
    for (const Point& p : mesh.vertices) offset = std::max(offset, dot(normal, p));
    mesh.faces.push_back(
        {normal, offset, static_cast<int>(mesh.face_vertices.size()), static_cast<int>(hull.polygons[f].size())});
    for (int v : hull.polygons[f]) mesh.face_vertices.push_back(renamed[v]);
  }
  mesh.edges = edges_of(mesh);
  return mesh;
}

void check_numbers(std::span<const Point> points, const std::string& name) {
  const auto fits = [](double x) { return std::abs(x) <= kMaxCoordinate; };
  for (const Point& p : points) {
    if (fits(p.x) && fits(p.y) && fits(p.z)) continue;
    refuse_file(name, "value '[" + shown(p.x) + ", " + shown(p.y) + ", " + shown(p.z) + "]' as a point",
                "numbers of magnitude up to " + shown(kMaxCoordinate));
  }
}

/// The points moved and scaled to a box about the origin whose largest side is 1; returns the scale.
double normalize(std::vector<Point>& points, const std::string& name) {
  const auto [centre, extent] = bounds_of(points);
  if (extent < 1 / kMaxCoordinate) {
    refuse_file(name, "points " + shown(extent) + " apart at most",
                "an extent of at least " + shown(1 / kMaxCoordinate));
  }
  for (Point& p : points) p = (p - centre) * (1 / extent);
  return extent;
}

}  // namespace

ConvexMesh convex_hull(std::span<const Vec3<double>> points, const std::string& name, int max_vertices) {
  if (max_vertices < 4 || max_vertices > kMostHullVertices) {
    usage_error("convex_hull: max_vertices " + std::to_string(max_vertices) + ": expected 4 to " +
                std::to_string(kMostHullVertices));
  }
  if (points.size() > static_cast<size_t>(kMaxVertices)) {
    refuse_file(name, std::to_string(points.size()) + " points", "at most " + std::to_string(kMaxVertices));
  }
  check_numbers(points, name);
  std::vector<Point> given;
  for (int i : distinct(points)) given.push_back(points[i]);
  if (given.size() < 4) {
    refuse_file(name, std::to_string(given.size()) + " different point" + (given.size() == 1 ? "" : "s"),
                "at least 4 that bound a volume");
  }
  std::vector<Point> unit = given;
  const double extent = normalize(unit, name);
  spread_points(unit, name);  // refuses what is flat
  std::vector<Polygon> polygons = polygons_of(unit, name);
  const std::vector<int> full = vertices_of(polygons);
  const bool small = full.size() <= static_cast<size_t>(max_vertices);
  const Hull hull = small ? with_planes(unit, std::move(polygons)) : simplified(unit, full, max_vertices, name);
  ConvexMesh mesh = as_mesh(hull, given);
  mesh.full_vertices = static_cast<int>(full.size());
  for (const Point& p : unit) mesh.deviation = std::max(mesh.deviation, extent * distance_from_hull(unit, hull, p));
  return mesh;
}

TriangleMesh triangles_of(const ConvexMesh& hull) {
  TriangleMesh mesh;
  mesh.vertices = hull.vertices;
  for (const ConvexMesh::Face& face : hull.faces) {
    const std::span<const int> corners = hull.vertices_of(face);
    for (size_t k = 1; k + 1 < corners.size(); ++k) mesh.triangles.push_back({corners[0], corners[k], corners[k + 1]});
  }
  return mesh;
}

}  // namespace backdrive
