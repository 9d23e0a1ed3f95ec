// Variables that are tied to others: values, gradients against differences, duals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/check/hessian.h"
#include "autodiff/problem/objective.h"
#include "autodiff/problem/variables.h"
#include "scenes/scene.h"

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

/// The largest difference between a gradient and central differences, relative to its size.
double error_of(const Problem& gradient_of, const Problem& differences_of) {
  const std::vector<double> x = initial_points(gradient_of, 1, 0)[0];
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient, unused;
  make_objective(gradient_of, {})->evaluate({x}, loss, gradient);
  const auto objective = make_objective(differences_of, {});
  double error = 0, size = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    constexpr double h = 1e-5;
    std::vector<std::vector<double>> beside(2, x);
    beside[0][k] += h, beside[1][k] -= h;
    objective->evaluate(beside, loss, unused);
    error = std::max(error, std::abs(gradient[0][k] - (loss[0] - loss[1]) / (2 * h)));
    size = std::max(size, std::abs(gradient[0][k]));
  }
  return error / size;
}

TEST(TiedVariables, GradientsAreThoseOfDifferences) {
  // Truncation h² = 1e-10 of third derivatives of 1e2, rounding 1e-16/h.
  EXPECT_LT(error_of(problem(), problem()), 1e-7);
  // A tie that is another would be seen, of every kind.
  for (const auto& [index, tie] : {std::pair(1, "-0.51 * control/shoulder + 0.2 Nm"),
                                   {2, "0.51 * shapes/upper/geometry/scale + 1 cm"},
                                   {4, "2.1 * initial_state/shoulder/velocity"},
                                   {6, "1.1 * joints/shoulder/damping - 0.02"}}) {
    const Problem other = problem({{"optimize/variables/" + std::to_string(index) + "/same_as", tie}});
    EXPECT_GT(error_of(problem(), other), 1e-5) << tie;
  }
}

TEST(TiedVariables, SecondDerivativesToo) {
  const Problem p = problem();
  const std::vector<double> x = initial_points(p, 1, 0)[0];
  std::vector<double> direction(x.size(), 0.3);
  const HessianProduct product = hessian_vector_product(p, x, direction);
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient;
  constexpr double h = 1e-5;
  std::vector<std::vector<double>> points(3, x);
  for (std::size_t k = 0; k < x.size(); ++k) points[1][k] += h * direction[k], points[2][k] -= h * direction[k];
  make_objective(p, {})->evaluate(points, loss, gradient);
  double largest = 0;
  for (std::size_t k = 0; k < x.size(); ++k) largest = std::max(largest, std::abs(product.product[k]));
  for (std::size_t k = 0; k < x.size(); ++k) {
    EXPECT_NEAR(product.gradient[k], gradient[0][k], 1e-11 * (1 + std::abs(gradient[0][k]))) << k;
    EXPECT_NEAR(product.product[k], (gradient[1][k] - gradient[2][k]) / (2 * h), 1e-6 * largest) << k;
  }
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
