#pragma once
#include <string>
#include <vector>

#include "autodiff/check/gradient_reach.h"

namespace backdrive::app {

/// A sentence for each doubt of a gradient.
std::vector<std::string> gradient_doubts(const Problem& problem, const GradientReach& reach);

}  // namespace backdrive::app
