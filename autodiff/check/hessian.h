#pragma once
#include <vector>

#include "autodiff/problem/problem.h"

namespace backdrive {

struct HessianProduct {
  double loss = 0;
  std::vector<double> gradient;  ///< d loss / d x
  std::vector<double> product;   ///< H·direction, H = d² loss / d x²
};

/// Exact Hessian-vector product of the problem's loss at x (its scaled variables, as in
/// variable_layout) along `direction`: duals through the adjoint, float64, one world, about ten
/// times the cost of a gradient. H is symmetric, since x are plain coordinates: orientations are R₀
/// exp(θ) with θ in x, whose chart supplies the ½ u × θ̄ by which a bare derivative of tangents
/// would miss symmetry. Throws Error: usage for wrong sizes, non_finite when the rollout stops.
HessianProduct hessian_vector_product(const Problem& problem, const std::vector<double>& x,
                                      const std::vector<double>& direction);

}  // namespace backdrive
