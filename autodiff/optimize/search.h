#pragma once
// What the optimisers share: the starts, the best point of each, when to stop, what is reported.
#include <chrono>
#include <functional>
#include <span>

#include "autodiff/optimize/optimize.h"
#include "autodiff/problem/variables.h"

namespace backdrive {

/// Ends an evaluation whose search was interrupted: what was found before it counts.
struct SearchInterrupted {};

class Search {
 public:
  Search(const Problem& problem, const ExecutionOptions& options, std::function<bool(const OptimizeProgress&)> progress,
         std::function<void(const OptimizeProgress&)> history);

  const OptimizeOptions& options() const { return options_; }
  const VariableBounds& bounds() const { return bounds_; }
  int starts() const { return static_cast<int>(starts_.size()); }
  /// Its x, loss and gradient_norm are those of the best point so far (before the first evaluation:
  /// where it begins).
  StartResult& start(int k) { return starts_[k]; }
  bool is_running(int k) const { return starts_[k].stopped_by == StopReason::none; }
  /// The start with the lowest loss.
  int best() const;
  bool goal_reached() const { return goal_reached_; }
  bool is_interrupted() const { return interrupted_; }

  /// Evaluates x[i] for start which[i], all as one batch, and keeps the best of each start.
  void evaluate(std::span<const int> which, const std::vector<std::vector<double>>& x, std::vector<double>& loss,
                std::vector<std::vector<double>>& gradient);

  /// Takes a point for the best of `start` where its loss is lower.
  void keep_better(StartResult& start, const std::vector<double>& x, double loss,
                   const std::vector<double>& gradient) const;

  /// What a start must stop by after an evaluation, or none: the goal, an interruption.
  StopReason stop_reason(int k) const;
  /// For searches that keep the points of their starts where these are computed: notes that so many worlds were
  /// evaluated with these windows, and the lowest loss so far.
  void count(int evaluated, const WindowCounts& windows, double best_loss);

  /// To be called before objectives evaluate so many worlds. Throws SearchInterrupted on the way.
  void begin_evaluation(int worlds);
  /// After such an interruption: what still ran is interrupted.
  void end_interrupted();

  /// One per device; each computes its share() of a batch.
  std::span<const std::unique_ptr<BatchObjective>> objectives() const { return objectives_; }

  /// Tells where the search stands; to be called between batches. False once interrupted. Writes a
  /// row of history when the best start got further.
  bool report();
  /// The same for searches that know how many starts still run.
  bool report(int running);

  OptimizeResult result(const Problem& problem) &&;

 private:
  void take_in(StartResult& start, const std::vector<double>& x, double loss, const std::vector<double>& gradient,
               const WorldStatus& status);
  /// A row of history, and the point where it was. A long history has the points of every second row, every fourth and
  /// so on; where each row was told, it has only the rows of these.
  void keep(OptimizeProgress row, const std::vector<double>& x);
  void keep_courses();
  double seconds() const;
  OptimizeProgress progress_now() const;
  /// Tells now and then how far an evaluation is.
  void on_the_way(std::int64_t steps);

  OptimizeOptions options_;
  int steps_;
  bool keeps_points_;              ///< of the history
  std::int64_t point_stride_ = 1;  ///< rows of history from one point that is kept to the next
  std::vector<std::unique_ptr<BatchObjective>> objectives_;
  VariableBounds bounds_;
  std::function<bool(const OptimizeProgress&)> progress_;
  std::function<void(const OptimizeProgress&)> tell_;  ///< of each row of history
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<StartResult> starts_;
  std::vector<OptimizeProgress> history_;
  std::vector<std::vector<CoursePoint>> courses_;
  OptimizeProgress last_;  ///< row of history, without its point
  std::int64_t rows_ = 0;  ///< of history
  int iteration_ = 0;      ///< of the last report
  ObjectiveMemory memory_plan_;
  double evaluation_begin_ = 0, last_told_ = 0;  ///< s
  double evaluated_ = 0, to_evaluate_ = 0;       ///< steps times worlds, of the evaluation at hand
  double evaluations_ = 0;
  WindowCounts windows_;
  bool goal_reached_ = false, interrupted_ = false;
};

}  // namespace backdrive
