// Mass properties against integrals over slices, and every adjoint against dual numbers through the
// same source.
#include "models/mass_properties.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "models/parameter_reader.h"
#include "tests/models/model_cases.h"

namespace backdrive {
namespace {

using D = Dual<double>;
constexpr GeometryType kSolids[] = {GeometryType::sphere, GeometryType::ellipsoid, GeometryType::capsule,
                                    GeometryType::box, GeometryType::cylinder};
constexpr double kTolerance = 1e-12;

// ---- primal
// ---------------------------------------------------------------------------------------------------------

/// Half extents of the slice at height z, relative to the shape's own; its ends are at ±height.
struct Slices {
  double height;
  std::function<std::array<double, 2>(double)> half;
  bool round;
};

Slices slices(GeometryType type, const Vec3<double>& s) {
  const auto disc = [](double square) { return std::array{std::sqrt(square), std::sqrt(square)}; };
  switch (type) {
    case GeometryType::sphere:
      return {s.x, [=](double z) { return disc(s.x * s.x - z * z); }, true};
    case GeometryType::cylinder:
      return {s.y, [=](double) { return disc(s.x * s.x); }, true};
    case GeometryType::capsule:
      return {s.x + s.y,
              [=](double z) {
                const double beyond = std::max(0.0, std::abs(z) - s.y);
                return disc(s.x * s.x - beyond * beyond);
              },
              true};
    case GeometryType::ellipsoid:
      return {s.z,
              [=](double z) {
                const double k = std::sqrt(1 - z * z / (s.z * s.z));
                return std::array{s.x * k, s.y * k};
              },
              true};
    default:
      return {s.z, [=](double) { return std::array{s.x, s.y}; }, false};
  }
}

TEST(VolumeMoments, AgreeWithIntegralsOverSlices) {
  const Vec3<double> s{0.3, 0.5, 0.7};
  for (GeometryType type : kSolids) {
    const Slices shape = slices(type, s);
    double volume = 0, xx = 0, yy = 0, zz = 0;
    const int n = 20000;
    const double dz = 2 * shape.height / n;
    for (int i = 0; i < n; ++i) {
      const double z = -shape.height + (i + 0.5) * dz;
      const auto [a, b] = shape.half(z);
      const double area = (shape.round ? M_PI : 4) * a * b * dz, share = shape.round ? 0.25 : 1.0 / 3;
      volume += area;
      xx += area * a * a * share;
      yy += area * b * b * share;
      zz += area * z * z;
    }
    const VolumeMoments<double> m = volume_moments(type, s);
    EXPECT_NEAR(m.volume, volume, 1e-7 * volume) << to_string(type);
    EXPECT_NEAR(m.second.x, xx, 1e-7 * xx) << to_string(type);
    EXPECT_NEAR(m.second.y, yy, 1e-7 * yy) << to_string(type);
    EXPECT_NEAR(m.second.z, zz, 1e-7 * zz) << to_string(type);
  }
  EXPECT_EQ(volume_moments(GeometryType::plane, s).volume, 0);
}

TEST(VolumeMoments, KnownInertias) {
  const Mat3<double> one = identity3<double>();
  const auto ball = shape_mass<double>({GeometryType::sphere, {0.2, 0, 0}, 500, {}, one});
  EXPECT_NEAR(ball.inertia.xx, 0.4 * ball.mass * 0.04, 1e-15);
  const auto box = shape_mass<double>({GeometryType::box, {0.1, 0.2, 0.3}, 1000, {}, one});
  EXPECT_NEAR(box.mass, 48, 1e-12);
  EXPECT_NEAR(box.inertia.zz, 48 * (0.01 + 0.04) / 3, 1e-12);
  // A capsule without length is a ball.
  const auto capsule = shape_mass<double>({GeometryType::capsule, {0.2, 0, 0}, 500, {}, one});
  EXPECT_NEAR(capsule.inertia.xx, ball.inertia.xx, 1e-15);
  EXPECT_NEAR(capsule.inertia.zz, ball.inertia.zz, 1e-15);
}

TEST(RotationMatrix, TurnsAsTheQuaternionSays) {
  const double half = 0.35;  // 0.7 rad about z
  const Mat3<double> R = rotation_matrix(0.0, 0.0, std::sin(half), std::cos(half));
  EXPECT_NEAR(R.cx.x, std::cos(0.7), 1e-15);
  EXPECT_NEAR(R.cx.y, std::sin(0.7), 1e-15);
  EXPECT_NEAR(R.cy.x, -std::sin(0.7), 1e-15);
  EXPECT_NEAR(R.cz.z, 1, 1e-15);
}

void expect_same_bits(const MassProperties<double>& a, const MassProperties<double>& b) {
  EXPECT_EQ(a.mass, b.mass);
  EXPECT_EQ(a.com.x, b.com.x);
  EXPECT_EQ(a.com.y, b.com.y);
  EXPECT_EQ(a.com.z, b.com.z);
  EXPECT_EQ(a.inertia.xx, b.inertia.xx);
  EXPECT_EQ(a.inertia.yy, b.inertia.yy);
  EXPECT_EQ(a.inertia.zz, b.inertia.zz);
  EXPECT_EQ(a.inertia.xy, b.inertia.xy);
  EXPECT_EQ(a.inertia.xz, b.inertia.xz);
  EXPECT_EQ(a.inertia.yz, b.inertia.yz);
}

const MassProperties<double> kBody{1.7, {0.13, -0.21, 0.34}, {0.3, 0.4, 0.5, 0.01, -0.02, 0.03}};

TEST(Combined, IsExactWhenOnePartIsNothing) {
  expect_same_bits(combined(kBody, {}), kBody);
  expect_same_bits(combined({}, kBody), kBody);
  const SolidShape<double> empty{GeometryType::box, {1, 2, 3}, 0, {9, 9, 9}, identity3<double>()};
  expect_same_bits(combined(kBody, shape_mass(empty)), kBody);
  const auto nothing = combined<double>({}, {});
  EXPECT_EQ(nothing.mass, 0);
  EXPECT_EQ(nothing.com.x, 0);
  EXPECT_EQ(nothing.inertia.xx, 0);
}

TEST(Combined, TwoHalvesOfABoxAreTheBox) {
  const Mat3<double> R = rotation_matrix(0.5, 0.5, 0.5, 0.5);
  const Vec3<double> at{0.3, 0.2, -0.1};
  const auto half = [&](double side) {
    return SolidShape<double>{GeometryType::box, {0.1, 0.2, 0.3}, 700, at + R * Vec3<double>{side * 0.1, 0, 0}, R};
  };
  const std::vector<SolidShape<double>> halves{half(-1), half(1)};
  const auto two = body_mass<double>({}, halves);
  const auto whole = shape_mass<double>({GeometryType::box, {0.2, 0.2, 0.3}, 700, at, R});
  EXPECT_NEAR(two.mass, whole.mass, 1e-12);
  EXPECT_NEAR(two.com.x, whole.com.x, 1e-15);
  EXPECT_NEAR(two.inertia.xx, whole.inertia.xx, 1e-13);
  EXPECT_NEAR(two.inertia.yy, whole.inertia.yy, 1e-13);
  EXPECT_NEAR(two.inertia.zz, whole.inertia.zz, 1e-13);
  EXPECT_NEAR(two.inertia.xy, whole.inertia.xy, 1e-13);
}

TEST(Combined, AgreesWithSumsOfMoments) {
  const SolidShape<double> shape{
      GeometryType::capsule, {0.1, 0.4, 0}, 900, {0.2, 0.3, 0.4}, rotation_matrix(0.1, 0.7, -0.1, std::sqrt(0.49))};
  const auto sum = moments_of(combined(kBody, shape_mass(shape)));
  const auto a = moments_of(kBody), b = moments_of(shape_mass(shape));
  EXPECT_NEAR(sum.mass, a.mass + b.mass, 1e-13);
  EXPECT_NEAR(sum.first.y, a.first.y + b.first.y, 1e-13);
  EXPECT_NEAR(sum.inertia.xx, a.inertia.xx + b.inertia.xx, 1e-12);
  EXPECT_NEAR(sum.inertia.yz, a.inertia.yz + b.inertia.yz, 1e-12);
}

TEST(BodyMass, OfAModel) {
  const Model model = test::cart_pole().build();
  const double ball = 100 * 4 * M_PI / 3 * std::pow(0.05, 3);
  EXPECT_NEAR(body_mass(model, 1, 0).mass, 0.5 + ball, 1e-15);
  EXPECT_NEAR(body_mass(model, 1, 0).com.x, 0.05 / (0.5 + ball), 1e-15);
  expect_same_bits(body_mass(model, 0, 0), explicit_mass(model, 0, 0));
}

// ---- adjoints
// -------------------------------------------------------------------------------------------------------

/// All inputs of a body as one list: explicit mass 1, com 3, inertia 6, then per shape scale 3,
/// density 1, position 3, rotation tangent 3.
constexpr size_t kExplicit = 10, kShape = 10;

struct Body {
  MassProperties<double> explicit_part;
  std::vector<SolidShape<double>> shapes;
};

Body random_body(GeometryType type, std::mt19937& random) {
  std::uniform_real_distribution<double> u(-1, 1), positive(0.2, 1.2);
  const auto shape = [&](GeometryType t) {
    double q[4] = {u(random), u(random), u(random), u(random)}, squares = 0;
    for (double c : q) squares += c * c;
    for (double& c : q) c /= std::sqrt(squares);
    return SolidShape<double>{t,
                              {positive(random), positive(random), positive(random)},
                              positive(random),
                              {u(random), u(random), u(random)},
                              rotation_matrix(q[0], q[1], q[2], q[3])};
  };
  Body body;
  body.explicit_part = {positive(random),
                        {u(random), u(random), u(random)},
                        {3 + u(random), 3 + u(random), 3 + u(random), u(random), u(random), u(random)}};
  body.shapes = {shape(type), shape(GeometryType::box), shape(type)};
  return body;
}

/// Body properties with input `input` moved by ε.
template <class Result>
Result seeded(const Body& body, size_t input, Result (*finish)(const MassProperties<D>&)) {
  std::array<D, kExplicit> e;
  const auto& x = body.explicit_part;
  const double values[kExplicit] = {x.mass,       x.com.x,      x.com.y,      x.com.z,      x.inertia.xx,
                                    x.inertia.yy, x.inertia.zz, x.inertia.xy, x.inertia.xz, x.inertia.yz};
  for (size_t i = 0; i < kExplicit; ++i) e[i] = {values[i], i == input ? 1.0 : 0.0};
  std::vector<SolidShape<D>> shapes;
  for (size_t s = 0; s < body.shapes.size(); ++s) {
    const SolidShape<double>& own = body.shapes[s];
    const auto seed = [&](size_t k) { return kExplicit + s * kShape + k == input ? 1.0 : 0.0; };
    const Vec3<double> theta{seed(7), seed(8), seed(9)};
    // R exp(ε θ) = R + ε R [θ]×
    const auto column = [&](const Vec3<double>& c, const Vec3<double>& axis) {
      const Vec3<double> dot = own.rotation * cross(theta, axis);
      return Vec3<D>{{c.x, dot.x}, {c.y, dot.y}, {c.z, dot.z}};
    };
    shapes.push_back(
        {own.type,
         {{own.scale.x, seed(0)}, {own.scale.y, seed(1)}, {own.scale.z, seed(2)}},
         {own.density, seed(3)},
         {{own.position.x, seed(4)}, {own.position.y, seed(5)}, {own.position.z, seed(6)}},
         {column(own.rotation.cx, {1, 0, 0}), column(own.rotation.cy, {0, 1, 0}), column(own.rotation.cz, {0, 0, 1})}});
  }
  return finish(body_mass<D>({e[0], {e[1], e[2], e[3]}, {e[4], e[5], e[6], e[7], e[8], e[9]}}, shapes));
}

/// ⟨bar, derivative⟩ over mass, a vector and six inertia numbers.
double pair_up(double m, const Vec3<double>& v, const Sym3<double>& J, const D& m_, const Vec3<D>& v_,
               const Sym3<D>& J_) {
  return m * m_.dot + v.x * v_.x.dot + v.y * v_.y.dot + v.z * v_.z.dot + J.xx * J_.xx.dot + J.yy * J_.yy.dot +
         J.zz * J_.zz.dot + J.xy * J_.xy.dot + J.xz * J_.xz.dot + J.yz * J_.yz.dot;
}

std::vector<double> flat(const MassProperties<double>& e, const std::vector<SolidShapeBar<double>>& shapes) {
  std::vector<double> all{e.mass,       e.com.x,      e.com.y,      e.com.z,      e.inertia.xx,
                          e.inertia.yy, e.inertia.zz, e.inertia.xy, e.inertia.xz, e.inertia.yz};
  for (const auto& s : shapes) {
    for (double x : {s.scale.x, s.scale.y, s.scale.z, s.density, s.position.x, s.position.y, s.position.z, s.theta.x,
                     s.theta.y, s.theta.z}) {
      all.push_back(x);
    }
  }
  return all;
}

/// Compares each derivative with the adjoint's, relative to the largest; also that few of them are
/// zero.
void expect_agreement(GeometryType type, const std::vector<double>& adjoint,
                      const std::function<double(size_t)>& exact) {
  double largest = 0;
  for (double g : adjoint) largest = std::max(largest, std::abs(g));
  size_t nonzero = 0;
  for (size_t i = 0; i < adjoint.size(); ++i) {
    EXPECT_NEAR(adjoint[i], exact(i), kTolerance * std::max(1.0, largest)) << to_string(type) << ", input " << i;
    nonzero += adjoint[i] != 0;
  }
  // Two shapes of `type` leave up to two scales each and up to three turns of symmetry each unused.
  EXPECT_GE(nonzero, adjoint.size() - 10) << to_string(type);
}

const Vec3<double> kVectorBar{0.7, -1.1, 0.4};
const Sym3<double> kInertiaBar{0.9, -0.8, 0.5, 1.3, -0.6, 0.2};

TEST(AdjBodyMass, AgreesWithDualsForEveryTypeAndInput) {
  std::mt19937 random(7);
  for (GeometryType type : kSolids) {
    const Body body = random_body(type, random);
    MassProperties<double> e;
    std::vector<SolidShapeBar<double>> s(body.shapes.size());
    adj_body_mass<double>(body.explicit_part, body.shapes, MassProperties<double>{1.3, kVectorBar, kInertiaBar}, e, s);
    expect_agreement(type, flat(e, s), [&](size_t input) {
      const auto d = seeded<MassProperties<D>>(body, input, [](const MassProperties<D>& b) { return b; });
      return pair_up(1.3, kVectorBar, kInertiaBar, d.mass, d.com, d.inertia);
    });
  }
}

TEST(AdjBodyMass, OfMomentsAgreesWithDuals) {
  std::mt19937 random(8);
  for (GeometryType type : kSolids) {
    const Body body = random_body(type, random);
    MassProperties<double> e;
    std::vector<SolidShapeBar<double>> s(body.shapes.size());
    adj_body_mass<double>(body.explicit_part, body.shapes, MassMoments<double>{1.3, kVectorBar, kInertiaBar}, e, s);
    expect_agreement(type, flat(e, s), [&](size_t input) {
      const auto d = seeded<MassMoments<D>>(body, input, [](const MassProperties<D>& b) { return moments_of(b); });
      return pair_up(1.3, kVectorBar, kInertiaBar, d.mass, d.first, d.inertia);
    });
  }
}

TEST(AdjBodyMass, OfADensityOfZero) {
  std::mt19937 random(9);
  Body body = random_body(GeometryType::cylinder, random);
  body.shapes[0].density = 0;
  MassProperties<double> e;
  std::vector<SolidShapeBar<double>> s(body.shapes.size());
  adj_body_mass<double>(body.explicit_part, body.shapes, MassProperties<double>{1.3, kVectorBar, kInertiaBar}, e, s);
  const auto d = seeded<MassProperties<D>>(body, kExplicit + 3, [](const MassProperties<D>& b) { return b; });
  EXPECT_NEAR(s[0].density, pair_up(1.3, kVectorBar, kInertiaBar, d.mass, d.com, d.inertia), kTolerance);
  EXPECT_GT(std::abs(s[0].density), 0.01);
  EXPECT_EQ(s[0].scale.x, 0);
}

TEST(AdjBodyMass, OfAMasslessBodyIsFinite) {
  const std::vector<SolidShape<double>> shapes{{GeometryType::sphere, {0.1, 0, 0}, 0, {1, 2, 3}, identity3<double>()}};
  for (int by_moments : {0, 1}) {
    MassProperties<double> e;
    std::vector<SolidShapeBar<double>> s(1);
    if (by_moments) {
      adj_body_mass<double>({}, shapes, MassMoments<double>{1, kVectorBar, kInertiaBar}, e, s);
      // m̄ + com·h̄ + |com|² tr J̄ − comᵀ J̄ com with the ball at (1, 2, 3)
      const Sym3<double> J = symmetric_gradient(kInertiaBar);
      const Vec3<double> c{1, 2, 3};
      const double at = 1 + dot(c, kVectorBar) + 14 * (J.xx + J.yy + J.zz) - dot(c, J * c);
      const double V = 4 * M_PI / 3 * 1e-3;
      EXPECT_NEAR(s[0].density, V * (at + (J.xx + J.yy + J.zz) * 2.0 / 5 * 0.01), 1e-15);
    } else {
      adj_body_mass<double>({}, shapes, MassProperties<double>{1, kVectorBar, kInertiaBar}, e, s);
    }
    EXPECT_EQ(e.mass, 1);
    EXPECT_EQ(e.inertia.xy, kInertiaBar.xy);
    EXPECT_TRUE(std::isfinite(s[0].density));
  }
}

TEST(AdjBodyMass, AddsToWhatIsThere) {
  std::mt19937 random(10);
  const Body body = random_body(GeometryType::box, random);
  const MassProperties<double> bar{1.3, kVectorBar, kInertiaBar};
  MassProperties<double> once, twice;
  std::vector<SolidShapeBar<double>> s1(3), s2(3);
  adj_body_mass<double>(body.explicit_part, body.shapes, bar, once, s1);
  for (int k = 0; k < 2; ++k) adj_body_mass<double>(body.explicit_part, body.shapes, bar, twice, s2);
  const auto a = flat(once, s1), b = flat(twice, s2);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(2 * a[i], b[i]);
}

/// The adjoint through duals has the adjoint's values (Hessian-vector products go this way).
TEST(AdjBodyMass, RunsOnDuals) {
  const std::vector<SolidShape<D>> shapes{
      {GeometryType::capsule, {D(0.2, 1), D(0.4), D(0)}, D(3.0), {D(0.1), D(0.2), D(0.3)}, identity3<D>()}};
  MassProperties<D> e;
  std::vector<SolidShapeBar<D>> s(1);
  const MassProperties<D> bar{D(1), {D(0.7), D(-1.1), D(0.4)}, {D(0.9), D(-0.8), D(0.5), D(1.3), D(-0.6), D(0.2)}};
  adj_body_mass<D>({D(1), {D(0), D(0), D(0)}, {}}, shapes, bar, e, s);
  const auto gradient = [](double r) {
    const std::vector<SolidShape<double>> own{
        {GeometryType::capsule, {r, 0.4, 0}, 3, {0.1, 0.2, 0.3}, identity3<double>()}};
    MassProperties<double> eb;
    std::vector<SolidShapeBar<double>> sb(1);
    adj_body_mass<double>({1, {}, {}}, own, MassProperties<double>{1, kVectorBar, kInertiaBar}, eb, sb);
    return sb[0].scale.x;
  };
  EXPECT_DOUBLE_EQ(s[0].scale.x.value, gradient(0.2));
  EXPECT_NEAR(s[0].scale.x.dot, (gradient(0.2 + 1e-5) - gradient(0.2 - 1e-5)) / 2e-5, 1e-7);
}

TEST(SixNumbers, DoubleTheOffDiagonals) {
  const Sym3<double> six = six_numbers<double>({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(six.xx, 1);
  EXPECT_EQ(six.yz, 12);
  EXPECT_EQ(symmetric_gradient(six).xz, 5);
}

}  // namespace
}  // namespace backdrive
