// What is left out of a step before its points are sought: never a pair whose points are in reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "integrators/contact/find_contacts.h"
#include "tests/integrators/contact_cases.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using test::PairCase;
using test::PairKinds;
using test::Random;
using K = test::ShapeKind;

/// As geometry_table.cpp has it.
test::Geometry<double> with_half(test::Geometry<double> g) {
  for (int i = 0; g.kind == K::mesh && i < g.mesh.vertex_count; ++i) {
    for (int k = 0; k < 3; ++k) g.half[k] = std::max(g.half[k], std::abs(g.mesh.vertices[3 * i + k]));
  }
  return g;
}

bool may_meet(const PairCase& c, double reach) {
  const auto ball = [](const test::Geometry<double>& geometry, const test::Shape<double>& shape) {
    ShapeConstants<double> constants{};
    constants.rotation = shape.pose.axes, constants.position = shape.pose.origin, constants.scale = shape.scale;
    return contact::ball_of<double>(with_half(geometry), constants, 0, -1);
  };
  auto a = ball(c.ga, c.a);
  const auto b = ball(c.gb, c.b);
  a.reach = reach;
  const Vec3<double> normal = c.b.pose.axes.cz;
  return contact::may_meet<double>(a, b, a.centre - b.centre, a.capsule || b.capsule,
                                   c.gb.kind == K::plane ? &normal : nullptr);
}

class ContactReach : public testing::TestWithParam<PairKinds> {};
INSTANTIATE_TEST_SUITE_P(All, ContactReach, testing::ValuesIn(test::all_pairs()),
                         [](const auto& info) { return test::name_of(info.param); });

TEST_P(ContactReach, NoPairInReachIsLeftOut) {
  Random random(77);
  for (int round = 0; round < (test::kSanitized ? 100 : 500); ++round) {
    const PairCase c = test::random_case(GetParam(), random, {-0.03, 0.4, 4});
    const double gap = test::least_gap(test::points_of(c));
    // Of two polyhedra that are apart a gap may be that of a face's plane, which is nearer than they are.
    const auto has_faces = [](K kind) { return kind == K::box || kind == K::cylinder || kind == K::mesh; };
    if (has_faces(GetParam().a) && has_faces(GetParam().b) && gap > 0) continue;
    EXPECT_TRUE(may_meet(c, gap + 1e-12)) << round;
    EXPECT_TRUE(may_meet(c, std::max(gap, 0.0) + random.uniform(0, 0.1))) << round;
  }
}

// Balls that hold these leave out a tenth.
TEST(ContactReach, MostCapsulesApartAreLeftOut) {
  Random random(78);
  int out = 0;
  constexpr int tries = 2000;
  for (int round = 0; round < tries; ++round) {
    const PairCase c = test::random_case({K::capsule, K::capsule}, random, {0.05, 0.4, 4});
    out += !may_meet(c, test::least_gap(test::points_of(c)) / 2);
  }
  EXPECT_GT(out, tries / 2);
}

}  // namespace
}  // namespace backdrive
