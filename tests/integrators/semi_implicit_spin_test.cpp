// Loose bodies that spin fast, as slender and flat as bodies are: (5) of docs/semi_implicit.md, its adjoint, and lanes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "engine/pack.h"
#include "tests/integrators/semi_implicit_checks.h"
#include "tests/integrators/semi_implicit_mechanisms.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using test::Mechanism;
using V = Vec3<double>;

/// Half lengths of a box of which the longest is 1: rods, a disc, boxes.
constexpr V kShapes[] = {{1, 0.01, 0.01}, {1, 0.1, 0.1}, {1, 1, 0.05}, {1, 0.7, 0.4}, {1, 0.11, 0.1}, {1, 0.5, 0.02}};
/// Spins: end over end and a little askew, about the long axis, about nothing in particular.
constexpr V kSpins[] = {{0.02, 1, 0.05}, {1, 0.02, 0.01}, {0.6, 0.5, -0.7}};

using test::spinning;

template <class T>
std::vector<test::BodyState<T>> as(const std::vector<test::BodyState<double>>& from) {
  std::vector<test::BodyState<T>> to(from.size());
  constexpr int numbers = sizeof(test::BodyState<double>) / sizeof(double);
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (int k = 0; k < numbers; ++k) {
      reinterpret_cast<T*>(&to[i])[k] = static_cast<T>(reinterpret_cast<const double*>(&from[i])[k]);
    }
  }
  return to;
}

/// Largest change of the energy and of the angular momentum, relative.
struct Kept {
  double energy = 0, momentum = 0;
};

template <class T>
Kept kept_in(const Mechanism& m) {
  std::vector<semi_implicit::BodyConstants<T>> constants(1);
  const auto exact = test::body_constants_of(m.numbers);
  for (std::size_t k = 0; k < sizeof(exact[0]) / sizeof(double); ++k) {
    reinterpret_cast<T*>(&constants[0])[k] = static_cast<T>(reinterpret_cast<const double*>(&exact[0])[k]);
  }
  test::Runner<T> runner(m, constants, {}, zero3<T>());
  std::vector<test::BodyState<T>> state = as<T>(m.numbers.state);
  const std::vector<test::JointInputs<T>> inputs;
  const std::vector<Spatial<T>> wrenches(1, zero6<T>());
  const test::Totals start = test::totals(m, m.numbers.state);
  Kept most;
  for (int k = 0; k < m.steps; ++k) {
    runner.step(state, inputs, wrenches);
    std::vector<test::BodyState<double>> now(1);
    for (std::size_t n = 0; n < sizeof(now[0]) / sizeof(double); ++n) {
      reinterpret_cast<double*>(&now[0])[n] = static_cast<double>(reinterpret_cast<const T*>(&state[0])[n]);
    }
    const test::Totals t = test::totals(m, now);
    const V lost = t.angular - start.angular;
    most.energy = std::max(most.energy, std::abs(t.energy / start.energy - 1));
    most.momentum = std::max(most.momentum, std::sqrt(dot(lost, lost) / dot(start.angular, start.angular)));
  }
  EXPECT_FALSE(runner.halted != 0);
  return most;
}

/// The largest moment of inertia over the least.
double ratio_of(const V& shape) {
  const auto moment = [](double a, double b) { return a * a + b * b; };
  const double x = moment(shape.y, shape.z), y = moment(shape.x, shape.z), z = moment(shape.x, shape.y);
  return std::max({x, y, z}) / std::min({x, y, z});
}

// A step keeps energy and momentum to rounding. J and J⁻¹ as they are stored, turned, are inverse to as many roundings
// as the moments' ratio, all to one side where the spin stays: 1 of momentum is 2 of energy, and twice that is allowed.
TEST(SemiImplicitSpin, BodiesOfAnyShapeKeepTheirEnergy) {
  constexpr int steps = test::kSanitized ? 100 : 2000;  // of 1 ms
  for (const V& shape : kShapes) {
    Kept exact, single;
    for (const V& spin : kSpins) {
      for (const double size : {1e-3, 0.1, 10.0}) {
        const Mechanism m = spinning(shape, size, spin, 500, steps);
        const Kept d = kept_in<double>(m), f = kept_in<float>(m);
        exact = {std::max(exact.energy, d.energy), std::max(exact.momentum, d.momentum)};
        single = {std::max(single.energy, f.energy), std::max(single.momentum, f.momentum)};
      }
    }
    const double roundings = steps * (4 + ratio_of(shape));
    EXPECT_LT(exact.energy, 4 * 1.1e-16 * roundings);
    EXPECT_LT(exact.momentum, 2 * 1.1e-16 * roundings);
    EXPECT_LT(single.energy, 4 * 6e-8 * roundings);
    EXPECT_LT(single.momentum, 2 * 6e-8 * roundings);
    std::printf("1 : %g : %g at 500 rad/s, 1 ms: energy %.1e, momentum %.1e; float32 %.1e, %.1e\n", shape.y, shape.z,
                exact.energy, exact.momentum, single.energy, single.momentum);
  }
}

// Where a step's equation may have no solution, momentum is kept all the same, which bounds the energy by the moments'
// ratio.
TEST(SemiImplicitSpin, TurnsBeyondAStepGoOn) {
  for (const V& shape : kShapes) {
    for (const V& spin : kSpins) {
      for (const double speed : {2000., 5000., 50000.}) {
        const Kept kept = kept_in<double>(spinning(shape, 0.1, spin, speed, 200));
        EXPECT_LT(kept.momentum, 2 * 1.1e-16 * 200 * (4 + ratio_of(shape)));
        EXPECT_LT(kept.energy, ratio_of(shape));
        for (const auto& [block, e] : test::identity_errors(spinning(shape, 0.1, spin, speed, 2), 17)) {
          EXPECT_TRUE(std::isfinite(e.error)) << block;
        }
      }
    }
  }
}

// Of turns of up to a radian a step. Cotangents of J are multiplied by the ratio of moments, and so are their
// roundings.
TEST(SemiImplicitSpin, GradientsAgreeWithDuals) {
  double worst = 0;
  for (const V& shape : kShapes) {
    const double ratio = ratio_of(shape), allowed = 2e-12 * (1 + ratio * ratio / 1000);
    for (const V& spin : kSpins) {
      for (const double speed : {0.0, 1.0, 100.0, 500.0, 1000.0}) {
        for (const auto& [block, e] : test::identity_errors(spinning(shape, 0.1, spin, speed, 4), 17)) {
          if (block == "mass") continue;  // of a body that nothing acts on: zero
          EXPECT_LT(e.error, allowed) << block << ' ' << speed << ' ' << shape.y << ' ' << shape.z;
          worst = std::max(worst, e.error / allowed);
        }
      }
    }
  }
  std::printf("spins of up to 1,000 rad/s at 1 ms: duals and adjoints differ by %.2f of what is allowed\n", worst);
}

/// States after ten steps of a pack whose lane l spins as speeds[l] says.
template <class Pack>
std::vector<test::BodyState<Pack>> end_of_pack(const std::vector<double>& speeds) {
  Mechanism m = spinning(kShapes[5], 0.1, kSpins[2], 1, 10);
  const auto constants = test::body_constants_of(m.numbers);
  std::vector<semi_implicit::BodyConstants<Pack>> packed(1);
  std::vector<test::BodyState<Pack>> state(1);
  const auto set = [](auto& to, const auto& from, int lane) {
    for (std::size_t k = 0; k < sizeof(from) / sizeof(double); ++k) {
      reinterpret_cast<Pack*>(&to)[k].set(lane,
                                          static_cast<StorageOf<Pack>>(reinterpret_cast<const double*>(&from)[k]));
    }
  };
  for (int l = 0; l < Pack::lanes; ++l) {
    set(packed[0], constants[0], l);
    set(state[0], spinning(kShapes[5], 0.1, kSpins[2], speeds[l], 10).numbers.state[0], l);
  }
  test::Runner<Pack> runner(m, packed, {}, zero3<Pack>());
  const std::vector<test::JointInputs<Pack>> inputs;
  const std::vector<Spatial<Pack>> wrenches(1, zero6<Pack>());
  for (int k = 0; k < m.steps; ++k) runner.step(state, inputs, wrenches);
  return state;
}

template <class Pack>
void expect_the_same_bits() {
  const std::vector<double> speeds = {3, 0, 500, 1e-3, 40, 5000, 900, 1e30, 2, 1, 7, 0, 450, 1500, 20, 1};
  const auto together = end_of_pack<Pack>(speeds);
  for (int l = 0; l < Pack::lanes; ++l) {
    const auto alone = end_of_pack<Pack>(std::vector<double>(Pack::lanes, speeds[l]));
    for (std::size_t k = 0; k < sizeof(alone[0]) / sizeof(Pack); ++k) {
      const auto a = reinterpret_cast<const Pack*>(&together[0])[k][l],
                 b = reinterpret_cast<const Pack*>(&alone[0])[k][l];
      EXPECT_TRUE(a == b) << "lane " << l << ": " << a << " and " << b;
    }
  }
}

TEST(SemiImplicitSpin, AWorldsBitsDoNotDependOnThoseBesideIt) {
  expect_the_same_bits<NativePack<double>>();
  expect_the_same_bits<NativePack<float>>();
}

}  // namespace
}  // namespace backdrive
