#include "apps/contact_check.h"

#include <algorithm>
#include <cmath>

#include "autodiff/check/gradient_reach.h"
#include "autodiff/problem/variables.h"

namespace backdrive::app {
namespace {

/// How far aside, in scaled variables: far above rounding, well below what an optimiser steps.
constexpr double kAside = 1e-5;
/// Points that are evaluated at once.
constexpr std::size_t kBatch = 64;

using Points = std::vector<std::vector<double>>;

}  // namespace

std::vector<ContactCheck> check_contacts(const Problem& problem, const OptimizeResult& result,
                                         const ExecutionOptions& how) {
  std::vector<ContactCheck> checks;
  if (!may_touch(problem)) return checks;
  ExecutionOptions here = how;
  here.devices = {Device{}};
  here.precision = Precision::float64;
  checks.resize(result.history.size());
  Points points;
  std::vector<ContactCheck*> rows;
  for (std::size_t k = 0; k < checks.size(); ++k) {
    if (result.history[k].x.empty()) continue;
    points.push_back(result.history[k].x);
    rows.push_back(&checks[k]);
    checks[k].done = true;
  }
  for (std::size_t begin = 0; begin < points.size(); begin += kBatch) {
    const std::size_t end = std::min(points.size(), begin + kBatch);
    const Points batch(points.begin() + static_cast<std::ptrdiff_t>(begin),
                       points.begin() + static_cast<std::ptrdiff_t>(end));
    const std::vector<double> ratios = slope_ratios(problem, batch, kAside, here);
    for (std::size_t i = 0; i < ratios.size(); ++i) rows[begin + i]->slope_ratio = ratios[i];
  }
  for (std::size_t k = 0; k < points.size(); ++k) {
    if (how.passed) how.passed(0);
    rows[k]->changes = contact_changes(simulate(with_values(problem, points[k]), here));
  }
  return checks;
}

}  // namespace backdrive::app
