#include "autodiff/optimize/lbfgs.h"

#include <LBFGSpp/Cauchy.h>
#include <LBFGSpp/SubspaceMin.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

#include "autodiff/problem/normal_numbers.h"

namespace backdrive {
namespace {

using Vector = Eigen::VectorXd;

/// Evaluations of one line search.
constexpr int kMaxLineSearch = 40;
/// Enough decrease, and how much of the slope may be left.
constexpr double kDecrease = 1e-4, kSlopeLeft = 0.9;
constexpr double kLongestStep = 1e20;
/// Iterations in a row that may leave the loss as it was (the gradient may still shrink).
constexpr int kMaxFlat = 4;
/// Relative decrease since the last restart that earns another one.
constexpr double kWorthRestart = 1e-6;
/// Iterations that find the minimum within the free subspace, as LBFGSpp does by default.
constexpr int kMaxSubspace = 10;

Eigen::Map<const Vector> map(const std::vector<double>& numbers) {
  return {numbers.data(), static_cast<Eigen::Index>(numbers.size())};
}

/// The longest step from x along a direction that stays within bounds.
double step_to_bounds(const Vector& x, const Vector& direction, const VariableBounds& bounds) {
  double step = kInfinity;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    if (direction[i] > 0) step = std::min(step, (bounds.upper[i] - x[i]) / direction[i]);
    if (direction[i] < 0) step = std::min(step, (bounds.lower[i] - x[i]) / direction[i]);
  }
  return step;
}

}  // namespace

LbfgsStart::LbfgsStart(const VariableBounds& bounds, const OptimizeOptions& options, StartResult& start)
    : bounds_(bounds), options_(options), start_(start), bounded_(bounds.any()) {
  begin();
}

/// With fresh memory, from the best point so far.
void LbfgsStart::begin() {
  x_ = map(start_.x);
  const int numbers = static_cast<int>(x_.size());
  if (bounded_) {
    x_ = x_.cwiseMax(map(bounds_.lower)).cwiseMin(map(bounds_.upper));
    pairs_.reset(numbers, kLbfgsPairs);
  } else {
    free_pairs_.reset(numbers, kLbfgsPairs);
  }
  on_line_ = false;
  point_.assign(x_.data(), x_.data() + numbers);
  bounds_.clip(point_);
}

/// The search knows no further: it begins again from the best point, once, and again whenever that brought a real
/// decrease.
StopReason LbfgsStart::give_up() {
  const double now = start_.loss;
  const bool worth = !restarted_ || now < loss_at_restart_ - kWorthRestart * std::abs(loss_at_restart_);
  if (!worth) return StopReason::line_search;
  restarted_ = true;
  loss_at_restart_ = now;
  begin();
  return StopReason::none;
}

StopReason LbfgsStart::ask(const Vector& x) {
  if (!x.allFinite()) return give_up();
  // A step to a bound may end an ulp past it, where a mass would be negative.
  std::copy(x.data(), x.data() + x.size(), point_.begin());
  bounds_.clip(point_);
  return StopReason::none;
}

/// Why a start stops at a point that it has come to, or none.
StopReason LbfgsStart::limits() const {
  if (bounds_.projected_norm(x_.data(), gradient_.data()) <= options_.tolerance) return StopReason::tolerance;
  if (start_.iterations >= options_.iterations) return StopReason::iterations;
  return StopReason::none;
}

/// Whether the gradient, projected onto the bounds, is exactly zero.
bool LbfgsStart::is_stationary() const {
  if (!bounded_) return gradient_.norm() <= 0;
  const auto lower = map(bounds_.lower), upper = map(bounds_.upper);
  return ((x_ - gradient_).cwiseMax(lower).cwiseMin(upper) - x_).cwiseAbs().maxCoeff() <= 0;
}

StopReason LbfgsStart::tell(double loss, const std::vector<double>& gradient) {
  loss_ = loss;
  gradient_ = map(gradient);
  if (on_line_) return walk_line();
  if (!evaluated_) {
    evaluated_ = true;
    if (!std::isfinite(loss)) return StopReason::non_finite;
    if (const StopReason reason = limits(); reason != StopReason::none) return reason;
  }
  return is_stationary() ? StopReason::tolerance : first_direction();
}

/// Towards the minimum of the quadratic model within bounds. False: LBFGSpp knows none.
bool LbfgsStart::bounded_direction(bool first) {
  const Vector lower = map(bounds_.lower), upper = map(bounds_.upper);
  Vector cauchy(x_.size()), at_cauchy;
  std::vector<int> newly_active, free;
  try {
    LBFGSpp::Cauchy<double>::get_cauchy_point(pairs_, x_, gradient_, lower, upper, cauchy, at_cauchy, newly_active,
                                              free);
    if (first) {
      direction_ = cauchy - x_;
      direction_.normalize();
    } else {
      LBFGSpp::SubspaceMin<double>::subspace_minimize(pairs_, x_, cauchy, gradient_, lower, upper, at_cauchy,
                                                      newly_active, free, kMaxSubspace, direction_);
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // a factorisation that does not exist
    return false;
  }
  return true;
}

StopReason LbfgsStart::first_direction() {
  if (bounded_) return bounded_direction(true) ? begin_line(1) : give_up();
  direction_ = -gradient_;
  return begin_line(1 / direction_.norm());
}

StopReason LbfgsStart::next_direction() {
  const Vector moved = x_ - line_begin_, turned = gradient_ - gradient_begin_;
  if (!bounded_) {
    free_pairs_.add_correction(moved, turned);
    free_pairs_.apply_Hv(gradient_, -1, direction_);
    return begin_line(1);
  }
  try {
    if (moved.dot(turned) > std::numeric_limits<double>::epsilon() * turned.squaredNorm()) {
      pairs_.add_correction(moved, turned);
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // a factorisation that does not exist
    return give_up();
  }
  x_ = x_.cwiseMax(map(bounds_.lower)).cwiseMin(map(bounds_.upper));
  return bounded_direction(false) ? begin_line(1) : give_up();
}

StopReason LbfgsStart::begin_line(double step) {
  line_begin_ = x_;
  gradient_begin_ = gradient_;
  longest_step_ = bounded_ ? std::min(kLongestStep, step_to_bounds(x_, direction_, bounds_)) : kLongestStep;
  step_ = bounded_ ? std::min(step, longest_step_) : step;
  loss_begin_ = loss_;
  slope_begin_ = gradient_.dot(direction_);
  low_ = 0;
  high_ = kInfinity;
  evaluations_ = 0;
  if (!(slope_begin_ < 0) || !(step_ > 0)) return give_up();  // no direction of descent
  on_line_ = true;
  x_ = line_begin_ + step_ * direction_;
  return ask(x_);
}

/// The usual line searches ask for |slope| to fall (strong Wolfe), which no point near a kink does, and losses of
/// motions have kinks: a limit's onset, a drive's saturation. This is the bisection of Lewis and Overton (Nonsmooth
/// optimization via quasi-Newton methods, 2013, algorithm 2.6): enough decrease, and a slope that is no longer steeply
/// down. An infinite loss is one more reason to step back. Deviation: a step that reaches the bounds needs only the
/// decrease.
StopReason LbfgsStart::walk_line() {
  if (!(loss_ <= loss_begin_ + kDecrease * step_ * slope_begin_)) {
    high_ = step_;
  } else if (gradient_.dot(direction_) < kSlopeLeft * slope_begin_ && step_ < longest_step_) {
    low_ = step_;
  } else {
    return accept();
  }
  step_ = std::isfinite(high_) ? (low_ + high_) / 2 : std::min(2 * step_, longest_step_);
  if (++evaluations_ == kMaxLineSearch) return give_up();
  x_ = line_begin_ + step_ * direction_;
  return ask(x_);
}

/// A line search is over: x is the next iterate.
StopReason LbfgsStart::accept() {
  ++start_.iterations;
  if (const StopReason reason = limits(); reason != StopReason::none) return reason;
  flat_ = loss_begin_ - loss_ > 0 ? 0 : flat_ + 1;
  if (flat_ > kMaxFlat) return give_up();
  return is_stationary() ? StopReason::tolerance : next_direction();
}

namespace {

/// A search and where its best point is kept: by its start, or for itself.
struct Walker {
  int start;
  StartResult* best;
  LbfgsStart search;

  bool is_walking() const { return best->stopped_by == StopReason::none; }
};

/// Evaluates what all that still walk ask for as one batch, and tells them, until they have stopped.
void walk(Search& search, std::span<Walker> walkers) {
  std::vector<int> which;
  std::vector<Walker*> asking;
  std::vector<std::vector<double>> x(walkers.size()), gradient;
  std::vector<double> loss;
  while (!search.is_interrupted()) {
    which.clear();
    asking.clear();
    for (Walker& walker : walkers) {
      if (!walker.is_walking()) continue;
      x[which.size()] = walker.search.point();
      which.push_back(walker.start);
      asking.push_back(&walker);
    }
    if (which.empty()) return;
    x.resize(which.size());
    search.evaluate(which, x, loss, gradient);
    for (std::size_t i = 0; i < which.size(); ++i) {
      Walker& walker = *asking[i];
      StartResult& start = search.start(walker.start);
      if (walker.best != &start) search.keep_better(*walker.best, x[i], loss[i], gradient[i]);
      StopReason reason = search.stop_reason(walker.start);
      if (reason == StopReason::none) reason = walker.search.tell(loss[i], gradient[i]);
      walker.best->stopped_by = reason;
      start.iterations = std::max(start.iterations, walker.best->iterations);
    }
    search.report();
  }
  for (Walker& walker : walkers) {
    if (walker.is_walking()) walker.best->stopped_by = StopReason::interrupted;
  }
}

/// Points about `centre` at `distance`, half of it, a quarter, an eighth, and so on in turn, in random directions.
std::vector<std::vector<double>> points_around(const std::vector<double>& centre, double distance, int count,
                                               std::uint64_t seed, int round) {
  constexpr int kDistances = 4;
  std::vector<std::vector<double>> points(count, centre);
  for (int k = 0; k < count; ++k) {
    NormalNumbers normal(seed, ~static_cast<std::uint64_t>(round),
                         static_cast<std::uint64_t>(k));  // other than starts'
    Vector direction(static_cast<Eigen::Index>(centre.size()));
    for (double& part : direction) part = normal.next();
    direction *= std::ldexp(distance, -(k % kDistances)) / direction.norm();
    for (std::size_t i = 0; i < centre.size(); ++i) points[k][i] += direction[static_cast<Eigen::Index>(i)];
  }
  return points;
}

}  // namespace

void run_lbfgs(Search& search, std::span<const int> starts) {
  std::vector<Walker> walkers;
  walkers.reserve(starts.size());
  for (const int k : starts) {
    StartResult& start = search.start(k);
    walkers.push_back({k, &start, LbfgsStart(search.bounds(), search.options(), start)});
  }
  walk(search, walkers);
}

int look_around(Search& search, const std::vector<std::vector<double>>& begins, int neighbours, std::uint64_t seed) {
  constexpr int kMostRounds = 8;
  const OptimizeOptions& options = search.options();
  const int best = search.best();
  StartResult& start = search.start(best);
  const StopReason reason = start.stopped_by;
  int round = 0;
  while (std::isfinite(options.goal) && std::isfinite(start.loss) && !search.goal_reached() &&
         !search.is_interrupted() && start.iterations < options.iterations && round < kMostRounds) {
    const int begin = start.iterations;
    const double walked = (map(start.x) - map(begins[best])).norm();
    start.stopped_by = StopReason::none;
    std::vector<StartResult> bests;
    for (std::vector<double>& x : points_around(start.x, walked > 0 ? walked : 1, neighbours, seed, round)) {
      search.bounds().clip(x);
      StartResult& own = bests.emplace_back();
      own.x = std::move(x);
      own.loss = kInfinity;
      own.iterations = begin;
    }
    std::vector<Walker> walkers;
    for (StartResult& own : bests) walkers.push_back({best, &own, LbfgsStart(search.bounds(), options, own)});
    walk(search, walkers);
    start.iterations = std::max(start.iterations, begin + 1);
    start.stopped_by = search.stop_reason(best);
    if (start.stopped_by == StopReason::none) {
      start.stopped_by = start.iterations < options.iterations ? reason : StopReason::iterations;
    }
    ++round;
  }
  return round;
}

}  // namespace backdrive
