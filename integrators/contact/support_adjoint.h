#pragma once
// Adjoint of support.h, (C12), which asks of an integrator, too,
//
//   add_mass_bar(bar, link, m̅, l̅)     adds to the cotangents of its mass and of its lift
#include "integrators/contact/step_adjoint.h"
#include "integrators/contact/support.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Its adjoint, after adj_forces() of the step: supports[].rise_bar has the cotangents of v_s of the trees' roots, in
/// world axes; adds to those of the contacts' depths and normals and of parameters.
template <class Space, class Bar>
BACKDRIVE_CALLED void adj_support(Space& ws, const Bar& bar) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const Real zero = constant<Real>(0), one = constant<Real>(1), half = constant<Real>(0.5);
  const Vec3<Real> g = gravity_of(ws);
  const Real square = dot(g, g);
  Vec3<Real> g_bar = zero3<Real>();
  each_contact(ws, [&](const TouchingPair<Real>& pair, const Contact<Real>& c, int) {
    each_loose_root(ws, pair, [&](Support<Real>& tree, const Real& sign) {
      tree.rise_bar += bar_of(ws, c).state.start.lin * sign;
    });
  });
  for (int i = 0; i < space.link_count; ++i) {
    if (loose_root_of(ws, i) != i) continue;
    Support<Real>& tree = space.supports[i];
    const Real most = tree.weight * square;
    const BorneShare<Real> s(tree.borne, most);
    const Real mass = select(value_of(tree.mass) > value_of(zero), tree.mass, one);
    const Real part = half * ws.dt * s.value / mass;  // rise = −g w part
    const Real along = dot(g, tree.rise_bar);
    const Real ratio_bar = -(half * ws.dt * tree.weight / mass) * along * s.slope;
    const Real most_or_one = select(value_of(most) > value_of(zero), most, one);
    // From here on these are cotangents.
    g_bar -= tree.rise_bar * (tree.weight * part);
    tree.borne = ratio_bar / most_or_one;
    const Real most_bar = -(tree.borne * s.ratio);
    g_bar += g * (constant<Real>(2) * most_bar * tree.weight);
    tree.mass = along * tree.weight * part / mass;
    tree.weight = most_bar * square - along * part;
  }
  for (int k = 0; k < space.touching_count; ++k) {
    const TouchingPair<Real>& pair = space.touching[k];
    PairLawBar<Real> law_bar = zero_law_bar<Real>();
    Real along_bar = zero;  // of N n·g
    each_loose_root(ws, pair, [&](const Support<Real>& tree, const Real& sign) { along_bar -= sign * tree.borne; });
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
    const Support<Real>& tree = space.supports[root];
    const Real mass = zero + mass_of(ws, i);
    add_mass_bar(bar, i, tree.mass + tree.weight * fall_of(ws, i), -(tree.weight * mass));
  }
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
