// Variables that are tied to others: values, gradients against differences, duals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/problem/objective.h"
#include "autodiff/problem/variables.h"
#include "scenes/scene.h"
#include "tests/support/loss_differences.h"

namespace backdrive {
namespace {

constexpr const char* kTied = R"(
simulation: {duration: 0.3 s}
model:
  bodies:
    upper: {shapes: [{density: 500, geometry: {type: capsule, scale: [2 cm, 20 cm]}, frame: {position: [0, 0, -0.2]}}]}
    lower: {shapes: [{density: 500, geometry: {type: capsule, scale: [2 cm, 20 cm]}, frame: {position: [0, 0, -0.2]}}]}
  joints:
    shoulder: {type: revolute, child: upper, axis: [0, 1, 0], damping: 0.1}
    elbow: {type: revolute, parent: upper, child: lower, axis: [0, 1, 0], frame: {position: [0, 0, -0.4]}, damping: 0.1}
initial_state: {shoulder: {position: 1}}
optimize:
  variables:
    - {control: shoulder, knots: 4, initial: [0.1, 0.3, -0.2, 0.5]}
    - {control: elbow, same_as: -0.5 * control/shoulder + 0.2 Nm}
    - {parameter: shapes/lower/geometry/scale, same_as: 0.5 * shapes/upper/geometry/scale + 1 cm}
    - {parameter: shapes/upper/geometry/scale, scale: 0.1}
    - {initial_state: elbow, quantity: velocity, same_as: 2 * initial_state/shoulder/velocity}
    - {initial_state: shoulder, quantity: velocity, initial: 0.4, bounds: [-3, 3]}
    - {parameter: joints/elbow/damping, same_as: joints/shoulder/damping - 0.02}
    - {parameter: joints/shoulder/damping}
  loss:
    terminal: [{body: lower, position: [0.3, 0, -0.4], velocity: [0, 0, 0], point: [0, 0, -0.4], weight: {velocity: 0.1}}]
    running: [{control: elbow, weight: 1e-2}]
)";

Problem problem(const std::vector<Override>& overrides = {}) {
  return parse_scene(kTied, "tied.yaml", ".", overrides).problem;
}

TEST(TiedVariables, HaveNoNumbersOfTheirOwn) {
  const Problem p = problem();
  EXPECT_EQ(p.variables.size(), 8u);
  const VariableLayout layout = variable_layout(p);
  EXPECT_EQ(layout.total, 4 + 2 + 1 + 1);
  EXPECT_EQ(layout.offset[1], layout.offset[0]);
  EXPECT_EQ(layout.offset[2], layout.offset[3]);
  const Problem at = with_values(p, initial_points(p, 1, 0)[0]);
  EXPECT_EQ(at.initial_velocity, (std::vector<double>{0.4, 0.8}));
  EXPECT_DOUBLE_EQ(at.model.shapes.geometry.scale(1, 0), 0.02);
  EXPECT_DOUBLE_EQ(at.model.shapes.geometry.scale(1, 1), 0.11);
  EXPECT_DOUBLE_EQ(at.model.joints.damping(1), 0.08);
  const auto elbow = std::ranges::find(at.controls, 1, &ControlSignal::joint);
  ASSERT_NE(elbow, at.controls.end());
  ASSERT_EQ(elbow->values.size(), 4u);
  EXPECT_DOUBLE_EQ(elbow->values[1], 0.05);
}

TEST(TiedVariables, GradientsAreThoseOfDifferences) {
  // Truncation h² = 1e-10 of third derivatives of 1e2, rounding 1e-16/h.
  EXPECT_LT(test::gradient_error(problem(), problem()), 1e-7);
  // A tie that is another would be seen, of every kind.
  for (const auto& [index, tie] : {std::pair(1, "-0.51 * control/shoulder + 0.2 Nm"),
                                   {2, "0.51 * shapes/upper/geometry/scale + 1 cm"},
                                   {4, "2.1 * initial_state/shoulder/velocity"},
                                   {6, "1.1 * joints/shoulder/damping - 0.02"}}) {
    const Problem other = problem({{"optimize/variables/" + std::to_string(index) + "/same_as", tie}});
    EXPECT_GT(test::gradient_error(problem(), other), 1e-5) << tie;
  }
}

TEST(TiedVariables, SecondDerivativesToo) {
  const test::HessianDifferences at = test::hessian_differences(problem(), 1e-5);
  ASSERT_EQ(at.product.gradient.size(), at.gradient.size());
  for (std::size_t k = 0; k < at.gradient.size(); ++k) {
    EXPECT_NEAR(at.product.gradient[k], at.gradient[k], 1e-11 * (1 + std::abs(at.gradient[k]))) << k;
    EXPECT_NEAR(at.product.product[k], at.by_difference[k], 1e-6 * at.largest) << k;
  }
}

constexpr const char* kExpressions = R"(
simulation: {duration: 0.3 s}
model:
  bodies:
    upper: {shapes: [{density: 500, geometry: {type: capsule, scale: [2 cm, 20 cm]}, frame: {position: [0, 0, -0.2]}}]}
    lower: {shapes: [{density: 500, geometry: {type: capsule, scale: [2 cm, 15 cm]}, frame: {position: [0, 0, -0.2]}}]}
    hand: {shapes: [{density: 900, geometry: {type: capsule, scale: [2 cm, 10 cm]}, frame: {position: [0, 0, -0.1]}}]}
  joints:
    shoulder: {type: revolute, child: upper, axis: [0, 1, 0], damping: 0.2}
    elbow: {type: revolute, parent: upper, child: lower, axis: [0, 1, 0], frame: {position: [0, 0, -0.4]}, damping: 0.1}
    wrist: {type: revolute, parent: lower, child: hand, axis: [0, 1, 0], frame: {position: [0, 0, -0.4]}, damping: 0.1}
initial_state: {shoulder: {position: 1}}
optimize:
  variables:
    - {parameter: shapes/upper/geometry/scale, same_as: 0.002 * shapes/upper/density * shapes/lower/geometry/scale}
    - {control: shoulder, knots: 3, initial: [0.1, 0.3, -0.2], scale: 2}
    - {control: wrist, same_as: 0.5 * control/shoulder - 2 * control/elbow + 0.1 Nm}
    - {control: elbow, knots: 3, initial: [0.05, 0.2, 0.1]}
    - {parameter: shapes/upper/density, scale: 100}
    - {parameter: shapes/lower/geometry/scale, scale: 0.1}
    - {parameter: joints/elbow/damping, same_as: 0.02 - -1.5 * joints/shoulder/damping * joints/shoulder/damping}
    - {parameter: joints/shoulder/damping, scale: 0.5}
    - {initial_state: elbow, quantity: velocity, same_as: initial_state/shoulder/velocity * joints/shoulder/damping}
    - {initial_state: shoulder, quantity: velocity, initial: 0.4, bounds: [-3, 3]}
  loss:
    terminal: [{body: hand, position: [0.3, 0, -0.4], velocity: [0, 0, 0], point: [0, 0, -0.4], weight: {velocity: 0.1}}]
    running: [{control: wrist, weight: 1e-2}]
)";

Problem expressions(const std::vector<Override>& overrides = {}) {
  return parse_scene(kExpressions, "expressions.yaml", ".", overrides).problem;
}

TEST(TiedVariables, MayBeSumsAndProductsOfOthers) {
  const Problem p = expressions();
  const VariableLayout layout = variable_layout(p);
  EXPECT_EQ(layout.total, 3 + 3 + 1 + 2 + 1 + 1);
  EXPECT_EQ(layout.computed, 2 + 3 + 1 + 1);
  const std::vector<double> x = initial_points(p, 1, 0)[0];
  EXPECT_EQ(x.size(), 11u);
  const Problem at = with_values(p, x);
  EXPECT_DOUBLE_EQ(at.model.shapes.geometry.scale(0, 0), 0.02);
  EXPECT_DOUBLE_EQ(at.model.shapes.geometry.scale(0, 1), 0.15);
  EXPECT_DOUBLE_EQ(at.model.joints.damping(1), 0.02 + 1.5 * 0.04);
  EXPECT_DOUBLE_EQ(at.initial_velocity[1], 0.4 * 0.2);
  const auto wrist = std::ranges::find(at.controls, 2, &ControlSignal::joint);
  ASSERT_NE(wrist, at.controls.end());
  ASSERT_EQ(wrist->values.size(), 3u);
  EXPECT_DOUBLE_EQ(wrist->values[1], 0.5 * 0.3 - 2 * 0.2 + 0.1);
}

TEST(TiedVariables, ExpressionsHaveTheGradientsOfDifferences) {
  // As above.
  EXPECT_LT(test::gradient_error(expressions(), expressions()), 1e-7);
  for (const auto& [index, tie] : {std::pair(0, "0.00201 * shapes/upper/density * shapes/lower/geometry/scale"),
                                   {2, "0.5 * control/shoulder - 2.01 * control/elbow + 0.1 Nm"},
                                   {6, "0.02 + 1.6 * joints/shoulder/damping * joints/shoulder/damping"},
                                   {8, "1.1 * initial_state/shoulder/velocity * joints/shoulder/damping"}}) {
    const Problem other = expressions({{"optimize/variables/" + std::to_string(index) + "/same_as", tie}});
    EXPECT_GT(test::gradient_error(expressions(), other), 1e-5) << tie;
  }
}

TEST(TiedVariables, ExpressionsHaveSecondDerivatives) {
  const test::HessianDifferences at = test::hessian_differences(expressions(), 1e-5);
  ASSERT_EQ(at.product.gradient.size(), at.gradient.size());
  for (std::size_t k = 0; k < at.gradient.size(); ++k) {
    EXPECT_NEAR(at.product.gradient[k], at.gradient[k], 1e-11 * (1 + std::abs(at.gradient[k]))) << k;
    EXPECT_NEAR(at.product.product[k], at.by_difference[k], 1e-6 * at.largest) << k;
  }
}

TEST(TiedVariables, ExpressionsAnswerForThemselves) {
  const auto expect = [](int index, const char* tie, const char* words) {
    std::string message = "accepted";
    try {
      expressions({{"optimize/variables/" + std::to_string(index) + "/same_as", tie}});
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(words), std::string::npos) << tie << ": " << message;
  };
  expect(6, "joints/shoulder/damping * joints/elbow/damping", "not tied itself");          // itself
  expect(6, "joints/shoulder/damping + initial_state/elbow/velocity", "not tied itself");  // a circle through another
  expect(6, "joints/shoulder/damping * joints/sholder/damping", "did you mean 'joints/shoulder/damping'?");
  expect(6, "joints/shoulder/damping * shapes/lower/geometry/scale", "a variable of 1 numbers (this one has 2)");
  expect(6, "joints/shoulder/damping * control/shoulder", "a variable that is no control");
  expect(2, "joints/shoulder/damping * shapes/upper/density", "another control");
  expect(6, "2", "with or without a factor and a constant");
  expect(6, "joints/shoulder/damping +", "the name of another variable");
  expect(6, "'joints/shoulder/damping * '", "the name of another variable");
  expect(6, "'joints/shoulder/damping + 2 * '", "with or without a factor and a constant");
  expect(6, "0 * joints/shoulder/damping * joints/shoulder/damping", "a factor that is not zero");
  expect(6, "joints/shoulder/damping + 1 kg", "as the constant");
  expect(6, "2 kg * joints/shoulder/damping", "with or without a factor and a constant");
}

TEST(TiedVariables, AnswerForTheirTies) {
  const auto refused = [](const char* path, const char* value) -> std::string {
    try {
      problem({{std::string("optimize/variables/") + path, value}});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto expect = [&](const char* path, const char* value, const char* words) {
    const std::string message = refused(path, value);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect("1/same_as", "control/shouldr", "did you mean 'control/shoulder'?");
  expect("1/same_as", "0 * control/shoulder", "a factor that is not zero");
  expect("1/same_as", "2 cm * control/shoulder", "with or without a factor and a constant");
  expect("1/same_as", "control/elbow", "not tied itself");
  expect("1/same_as", "joints/shoulder/damping", "another control");
  expect("1/same_as", "control/shoulder + 1 cm", "a torque");
  expect("6/same_as", "shapes/upper/geometry/scale", "a variable of 1 numbers (this one has 2)");
  expect("1/scale", "3", "no such key beside same_as");
  expect("1/bounds", "[0, 1]", "no such key beside same_as");
  expect("4", "{parameter: joints/elbow/axis, same_as: joints/shoulder/axis}", "the name of another variable");
}

}  // namespace
}  // namespace backdrive
