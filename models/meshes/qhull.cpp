#include "models/meshes/qhull.h"

#include <libqhull_r/qhull_ra.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

namespace backdrive {
namespace {

/// A file in memory for what qhull has to say.
class Log {
 public:
  Log() : file_(open_memstream(&text_, &size_)) {
    if (!file_) throw std::bad_alloc();
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() {
    std::fclose(file_);
    std::free(text_);  // NOLINT: allocated by the C library
  }
  FILE* file() { return file_; }
  /// The first line.
  std::string first_line() {
    std::fflush(file_);
    const std::string all(text_, size_);
    return all.substr(0, all.find('\n'));
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  FILE* file_;
};

/// One run of qhull. It jumps back into qh_new_qhull on errors, never past frames of C++; what is called after that
/// only reads and cannot fail.
class Run {
 public:
  Run(std::span<const Vec3<double>> points, double coplanar) {
    coordinates_.reserve(3 * points.size());
    for (const Vec3<double>& p : points) coordinates_.insert(coordinates_.end(), {p.x, p.y, p.z});
    char command[40];
    // No decimal point, which qhull would read by the locale.
    std::snprintf(command, sizeof command, coplanar > 0 ? "qhull C-%.0e" : "qhull", coplanar);
    qh_zero(&qh_, log_.file());
    exit_code_ = qh_new_qhull(&qh_, 3, static_cast<int>(points.size()), coordinates_.data(), False, command, nullptr,
                              log_.file());
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    int long_blocks = 0, long_bytes = 0;
    qh_freeqhull(&qh_, !qh_ALL);
    qh_memfreeshort(&qh_, &long_blocks, &long_bytes);
  }

  bool good() const { return exit_code_ == 0; }
  std::string trouble() { return log_.first_line(); }
  const facetT* first_face() const { return qh_.facet_list; }
  int index(const vertexT* vertex) const { return static_cast<int>((vertex->point - coordinates_.data()) / 3); }

 private:
  std::vector<double> coordinates_;
  Log log_;
  qhT qh_{};
  int exit_code_ = 0;
};

using Edge = std::pair<int, int>;

std::vector<Edge> edges_of(const Run& run, const facetT& face) {
  std::vector<Edge> edges;
  vertexT *vertex, **vertexp;
  const auto pair_of = [&](setT* vertices) {
    std::vector<int> ends;
    FOREACHvertex_(vertices) ends.push_back(run.index(vertex));
    return ends;
  };
  if (face.simplicial) {  // its ridges need not be there
    const std::vector<int> corners = pair_of(face.vertices);
    if (corners.size() != 3) return {};
    return {{corners[0], corners[1]}, {corners[1], corners[2]}, {corners[2], corners[0]}};
  }
  ridgeT *ridge, **ridgep;
  FOREACHridge_(face.ridges) {
    const std::vector<int> ends = pair_of(ridge->vertices);
    if (ends.size() != 2) return {};
    edges.emplace_back(ends[0], ends[1]);
  }
  return edges;
}

/// The cycle that the edges make, in one of its two directions; empty when they make none, or several. O(n log n).
Polygon cycle_of(const std::vector<Edge>& edges) {
  std::vector<Edge> neighbours;  // from each vertex to the next ones on both sides
  for (const auto& [a, b] : edges) neighbours.insert(neighbours.end(), {{a, b}, {b, a}});
  std::sort(neighbours.begin(), neighbours.end());
  for (size_t k = 0; k < neighbours.size(); ++k) {
    const bool twin = k % 2 == 1;
    const bool same = k > 0 && neighbours[k].first == neighbours[k - 1].first;
    if (same != twin || (same && neighbours[k] == neighbours[k - 1])) return {};  // two different ones each
  }
  if (edges.size() < 3) return {};
  Polygon cycle;
  int before = -1, at = edges[0].first;
  do {
    cycle.push_back(at);
    const auto next = std::lower_bound(neighbours.begin(), neighbours.end(), Edge{at, -1});
    const int ahead = next->second == before ? (next + 1)->second : next->second;
    before = at;
    at = ahead;
  } while (at != cycle[0]);
  return cycle.size() == edges.size() ? cycle : Polygon{};
}

/// How many faces each of the points has.
std::vector<int> degrees(const std::vector<Polygon>& faces, size_t points) {
  std::vector<int> degree(points, 0);
  for (const Polygon& face : faces) {
    for (int v : face) ++degree[v];
  }
  return degree;
}

/// Vertices of two faces only lie on the edge between these.
void drop_flat_vertices(std::vector<Polygon>& faces, size_t points) {
  const std::vector<int> degree = degrees(faces, points);
  for (Polygon& face : faces) std::erase_if(face, [&](int v) { return degree[v] == 2; });
}

bool sound(const std::vector<Polygon>& faces, size_t points) {
  std::vector<Edge> half_edges;
  for (const Polygon& face : faces) {
    if (face.size() < 3) return false;
    for (size_t k = 0; k < face.size(); ++k) half_edges.emplace_back(face[k], face[(k + 1) % face.size()]);
  }
  std::sort(half_edges.begin(), half_edges.end());
  if (std::adjacent_find(half_edges.begin(), half_edges.end()) != half_edges.end()) return false;
  for (const Edge& edge : half_edges) {
    if (!std::binary_search(half_edges.begin(), half_edges.end(), Edge{edge.second, edge.first})) return false;
  }
  size_t vertices = 0;
  for (int degree : degrees(faces, points)) {
    if (degree == 1 || degree == 2) return false;
    vertices += degree > 0;
  }
  return vertices + faces.size() == half_edges.size() / 2 + 2;
}

}  // namespace

HullPolygons hull_polygons(std::span<const Vec3<double>> points, double coplanar) {
  HullPolygons hull;
  Run run(points, coplanar);
  if (!run.good()) {
    hull.trouble = run.trouble();
    return hull;
  }
  for (const facetT* face = run.first_face(); face && face->next; face = face->next) {
    Polygon polygon = cycle_of(edges_of(run, *face));
    Vec3<double> area{};
    for (size_t k = 0; k + 2 < polygon.size(); ++k) {
      const Vec3<double>& origin = points[polygon[0]];
      area += cross(points[polygon[k + 1]] - origin, points[polygon[k + 2]] - origin);
    }
    const Vec3<double> outward{face->normal[0], face->normal[1], face->normal[2]};
    if (dot(area, outward) < 0) std::reverse(polygon.begin(), polygon.end());
    hull.faces.push_back(std::move(polygon));
  }
  drop_flat_vertices(hull.faces, points.size());
  if (!sound(hull.faces, points.size())) return {{}, "its faces do not fit together"};
  return hull;
}

}  // namespace backdrive
