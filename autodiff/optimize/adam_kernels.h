#pragma once
// Adam in every world at once: what an iteration does to one world, and what the host is told of all.
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/real.h"
#include "engine/status.h"

namespace backdrive {

/// How a world's search stands.
enum class AdamOutcome : int { running, tolerance, iterations, non_finite };

/// Vectors are [number][world] with rows `stride` numbers apart, the rest one number per world.
struct AdamState {
  int numbers;
  std::size_t stride;
  double *x, *m, *v;
  double *finite_x, *finite_gradient;  ///< of the last point with a finite loss
  double* best_x;
  double *rate, *best_loss, *best_norm;
  int *updates, *halvings, *iterations;
  int* has_finite;
  int* outcome;       ///< AdamOutcome
  int* outcome_when;  ///< evaluation at which it was reached
  WorldStatus* best_status;
};

struct AdamRules {
  const double *lower, *upper;  ///< [number]
  double tolerance;
  int iterations;
};

/// One world takes in an evaluation and moves on.
struct AdamStep {
  AdamState s;
  AdamRules rules;
  const double* loss;      ///< [world]; infinite: there is none
  const double* gradient;  ///< [number][world]
  const WorldStatus* status;
  int evaluation;  ///< number of this one

  BACKDRIVE_HD void operator()(std::int64_t w) const {
    if (s.outcome[w] != static_cast<int>(AdamOutcome::running)) return;
    const double norm = projected_norm(w);
    note_best(w, norm);
    const AdamOutcome outcome = advance(w, norm);
    s.outcome[w] = static_cast<int>(outcome);
    s.outcome_when[w] = evaluation;
    s.iterations[w] += outcome == AdamOutcome::running;
  }

 private:
  static constexpr double kDecay1 = 0.9, kDecay2 = 0.999, kEpsilon = 1e-8;
  /// How often in a row a start may halve its learning rate.
  static constexpr int kMaxHalvings = 20;

  /// |P(x − g) − x|, where P clips to the bounds.
  BACKDRIVE_HD double projected_norm(std::int64_t w) const {
    double sum = 0;
    for (int i = 0; i < s.numbers; ++i) {
      const double x = s.x[i * s.stride + w];
      const double step = clamped(-gradient[i * s.stride + w], rules.lower[i] - x, rules.upper[i] - x);
      sum += step * step;
    }
    return std::sqrt(sum);
  }

  BACKDRIVE_HD void copy(double* to, const double* from, std::int64_t w) const {
    for (int i = 0; i < s.numbers; ++i) to[i * s.stride + w] = from[i * s.stride + w];
  }

  BACKDRIVE_HD void note_best(std::int64_t w, double norm) const {
    if (loss[w] < s.best_loss[w]) {
      copy(s.best_x, s.x, w);
      s.best_loss[w] = loss[w];
      s.best_norm[w] = norm;
      s.best_status[w] = WorldStatus{};
    } else if (!is_finite(s.best_loss[w])) {
      s.best_status[w] = status[w];
    }
  }

  BACKDRIVE_HD AdamOutcome advance(std::int64_t w, double norm) const {
    const bool finite = is_finite(loss[w]);
    if (finite && norm <= rules.tolerance) return AdamOutcome::tolerance;
    if (s.iterations[w] >= rules.iterations) return AdamOutcome::iterations;
    if (finite) {
      s.halvings[w] = 0;
      s.has_finite[w] = 1;
      copy(s.finite_x, s.x, w);
      copy(s.finite_gradient, gradient, w);
      update(w, gradient);
      return AdamOutcome::running;
    }
    return retreat(w) ? AdamOutcome::running : AdamOutcome::non_finite;
  }

  /// Kingma and Ba (2015), algorithm 1, then onto the bounds.
  BACKDRIVE_HD void update(std::int64_t w, const double* g) const {
    const int t = ++s.updates[w];
    const double correction1 = 1 - std::pow(kDecay1, t), correction2 = 1 - std::pow(kDecay2, t);
    for (int i = 0; i < s.numbers; ++i) {
      const std::size_t at = i * s.stride + w;
      s.m[at] = kDecay1 * s.m[at] + (1 - kDecay1) * g[at];
      s.v[at] = kDecay2 * s.v[at] + (1 - kDecay2) * g[at] * g[at];
      const double x = s.x[at] - s.rate[w] * (s.m[at] / correction1) / (std::sqrt(s.v[at] / correction2) + kEpsilon);
      s.x[at] = clamped(x, rules.lower[i], rules.upper[i]);
    }
  }

  /// Back to the last finite point, with half the rate and fresh moments. False when that was tried often enough or
  /// there is no such point.
  BACKDRIVE_HD bool retreat(std::int64_t w) const {
    if (!s.has_finite[w] || ++s.halvings[w] > kMaxHalvings) return false;
    copy(s.x, s.finite_x, w);
    s.rate[w] /= 2;
    for (int i = 0; i < s.numbers; ++i) s.m[i * s.stride + w] = s.v[i * s.stride + w] = 0;
    s.updates[w] = 0;
    update(w, s.finite_gradient);
    return true;
  }
};

/// What the host is told of a batch: the world with the lowest loss, the first of several.
struct AdamSummary {
  double best_loss;
  double best_norm;
  int best_world;
  int best_iterations;
  int best_running;  ///< whether that world still runs
  int running;
};

/// Of a share of the worlds: index is the share.
struct SummarizeShare {
  AdamState s;
  int worlds, shares;
  AdamSummary* summaries;

  BACKDRIVE_HD void operator()(std::int64_t share) const {
    const int begin = static_cast<int>(share * worlds / shares), end = static_cast<int>((share + 1) * worlds / shares);
    AdamSummary sum{std::numeric_limits<double>::infinity(), 0, begin, 0, 0, 0};
    for (int w = begin; w < end; ++w) {
      const bool running = s.outcome[w] == static_cast<int>(AdamOutcome::running);
      sum.running += running;
      if (w > begin && !(s.best_loss[w] < sum.best_loss)) continue;
      sum = {s.best_loss[w], s.best_norm[w], w, s.iterations[w], running, sum.running};
    }
    summaries[share] = sum;
  }
};

/// Of all shares, into the first one.
struct SummarizeAll {
  AdamSummary* summaries;
  int shares;

  BACKDRIVE_HD void operator()(std::int64_t) const {
    AdamSummary sum = summaries[0];
    for (int k = 1; k < shares; ++k) {
      const int running = sum.running + summaries[k].running;
      if (summaries[k].best_loss < sum.best_loss) sum = summaries[k];
      sum.running = running;
    }
    summaries[0] = sum;
  }
};

/// Takes chosen columns of a table along: to[row][k] = from[row][columns[k]].
template <class X>
struct GatherColumns {
  const X* from;
  X* to;
  const int* columns;
  int rows;
  std::size_t stride, to_stride;
  BACKDRIVE_HD void operator()(std::int64_t k) const {
    for (int r = 0; r < rows; ++r) to[r * to_stride + k] = from[r * stride + columns[k]];
  }
};

}  // namespace backdrive
