#include "autodiff/optimize/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/error.h"
#include "engine/parallel.h"

namespace backdrive {

Search::Search(const Problem& problem, const ExecutionOptions& options,
               std::function<bool(const OptimizeProgress&)> progress,
               std::function<void(const OptimizeProgress&)> history)
    : options_(problem.optimize),
      steps_(problem.simulation.steps),
      keeps_points_(!problem.model.topology.contact_pairs.empty() || options.keep_points),
      bounds_(variable_bounds(problem)),
      progress_(std::move(progress)),
      tell_(std::move(history)) {
  ExecutionOptions own = options;
  own.passed = [this](std::int64_t steps) { on_the_way(steps); };
  memory_plan_ = plan_objective(problem, own);
  for (const Device& device : options.devices) objectives_.push_back(make_objective(problem, own, device));
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
  const int worlds = static_cast<int>(which.size()), parts = static_cast<int>(objectives_.size());
  loss.resize(worlds);
  gradient.resize(worlds);
  begin_evaluation(worlds);
  for (int part = 0; part < parts; ++part) {
    const Range own = share(worlds, parts, part);
    objectives_[part]->post(std::span(x).subspan(own.begin, own.size()));
  }
  for (int part = 0; part < parts; ++part) {
    const Range own = share(worlds, parts, part);
    if (own.size() == 0) continue;
    BatchObjective& objective = *objectives_[part];
    objective.collect(loss.data() + own.begin, gradient.data() + own.begin);
    for (int i = own.begin; i < own.end; ++i) {
      take_in(starts_[which[i]], x[i], loss[i], gradient[i], objective.status()[i - own.begin]);
    }
    count(own.size(), objective.windows(), std::numeric_limits<double>::infinity());
  }
}

void Search::take_in(StartResult& start, const std::vector<double>& x, double loss, const std::vector<double>& gradient,
                     const WorldStatus& status) {
  keep_better(start, x, loss, gradient);
  start.status = std::isfinite(start.loss) ? WorldStatus{} : status;
  count(0, {}, start.loss);
}

void Search::keep_better(StartResult& start, const std::vector<double>& x, double loss,
                         const std::vector<double>& gradient) const {
  if (!(loss < start.loss)) return;
  start.x = x;
  start.loss = loss;
  start.gradient_norm = bounds_.projected_norm(x.data(), gradient.data());
}

void Search::count(int evaluated, const WindowCounts& windows, double best_loss) {
  evaluations_ += evaluated;
  windows_.all += windows.all;
  windows_.clipped += windows.clipped;
  if (std::isfinite(options_.goal) && best_loss <= options_.goal) goal_reached_ = true;
}

StopReason Search::stop_reason(int k) const {
  if (interrupted_) return StopReason::interrupted;
  if (!goal_reached_) return StopReason::none;
  return starts_[k].loss <= options_.goal ? StopReason::goal : StopReason::goal_elsewhere;
}

int Search::best() const {
  const auto lower = [](const StartResult& a, const StartResult& b) { return a.loss < b.loss; };
  return static_cast<int>(std::min_element(starts_.begin(), starts_.end(), lower) - starts_.begin());
}

double Search::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Search::keep(OptimizeProgress row, const std::vector<double>& x) {
  constexpr std::int64_t kMost = 1024;
  const bool has_point = keeps_points_ && row.row % point_stride_ == 0;
  if (has_point) row.x = x;
  if (has_point || !tell_) history_.push_back(std::move(row));
  if (!has_point || history_.back().row / point_stride_ + 1 <= kMost) return;
  point_stride_ *= 2;
  const auto loses_point = [this](const OptimizeProgress& kept) { return kept.row % point_stride_ != 0; };
  if (tell_) {
    std::erase_if(history_, loses_point);
  } else {
    for (OptimizeProgress& kept : history_) {
      if (loses_point(kept)) kept.x = {};
    }
  }
}

/// A point where a start is an iteration further; a course that is too long loses every second of its points.
void Search::keep_courses() {
  constexpr std::size_t kMostStarts = 64, kMostPoints = 2048;
  courses_.resize(std::min(starts_.size(), kMostStarts));
  for (std::size_t s = 0; s < courses_.size(); ++s) {
    const StartResult& start = starts_[s];
    std::vector<CoursePoint>& course = courses_[s];
    if (!std::isfinite(start.loss)) continue;
    if (!course.empty() && course.back().iteration == start.iterations) {
      course.back().loss = start.loss;
      continue;
    }
    course.push_back({start.iterations, start.loss});
    if (course.size() <= kMostPoints) continue;
    for (std::size_t k = 0; 2 * k < course.size(); ++k) course[k] = course[2 * k];
    course.resize((course.size() + 1) / 2);
  }
}

bool Search::report() {
  int running = 0;
  for (int k = 0; k < starts(); ++k) running += is_running(k);
  return report(running);
}

OptimizeProgress Search::progress_now() const {
  const StartResult& start = starts_[best()];
  OptimizeProgress now;
  now.iteration = iteration_;
  now.iterations = options_.iterations;
  now.best_loss = start.loss;
  now.gradient_norm = start.gradient_norm;
  now.evaluations = evaluations_;
  now.windows = windows_;
  now.seconds = seconds();
  now.world_steps_per_second = now.seconds > 0 ? evaluations_ * steps_ / now.seconds : 0;
  return now;
}

void Search::begin_evaluation(int worlds) {
  evaluation_begin_ = last_told_ = seconds();
  evaluated_ = 0;
  to_evaluate_ = evaluated_steps(memory_plan_, worlds);
}

void Search::on_the_way(std::int64_t steps) {
  constexpr double kSilence = 0.5;  // s
  evaluated_ += static_cast<double>(steps);
  // At the end of it there is a report.
  if (!progress_ || evaluated_ >= to_evaluate_ || seconds() < last_told_ + kSilence) return;
  last_told_ = seconds();
  OptimizeProgress now = progress_now();
  now.evaluated = std::min(0.99, evaluated_ / to_evaluate_);
  now.evaluation_seconds = last_told_ - evaluation_begin_;
  for (int k = 0; k < starts(); ++k) now.running += is_running(k);
  now.best_x = starts_[best()].x;
  if (progress_(now)) return;
  interrupted_ = true;
  throw SearchInterrupted{};
}

void Search::end_interrupted() {
  for (StartResult& start : starts_) {
    if (start.stopped_by == StopReason::none) start.stopped_by = StopReason::interrupted;
  }
}

bool Search::report(int running) {
  const StartResult& start = starts_[best()];
  // Forwards, also when another start with fewer iterations becomes the best.
  iteration_ = std::max(iteration_, start.iterations);
  OptimizeProgress now = progress_now();
  now.running = running;
  if (rows_ == 0 || last_.iteration != now.iteration || last_.best_loss != now.best_loss) {
    now.row = rows_++;
    last_ = now;
    if (tell_) tell_(now);
    keep(now, start.x);
  }
  keep_courses();
  now.best_x = start.x;
  if (progress_ && !progress_(now)) interrupted_ = true;
  return !interrupted_;
}

OptimizeResult Search::result(const Problem& problem) && {
  OptimizeResult result;
  result.best = best();
  keep_courses();
  result.courses = std::move(courses_);
  result.starts = std::move(starts_);
  const StartResult& winner = result.starts[result.best];
  result.problem = with_values(problem, winner.x);
  if (rows_ > 0 && (history_.empty() || history_.back().row != last_.row)) history_.push_back(last_);
  result.history = std::move(history_);
  result.reached_goal = std::isfinite(winner.loss) && winner.loss <= options_.goal;
  result.seconds = seconds();
  return result;
}

}  // namespace backdrive
