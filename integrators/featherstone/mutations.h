#pragma once
// Deliberate faults in the adjoint, the traps of the theory, planted one at a time by the tests to prove that a gradient
// test can fail. In every build but the test's own copy of the kernels, mutated() is constant false.

namespace backdrive::featherstone {

enum class Mutation {
  none,
  subspace_cotangent,       ///< Z without S ×* S̄
  velocity_carry,           ///< V of the parent without s ×* A
  bias_in_velocity,         ///< q̇̄ from V alone, without v ×* A
  gyroscopic_term,          ///< V without J ω × δ + J g
  sign_of_velocity,         ///< sign of q̇̄ from the bodies
  com_lever,                ///< Z without com × Z_l
  inertia_in_world_axes,    ///< mass parameters left in world axes
  placement_without_shift,  ///< placement rotation without − p × Z_lin
  damping_of_old_velocity,  ///< damping gradients with q̇ for q̇⁺
  limit_curvature,          ///< implicit limits without r″
  friction_slope,           ///< joint friction without the derivative of its factor
  drive_velocity,           ///< q̇̄ of a drive without Δt k
  drift_transport,          ///< q̇̄⁺ without Δt q̄⁺
  gravity_sign,
  count
};

#if defined(BACKDRIVE_MUTATIONS)
inline Mutation planted_mutation = Mutation::none;
inline bool mutated(Mutation m) { return planted_mutation == m; }
#else
constexpr bool mutated(Mutation) { return false; }
#endif

}  // namespace backdrive::featherstone
