#pragma once
#include "autodiff/optimize/search.h"

namespace backdrive {

/// Adam (Kingma and Ba 2015, algorithm 1, bias-corrected; deviation: iterates are clipped to the bounds) for the given
/// starts, all in lockstep: an iteration is one batch on each device, and stays there but for a summary that the host
/// reads. A start that steps to a point without a finite loss goes back to the one before with half its learning rate.
/// O(numbers) beside the evaluations.
void run_adam(Search& search, std::span<const int> starts);

}  // namespace backdrive
