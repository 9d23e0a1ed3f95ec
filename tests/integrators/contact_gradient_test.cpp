// The adjoints of all pair functions: against dual numbers through the same source, and those against central
// differences; and that a faulty adjoint is noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/integrators/contact_cases.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using test::CaseOptions;
using test::PairCase;
using test::PairKinds;
using test::PairMotion;
using test::Points;
using test::Random;

/// ⟨w, Jv⟩ = ⟨Jᵀw, v⟩ relative to the sum of the magnitudes of its terms. Both sides take some hundred operations and
/// cancel little: ε times a few thousand.
constexpr double kIdentity = 1e-12;
/// Where segments are parallel but for √β the solution of (1) in features.h loses up to 1/β (kSegmentPull): ε/β.
constexpr double kIdentityNearParallel = 3e-11;

Points random_cotangents(const Points& points, Random& random) {
  Points bar = points;
  for (auto& p : bar) {
    const auto number = [&] { return random.symmetric(1); };
    p = {number(), {number(), number(), number()}, {number(), number(), number()}};
  }
  return bar;
}

double magnitude(const Vec3<double>& a, const Vec3<double>& b) {
  return std::abs(a.x * b.x) + std::abs(a.y * b.y) + std::abs(a.z * b.z);
}
double magnitude(const PairMotion& a, const PairMotion& b) {
  double sum = 0;
  for (auto s : {&PairMotion::a, &PairMotion::b}) {
    sum += magnitude((a.*s).pose.ang, (b.*s).pose.ang) + magnitude((a.*s).pose.lin, (b.*s).pose.lin) +
           magnitude((a.*s).scale, (b.*s).scale);
  }
  return sum;
}

/// A fault that the checks must notice changes the cotangents given to the adjoint or those that it returns.
struct Fault {
  std::function<void(Points&)> given;
  std::function<void(const PairCase&, const Points&, PairMotion&)> returned;
};

double identity_error(const PairCase& c, Random& random, const Fault& fault = {}) {
  const PairMotion v = test::random_motion(random);
  const Points dot = test::points_dot(c, v);
  const Points w = random_cotangents(dot, random);
  Points given = w;
  if (fault.given) fault.given(given);
  PairMotion bar = test::points_adjoint(c, given);
  if (fault.returned) fault.returned(c, w, bar);
  double forward = 0, sum = magnitude(bar, v);
  for (std::size_t i = 0; i < w.size(); ++i) {
    forward += test::inner(w[i], dot[i]);
    sum +=
        std::abs(w[i].gap * dot[i].gap) + magnitude(w[i].point, dot[i].point) + magnitude(w[i].normal, dot[i].normal);
  }
  EXPECT_TRUE(std::isfinite(sum));
  return std::abs(forward - test::inner(bar, v)) / std::max(sum, 1e-30);
}

double worst_identity(PairKinds kinds, const CaseOptions& options, int count, const Fault& fault = {}) {
  Random random(11);
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    worst = std::max(worst, identity_error(test::random_case(kinds, random, options), random, fault));
  }
  return worst;
}

class ContactPairs : public testing::TestWithParam<PairKinds> {};
INSTANTIATE_TEST_SUITE_P(All, ContactPairs, testing::ValuesIn(test::all_pairs()),
                         [](const auto& info) { return test::name_of(info.param); });

TEST_P(ContactPairs, AdjointsAgreeWithDuals) {
  EXPECT_LT(worst_identity(GetParam(), {}, test::kSanitized ? 40 : 200), kIdentity);
}

TEST_P(ContactPairs, AdjointsAgreeWithDualsWhereAxesAreNearlyParallel) {
  for (double tilt : {1e-1, 1e-2, 1e-3, 1e-6, 0.0}) {
    CaseOptions options;
    options.tilt = tilt;
    EXPECT_LT(worst_identity(GetParam(), options, 50), kIdentityNearParallel) << "tilt " << tilt;
  }
}

TEST_P(ContactPairs, AdjointsAgreeWithDualsDeepInside) {
  CaseOptions options;
  options.low = -0.15, options.high = -0.05;
  EXPECT_LT(worst_identity(GetParam(), options, 100), kIdentity);
}

/// The error of central differences is ε/h from rounding, some 1e-10 here, and h² times third derivatives: with lengths
/// of 0.05 and more, 1e-12/0.05² for gaps, more for normals. Cases in which features change within the step are known
/// by second differences that do not shrink with h², and are few.
TEST_P(ContactPairs, DerivativesAgreeWithDifferences) {
  constexpr double h = 1e-6, tolerance = 1e-6;
  constexpr int cases = 100;
  Random random(13);
  int skipped = 0, points = 0;
  double largest = 0;
  for (int i = 0; i < cases; ++i) {
    const PairCase c = test::random_case(GetParam(), random);
    const PairMotion v = test::random_motion(random);
    const Points dot = test::points_dot(c, v), at = test::points_of(c);
    const Points plus = test::points_of(test::moved(c, v, h)), minus = test::points_of(test::moved(c, v, -h));
    for (std::size_t k = 0; k < dot.size(); ++k) {
      ++points;
      const auto entry = [](const test::ContactPoint<double>& p, int n) { return (&p.gap)[n]; };
      double bend = 0, size = 1;
      for (int n = 0; n < 7; ++n) {
        bend = std::max(bend, std::abs(entry(plus[k], n) + entry(minus[k], n) - 2 * entry(at[k], n)));
        size = std::max(size, std::abs(entry(dot[k], n)));
      }
      if (bend > 1e-3 * h) {
        ++skipped;
        continue;
      }
      for (int n = 0; n < 7; ++n) {
        const double difference = (entry(plus[k], n) - entry(minus[k], n)) / (2 * h);
        EXPECT_NEAR(entry(dot[k], n), difference, tolerance * size) << "entry " << n << " of point " << k;
        largest = std::max(largest, std::abs(difference));
      }
    }
  }
  EXPECT_LE(skipped, points / 25);
  EXPECT_GT(largest, 0.1);
}

/// Proof that the identity can fail.
TEST_P(ContactPairs, FaultyAdjointsAreNoticed) {
  constexpr double kNoticed = 1e-3;  // a billion times what sound adjoints are allowed
  const Fault no_normal{[](Points& bar) {
                          for (auto& p : bar) p.normal = {0, 0, 0};
                        },
                        {}};
  const Fault no_point{[](Points& bar) {
                         for (auto& p : bar) p.point = {0, 0, 0};
                       },
                       {}};
  /// The normal held fast, the usual shortcut: x̄ = n gap̄ + point̄ at the point of contact and no more.
  const Fault frozen{{}, [](const PairCase& c, const Points& w, PairMotion& bar) {
                       bar.a.pose = bar.b.pose = zero6<double>();
                       const Points at = test::points_of(c);
                       for (std::size_t i = 0; i < w.size(); ++i) {
                         const Vec3<double> x = at[i].normal * w[i].gap + w[i].point * 0.5;
                         bar.a.pose += Spatial<double>{cross(at[i].point, x), x};
                         const Vec3<double> y = w[i].point - x;
                         bar.b.pose += Spatial<double>{cross(at[i].point, y), y};
                       }
                     }};
  EXPECT_GT(worst_identity(GetParam(), {}, 20, no_normal), kNoticed);
  EXPECT_GT(worst_identity(GetParam(), {}, 20, no_point), kNoticed);
  EXPECT_GT(worst_identity(GetParam(), {}, 20, frozen), kNoticed);
}

/// A common motion of both shapes changes no gap, and carries points and normals along.
TEST_P(ContactPairs, CommonMotionsCarryThePointsAlong) {
  Random random(17);
  for (int i = 0; i < 20; ++i) {
    const PairCase c = test::random_case(GetParam(), random);
    PairMotion v = test::random_motion(random);
    v.a.scale = v.b.scale = zero3<double>();
    v.b.pose = v.a.pose;
    const Points at = test::points_of(c), dot = test::points_dot(c, v);
    for (std::size_t k = 0; k < at.size(); ++k) {
      if (test::is_far(at[k])) continue;
      // rounding, times up to 1/β where segments are nearly parallel
      constexpr double tolerance = 1e-10;
      const Vec3<double> of_point = dot[k].point - cross(v.a.pose.ang, at[k].point) - v.a.pose.lin;
      const Vec3<double> of_normal = dot[k].normal - cross(v.a.pose.ang, at[k].normal);
      EXPECT_NEAR(dot[k].gap, 0, tolerance);
      EXPECT_NEAR(std::sqrt(backdrive::dot(of_point, of_point)), 0, tolerance);
      EXPECT_NEAR(std::sqrt(backdrive::dot(of_normal, of_normal)), 0, tolerance);
    }
  }
}

/// A force along the normal does work at the rate of the gap: the gap's gradient is the wrench of the unit force n at
/// the point on A, and its opposite on B, so that what A gains in momentum B loses. Exact where a gap is a distance of
/// features; within (√β of kSegmentPull times lengths) where a point is drawn along a capsule's segment or, of two
/// cylinders side at side, along the axes, unless a segment is within β times its length over the distance of parallel
/// to a face (one of 10,000), where the point passes from end to end. Left out: box on box, whose places are clamped
/// sideways, and supports of curved shapes away from their normal, on fields.
TEST_P(ContactPairs, GapsChangeByTheWrenchOfAUnitForce) {
  using K = test::ShapeKind;
  const PairKinds kinds = GetParam();
  const bool clamped = kinds.a == K::box && kinds.b == K::box;
  const bool curved = (kinds.a == K::cylinder || kinds.a == K::ellipsoid) && kinds.b == K::height_field;
  const bool drawn =
      (kinds.a == K::capsule && !contact::is_ground(kinds.b)) || (kinds.a == K::cylinder && kinds.b == K::cylinder);
  // of exact ones rounding: 1e-16 by numbers up to 1 over the square of 0.01 rad, below which edges count as parallel
  const double tolerance = drawn ? 3e-3 : 1e-11;
  // a place of a rim that Newton's method has not found shows in one of 200
  const int cases = kinds.a == K::box && kinds.b == K::cylinder ? 400 : 50;
  Random random(19);
  for (int i = 0; i < cases; ++i) {
    const PairCase c = test::random_case(kinds, random);
    const Points at = test::points_of(c);
    for (std::size_t k = 0; k < at.size(); ++k) {
      if (test::is_far(at[k])) continue;
      Points bar(at.size(), {0, {0, 0, 0}, {0, 0, 0}});
      bar[k].gap = 1;
      const PairMotion m = test::points_adjoint(c, bar);
      const Spatial<double> sum = m.a.pose + m.b.pose;
      EXPECT_LT(std::sqrt(backdrive::dot(sum, sum)), 1e-10);
      if (clamped || curved) continue;
      const Spatial<double> wrench{cross(at[k].point, at[k].normal), at[k].normal};
      const Spatial<double> error = m.a.pose - wrench;
      EXPECT_LT(std::sqrt(backdrive::dot(error, error)), tolerance) << "case " << i << " point " << k;
    }
  }
}

}  // namespace
}  // namespace backdrive
