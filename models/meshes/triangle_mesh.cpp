#include "models/meshes/triangle_mesh.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "engine/error.h"
#include "models/meshes/text_reader.h"

namespace backdrive {
namespace {

/// A closed mesh of less volume than this share of its area times its extent has none: rounding leaves about 1e-15.
constexpr double kLeastVolume = 1e-12;

std::string at(const Vec3<double>& p) {
  return "(" + shown(p.x) + ", " + shown(p.y) + ", " + shown(p.z) + ")";
}

/// An edge as one of its triangles runs along it.
struct HalfEdge {
  int low, high;  ///< its ends, low < high
  bool upwards;   ///< runs from low to high
  auto key() const { return std::tie(low, high, upwards); }
};

double area_of(const TriangleMesh& mesh) {
  double area = 0;
  for (const auto& [a, b, c] : mesh.triangles) {
    const Vec3<double> n = cross(mesh.vertices[b] - mesh.vertices[a], mesh.vertices[c] - mesh.vertices[a]);
    area += 0.5 * std::sqrt(dot(n, n));
  }
  return area;
}

}  // namespace

Bounds bounds_of(std::span<const Vec3<double>> points) {
  if (points.empty()) return {};
  Vec3<double> low = points[0], high = points[0];
  for (const Vec3<double>& p : points) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y), std::min(low.z, p.z)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y), std::max(high.z, p.z)};
  }
  const Vec3<double> size = high - low;
  return {low + size * 0.5, std::max({size.x, size.y, size.z})};
}

TriangleMesh welded(const TriangleMesh& mesh) {
  const std::vector<Vec3<double>>& points = mesh.vertices;
  std::vector<int> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int i, int j) {
    const Vec3<double>&a = points[i], &b = points[j];
    return std::tie(a.x, a.y, a.z, i) < std::tie(b.x, b.y, b.z, j);
  };
  std::sort(order.begin(), order.end(), before);
  std::vector<int> first(points.size());  // the first vertex at the same place
  for (size_t k = 0; k < order.size(); ++k) {
    const bool same = k > 0 && points[order[k]].x == points[order[k - 1]].x &&
                      points[order[k]].y == points[order[k - 1]].y && points[order[k]].z == points[order[k - 1]].z;
    first[order[k]] = same ? first[order[k - 1]] : order[k];
  }
  TriangleMesh result;
  std::vector<int> renamed(points.size(), -1);
  for (size_t t = 0; t < mesh.triangles.size(); ++t) {
    std::array<int, 3> own{};
    for (int k = 0; k < 3; ++k) own[k] = first[mesh.triangles[t][k]];
    if (own[0] == own[1] || own[1] == own[2] || own[2] == own[0]) continue;
    for (int& corner : own) {
      if (renamed[corner] < 0) {
        renamed[corner] = static_cast<int>(result.vertices.size());
        result.vertices.push_back(points[corner]);
      }
      corner = renamed[corner];
    }
    result.triangles.push_back(own);
    if (!mesh.colours.empty()) result.colours.push_back(mesh.colours[t]);
  }
  return result;
}

std::optional<std::string> why_not_closed(const TriangleMesh& mesh) {
  std::vector<HalfEdge> edges;
  edges.reserve(3 * mesh.triangles.size());
  for (const auto& corners : mesh.triangles) {
    for (int k = 0; k < 3; ++k) {
      const int from = corners[k], to = corners[(k + 1) % 3];
      edges.push_back({std::min(from, to), std::max(from, to), from < to});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const HalfEdge& a, const HalfEdge& b) { return a.key() < b.key(); });
  for (size_t i = 0, next = 0; i < edges.size(); i = next) {
    while (next < edges.size() && edges[next].low == edges[i].low && edges[next].high == edges[i].high) ++next;
    if (next - i == 2 && edges[i].upwards != edges[i + 1].upwards) continue;
    const std::string how = next - i == 2
                                ? " is run along twice in the same direction by its triangles"
                                : " belongs to " + std::to_string(next - i) + " triangle" + (next - i == 1 ? "" : "s");
    return "the edge from " + at(mesh.vertices[edges[i].low]) + " to " + at(mesh.vertices[edges[i].high]) + how;
  }
  return std::nullopt;
}

ConeSums sum_of_cones(const TriangleMesh& mesh, const Vec3<double>& apex, Cones count) {
  ConeSums sums;
  for (const auto& corners : mesh.triangles) {
    const Vec3<double> a = mesh.vertices[corners[0]] - apex, b = mesh.vertices[corners[1]] - apex,
                       c = mesh.vertices[corners[2]] - apex;
    const Vec3<double> s = a + b + c;
    const double by_side = dot(a, cross(b, c)) / 6, V = count == Cones::positive ? std::abs(by_side) : by_side;
    sums.volume += V;
    sums.first += s * (V / 4);
    for (const Vec3<double>& p : {a, b, c, s}) {
      const Vec3<double> w = p * (V / 20);
      sums.second += Sym3<double>{w.x * p.x, w.y * p.y, w.z * p.z, w.x * p.y, w.x * p.z, w.y * p.z};
    }
  }
  return sums;
}

/// Deviation from Blow & Binstock: the apex is the centre of the bounds, not the origin of the file, so that solids far
/// from that keep their digits; for the same reason the second moments are kept about the com.
SolidMoments<double> moments_of_closed(const TriangleMesh& mesh) {
  const Vec3<double> origin = bounds_of(mesh.vertices).centre;
  auto [volume, first, second] = sum_of_cones(mesh, origin, Cones::by_side);
  if (!(volume > 0)) return {volume, origin, {}};
  const Vec3<double> d = first * (1 / volume);
  second +=
      Sym3<double>{-first.x * d.x, -first.y * d.y, -first.z * d.z, -first.x * d.y, -first.x * d.z, -first.y * d.z};
  return {volume, origin + d, second};
}

SolidMoments<double> solid_moments(const TriangleMesh& mesh, const std::string& name) {
  if (mesh.triangles.empty()) refuse_file(name, "no triangles", "a closed mesh");
  if (const auto why = why_not_closed(mesh)) {
    refuse_file(
        name, *why,
        "a closed mesh, whose triangles run along every edge once in each direction (or the convex hull, which is "
        "always closed, or explicit mass, com and inertia)");
  }
  const SolidMoments<double> moments = moments_of_closed(mesh);
  if (!(std::abs(moments.volume) > kLeastVolume * area_of(mesh) * bounds_of(mesh.vertices).extent)) {
    refuse_file(name, "volume " + shown(moments.volume), "a mesh that bounds a volume");
  }
  if (moments.volume < 0) {
    refuse_file(name, "volume " + shown(moments.volume) + " (inside out)",
                "triangles whose corners run counterclockwise seen from outside");
  }
  return moments;
}

}  // namespace backdrive
