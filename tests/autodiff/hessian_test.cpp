#include "autodiff/check/hessian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "autodiff/optimize/optimize.h"
#include "engine/error.h"
#include "tests/autodiff/optimize_cases.h"

namespace backdrive {
namespace {

/// A cart-pole with every kind of variable at once: knots, initial state, lengths, an axis,
/// orientations.
Problem varied() {
  Problem problem = cases::cart_pole();
  const Model& model = problem.model;
  Variable control;
  control.name = "control/slider";
  control.joint = model.find_joint("slider");
  control.knots = 4;
  control.scale = 3;
  Variable target = control;
  target.name = "control/slider/target_velocity";
  target.channel = ControlChannel::target_velocity;
  target.hold = true;
  target.scale = 1;
  Variable position;
  position.name = "initial_state/hinge/position";
  position.kind = VariableKind::initial_position;
  position.joint = model.find_joint("hinge");
  Variable velocity = position;
  velocity.kind = VariableKind::initial_velocity;
  problem.variables = {control, target, position, velocity};
  for (const char* path :
       {"bodies/pole/mass", "bodies/tip/com", "bodies/pole/inertia", "joints/hinge/axis", "joints/hinge/damping",
        "joints/slider/friction", "joints/slider/drive/stiffness", "joints/hinge/frame/orientation",
        "joints/weld/frame/orientation", "joints/slider/limit/upper", "shapes/box/geometry/scale", "gravity"}) {
    problem.variables.push_back(cases::parameter(model, path));
  }
  problem.variables.back().scale = 9.81;
  return problem;
}

/// Near the problem's own values, with orientations turned well away from where their θ is zero.
std::vector<double> point_of(const Problem& problem) {
  std::vector<double> x = initial_points(problem, 1, 0)[0];
  const VariableLayout layout = variable_layout(problem);
  for (size_t v = 0; v < problem.variables.size(); ++v) {
    if (!problem.variables[v].name.ends_with("orientation")) continue;
    const double theta[3] = {0.5, -0.7, 0.3};
    for (int k = 0; k < 3; ++k) x[layout.offset[v] + k] = theta[k];
  }
  return x;
}

std::vector<double> random_direction(size_t size, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> d(size);
  for (double& x : d) x = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
  return d;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
double norm(const std::vector<double>& a) {
  return std::sqrt(dot(a, a));
}

TEST(HessianVectorProduct, IsSymmetric) {
  const Problem problem = varied();
  const std::vector<double> x = point_of(problem);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const std::vector<double> u = random_direction(x.size(), seed), v = random_direction(x.size(), 100 + seed);
    const HessianProduct hu = hessian_vector_product(problem, x, u), hv = hessian_vector_product(problem, x, v);
    const double scale = norm(u) * norm(hv.product);
    EXPECT_GT(std::abs(dot(u, hv.product)), 1e-6 * scale);
    EXPECT_NEAR(dot(u, hv.product), dot(v, hu.product), 1e-9 * scale);
    EXPECT_EQ(hu.gradient, hv.gradient);
  }
}

TEST(HessianVectorProduct, IsSymmetricEntryByEntry) {
  // Pairs of single numbers, rotations first of all: sums over random directions could hide one.
  const Problem problem = varied();
  const std::vector<double> x = point_of(problem);
  std::vector<std::vector<double>> H;
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<double> e(x.size(), 0.0);
    e[i] = 1;
    H.push_back(hessian_vector_product(problem, x, e).product);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NEAR(H[i][j], H[j][i], 1e-11 * (norm(H[i]) + norm(H[j]))) << i << ", " << j;
    }
  }
}

TEST(HessianVectorProduct, EqualsDifferencesOfGradients) {
  const Problem problem = varied();
  const std::vector<double> x = point_of(problem);
  const auto objective = make_objective(problem, {});
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<double> e(x.size(), 0.0);
    e[i] = 1;
    const HessianProduct exact = hessian_vector_product(problem, x, e);
    const double h = 1e-6 * std::max(1e-2, std::abs(x[i]));
    std::vector<std::vector<double>> points(4, x), gradient;
    points[0][i] += h;
    points[1][i] -= h;
    points[2][i] += 2 * h;
    points[3][i] -= 2 * h;
    std::vector<double> loss;
    objective->evaluate(points, loss, gradient);
    for (size_t j = 0; j < x.size(); ++j) {
      // Truncation h² f‴/6 by comparison of h and 2h, and the gradient's rounding (1e-13 of it)
      // over h.
      const double near = (gradient[0][j] - gradient[1][j]) / (2 * h);
      const double far = (gradient[2][j] - gradient[3][j]) / (4 * h);
      const double tolerance = std::abs(far - near) + 1e-13 * norm(exact.gradient) / h;
      EXPECT_NEAR(exact.product[j], near, tolerance) << i << ", " << j;
    }
  }
}

TEST(HessianVectorProduct, GradientIsThatOfTheObjective) {
  const Problem problem = varied();
  const std::vector<double> x = point_of(problem);
  const HessianProduct product = hessian_vector_product(problem, x, random_direction(x.size(), 1));
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient;
  make_objective(problem, {})->evaluate({x}, loss, gradient);
  EXPECT_NEAR(product.loss, loss[0], 1e-12 * loss[0]);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(product.gradient[i], gradient[0][i], 1e-11 * norm(gradient[0])) << i;
  }
}

TEST(HessianVectorProduct, OfAQuadraticIsItsMatrix) {
  // A body that slides without gravity or friction: the end is linear in the efforts, (8 steps) x =
  // Δt² Σ (N − k) u_k / m.
  ModelBuilder builder;
  builder.set_gravity({0, 0, 0});
  const int body = builder.add_body("body", {.mass = 2, .inertia = {1, 1, 1, 0, 0, 0}});
  builder.add_joint("slide", JointType::prismatic, ModelBuilder::world, body);
  Problem problem;
  problem.model = builder.build();
  problem.simulation = {0.1, 8};
  problem.initial_position = problem.initial_velocity = {0};
  problem.loss.push_back({.name = "end", .target = {1, 0, 0, 1}, .weight = 3});
  Variable control;
  control.name = "control/slide";
  problem.variables = {control};
  const std::vector<double> x(8, 0.7), d = random_direction(8, 3);
  const HessianProduct product = hessian_vector_product(problem, x, d);
  const auto slope = [](int k) { return 0.01 * (8 - k) / 2; };
  double along = 0;
  for (int k = 0; k < 8; ++k) along += slope(k) * d[k];
  for (int k = 0; k < 8; ++k) EXPECT_NEAR(product.product[k], 2 * 3 * along * slope(k), 1e-15);
}

TEST(HessianVectorProduct, RefusesWrongSizesAndStoppedRollouts) {
  Problem problem = cases::pendulum();
  EXPECT_THROW(hessian_vector_product(problem, std::vector<double>(10), std::vector<double>(9)), Error);
  EXPECT_THROW(hessian_vector_product(problem, std::vector<double>(9), std::vector<double>(9)), Error);
  problem.initial_velocity = {1e200};
  EXPECT_THROW(hessian_vector_product(problem, std::vector<double>(10), std::vector<double>(10)), Error);
}

}  // namespace
}  // namespace backdrive
