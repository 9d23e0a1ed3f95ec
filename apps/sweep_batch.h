#pragma once
// Problems that differ only in numbers, as the worlds of one batch.
#include <span>
#include <vector>

#include "apps/simulate.h"

namespace backdrive::app {

/// How one point of a sweep ended.
struct PointResult {
  std::vector<double> q, qd;  ///< last state
  std::vector<double> terms;
  double loss = 0;
  WorldStatus status;
};

/// Whether the two may be worlds of one batch: same tree, simulation and loss. Parameters, initial states and controls
/// may differ.
bool same_batch(const Problem& a, const Problem& b);

/// One problem whose model has the parameters of all, a set per world where they differ.
Problem merge(std::span<const Problem> points);

/// Runs problems, all of them same_batch, as the worlds of one batch on each device. Nothing where it is interrupted.
std::vector<PointResult> run_batch(std::span<const Problem> points, const ExecutionOptions& how);

}  // namespace backdrive::app
