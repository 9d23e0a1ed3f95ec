#pragma once
#include <optional>
#include <vector>

#include "autodiff/problem/problem.h"

namespace backdrive {

/// How well the numbers of a fit are known: of a loss that is Σ wᵢ eᵢ² over samples of records (running terms with a
/// record, squared), at its minimum x of p numbers with n samples, the covariance is 2 s² H⁻¹ with H = d² loss / d x²
/// and s² = loss / (n − p): that of least squares where the errors of the samples are independent and of one size, in
/// units of 1/√w. Samples are rows of records where these are fewer than steps. Their standard deviations, scaled as x;
/// infinite (unknown) for numbers at a bound, which H leaves out. Nothing where the loss is something else, has more
/// than `most` numbers, or H is not positive definite there. As many products with the Hessian as numbers.
std::optional<std::vector<double>> standard_errors(const Problem& problem, const std::vector<double>& x, int most = 32);

}  // namespace backdrive
