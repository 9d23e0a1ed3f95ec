#pragma once
// Inverse dynamics, energies and poses by the classical route in link coordinates: a second opinion on the kernels,
// which share no code with it, and the place to ask for one configuration at a time. Nothing here is fast; each call
// allocates.
//
// Vectors are indexed as the kernels' states are: positions by topology.links[i].q, the others by topology.links[i].v;
// rad or m, rad/s or m/s, rad/s² or m/s², N·m or N.
#include <array>
#include <vector>

#include "models/model.h"

namespace backdrive::reference {

/// The efforts that give the accelerations `qdd` in world `world`'s parameters: M q̈ + h(q, q̇), armature included;
/// damping, friction, limits and drives are no part of it. Recursive Newton-Euler, Featherstone (2008), §5.3. O(links).
/// Scalar is double or std::complex<double>: with x + iε, ε = 1e-30, the imaginary part is ε times the derivative along
/// x, exact to rounding.
template <class Scalar>
std::vector<Scalar> inverse_dynamics(const Model& model, const std::vector<Scalar>& q, const std::vector<Scalar>& qd,
                                     const std::vector<Scalar>& qdd, int world = 0);

/// ½ q̇ᵀ M q̇ in J, armature included. O(links).
double kinetic_energy(const Model& model, const std::vector<double>& q, const std::vector<double>& qd, int world = 0);

/// −Σ m gᵀ c in J: zero with every centre of mass at the world's origin. Springs of drives and limits are no part of
/// it. O(links).
double potential_energy(const Model& model, const std::vector<double>& q, int world = 0);

struct LinkPose {
  std::array<double, 3> position;  ///< m, link origin in the world
  std::array<double, 9> rotation;  ///< link axes in the world, column by column
};
/// Poses of all bodies, indexed as the model's bodies. O(links).
std::vector<LinkPose> body_poses(const Model& model, const std::vector<double>& q, int world = 0);

}  // namespace backdrive::reference
