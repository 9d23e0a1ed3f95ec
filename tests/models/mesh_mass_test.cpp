// Mass properties of meshes against closed forms, and their adjoints against dual numbers through the same source.
#include "models/meshes/mesh_mass.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/error.h"
#include "models/mass_properties.h"
#include "models/meshes/convex_mesh.h"

namespace backdrive {
namespace {

using D = Dual<double>;
using Point = Vec3<double>;
using Gradient = std::array<double, 10>;  // scale 3, density 1, position 3, theta 3

const char* const kCube =
    "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n"
    "f 1 4 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n";
const char* const kTetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";

TriangleMesh moved(TriangleMesh mesh, const Mat3<double>& R, const Point& by) {
  for (Point& p : mesh.vertices) p = R * p + by;
  return mesh;
}

/// An octahedron whose triangles are split into four, with the new vertices on the unit sphere, again and again.
TriangleMesh sphere(int rounds) {
  TriangleMesh mesh = parse_obj(
      "v 1 0 0\nv -1 0 0\nv 0 1 0\nv 0 -1 0\nv 0 0 1\nv 0 0 -1\n"
      "f 1 3 5\nf 3 2 5\nf 2 4 5\nf 4 1 5\nf 3 1 6\nf 2 3 6\nf 4 2 6\nf 1 4 6\n",
      "octahedron");
  for (int round = 0; round < rounds; ++round) {
    TriangleMesh finer;
    for (const auto& [a, b, c] : mesh.triangles) {
      const Point p[3] = {mesh.vertices[a], mesh.vertices[b], mesh.vertices[c]};
      Point middle[3];
      for (int k = 0; k < 3; ++k) {
        middle[k] = p[k] + p[(k + 1) % 3];
        middle[k] = middle[k] * (1 / std::sqrt(dot(middle[k], middle[k])));
      }
      const int first = static_cast<int>(finer.vertices.size());
      finer.vertices.insert(finer.vertices.end(), {p[0], p[1], p[2], middle[0], middle[1], middle[2]});
      for (const auto& corners : {std::array{0, 3, 5}, {3, 1, 4}, {5, 4, 2}, {3, 4, 5}}) {
        finer.triangles.push_back({first + corners[0], first + corners[1], first + corners[2]});
      }
    }
    mesh = welded(finer);
  }
  return mesh;
}

void expect_near(const Sym3<double>& a, const Sym3<double>& b, double tolerance) {
  EXPECT_NEAR(a.xx, b.xx, tolerance);
  EXPECT_NEAR(a.yy, b.yy, tolerance);
  EXPECT_NEAR(a.zz, b.zz, tolerance);
  EXPECT_NEAR(a.xy, b.xy, tolerance);
  EXPECT_NEAR(a.xz, b.xz, tolerance);
  EXPECT_NEAR(a.yz, b.yz, tolerance);
}
void expect_near(const Point& a, const Point& b, double tolerance) {
  EXPECT_NEAR(a.x, b.x, tolerance);
  EXPECT_NEAR(a.y, b.y, tolerance);
  EXPECT_NEAR(a.z, b.z, tolerance);
}

const Mat3<double> kTurn = rotation_matrix(0.1, -0.3, 0.5, std::sqrt(1 - 0.35));

// ---- integrals ------------------------------------------------------------------------------------------------------

TEST(SolidMomentsOfMesh, OfACube) {
  const TriangleMesh cube = parse_obj(kCube, "cube");
  const SolidMoments<double> m = solid_moments(cube, "cube");
  EXPECT_NEAR(m.volume, 1, 1e-15);
  expect_near(m.com, {0.5, 0.5, 0.5}, 1e-15);
  expect_near(m.second, {1.0 / 12, 1.0 / 12, 1.0 / 12, 0, 0, 0}, 1e-15);
}

/// Far from the origin and turned: what is about the com keeps its digits.
TEST(SolidMomentsOfMesh, OfACubeElsewhere) {
  const Point by{1000, -2000, 3000};
  const SolidMoments<double> m = solid_moments(moved(parse_obj(kCube, "cube"), kTurn, by), "cube");
  EXPECT_NEAR(m.volume, 1, 1e-11);
  expect_near(m.com, by + kTurn * Point{0.5, 0.5, 0.5}, 1e-11);
  expect_near(m.second, {1.0 / 12, 1.0 / 12, 1.0 / 12, 0, 0, 0}, 1e-11);
}

/// ∫x = 1/24, ∫x² = 1/60 and ∫xy = 1/120 over the corner of the unit cube.
TEST(SolidMomentsOfMesh, OfATetrahedron) {
  const SolidMoments<double> m = solid_moments(parse_obj(kTetrahedron, "tetrahedron"), "tetrahedron");
  EXPECT_NEAR(m.volume, 1.0 / 6, 1e-16);
  expect_near(m.com, {0.25, 0.25, 0.25}, 1e-16);
  const double own = 1.0 / 60 - 1.0 / 96, mixed = 1.0 / 120 - 1.0 / 96;
  expect_near(m.second, {own, own, own, mixed, mixed, mixed}, 1e-16);
}

/// The errors of volume and second moment fall with the square of the edge: a quarter per round.
TEST(SolidMomentsOfMesh, OfASphereConverges) {
  double last = 0;
  for (int rounds : {2, 3, 4, 5}) {
    const SolidMoments<double> m = solid_moments(sphere(rounds), "sphere");
    const double error = 1 - m.volume / (4 * M_PI / 3);
    EXPECT_GT(error, 0);
    if (last > 0) {
      EXPECT_NEAR(error / last, 0.25, 0.02);
    }
    last = error;
    EXPECT_NEAR(m.second.xx / (4 * M_PI / 15), 1, 2 * error);
    EXPECT_NEAR(m.second.zz / m.second.xx, 1, 1e-13);
    expect_near(m.com, {0, 0, 0}, 1e-15);
  }
  EXPECT_LT(last, 1.5e-3);
}

/// A cube with a hollow: the inner surface faces inwards.
TEST(SolidMomentsOfMesh, OfAHollowBody) {
  TriangleMesh cube = parse_obj(kCube, "cube");
  const size_t outer = cube.vertices.size();
  for (size_t v = 0; v < outer; ++v) cube.vertices.push_back(cube.vertices[v] * 0.5 + Point{0.25, 0.25, 0.25});
  const auto triangles = cube.triangles;
  const int shift = static_cast<int>(outer);
  for (const auto& [a, b, c] : triangles) cube.triangles.push_back({a + shift, c + shift, b + shift});
  const SolidMoments<double> m = solid_moments(cube, "hollow");
  EXPECT_NEAR(m.volume, 1 - 0.125, 1e-15);
  EXPECT_NEAR(m.second.xx, 1.0 / 12 - 1.0 / 12 / 32, 1e-15);
}

TEST(SolidMomentsOfMesh, OfAHullAreThoseOfItsMesh) {
  const TriangleMesh mesh = moved(sphere(2), kTurn, {1, 2, 3});
  const SolidMoments<double> own = solid_moments(mesh, "sphere"), hull = solid_moments(convex_hull(mesh, "sphere", 66));
  EXPECT_NEAR(hull.volume, own.volume, 1e-13);
  expect_near(hull.com, own.com, 1e-13);
  expect_near(hull.second, own.second, 1e-13);
}

std::string refusal(const TriangleMesh& mesh) {
  try {
    solid_moments(mesh, "part.obj");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "accepted";
}

TEST(SolidMomentsOfMesh, RefusesWhatIsNotClosed) {
  const TriangleMesh cube = parse_obj(kCube, "cube");
  TriangleMesh open = cube, turned = cube, twice = cube, inside_out = cube;
  open.triangles.pop_back();
  std::swap(turned.triangles[3][0], turned.triangles[3][1]);
  twice.triangles.push_back(twice.triangles[0]);
  for (auto& corners : inside_out.triangles) std::swap(corners[0], corners[1]);
  EXPECT_EQ(refusal(cube), "accepted");
  EXPECT_TRUE(refusal(open).starts_with(
      "part.obj: the edge from (0, 1, 0) to (0, 0, 1) belongs to 1 triangle: expected a closed "
      "mesh"))
      << refusal(open);
  EXPECT_NE(refusal(turned).find("is run along twice in the same direction"), std::string::npos) << refusal(turned);
  EXPECT_NE(refusal(twice).find("belongs to 3 triangles: expected"), std::string::npos) << refusal(twice);
  EXPECT_EQ(
      refusal(inside_out),
      "part.obj: volume -1 (inside out): expected triangles whose corners run counterclockwise seen from outside");
  EXPECT_EQ(refusal({}), "part.obj: no triangles: expected a closed mesh");
  const TriangleMesh leaf{{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {{0, 1, 2}, {0, 2, 1}}};
  EXPECT_NE(refusal(leaf).find("expected a mesh that bounds a volume"), std::string::npos) << refusal(leaf);
}

// ---- mass by scale --------------------------------------------------------------------------------------------------

TEST(MeshMass, OfAScaledCubeIsThatOfABox) {
  const SolidMoments<double> cube = solid_moments(parse_obj(kCube, "cube"), "cube");
  const Point s{0.2, 0.4, 0.6}, at{1, 2, 3};
  const MassProperties<double> mesh = mesh_mass<double>({cube, s, 700, at, kTurn});
  const MassProperties<double> box =
      shape_mass<double>({GeometryType::box, s * 0.5, 700, at + kTurn * (s * 0.5), kTurn});
  EXPECT_NEAR(mesh.mass, box.mass, 1e-13);
  expect_near(mesh.com, box.com, 1e-15);
  expect_near(mesh.inertia, box.inertia, 1e-14);
}

/// Scaled as numbers, and as vertices.
TEST(MeshMass, IsThatOfTheMeshScaled) {
  TriangleMesh mesh = moved(parse_obj(kTetrahedron, "tetrahedron"), kTurn, {0.3, -0.2, 0.1});
  const Point s{0.5, 2, 3};
  const SolidMoments<double> by_numbers = scaled_moments(solid_moments(mesh, "tetrahedron"), s);
  for (Point& p : mesh.vertices) p = {p.x * s.x, p.y * s.y, p.z * s.z};
  const SolidMoments<double> by_vertices = solid_moments(mesh, "tetrahedron");
  EXPECT_NEAR(by_numbers.volume, by_vertices.volume, 1e-15);
  expect_near(by_numbers.com, by_vertices.com, 1e-15);
  expect_near(by_numbers.second, by_vertices.second, 1e-15);
  EXPECT_GT(std::abs(by_numbers.second.xy), 1e-3);
}

// ---- adjoints -------------------------------------------------------------------------------------------------------

SolidMesh<double> random_mesh(std::mt19937& random) {
  std::uniform_real_distribution<double> u(-1, 1), positive(0.3, 1.5);
  const auto any = [&] { return Point{u(random), u(random), u(random)}; };
  double q[4], squares = 0;
  for (double& c : q) c = u(random), squares += c * c;
  for (double& c : q) c /= std::sqrt(squares);
  std::vector<Point> points;
  for (int i = 0; i < 12; ++i) points.push_back(any() + Point{0.4, 0.2, -0.3});
  return {solid_moments(convex_hull(points, "points")),
          {positive(random), positive(random), positive(random)},
          positive(random),
          any(),
          rotation_matrix(q[0], q[1], q[2], q[3])};
}

const MassProperties<double> kBar{1.3, {0.7, -1.1, 0.4}, {0.9, -0.8, 0.5, 1.3, -0.6, 0.2}};

/// ⟨bar, derivative by input `input`⟩, by the primal on duals. The inertia's six numbers are independent here.
double exact(const SolidMesh<double>& mesh, size_t input) {
  const auto seed = [&](size_t k) { return k == input ? 1.0 : 0.0; };
  const Point theta{seed(7), seed(8), seed(9)};
  const auto column = [&](const Point& c, const Point& axis) {  // R exp(ε θ) = R + ε R [θ]×
    const Point turn = mesh.rotation * cross(theta, axis);
    return Vec3<D>{{c.x, turn.x}, {c.y, turn.y}, {c.z, turn.z}};
  };
  const SolidMesh<D> moving{
      mesh.moments,
      {{mesh.scale.x, seed(0)}, {mesh.scale.y, seed(1)}, {mesh.scale.z, seed(2)}},
      {mesh.density, seed(3)},
      {{mesh.position.x, seed(4)}, {mesh.position.y, seed(5)}, {mesh.position.z, seed(6)}},
      {column(mesh.rotation.cx, {1, 0, 0}), column(mesh.rotation.cy, {0, 1, 0}), column(mesh.rotation.cz, {0, 0, 1})}};
  const MassProperties<D> m = mesh_mass(moving);
  const Sym3<double>& J = kBar.inertia;
  return kBar.mass * m.mass.dot + kBar.com.x * m.com.x.dot + kBar.com.y * m.com.y.dot + kBar.com.z * m.com.z.dot +
         J.xx * m.inertia.xx.dot + J.yy * m.inertia.yy.dot + J.zz * m.inertia.zz.dot + J.xy * m.inertia.xy.dot +
         J.xz * m.inertia.xz.dot + J.yz * m.inertia.yz.dot;
}

Gradient adjoint(const SolidMesh<double>& mesh, const MassProperties<double>& bar = kBar) {
  SolidShapeBar<double> b;
  adj_mesh_mass(mesh, bar, b);
  return {b.scale.x,    b.scale.y,    b.scale.z, b.density, b.position.x,
          b.position.y, b.position.z, b.theta.x, b.theta.y, b.theta.z};
}

/// Largest difference, as a share of the largest component.
double difference(const Gradient& a, const Gradient& b) {
  double largest = 0, apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    apart = std::max(apart, std::abs(a[i] - b[i]));
  }
  return apart / largest;
}

TEST(AdjMeshMass, AgreesWithDuals) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    const SolidMesh<double> mesh = random_mesh(random);
    Gradient duals;
    for (size_t i = 0; i < duals.size(); ++i) {
      duals[i] = exact(mesh, i);
      EXPECT_GT(std::abs(duals[i]), 1e-6) << "input " << i;  // nothing that is compared is zero
    }
    EXPECT_LT(difference(adjoint(mesh), duals), 1e-13);
  }
}

/// The comparison can fail: it sees every part of the adjoint go missing, products of inertia included.
TEST(AdjMeshMass, WrongTermsAreSeen) {
  std::mt19937 random(12);
  const SolidMesh<double> mesh = random_mesh(random);
  Gradient duals;
  for (size_t i = 0; i < duals.size(); ++i) duals[i] = exact(mesh, i);
  EXPECT_LT(difference(adjoint(mesh), duals), 1e-13);
  for (size_t i = 0; i < duals.size(); ++i) {
    Gradient wrong = adjoint(mesh);
    wrong[i] = 0;
    EXPECT_GT(difference(wrong, duals), 1e-4) << "input " << i;
  }
  for (int term = 0; term < 3; ++term) {
    SolidMesh<double> other = mesh;
    Sym3<double>& S = other.moments.second;
    if (term == 0) S.xy = S.xz = S.yz = 0;
    if (term == 1) other.moments.com = {};
    if (term == 2) S.xx *= 1 + 1e-9;  // even a digit in the ninth place
    EXPECT_GT(difference(adjoint(other), duals), term == 2 ? 1e-12 : 1e-3) << "term " << term;
  }
  // Taking the six numbers for the symmetric gradient forgets that the off-diagonals stand in two places.
  MassProperties<double> bar = kBar;
  bar.inertia = six_numbers(bar.inertia);
  EXPECT_GT(difference(adjoint(mesh, bar), duals), 1e-3);
}

/// Central differences of polynomials of degree 5 or less in the scale, with h for 1e-16^(1/3): 1e-10 of the value.
TEST(AdjMeshMass, AgreesWithDifferences) {
  std::mt19937 random(13);
  const SolidMesh<double> mesh = random_mesh(random);
  const double h = 6e-6;
  const auto value = [](const SolidMesh<double>& m) {
    const MassProperties<double> p = mesh_mass(m);
    const Sym3<double>&J = kBar.inertia, &K = p.inertia;
    return kBar.mass * p.mass + dot(kBar.com, p.com) + J.xx * K.xx + J.yy * K.yy + J.zz * K.zz + J.xy * K.xy +
           J.xz * K.xz + J.yz * K.yz;
  };
  const Gradient gradient = adjoint(mesh);
  double Point::*const axes[] = {&Point::x, &Point::y, &Point::z};
  for (int i = 0; i < 3; ++i) {
    SolidMesh<double> up = mesh, down = mesh;
    up.scale.*axes[i] += h;
    down.scale.*axes[i] -= h;
    const double by_differences = (value(up) - value(down)) / (2 * h);
    EXPECT_NEAR(by_differences, gradient[i], 1e-8 * std::abs(gradient[i]));
    EXPECT_NE(by_differences, gradient[i]);
    EXPECT_GT(std::abs(gradient[i]), 1e-2);
  }
}

TEST(AdjMeshMass, AddsToWhatIsThere) {
  std::mt19937 random(14);
  const SolidMesh<double> mesh = random_mesh(random);
  SolidShapeBar<double> once, twice;
  adj_mesh_mass(mesh, kBar, once);
  for (int k = 0; k < 2; ++k) adj_mesh_mass(mesh, kBar, twice);
  EXPECT_EQ(2 * once.scale.x, twice.scale.x);
  EXPECT_EQ(2 * once.density, twice.density);
  EXPECT_EQ(2 * once.position.y, twice.position.y);
  EXPECT_EQ(2 * once.theta.z, twice.theta.z);
}

/// A scale of zero along one axis has a gradient all the same: nothing is divided by it.
TEST(AdjMeshMass, OfAFlattenedMeshIsFinite) {
  std::mt19937 random(15);
  SolidMesh<double> mesh = random_mesh(random);
  mesh.scale.z = 0;
  const Gradient gradient = adjoint(mesh);
  for (double g : gradient) EXPECT_TRUE(std::isfinite(g));
  EXPECT_NEAR(gradient[2], exact(mesh, 2), 1e-12);
  EXPECT_GT(std::abs(gradient[2]), 1e-3);
}

/// The adjoint through duals (Hessian-vector products go this way).
TEST(AdjMeshMass, RunsOnDuals) {
  std::mt19937 random(16);
  SolidMesh<double> mesh = random_mesh(random);
  const auto lift = [](const Point& p) { return Vec3<D>{p.x, p.y, p.z}; };
  SolidMesh<D> moving{mesh.moments,
                      lift(mesh.scale),
                      mesh.density,
                      lift(mesh.position),
                      {lift(mesh.rotation.cx), lift(mesh.rotation.cy), lift(mesh.rotation.cz)}};
  moving.scale.x.dot = 1;
  const Sym3<double>& J = kBar.inertia;
  SolidShapeBar<D> bar;
  adj_mesh_mass(moving, MassProperties<D>{kBar.mass, lift(kBar.com), {J.xx, J.yy, J.zz, J.xy, J.xz, J.yz}}, bar);
  const double h = 1e-5;
  mesh.scale.x += h;
  const Gradient up = adjoint(mesh);
  mesh.scale.x -= 2 * h;
  const Gradient down = adjoint(mesh);
  EXPECT_NEAR(bar.scale.y.dot, (up[1] - down[1]) / (2 * h), 1e-8);
  EXPECT_NEAR(bar.theta.z.dot, (up[9] - down[9]) / (2 * h), 1e-8);
  EXPECT_GT(std::abs(bar.scale.y.dot), 1e-3);
}

}  // namespace
}  // namespace backdrive
