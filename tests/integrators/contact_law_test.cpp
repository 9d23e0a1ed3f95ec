// The law of contact and the force of one contact (docs/contact.md) by themselves: against exact arithmetic and against
// dual numbers.
#include "engine/pack.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/dual.h"
#include "integrators/contact/contact_force.h"
#include "tests/integrators/contact_cases.h"
#include "tests/integrators/contact_material.h"

namespace backdrive {
namespace {

using namespace contact;
using D = Dual<double>;
using test::kWidth;
using test::material;
using test::Random;
using test::random_point;

constexpr double kStep = 1. / 240;

/// Φ/k in long double.
long double potential(long double d, long double w) {
  if (d < 0) return 0;
  return d < w ? d * d * d / (6 * w) : (d - w / 2) * (d - w / 2) / 2 + w * w / 24;
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
    // What it stores itself counts for nothing where a step is not solved.
    EXPECT_NEAR(stored_energy(m, start), m.stiffness * static_cast<double>(potential(start, kWidth)),
                m.stiffness * 1e-14 * scale * scale);
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
