#pragma once
#include "autodiff/search.h"

namespace backdrive {

/// L-BFGS, or with any finite bound L-BFGS-B, of LBFGSpp for the given starts (at most
/// kLargestBatch). Each start's solver runs in its own thread and posts the points it wants
/// evaluated; when all that run have posted, they are evaluated as one batch. Which points make up
/// a batch, and so every result, does not depend on how threads are scheduled.
void run_lbfgs(Search& search, std::span<const int> starts);

}  // namespace backdrive
