#pragma once
// Rollouts, single steps and link poses, with or without a tape.
#include <span>

#include "autodiff/tape.h"

namespace backdrive {

struct RolloutOptions {
  double time_step = 1.0 / 240;  ///< s
  int steps = 1;
  int threads = 1;          ///< results do not depend on it
  bool keep_states = true;  ///< without a tape: fill Trajectory::q and qd
  /// Duals only: derivative of the parameters (shape of zero_parameters) that the dots follow.
  const Parameters* direction = nullptr;
};

/// Runs all worlds of `state` for options.steps steps of semi-implicit Euler; control.u may be empty (no effort).
/// A world that becomes non-finite stops (Trajectory::status), the others go on. O(worlds · steps · links).
template <class T>
Trajectory<T> rollout(const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options, Memory& memory = default_memory());

/// The same, recorded: keeps every state and a copy of the parameters as they are now.
template <class T>
Trajectory<T> rollout(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options);

/// One step; for policies in the loop.
template <class T>
State<T> step(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
              RolloutOptions options);

/// World poses of bodies in every state of `q` (rows state·nq + component): rows (state·bodies + k)·12 hold position
/// (3) and rotation matrix (9, column by column).
template <class T>
Buffer<T> body_poses(Tape<T>* tape, const Model& model, const Buffer<T>& q, std::span<const int> bodies,
                     const RolloutOptions& options, Memory& memory = default_memory());

}  // namespace backdrive
