#include "autodiff/check/gradient_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "tests/autodiff/optimize_cases.h"

namespace backdrive {
namespace {

const GradientCheckRow& row_of(const GradientCheck& check, const std::string& name) {
  const auto found =
      std::find_if(check.rows.begin(), check.rows.end(), [&](const GradientCheckRow& row) { return row.name == name; });
  if (found == check.rows.end()) throw std::runtime_error("no row " + name);
  return *found;
}

TEST(GradientCheck, EveryGradientOfACartPolePasses) {
  const GradientCheck check = check_gradients(cases::cart_pole());
  EXPECT_TRUE(check.passed);
  for (const GradientCheckRow& row : check.rows) {
    EXPECT_TRUE(row.passed) << row.name << ": adjoint " << row.adjoint << ", differences " << row.differences
                            << ", dual " << row.dual << "; " << row.tolerance_source;
    if (!row.used) continue;
    EXPECT_GT(row.count, 0) << row.name;
    EXPECT_FALSE(row.tolerance_source.empty()) << row.name;
  }
  EXPECT_TRUE(std::isfinite(check.loss));
}

TEST(GradientCheck, ListsEveryParameterOfEveryItem) {
  const Problem problem = cases::cart_pole();
  const GradientCheck check = check_gradients(problem);
  for (const Field& field : fields()) {
    for (int item = 0; item < field.in(problem.model).items(); ++item) {
      EXPECT_NO_THROW(row_of(check, path_of(problem.model, {&field, item, -1})));
    }
  }
  for (const char* name :
       {"initial_state/slider/position", "initial_state/hinge/velocity", "control/slider/effort",
        "control/slider/target_position", "control/slider/target_velocity", "control/* (one random direction)"}) {
    EXPECT_NO_THROW(row_of(check, name));
  }
}

TEST(GradientCheck, TolerancesAreTight) {
  const GradientCheck check = check_gradients(cases::cart_pole());
  for (const char* name : {"bodies/pole/com", "joints/hinge/axis", "joints/hinge/frame/orientation",
                           "shapes/box/geometry/scale", "gravity", "initial_state/hinge/position"}) {
    const GradientCheckRow& row = row_of(check, name);
    EXPECT_LT(row.dual_tolerance, 1e-8 * std::abs(row.adjoint)) << name;
    EXPECT_LT(row.differences_tolerance, 1e-3 * std::abs(row.adjoint)) << name;
    // Two routes that share nothing but the forward step: not the same bits.
    EXPECT_NE(row.differences, row.adjoint) << name;
  }
}

class GradientFault : public testing::TestWithParam<const char*> {};

TEST_P(GradientFault, OfAThousandthIsCaught) {
  GradientCheckOptions options;
  options.fault_row = GetParam();
  options.fault_factor = 1 + 1e-3;
  const GradientCheck check = check_gradients(cases::cart_pole(), options);
  EXPECT_FALSE(check.passed);
  for (const GradientCheckRow& row : check.rows) EXPECT_EQ(row.passed, row.name != GetParam()) << row.name;
  const GradientCheckRow& row = row_of(check, GetParam());
  EXPECT_GT(row.dual_error, row.dual_tolerance);
  EXPECT_FALSE(row.zero);
  EXPECT_FALSE(row.rough) << "a wrong gradient of a smooth motion";
}
INSTANTIATE_TEST_SUITE_P(Rows, GradientFault,
                         testing::Values("initial_state/hinge/position", "initial_state/slider/velocity",
                                         "control/slider/effort", "control/* (one random direction)",
                                         "bodies/pole/inertia", "bodies/tip/com", "joints/slider/friction",
                                         "joints/slider/limit/stiffness", "joints/slider/drive/damping",
                                         "joints/hinge/axis", "shapes/box/density", "gravity"));

TEST(GradientCheck, SaysHonestlyWhatIsZero) {
  Problem problem = cases::cart_pole();
  const GradientCheck check = check_gradients(problem);
  // The lower limit is never reached: the integrator uses it, this motion does not.
  const GradientCheckRow& lower = row_of(check, "joints/slider/limit/lower");
  EXPECT_TRUE(lower.used);
  EXPECT_TRUE(lower.zero);
  EXPECT_EQ(lower.note, "zero: the loss does not depend on it");
  const GradientCheckRow& margin = row_of(check, "shapes/box/geometry/margin");
  EXPECT_FALSE(margin.used);
  EXPECT_TRUE(margin.passed);
  EXPECT_NE(margin.note.find("not used"), std::string::npos);
  EXPECT_FALSE(row_of(check, "joints/weld/damping").used);
  EXPECT_FALSE(row_of(check, "joints/hinge/frame/position").zero);
}

TEST(GradientCheck, NamesAKinkThatItStandsOn) {
  // The slider begins right at its limit: the damper acts on one side only.
  Problem problem = cases::cart_pole();
  problem.initial_position[0] = problem.model.joints.limit.upper(problem.model.find_joint("slider"));
  const GradientCheck check = check_gradients(problem);
  const GradientCheckRow& row = row_of(check, "initial_state/slider/position");
  EXPECT_NE(row.note.find("kink"), std::string::npos) << row.note << ": " << row.adjoint << " " << row.differences;
  EXPECT_TRUE(row.passed);
  EXPECT_TRUE(check.passed);
}

// A pendulum in steps of a second is the standard map of chaos: what is h apart at first is 5 h apart a step later.
TEST(GradientCheck, SaysWhereDifferencesAreNoMeasure) {
  Problem problem = cases::pendulum();
  problem.simulation.time_step = 1;
  problem.controls.clear();
  problem.variables.clear();
  problem.model.joints.damping.at(0) = 0;
  problem.initial_position = {0.7};
  problem.initial_velocity = {0.1};
  problem.loss = {{.name = "angle", .target = {0.3, 0, 0, 0}, .on_circle = true}};
  GradientCheckOptions options;
  options.controls = 0;
  for (const int steps : {4, 13, 14, 18}) {
    problem.simulation.steps = steps;
    const GradientCheck check = check_gradients(problem, options);
    const GradientCheckRow& row = row_of(check, "initial_state/hinge/position");
    EXPECT_TRUE(row.passed) << steps << ": adjoint and dual agree";
    EXPECT_EQ(row.rough, steps > 4) << steps;
    EXPECT_EQ(row.note.find("do not settle") != std::string::npos, steps > 4) << row.note;
    EXPECT_LE(row.dual_error, row.dual_tolerance) << steps;
  }
  problem.simulation.steps = 13;
  options.fault_row = "initial_state/hinge/position";
  options.fault_factor = 100;
  EXPECT_FALSE(row_of(check_gradients(problem, options), options.fault_row).rough) << "the adjoint is wrong as well";
}

TEST(GradientCheck, SamplesControlsBySeed) {
  GradientCheckOptions options;
  options.controls = 5;
  const auto checked = [&](std::uint64_t seed) {
    options.seed = seed;
    const GradientCheck check = check_gradients(cases::pendulum(), options);
    const GradientCheckRow& row = row_of(check, "control/hinge/effort");
    EXPECT_EQ(row.count, 5);
    EXPECT_EQ(row.total, 100);
    return row.adjoint;
  };
  EXPECT_EQ(checked(1), checked(1));
  EXPECT_NE(checked(1), checked(2));
}

TEST(GradientCheck, SameBitsForAnyNumberOfThreads) {
  GradientCheckOptions two;
  two.threads = 2;
  const GradientCheck a = check_gradients(cases::cart_pole()), b = check_gradients(cases::cart_pole(), two);
  ASSERT_EQ(a.rows.size(), b.rows.size());
  for (size_t i = 0; i < a.rows.size(); ++i) {
    EXPECT_EQ(a.rows[i].adjoint, b.rows[i].adjoint) << a.rows[i].name;
    EXPECT_EQ(a.rows[i].differences, b.rows[i].differences) << a.rows[i].name;
    EXPECT_EQ(a.rows[i].dual, b.rows[i].dual) << a.rows[i].name;
  }
}

TEST(GradientCheck, ChecksTheAdjointInFloat32) {
  GradientCheckOptions options;
  options.float32 = true;
  const GradientCheck check = check_gradients(cases::cart_pole(), options);
  EXPECT_TRUE(check.passed);
  for (const GradientCheckRow& row : check.rows) {
    EXPECT_EQ(row.float32.done, row.used) << row.name;
    EXPECT_TRUE(row.float32.passed) << row.name << ": " << row.float32.adjoint << ", dual " << row.float32.dual;
  }
  for (const char* name : {"bodies/pole/com", "gravity", "initial_state/hinge/position"}) {
    const Float32Check& single = row_of(check, name).float32;
    EXPECT_LT(single.resolution, 1e-2 * std::abs(single.dual)) << name;
    EXPECT_FALSE(single.unresolved) << name;
    EXPECT_NE(single.adjoint, single.dual) << name << ": another precision gives other bits";
  }
  EXPECT_FALSE(row_of(check_gradients(cases::cart_pole()), "gravity").float32.done) << "not asked for";
}

TEST_P(GradientFault, InFloat32IsCaught) {
  GradientCheckOptions options;
  options.float32 = true;
  options.differences = 0;  // of the adjoint in float64
  options.fault_row = GetParam();
  // Along all controls much cancels: that is held to a tenth of what single ones are.
  options.fault_factor_float32 = std::string(GetParam()) == "control/* (one random direction)" ? 30 : 1.5;
  const GradientCheck check = check_gradients(cases::cart_pole(), options);
  EXPECT_FALSE(check.passed);
  for (const GradientCheckRow& row : check.rows) EXPECT_EQ(row.passed, row.name != GetParam()) << row.name;
  EXPECT_EQ(row_of(check, GetParam()).note, "in float32 the adjoint is another");
}

TEST(GradientCheck, HoldsASampleAgainstDifferences) {
  GradientCheckOptions options;
  options.differences = 7;
  const GradientCheck check = check_gradients(cases::cart_pole(), options);
  EXPECT_TRUE(check.passed);
  EXPECT_EQ(check.numbers, check_gradients(cases::cart_pole()).numbers) << "against duals every one is held";
  int taken = 0;
  for (const GradientCheckRow& row : check.rows) taken += row.macroscopic.done;
  EXPECT_GT(taken, 0);
  EXPECT_LE(taken, 7);
}

// The loss is zero up to an angle that is a hundredth further on: its gradient there says nothing of what comes.
TEST(GradientCheck, TellsWhereTheLossGoesOnOtherwise) {
  Problem problem = cases::pendulum();
  problem.controls.clear();
  problem.variables.clear();
  problem.initial_position = {0.5};
  problem.loss = {{.name = "angle", .target = {-10, 0, 0, 0}, .upper = {kInfinity, kNoRange, kNoRange}}};
  RolloutOptions rollout_options{.time_step = problem.simulation.time_step, .steps = problem.simulation.steps};
  const auto motion =
      rollout(problem.model, initial_state<double>(problem, 1), initial_control<double>(problem, 1), rollout_options);
  problem.loss[0].upper[0] = motion.final.q(0, 0) + 0.01;
  const GradientCheckRow flat = row_of(check_gradients(problem), "initial_state/hinge/position");
  EXPECT_TRUE(flat.passed);
  EXPECT_TRUE(flat.zero);
  EXPECT_TRUE(flat.macroscopic.parts);
  EXPECT_EQ(flat.macroscopic.derivative, 0);
  EXPECT_NE(flat.macroscopic.slope, 0);
  EXPECT_EQ(flat.macroscopic.distance, 0.05);
  GradientCheckOptions near;
  near.distance = 1e-4;
  EXPECT_FALSE(row_of(check_gradients(problem, near), "initial_state/hinge/position").macroscopic.parts);
  near.distance = 0;
  EXPECT_FALSE(row_of(check_gradients(problem, near), "initial_state/hinge/position").macroscopic.done);
  // A smooth loss goes on as it is.
  problem.loss[0].upper[0] = -10;
  const MacroscopicSlope smooth = row_of(check_gradients(problem), "initial_state/hinge/position").macroscopic;
  EXPECT_FALSE(smooth.parts);
  EXPECT_NEAR(smooth.slope, smooth.derivative, 0.1 * std::abs(smooth.derivative));
}

TEST(GradientCheck, MovesAsFarAsAVariablesScaleSays) {
  Problem problem = cases::pendulum();
  Variable angle;
  angle.name = "initial_state/hinge/position";
  angle.kind = VariableKind::initial_position;
  angle.scale = 0.2;
  Variable damping = cases::parameter(problem.model, "joints/hinge/damping");
  damping.scale = 0.01;
  problem.variables = {angle, damping};
  const GradientCheck check = check_gradients(problem);
  EXPECT_DOUBLE_EQ(row_of(check, "initial_state/hinge/position").macroscopic.distance, 0.05 * 0.2);
  EXPECT_DOUBLE_EQ(row_of(check, "joints/hinge/damping").macroscopic.distance, 0.05 * 0.01);
  EXPECT_DOUBLE_EQ(row_of(check, "initial_state/hinge/velocity").macroscopic.distance, 0.05) << "it has none";
}

TEST(GradientCheck, RefusesARolloutThatStops) {
  Problem problem = cases::pendulum();
  problem.initial_velocity = {1e200};
  try {
    check_gradients(problem);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::non_finite);
    EXPECT_NE(std::string(error.what()).find("hinge"), std::string::npos);
  }
  problem = cases::pendulum();
  problem.loss.clear();
  EXPECT_THROW(check_gradients(problem), Error);
}

}  // namespace
}  // namespace backdrive
