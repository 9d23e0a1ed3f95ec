#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// Deliberate faults in the adjoint, planted one at a time by the tests to prove that a gradient test can fail. In every
// build but the test's own, mutated() is constant false.
#include "engine/real.h"

namespace backdrive::semi_implicit {

enum class Mutation {
  none,
  second_solve,          ///< the velocity after the kick in place of u
  row_direction_u,       ///< rows' directions without σ u
  row_direction_next,    ///< rows' directions without the part of the velocity after the kick
  row_direction_old,     ///< rows' directions without the part of the velocity before it
  row_axes,              ///< rows' directions held while their bodies turn
  row_arm,               ///< rows' arms held while their bodies move
  old_rate,              ///< rows without the cotangent of the velocity before the kick
  predicted_pose,        ///< attachment errors as if at the pose before the step
  predicted_velocity,    ///< predicted pose without its velocity
  error_torque,          ///< pose's cotangent of the attachment errors without its lever
  armature_drift,        ///< armature without the drift's change of rates
  increment_old,         ///< q̈ of a joint's effort without the old velocity
  joint_angle,           ///< effort of a joint as if it did not depend on the position
  inertia_turn,          ///< momenta as if the inertia did not turn with its body
  momentum_of_com,       ///< velocity of the com without its lever
  drift_jacobian,        ///< turn of the drift without the Jacobian of exp
  drift_gyroscopic,      ///< drift's angular velocity taken to be that of the kick
  new_velocity_turn,     ///< velocity after the step as if it did not turn with the body
  new_lever,             ///< new origin as if its lever did not turn
  damping_of_attach,     ///< attachment damping's gradient with the old rate
  stiffness_of_attach,   ///< attachment stiffness's gradient without the prediction's correction
  child_frame_turn,      ///< child frame's orientation without the rows' directions
  parent_frame_lever,    ///< parent frame's orientation without the lever of the distance
  com_of_parent,         ///< parent's com without its joints
  axis_of_child,         ///< axis without the child's frame
  mass_of_gravity,       ///< mass without its weight
  inertia_off_diagonal,  ///< off-diagonals of the inertia's gradient counted once
  gravity_sign,
  half_kick,           ///< Δv̄ with all of the cotangent of v_d
  smooth_of_contacts,  ///< v_s without what contacts send it
  kick_inertia_turn,   ///< solves of contact as if inertias did not turn with their bodies
  kick_mass,           ///< and as if they had no masses
  kick_increment,      ///< and no attachments' stiffness, nor what else resists rows
  kick_direction,      ///< and as if their rows' directions were held
  read_turn,           ///< coordinates as if they did not depend on how bodies are turned
  read_direction,      ///< rates of joints as if their directions did not move
  place_lever,         ///< a placed body's angular velocity without its lever
  place_axis,          ///< rates of joints placed without the turn of their axes
  count
};

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

}  // namespace backdrive::semi_implicit
