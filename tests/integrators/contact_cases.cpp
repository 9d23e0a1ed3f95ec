#include "tests/integrators/contact_cases.h"

#include <algorithm>
#include <cmath>

#include "engine/dual.h"

namespace backdrive::test {
namespace {

using V = Vec3<double>;
using D = Dual<double>;
using contact::BoxMesh;
using contact::MeshView;

struct MeshData {
  std::vector<double> vertices;
  std::vector<int> faces, edges;
  MeshView<double> view() const {
    return {vertices.data(),
            faces.data(),
            edges.data(),
            static_cast<int>(vertices.size()) / 3,
            static_cast<int>(faces.size()) / 3,
            static_cast<int>(edges.size()) / 4};
  }
};

/// Icosahedron with vertices moved by up to 6 %: still convex, no two faces coplanar.
MeshData make_mesh() {
  const double g = (1 + std::sqrt(5.0)) / 2, length = std::sqrt(1 + g * g);
  MeshData m;
  Random random(3);
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 4; ++i) {
      double v[3];
      v[k] = 0, v[(k + 1) % 3] = i & 1 ? 1 : -1, v[(k + 2) % 3] = i & 2 ? g : -g;
      for (double x : v) m.vertices.push_back(x / length + random.symmetric(0.06));
    }
  }
  const auto at = [&](int i) { return contact::vertex<double>(m.view(), i); };
  for (int i = 0; i < 12; ++i) {
    for (int j = i + 1; j < 12; ++j) {
      for (int k = j + 1; k < 12; ++k) {
        const V n = cross(at(j) - at(i), at(k) - at(i));
        int above = 0, below = 0;
        for (int l = 0; l < 12; ++l) {
          if (l != i && l != j && l != k) (dot(n, at(l) - at(i)) > 0 ? above : below) += 1;
        }
        if (above == 0) m.faces.insert(m.faces.end(), {i, j, k});
        if (below == 0) m.faces.insert(m.faces.end(), {i, k, j});
      }
    }
  }
  for (std::size_t f = 0; f < m.faces.size(); f += 3) {
    for (int s = 0; s < 3; ++s) {
      const int p = m.faces[f + s], q = m.faces[f + (s + 1) % 3];
      if (p > q) continue;
      for (std::size_t other = 0; other < m.faces.size(); other += 3) {
        for (int t = 0; t < 3; ++t) {
          if (m.faces[other + t] == q && m.faces[other + (t + 1) % 3] == p) {
            m.edges.insert(m.edges.end(), {p, q, m.faces[f + (s + 2) % 3], m.faces[other + (t + 2) % 3]});
          }
        }
      }
    }
  }
  return m;
}

constexpr int kNx = 8, kNy = 7;
std::vector<double> make_heights() {
  Random random(5);
  std::vector<double> h(kNx * kNy);
  for (double& x : h) x = random.symmetric(1);
  return h;
}

V random_direction(Random& random) {
  for (;;) {
    const V v{random.symmetric(1), random.symmetric(1), random.symmetric(1)};
    const double square = dot(v, v);
    if (square > 0.01 && square < 1) return v * (1 / std::sqrt(square));
  }
}

// In two statements: which factor of a product is drawn first is the compiler's choice.
Mat3<double> random_turn_up_to(double limit, Random& random) {
  const double angle = random.uniform(0, limit);
  return turn(random_direction(random) * angle);
}

V random_scale(ShapeKind kind, Random& random) {
  const auto size = [&] { return random.uniform(0.1, 0.4); };
  switch (kind) {
    case ShapeKind::height_field:
      return {2, 1.8, 0.1};
    case ShapeKind::sphere:
      return {random.uniform(0.05, 0.2), 0, 0};
    case ShapeKind::capsule:
      return {random.uniform(0.05, 0.2), size(), 0};
    case ShapeKind::cylinder:
      return {size(), size(), 0};
    default:
      return {size(), size(), size()};
  }
}

Vec3<D> seeded(const V& v, const V& dot) {
  return {{v.x, dot.x}, {v.y, dot.y}, {v.z, dot.z}};
}
Shape<D> seeded(const Shape<double>& s, const ShapeBar<double>& v) {
  const auto direction = [&](const V& u) { return seeded(u, cross(v.pose.ang, u)); };
  const Mat3<double>& R = s.pose.axes;
  return {{{direction(R.cx), direction(R.cy), direction(R.cz)},
           seeded(s.pose.origin, cross(v.pose.ang, s.pose.origin) + v.pose.lin)},
          seeded(s.scale, v.scale)};
}
V dots(const Vec3<D>& v) {
  return {v.x.dot, v.y.dot, v.z.dot};
}
Shape<double> moved(const Shape<double>& s, const ShapeBar<double>& v, double h) {
  const Mat3<double> R = turn(v.pose.ang * h);
  return {{R * s.pose.axes, R * s.pose.origin + v.pose.lin * h}, s.scale + v.scale * h};
}

}  // namespace

std::vector<PairKinds> all_pairs() {
  using K = ShapeKind;
  std::vector<PairKinds> pairs;
  for (K b : {K::plane, K::height_field}) {
    for (K a : {K::sphere, K::ellipsoid, K::capsule, K::box, K::cylinder, K::mesh}) pairs.push_back({a, b});
  }
  for (K a : {K::ellipsoid, K::sphere, K::capsule, K::box, K::cylinder, K::mesh}) {
    for (K b : {K::ellipsoid, K::sphere, K::capsule, K::box, K::cylinder, K::mesh}) {
      if (contact::in_order(a, b)) pairs.push_back({a, b});
    }
  }
  return pairs;
}

std::string name_of(ShapeKind kind) {
  const char* const names[] = {"plane", "sphere", "ellipsoid", "capsule", "box", "cylinder", "mesh", "height_field"};
  return names[static_cast<int>(kind)];
}
std::string name_of(PairKinds pair) {
  return name_of(pair.a) + "_on_" + name_of(pair.b);
}

Geometry<double> geometry_of(ShapeKind kind) {
  static const MeshData mesh = make_mesh();
  static const BoxMesh<double> box = contact::box_mesh<double>();
  static const std::vector<double> heights = make_heights();
  return {kind, kind == ShapeKind::box ? box.view() : mesh.view(), {heights.data(), kNx, kNy}};
}

Mat3<double> turn(const V& angle) {
  const double phi = std::sqrt(dot(angle, angle));
  if (phi == 0) return identity3<double>();
  const V k = angle * (1 / phi);
  const auto column = [&](const V& v) {
    return v * std::cos(phi) + cross(k, v) * std::sin(phi) + k * (dot(k, v) * 2 * std::pow(std::sin(phi / 2), 2));
  };
  const Mat3<double> one = identity3<double>();
  return {column(one.cx), column(one.cy), column(one.cz)};
}

bool is_far(const ContactPoint<double>& p) {
  return p.gap > 0.5 * contact::kFarGap;
}
double least_gap(const Points& points) {
  double least = contact::kFarGap;
  for (const auto& p : points) least = std::min(least, p.gap);
  return least;
}

PairCase random_case(PairKinds kinds, Random& random, const CaseOptions& options) {
  PairCase c{geometry_of(kinds.a), geometry_of(kinds.b), {}, {}};
  c.a.scale = random_scale(kinds.a, random);
  c.b.scale = random_scale(kinds.b, random);
  c.b.pose.axes = random_turn_up_to(3, random);
  c.b.pose.origin = {random.symmetric(1), random.symmetric(1), random.symmetric(1)};
  c.a.pose.axes = random_turn_up_to(options.tilt, random) * c.b.pose.axes;
  const bool ground = contact::is_ground(kinds.b);
  const V side{random.symmetric(1), random.symmetric(1), 0};
  const V way = c.b.pose.axes * (ground ? V{0, 0, 1} : random_direction(random));
  const V start = c.b.pose.origin + (ground ? c.b.pose.axes * side : zero3<double>());
  const double target = random.uniform(options.low, options.high);
  double inside = 0, outside = 3;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (inside + outside);
    c.a.pose.origin = start + way * middle;
    (least_gap(points_of(c)) > target ? outside : inside) = middle;
  }
  // Off the spot: where points come and go by jumps, bisection ends at a jump.
  c.a.pose.origin = start + way * outside + random_direction(random) * 1e-3;
  return c;
}

PairMotion random_motion(Random& random) {
  PairMotion m;
  for (ShapeBar<double>* s : {&m.a, &m.b}) {
    for (V* v : {&s->pose.ang, &s->pose.lin, &s->scale}) {
      *v = {random.symmetric(1), random.symmetric(1), random.symmetric(1)};
    }
  }
  return m;
}

Points points_of(const PairCase& c) {
  Points out(contact::contact_count(c.ga, c.gb));
  contact::contact_points<double>({c.ga, c.a}, {c.gb, c.b}, out.data());
  return out;
}
Points points_dot(const PairCase& c, const PairMotion& v) {
  std::vector<ContactPoint<D>> out(contact::contact_count(c.ga, c.gb));
  contact::contact_points<D>({c.ga, seeded(c.a, v.a)}, {c.gb, seeded(c.b, v.b)}, out.data());
  Points dot;
  for (const auto& p : out) dot.push_back({p.gap.dot, dots(p.point), dots(p.normal)});
  return dot;
}
PairMotion points_adjoint(const PairCase& c, Points bar) {
  PairMotion m{{zero6<double>(), zero3<double>()}, {zero6<double>(), zero3<double>()}};
  contact::adj_contact_points<double>({c.ga, c.a}, {c.gb, c.b}, bar.data(), m.a, m.b);
  return m;
}
PairCase moved(const PairCase& c, const PairMotion& v, double h) {
  return {c.ga, c.gb, moved(c.a, v.a, h), moved(c.b, v.b, h)};
}

double inner(const ContactPoint<double>& a, const ContactPoint<double>& b) {
  return a.gap * b.gap + dot(a.point, b.point) + dot(a.normal, b.normal);
}
double inner(const PairMotion& a, const PairMotion& b) {
  return dot(a.a.pose, b.a.pose) + dot(a.a.scale, b.a.scale) + dot(a.b.pose, b.b.pose) + dot(a.b.scale, b.b.scale);
}

}  // namespace backdrive::test
