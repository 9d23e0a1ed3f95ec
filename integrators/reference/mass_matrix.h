#pragma once
// The mass matrix and forward dynamics through it: O(n²) and O(n³), the second route beside the O(n) kernels.
// Conventions as in inverse_dynamics.h.
#include <vector>

#include "models/model.h"

namespace backdrive::reference {

/// M(q), nv × nv, row by row (it is symmetric), armature on its diagonal; kg·m² between two hinges, kg·m between a
/// hinge and a slide, kg between two slides. Composite rigid bodies, Featherstone (2008), §6.2. O(links · depth).
std::vector<double> mass_matrix(const Model& model, const std::vector<double>& q, int world = 0);

/// q̈ from M q̈ = τ − h(q, q̇) by inverse dynamics and Cholesky, for the efforts τ alone: damping, friction, limits and
/// drives are no part of it. O(nv³).
std::vector<double> forward_dynamics_dense(const Model& model, const std::vector<double>& q,
                                           const std::vector<double>& qd, const std::vector<double>& tau,
                                           int world = 0);

}  // namespace backdrive::reference
