#include "models/meshes/simplified.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace backdrive {
namespace {

constexpr int kMostCells = 1024;  ///< along the longest side; three such numbers fit into one of 32 bits

/// Cells along the axes, which hold all vertices.
class Grid {
 public:
  Grid(const Bounds& bounds, int cells)
      : bounds_(bounds), side_(bounds.extent > 0 ? bounds.extent / cells : 1), last_(cells - 1) {}

  double side() const { return side_; }
  std::uint32_t cell(const Vec3<double>& v) const {
    return (along(v.x, bounds_.centre.x) << 10 | along(v.y, bounds_.centre.y)) << 10 | along(v.z, bounds_.centre.z);
  }
  Vec3<double> middle(std::uint32_t cell) const {
    const auto at = [&](std::uint32_t k, double centre) { return centre - bounds_.extent / 2 + (k + 0.5) * side_; };
    return {at(cell >> 20, bounds_.centre.x), at(cell >> 10 & 1023, bounds_.centre.y),
            at(cell & 1023, bounds_.centre.z)};
  }

 private:
  std::uint32_t along(double x, double centre) const {
    return static_cast<std::uint32_t>(std::clamp((x - centre + bounds_.extent / 2) / side_, 0.0, last_));
  }
  Bounds bounds_;
  double side_, last_;
};

std::vector<std::uint32_t> cells_of(const TriangleMesh& mesh, const Grid& grid) {
  std::vector<std::uint32_t> cells;
  cells.reserve(mesh.vertices.size());
  for (const Vec3<double>& v : mesh.vertices) cells.push_back(grid.cell(v));
  return cells;
}

/// Triangles whose corners are in three cells.
std::size_t count_left(const TriangleMesh& mesh, const std::vector<std::uint32_t>& cells) {
  return static_cast<std::size_t>(std::ranges::count_if(mesh.triangles, [&](const std::array<int, 3>& t) {
    return cells[t[0]] != cells[t[1]] && cells[t[1]] != cells[t[2]] && cells[t[2]] != cells[t[0]];
  }));
}

/// Of the vertices that become one: the squares of the distances from planes n·x = d, weighed by areas, add up to
/// xᵀ A x − 2 bᵀ x + …, least where A x = b.
struct Meeting {
  Sym3<double> A{};
  Vec3<double> b{}, sum{};
  int count = 0;

  void add_plane(const Vec3<double>& normal, const Vec3<double>& through) {
    const double area = std::sqrt(dot(normal, normal));
    if (!(area > 0)) return;
    const Vec3<double> n = normal * (1 / area);
    A = {A.xx + area * n.x * n.x, A.yy + area * n.y * n.y, A.zz + area * n.z * n.z,
         A.xy + area * n.x * n.y, A.xz + area * n.x * n.z, A.yz + area * n.y * n.z};
    b += n * (area * dot(n, through));
  }

  /// Near the mean of the vertices, along which the planes say nothing; inside of the cell.
  Vec3<double> point(const Vec3<double>& middle, double side) const {
    const Vec3<double> mean = sum * (1.0 / count);
    const double trace = A.xx + A.yy + A.zz;
    if (!(trace > 0)) return mean;
    const double little = 1e-3 * trace;
    const Sym3<double> M{A.xx + little, A.yy + little, A.zz + little, A.xy, A.xz, A.yz};
    const Vec3<double> r = b - A * mean;
    const double cx = M.yy * M.zz - M.yz * M.yz, cy = M.xz * M.yz - M.xy * M.zz, cz = M.xy * M.yz - M.xz * M.yy;
    const double det = M.xx * cx + M.xy * cy + M.xz * cz;
    if (!(det > 0)) return mean;
    const double cyy = M.xx * M.zz - M.xz * M.xz, cyz = M.xy * M.xz - M.xx * M.yz, czz = M.xx * M.yy - M.xy * M.xy;
    const Vec3<double> x{mean.x + (cx * r.x + cy * r.y + cz * r.z) / det,
                         mean.y + (cy * r.x + cyy * r.y + cyz * r.z) / det,
                         mean.z + (cz * r.x + cyz * r.y + czz * r.z) / det};
    const auto inside = [&](double value, double centre) {
      return std::clamp(value, centre - side / 2, centre + side / 2);
    };
    return {inside(x.x, middle.x), inside(x.y, middle.y), inside(x.z, middle.z)};
  }
};

/// The same three corners in the same direction begin with the least.
std::array<int, 3> turned_to_least(std::array<int, 3> t) {
  std::rotate(t.begin(), std::min_element(t.begin(), t.end()), t.end());
  return t;
}

}  // namespace

TriangleMesh simplified(const TriangleMesh& mesh, std::size_t most_triangles) {
  if (mesh.triangles.size() <= most_triangles) return {mesh.vertices, mesh.triangles};
  const Bounds bounds = bounds_of(mesh.vertices);
  // The finest grid that leaves few enough: more cells leave more triangles, or nearly so.
  int fine = 1;
  for (int step = kMostCells / 2; step > 0; step /= 2) {
    if (count_left(mesh, cells_of(mesh, Grid(bounds, fine + step))) <= most_triangles) fine += step;
  }
  const Grid grid(bounds, fine);
  const std::vector<std::uint32_t> cells = cells_of(mesh, grid);
  std::vector<std::uint32_t> used = cells;
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  std::vector<int> index;
  index.reserve(cells.size());
  for (const std::uint32_t cell : cells) {
    index.push_back(static_cast<int>(std::ranges::lower_bound(used, cell) - used.begin()));
  }
  std::vector<Meeting> meetings(used.size());
  for (std::size_t v = 0; v < cells.size(); ++v) {
    meetings[index[v]].sum += mesh.vertices[v];
    ++meetings[index[v]].count;
  }
  TriangleMesh result;
  for (const auto& [a, b, c] : mesh.triangles) {
    const Vec3<double>&A = mesh.vertices[a], &B = mesh.vertices[b], &C = mesh.vertices[c];
    const Vec3<double> normal = cross(B - A, C - A);
    for (const int corner : {a, b, c}) meetings[index[corner]].add_plane(normal, A);
    const std::array<int, 3> t{index[a], index[b], index[c]};
    if (t[0] != t[1] && t[1] != t[2] && t[2] != t[0]) result.triangles.push_back(turned_to_least(t));
  }
  for (std::size_t k = 0; k < used.size(); ++k) {
    result.vertices.push_back(meetings[k].point(grid.middle(used[k]), grid.side()));
  }
  std::ranges::sort(result.triangles);
  result.triangles.erase(std::unique(result.triangles.begin(), result.triangles.end()), result.triangles.end());
  return welded(result);
}

}  // namespace backdrive
