#pragma once
// What the kernels know of a model: per link, parameters turned into the axes in which the step is cheapest.
//
// Internal axes: each moving link's frame is turned by a constant A with A e_z = axis, so that every joint moves about
// or along z. A is the smallest such rotation; results do not depend on that choice.
//
// link_parameters.h makes them, and turns their cotangents into gradients of the parameters.
#include "engine/dual.h"
#include "engine/spatial.h"
#include "integrators/contact/shape_constants.h"
#include "integrators/rollout/coupling_constants.h"

namespace backdrive::featherstone {

template <class C>
struct LinkConstants {
  Mat3<C> rotation;     ///< joint axes in the parent link's axes, A_pᵀ R A
  Vec3<C> translation;  ///< joint origin in the parent link's axes, A_pᵀ t
  C mass;
  Vec3<C> com;      ///< Aᵀ com
  Sym3<C> inertia;  ///< Aᵀ J A, about the com
  JointEfforts<C> efforts;
  C lift;  ///< share of the weight that is cancelled
};
template <class C>
constexpr int kLinkConstants = kNumbers<C, LinkConstants<C>>;

/// Cotangent of LinkConstants; rotations as tangents on the right: rotation·exp(θ), alignment·exp(η).
template <class C>
struct LinkGradient {
  Vec3<C> rotation, translation;
  C mass;
  Vec3<C> com;
  Sym3<C> inertia;  ///< with respect to the six stored numbers: off-diagonals count twice
  JointEfforts<C> efforts;
  C lift;
  Vec3<C> alignment;
};
template <class C>
constexpr int kLinkGradients = kNumbers<C, LinkGradient<C>>;

template <class C>
constexpr int kCouplingConstants = kNumbers<C, CouplingConstants<C>>;

/// Rows of the constants of a world: LinkConstants per link, then 9 of alignment per link, 3 of gravity,
/// ShapeConstants per contact shape, CouplingConstants per coupling and a ratio per term of them.
template <class C>
BACKDRIVE_HD constexpr int alignment_row(int links) {
  return links * kLinkConstants<C>;
}
template <class C>
BACKDRIVE_HD constexpr int gravity_row(int links) {
  return links * (kLinkConstants<C> + 9);
}
template <class C>
BACKDRIVE_HD constexpr int shape_row(int links) {
  return gravity_row<C>(links) + 3;
}
template <class C>
BACKDRIVE_HD constexpr int coupling_row(int links, int shapes) {
  return shape_row<C>(links) + shapes * kShapeConstants<C>;
}
template <class C>
BACKDRIVE_HD constexpr int ratio_row(int links, int shapes, int couplings) {
  return coupling_row<C>(links, shapes) + couplings * kCouplingConstants<C>;
}
template <class C>
BACKDRIVE_HD constexpr int constant_rows(int links, int shapes, int couplings = 0, int terms = 0) {
  return ratio_row<C>(links, shapes, couplings) + terms;
}
/// Rows of their cotangents: LinkGradient per link and 3 of gravity; of rollouts, where there is contact, ShapeGradient
/// per contact shape, and the same of couplings and their terms as above.
template <class C>
BACKDRIVE_HD constexpr int gravity_gradient_row(int links) {
  return links * kLinkGradients<C>;
}
template <class C>
BACKDRIVE_HD constexpr int gradient_rows(int links, int shapes = 0, int couplings = 0, int terms = 0) {
  return gravity_gradient_row<C>(links) + 3 + shapes * kShapeGradients<C> + couplings * kCouplingConstants<C> + terms;
}

}  // namespace backdrive::featherstone
