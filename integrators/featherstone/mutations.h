#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// Deliberate faults in the adjoint, the traps of the theory, planted one at a time by the tests to prove that a
// gradient test can fail. In every build but the test's own copy of the kernels, mutated() is constant false.
#include "engine/real.h"

namespace backdrive::featherstone {

enum class Mutation {
  none,
  force_turn,               ///< Z without δ_p ×* F
  acceleration_turn,        ///< Z without a_p ×* A
  velocity_turn,            ///< Z without v_p ×* (2 H + v_p ×* A)
  velocity_turn_of_A,       ///< Z with v_p ×* 2 H alone
  own_motion,               ///< Z with the link's own δ, a and v in place of its parent's
  root_gravity,             ///< Z of a root without gravity
  velocity_carry,           ///< H without s ×* A
  velocity_half,            ///< q̇̄ from T alone
  gyroscopic_term,          ///< T without δ × Σ ω
  com_lever,                ///< T without h × (δ_lin × ω)
  sign_of_velocity,         ///< sign of q̇̄ from the bodies
  bias_acceleration,        ///< gradients of mass and com from a_c without ω × v_c
  inertia_in_world_axes,    ///< inertia's gradient left in world axes
  com_in_world_axes,        ///< com's gradient left in world axes
  inertia_off_diagonal,     ///< off-diagonals of the inertia's gradient counted once
  placement_without_shift,  ///< placement rotation without − p × Z_lin
  root_translation,         ///< a root's translation without its part in the poses
  pose_lever,               ///< poses' Z without origin × position cotangent
  pose_turn,                ///< poses without what their rotation receives
  damping_of_old_velocity,  ///< damping gradients with q̇ for q̇⁺
  drive_of_old_position,    ///< drive stiffness gradient with q + Δt q̇ for q + Δt q̇⁺
  limit_curvature,          ///< implicit limits without r″
  friction_slope,           ///< joint friction without the derivative of its factor
  drive_velocity,           ///< q̇̄ of a drive without Δt k
  saturation,               ///< gradients through a saturated drive
  effort_limit_sign,        ///< effort limit's gradient with the sign of a positive effort
  armature_sign,
  drift_transport,  ///< q̇̄⁺ without Δt q̄⁺
  gravity_sign,
  free_bias,           ///< q̇̄ of a free root without [A_lin × ṗ; ω × A_lin]
  free_turn,           ///< q̄ of a free root without its turn
  free_turn_velocity,  ///< q̇̄ and q̄ of a free root with its couple at the old ω
  free_turn_inertia,   ///< the same of its inertia
  turn_jacobian,       ///< ω̄⁺ without the Jacobian of exp
  turn_transport,      ///< θ̄ of a rotation left where θ̄⁺ was
  frozen_predictor,    ///< contact's force with the predictor held
  frozen_drag,         ///< the second predictor with its drag held
  frozen_block,        ///< the predictors with the first body's block held
  block_normal,        ///< the predictor's block without its normal's cotangent
  block_of_change,     ///< the twist of Δv1 without θ K P
  smooth_of_contacts,  ///< v_s without what contacts send it
  contact_start,       ///< q̇ without what contacts send it
  contact_normal,      ///< contact points without their normal's cotangent
  kick_inertia,        ///< the twists of Δv and Δv1 without w·I Δv + w1·I Δv1
  kick_increment,      ///< implicit joint forces without w Δv + w1 Δv1
  half_kick,           ///< Δv̄ with all of the drift's cotangent
  turn_force,          ///< friction against turns with the normal force of its bounds held
  turn_block,          ///< with the predictors' angular blocks held
  turn_drag,           ///< with the second predictor's torsion held
  turn_start,          ///< q̇ without what friction against turns sends it
  count
};

// In the namespace of the kernels' own copy: an out-of-line mutated() of one must never be linked into another.
inline namespace BACKDRIVE_KERNELS {
#if defined(BACKDRIVE_MUTATIONS)
inline Mutation planted_mutation = Mutation::none;
inline bool mutated(Mutation m) {
  return planted_mutation == m;
}
#else
BACKDRIVE_HD constexpr bool mutated(Mutation) {
  return false;
}
#endif
/// x, or zero where the fault that leaves it out is planted.
template <class X>
BACKDRIVE_INLINE X unless(Mutation m, const X& x) {
  return mutated(m) ? X{} : x;
}
}  // namespace BACKDRIVE_KERNELS

}  // namespace backdrive::featherstone
