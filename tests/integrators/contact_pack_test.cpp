// A pack of worlds, each with its own poses and sizes and its own nearest features, has the numbers of the worlds
// alone.
#include "engine/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/integrators/contact_cases.h"

namespace backdrive {
namespace {

using test::PairCase;
using test::PairKinds;
using test::PairMotion;
using test::Points;
using test::Random;

using Pack = NativePack<double>;
constexpr int kLanes = Pack::lanes;

/// Shape, ShapeBar and ContactPoint are nothing but numbers.
template <class To, class From>
void set_lane(To& to, const From& from, int lane) {
  constexpr int count = sizeof(From) / sizeof(double);
  static_assert(sizeof(To) == count * sizeof(Pack));
  for (int i = 0; i < count; ++i) reinterpret_cast<Pack*>(&to)[i].set(lane, reinterpret_cast<const double*>(&from)[i]);
}
template <class Packed, class Number>
double difference(const Packed& packed, const Number& number, int lane) {
  constexpr int count = sizeof(Number) / sizeof(double);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    const double expected = reinterpret_cast<const double*>(&number)[i];
    const double error = std::abs(reinterpret_cast<const Pack*>(&packed)[i][lane] - expected);
    worst = std::max(worst, error / (1 + std::abs(expected)));
  }
  return worst;
}

class ContactPacks : public testing::TestWithParam<PairKinds> {};
INSTANTIATE_TEST_SUITE_P(All, ContactPacks, testing::ValuesIn(test::all_pairs()),
                         [](const auto& info) { return test::name_of(info.param); });

TEST_P(ContactPacks, HaveTheNumbersOfTheirWorlds) {
  // The two round differently (fused multiply-adds); ill-conditioned places lose up to 1/β of kSegmentPull.
  constexpr double tolerance = 1e-9;
  Random random(43);
  for (int round = 0; round < 20; ++round) {
    std::vector<PairCase> cases;
    contact::Shape<Pack> a, b;
    for (int l = 0; l < kLanes; ++l) {
      cases.push_back(test::random_case(GetParam(), random));
      set_lane(a, cases[l].a, l);
      set_lane(b, cases[l].b, l);
    }
    const int count = contact::contact_count(cases[0].ga, cases[0].gb);
    std::vector<contact::ContactPoint<Pack>> points(count), bar(count);
    contact::contact_points<Pack>({cases[0].ga, a}, {cases[0].gb, b}, points.data());
    std::vector<Points> bars(kLanes, Points(count));
    for (int l = 0; l < kLanes; ++l) {
      const Points alone = test::points_of(cases[l]);
      for (int i = 0; i < count; ++i) {
        EXPECT_LT(difference(points[i], alone[i], l), tolerance) << "point " << i << " lane " << l;
        for (int n = 0; n < 7; ++n) (&bars[l][i].gap)[n] = random.symmetric(1);
        set_lane(bar[i], bars[l][i], l);
      }
    }
    contact::ShapeBar<Pack> a_bar{zero6<Pack>(), zero3<Pack>()}, b_bar = a_bar;
    contact::adj_contact_points<Pack>({cases[0].ga, a}, {cases[0].gb, b}, bar.data(), a_bar, b_bar);
    for (int l = 0; l < kLanes; ++l) {
      const PairMotion alone = test::points_adjoint(cases[l], bars[l]);
      EXPECT_LT(difference(a_bar, alone.a, l), tolerance) << "lane " << l;
      EXPECT_LT(difference(b_bar, alone.b, l), tolerance) << "lane " << l;
    }
  }
}

/// In float: what float32 kernels see of a shape.
contact::Shape<float> rounded(const contact::Shape<double>& s) {
  contact::Shape<float> r;
  constexpr int count = sizeof(s) / sizeof(double);
  for (int i = 0; i < count; ++i) {
    reinterpret_cast<float*>(&r)[i] = static_cast<float>(reinterpret_cast<const double*>(&s)[i]);
  }
  return r;
}
/// The least gap of a pair in float; of no mesh.
float least_gap_in_float(const PairCase& c) {
  static const contact::BoxMesh<float> box = contact::box_mesh<float>();
  const auto geometry = [](test::ShapeKind kind) {
    contact::Geometry<float> g{kind, {}, {}};
    if (kind == test::ShapeKind::box) g.mesh = box.view();
    return g;
  };
  const contact::Geometry<float> ga = geometry(c.ga.kind), gb = geometry(c.gb.kind);
  contact::ContactPoint<float> points[contact::kCylinderCylinderPoints];
  contact::contact_points<float>({ga, rounded(c.a)}, {gb, rounded(c.b)}, points);
  float least = static_cast<float>(contact::kFarGap);
  for (int k = 0; k < contact::contact_count(ga, gb); ++k) least = std::min(least, points[k].gap);
  return least;
}

/// To ε of float times the lengths, and 1/√β where segments are nearly parallel. Sizes are of 0.1 to 1; gaps do not
/// depend on the choice of features where these are equally near.
TEST(FloatSpheresAndCapsules, HaveTheGapsOfDouble) {
  using test::ShapeKind;
  Random random(53);
  for (const PairKinds kinds : {PairKinds{ShapeKind::sphere, ShapeKind::plane},
                                {ShapeKind::cylinder, ShapeKind::plane},
                                {ShapeKind::sphere, ShapeKind::box},
                                {ShapeKind::capsule, ShapeKind::capsule},
                                {ShapeKind::capsule, ShapeKind::box},
                                {ShapeKind::capsule, ShapeKind::cylinder},
                                {ShapeKind::cylinder, ShapeKind::cylinder},
                                {ShapeKind::box, ShapeKind::box}}) {
    for (int i = 0; i < 100; ++i) {
      const PairCase c = test::random_case(kinds, random);
      EXPECT_NEAR(least_gap_in_float(c), test::least_gap(test::points_of(c)), 3e-5) << test::name_of(kinds);
    }
  }
}

/// From millimetres to metres, and flat, to no thickness at all; to ε of float times the lengths and their ratios.
TEST(FloatEllipsoids, HaveTheGapsOfDouble) {
  using test::ShapeKind;
  Random random(59);
  for (const ShapeKind other :
       {ShapeKind::ellipsoid, ShapeKind::sphere, ShapeKind::capsule, ShapeKind::box, ShapeKind::cylinder}) {
    for (const double size : {0.01, 1., 20.}) {
      for (int i = 0; i < 60; ++i) {
        PairCase c = test::random_case({ShapeKind::ellipsoid, other}, random);
        c.a.scale.z *= i % 10 ? random.uniform(0.05, 1) : 0;
        for (contact::Shape<double>* const s : {&c.a, &c.b}) {
          s->pose.origin = s->pose.origin * size;
          s->scale = s->scale * size;
        }
        EXPECT_NEAR(least_gap_in_float(c), test::least_gap(test::points_of(c)), 3e-5 * size)
            << test::name_of(other) << " " << size << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace backdrive
