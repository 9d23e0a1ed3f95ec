#include "autodiff/check/standard_errors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/autodiff/optimize_cases.h"

namespace backdrive {
namespace {

/// A cart without forces, q(t) = q₀ + v t, whose start and velocity are fitted to a record: the line of regression.
struct Line {
  static constexpr int kSteps = 40;
  static constexpr double kTimeStep = 0.05;
  double weight = 7, scale = 3;
  int rows = kSteps;
  Problem problem;
  std::vector<double> x;                       ///< of the minimum, scaled: q₀, v
  double start_error = 0, velocity_error = 0;  ///< by the formulas of simple regression

  explicit Line(int record_rows = kSteps) : rows(record_rows) {
    ModelBuilder builder;
    const int cart = builder.add_body("cart", {.mass = 2, .com = {}, .inertia = {1, 1, 1, 0, 0, 0}});
    JointOptions slider;
    slider.axis = {1, 0, 0};
    builder.add_joint("slider", JointType::prismatic, ModelBuilder::world, cart, slider);
    problem.model = builder.build();
    problem.simulation = {kTimeStep, kSteps};
    problem.initial_position = {0};
    problem.initial_velocity = {0};
    LossTerm term{.name = "running/slider/position", .terminal = false, .weight = weight};
    std::vector<double> times, values;
    for (int k = 1; k <= rows; ++k) {
      times.push_back(kTimeStep * kSteps * k / rows);
      values.push_back(0.3 + 0.8 * times.back() + 0.05 * std::sin(17.0 * k * k));
      term.record.times.push_back(times.back());
      term.record.values.push_back({values.back(), 0, 0, 1});
    }
    problem.loss = {term};
    Variable position;
    position.name = "initial_state/slider/position";
    position.kind = VariableKind::initial_position;
    Variable velocity = position;
    velocity.name = "initial_state/slider/velocity";
    velocity.kind = VariableKind::initial_velocity;
    velocity.scale = scale;
    problem.variables = {position, velocity};
    regress(times, values);
  }

  void regress(const std::vector<double>& t, const std::vector<double>& y) {
    const auto n = static_cast<double>(t.size());
    double mean_t = 0, mean_y = 0, tt = 0, ty = 0, squares = 0;
    for (std::size_t k = 0; k < t.size(); ++k) mean_t += t[k] / n, mean_y += y[k] / n;
    for (std::size_t k = 0; k < t.size(); ++k) {
      tt += std::pow(t[k] - mean_t, 2);
      ty += (t[k] - mean_t) * (y[k] - mean_y);
    }
    const double v = ty / tt, q0 = mean_y - v * mean_t;
    for (std::size_t k = 0; k < t.size(); ++k) squares += std::pow(y[k] - q0 - v * t[k], 2);
    const double s = std::sqrt(squares / (n - 2));
    x = {q0, v / scale};
    velocity_error = s / std::sqrt(tt);
    start_error = s * std::sqrt(1 / n + mean_t * mean_t / tt);
  }
};

TEST(StandardErrors, AreThoseOfTheLineOfRegression) {
  const Line line;
  const auto errors = standard_errors(line.problem, line.x);
  ASSERT_TRUE(errors);
  // The problem is linear: all that differs is rounding, of a Hessian of condition ~ 10.
  EXPECT_NEAR((*errors)[0], line.start_error, 1e-10 * line.start_error);
  EXPECT_NEAR((*errors)[1] * line.scale, line.velocity_error, 1e-10 * line.velocity_error);
}

TEST(StandardErrors, DoNotTakeInterpolatedSamplesForMeasurements) {
  // Eight rows, forty steps: the steps between add nothing that was measured. What is scored are the lines between the
  // rows, so that the closed form of the eight holds but for a part.
  const Line line(8);
  const auto errors = standard_errors(line.problem, line.x);
  ASSERT_TRUE(errors);
  EXPECT_NEAR((*errors)[1] * line.scale, line.velocity_error, 0.4 * line.velocity_error);
}

TEST(StandardErrors, LeaveOutNumbersAtTheirBounds) {
  Line line;
  line.problem.variables[1].lower = line.x[1] * line.scale;
  const auto errors = standard_errors(line.problem, line.x);
  ASSERT_TRUE(errors);
  EXPECT_TRUE(std::isinf((*errors)[1]));
  // With v known, q₀ is a mean: s / √n, where n − 1 is divided by in place of n − 2.
  const double n = Line::kSteps, mean_t = Line::kTimeStep * (n + 1) / 2;
  const double tt = Line::kTimeStep * Line::kTimeStep * n * (n * n - 1) / 12;
  const double s = line.velocity_error * std::sqrt(tt) * std::sqrt((n - 2) / (n - 1));
  EXPECT_NEAR((*errors)[0], s / std::sqrt(n), 1e-10);
  EXPECT_GT(line.start_error, s / std::sqrt(n) * (1 + 0.5 * mean_t));
}

TEST(StandardErrors, AreNotToldOfLossesThatAreNoFit) {
  const auto none = [](auto change) {
    Line line;
    change(line.problem);
    EXPECT_FALSE(standard_errors(line.problem, line.x));
  };
  none([](Problem& p) { p.loss[0].record = {}; });
  none([](Problem& p) { p.loss[0].measure = ErrorMeasure::absolute; });
  none([](Problem& p) { p.loss[0].last_step = 2; });  // as many samples as numbers
  none([](Problem& p) { p.loss.clear(); });
  none([](Problem& p) {
    p.loss.push_back({.name = "terminal/slider/velocity", .quantity = LossQuantity::joint_velocity});
  });
  Line line;
  EXPECT_FALSE(standard_errors(line.problem, line.x, 1));
}

TEST(StandardErrors, AreNotToldWhereTheMinimumIsFlat) {
  // With the first step alone scored again and again nothing parts start and velocity.
  Line line;
  line.problem.loss[0].last_step = 1;
  line.problem.loss.assign(5, line.problem.loss[0]);
  EXPECT_FALSE(standard_errors(line.problem, line.x));
}

}  // namespace
}  // namespace backdrive
