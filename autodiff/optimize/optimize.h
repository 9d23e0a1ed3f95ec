#pragma once
// Minimises a problem's loss over its variables, several starts at once as worlds of one batch.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autodiff/problem/objective.h"
#include "autodiff/problem/variables.h"

namespace backdrive {

struct OptimizeProgress {
  int iteration = 0;   ///< of the start that was the best so far and has done most; never falls
  int iterations = 0;  ///< at most
  double best_loss = 0;
  double gradient_norm = 0;  ///< of the best start, scaled and projected onto the bounds
  double evaluations = 0;    ///< world-evaluations so far
  double world_steps_per_second = 0;
  double seconds = 0;
  int running = 0;                ///< starts still going
  WindowCounts windows;           ///< of all evaluations so far
  std::int64_t row = 0;           ///< of the history, from 0
  double evaluated = 1;           ///< while an evaluation takes its time: about how much of it is done
  double evaluation_seconds = 0;  ///< and since when
  /// In the history of problems with contact, or where it was asked for (ExecutionOptions::keep_points): the best
  /// start's numbers, scaled; of at most 1024 rows, the others have none.
  std::vector<double> x;
  /// While `progress` is told: the best start's numbers, scaled. Searches on a device have those that it began with.
  std::span<const double> best_x;
};

/// Why a start went no further.
enum class StopReason {
  none,            ///< it still runs
  goal,            ///< its loss is what was asked for
  goal_elsewhere,  ///< that of another start is
  tolerance,       ///< its gradient is below the tolerance
  iterations,      ///< it had as many as it may have
  line_search,     ///< no step along its direction makes the loss smaller
  non_finite,      ///< where it begins, the loss is no number
  interrupted
};
/// In words, as results have it: "goal of another start", "line search", "non-finite"; none: "".
const char* to_string(StopReason reason);

struct StartResult {
  std::vector<double> x;  ///< scaled
  double loss = 0;
  double gradient_norm = 0;
  int iterations = 0;
  StopReason stopped_by = StopReason::none;
  WorldStatus status;
};

/// The lowest loss of a start after so many of its iterations.
struct CoursePoint {
  int iteration = 0;
  double loss = 0;
};

struct OptimizeResult {
  std::vector<StartResult> starts;
  /// Of the first 64 starts, each at most 2,048 points. Searches that keep their starts on a device have none.
  std::vector<std::vector<CoursePoint>> courses;
  int best = 0;
  Problem problem;  ///< with the best start's values filled in
  std::vector<OptimizeProgress> history;
  bool reached_goal = false;
  /// Times that neighbours of the best point were searched from, where no start reached the goal (look_around()).
  int rounds_around = 0;
  double seconds = 0;
};

/// `progress` is called after every iteration of the batch and, on processors, now and then in evaluations that take
/// more than half a second; returning false interrupts. `history`: is given each row of the history as it comes; then
/// the result keeps only the rows that have points, and the last, so that memory does not grow with iterations. Throws
/// Error when the problem has no variables or no loss.
OptimizeResult optimize(const Problem& problem, const ExecutionOptions& options,
                        const std::function<bool(const OptimizeProgress&)>& progress = {},
                        const std::function<void(const OptimizeProgress&)>& history = {});

}  // namespace backdrive
