// Gradients through contact with known answers (docs/known_gradients.md), through tape and engine: (K3) a bounce, (K4)
// the same under gravity, (K5) two balls, (K6) sliding to a stop. At 480 steps per second and k/m = 1e4 the worst of 40
// phases of touch-down counts. benchmarks/contact_convergence.cpp prints how the errors shrink with the step; what
// fails these bounds is in contact_point_mass_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/contact_experiments.h"

namespace backdrive {
namespace {

using test::BounceOptions;
using test::BounceTruth;
using test::Experiment;
using test::Sensitivity;
using test::Support;

const std::string kMass = "bodies/ball/mass", kRadius = "shapes/ball/geometry/scale/x";
const std::string kStiffness = "shapes/*/material/stiffness", kFriction = "shapes/*/material/friction";

double relative(double ours, double truth) {
  return (ours - truth) / truth;
}

struct Setting {
  Support support;
  Integrator integrator;
};

class ClosedFormContactOf : public testing::TestWithParam<Setting> {
 protected:
  Support support() const { return GetParam().support; }
  int velocity_row(int axis) const { return support() == Support::free ? 3 + axis : 0; }
  BounceOptions options() const {
    BounceOptions options;
    options.support = support();
    options.integrator = GetParam().integrator;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(ClosedFormContact, ClosedFormContactOf,
                         testing::Values(Setting{Support::joint, Integrator::featherstone},
                                         Setting{Support::free, Integrator::featherstone},
                                         Setting{Support::joint, Integrator::semi_implicit},
                                         Setting{Support::free, Integrator::semi_implicit}),
                         [](const auto& info) {
                           const bool bodies = info.param.integrator == Integrator::semi_implicit;
                           return std::string(info.param.support == Support::free ? "Free" : "OnJoint") +
                                  (bodies ? "InMaximalCoordinates" : "");
                         });

// ---- 3. bounce ------------------------------------------------------------------------------------------------------

// ∂h/∂y₀ = −e. Of the error most comes from the step that touches first, which the ramp softens: 2.5e-3 with a linear
// law, 1.3e-3 with 1 mm, 1e-4 with 2 mm; dissipation jumps there by α ḋ and leaves up to 2.9e-3. The bounds leave
// a factor of about two.
TEST_P(ClosedFormContactOf, BounceKnowsWhereItBegan) {
  for (const double width : {1e-9, 1e-3, 2e-3}) {
    for (const double dissipation : {0., 0.1, 0.5, 1.}) {
      BounceOptions o = options();
      o.pair.width = width;
      o.pair.dissipation = dissipation;
      const Experiment e = test::bounce(o);
      const Sensitivity s(e, {});
      const double restitution = test::restitution(dissipation, 1);
      const double error = test::worst([&](int w) { return s.by_position(e.row, w) + restitution; });
      EXPECT_LT(error, dissipation > 0 ? 0.01 : 0.005) << "ramp " << width << ", dissipation " << dissipation;
      EXPECT_GT(error, 1e-8);  // as good as the step allows, not what a closed form was put in for
    }
  }
}

TEST(ClosedFormContact, RestitutionIsAsIntegrated) {
  EXPECT_EQ(test::restitution(0, 1), 1);
  // In closed form as long as 1 + α ḋ stays above ½: α v (1 + e) = ln((1 + α v)/(1 − α e v)).
  const double e = test::restitution(0.5, 1);
  EXPECT_NEAR(0.5 * (1 + e), std::log(1.5 / (1 - 0.5 * e)), 1e-10);
  // ∂h/∂y₀ = −e also where the smoothed clip of h is in use (α = 1).
  for (const double dissipation : {0.5, 1.}) {
    BounceOptions o;
    o.pair.dissipation = dissipation;
    EXPECT_NEAR(test::integrated_bounce(o, 0.3).by_start, -test::restitution(dissipation, 1), 1e-5);
  }
}

TEST(ClosedFormContact, IntegrationAgreesWithTheSpringsClosedForm) {
  for (const double gravity : {0., test::kGravity}) {
    BounceOptions o;
    o.gravity = gravity;
    o.seconds = 0.35;
    o.pair.width = 1e-9;
    const BounceTruth a = test::integrated_bounce(o, 0.3), b = test::spring_bounce(o, 0.3);
    // Its steps of 1e-5 s fall on the kink of the linear law as they will, and the gradient's step there by up to ω
    // times that, 1e-3, where it comes in and where it leaves; ramps it takes with the square of that.
    EXPECT_NEAR(a.height, b.height, 1e-6);
    EXPECT_NEAR(relative(a.by_start, b.by_start), 0, 5e-3);
    EXPECT_NEAR(relative(a.by_velocity, b.by_velocity), 0, 5e-3);
    EXPECT_NEAR(relative(a.by_stiffness, b.by_stiffness), 0, 5e-3);
    EXPECT_NEAR(relative(a.by_mass, b.by_mass), 0, 5e-3);
    EXPECT_NEAR(relative(a.by_radius, b.by_radius), 0, 5e-3);
  }
  BounceOptions o;
  EXPECT_NEAR(test::spring_bounce(o, 0.3).by_velocity, -(0.6 - M_PI / 100), 1e-14);
  EXPECT_NEAR(test::spring_bounce(o, 0.3).by_stiffness, M_PI / (2 * 100 * 1e4), 1e-18);
  EXPECT_NEAR(test::spring_bounce(o, 0.3).by_mass, -M_PI / (2 * 100), 1e-14);
  EXPECT_NEAR(test::spring_bounce(o, 0.3).by_radius, 2, 1e-14);
}

/// Errors of all gradients against the truth, in units of what they are with a linear spring. Stiffness and mass have a
/// tolerance of their own.
void expect_parameters(const BounceOptions& o, int velocity_row, double tolerance, double of_duration) {
  const Experiment e = test::bounce(o);
  const Sensitivity s(e, {kMass, kRadius, kStiffness});
  for (int w = 0; w < test::kPhases; ++w) {
    const double start = test::bounce_start(o, w);
    const bool linear = o.pair.width < 1e-6 && o.pair.dissipation == 0;
    const BounceTruth unit = test::spring_bounce(o, start);
    const BounceTruth t = linear ? unit : test::integrated_bounce(o, start);
    EXPECT_NEAR(s.end(w), t.height, 0.002) << w;
    EXPECT_NEAR(s.by_position(e.row, w) / unit.by_start, t.by_start / unit.by_start, tolerance) << w;
    EXPECT_NEAR(s.by_velocity(velocity_row, w) / unit.by_velocity, t.by_velocity / unit.by_velocity, tolerance) << w;
    EXPECT_NEAR(test::by_stiffness(s, w) / unit.by_stiffness, t.by_stiffness / unit.by_stiffness, of_duration) << w;
    EXPECT_NEAR(s.by(kMass, w) / unit.by_mass, t.by_mass / unit.by_mass, of_duration) << w;
    EXPECT_NEAR(s.by(kRadius, w) / unit.by_radius, t.by_radius / unit.by_radius, tolerance) << w;
  }
}

// ∂h/∂v = −(T − π/ω), ∂h/∂k = |v|π/(2ωk), ∂h/∂m = −|v|π/(2ωm), ∂h/∂r = 2, within 2 %. A
// contact lasts for 15 steps, and the averaged force makes it longer by (ωΔt)²/6 of it or so: 0.7 % of ∂h/∂k and ∂h/∂m.
TEST_P(ClosedFormContactOf, BounceKnowsItsParameters) {
  BounceOptions o = options();
  o.pair.width = 1e-9;
  expect_parameters(o, velocity_row(2), 0.02, 0.02);
  o.pair.width = 1e-3;
  expect_parameters(o, velocity_row(2), 0.02, 0.02);
}

// ---- 4. bounce under gravity ----------------------------------------------------------------------------------------

// Against the closed form of a ball on a linear spring that gravity loads, within the same 2 %.
TEST_P(ClosedFormContactOf, BounceUnderGravity) {
  BounceOptions o = options();
  o.gravity = test::kGravity;
  o.seconds = 0.35;
  o.pair.width = 1e-9;
  expect_parameters(o, velocity_row(2), 0.02, 0.02);
}

// And with dissipation, against the integrated motion. A step's restitution is that of the law but for some 0.4 (ωΔt)²,
// which k and m change: where in truth they change the duration alone, their gradients have an error of second order
// that is 16 % at 480 steps per second, at an impact of 2.2 m/s.
TEST_P(ClosedFormContactOf, BounceUnderGravityWithDissipation) {
  for (const double rate : {480., 960.}) {
    BounceOptions o = options();
    o.rate = rate;
    o.gravity = test::kGravity;
    o.seconds = 0.35;
    o.pair.dissipation = 0.5;
    expect_parameters(o, velocity_row(2), 0.02, 0.2 * (480 / rate) * (480 / rate));
  }
}

// Φ(T − t*) Ξ Φ(t*) with Ξ = [[−1, 0], [−2g/v⁻, −1]] and Φ(t) = [[1, t], [0, 1]] is of a contact that takes no time.
// The spring's takes τ = 32 ms, which the time after it lacks: an error of τ g/v₁ of ∂h/∂y₀ and of τ of ∂h/∂v, which a
// spring a hundred times as stiff makes ten times smaller.
TEST_P(ClosedFormContactOf, BounceUnderGravityNearsTheSaltationMatrix) {
  double before = 0;
  for (const double stiffness : {1e4, 1e6}) {
    BounceOptions o = options();
    o.gravity = test::kGravity;
    o.seconds = 0.35;
    o.rate = 480 * std::sqrt(stiffness / 1e4);
    o.pair.stiffness = stiffness;
    o.pair.width = 1e-3 * std::sqrt(1e4 / stiffness);
    const Experiment e = test::bounce(o);
    const Sensitivity s(e, {});
    double worst = 0;
    for (int w = 0; w < test::kPhases; ++w) {
      const double v0 = o.velocity, g = o.gravity, fall = test::bounce_start(o, w) - test::kBallRadius;
      const double impact = std::sqrt(v0 * v0 + 2 * g * fall), until = (v0 + impact) / g, after = o.seconds - until;
      const double slope = 2 * g / impact;  // −2g/v⁻, v⁻ = −impact
      const double by_start = -1 + after * slope, by_velocity = until * by_start - after;
      worst = std::max(worst, std::abs(s.by_position(e.row, w) - by_start));
      worst = std::max(worst, std::abs(s.by_velocity(velocity_row(2), w) - by_velocity));
    }
    const double duration = M_PI / std::sqrt(stiffness);
    EXPECT_LT(worst, 12 * duration) << stiffness;  // of gradients of 1, with 2g/v₁ = 9/s
    EXPECT_GT(worst, duration);
    if (before > 0) {
      EXPECT_LT(worst, 0.2 * before);
    }
    before = worst;
  }
}

// ---- 5. two balls ---------------------------------------------------------------------------------------------------

// x₂ = 0.52 + v (T − t₁ − τ/2), τ = π/ω with ω² = k/(m/2): ∂x₂/∂(x₁, x₂, v₁) = (1, 0, 1 − π/2ω) = (1, 0, 0.9889).
TEST_P(ClosedFormContactOf, TwoBallsPassOnTheirGradients) {
  const Experiment e = test::two_balls({support(), GetParam().integrator});
  const Sensitivity s(e, {});
  const int first = support() == Support::free ? 4 : 0;
  const double by_speed = 1 - M_PI / (2 * std::sqrt(2e4));
  EXPECT_NEAR(by_speed, 0.9889, 5e-5);
  for (int w = 0; w < test::kPhases; ++w) {
    EXPECT_NEAR(s.end(w), 0.52 + by_speed - 0.32 - (w + 0.5) / test::kPhases / 480, 1e-3);
    EXPECT_NEAR(s.by_position(first, w), 1, 0.005) << w;
    EXPECT_NEAR(s.by_position(e.row, w), 0, 0.005) << w;
    EXPECT_NEAR(s.by_velocity(velocity_row(0), w), by_speed, 0.005) << w;
  }
}

/// α that gives a restitution of 0.7 at 1 m/s.
double dissipation_of_seven_tenths() {
  double low = 0, high = 2;
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    (test::restitution(middle, 1) > 0.7 ? low : high) = middle;
  }
  return low;
}

// Rigid balls of 2 and 1 kg with e = 0.7: (1.1333, −0.1333, 1.1333). Those of x₁ and x₂ hold for any contact, whose
// duration they do not change; 0.01 as for a bounce with dissipation. v₁ changes the duration, and e, which falls with
// the speed: x₂ = x_com + 2/3 (gap + 2 r), gap that of a bounce of the reduced mass.
TEST_P(ClosedFormContactOf, TwoUnequalBallsThatDissipate) {
  test::TwoBallsOptions o;
  o.support = support();
  o.integrator = GetParam().integrator;
  o.masses[0] = 2;
  o.pair.dissipation = dissipation_of_seven_tenths();
  EXPECT_NEAR(o.pair.dissipation, 0.63, 0.05);
  const Experiment e = test::two_balls(o);
  const Sensitivity s(e, {"bodies/*/mass"});
  BounceOptions reduced;
  reduced.seconds = 1;
  reduced.pair = o.pair;
  const int first = support() == Support::free ? 4 : 0;
  for (const int w : {0, 7, 20, 33, 39}) {
    const double start = 0.52 + (w + 0.5) / test::kPhases / o.rate - 0.2;
    const BounceTruth gap = test::integrated_bounce(reduced, start, 2. / 3, 0);
    const double by_speed = 2. / 3 - 2. / 3 * gap.by_velocity;  // the gap closes at −v₁
    EXPECT_NEAR(s.by_position(first, w), 1.7 * 2 / 3, 0.01) << w;
    EXPECT_NEAR(s.by_position(e.row, w), 1 - 1.7 * 2 / 3, 0.01) << w;
    EXPECT_NEAR(s.by_velocity(velocity_row(0), w), by_speed, 0.01) << w;
    EXPECT_GT(std::abs(by_speed - 1.7 * 2 / 3), 0.05);  // what e lost by the speed
  }
}

// ---- 6. sliding to a stop -------------------------------------------------------------------------------------------

// x = v²/(2μg). The force jumps within the step of the stop, and what is left of it depends on the phase: 0.06 % of
// ∂x/∂v, twice that of ∂x/∂μ. Bodies of several points lean on their front while they slide and rock back afterwards,
// which the points' creep has to let them: with ε below 1e-4 m/s the last of the motion is chaotic by some 1e-5 m, and
// its gradient useless (docs/contact.md, section 4).
TEST_P(ClosedFormContactOf, SlidingKnowsSpeedAndFriction) {
  test::SlideOptions o;
  o.support = support();
  o.integrator = GetParam().integrator;
  const Experiment e = test::slide(o);
  const Sensitivity s(e, {kFriction});
  const double mu = o.friction, g = test::kGravity;
  for (int w = 0; w < test::kPhases; ++w) {
    const double v = test::slide_speed(o, w);
    EXPECT_NEAR(relative(s.end(w), v * v / (2 * mu * g)), 0, 0.005) << w;
    EXPECT_NEAR(relative(s.by_velocity(velocity_row(0), w), v / (mu * g)), 0, 0.005) << w;
    EXPECT_NEAR(relative(test::by_friction(s, w), -v * v / (2 * mu * mu * g)), 0, 0.005) << w;
  }
}

// ---- energy ---------------------------------------------------------------------------------------------------------

// 8. Undamped bouncing under gravity for 10 s at 240 steps per second, measured between contacts: a discrete gradient
// of the potential keeps the energy but for what the two Newton steps leave.
TEST_P(ClosedFormContactOf, UndampedBouncingKeepsItsEnergy) {
  BounceOptions o = options();
  o.gravity = test::kGravity;
  o.rate = 240;
  o.seconds = 10;
  o.velocity = 0;
  const Experiment e = test::bounce(o);
  const Trajectory<double> t = e.run(true);
  const int nq = e.state.q.rows(), nv = e.state.qd.rows(), row = velocity_row(2);
  int contacts = 0;
  for (int w = 0; w < test::kPhases; ++w) {
    const auto energy = [&](int step) {
      // Half a step behind q̇: that of the position.
      const double velocity = t.qd(step * nv + row, w) - 0.5 * o.gravity * e.time_step;
      return 0.5 * velocity * velocity + o.gravity * (t.q(step * nq + e.row, w) - test::kBallRadius);
    };
    for (int step = 1; step <= t.steps; ++step) {
      const double height = t.q(step * nq + e.row, w) - test::kBallRadius;
      contacts += height < 0;
      if (height > 0.02) {
        EXPECT_NEAR(energy(step) / energy(0), 1, 5e-4);
      }
    }
  }
  EXPECT_GT(contacts, 20 * test::kPhases);  // it did bounce
}

}  // namespace
}  // namespace backdrive
