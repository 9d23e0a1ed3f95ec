// The law of contact and the force of one contact (docs/contact.md) by themselves: against exact arithmetic, against
// dual numbers, and on point masses against the closed forms (K3), (K5) and (K6) of docs/known_gradients.md. Plain
// sampling of the force and a Kelvin-Voigt damper are here to fail where the law does not.
#include "engine/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/dual.h"
#include "integrators/contact/contact_force.h"
#include "tests/integrators/contact_cases.h"

namespace backdrive {
namespace {

using namespace contact;
using D = Dual<double>;
using test::Random;
using test::random_point;

constexpr double kWidth = 1e-3, kStep = 1. / 240;

/// Φ/k in long double.
long double potential(long double d, long double w) {
  if (d < 0) return 0;
  return d < w ? d * d * d / (6 * w) : (d - w / 2) * (d - w / 2) / 2 + w * w / 24;
}

template <class Real>
PairMaterial<Real> material(double k = 3e4, double w = kWidth, double alpha = 1, double mu = 0.8, double eps = 1e-4) {
  return {constant<Real>(k),   constant<Real>(w),       constant<Real>(alpha), constant<Real>(mu),
          constant<Real>(eps), constant<Real>(kNoCore), constant<Real>(0),     constant<Real>(0)};
}
/// Of a step whose end moves on as the step did.
DepthPath<double> path(double start, double end) {
  return {start, end, end};
}
constexpr double kHardening = 200;
/// With a second spring from that depth on.
template <class Real>
PairMaterial<Real> hardening(double core) {
  PairMaterial<Real> m = material<Real>();
  m.core = constant<Real>(core);
  m.hardening = constant<Real>(kHardening);
  return m;
}

// A quotient of long doubles loses 1e-19 w² over the length of the path; above 1e-5 w that is 1e-11 of w.
TEST(ContactLaw, AverageIsTheQuotientOfThePotential) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const double start = random.uniform(-2e-3, 3e-3);
    const double change = (random.chance(0.5) ? 1 : -1) * std::pow(10, random.uniform(-8, -2.5));
    const double end = start + change;
    const long double exact =
        (potential(end, kWidth) - potential(start, kWidth)) / (static_cast<long double>(end) - start);
    EXPECT_NEAR(path_average(start, end, kWidth).mean, static_cast<double>(exact), 1e-10 * kWidth + 1e-14 * exact);
    const auto single = path_average(static_cast<float>(start), static_cast<float>(end), static_cast<float>(kWidth));
    // Rounded ends move the average by an ulp of 3e-3; the formula adds a few of its own.
    EXPECT_NEAR(single.mean, static_cast<double>(exact), 1e-6 * kWidth + 1e-6 * exact) << start << " " << end;
  }
}

TEST(ContactLaw, AverageOfAPathWithoutLengthIsTheForce) {
  for (const double d : {-1e-3, -1e-12, 2e-4, 9.99e-4, 2e-3, 0.1}) {
    const double force = d < 0 ? 0 : d < kWidth ? d * d / (2 * kWidth) : d - kWidth / 2;
    EXPECT_NEAR(path_average(d, d, kWidth).mean, force, 1e-16);
    EXPECT_NEAR(path_average(d, d, kWidth).by_start, path_average(d, d, kWidth).by_end, 1e-15);
  }
}

/// Paths all over the ramp: outside, across either end, on it, beyond it, deepening and leaving.
double random_depth(Random& random) {
  return random.uniform(-1e-3, 2.5e-3);
}

TEST(ContactLaw, DerivativesAreThoseOfTheAverage) {
  Random random(2);
  const auto along = [](double x, double dot) { return D(x, dot); };
  for (int i = 0; i < 2000; ++i) {
    const double start = random_depth(random), end = random_depth(random);
    const auto p = path_average(start, end, kWidth);
    const D by_start = path_average(along(start, 1), D(end), D(kWidth)).mean;
    const D by_end = path_average(D(start), along(end, 1), D(kWidth)).mean;
    const D by_width = path_average(D(start), D(end), along(kWidth, 1)).mean;
    const double tolerance = 1e-13 * (1 + kWidth / std::abs(end - start));  // the shares' quotients in the dual
    EXPECT_NEAR(p.by_start, by_start.dot, tolerance);
    EXPECT_NEAR(p.by_end, by_end.dot, tolerance);
    EXPECT_NEAR(p.by_width, by_width.dot, tolerance);
  }
}

/// Bodies are often placed so that they just touch: where a path begins or ends exactly where the ramp does, F is as
/// smooth as elsewhere, and duals have the same slopes. They had twice as much where a path begins with touching.
TEST(ContactLaw, DualsKnowTheSlopesWhereThePathMeetsAnEndOfTheRamp) {
  for (const auto& [start, end] : {std::pair{0., 2e-4},
                                   {2e-4, 0.},
                                   {0., 0.},
                                   {0., kWidth},
                                   {kWidth, 0.},
                                   {-1e-4, 0.},
                                   {0., 2 * kWidth},
                                   {kWidth, 2 * kWidth},
                                   {2e-4, kWidth},
                                   {kWidth, kWidth}}) {
    const auto p = path_average(start, end, kWidth);
    const double tolerance = 1e-12;  // of slopes of some tenths
    EXPECT_NEAR(p.by_start, path_average(D(start, 1), D(end), D(kWidth)).mean.dot, tolerance) << start << " " << end;
    EXPECT_NEAR(p.by_end, path_average(D(start), D(end, 1), D(kWidth)).mean.dot, tolerance) << start << " " << end;
    EXPECT_NEAR(p.by_width, path_average(D(start), D(end), D(kWidth, 1)).mean.dot, tolerance) << start << " " << end;
  }
}

// Where nothing is dissipated N is what both springs' energy changes by over the path, of the second h(1 + change/D)
// times as much, to the rounding of depths, 1e-16 of them, through a spring of H + 1. A path that ends before the
// second has the very bits of the first.
TEST(ContactLaw, WithoutDissipationTheForceIsTheQuotientOfBothPotentials) {
  Random random(21);
  int deep = 0;
  for (int i = 0; i < 20000; ++i) {
    const double core = std::pow(10, random.uniform(-3.5, -1)), scale = 3 * core;
    const double start = random.uniform(-scale, scale);
    const double end = start + (random.chance(0.5) ? 1 : -1) * scale * std::pow(10, random.uniform(-4, 0));
    PairMaterial<double> m = hardening<double>(core), plain = material<double>();
    m.dissipation = plain.dissipation = 0;
    const long double change = static_cast<long double>(end) - start, z = 1 + change / core;
    const long double h = z >= 0.5L ? z : z <= -0.5L ? 0 : (z + 0.5L) * (z + 0.5L) / 2;
    const auto at = [&](long double d) { return potential(d, kWidth) + h * kHardening * potential(d - core, core); };
    const long double exact = (at(end) - at(start)) / change;
    const double N = normal_force<double>(m, path(start, end), kStep).value;
    EXPECT_NEAR(N, m.stiffness * static_cast<double>(exact), m.stiffness * 1e-12 * kHardening * scale)
        << start << ' ' << end;
    const double first = normal_force<double>(plain, path(start, end), kStep).value;
    deep += N > 2 * first;
    const long double stored = potential(start, kWidth) + kHardening * potential(start - core, core);
    EXPECT_NEAR(stored_energy(m, start), m.stiffness * static_cast<double>(stored),
                m.stiffness * 1e-14 * kHardening * scale * scale);
    if (std::max(start, end) <= core) {
      EXPECT_EQ(N, first);
    }
  }
  EXPECT_GT(deep, 5000);
}

// Of what a way into the core at a speed v takes, the way back at that speed gives h(1 − x)/(1 + x), x = c α v + the
// part of D that it goes in a step.
TEST(ContactLaw, TheCoreGivesBackLess) {
  constexpr double core = 2e-3;
  const PairMaterial<double> m = hardening<double>(core), plain = material<double>();
  Random random(23);
  for (int i = 0; i < 2000; ++i) {
    const double deep = core + random.uniform(1e-4, 3e-3), way = random.uniform(1e-4, 1e-3), speed = way / kStep;
    const auto work = [&](double from, double to) {
      return (normal_force<double>(m, path(from, to), kStep).value -
              normal_force<double>(plain, path(from, to), kStep).value) *
             (to - from);
    };
    const double in = work(deep, deep + way), out = -work(deep + way, deep);
    EXPECT_GT(in, 0);
    EXPECT_GE(out, 0);
    EXPECT_LE(out, in / (1 + kCoreDissipation * m.dissipation * speed + way / core));
  }
  // Without any dissipation, too, what leaves by 1.5 D in a step takes nothing along.
  PairMaterial<double> elastic = m, elastic_plain = plain;
  elastic.dissipation = elastic_plain.dissipation = 0;
  const auto left = [&](double part) {
    const DepthPath<double> d = path(3 * core, (3 - part) * core);
    return normal_force<double>(elastic, d, kStep).value - normal_force<double>(elastic_plain, d, kStep).value;
  };
  EXPECT_EQ(left(1.5), 0);
  EXPECT_GT(left(1.4), 0);
}

// A mass at 1 m/s that a step finds 2 mm deep in a spring which would stop it in a hundredth of the step. Whatever
// takes out energy by the way of the step lets it go as fast as it came, as that way is nearly none, 1 mm/s; by the
// velocity of its end it goes at 1/α_φ and half the ramp of h at most.
TEST(ContactLaw, WhatOneStepStopsIsThrownBackUnlessTurnsTakeItOut) {
  constexpr double mass = 1, speed = 1, depth = 2e-3;
  const auto leaves_at = [&](double alpha, double turn_loss) {
    PairLaw<double> law{material<double>(1e8, kWidth, alpha), {0, 0, 0}, false, true, kStep};
    law.material.turn_loss = turn_loss;
    const ContactState<double> state{depth, {0, 0, 1}, {{0, 0, 0}, {0, 0, -speed}}, {{0, 0, 0}, {0, 0, -speed}}};
    double low = 0, high = 3 * speed;  // of e, which the force falls with
    for (int i = 0; i < 100; ++i) {
      const double e = 0.5 * (low + high);
      const double force = contact_force<double>(law, state, {{0, 0, 0}, {0, 0, e}}).normal.value;
      (mass * e < force * kStep ? low : high) = e;
    }
    return low - speed;
  };
  EXPECT_NEAR(leaves_at(100, 0), speed, 0.03);
  EXPECT_NEAR(leaves_at(1000, 0), speed, 0.003);
  for (const double loss : {1., 10., 100.}) EXPECT_LT(leaves_at(0, loss), 1.5 / loss) << loss;
  EXPECT_GT(leaves_at(0, 0), speed);
}

TEST(ContactLaw, ForceIsContinuousAndNeverPulls) {
  auto m = hardening<double>(2e-3);
  m.turn_loss = 2;
  double before = 0;
  for (double end = -2e-3; end < 4e-3; end += 1e-6) {
    const auto n = normal_force<double>(m, path(1e-3, end), kStep);
    EXPECT_GE(n.value, 0);
    EXPECT_GE(n.stiffness, 0);
    if (end > -2e-3) {
      EXPECT_NEAR(n.value, before, 1.5e-6 * (n.stiffness + 1) + 1e-3);
    }
    before = n.value;
  }
  EXPECT_GT(before, 50);
}

// ---- the adjoints ---------------------------------------------------------------------------------------------------

/// Everything that a contact's wrench depends on, as 33 numbers.
template <class Real>
struct Inputs {
  ContactState<Real> state;
  Spatial<Real> e;
  PairMaterial<Real> material;
  TurnMaterial<Real> turning;
};
template <class Real>
Real* numbers_of(Inputs<Real>& x) {
  return reinterpret_cast<Real*>(&x);
}
constexpr int kInputs = sizeof(Inputs<double>) / sizeof(double);

template <class Real>
PairLaw<Real> law_of(const Inputs<Real>& x, double dt = kStep) {
  return {x.material, x.turning, true, true, constant<Real>(dt)};
}
template <class Real>
ContactForce<Real> force_of(const Inputs<Real>& x) {
  return contact_force(law_of(x), x.state, x.e);
}

Inputs<double> random_inputs(Random& random) {
  Inputs<double> x;
  const Vec3<double> n = random_point(random, 1);
  x.state.normal = n * (1 / std::sqrt(dot(n, n)));
  x.state.depth = random_depth(random);
  const double speed = std::pow(10, random.uniform(-3, 0)), rate = std::pow(10, random.uniform(-2, 1));
  const auto twist = [&](double share) {
    return Spatial<double>{random_point(random, share * rate), random_point(random, share * speed)};
  };
  x.state.start = twist(1);
  x.state.smooth = x.state.start + twist(0.3);
  x.e = twist(1) - (x.state.smooth * 1.5 - x.state.start * 0.5) * random.uniform(0, 1);
  x.material = material<double>(3e4, kWidth, random.chance(0.3) ? 0 : random.uniform(0.1, 1), random.uniform(0.2, 1),
                                random.chance(0.5) ? 1e-2 : 1e-4);
  x.material.core = random.uniform(0.5e-3, 5e-3), x.material.hardening = random.uniform(10, 1000);
  if (random.chance(0.5)) x.material.turn_loss = random.uniform(0.1, 10);
  // One in four has no friction against turns yet: an optimiser may start there.
  x.turning = {random.chance(0.25) ? 0 : random.uniform(1e-3, 1e-2),
               random.chance(0.25) ? 0 : random.uniform(1e-3, 1e-2), x.material.creep / kTurnLength};
  return x;
}

enum class Held { nothing, change, bound };
Inputs<double> gradient_of(const Inputs<double>& x, const Spatial<double>& weights, Held held = Held::nothing) {
  Inputs<double> bar{};
  PairLawBar<double> law_bar{};
  ContactForce<double> f = force_of(x);
  if (held == Held::bound) f.drag = {{0, 0, 0}, {0, 0, 0}};
  ContactBar<double> contact_bar{};
  adj_contact_force(law_of(x), x.state, f, weights, contact_bar, law_bar);
  bar.state = contact_bar.state;
  bar.e = contact_bar.change;
  bar.material = law_bar.material;
  bar.turning = law_bar.turning;
  if (held == Held::change) bar.e = {{0, 0, 0}, {0, 0, 0}};
  return bar;
}

// Each number by a dual number through the very source. The force is stiff: k Δt² over the ramp is some 1e2 of its own
// size in one step, so 1e-16 of a contribution may be 1e-13 of the sum; 1e-10 of the largest leaves room.
TEST(ContactForce, AdjointIsTheTransposeOfTheDerivative) {
  Random random(3);
  int touching = 0, deep = 0, slipping = 0, from_nothing = 0;
  double faults[2] = {};
  for (int i = 0; i < 3000; ++i) {
    Inputs<double> x = random_inputs(random);
    const Spatial<double> w{random_point(random, 1), random_point(random, 1)};
    Inputs<double> bar = gradient_of(x, w);
    Inputs<double> faulty[] = {gradient_of(x, w, Held::change), gradient_of(x, w, Held::bound)};
    const ContactForce<double> f = force_of(x);
    touching += f.normal.value > 0;
    deep += std::max(x.state.depth, f.depth.end) > x.material.core && x.material.dissipation > 0;
    slipping += f.normal.value > 0 && dot(f.slide.direction, f.slide.direction) > 0.99;
    from_nothing += f.normal.value > 0 && x.turning.torsional == 0 && bar.turning.torsional != 0;
    for (int k = 0; k < kInputs; ++k) {
      Inputs<D> dual;
      for (int j = 0; j < kInputs; ++j) numbers_of(dual)[j] = D(numbers_of(x)[j], j == k);
      const D result =
          dot(force_of(dual).wrench, {{D(w.ang.x), D(w.ang.y), D(w.ang.z)}, {D(w.lin.x), D(w.lin.y), D(w.lin.z)}});
      const double exact = result.dot, ours = numbers_of(bar)[k];
      const double scale = std::abs(exact) + std::abs(result.value) + 1;
      EXPECT_NEAR(ours, exact, 1e-10 * scale) << "input " << k << " of case " << i;
      for (int f = 0; f < 2; ++f) faults[f] = std::max(faults[f], std::abs(numbers_of(faulty[f])[k] - exact) / scale);
    }
  }
  EXPECT_GT(touching, 500);
  EXPECT_GT(deep, 200);
  EXPECT_GT(slipping, 100);
  EXPECT_GT(from_nothing, 50);
  for (const double fault : faults) EXPECT_GT(fault, 0.1);
}

// K is the derivative with friction's bound held, its rest the coupling; both are what the adjoint says, transposed.
TEST(ContactForce, BlocksAreItsDerivatives) {
  Random random(5);
  for (int i = 0; i < 1000; ++i) {
    const Inputs<double> x = random_inputs(random);
    const ContactForce<double> f = force_of(x);
    const ContactBlock<double> block = block_of(law_of(x), x.state.normal, f);
    const Spatial<double> w{random_point(random, 1), random_point(random, 1)},
        y{random_point(random, 1), random_point(random, 1)};
    const Spatial<double> whole = block_times(block, w) + coupling_transposed_times(block, w);
    const Spatial<double> exact = gradient_of(x, w).e * -kStep;
    const double scale = std::abs(dot(exact, y)) + block.normal + block.tangential + block.torsion + block.rolling;
    EXPECT_NEAR(dot(whole, y), dot(exact, y), 1e-12 * scale);
    EXPECT_NEAR(dot(block_times(block, w), y), dot(block_times(block, y), w), 1e-12 * scale);  // symmetric
    EXPECT_GE(dot(block_times(block, w), w), -1e-12 * scale);  // and no energy comes of it
  }
}

TEST(ContactForce, NeverLeavesTheConeAndNeverPulls) {
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    const Inputs<double> x = random_inputs(random);
    const Spatial<double> wrench = force_of(x).wrench;
    const Vec3<double>&f = wrench.lin, &n = x.state.normal;
    const double normal = dot(f, n);
    const Vec3<double> slip = tangential(n, f), across = tangential(n, wrench.ang);
    EXPECT_GE(normal, -1e-13 * std::sqrt(dot(f, f)));
    EXPECT_LE(std::sqrt(dot(slip, slip)), x.material.friction * normal * (1 + 1e-12) + 1e-12);
    EXPECT_LE(std::abs(dot(n, wrench.ang)), x.turning.torsional * normal * (1 + 1e-12) + 1e-12);
    // n is of length 1 to rounding, which leaves that of the moment about it.
    EXPECT_LE(std::sqrt(dot(across, across)), x.turning.rolling * normal * (1 + 1e-12) + 1e-14 * normal + 1e-12);
  }
}

TEST(ContactForce, IsNothingOutOfTouch) {
  Random random(10);
  for (int i = 0; i < 100; ++i) {
    Inputs<double> x = random_inputs(random);
    x.state.depth = -0.1;
    const ContactForce<double> f = force_of(x);
    EXPECT_EQ(dot(f.wrench, f.wrench), 0);
    const ContactBlock<double> block = block_of(law_of(x), x.state.normal, f);
    EXPECT_EQ(block.normal + block.tangential + block.torsion + block.rolling, 0);
  }
}

// ---- point masses ---------------------------------------------------------------------------------------------------

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

TEST(ContactForce, PacksAndSinglePrecisionAgree) {
  using Pack = NativePack<float>;
  Random random(6);
  for (int i = 0; i < 200; ++i) {
    const Inputs<double> x = random_inputs(random);
    Inputs<float> single;
    Inputs<Pack> pack;
    for (int k = 0; k < kInputs; ++k) {
      const double number = reinterpret_cast<const double*>(&x)[k];
      numbers_of(single)[k] = static_cast<float>(number);
      numbers_of(pack)[k] = Pack(static_cast<float>(number));
    }
    const ContactForce<float> a = force_of(single);
    const ContactForce<Pack> b = force_of(pack);
    const ContactForce<double> exact = force_of(x);
    const auto scale = static_cast<float>(1 + std::abs(exact.normal.value));
    EXPECT_NEAR(a.wrench.lin.x, b.wrench.lin.x[0], 2e-4f * scale);
    EXPECT_NEAR(a.wrench.lin.z, exact.wrench.lin.z, 2e-3 * scale);
  }
}

}  // namespace
}  // namespace backdrive
