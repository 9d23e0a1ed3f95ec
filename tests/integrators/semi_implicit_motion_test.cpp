// Motions with known answers: momentum, free fall, spin, a linkage that stays closed; and that a pack of worlds moves
// as its worlds do.
#include "engine/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/integrators/semi_implicit_checks.h"
#include "tests/integrators/semi_implicit_mechanisms.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using test::Mechanism;
using test::Random;
using Vector = std::vector<double>;

double length(const Vec3<double>& v) {
  return std::sqrt(dot(v, v));
}

/// Bodies with joints among themselves only, in weightlessness.
Mechanism floating(int seed, bool joints) {
  test::MechanismOptions options;
  options.loops = 1;
  options.steps = 500;
  options.dt = 0.002;
  Mechanism m = test::random_mechanism(seed, options);
  for (int j = static_cast<int>(m.joints.size()) - 1; j >= 0; --j) {
    if (joints && m.joints[j].parent >= 0) continue;
    m.joints.erase(m.joints.begin() + j);
    m.numbers.joints.erase(m.numbers.joints.begin() + j);
  }
  m.numbers.gravity = {};
  test::set_inputs(m, nullptr);
  return m;
}

// Kicks come in pairs that act at one point, drifts carry L = I ω over: what is left is rounding, some 1e-16 of the
// largest momentum a step.
TEST(SemiImplicitMotion, MomentaAreKept) {
  for (const bool joints : {false, true}) {
    for (int seed = 1; seed <= 3; ++seed) {
      const Mechanism m = floating(seed, joints);
      const auto states = test::roll_out(m);
      const test::Totals start = test::totals(m, states.front());
      double size_linear = 0, size_angular = 0;
      for (std::size_t i = 0; i < m.numbers.bodies.size(); ++i) {
        size_linear += m.numbers.bodies[i].mass * length(states[0][i].velocity.lin);
        size_angular +=
            m.numbers.bodies[i].mass * length(states[0][i].velocity.lin) * (1 + length(states[0][i].position));
      }
      for (const auto& state : states) {
        const test::Totals now = test::totals(m, state);
        ASSERT_LT(length(now.linear - start.linear), 1e-12 * size_linear) << joints;
        ASSERT_LT(length(now.angular - start.angular), 1e-12 * size_angular) << joints;
      }
    }
  }
}

/// One loose body.
Mechanism loose(const Sym3<double>& inertia, const Vec3<double>& com, const Spatial<double>& velocity, double dt,
                int steps) {
  Mechanism m;
  m.dt = dt, m.steps = steps;
  m.numbers.bodies.push_back({1.5, com, inertia});
  m.numbers.state.push_back({{{0, 0, 0}, 1}, {}, velocity});
  test::set_inputs(m, nullptr);
  return m;
}

// (K1) of docs/known_gradients.md: exact but for rounding, which grows with N.
TEST(ClosedFormSemiImplicit, FreeFallAndItsGradients) {
  constexpr int N = 50;
  constexpr double dt = 0.01;
  Mechanism m = loose({0.01, 0.02, 0.025, 0, 0, 0}, {}, {{4, -7, 3}, {1, 2, 3}}, dt, N);
  m.numbers.gravity = {0, 0, -9.81};
  const auto states = test::roll_out(m);
  const double fall = dt * dt * N * (N + 1) / 2;
  EXPECT_NEAR(states.back()[0].position.x, N * dt, 1e-13);
  EXPECT_NEAR(states.back()[0].position.z, 3 * N * dt - 9.81 * fall, 1e-13);
  EXPECT_NEAR(states.back()[0].velocity.lin.z, 3 - 9.81 * N * dt, 1e-13);
  test::StateSeeds seeds(N + 1, std::vector<test::BodyStateBar<double>>(1));
  seeds[N][0].position.z = 1;
  const test::MechanismTangent g = test::gradient_of(m, seeds);
  EXPECT_NEAR(g.state[0].velocity.lin.z, N * dt, 1e-13);
  EXPECT_NEAR(g.state[0].position.z, 1, 1e-14);
  EXPECT_NEAR(g.gravity.z, fall, 1e-13);
  EXPECT_NEAR(g.bodies[0].mass, 0, 1e-13);
  for (int k = 0; k < N; ++k) EXPECT_NEAR(g.wrenches[k][0].lin.z, dt * dt * (N - k) / 1.5, 1e-14);
}

/// Error of a symmetric top's orientation after a second: R = exp(t L/A) exp(t (1 − C/A) Ω_z e_z).
double top_error(double dt) {
  constexpr double A = 0.02, C = 0.03;
  const Vec3<double> omega{3, 1, 8}, L{A * omega.x, A * omega.y, C * omega.z};
  const Mechanism m = loose({A, A, C, 0, 0, 0}, {}, {omega, {}}, dt, static_cast<int>(std::lround(1 / dt)));
  const Quaternion<double> one{{0, 0, 0}, 1};
  const auto expected =
      turned<TurnSide::right>(turned<TurnSide::left>(one, L * (1 / A)), Vec3<double>{0, 0, (1 - C / A) * omega.z});
  return length(test::turn_between(expected, test::roll_out(m).back()[0].rotation));
}

// A drift by the midpoint's angular velocity is of second order.
TEST(ClosedFormSemiImplicit, SymmetricTopTurnsToSecondOrder) {
  double error = top_error(0.01);
  EXPECT_LT(error, 0.05);
  for (const double dt : {0.005, 0.0025, 0.00125}) {
    const double next = top_error(dt);
    EXPECT_NEAR(std::log2(error / next), 2, 0.1) << dt;
    error = next;
  }
}

// Three different moments of inertia: momentum and energy, which has twice its error, to some roundings a step, all to
// one side at worst.
TEST(ClosedFormSemiImplicit, FreeSpinKeepsMomentumAndEnergy) {
  constexpr double dt = 1e-3;
  const Mechanism m = loose({0.01, 0.02, 0.025, 0, 0, 0}, {}, {{3, 5, 2}, {}}, dt, 10000);
  const auto states = test::roll_out(m);
  const test::Totals start = test::totals(m, states.front());
  double energy = 0, momentum = 0;
  for (const auto& state : states) {
    const test::Totals now = test::totals(m, state);
    momentum = std::max(momentum, length(now.angular - start.angular) / length(start.angular));
    energy = std::max(energy, std::abs(now.energy / start.energy - 1));
  }
  std::printf("spin, 10 s at 1 ms: momentum %.1e, energy %.1e\n", momentum, energy);
  EXPECT_LT(momentum, 1e-15 * m.steps);
  EXPECT_LT(energy, 2e-15 * m.steps);
}

/// Prints and returns worst gap and change of energy over Σ m |g| · 1 m.
std::pair<double, double> long_run(const char* name, Mechanism m, double dt, double seconds) {
  m.dt = dt, m.steps = static_cast<int>(std::lround(seconds / dt));
  test::set_inputs(m, nullptr);
  const auto states = test::roll_out(m);
  double gap = 0, energy = 0, late = 0, weight = 0;
  for (const auto& b : m.numbers.bodies) weight += b.mass * 9.81;
  const double start = test::energy(m, states.front());
  for (std::size_t k = 0; k < states.size(); ++k) {
    gap = std::max(gap, test::worst_attachment(m, states[k]).first);
    const double change = std::abs(test::energy(m, states[k]) - start) / weight;
    energy = std::max(energy, change);
    if (k > states.size() * 9 / 10) late = std::max(late, change);
  }
  std::printf("%s, %g s at 1/%.0f: gap %.1e m, energy %.1e, in the last tenth %.1e\n", name, seconds, 1 / dt, gap,
              energy, late);
  return {gap, energy};
}

constexpr double kLong = test::kSanitized ? 0.2 : 10;  // s

// Energy of symplectic Euler swings by O(Δt) and comes back; what the attachments lose would add up. A gap is what a
// load of some 100 N stretches 1e8 N/m by, and what a step misses, of third order in Δt.
TEST(SemiImplicitMotion, PendulumsKeepTheirEnergyAndTheirJoints) {
  Mechanism pendulum = test::mechanism_of(test::double_pendulum(), test::stiff(1e8));
  test::place(pendulum, {{1.2}, {-0.7}}, {{0.5}, {1}});
  Model chain = test::chain(7);
  for (int j = 0; j < 7; ++j) chain.joints.damping.set(j, 0, 0);
  Mechanism arm = test::mechanism_of(chain, test::stiff(1e8));
  test::place(arm, {{0.3}, {0.8}, {-0.4}, {-1}, {0.5}, {0.7}, {0.2}}, {{0.5}, {-1}, {1}, {0.5}, {-1}, {1}, {0.5}});
  for (auto& joint : arm.numbers.joints) joint.efforts.armature = 0;
  for (const double dt : {1. / 240, 1. / 2000}) {
    const auto p = long_run("double pendulum", pendulum, dt, kLong),
               a = long_run("arm without damping", arm, dt, kLong);
    EXPECT_LT(p.first, 2e-6 + 300 * dt * dt * dt);
    EXPECT_LT(p.second, 10 * dt);
    EXPECT_TRUE(std::isfinite(a.second));
  }
}

// A crank that turns a few times: the loop's joint is as closed as the others, and soft springs do not blow up.
TEST(SemiImplicitMotion, FourBarLinkageStaysClosed) {
  for (const double dt : {1. / 240, 1. / 2000}) {
    const auto [gap, energy] = long_run("four-bar linkage", test::four_bar(8, 1e8), dt, kLong);
    EXPECT_LT(gap, 2e-6 + 2e3 * dt * dt * dt);  // crank at 8 rad/s and more
    EXPECT_LT(energy, 20 * dt);
  }
  long_run("four-bar linkage, 1e12 N/m", test::four_bar(8, 1e12), 1. / 240, kLong);
  EXPECT_LT(long_run("four-bar linkage, 1e3 N/m", test::four_bar(8, 1e3, 10), 1. / 240, kLong).first, 0.1);
}

/// Numbers of one lane; To and From are nothing but numbers.
template <class Pack, class To, class From>
void set_lane(To& to, const From& from, int lane) {
  static_assert(sizeof(To) / sizeof(Pack) == sizeof(From) / sizeof(double));
  for (std::size_t k = 0; k < sizeof(From) / sizeof(double); ++k) {
    reinterpret_cast<Pack*>(&to)[k].set(lane, static_cast<StorageOf<Pack>>(reinterpret_cast<const double*>(&from)[k]));
  }
}
template <class Pack, class Packed, class Number>
double lane_difference(const Packed& packed, const Number& number, int lane) {
  double worst = 0;
  for (std::size_t k = 0; k < sizeof(Number) / sizeof(double); ++k) {
    const double x = reinterpret_cast<const double*>(&number)[k];
    const double own = static_cast<double>(reinterpret_cast<const Pack*>(&packed)[k][lane]);
    worst = std::max(worst, std::isfinite(own) ? std::abs(own - x) / (1 + std::abs(x)) : 1e300);
  }
  return worst;
}

/// Differences of states after the steps and of initial states' cotangents between a pack and its worlds, each with a
/// state and efforts of its own. The world in lane 0 gets an effort that is no number in the last step but one.
template <class Pack>
void compare_pack(bool spoil, double& states, double& cotangents, double& spoilt) {
  constexpr int lanes = Pack::lanes;
  test::MechanismOptions options;
  options.loops = 1, options.steps = 4;
  std::vector<Mechanism> worlds(lanes, test::random_mechanism(3, options));
  Random random(5);
  for (Mechanism& m : worlds) {
    for (auto& s : m.numbers.state) s.velocity.ang += test::random3(random, 0.3);
    test::set_inputs(m, &random);
  }
  const Mechanism& m = worlds[0];
  const std::size_t bodies = m.numbers.bodies.size(), joints = m.joints.size();
  std::vector<semi_implicit::BodyConstants<Pack>> body_constants(bodies);
  std::vector<semi_implicit::JointConstants<Pack>> joint_constants(joints);
  std::vector<std::vector<test::BodyState<Pack>>> state(options.steps + 1, std::vector<test::BodyState<Pack>>(bodies));
  std::vector<std::vector<test::JointInputs<Pack>>> inputs(options.steps, std::vector<test::JointInputs<Pack>>(joints));
  std::vector<std::vector<Spatial<Pack>>> wrenches(options.steps, std::vector<Spatial<Pack>>(bodies));
  std::vector<test::BodyStateBar<Pack>> bar(bodies);
  const test::StateSeeds seeds = [&] {
    test::StateSeeds all(options.steps + 1, std::vector<test::BodyStateBar<double>>(bodies));
    all.back() = test::random_seeds(m, 9).back();
    return all;
  }();
  for (int l = 0; l < lanes; ++l) {
    const auto b = test::body_constants_of(worlds[l].numbers);
    const auto j = test::joint_constants_of(worlds[l], worlds[l].numbers);
    for (std::size_t i = 0; i < bodies; ++i) {
      set_lane<Pack>(body_constants[i], b[i], l), set_lane<Pack>(state[0][i], worlds[l].numbers.state[i], l);
      set_lane<Pack>(bar[i], seeds.back()[i], l);
      for (int k = 0; k < options.steps; ++k) set_lane<Pack>(wrenches[k][i], worlds[l].numbers.wrenches[k][i], l);
    }
    for (std::size_t i = 0; i < joints; ++i) {
      set_lane<Pack>(joint_constants[i], j[i], l);
      for (int k = 0; k < options.steps; ++k) set_lane<Pack>(inputs[k][i], worlds[l].numbers.inputs[k][i], l);
    }
  }
  if (spoil) inputs[options.steps - 2][1].effort[0].set(0, std::nanf(""));
  Vec3<Pack> gravity;
  for (int l = 0; l < lanes; ++l) set_lane<Pack>(gravity, m.numbers.gravity, l);
  test::Runner<Pack> runner(m, body_constants, joint_constants, gravity);
  for (int k = 0; k < options.steps; ++k) {
    state[k + 1] = state[k];
    runner.step(state[k + 1], inputs[k], wrenches[k]);
  }
  for (int k = options.steps - 1; k >= 0; --k) {
    std::vector<test::JointInputs<Pack>> input_bar(joints);
    runner.step_adjoint(state[k], inputs[k], wrenches[k], {bar.data(), input_bar.data()});
  }
  states = cotangents = spoilt = 0;
  for (int l = 0; l < lanes; ++l) {
    const auto expected = test::roll_out(worlds[l]);
    const test::MechanismTangent g = test::gradient_of(worlds[l], seeds);
    for (std::size_t i = 0; i < bodies; ++i) {
      if (spoil && l == 0) {
        spoilt = std::max(spoilt, lane_difference<Pack>(state.back()[i], expected[options.steps - 2][i], l));
        continue;
      }
      states = std::max(states, lane_difference<Pack>(state.back()[i], expected.back()[i], l));
      cotangents = std::max(cotangents, lane_difference<Pack>(bar[i], g.state[i], l));
    }
  }
}

// Packs round differently (fused multiply-adds); cotangents of attachments of 2e4 N/m reach 1e2. Single precision knows
// poses to 6e-8, which the attachments divide by Δt.
TEST(SemiImplicitPacks, HaveTheNumbersOfTheirWorlds) {
  double states, cotangents, spoilt;
  compare_pack<NativePack<double>>(false, states, cotangents, spoilt);
  EXPECT_LT(states, 1e-11);
  EXPECT_LT(cotangents, 1e-11);
  compare_pack<NativePack<float>>(false, states, cotangents, spoilt);
  EXPECT_LT(states, 1e-3);
  EXPECT_LT(cotangents, 1e-3);
  std::printf("single precision: states %.1e, cotangents %.1e\n", states, cotangents);
}

TEST(SemiImplicitPacks, AWorldThatIsNotFiniteStopsAlone) {
  double states, cotangents, spoilt;
  compare_pack<NativePack<double>>(true, states, cotangents, spoilt);
  EXPECT_LT(states, 1e-11);
  EXPECT_LT(spoilt, 1e-11);  // where the spoilt step found it
}

TEST(SemiImplicitAngle, IsThatOfTheLibrary) {
  for (int i = 0; i <= 4000; ++i) {
    const double a = -3.1415 + i * 6.283 / 4000, x = 2.5 * std::cos(a), y = 2.5 * std::sin(a);
    EXPECT_NEAR(angle_of(x, y), std::atan2(y, x), 1e-15) << a;  // two ulp of 3
    EXPECT_NEAR(angle_of(static_cast<float>(x), static_cast<float>(y)), std::atan2(y, x), 1e-6) << a;
  }
  EXPECT_EQ(angle_of(0., 0.), 0);
}

}  // namespace
}  // namespace backdrive
