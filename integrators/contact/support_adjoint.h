#pragma once
// Adjoint of support.h, (C12), which asks of an integrator, too,
//
//   add_mass_bar(bar, link, m̅, l̅)     adds to the cotangents of its mass and of its lift
#include "integrators/contact/step_adjoint.h"
#include "integrators/contact/support.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// (A11), after adj_forces() of the step: support_bars[].rise has the cotangents of v_s of the trees' roots, in world
/// axes; adds to those of the contacts' depths and normals and of parameters.
template <class Space, class Bar>
BACKDRIVE_CALLED void adj_support(Space& ws, const Bar& bar) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const Real zero = constant<Real>(0), two = constant<Real>(2), half = constant<Real>(0.5) * ws.dt;
  const Vec3<Real> g = gravity_of(ws);
  Vec3<Real> g_bar = zero3<Real>();
  each_contact(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int) {
    each_loose_root(ws, pair, [&](int root, const Real& sign) {
      space.support_bars[root].rise += bar_of(ws, c).state.start.lin * sign;
    });
  });
  each_loose_tree(ws, [&](int i) {
    const Support<Real>& tree = space.supports[i];
    Support<Real>& own = space.support_bars[i];
    const BorneShare<Real> s(tree, g);
    const Real part = half * s.value * s.fall;  // rise = −g part
    const Real along = dot(g, own.rise);
    own.borne = -(half * s.fall * along * s.slope) * s.by_borne;
    const Real most_bar = -(own.borne * s.ratio);  // of w g²
    g_bar += g * (two * most_bar * tree.weight) - own.rise * part;
    const Real per_fall = half * s.value * s.per_mass * along;
    own.mass = per_fall * s.fall;
    own.weight = most_bar * dot(g, g) - per_fall;
  });
  for (int k = 0; k < space.touching_count; ++k) {
    const TouchingPair<Real>& pair = space.touching[k];
    PairLawBar<Real> law_bar = zero_law_bar<Real>();
    Real along_bar = zero;  // of N n·g
    each_loose_root(ws, pair, [&](int root, const Real& sign) { along_bar -= sign * space.support_bars[root].borne; });
    for (int n = pair.first; n < pair.first + pair.count; ++n) {
      const Contact<Real>& c = space.contacts[n];
      const DepthPath<Real> path = still_path(c);
      const NormalForce<Real> N = normal_force<Real>(pair.law.material, path, pair.law.dt, false);
      const DepthPath<Real> depth_bar = adj_normal_force<Real>(pair.law.material, N, path, pair.law.dt,
                                                               along_bar * dot(c.state.normal, g), law_bar.material);
      ContactState<Real>& own = space.bars[n].state;
      own.depth += depth_bar.start + depth_bar.end + depth_bar.late;
      own.normal += g * (along_bar * N.value);
      g_bar += c.state.normal * (along_bar * N.value);
    }
    if (bar.wants_parameters()) adj_pair_law(ws, pair, law_bar, bar);
  }
  if (!bar.wants_parameters()) return;
  *bar.gravity += g_bar;
  for (int i = 0; i < space.link_count; ++i) {
    const int root = loose_root_of(ws, i);
    if (root < 0) continue;
    const Support<Real>& own = space.support_bars[root];
    const Real mass = zero + mass_of(ws, i);
    add_mass_bar(bar, i, own.mass + own.weight * fall_of(ws, i), -(own.weight * mass));
  }
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
