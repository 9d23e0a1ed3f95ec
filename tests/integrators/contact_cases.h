#pragma once
// Shapes at random places for the tests of pair functions, and the pair functions in the numbers that they use.
#include <string>
#include <vector>

#include "integrators/contact/pairs.h"
#include "tests/support/random.h"

namespace backdrive::test {

using contact::ContactPoint;
using contact::Geometry;
using contact::Shape;
using contact::ShapeBar;
using contact::ShapeKind;
using Points = std::vector<ContactPoint<double>>;

struct PairKinds {
  ShapeKind a, b;
};
/// The 33 pairs in order (contact::in_order).
std::vector<PairKinds> all_pairs();
std::string name_of(ShapeKind kind);
std::string name_of(PairKinds pair);

/// Of a cube about the origin.
inline Vec3<double> random_point(Random& random, double bound) {
  return {random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
}

/// What all worlds share: an irregular icosahedron as mesh (a box's mesh for boxes), an 8 x 7 height field.
Geometry<double> geometry_of(ShapeKind kind);

struct PairCase {
  Geometry<double> ga, gb;
  Shape<double> a, b;
};
struct PairMotion {
  ShapeBar<double> a, b;
};

struct CaseOptions {
  double low = -0.03, high = 0.05;  ///< range of the least gap
  double tilt = 4;                  ///< B's axes are A's turned by up to this much, rad
};
/// Random sizes and poses, A moved along a random way (along z for grounds) until its least gap is a random number of
/// the range to 1e-3.
PairCase random_case(PairKinds kinds, Random& random, const CaseOptions& options = {});
PairMotion random_motion(Random& random);
Mat3<double> turn(const Vec3<double>& angle);

bool is_far(const ContactPoint<double>& p);
double least_gap(const Points& points);

/// As contact_points, for numbers and for a direction of change.
Points points_of(const PairCase& c);
Points points_dot(const PairCase& c, const PairMotion& v);
PairMotion points_adjoint(const PairCase& c, Points bar);
/// The case with both shapes moved by h v: x → exp(hθ) x + h t.
PairCase moved(const PairCase& c, const PairMotion& v, double h);

double inner(const ContactPoint<double>& a, const ContactPoint<double>& b);
double inner(const PairMotion& a, const PairMotion& b);

}  // namespace backdrive::test
