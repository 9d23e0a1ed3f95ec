#include "autodiff/adam.h"

#include <algorithm>
#include <cmath>

namespace backdrive {
namespace {

constexpr double kDecay1 = 0.9, kDecay2 = 0.999, kEpsilon = 1e-8;
/// How often in a row a start may halve its learning rate.
constexpr int kMaxHalvings = 20;

/// One start: x with the moments m, v after t updates, and the last point with a finite loss.
struct AdamStart {
  std::vector<double> x, m, v, finite_x, finite_gradient;
  double rate;
  int t = 0, halvings = 0;

  AdamStart(std::vector<double> begin, double learning_rate)
      : x(std::move(begin)), m(x.size(), 0.0), v(x.size(), 0.0), rate(learning_rate) {}

  void update(const std::vector<double>& g, const VariableBounds& bounds) {
    ++t;
    const double correction1 = 1 - std::pow(kDecay1, t), correction2 = 1 - std::pow(kDecay2, t);
    for (size_t i = 0; i < x.size(); ++i) {
      m[i] = kDecay1 * m[i] + (1 - kDecay1) * g[i];
      v[i] = kDecay2 * v[i] + (1 - kDecay2) * g[i] * g[i];
      x[i] -= rate * (m[i] / correction1) / (std::sqrt(v[i] / correction2) + kEpsilon);
    }
    bounds.clip(x);
  }

  /// Back to the last finite point, with half the rate and fresh moments. False when that was tried
  /// often enough or there is no such point.
  bool retreat(const VariableBounds& bounds) {
    if (finite_x.empty() || ++halvings > kMaxHalvings) return false;
    x = finite_x;
    rate /= 2;
    std::fill(m.begin(), m.end(), 0.0);
    std::fill(v.begin(), v.end(), 0.0);
    t = 0;
    update(finite_gradient, bounds);
    return true;
  }
};

/// Takes in an evaluation and moves on. Returns the reason to stop, or null.
const char* advance(AdamStart& adam, StartResult& result, const OptimizeOptions& options, const VariableBounds& bounds,
                    double loss, const std::vector<double>& gradient) {
  const bool finite = std::isfinite(loss);
  if (finite && bounds.projected_norm(adam.x.data(), gradient.data()) <= options.tolerance) {
    return stopped_by::tolerance;
  }
  if (result.iterations >= options.iterations) return stopped_by::iterations;
  if (finite) {
    adam.halvings = 0;
    adam.finite_x = adam.x;
    adam.finite_gradient = gradient;
    adam.update(gradient, bounds);
  } else if (!adam.retreat(bounds)) {
    return stopped_by::non_finite;
  }
  ++result.iterations;
  return nullptr;
}

}  // namespace

void run_adam(Search& search, std::span<const int> starts) {
  const OptimizeOptions& options = search.options();
  std::vector<AdamStart> adams;
  for (const int k : starts) adams.emplace_back(search.start(k).x, options.learning_rate);
  std::vector<int> running(starts.begin(), starts.end());
  std::vector<std::vector<double>> x, gradient;
  std::vector<double> loss;
  const auto adam_of = [&](int k) -> AdamStart& { return adams[k - starts.front()]; };
  while (!running.empty()) {
    x.resize(running.size());
    for (size_t i = 0; i < running.size(); ++i) x[i] = adam_of(running[i]).x;
    search.evaluate(running, x, loss, gradient);
    for (size_t i = 0; i < running.size(); ++i) {
      StartResult& result = search.start(running[i]);
      const char* reason = search.stop_reason(running[i]);
      if (!reason) {
        reason = advance(adam_of(running[i]), result, options, search.bounds(), loss[i], gradient[i]);
      }
      if (reason) result.stopped_by = reason;
    }
    if (!search.report()) {
      for (const int k : running) {
        if (search.is_running(k)) search.start(k).stopped_by = stopped_by::interrupted;
      }
    }
    std::erase_if(running, [&](int k) { return !search.is_running(k); });
  }
}

}  // namespace backdrive
