#pragma once
// What a report says of an optimisation beside its history.
#include <nlohmann/json.hpp>

#include "apps/simulate.h"

namespace backdrive::app {

/// Numbers whose points the history keeps for a report, at most.
inline constexpr int kMostKeptNumbers = 5000;

/// {"found": [{"name", "value", "unit", "note", "lower", "upper", "standard_error"}],
/// "found_words", "starts": [{"loss", ...}] of the first 64,
/// "starts_over": of each start [[iteration, loss]], "terms": {"names", "iterations", "values"} of history rows that
/// kept their point for a report, "gradient_over_time": {"time", "position", "velocity", "growth"}}; what is not known
/// is left out.
nlohmann::json optimize_details(const Problem& problem, const OptimizeResult& result, const ExecutionOptions& how);

/// {"motions": [...]} of the best starts but the very best, where there are several; as of shown_motion.h.
nlohmann::json motions_of_starts(const Problem& problem, const OptimizeResult& result, const ExecutionOptions& how);

}  // namespace backdrive::app
