#include "autodiff/optimize/optimize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autodiff/optimize/adam.h"
#include "autodiff/optimize/lbfgs.h"
#include "engine/error.h"

namespace backdrive {

const char* to_string(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "";
    case StopReason::goal:
      return "goal";
    case StopReason::goal_elsewhere:
      return "goal of another start";
    case StopReason::tolerance:
      return "tolerance";
    case StopReason::iterations:
      return "iterations";
    case StopReason::line_search:
      return "line search";
    case StopReason::non_finite:
      return "non-finite";
    case StopReason::interrupted:
      return "interrupted";
  }
  return "";
}

OptimizeResult optimize(const Problem& problem, const ExecutionOptions& options,
                        const std::function<bool(const OptimizeProgress&)>& progress,
                        const std::function<void(const OptimizeProgress&)>& history) {
  if (problem.variables.empty()) input_error("nothing to optimise: the problem has no variables");
  if (problem.loss.empty()) input_error("nothing to optimise: the problem has no loss");
  const OptimizeMethod method = chosen_method(problem, options);
  Search search(problem, options, progress, history);
  std::vector<int> starts(search.starts());
  std::iota(starts.begin(), starts.end(), 0);
  int rounds = 0;
  try {
    const int batch = std::min(largest_batch(problem, options), search.starts());
    for (int begin = 0; begin < search.starts(); begin += batch) {
      const int count = std::min(batch, search.starts() - begin);
      const std::span<const int> chunk(starts.data() + begin, count);
      if (const StopReason reason = search.stop_reason(begin); reason != StopReason::none) {
        for (const int k : chunk) search.start(k).stopped_by = reason;
      } else {
        method == OptimizeMethod::adam ? run_adam(search, chunk) : run_lbfgs(search, chunk);
      }
    }
    if (method == OptimizeMethod::lbfgs && std::isfinite(problem.optimize.goal) && !search.goal_reached()) {
      // As many as share a pack: they take no more memory and hardly more time than the start alone.
      const int neighbours = options.precision == Precision::float32 ? kPackWorlds<float> : kPackWorlds<double>;
      rounds = look_around(search, initial_points(problem, search.starts(), options.seed), neighbours, options.seed);
    }
  } catch (const SearchInterrupted&) {
    search.end_interrupted();
  }
  OptimizeResult result = std::move(search).result(problem);
  result.rounds_around = rounds;
  return result;
}

}  // namespace backdrive
