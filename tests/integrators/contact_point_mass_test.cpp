// The law of contact (docs/contact.md) on point masses, against the closed forms (K3), (K5) and (K6) of
// docs/known_gradients.md. Plain sampling of the force and a Kelvin-Voigt damper are here to fail where the law does
// not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/dual.h"
#include "integrators/contact/contact_force.h"
#include "tests/integrators/contact_material.h"

namespace backdrive {
namespace {

using namespace contact;
using D = Dual<double>;
using test::kWidth;
using test::material;

/// A ball on the plane z = 0, without spin.
template <class Real>
struct Ball {
  Vec3<Real> position, velocity;
  Real mass, radius;
  Vec3<Real> reported{};  ///< of the last step: what is reported
};

/// Solves m x = Δt f(x) for a change of velocity x by Newton's method, along and across the normal.
template <class Real>
Spatial<Real> solved_change(const PairLaw<Real>& law, const ContactState<Real>& s, const Real& mass) {
  Spatial<Real> x = s.start - s.smooth;
  for (int k = 0; k < 60; ++k) {
    const ContactForce<Real> f = contact_force(law, s, x);
    const ContactBlock<Real> block = block_of(law, s.normal, f);
    // The secant of friction: no step goes too far, whatever the slip.
    const Vec3<Real> residual = f.wrench.lin * law.dt - x.lin * mass;
    x.lin += s.normal * (dot(s.normal, residual) / (mass + block.normal)) +
             tangential(s.normal, residual) * (constant<Real>(1) / (mass + block.tangential));
  }
  return x;
}

template <class Real>
void step(Ball<Real>& ball, const PairMaterial<Real>& m, const Vec3<double>& gravity, double time_step) {
  const Real dt = constant<Real>(time_step);
  const Vec3<Real> up{constant<Real>(0), constant<Real>(0), constant<Real>(1)};
  const Vec3<Real> smooth{ball.velocity.x + constant<Real>(time_step * gravity.x),
                          ball.velocity.y + constant<Real>(time_step * gravity.y),
                          ball.velocity.z + constant<Real>(time_step * gravity.z)};
  const Vec3<Real> o = zero3<Real>();
  const ContactState<Real> s{ball.radius - ball.position.z, up, {o, ball.velocity}, {o, smooth}};
  const Vec3<Real> change = solved_change<Real>({m, {}, false, false, dt}, s, ball.mass).lin;
  ball.reported = smooth + change * constant<Real>(0.5);
  ball.position += ball.reported * dt;
  ball.velocity = smooth + change;
}

struct Bounce {
  double height, speed;  ///< at the end
  double by_start, by_speed, by_stiffness, by_mass, by_radius;
};
enum class Law { averaged, plain, kelvin_voigt };

/// Height after a bounce at unit speed without gravity, from `start` above the plane; with its derivatives.
Bounce bounce(double start, double per_second, double seconds, double k, double width, double alpha, Law law) {
  constexpr double mass = 1, radius = 0.1;
  const int steps = static_cast<int>(std::lround(seconds * per_second));
  const auto run = [&](int input) {
    const auto dual = [&](double x, int number) { return D(x, number == input); };
    PairMaterial<D> m = material<D>(k, width, alpha, 0);
    m.stiffness = dual(k, 2);
    Ball<D> ball{{D(0), D(0), dual(start, 0)}, {D(0), D(0), dual(-1, 1)}, dual(mass, 3), dual(radius, 4)};
    const double dt = 1 / per_second;
    for (int i = 0; i < steps; ++i) {
      if (law == Law::averaged) {
        step(ball, m, {0, 0, 0}, dt);
        continue;
      }
      // The spring's force where the step begins; and a damper that acts wherever there is penetration.
      const D depth = ball.radius - ball.position.z;
      const D spring = select(value_of(depth) > 0, depth * m.stiffness, D(0));
      const D damper = law == Law::kelvin_voigt ? select(value_of(depth) > 0, -(ball.velocity.z * D(20)), D(0)) : D(0);
      ball.velocity.z += (spring + damper) / ball.mass * D(dt);
      ball.position.z += ball.velocity.z * D(dt);
    }
    return ball;
  };
  const Ball<D> a = run(0);
  return {a.position.z.value,    a.velocity.z.value,    a.position.z.dot,     run(1).position.z.dot,
          run(2).position.z.dot, run(3).position.z.dot, run(4).position.z.dot};
}

/// Worst of f over 40 phases of touch-down.
double worst(double per_second, const std::function<double(double)>& error) {
  double result = 0;
  for (int phase = 0; phase < 40; ++phase) result = std::max(result, std::abs(error(0.3 + phase / 40. / per_second)));
  return result;
}

// 3. ∂h/∂y₀ = −1 for every conservative law, −e with dissipation.
TEST(ClosedFormContact, BounceKnowsWhereItBegan) {
  const auto error = [](double width, double alpha, double truth, Law law) {
    return worst(480, [=](double start) { return bounce(start, 480, 0.5, 1e4, width, alpha, law).by_start - truth; });
  };
  EXPECT_LT(error(1e-3, 0, -1, Law::averaged), 0.005);
  EXPECT_LT(error(1e-9, 0, -1, Law::averaged), 0.005);  // a linear spring
  for (const double alpha : {0.1, 1.0}) {
    const double restitution = bounce(0.3, 50000, 0.5, 1e4, 1e-3, alpha, Law::averaged).speed;
    EXPECT_LT(restitution, 0.95);
    EXPECT_LT(error(1e-3, alpha, -restitution, Law::averaged), 0.01);
  }
  EXPECT_GT(error(1e-9, 0, -1, Law::plain), 1);
  const double damped = bounce(0.3, 50000, 0.5, 1e4, 1e-9, 0, Law::kelvin_voigt).speed;
  EXPECT_GT(error(1e-9, 0, -damped, Law::kelvin_voigt), 1);
}

// 3, linear law: ∂h/∂v = −(T − t* − π/ω) + ..., written for the speed of approach |v| = 1 by its exact motion: the ball
// touches at t* = (y₀ − r)/|v|, leaves π/ω later, and h = r + |v| (T − t* − π/ω).
TEST(ClosedFormContact, BounceKnowsItsParameters) {
  constexpr double k = 1e4, T = 0.5, omega = 100, start = 0.3;
  const double half_turn = M_PI / omega;
  const auto relative = [&](double Bounce::*what, double truth) {
    return worst(480, [=](double y) { return (bounce(y, 480, T, k, 1e-9, 0, Law::averaged).*what - truth) / truth; });
  };
  EXPECT_NEAR(bounce(start, 480, T, k, 1e-9, 0, Law::averaged).height, 0.1 + T - 0.2 - half_turn, 1e-3);
  EXPECT_LT(relative(&Bounce::by_speed, -(T - half_turn)), 0.02);
  EXPECT_LT(relative(&Bounce::by_stiffness, half_turn / (2 * k)), 0.02);
  EXPECT_LT(relative(&Bounce::by_mass, -half_turn / 2), 0.02);
  EXPECT_LT(relative(&Bounce::by_radius, 2), 0.02);  // it is stopped earlier and starts back from higher
}

TEST(ClosedFormContact, ErrorsShrinkWithTheTimeStep) {
  double before = 1;
  for (const double rate : {240., 480., 960., 1920.}) {
    const double error =
        worst(rate, [=](double y) { return bounce(y, rate, 0.5, 1e4, 1e-3, 0, Law::averaged).by_start + 1; });
    EXPECT_LT(error, 0.6 * before) << rate;
    before = error;
  }
}

// 5. Two balls in a line, the second one hit by the first.
TEST(ClosedFormContact, TwoBallsPassOnTheirGradients) {
  constexpr double k = 1e4, radius = 0.1, T = 1, rate = 480, dt = 1 / rate;
  const auto run = [&](int input, double shift) {
    const auto dual = [&](double x, int number) { return D(x, number == input); };
    const PairMaterial<D> m = material<D>(k, 1e-9, 0, 0);
    D x[2] = {dual(-shift, 0), dual(0.52 - shift, 1)}, v[2] = {dual(1, 2), D(0)};
    for (int i = 0; i < static_cast<int>(T * rate); ++i) {
      const D relative = v[0] - v[1];
      const Vec3<D> back{D(-1), D(0), D(0)}, velocity{relative, D(0), D(0)};
      const Vec3<D> o = zero3<D>();
      const ContactState<D> s{D(2 * radius) - (x[1] - x[0]), back, {o, velocity}, {o, velocity}};
      // Of two masses of 1 that stop each other half counts; each takes half of the change.
      const D change = solved_change<D>({m, {}, false, false, D(dt)}, s, D(0.5)).lin.x * D(0.5);
      x[0] += (v[0] + change * D(0.5)) * D(dt), x[1] += (v[1] - change * D(0.5)) * D(dt);
      v[0] += change, v[1] -= change;
    }
    return x[1];
  };
  const double truth[] = {1, 0, 0.9889};  // by x₁, x₂ and v₁; rigid balls: 1, 0, 1
  for (int phase = 0; phase < 40; ++phase) {
    const double shift = phase / 40. / rate;
    for (int input = 0; input < 3; ++input) {
      // Their distance sets the phase: x₁ moves alone.
      const D end = run(input, shift);
      EXPECT_NEAR(end.dot, truth[input], 0.005) << "input " << input << " phase " << phase;
    }
  }
}

// 6. Sliding to a stop: x = v²/(2μg).
TEST(ClosedFormContact, SlidingKnowsSpeedAndFriction) {
  constexpr double v = 2, mu = 0.5, g = 9.81, mass = 1, k = 1e4, width = 1e-3, dt = 1. / 480;
  const double depth = mass * g / k + width / 2;  // at rest
  const auto run = [&](int input, double speed) {
    PairMaterial<D> m = material<D>(k, width, 1, mu, 1e-4);
    if (input == 1) m.friction.dot = 1;
    Ball<D> ball{{D(0), D(0), D(0.1 - depth)}, {D(speed, input == 0), D(0), D(g * dt / 2)}, D(mass), D(0.1)};
    for (int i = 0; i < 480; ++i) step(ball, m, {0, 0, -g}, dt);
    return ball.position.x;
  };
  for (int phase = 0; phase < 20; ++phase) {
    const double speed = v + phase / 20. * mu * g * dt;
    const D by_speed = run(0, speed), by_friction = run(1, speed);
    EXPECT_NEAR(by_speed.value, speed * speed / (2 * mu * g), 0.005 * by_speed.value);
    EXPECT_NEAR(by_speed.dot * mu * g / speed, 1, 0.005);
    EXPECT_NEAR(by_friction.dot * -(2 * mu * mu * g) / (speed * speed), 1, 0.005);
  }
}

// Undamped bouncing under gravity keeps its energy to 0.05 % for 10 s at 240 steps per second, measured between
// contacts.
TEST(ContactEnergy, UndampedBouncingKeepsIt) {
  constexpr double g = 9.81, dt = 1. / 240;
  const auto m = material<double>(1e4, 1e-3, 0, 0);
  Ball<double> ball{{0, 0, 0.1 + 0.3}, {0, 0, 0}, 1, 0.1};
  const auto energy = [&] {
    const double velocity = ball.velocity.z - 0.5 * g * dt;  // centred: q̇ + ½ Δt q̈ of what is smooth
    return 0.5 * velocity * velocity + g * ball.position.z;
  };
  ball.velocity.z = 0.5 * g * dt;
  const double before = energy();
  double error = 0;
  for (int i = 0; i < 2400; ++i) {
    step(ball, m, {0, 0, -g}, dt);
    if (ball.position.z > 0.1 + 0.02) error = std::max(error, std::abs(energy() / before - 1));
  }
  EXPECT_LT(error, 5e-4);
}

TEST(ContactRest, ABodyAtRestReportsNoVelocityAndStays) {
  constexpr double g = 9.81, dt = 1. / 240;
  const auto m = material<double>();
  Ball<double> ball{{0, 0, 0.15}, {0, 0, 0}, 2.5, 0.1};
  for (int i = 0; i < 5 * 240; ++i) step(ball, m, {0, 0, -g}, dt);
  const Vec3<double> settled = ball.position;
  EXPECT_NEAR(0.1 - settled.z, 2.5 * g / 3e4 + kWidth / 2, 1e-8);  // 1.3 mm
  for (int i = 0; i < 60 * 240; ++i) {
    step(ball, m, {0, 0, -g}, dt);
    EXPECT_LT(std::sqrt(dot(ball.reported, ball.reported)), 1e-6);
  }
  const Vec3<double> moved = ball.position - settled;
  EXPECT_LT(std::sqrt(dot(moved, moved)), 1e-9);
}

// On a slope (a turned gravity) it creeps with ρ ε/√(1 − ρ²), where ρ is the share of the cone in use, below atan μ,
// and slides as Coulomb says above, but for the first steps of 1 cm/s.
TEST(ContactRest, ASlopeHoldsBelowTheAngleOfFrictionAndNotAbove) {
  constexpr double g = 9.81, dt = 1. / 240, mu = 0.8, degree = M_PI / 180;
  const auto m = material<double>(3e4, kWidth, 1, mu, 1e-4);
  const auto run = [&](double angle, double seconds) {
    Ball<double> ball{{0, 0, 0.1 - 1.2e-3}, {0, 0, 0}, 2.5, 0.1};
    const Vec3<double> gravity{g * std::sin(angle), 0, -g * std::cos(angle)};
    for (int i = 0; i < static_cast<int>(seconds / dt); ++i) step(ball, m, gravity, dt);
    return ball;
  };
  for (const double below : {10., 3., 1.}) {
    const double angle = std::atan(mu) - below * degree, share = std::tan(angle) / mu;
    EXPECT_NEAR(run(angle, 4).reported.x / (1e-4 * share / std::sqrt(1 - share * share)), 1, 0.06)
        << below;  // after 4 s
  }
  const double above = std::atan(mu) + degree;
  const double acceleration = g * (std::sin(above) - mu * std::cos(above));
  EXPECT_NEAR(run(above, 4).position.x, 0.5 * acceleration * 16, 0.03 * 0.5 * acceleration * 16);
}

}  // namespace
}  // namespace backdrive
