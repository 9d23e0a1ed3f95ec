#pragma once
#include <vector>

#include "autodiff/problem/problem.h"

namespace backdrive {

/// How the gradient of the loss goes back through a motion: Euclidean norms of λₖ = d loss / d (state k), the loss of
/// what comes after step k alone. Where these grow from one step back to the one before, small changes early on move
/// the end far.
struct GradientOverTime {
  std::vector<int> steps;                  ///< k, increasing from 0
  std::vector<double> position, velocity;  ///< |∂/∂q| (tangents of orientations), |∂/∂q̇| of the state k
  /// (|λₖ| / |λₖ₊ₙ|)^(1/n) of the next of the steps; NaN where one of the two is zero, and for the last.
  std::vector<double> growth;
};

/// At about `points` steps of the problem's motion, float64, one world: the cost of one gradient and one rollout.
/// Empty where the motion stops, or where nothing is scored.
GradientOverTime gradient_over_time(const Problem& problem, int points, int threads = 1);

}  // namespace backdrive
