#pragma once
// Gradients of a problem's loss beside the difference quotients that they are the limit of, and Hessian products.
#include <algorithm>
#include <cmath>
#include <vector>

#include "autodiff/check/hessian.h"
#include "autodiff/problem/objective.h"
#include "autodiff/problem/variables.h"

namespace backdrive::test {

/// The largest difference between a gradient, at the first of the initial points, and central differences of what may
/// be another problem's loss, relative to the gradient's largest number.
inline double gradient_error(const Problem& gradient_of, const Problem& differences_of) {
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

struct HessianDifferences {
  HessianProduct product;             ///< along 0.3 in every number
  std::vector<double> gradient;       ///< at the first of the problem's initial points
  std::vector<double> by_difference;  ///< (∇L(x + h d) − ∇L(x − h d))/2h
  double largest = 0;                 ///< of the product, absolute
};

inline HessianDifferences hessian_differences(const Problem& p, double h) {
  const std::vector<double> x = initial_points(p, 1, 0)[0], direction(x.size(), 0.3);
  HessianDifferences result{hessian_vector_product(p, x, direction), {}, {}, 0};
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient, points(3, x);
  for (std::size_t k = 0; k < x.size(); ++k) points[1][k] += h * direction[k], points[2][k] -= h * direction[k];
  make_objective(p, {})->evaluate(points, loss, gradient);
  result.gradient = gradient[0];
  for (std::size_t k = 0; k < x.size(); ++k) {
    result.by_difference.push_back((gradient[1][k] - gradient[2][k]) / (2 * h));
    result.largest = std::max(result.largest, std::abs(result.product.product[k]));
  }
  return result;
}

}  // namespace backdrive::test
