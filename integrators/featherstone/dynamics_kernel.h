#pragma once
// Forward and inverse dynamics as functions, M q̈ + h(q, q̇) = τ, and their adjoints, of the same parts as a step:
// equations (1)-(4) and (6)-(8) with Δt = 0 and no efforts but τ. The adjoint of both is −∂(w · (M q̈ + h)), with
//
//   forward: M w = q̈̄, τ̄ = w        inverse: w = −τ̄, q̈̄ = M τ̄
#include "integrators/featherstone/workspace.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Efforts of the control, and what moves with each degree of freedom alone.
template <class Layout>
struct GivenEfforts : SmoothSystem<Layout> {
  using Real = typename Layout::Real;

  template <int K>
  BACKDRIVE_INLINE auto joint(int i) const {
    return [&ws = this->ws, i ](int k) __attribute__((always_inline)) {
      return JointForce<Real>{ws.control[ws.links[i].v + k], constant<Real>(0) + ws.constants[i].efforts.armature};
    };
  }
};

/// Sᵀ of what force_of(link) sums to over the subtree of each degree of freedom, and armature · dof[].*x, into to[].
template <class Layout, class Number, class ForceOf>
BACKDRIVE_HD void gather_efforts(Workspace<Layout>& ws, Number x, const ForceOf& force_of, typename Layout::Real* to) {
  using Real = typename Layout::Real;
  gather_forces(
      ws, [&](int i, Spatial<Real>& force) __attribute__((always_inline)) { force += force_of(ws.link[i]); },
      [&](int i, int v, const Spatial<Real>& force) __attribute__((always_inline)) {
        const typename Layout::Dof& dof = ws.dof[v];
        to[v] = dot(dof.S, force) + dof.*x * ws.constants[i].efforts.armature;
      });
}

/// q̈ into dof[].qdd, and of each body its true acceleration and the force on it; `given` are τ or q̈.
template <class Layout>
BACKDRIVE_HD void move_bodies(Workspace<Layout>& ws, bool inverse) {
  using Real = typename Layout::Real;
  const auto keep = [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
    keep_acceleration(ws.link[i], delta);
  };
  kinematics(ws);
  if (inverse) {
    for (int k = 0; k < ws.nv; ++k) ws.dof[k].qdd = ws.control[k];
    return spread_motion(
        ws, [&](int v, const Spatial<Real>&) __attribute__((always_inline)) { return ws.dof[v].qdd; }, keep);
  }
  articulate_system(ws, GivenEfforts<Layout>{{ws}});
  solve_outwards(ws, &Layout::Dof::qdd, keep);
}

/// From the cotangents in dof[].x to those of the given numbers, in given_bar[]; w into dof[].x, with its δ.
template <class Layout>
BACKDRIVE_HD void weigh(Workspace<Layout>& ws, bool inverse, typename Layout::Real* given_bar) {
  using Real = typename Layout::Real;
  const auto keep = [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
    ws.link[i].delta = delta;
  };
  if (!inverse) {
    solve_inwards(ws);
    solve_outwards(ws, &Layout::Dof::x, keep);
    for (int k = 0; k < ws.nv; ++k) given_bar[k] = ws.dof[k].x;
    return;
  }
  for (int k = 0; k < ws.nv; ++k) ws.dof[k].x = -ws.dof[k].x;
  spread_motion(
      ws, [&](int v, const Spatial<Real>&) __attribute__((always_inline)) { return ws.dof[v].x; }, keep);
  gather_efforts(
      ws, &Layout::Dof::x, [](const auto& s) { return s.I * s.delta; }, given_bar);
  for (int k = 0; k < ws.nv; ++k) given_bar[k] = -given_bar[k];
}

/// run(scratch) with the bodies of a group of worlds moved.
template <class Real, class Run>
void with_moved_bodies(const DynamicsArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch,
                       const Run& run) {
  AdjointScratch<PackAdjoint<Real>> g;
  Arena arena(scratch);
  lay_out(a.launch, a.constants_bar != nullptr, first_world, arena, g);
  load_state(a.launch, a.q, a.qd, first_world, g.ws);
  const int nv = a.launch.topology.nv;
  load_rows(WorldGroup(a.launch, first_world), a.given, 0, nv, g.ws.control.numbers);
  g.ws.control.pad(a.launch.worlds, first_world, nv);
  move_bodies(g.ws, a.inverse);
  run(g);
}

template <class Real>
void dynamics_group(const DynamicsArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  with_moved_bodies<Real>(a, first_world, scratch, [&](auto& g) {
    using Dof = typename PackAdjoint<Real>::Dof;
    Real* const result = g.bar.qd;
    if (a.inverse) {
      gather_efforts(
          g.ws, &Dof::qdd, [](const auto& s) { return s.force; }, result);
    } else {
      for (int k = 0; k < g.ws.nv; ++k) result[k] = g.ws.dof[k].qdd;
    }
    store_rows(WorldGroup(a.launch, first_world), a.result, 0, g.ws.nv, result);
  });
}

template <class Real>
void dynamics_adjoint_group(const DynamicsArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  with_moved_bodies<Real>(a, first_world, scratch, [&](auto& g) {
    auto& ws = g.ws;
    const TopologyView& t = a.launch.topology;
    const WorldGroup group(a.launch, first_world);
    const int rows = gradient_rows<Real>(t.link_count);
    Real* const given = g.bar.control.numbers;
    for (int k = 0; k < t.nq; ++k) g.bar.q[k] = constant<Real>(0);
    for (int k = 0; k < t.nv; ++k) g.bar.qd[k] = constant<Real>(0);
    for (int k = 0; g.bar.wants_parameters() && k < rows; ++k) g.parameter_bar[k] = constant<Real>(0);
    load_rows(group, a.result_bar, 0, t.nv, given);
    for (int k = 0; k < t.nv; ++k) ws.dof[k].x = given[k];
    weigh(ws, a.inverse, given);
    reverse_sweep(ws, g.bar);
    if (ws.lifted) lift_adjoint(ws, g.bar);
    store_rows(group, a.q_bar, 0, t.nq, g.bar.q);
    store_rows(group, a.qd_bar, 0, t.nv, g.bar.qd);
    store_rows(group, a.given_bar, 0, t.nv, given);
    if (!g.bar.wants_parameters()) return;
    for (int i = 0; i < t.link_count; ++i) {
      const int dofs = joint_size(t.links[i].type).nv;
      for (int k = 0; k < dofs; ++k) {
        const auto& dof = ws.dof[t.links[i].v + k];
        g.bar.constants[i].efforts.armature -= dof.x * dof.qdd;
      }
    }
    store_rows(group, a.constants_bar, 0, rows, g.parameter_bar);
  });
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
