#include "autodiff/check/step_defect.h"

#include <algorithm>
#include <cmath>

#include "autodiff/problem/inputs.h"
#include "engine/dual.h"

namespace backdrive {
namespace {

/// Steps that are worlds of one batch.
constexpr int kStepsAtOnce = 128;

double apart(double a, double b) {
  const double gap = std::abs(a - b) / std::max({1.0, std::abs(a), std::abs(b)});
  return std::isfinite(gap) ? gap : 0;
}

/// Rows first·count to (first + worlds)·count of one world as `count` rows of worlds.
template <class T>
Buffer<T> as_worlds(const Buffer<double>& states, int first, int worlds, int count) {
  Buffer<T> buffer(count, worlds);
  for (int row = 0; row < count; ++row) {
    T* const to = buffer.write(row);
    for (int w = 0; w < worlds; ++w) to[w] = states((first + w) * count + row, 0);
  }
  return buffer;
}

}  // namespace

double step_defect(const Problem& problem, RolloutOptions options) {
  const Model& model = problem.model;
  if (std::ranges::any_of(model.joint_releases, [](double at) { return std::isfinite(at); })) return 0;
  options.keep_states = true;
  options.keep_contact = false;
  const State<double> start = place_bodies<double>(nullptr, model, initial_state<double>(problem, 1), options);
  const Control<double> control = initial_control<double>(problem, 1);
  const Trajectory<double> motion = rollout(model, start, control, options);
  const int nq = model.topology.nq, nv = model.topology.nv, nu = model.topology.nu;
  const int steps = (*motion.status)[0].stopped() ? (*motion.status)[0].stopped_step : options.steps;
  double most = 0;
  options.steps = 1;
  options.keep_states = false;
  // The first step begins the motion, and others do not.
  for (int first = 0, worlds = 1; first < steps; first += worlds) {
    using D = Dual<double>;
    if (first > 0) worlds = std::min(kStepsAtOnce, steps - first);
    State<D> state;
    state.q = as_worlds<D>(motion.q, first, worlds, nq);
    state.qd = as_worlds<D>(motion.qd, first, worlds, nv);
    if (first > 0 && !motion.reported.empty()) {
      state.set_reported(as_worlds<D>(motion.reported, first, worlds, nv),
                         as_worlds<D>(motion.ways, first, worlds, model.topology.way_count));
    }
    Control<D> own;
    if (!control.u.empty()) own.u = as_worlds<D>(control.u, first, worlds, nu);
    const Parameters still = zero_parameters(model);
    options.direction = &still;
    const Trajectory<D> step = rollout(model, state, own, options);
    for (int w = 0; w < worlds; ++w) {
      const int next = first + w + 1;
      for (int r = 0; r < nq; ++r) most = std::max(most, apart(step.final.q(r, w).value, motion.q(next * nq + r, 0)));
      for (int r = 0; r < nv; ++r) most = std::max(most, apart(step.final.qd(r, w).value, motion.qd(next * nv + r, 0)));
    }
  }
  return most;
}

}  // namespace backdrive
