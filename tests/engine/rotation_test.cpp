// Quaternions turned by rotation vectors, against Rodrigues' formula and dual numbers, from no turn at all to several
// whole ones, in all number types.
#include "engine/pack.h"

#include "engine/rotation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace backdrive {
namespace {

using V = Vec3<double>;
using D = Dual<double>;

double length_of(const V& v) {
  return std::sqrt(dot(v, v));
}

/// exp [φ]× by Rodrigues' formula in long double.
Mat3<long double> rodrigues(const V& phi) {
  using L = long double;
  const Vec3<L> p{phi.x, phi.y, phi.z};
  const L angle = std::sqrt(dot(p, p));
  const L a = angle > 0 ? std::sin(angle) / angle : 1,
          b = angle > 1e-9L ? (1 - std::cos(angle)) / (angle * angle) : 0.5L;
  const auto column = [&](const Vec3<L>& e) {
    const Vec3<L> first = cross(p, e), second = cross(p, first);
    return e + first * a + second * b;
  };
  return {column({1, 0, 0}), column({0, 1, 0}), column({0, 0, 1})};
}

double difference(const Mat3<double>& a, const Mat3<long double>& b) {
  double worst = 0;
  for (int k = 0; k < 9; ++k) {
    worst = std::max(worst, static_cast<double>(std::abs((&a.cx.x)[k] - (&b.cx.x)[k])));
  }
  return worst;
}

const double kLengths[] = {0, 1e-30, 1e-9, 1e-4, 0.0999, 0.1001, 0.5, 3.1, 3.14159265358979, 6.2, 20};
const V kDirections[] = {{1, 0, 0}, {0.6, 0, -0.8}, {-0.36, 0.48, 0.8}};
const Quaternion<double> kStart{{0.1, -0.5, 0.7}, 0.5};  // 0.01 + 0.25 + 0.49 + 0.25 = 1

// Errors: 3 ulp of sine and cosine, and the reduction's an ulp of the angle.
TEST(Rotation, TurnsAsRodriguesSays) {
  const Mat3<double> R = rotation_matrix(kStart);
  for (const double length : kLengths) {
    for (const V& direction : kDirections) {
      const V phi = direction * length;
      const auto turn = rodrigues(phi);
      const Mat3<long double> from{{R.cx.x, R.cx.y, R.cx.z}, {R.cy.x, R.cy.y, R.cy.z}, {R.cz.x, R.cz.y, R.cz.z}};
      const double tolerance = 3e-15 * (1 + length);
      EXPECT_LT(difference(rotation_matrix(turned<TurnSide::left>(kStart, phi)), turn * from), tolerance) << length;
      EXPECT_LT(difference(rotation_matrix(turned<TurnSide::right>(kStart, phi)), from * turn), tolerance) << length;
    }
  }
}

/// The turn θ̇ of a dual quaternion.
template <TurnSide Side>
V turn_of(const Quaternion<D>& q) {
  const Quaternion<double> value{{q.v.x.value, q.v.y.value, q.v.z.value}, q.w.value};
  const Quaternion<double> rate{{q.v.x.dot, q.v.y.dot, q.v.z.dot}, q.w.dot};
  const Quaternion<double> inverse{-value.v, value.w};
  return (Side == TurnSide::left ? rate * inverse : inverse * rate).v * 2.0;
}

template <TurnSide Side>
void expect_adjoint(const V& phi) {
  const V theta_dot{0.3, -0.7, 0.4}, phi_dot{-0.2, 0.5, 0.9}, w{0.8, -0.1, 0.6};
  const Quaternion<double> half{theta_dot * 0.5, 0};
  const Quaternion<double> rate = Side == TurnSide::left ? half * kStart : kStart * half;
  const Quaternion<D> start{{{kStart.v.x, rate.v.x}, {kStart.v.y, rate.v.y}, {kStart.v.z, rate.v.z}},
                            {kStart.w, rate.w}};
  const Vec3<D> turn{{phi.x, phi_dot.x}, {phi.y, phi_dot.y}, {phi.z, phi_dot.z}};
  const double forward = dot(w, turn_of<Side>(turned<Side>(start, turn)));
  V theta_bar = w, phi_bar{0, 0, 0};
  adj_turned<Side>(phi, theta_bar, phi_bar);
  const double reverse = dot(theta_bar, theta_dot) + dot(phi_bar, phi_dot);
  EXPECT_NEAR(forward, reverse, 5e-15 * (1 + length_of(phi)));
  // The Jacobian left out is an error of half the turn.
  const double wrong = dot(theta_bar, theta_dot) + dot(w, phi_dot);
  if (length_of(phi) > 0.01) {
    EXPECT_GT(std::abs(forward - wrong), 1e-4);
  }
}
TEST(Rotation, AdjointIsTheTransposeOfTheDerivative) {
  for (const double length : kLengths) {
    for (const V& direction : kDirections) {
      expect_adjoint<TurnSide::left>(direction * length);
      expect_adjoint<TurnSide::right>(direction * length);
    }
  }
}

// The series and the closed form meet at |φ| = 0.1.
TEST(Rotation, CoefficientsAreContinuous) {
  const TurnCoefficients<double> below({0.1 * (1 - 1e-9), 0, 0}), above({0.1 * (1 + 1e-9), 0, 0});
  EXPECT_NEAR(below.a, above.a, 1e-10);
  EXPECT_NEAR(below.b, above.b, 1e-10);
  EXPECT_NEAR(below.c, above.c, 1e-12);
  EXPECT_NEAR(below.c, 1. / 6, 1e-3);
}

TEST(Rotation, PacksTurnAsNumbersDo) {
  using Pack = NativePack<float>;
  alignas(64) float numbers[Pack::lanes];
  for (int l = 0; l < Pack::lanes; ++l) numbers[l] = 0.04f * static_cast<float>(l);
  const Pack x = Pack::load(numbers);
  const Quaternion<Pack> q = turned<TurnSide::left>(Quaternion<Pack>{{0.1f, -0.5f, 0.7f}, 0.5f}, {x, -x, Pack(0.02f)});
  for (int l = 0; l < Pack::lanes; ++l) {
    const auto one =
        turned<TurnSide::left>(Quaternion<float>{{0.1f, -0.5f, 0.7f}, 0.5f}, {numbers[l], -numbers[l], 0.02f});
    EXPECT_NEAR(q.v.x[l], one.v.x, 2e-7f);
    EXPECT_NEAR(q.w[l], one.w, 2e-7f);
  }
}

}  // namespace
}  // namespace backdrive
