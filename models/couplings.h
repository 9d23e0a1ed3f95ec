#pragma once
// Couplings of joints in a model that is being built (builder.cpp).
#include <vector>

#include "models/model.h"
#include "models/model_error.h"

namespace backdrive {

/// Adds what a coupling cannot be of; `driven`: which have a drive. O(terms · couplings).
void check_couplings(ModelMistakes& mistakes, const Model& model, const std::vector<bool>& driven);

/// Where couplings find those of their joints that there are, whose numbers are known, and their control channels
/// behind those of the joints. O(terms · couplings).
void number_couplings(Model& model, const std::vector<bool>& driven);

}  // namespace backdrive
