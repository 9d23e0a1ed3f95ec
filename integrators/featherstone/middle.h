#pragma once
// Velocity terms of a step's middle: equation (24) of docs/theory.md.
//
// Those of its start leave the step of first order: what links that turn do to one another changes the energy of their
// motion by some |ω|² Δt a second. So where joints turn fast q̈ is solved for twice with the same factors, the second
// time with the velocity terms of z = q̇ + ½ μ Δt q̈₁, as the positions of a step stand at its middle.
#include "integrators/featherstone/couplings.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Of a link's velocity and bias acceleration, and of its body's bias force, what z changes.
template <class Real>
struct MiddleChange {
  Spatial<Real> v, a, force;
  Vec3<Real> spin;  ///< ½ μ Δt u of (12), of a body that spins
};

/// From the start of a step to where the velocity terms of a tree are taken, ½ μ Δt; 0 of what flies as one body, whose
/// terms are those of the whole step (26).
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real time_to_middle(const Workspace<Layout>& ws, int root) {
  using Real = typename Layout::Real;
  return ws.links[root].rigid ? constant<Real>(0) : constant<Real>(0.5) * ws.dt * ws.middle.share[root];
}

/// visit(link, MiddleChange) root to leaves, after the first solve, and z into ws.middle.rates. With the velocities v
/// and w = Σ S (z − q̇), bias accelerations a = a_p + v_p × v and forces I a + v ×* I v change by
///   a_p's + v_p × w + w_p × (v + w)        I a's + v ×* I w + w ×* I (v + w)
/// and gyroscopic couples (12) by what correction_from says. Nothing changes, to the last bit, where μ = 0.
template <class Layout, class Visit>
BACKDRIVE_HD void each_middle_change(Workspace<Layout>& ws, const Visit& visit) {
  using Real = typename Layout::Real;
  struct Moving {
    Spatial<Real> v, w, a;
  };
  static_assert(sizeof(Moving) <= kStackNumbers<Real> * sizeof(Real));
  const Moving rest{zero6<Real>(), zero6<Real>(), zero6<Real>()};
  Moving parent = rest;
  Real share = constant<Real>(0), time = constant<Real>(0);
  Stack<Moving> branchings(ws.stack);
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.parent < 0) {
      parent = rest;
      share = ws.middle.share[i];
      time = time_to_middle(ws, i);
    } else if (link.parent != i - 1) {
      parent = link.last_child ? branchings.pop() : branchings.last();
    }
    Moving own = parent;
    const int dofs = joint_size(link.type).nv;
    for (int v = link.v; v < link.v + dofs; ++v) {
      const Real change = time * ws.middle.qdd[v];
      ws.middle.rates[v] = ws.qd[v] + change;
      own.v += ws.dof[v].S * ws.qd[v];
      own.w += ws.dof[v].S * change;
    }
    if (link.type == JointType::free) {
      own.a.lin = plus_cross(cross(own.v.lin, own.w.ang), own.w.lin, own.v.ang + own.w.ang);
    } else if (dofs > 0 && link.parent >= 0) {
      own.a = plus_cross_motion(plus_cross_motion(parent.a, parent.v, own.w), parent.w, own.v + own.w);
    }
    const RigidInertia<Real>& I = ws.link[i].I;
    MiddleChange<Real> change{own.w, own.a, I * own.a, zero3<Real>()};
    change.force = plus_cross_force(change.force, own.v, I * own.w);
    change.force = plus_cross_force(change.force, own.w, I * (own.v + own.w));
    if (link.spins) {
      const auto start = free_turn(ws, link, own.v.ang, parent.v.ang, ws.qd);
      change.spin = start.lost() * share;
      const auto late =
          free_turn(ws, link, own.v.ang + own.w.ang + change.spin, parent.v.ang + parent.w.ang, ws.middle.rates);
      const Vec3<Real> couple = late.correction_from(change.spin) - start.correction();
      change.force.ang += choose(value_of(share) > value_of(constant<Real>(0)), couple, zero3<Real>());
    }
    visit(i, change);
    if (branches(ws.links, i)) branchings.push(own);
    parent = own;
  }
}

/// Where the change of a body's bias force waits for the sweep to the root.
template <class Layout>
BACKDRIVE_INLINE Spatial<typename Layout::Real>& force_change(Workspace<Layout>& ws, int i) {
  if constexpr (kIsAdjoint<Layout>) {
    return ws.whip[i].force_change;
  } else {
    return ws.link[i].force;
  }
}

/// (24), after articulate(): D⁻¹ r in dof[].x from that of the first solve to that of the second.
template <class Layout>
BACKDRIVE_CALLED void take_middle_forces(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  using Dof = typename Layout::Dof;
  Real* const qdd = ws.middle.qdd;
  const auto first_solve = [&]() __attribute__((always_inline)) {
    if constexpr (Layout::coupled) {
      if (is_coupled(ws)) {
        Real* const remainders = ws.middle.rates;  // which is not needed yet
        for (int v = 0; v < ws.nv; ++v) remainders[v] = ws.dof[v].x;
        begin_coupled_motion(ws);
        correct(ws, ws.coupling.smooth, CouplingLoad::efforts, &CouplingStep<Real>::first);
        for (int v = 0; v < ws.nv; ++v) {
          qdd[v] = ws.coupling.solution[v];
          ws.dof[v].x = remainders[v];
        }
        return;
      }
    }
    solve_outwards_with(
        ws, OwnFactors{}, [&](Dof & dof, const Real& x) __attribute__((always_inline)) { qdd[&dof - ws.dof] = x; },
        [](int, const Spatial<Real>&) __attribute__((always_inline)){});
  };
  first_solve();
  each_middle_change(
      ws, [&](int i, const MiddleChange<Real>& change)
              __attribute__((always_inline)) { force_change(ws, i) = change.force; });
  gather_forces(
      ws, [&](int i, Spatial<Real>& force) __attribute__((always_inline)) { force += force_change(ws, i); },
      [&](int, int v, Spatial<Real>& force) __attribute__((always_inline)) {
        Dof& dof = ws.dof[v];
        const Real r = -dot(dof.S, force);
        dof.x += dof.inverse * r;
        force += dof.UD * r;
      });
}

/// Equations (1)-(4), (14)-(16) and (24) of a step without contact: q̈ from ws.q, ws.qd and ws.control into dof[].*x,
/// and visit(i, δ) with the motion that it causes of each link.
template <class Layout, class Solution, class Visit>
BACKDRIVE_HD void solve_step(Workspace<Layout>& ws, Solution x, const Visit& visit) {
  step_kinematics(ws);
  articulate(ws);
  if (ws.middle.on) take_middle_forces(ws);
  solve_motion(ws, x, visit);
}
template <class Layout>
BACKDRIVE_HD void forward_dynamics(Workspace<Layout>& ws) {
  solve_step(ws, &Layout::Dof::x, [](int, const auto&) __attribute__((always_inline)){});
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
