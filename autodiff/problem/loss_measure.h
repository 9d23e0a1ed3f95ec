#pragma once
// How errors become costs.

namespace backdrive {

/// What an error costs, before the weight. The absolute one has a kink at 0, where its slope counts as 0.
enum class ErrorMeasure { squared, absolute };

/// Of the states that a term is about: all of them, or the one whose error is least or greatest, the first of equals.
enum class OverTime { sum, least, greatest };

}  // namespace backdrive
