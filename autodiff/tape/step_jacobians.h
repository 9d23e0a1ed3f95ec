#pragma once
// The linearised step: what iterative LQR, model-predictive control and estimators ask of a simulator.
#include "autodiff/tape/rollout.h"

namespace backdrive {

/// Derivatives of the state x⁺ that options.steps steps lead to, by the state x that they start from and by the
/// controls u of these steps: δx⁺ = A δx + B δu. Of a state, x are its positions' tangent rows, one for each velocity
/// (add_tangent, models/coordinates.h), and then its velocities q̇: 2 nv numbers. State::reported() is left out: q̇ moved
/// x to where it is.
template <class T>
struct StepJacobians {
  int rows = 0;          ///< 2 nv
  int control_rows = 0;  ///< options.steps · nu
  Buffer<T> A;           ///< [row·rows + column][world]
  Buffer<T> B;           ///< [row·control_rows + column][world]; empty where there are no controls

  T by_state(int row, int column, int world) const { return A(row * rows + column, world); }
  T by_control(int row, int column, int world) const { return B(row * control_rows + column, world); }
};

/// Of every world of `state`, a node of a trajectory in each or a batch of any: with the limits, drives, friction and
/// contact that acted, by the adjoint, a row a cotangent; of one step of joint coordinates without contact by a kernel
/// of its own, forward dynamics once and half the rows. `control` as rollout() has it, empty: no efforts, and no B. In
/// worlds that stopped, NaN. Throws as rollout() does. O(worlds · nv · steps · links) time; memory of some thousand
/// recorded worlds at a time.
///
/// `options` as for a recorded rollout; its gradient window and memory plan are left out. Parameters are the same in
/// all worlds (else Error, usage). Buffers are in the host's memory.
///
/// With a tape, which may be null, gradients reach the state (tangent rows), the controls and all parameters of the
/// model, by a rollout on dual numbers and its adjoint for each row of A and B in each world that a loss reads: exact,
/// in double precision, some thousand at a time. docs/theory.md, "Gradients of first derivatives".
template <class T>
StepJacobians<T> step_jacobians(const Model& model, const State<T>& state, const Control<T>& control,
                                RolloutOptions options);
template <class T>
StepJacobians<T> step_jacobians(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                                const Control<T>& control, RolloutOptions options);

}  // namespace backdrive
