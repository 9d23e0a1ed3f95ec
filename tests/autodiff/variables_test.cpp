// Variables, and the objective that they make: where optimisers begin and what they see.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "autodiff/optimize/optimize.h"
#include "autodiff/problem/loss.h"
#include "autodiff/problem/variables.h"
#include "engine/error.h"
#include "tests/autodiff/optimize_cases.h"

namespace backdrive {
namespace {

using cases::final_loss;

// ---- variables ----

TEST(Variables, LayOutOneAfterTheOther) {
  Problem problem = cases::cart_pole();
  Variable control;
  control.name = "control/slider";
  control.joint = problem.model.find_joint("slider");
  Variable start;
  start.name = "initial_state/hinge/position";
  start.kind = VariableKind::initial_position;
  start.joint = problem.model.find_joint("hinge");
  problem.variables = {control, start, cases::parameter(problem.model, "bodies/pole/inertia"),
                       cases::parameter(problem.model, "joints/hinge/frame/orientation"),
                       cases::parameter(problem.model, "shapes/box/geometry/scale/1")};
  problem.variables[0].knots = 7;
  EXPECT_EQ(variable_layout(problem).size, (std::vector<int>{7, 1, 6, 3, 1}));
  EXPECT_EQ(variable_layout(problem).offset, (std::vector<int>{0, 7, 8, 14, 17}));
  problem.variables[0].knots = 0;
  EXPECT_EQ(variable_layout(problem).total, 60 + 1 + 6 + 3 + 1);
}

TEST(Variables, BeginAtTheScenesValues) {
  Problem problem = cases::cart_pole();
  Variable control;
  control.name = "control/hinge";
  control.joint = problem.model.find_joint("hinge");
  control.scale = 0.5;
  problem.variables = {control, cases::parameter(problem.model, "joints/slider/damping"),
                       cases::parameter(problem.model, "joints/hinge/frame/orientation")};
  const std::vector<double> x = initial_points(problem, 1, 0)[0];
  const Problem same = with_values(problem, x);
  EXPECT_NEAR(final_loss(same), final_loss(problem), 1e-12);
  EXPECT_EQ(x[0], 0.2 / 0.5);
  EXPECT_EQ(same.model.joints.damping(control.joint - 1), 0.1);
}

TEST(Variables, RandomPartsDependOnSeedAndStartOnly) {
  Problem problem = cases::pendulum();
  const auto four = initial_points(problem, 4, 7), nine = initial_points(problem, 9, 7),
             other = initial_points(problem, 4, 8);
  for (int k = 0; k < 4; ++k) EXPECT_EQ(four[k], nine[k]);
  EXPECT_EQ(four[0], std::vector<double>(10, 0.0));
  EXPECT_NE(four[1], other[1]);
  EXPECT_NE(four[1], four[2]);
  EXPECT_NE(initial_points(problem, 1, 7)[0], four[0]) << "a single start is random";
  // Normal with a standard deviation of 1 / scale.
  double sum = 0, square = 0;
  const auto many = initial_points(problem, 1001, 3);
  for (size_t k = 1; k < many.size(); ++k) {
    for (const double x : many[k]) sum += x, square += x * x;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.02);
  EXPECT_NEAR(square / 10000, 0.25, 0.015);
}

TEST(Variables, AreClippedToTheirBounds) {
  Problem problem = cases::pendulum();
  problem.variables[0].lower = -0.5;
  problem.variables[0].upper = 0.25;
  const auto points = initial_points(problem, 5, 1);
  std::set<double> seen;
  for (const auto& point : points) {
    for (const double x : point) {
      EXPECT_GE(x, -0.25);
      EXPECT_LE(x, 0.125);
      seen.insert(x);
    }
  }
  EXPECT_TRUE(seen.contains(-0.25));
  EXPECT_TRUE(seen.contains(0.125));
}

TEST(Variables, NonnegativeFieldsAreBoundedByZero) {
  Problem problem = cases::cart_pole();
  problem.variables = {cases::parameter(problem.model, "joints/hinge/damping"),
                       cases::parameter(problem.model, "shapes/box/geometry/scale"),
                       cases::parameter(problem.model, "gravity")};
  const VariableBounds bounds = variable_bounds(problem);
  EXPECT_EQ(bounds.lower[0], 0);
  EXPECT_GT(bounds.lower[1], 0);
  EXPECT_EQ(bounds.lower[4], -std::numeric_limits<double>::infinity());
}

TEST(Variables, TurnAxesAndOrientationsOnTheirManifold) {
  Problem problem = cases::cart_pole();
  problem.variables = {cases::parameter(problem.model, "joints/hinge/axis"),
                       cases::parameter(problem.model, "joints/weld/frame/orientation")};
  const int hinge = problem.model.find_joint("hinge"), weld = problem.model.find_joint("weld");
  const Problem turned = with_values(problem, {0, 3, 4, 0, 0, M_PI / 2});
  EXPECT_NEAR(turned.model.joints.axis(hinge, 1), 0.6, 1e-15);
  EXPECT_NEAR(turned.model.joints.axis(hinge, 2), 0.8, 1e-15);
  // q · (0, 0, sin 45°, cos 45°)
  const Parameter& before = problem.model.joints.frame.orientation;
  const Parameter& after = turned.model.joints.frame.orientation;
  const double s = std::sqrt(0.5), x = before(weld, 0), y = before(weld, 1), z = before(weld, 2), w = before(weld, 3);
  EXPECT_NEAR(after(weld, 0), s * (x + y), 1e-15);
  EXPECT_NEAR(after(weld, 1), s * (y - x), 1e-15);
  EXPECT_NEAR(after(weld, 2), s * (z + w), 1e-15);
  EXPECT_NEAR(after(weld, 3), s * (w - z), 1e-15);
}

TEST(Variables, RefuseWhatCannotMatter) {
  const Problem problem = cases::cart_pole();
  const auto refused = [&](std::vector<Variable> variables) {
    Problem p = problem;
    p.variables = std::move(variables);
    try {
      make_objective(p, {});
    } catch (const Error& error) {
      return error.kind() == ErrorKind::input;
    }
    return false;
  };
  const Model& model = problem.model;
  EXPECT_TRUE(refused({cases::parameter(model, "shapes/box/material/friction")}));
  EXPECT_TRUE(refused({cases::parameter(model, "joints/weld/damping")}));
  EXPECT_TRUE(refused({cases::parameter(model, "joints/hinge/drive/stiffness")}));
  EXPECT_TRUE(refused({cases::parameter(model, "joints/hinge/limit/lower")}));
  EXPECT_TRUE(refused({cases::parameter(model, "shapes/ball/geometry/scale")}));
  EXPECT_FALSE(
      refused({cases::parameter(model, "shapes/ball/geometry/scale"), cases::parameter(model, "shapes/ball/density")}));
  EXPECT_TRUE(refused({cases::parameter(model, "gravity/x"), cases::parameter(model, "gravity")}));
  EXPECT_FALSE(refused({cases::parameter(model, "gravity/x"), cases::parameter(model, "gravity/y")}));
  Variable target;
  target.name = "control/hinge/target_position";
  target.joint = model.find_joint("hinge");
  target.channel = ControlChannel::target_position;
  EXPECT_TRUE(refused({target}));
  target.joint = model.find_joint("weld");
  target.channel = ControlChannel::effort;
  EXPECT_TRUE(refused({target}));
  target.joint = model.find_joint("slider");
  EXPECT_FALSE(refused({target}));
  target.scale = 0;
  EXPECT_TRUE(refused({target}));
}

// ---- objective ----

/// Everything that may vary in a cart-pole.
Problem all_varied() {
  Problem problem = cases::cart_pole();
  for (const char* joint : {"slider", "hinge"}) {
    Variable v;
    v.name = joint;
    v.joint = problem.model.find_joint(joint);
    v.knots = 6;
    v.scale = 2;
    v.random = 0.3;
    problem.variables.push_back(v);
    v.kind = VariableKind::initial_velocity;
    problem.variables.push_back(v);
  }
  const Problem parameters = cases::varied_cart_pole();
  for (Variable v : parameters.variables) {
    if (v.name == "shapes/box/density") v.scale = 100;
    problem.variables.push_back(v);
  }
  return problem;
}

TEST(Objective, GradientsEqualDifferences) {
  const Problem problem = all_varied();
  const auto objective = make_objective(problem, {});
  const std::vector<double> x = initial_points(problem, 2, 5)[1];
  std::vector<std::vector<double>> points{x}, gradient, ignored;
  for (size_t i = 0; i < x.size(); ++i) {
    for (const double h : {1e-5, -1e-5}) {
      points.push_back(x);
      points.back()[i] += h;
    }
  }
  std::vector<double> loss;
  objective->evaluate(points, loss, gradient);
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = (loss[1 + 2 * i] - loss[2 + 2 * i]) / 2e-5;
    EXPECT_NEAR(gradient[0][i], difference, 1e-6 * (1 + std::abs(difference))) << i;
    EXPECT_NE(gradient[0][i], 0) << i;
    EXPECT_NE(gradient[0][i], difference) << i << ": compared to itself?";
  }
  EXPECT_NEAR(loss[0], final_loss(with_values(problem, x)), 1e-12 * loss[0]);
}

TEST(Objective, SameBitsInAnyBatchAndOnAnyNumberOfThreads) {
  const Problem problem = all_varied();
  const auto points = initial_points(problem, 37, 5);
  for (const Precision precision : {Precision::float32, Precision::float64}) {
    std::vector<double> loss, one_loss;
    std::vector<std::vector<double>> gradient, one_gradient;
    make_objective(problem, {precision, 2})->evaluate(points, loss, gradient);
    const auto alone = make_objective(problem, {precision, 1});
    for (const int k : {0, 1, 20, 36}) {
      alone->evaluate({points[k]}, one_loss, one_gradient);
      EXPECT_EQ(one_loss[0], loss[k]);
      EXPECT_EQ(one_gradient[0], gradient[k]);
    }
  }
}

TEST(Objective, FloatsAgreeWithDoubles) {
  const Problem problem = all_varied();
  const auto points = initial_points(problem, 3, 5);
  std::vector<double> loss, exact;
  std::vector<std::vector<double>> gradient, exact_gradient;
  make_objective(problem, {Precision::float32})->evaluate(points, loss, gradient);
  make_objective(problem, {Precision::float64})->evaluate(points, exact, exact_gradient);
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(loss[k], exact[k], 1e-4 * exact[k]);
    double largest = 0;
    for (const double g : exact_gradient[k]) largest = std::max(largest, std::abs(g));
    for (size_t i = 0; i < gradient[k].size(); ++i) {
      EXPECT_NEAR(gradient[k][i], exact_gradient[k][i], 1e-3 * largest);
    }
  }
}

TEST(Objective, StoppedWorldsAreInfiniteAndLeaveTheOthersAlone) {
  Problem problem = cases::pendulum();
  Variable velocity;
  velocity.name = "initial_state/hinge/velocity";
  velocity.kind = VariableKind::initial_velocity;
  problem.variables = {velocity};
  const auto objective = make_objective(problem, {});
  std::vector<double> loss, alone;
  std::vector<std::vector<double>> gradient;
  objective->evaluate({{0.5}}, alone, gradient);
  objective->evaluate({{1e200}, {0.5}}, loss, gradient);
  EXPECT_EQ(loss[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(gradient[0][0], 0);
  EXPECT_TRUE(objective->status()[0].stopped());
  EXPECT_EQ(loss[1], alone[0]);
  EXPECT_FALSE(objective->status()[1].stopped());
}

bool can_be(Model model) {
  try {
    validate(model);
    return true;
  } catch (const ModelError&) {
    return false;
  }
}

/// Refused is what validate() refuses; what is not has the loss of its own model.
void expect_refused_as_by_validate(const Problem& problem, const std::vector<std::vector<double>>& points) {
  const auto objective = make_objective(problem, {});
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient;
  objective->evaluate(points, loss, gradient);
  int refused = 0;
  for (size_t k = 0; k < points.size(); ++k) {
    const Problem at = with_values(problem, points[k]);
    const double expected = can_be(at.model) ? final_loss(at) : std::numeric_limits<double>::infinity();
    if (!can_be(at.model)) {
      ++refused;
      EXPECT_TRUE(std::isinf(loss[k])) << k;
      EXPECT_EQ(gradient[k], std::vector<double>(points[k].size())) << k;
    } else if (std::isfinite(loss[k]) || std::isfinite(expected)) {
      EXPECT_NEAR(loss[k], expected, 1e-9 * std::abs(expected)) << k;
    }
  }
  EXPECT_GT(refused, static_cast<int>(points.size()) / 6);
  EXPECT_LT(refused, static_cast<int>(points.size()) * 5 / 6);
}

TEST(Objective, ModelsThatCannotBeAreInfinite) {
  Problem problem = cases::cart_pole();
  problem.variables = {cases::parameter(problem.model, "bodies/pole/inertia/zz")};
  const auto objective = make_objective(problem, {});
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient;
  objective->evaluate({{0.001}, {0.5}, {0.002}}, loss, gradient);
  EXPECT_TRUE(std::isfinite(loss[0]));
  EXPECT_TRUE(std::isinf(loss[1])) << "0.5 > 0.0083 + 0.0084";
  EXPECT_TRUE(std::isfinite(loss[2]));
}

TEST(Objective, RefusesWhatValidateRefuses) {
  const Problem problem = cases::impossible_cart_pole();
  expect_refused_as_by_validate(problem, cases::impossible_points(problem, 600));
  // Joints that move nothing: all of mass, inertia about the axis and the rest have to be zero.
  std::vector<std::vector<double>> points;
  for (const double mass : {0.0, 1.0, 1e-300}) {
    for (const double yy : {0.0, 0.08}) {
      for (const double xx : {0.0, 0.08}) points.push_back({mass, yy, xx});
    }
  }
  Problem weightless = cases::weightless_pendulum();
  weightless.model.bodies.inertia.set(0, 2, 0);
  expect_refused_as_by_validate(weightless, points);
}

/// Losses and gradients at points of one batch, each against the model with those values in place.
void expect_served(const Problem& problem, const std::vector<std::vector<double>>& points) {
  const auto objective = make_objective(problem, {});
  std::vector<double> loss, again;
  std::vector<std::vector<double>> gradient, same;
  objective->evaluate(points, loss, gradient);
  for (size_t k = 0; k < points.size(); ++k) {
    const double expected = final_loss(with_values(problem, points[k]));
    EXPECT_NEAR(loss[k], expected, 1e-12 * expected) << k;
    for (size_t i = 0; i < points[k].size(); ++i) EXPECT_NE(gradient[k][i], 0) << k << " " << i;
  }
  objective->evaluate(points, again, same);
  EXPECT_EQ(again, loss);
  EXPECT_EQ(same, gradient) << "gradients do not accumulate";
}

// Which branches the kernels take is decided once, for all values that the variables may reach.
TEST(Objective, WhatIsVariedCountsAsPresent) {
  Problem friction = cases::cart_pole();
  friction.model.joints.friction.set(0, 0, 0);
  validate(friction.model);
  ASSERT_FALSE(friction.model.topology.links[0].acts.friction);
  friction.variables = {cases::parameter(friction.model, "joints/slider/friction")};
  expect_served(friction, {{0}, {0.3}, {0}, {2}});

  Problem limit = cases::cart_pole();
  for (Parameter* side : {&limit.model.joints.limit.lower, &limit.model.joints.limit.upper}) {
    side->set(0, 0, (side == &limit.model.joints.limit.upper ? 1 : -1) * std::numeric_limits<double>::infinity());
  }
  validate(limit.model);
  ASSERT_FALSE(limit.model.topology.links[0].acts.limit);
  limit.variables = {cases::parameter(limit.model, "joints/slider/limit/upper")};
  limit.variables[0].initial = {50};
  expect_served(limit, {{0.15}, {0.1}});

  // A shape without density at first, which gives no mass and so no sign of its size.
  Problem density = cases::cart_pole();
  density.variables = {cases::parameter(density.model, "shapes/ball/density"),
                       cases::parameter(density.model, "shapes/ball/geometry/scale")};
  expect_served(density, {{400, 0.03}, {1000, 0.05}});
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient;
  make_objective(density, {})->evaluate({{0, 0.03}}, loss, gradient);
  EXPECT_NE(gradient[0][0], 0);
  EXPECT_EQ(gradient[0][1], 0);
}

}  // namespace
}  // namespace backdrive
