#pragma once
// Dynamics as functions of a batch of states, recorded or not: what controllers, estimators and losses of one's own ask
// for beside a rollout.
#include <array>

#include "autodiff/tape/rollout.h"

namespace backdrive {

/// q̈ in M(q) q̈ + h(q, q̇) = τ of every world, armature included, gravity less what is compensated; damping, friction,
/// springs, limits, drives, couplings and contact are no part of it, so that their parameters have a gradient of zero
/// here. `tau`: a row for each velocity, N·m or N; the result likewise, rad/s² or m/s².
///
/// With a tape, which may be null, gradients reach q (tangent rows, docs/orientations.md), q̇, τ and the parameters of
/// bodies, frames, axes, armature and gravity. O(worlds · links). T is float or double. Throws Error (usage) for shapes
/// that do not agree, buffers on a device, and models of maximal coordinates. Featherstone, Rigid Body Dynamics
/// Algorithms (2008), §7.3, as the integrator has it (docs/theory.md (1)-(8), with Δt = 0).
template <class T>
Buffer<T> forward_dynamics(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                           const Buffer<T>& tau, int threads = 1, Memory& memory = default_memory());

/// τ in the same equation, of the accelerations `qdd`; zeros give the bias forces h(q, q̇). Likewise in all else.
/// Recursive Newton-Euler, ibid. §5.3. O(worlds · links).
template <class T>
Buffer<T> inverse_dynamics(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                           const Buffer<T>& qdd, int threads = 1, Memory& memory = default_memory());

/// h(q, q̇) in the same equation: gravity, Coriolis and centrifugal forces.
template <class T>
Buffer<T> bias_force(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state, int threads = 1,
                     Memory& memory = default_memory());

/// M(q), rows row · nv + column, kg·m², kg·m or kg; without a tape, or recorded. O(worlds · nv · links).
template <class T>
Buffer<T> mass_matrix(const Model& model, const Buffer<T>& q, int threads = 1, Memory& memory = default_memory());
template <class T>
Buffer<T> mass_matrix(std::type_identity_t<Tape<T>*> tape, const Model& model, const Buffer<T>& q, int threads = 1,
                      Memory& memory = default_memory());

/// J(q) of a point of a body, m in the body's axes from its origin: rows row · nv + column, three of the point's
/// velocity and three of the body's angular velocity, world axes, by q̇. Recorded or not; gradients reach q and where
/// joints sit. O(worlds · nv · links).
template <class T>
Buffer<T> jacobian(std::type_identity_t<Tape<T>*> tape, const Model& model, const Buffer<T>& q, int body,
                   const std::array<double, 3>& point, Memory& memory = default_memory());

/// Of q̈ of forward_dynamics(): rows row · nv + column.
template <class T>
struct DynamicsDerivatives {
  Buffer<T> by_position;  ///< tangent space (docs/orientations.md)
  Buffer<T> by_velocity, by_effort;
};

/// By the adjoint, a row a pass; without a tape, or recorded. O(worlds · nv · links). Gradients reach q (tangent rows),
/// q̇, τ and the parameters that forward_dynamics() has gradients for, by an adjoint on dual numbers for each row that a
/// loss reads: exact, in double precision, O(worlds · nv · links) too, some 30 times the time of the matrices.
/// docs/theory.md, "Gradients of first derivatives".
template <class T>
DynamicsDerivatives<T> dynamics_derivatives(const Model& model, const State<T>& state, const Buffer<T>& tau,
                                            int threads = 1, Memory& memory = default_memory());
template <class T>
DynamicsDerivatives<T> dynamics_derivatives(std::type_identity_t<Tape<T>*> tape, const Model& model,
                                            const State<T>& state, const Buffer<T>& tau, int threads = 1,
                                            Memory& memory = default_memory());

}  // namespace backdrive
