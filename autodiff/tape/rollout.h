#pragma once
// Rollouts, single steps and link poses, with or without a tape.
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>

#include "autodiff/tape/checkpoints.h"
#include "autodiff/tape/gradient_window.h"
#include "autodiff/tape/tape.h"
#include "autodiff/tape/world_parameters.h"

namespace backdrive {

struct RolloutOptions {
  double time_step = 1.0 / 240;  ///< s
  int steps = 1;
  int threads = 1;            ///< results do not depend on it
  bool keep_states = true;    ///< without a tape: fill Trajectory::q and qd
  bool keep_contact = false;  ///< fill Trajectory::contact, where states are kept
  /// Duals only: derivative of the parameters (shape of zero_parameters) that the dots follow.
  const Parameters* direction = nullptr;
  /// Values for every world, where the buffers are, in place of the model's, which is the same but for values. What
  /// asks for a gradient has to be among them; it comes as Gradients::of_worlds(). Null: the model's own.
  std::shared_ptr<const WorldParameters> parameters{};
  GradientWindow window{};  ///< recorded rollouts
  bool checked = false;     ///< parameters are known to be good: else those that changed since validate() are checked
  MemoryPlan plan{};        ///< recorded rollouts: which states are kept; Trajectory::q and qd are empty unless all are
  /// Of recorded rollouts on processors: is called after each part, forwards and backwards, with its steps times
  /// worlds; what it throws ends them.
  std::function<void(std::int64_t)> passed{};
};

/// Cotangents of the states of a piece, row by row as in its Trajectory: of q, of velocity(), of the forces in
/// `contact` and, where velocity() is not qd, of that; empty: none.
template <class T>
struct StateSeeds {
  Buffer<T> q, qd, contact, start_qd;
};

/// Sees the states of a rollout that does not keep them all, for losses that need more than the last: every piece once
/// forwards, in order, and once backwards, in reverse order. A piece is a Trajectory of its own, whose state 0 is the
/// last one of the piece before: it belongs to that one (to the first piece where there is none before).
template <class T>
class StateObserver {
 public:
  virtual ~StateObserver() = default;
  virtual void forward(const Trajectory<T>& piece, int first_step) = 0;
  virtual StateSeeds<T> backward(const Trajectory<T>& piece, int first_step) = 0;
  /// After a piece was walked back: the cotangents of the state that it begins with, of what comes after it.
  virtual void passed(const Buffer<T>& /*q_bar*/, const Buffer<T>& /*qd_bar*/, int /*first_step*/) {}
  /// Adds the components of positions and velocities that it reads.
  virtual void reads(Components& q, Components& qd) const {
    q.add(Components::everything());
    qd.add(Components::everything());
  }
  /// After the last piece: adds gradients of parameters that the observer's own use of the states gave rise to.
  virtual void finish(Cotangents<T>& /*bars*/, Parameters& /*gradient*/, Parameters& /*gradient_dot*/) {}
};

/// A state as rollouts of `model` want it. With featherstone it is `state` itself; with semi_implicit the bodies are
/// put where the coordinates of the tree's joints say, and the coordinates of joints that close loops are read off
/// them. A loop that is not closed there closes in the first steps. `tape` may be null. O(worlds · joints).
template <class T>
State<T> place_bodies(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                      const RolloutOptions& options, Memory& memory = default_memory());

/// Runs all worlds of `state` for options.steps steps of the model's integrator; control.u may be empty (no effort).
/// A world that becomes non-finite stops (Trajectory::status), the others go on. O(worlds · steps · links).
template <class T>
Trajectory<T> rollout(const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options, Memory& memory = default_memory());

/// The same, recorded: keeps the states that options.plan says and a copy of the parameters as they are now. The
/// gradient is the same to the last bit whatever the plan.
template <class T>
Trajectory<T> rollout(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options,
                      std::type_identity_t<std::shared_ptr<StateObserver<T>>> observer = nullptr);

/// One step; for policies in the loop.
template <class T>
State<T> step(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
              RolloutOptions options);

/// The same numbers as somebody else's, in `memory`, which may be of another device: no gradient passes from the copy
/// to what it was made from.
template <class T>
Buffer<T> detach(const Buffer<T>& buffer, Memory& memory = default_memory()) {
  return buffer.clone(memory);
}
template <class T>
State<T> detach(const State<T>& state, Memory& memory = default_memory()) {
  State<T> copy = state;
  copy.q = state.q.clone(memory);
  copy.qd = state.qd.clone(memory);
  if (!state.reported().empty()) copy.set_reported(state.reported().clone(memory), state.ways().clone(memory));
  return copy;
}

template <class T>
Control<T> detach(const Control<T>& control, Memory& memory = default_memory()) {
  Control<T> copy;
  copy.u = control.u.clone(memory);
  return copy;
}

/// World poses of bodies in every state of `q` (rows state·nq + component): rows (state·bodies + k)·12 hold position
/// (3) and rotation matrix (9, column by column).
template <class T>
Buffer<T> body_poses(Tape<T>* tape, const Model& model, const Buffer<T>& q, std::span<const int> bodies,
                     const RolloutOptions& options, Memory& memory = default_memory());

/// The same with velocities, of states q and qd (rows state·nv + component): rows (state·bodies + k)·18 hold position,
/// rotation matrix, velocity of the link's origin (3) and angular velocity (3), in world axes.
template <class T>
Buffer<T> body_motions(Tape<T>* tape, const Model& model, const State<T>& states, std::span<const int> bodies,
                       const RolloutOptions& options, Memory& memory = default_memory());

}  // namespace backdrive
