#pragma once
// Link poses of recorded states and their adjoint: the Jacobian's transpose by the same sweep as (8), with Z alone.
#include "integrators/featherstone/dynamics_adjoint.h"
#include "integrators/featherstone/workspace.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Axes and origins of all links from ws.q, and each joint's S.
template <class Real>
BACKDRIVE_HD void link_poses(Workspace<Real, Real>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    Mat3<Real> axes;
    Vec3<Real> origin;
    placement(ws, link, ws.constants[i], axes, origin);
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          Real displacement[2];
          joint.displace(ws.q + link.q, displacement);
          joint.move(displacement, axes, origin);
          if constexpr (decltype(joint)::dofs > 0) {
            Spatial<Real> S[decltype(joint)::dofs];
            joint.subspace(axes, origin, S);
            for (int k = 0; k < decltype(joint)::dofs; ++k) ws.dof[link.v + k].S = S[k];
          }
        });
    ws.link[i].axes = axes;
    ws.link[i].origin = origin;
  }
}

BACKDRIVE_INLINE int root_of(const Link* links, int i) {
  while (links[i].parent >= 0) i = links[i].parent;
  return i;
}

template <class Real>
BACKDRIVE_HD void poses_worlds(const PoseArguments<StorageOf<Real>>& a, GroupScratch<Real>& g, int first_world) {
  const int nq = a.launch.topology.nq, stride = a.launch.stride;
  for (int step = 0; step < a.launch.steps; ++step) {
    load_rows(a.q, std::size_t(step) * nq, nq, stride, first_world, g.ws.q);
    link_poses(g.ws);
    for (int k = 0; k < a.count; ++k) {
      const int i = a.links[k];
      const Vec3<Real> root = g.ws.constants[root_of(g.ws.links, i)].translation;
      struct {
        Vec3<Real> position;
        Mat3<Real> rotation;
      } pose{g.ws.link[i].origin + root, g.ws.link[i].axes * transposed(g.alignment[i])};
      store_rows(a.poses, (std::size_t(step) * a.count + k) * 12, 12, stride, first_world, &pose.position.x);
    }
  }
}

template <class Real>
void poses_group(const PoseArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  GroupScratch<Real> g = prepare<Real>(a.launch, first_world, scratch);
  poses_worlds(a, g, first_world);
}

/// One state: pose cotangents to q̄ and placements.
template <class Real>
BACKDRIVE_HD void pose_adjoint_step(GroupScratch<Real>& g, const PoseArguments<StorageOf<Real>>& a, int step,
                                    int first_world) {
  Workspace<Real, Real>& ws = g.ws;
  for (int i = 0; i < ws.link_count; ++i) ws.link[i].force = zero6<Real>();
  for (int k = 0; k < a.count; ++k) {
    const int i = a.links[k];
    struct {
      Vec3<Real> position;
      Mat3<Real> rotation;
    } bar;
    load_rows(a.pose_bar, (std::size_t(step) * a.count + k) * 12, 12, a.launch.stride, first_world, &bar.position.x);
    const Mat3<Real> axes = ws.link[i].axes * transposed(g.alignment[i]);
    const Vec3<Real> turn =
        cross(axes.cx, bar.rotation.cx) + cross(axes.cy, bar.rotation.cy) + cross(axes.cz, bar.rotation.cz);
    ws.link[i].force.ang +=
        unless(Mutation::pose_turn, turn) + unless(Mutation::pose_lever, cross(ws.link[i].origin, bar.position));
    ws.link[i].force.lin += bar.position;
    // rotation = R Aᵀ: A exp(η) turns it by −R η.
    if (a.constants_bar) g.gradient[i].alignment -= transposed_times(ws.link[i].axes, turn);
  }
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    const Spatial<Real> Z = ws.link[i].force;
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          for (int k = 0; k < decltype(joint)::dofs; ++k) {
            g.q_bar[link.q + k] += dot(ws.dof[link.v + k].S, Z);
          }
        });
    if (a.constants_bar) {
      placement_adjoint(ws, i, Z, g.gradient[i]);
      if (link.parent < 0) g.gradient[i].translation += unless(Mutation::root_translation, Z.lin);
    }
    if (link.parent >= 0) ws.link[link.parent].force += Z;
  }
}

template <class Real>
BACKDRIVE_HD void poses_adjoint_worlds(const PoseArguments<StorageOf<Real>>& a, GroupScratch<Real>& g,
                                       int first_world) {
  const TopologyView& t = a.launch.topology;
  const int stride = a.launch.stride;
  const int rows = parameter_rows<Real>(t);
  if (a.resume && a.constants_bar) {
    load_rows(a.constants_bar, 0, rows, stride, first_world, g.parameter_bar);
  } else {
    for (int k = 0; k < rows; ++k) g.parameter_bar[k] = constant<Real>(0);
  }
  for (int step = a.launch.steps; step-- > 0;) {
    load_rows(a.q, std::size_t(step) * t.nq, t.nq, stride, first_world, g.ws.q);
    link_poses(g.ws);
    for (int k = 0; k < t.nq; ++k) g.q_bar[k] = constant<Real>(0);
    pose_adjoint_step(g, a, step, first_world);
    store_rows(a.q_bar, std::size_t(step) * t.nq, t.nq, stride, first_world, g.q_bar);
  }
  if (a.constants_bar) store_rows(a.constants_bar, 0, rows, stride, first_world, g.parameter_bar);
}

template <class Real>
void poses_adjoint_group(const PoseArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  GroupScratch<Real> g = prepare<Real>(a.launch, first_world, scratch);
  poses_adjoint_worlds(a, g, first_world);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
