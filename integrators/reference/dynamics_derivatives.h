#pragma once
// How accelerations change with state and efforts: the matrices that a linearisation needs. Conventions as in
// inverse_dynamics.h; small changes of positions in tangent space, a component per velocity (models/coordinates.h).
#include <vector>

#include "models/model.h"

namespace backdrive::reference {

/// Of q̈ = M⁻¹ (τ − h(q, q̇)), each nv × nv, row by row: a row per acceleration, a column per velocity.
struct DynamicsDerivatives {
  std::vector<double> q, qd, tau;
};

/// ∂q̈/∂τ = M⁻¹ and ∂q̈/∂x = −M⁻¹ ∂(inverse dynamics)/∂x at the q̈ that the efforts give: Carpentier and Mansard,
/// Analytical Derivatives of Rigid Body Dynamics Algorithms (2018), §III, but by complex steps in place of their
/// recursions, exact to rounding. Damping, friction, limits and drives are no part of it. O(nv · links + nv³). Throws
/// Error (usage) where the mass matrix is not positive definite.
DynamicsDerivatives dynamics_derivatives(const Model& model, const std::vector<double>& q,
                                         const std::vector<double>& qd, const std::vector<double>& tau, int world = 0);

}  // namespace backdrive::reference
