#include "autodiff/optimize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autodiff/adam.h"
#include "autodiff/lbfgs.h"
#include "engine/error.h"

namespace backdrive {

Search::Search(const Problem& problem, const ExecutionOptions& options,
               std::function<bool(const OptimizeProgress&)> progress)
    : options_(problem.optimize),
      steps_(problem.simulation.steps),
      objective_(make_objective(problem, options)),
      bounds_(variable_bounds(problem)),
      progress_(std::move(progress)) {
  const int count = options.worlds > 0 ? options.worlds : problem.optimize.starts;
  for (std::vector<double>& x : initial_points(problem, count, options.seed)) {
    StartResult start;
    start.x = std::move(x);
    start.loss = std::numeric_limits<double>::infinity();
    starts_.push_back(std::move(start));
  }
}

void Search::evaluate(std::span<const int> which, const std::vector<std::vector<double>>& x, std::vector<double>& loss,
                      std::vector<std::vector<double>>& gradient) {
  objective_->evaluate(x, loss, gradient);
  evaluations_ += static_cast<double>(which.size());
  windows_.all += objective_->windows().all;
  windows_.clipped += objective_->windows().clipped;
  for (size_t i = 0; i < which.size(); ++i) {
    StartResult& start = starts_[which[i]];
    if (loss[i] < start.loss) {
      start.x = x[i];
      start.loss = loss[i];
      start.gradient_norm = bounds_.projected_norm(x[i].data(), gradient[i].data());
      start.status = {};
    } else if (!std::isfinite(start.loss)) {
      start.status = objective_->status()[i];
    }
    if (std::isfinite(options_.goal) && start.loss <= options_.goal) goal_reached_ = true;
  }
}

const char* Search::stop_reason(int k) const {
  if (interrupted_) return stopped_by::interrupted;
  if (!goal_reached_) return nullptr;
  return starts_[k].loss <= options_.goal ? stopped_by::goal : stopped_by::goal_elsewhere;
}

int Search::best() const {
  const auto lower = [](const StartResult& a, const StartResult& b) { return a.loss < b.loss; };
  return static_cast<int>(std::min_element(starts_.begin(), starts_.end(), lower) - starts_.begin());
}

double Search::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool Search::report() {
  const StartResult& start = starts_[best()];
  OptimizeProgress now;
  now.iteration = start.iterations;
  now.iterations = options_.iterations;
  now.best_loss = start.loss;
  now.gradient_norm = start.gradient_norm;
  now.evaluations = evaluations_;
  now.windows = windows_;
  now.seconds = seconds();
  now.world_steps_per_second = now.seconds > 0 ? evaluations_ * steps_ / now.seconds : 0;
  for (int k = 0; k < starts(); ++k) now.running += is_running(k);
  if (history_.empty() || history_.back().iteration != now.iteration || history_.back().best_loss != now.best_loss) {
    history_.push_back(now);
  }
  if (progress_ && !progress_(now)) interrupted_ = true;
  return !interrupted_;
}

OptimizeResult Search::result(const Problem& problem) && {
  OptimizeResult result;
  result.best = best();
  result.starts = std::move(starts_);
  const StartResult& winner = result.starts[result.best];
  result.problem = with_values(problem, winner.x);
  result.history = std::move(history_);
  result.reached_goal = std::isfinite(winner.loss) && winner.loss <= options_.goal;
  result.seconds = seconds();
  return result;
}

OptimizeResult optimize(const Problem& problem, const ExecutionOptions& options,
                        const std::function<bool(const OptimizeProgress&)>& progress) {
  if (problem.variables.empty()) input_error("nothing to optimise: the problem has no variables");
  if (problem.loss.empty()) input_error("nothing to optimise: the problem has no loss");
  const std::string& method = problem.optimize.method;
  if (method != "lbfgs" && method != "adam") {
    input_error("method '" + method + "', expected lbfgs or adam");
  }
  Search search(problem, options, progress);
  std::vector<int> starts(search.starts());
  std::iota(starts.begin(), starts.end(), 0);
  for (int begin = 0; begin < search.starts(); begin += kLargestBatch) {
    const int count = std::min(kLargestBatch, search.starts() - begin);
    const std::span<const int> chunk(starts.data() + begin, count);
    if (const char* reason = search.stop_reason(begin)) {
      for (const int k : chunk) search.start(k).stopped_by = reason;
    } else {
      method == "adam" ? run_adam(search, chunk) : run_lbfgs(search, chunk);
    }
  }
  return std::move(search).result(problem);
}

}  // namespace backdrive
