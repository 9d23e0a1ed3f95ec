#pragma once
// The first step of a motion that is given by positions and velocities alone.
//
// q̇ of a body at rest is half a step of gravity ahead (docs/contact.md, section 2): it is what the step before has
// left. Where no step was before, a body that lies at its depth at rest would begin ½ g Δt short, and sink. So trees
// that nothing holds begin, as far as contacts bear their weight, with the velocity that a step at rest would have
// left:
//
//   (C12) q̇ −= ½ Δt g w/m s(r)      r = Σ −N(d₀, d₀) n·g / (w g²), within [0, 1]      s = r² (3 − 2 r)
//
// of the mass m and the weight w g of the tree, w = Σ mᵢ (1 − lift). It moves the tree as a whole and enters a, b and
// v_s alike. What flies, and what is put where it just touches, has s = 0; more than is borne nothing is lifted by,
// however deep it begins; and s is flat at both ends, so that what rests has no kink there.
//
// Of an integrator it asks, beside what space.h lists,
//
//   loose_root_of(ws, link)           the link that its tree is known by; −1 where something holds that, and for −1
//   fall_of(ws, link)                 1 − lift: what part of its weight acts on it
//   gravity_of(ws)                    g
//
// and that v_s of a tree's root be raised by `rise` of its support.
#include "integrators/contact/balance.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// r, and s and its derivative by r; and what lies under fractions, 0 of what has no weight.
template <class Real>
struct BorneShare {
  Real by_borne, per_mass;  ///< 1/(w g²), 1/m
  Real fall;                ///< w/m
  Real ratio, value, slope;

  BACKDRIVE_INLINE BorneShare(const Support<Real>& tree, const Vec3<Real>& g) {
    const Real zero = constant<Real>(0), one = constant<Real>(1), two = constant<Real>(2), three = constant<Real>(3);
    const Real most = tree.weight * dot(g, g);
    const auto has_weight = value_of(most) > value_of(zero);
    by_borne = select(has_weight, one / select(has_weight, most, one), zero);
    per_mass = select(has_weight, one / select(has_weight, tree.mass, one), zero);
    fall = tree.weight * per_mass;
    ratio = clamped(tree.borne * by_borne, zero, one);
    value = ratio * ratio * (three - two * ratio);
    slope = constant<Real>(6) * ratio * (one - ratio);
  }
};

/// Whether (C12) may move something in this step.
template <class Space>
BACKDRIVE_INLINE bool begins_supported(const Space& ws) {
  return ws.contact.begins && ws.contact.contact_count > 0;
}

/// visit(root) of every tree that nothing holds.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_loose_tree(const Space& ws, const Visit& visit) {
  for (int i = 0; i < ws.contact.link_count; ++i) {
    if (loose_root_of(ws, i) == i) visit(i);
  }
}

/// N(d₀, d₀): of a contact whose depth does not change.
template <class Real>
BACKDRIVE_INLINE DepthPath<Real> still_path(const Contact<Real>& c) {
  return {c.state.depth, c.state.depth, c.state.depth};
}

/// visit(root of the tree, 1 or −1: which way the pair's forces act on it), for both sides of a pair.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_loose_root(const Space& ws, const TouchingPair<typename Space::Real>& pair,
                                      const Visit& visit) {
  using Real = typename Space::Real;
  for (int side = 0; side < 2; ++side) {
    const int root = loose_root_of(ws, pair.link(side));
    if (root >= 0) visit(root, constant<Real>(side == 0 ? 1 : -1));
  }
}

/// (C12) for all trees and contacts, of a step that begins a motion.
template <class Space>
BACKDRIVE_CALLED void support(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const Real zero = constant<Real>(0);
  const Vec3<Real>& g = gravity_of(ws);
  each_loose_tree(ws, [&](int i) { space.supports[i] = {zero, zero, zero, zero3<Real>()}; });
  for (int i = 0; i < space.link_count; ++i) {
    const int root = loose_root_of(ws, i);
    if (root < 0) continue;
    const Real mass = zero + mass_of(ws, i);
    space.supports[root].mass += mass;
    space.supports[root].weight += mass * fall_of(ws, i);
  }
  each_contact(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int) {
    const Real N = normal_force<Real>(pair.law.material, still_path(c), pair.law.dt, false).value;
    each_loose_root(
        ws, pair, [&](int root, const Real& sign) { space.supports[root].borne -= sign * N * dot(c.state.normal, g); });
  });
  each_loose_tree(ws, [&](int i) {
    const BorneShare<Real> s(space.supports[i], g);
    space.supports[i].rise = g * (constant<Real>(-0.5) * ws.dt * s.value * s.fall);
  });
  each_contact(ws, [&](const TouchingPair<Real>& pair, Contact<Real>& c, int) {
    each_loose_root(ws, pair, [&](int root, const Real& sign) {
      const Vec3<Real> rise = space.supports[root].rise * sign;
      c.state.start.lin += rise;
      c.state.smooth.lin += rise;
    });
  });
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
