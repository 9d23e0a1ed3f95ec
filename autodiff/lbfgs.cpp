#include "autodiff/lbfgs.h"

#include <LBFGS.h>
#include <LBFGSB.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

namespace backdrive {
namespace {

using Vector = Eigen::VectorXd;

/// Pairs of the Hessian's memory: they cost little beside a rollout; past twenty they rarely help.
constexpr int kMemory = 12;
/// Evaluations of one line search.
constexpr int kMaxLineSearch = 40;
/// Iterations in a row that may leave the loss as it was (the gradient may still shrink).
constexpr int kMaxFlat = 4;
/// Relative decrease since the last restart that earns another one.
constexpr double kWorthRestart = 1e-6;

/// Thrown through the solver to end it.
struct Stop {
  const char* reason;
};

/// Where solvers wait until all that run have posted a point, and the coordinator answers them all.
class Rendezvous {
 public:
  explicit Rendezvous(int starts) : slots_(starts) {}

  struct Slot {
    std::vector<double> x, gradient;
    double loss = 0;
    const char* stop = nullptr;
    bool waiting = false;
  };

  /// Before the thread of a start begins.
  void enter() {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  /// Ends a start's part; `error` is thrown to the coordinator.
  void leave(std::exception_ptr error = {}) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (error && !error_) error_ = error;
    if (posted_ == running_) all_posted_.notify_one();
  }

  /// Posts slot's x and waits for the answer. Throws Stop when it is to stop.
  Slot& evaluate(int slot, std::vector<double> x) {
    std::unique_lock lock(mutex_);
    if (stop_) throw Stop{stop_};
    Slot& own = slots_[slot];
    own.x = std::move(x);
    own.waiting = true;
    if (++posted_ == running_) all_posted_.notify_one();
    answered_.wait(lock, [&] { return !own.waiting; });
    if (own.stop) throw Stop{own.stop};
    return own;
  }

  /// Waits until every running start has posted; returns those that wait, none when all have left.
  /// Until answer() no other thread touches their slots.
  std::vector<int> gather() {
    std::unique_lock lock(mutex_);
    all_posted_.wait(lock, [&] { return posted_ == running_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    std::vector<int> waiting;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].waiting) waiting.push_back(static_cast<int>(i));
    }
    return waiting;
  }
  Slot& slot(int i) { return slots_[i]; }
  void answer() {
    {
      const std::lock_guard lock(mutex_);
      posted_ = 0;
      for (Slot& slot : slots_) slot.waiting = false;
    }
    answered_.notify_all();
  }
  /// Ends all solvers: those that wait, and the others at their next evaluation.
  void stop_all(const char* reason) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = reason;
      for (Slot& slot : slots_) slot.stop = reason;
    }
    answer();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_posted_, answered_;
  std::vector<Slot> slots_;
  int running_ = 0, posted_ = 0;
  const char* stop_ = nullptr;
  std::exception_ptr error_;
};

/// The loss of one start, as LBFGSpp calls it from the start's thread.
class StartFunction {
 public:
  StartFunction(Search& search, int start, Rendezvous& rendezvous, int slot)
      : search_(search), start_(search.start(start)), rendezvous_(rendezvous), slot_(slot) {}

  double operator()(const Vector& x, Vector& gradient) {
    if (!x.allFinite()) throw std::runtime_error("the line search left the finite numbers");
    // A step to a bound may end an ulp past it, where a mass would be negative.
    const VariableBounds& bounds = search_.bounds();
    std::vector<double> point(x.data(), x.data() + x.size());
    bounds.clip(point);
    const Rendezvous::Slot& answer = rendezvous_.evaluate(slot_, std::move(point));
    gradient = Eigen::Map<const Vector>(answer.gradient.data(), x.size());
    if (std::exchange(first_, false)) check_first(answer, x, gradient);
    return answer.loss;
  }

  /// A line search is over: x is the next iterate, its loss by `decrease` lower.
  void accept(const Vector& x, const Vector& gradient, double decrease) {
    ++start_.iterations;
    check_tolerance(x, gradient);
    if (start_.iterations >= search_.options().iterations) throw Stop{stopped_by::iterations};
    flat_ = decrease > 0 ? 0 : flat_ + 1;
    if (flat_ > kMaxFlat) throw std::runtime_error("the loss no longer decreases");
  }

  const StartResult& result() const { return start_; }

 private:
  void check_first(const Rendezvous::Slot& answer, const Vector& x, const Vector& gradient) const {
    if (!std::isfinite(answer.loss)) throw Stop{stopped_by::non_finite};
    check_tolerance(x, gradient);
    if (search_.options().iterations <= 0) throw Stop{stopped_by::iterations};
  }
  void check_tolerance(const Vector& x, const Vector& gradient) const {
    if (search_.bounds().projected_norm(x.data(), gradient.data()) <= search_.options().tolerance) {
      throw Stop{stopped_by::tolerance};
    }
  }

  Search& search_;
  StartResult& start_;
  Rendezvous& rendezvous_;
  int slot_;
  int flat_ = 0;
  bool first_ = true;
};

/// Line search of both solvers, in place of LBFGSpp's. Those ask for |slope| to fall (strong
/// Wolfe), which no point near a kink does, and losses of motions have kinks: a limit's onset, a
/// drive's saturation. This is the bisection of Lewis and Overton (Nonsmooth optimization via
/// quasi-Newton methods, 2013, algorithm 2.6): enough decrease, and a slope that is no longer
/// steeply down. An infinite loss is one more reason to step back. Deviation: a step that reaches
/// the bounds needs only the decrease.
template <class Scalar>
struct WeakWolfeSearch {
  /// As L-BFGS-B calls it: no step past step_max, where the first bound is met.
  template <class Param>
  static void LineSearch(StartFunction& f, Scalar& fx, Vector& x, Vector& grad, Scalar& step, const Scalar& step_max,
                         const Vector& drt, const Vector& xp, const Param& param) {
    const Scalar fx_begin = fx, slope_begin = grad.dot(drt);
    if (!(slope_begin < 0) || !(step > 0)) throw std::logic_error("no direction of descent");
    Scalar low = 0, high = std::numeric_limits<Scalar>::infinity();
    for (int k = 0; k < param.max_linesearch; ++k) {
      x.noalias() = xp + step * drt;
      fx = f(x, grad);
      if (!(fx <= fx_begin + param.ftol * step * slope_begin)) {
        high = step;
      } else if (grad.dot(drt) < param.wolfe * slope_begin && step < step_max) {
        low = step;
      } else {
        return f.accept(x, grad, fx_begin - fx);
      }
      step = std::isfinite(high) ? (low + high) / 2 : std::min(2 * step, step_max);
    }
    throw std::runtime_error("no point along the line will do");
  }

  /// As L-BFGS calls it.
  static void LineSearch(StartFunction& f, Scalar& fx, Vector& x, Vector& grad, Scalar& step, const Vector& drt,
                         const Vector& xp, const LBFGSpp::LBFGSParam<Scalar>& param) {
    LineSearch(f, fx, x, grad, step, param.max_step, drt, xp, param);
  }
};

template <class Parameters>
Parameters solver_parameters() {
  Parameters p;
  p.m = kMemory;
  p.max_linesearch = kMaxLineSearch;
  p.ftol = 1e-4;
  p.wolfe = 0.9;
  // Whether to stop is decided in StartFunction.
  p.epsilon = p.epsilon_rel = p.delta = 0;
  p.past = 0;
  p.max_iterations = 0;
  return p;
}

/// One solver with fresh memory, from x. Returns when the (projected) gradient is zero; throws
/// Stop, or what LBFGSpp throws when it knows no further.
void minimize(StartFunction& f, const VariableBounds& bounds, Vector x) {
  double fx = 0;
  if (bounds.any()) {
    const auto parameters = solver_parameters<LBFGSpp::LBFGSBParam<double>>();
    LBFGSpp::LBFGSBSolver<double, WeakWolfeSearch> solver(parameters);
    const Vector lower = Eigen::Map<const Vector>(bounds.lower.data(), x.size());
    const Vector upper = Eigen::Map<const Vector>(bounds.upper.data(), x.size());
    solver.minimize(f, x, fx, lower, upper);
  } else {
    const auto parameters = solver_parameters<LBFGSpp::LBFGSParam<double>>();
    LBFGSpp::LBFGSSolver<double, WeakWolfeSearch> solver(parameters);
    solver.minimize(f, x, fx);
  }
}

/// Runs a start to its end and returns what it stopped by. A solver that gives up is started again
/// from the best point with fresh memory, once, and again whenever that brought a real decrease.
const char* run_start(StartFunction& f, const VariableBounds& bounds) {
  double before = 0;
  for (bool first = true;; first = false) {
    try {
      const std::vector<double>& x = f.result().x;
      minimize(f, bounds, Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(x.size())));
      return stopped_by::tolerance;
    } catch (const Stop& stop) {
      return stop.reason;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception&) {  // LBFGSpp: no further along this line
      const double now = f.result().loss;
      const bool worth = first || now < before - kWorthRestart * std::abs(before);
      if (!worth) return stopped_by::line_search;
      before = now;
    }
  }
}

/// Answers the solvers batch by batch until all have left.
void coordinate(Search& search, std::span<const int> starts, Rendezvous& rendezvous) {
  std::vector<int> which;
  std::vector<std::vector<double>> x, gradient;
  std::vector<double> loss;
  for (bool evaluated = false;; evaluated = true) {
    const std::vector<int> waiting = rendezvous.gather();
    if (evaluated && !search.is_interrupted()) search.report();
    if (waiting.empty()) return;
    if (search.is_interrupted()) {
      rendezvous.stop_all(stopped_by::interrupted);
      continue;
    }
    which.clear();
    x.resize(waiting.size());
    for (size_t i = 0; i < waiting.size(); ++i) {
      which.push_back(starts[waiting[i]]);
      x[i] = rendezvous.slot(waiting[i]).x;
    }
    search.evaluate(which, x, loss, gradient);
    for (size_t i = 0; i < waiting.size(); ++i) {
      Rendezvous::Slot& slot = rendezvous.slot(waiting[i]);
      slot.loss = loss[i];
      slot.gradient = gradient[i];
      slot.stop = search.stop_reason(which[i]);
    }
    rendezvous.answer();
  }
}

}  // namespace

void run_lbfgs(Search& search, std::span<const int> starts) {
  Rendezvous rendezvous(static_cast<int>(starts.size()));
  std::vector<std::jthread> threads;  // joined before the rendezvous goes
  try {
    for (size_t i = 0; i < starts.size(); ++i) {
      rendezvous.enter();
      try {
        threads.emplace_back([&search, &rendezvous, slot = static_cast<int>(i), k = starts[i]] {
          try {
            StartFunction f(search, k, rendezvous, slot);
            const char* reason = run_start(f, search.bounds());
            search.start(k).stopped_by = reason;
            rendezvous.leave();
          } catch (...) {
            rendezvous.leave(std::current_exception());
          }
        });
      } catch (...) {
        rendezvous.leave();
        throw;
      }
    }
    coordinate(search, starts, rendezvous);
  } catch (...) {
    rendezvous.stop_all(stopped_by::interrupted);
    throw;
  }
}

}  // namespace backdrive
