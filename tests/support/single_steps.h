#pragma once
// What one step in float32 makes of the states of a motion, beside float64.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "autodiff/tape/rollout.h"

namespace backdrive::test {

/// Quaternions that were rounded to float32 to unit length, as float64 has it.
inline void normalize_quaternions(const Model& model, State<double>& state) {
  each_quaternion(model.topology, [&](TurnSide, int row, int) {
    for (int w = 0; w < state.q.worlds(); ++w) {
      double square = 0;
      for (int k = row; k < row + 4; ++k) square += state.q(k, w) * state.q(k, w);
      for (int k = row; k < row + 4; ++k) state.q.set(k, w, state.q(k, w) / std::sqrt(square));
    }
  });
}

/// The states that the steps of a motion begin with, one a world, rounded to float32.
template <class T>
State<T> states_of(const Trajectory<double>& motion, const Model& model) {
  const Topology& t = model.topology;
  State<T> states(model, motion.steps);
  for (int w = 0; w < motion.steps; ++w) {
    for (int k = 0; k < t.nq; ++k) states.q.set(k, w, static_cast<float>(motion.q(w * t.nq + k, 0)));
    for (int k = 0; k < t.nv; ++k) states.qd.set(k, w, static_cast<float>(motion.qd(w * t.nv + k, 0)));
  }
  if constexpr (std::is_same_v<T, double>) normalize_quaternions(model, states);
  states.set_reported(states.qd);  // they begin no motion
  return states;
}

/// By how much rates after a step in float32 differ from float64's, over the largest of the state, for the states of a
/// motion that nothing drives. `unit(row)`, m: what makes a rate a velocity, 1 of slides.
template <class Unit>
std::vector<double> differences_of_steps(const Model& model, const State<double>& start, RolloutOptions options,
                                         const Unit& unit) {
  const double fall = 9.81 * options.time_step;
  const int steps = options.steps, nv = model.topology.nv;
  const Trajectory<double> motion = rollout(model, start, Control<double>(model, steps, 1), options);
  if (motion.any_stopped()) return {INFINITY};
  options.steps = 1;
  const auto ends = [&]<class T>(T) {
    return rollout(model, states_of<T>(motion, model), Control<T>(model, 1, steps), options).final.qd;
  };
  const Buffer<float> single = ends(0.F);
  const Buffer<double> exact = ends(0.);
  std::vector<double> differences(steps);
  for (int w = 0; w < steps; ++w) {
    double largest = fall, worst = 0;
    for (int v = 0; v < nv; ++v) {
      largest = std::max({largest, unit(v) * std::abs(exact(v, w)), unit(v) * std::abs(motion.qd(w * nv + v, 0))});
      worst = std::max(worst, unit(v) * std::abs(single(v, w) - exact(v, w)));
    }
    differences[w] = worst / largest;
  }
  return differences;
}

}  // namespace backdrive::test
