#pragma once
// Poses and velocities of bodies, which are a state's own numbers; and bodies placed by the coordinates of their
// joints. Both with their adjoints.
#include "integrators/semi_implicit/rollout_kernel.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// As PoseArguments::poses has them; the last two with velocities only.
template <class Real>
struct PoseRows {
  Vec3<Real> position;
  Mat3<Real> rotation;
  Vec3<Real> velocity, angular_velocity;
};

template <class Real>
BACKDRIVE_HD void poses_group(const PoseArguments<StorageOf<Real>>& a, int first_world, std::byte*) {
  const TopologyView& t = a.launch.topology;
  const WorldGroup group(a.launch, first_world);
  for (int step = 0; step < a.launch.steps; ++step) {
    for (int k = 0; k < a.count; ++k) {
      const int row = a.launch.bodies->joint_nq + t.links[a.links[k]].body * kBodyPositions;
      Real q[kBodyPositions];
      load_rows(group, a.q, std::size_t(step) * t.nq + row, kBodyPositions, q);
      Real qd[kBodyVelocities] = {};
      if (a.qd) {
        const int first = a.launch.bodies->joint_nv + t.links[a.links[k]].body * kBodyVelocities;
        load_rows(group, a.qd, std::size_t(step) * t.nv + first, kBodyVelocities, qd);
      }
      const PoseRows<Real> pose{
          {q[4], q[5], q[6]}, rotation_matrix(load_quaternion(q)), {qd[3], qd[4], qd[5]}, {qd[0], qd[1], qd[2]}};
      store_rows(group, a.poses, (std::size_t(step) * a.count + k) * a.rows(), a.rows(), &pose.position.x);
    }
  }
}

template <class Real>
BACKDRIVE_HD void poses_adjoint_group(const PoseArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  const TopologyView& t = a.launch.topology;
  const WorldGroup group(a.launch, first_world);
  Arena arena(scratch);
  Real* const q_bar = arena.take<Real>(t.nq);
  Real* const qd_bar = arena.take<Real>(t.nv);
  for (int step = 0; step < a.launch.steps; ++step) {
    for (int k = 0; k < t.nq; ++k) q_bar[k] = constant<Real>(0);
    for (int k = 0; k < t.nv; ++k) qd_bar[k] = constant<Real>(0);
    for (int k = 0; k < a.count; ++k) {
      const int row = a.launch.bodies->joint_nq + t.links[a.links[k]].body * kBodyPositions;
      Real q[4];
      PoseRows<Real> bar;
      load_rows(group, a.q, std::size_t(step) * t.nq + row, 4, q);
      load_rows(group, a.pose_bar, (std::size_t(step) * a.count + k) * a.rows(), a.rows(), &bar.position.x);
      const Mat3<Real> axes = rotation_matrix(load_quaternion(q));
      const Vec3<Real> turn =
          cross(axes.cx, bar.rotation.cx) + cross(axes.cy, bar.rotation.cy) + cross(axes.cz, bar.rotation.cz);
      Real* const to = q_bar + row;
      to[0] += turn.x, to[1] += turn.y, to[2] += turn.z;
      to[4] += bar.position.x, to[5] += bar.position.y, to[6] += bar.position.z;
      if (!a.qd) continue;
      Real* const rate = qd_bar + a.launch.bodies->joint_nv + t.links[a.links[k]].body * kBodyVelocities;
      const Vec3<Real>&v = bar.velocity, &w = bar.angular_velocity;
      rate[0] += w.x, rate[1] += w.y, rate[2] += w.z, rate[3] += v.x, rate[4] += v.y, rate[5] += v.z;
    }
    store_rows(group, a.q_bar, std::size_t(step) * t.nq, t.nq, q_bar);
    if (a.qd) store_rows(group, a.qd_bar, std::size_t(step) * t.nv, t.nv, qd_bar);
  }
  if (!a.constants_bar || a.resume) return;  // poses depend on no parameter
  const Real zero = constant<Real>(0);
  const int rows = gradient_rows<Real>(a.launch.bodies->body_count, a.launch.bodies->joint_count);
  for (int k = 0; k < rows; ++k) store_rows(group, a.constants_bar, k, 1, &zero);
}

template <class Real>
BACKDRIVE_INLINE PlacingJoint<Real> placing_joint(const Space<Real>& s, int j) {
  const Joint& joint = s.system.joints[j];
  const BodyState<Real>* const parent = joint.parent >= 0 ? s.state + joint.parent : nullptr;
  return {joint.type, s.system.constants[j], parent, s.joint_q(j), s.joint_qd(j)};
}
/// Places all bodies by s.q and s.qd, in s.state.
template <class Real>
BACKDRIVE_HD void place_bodies(Space<Real>& s) {
  for (int k = 0; k < s.tables.body_count; ++k) {
    const int j = s.tables.tree[k];
    s.state[s.system.joints[j].child] = placed_child(placing_joint(s, j));
  }
}

template <class Real>
BACKDRIVE_HD void place_group(const PlaceArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  Space<Real> s;
  Arena arena(scratch);
  prepare(a.launch, first_world, false, arena, s);
  const TopologyView& t = a.launch.topology;
  const WorldGroup group(a.launch, first_world);
  load_rows(group, a.q, 0, t.nq, s.q);
  load_rows(group, a.qd, 0, t.nv, s.qd);
  place_bodies(s);
  set_motions(s);
  for (int i = 0; i < s.tables.body_count; ++i) store_body(s.tables, i, s.state[i], s.q, s.qd);
  for (int k = 0; k < s.tables.loop_count; ++k) {
    const int j = s.tables.loops[k];
    read_coordinates(s.system, s.ws, j, s.joint_q(j), s.joint_qd(j));
  }
  store_rows(group, a.q_placed, 0, t.nq, s.q);
  store_rows(group, a.qd_placed, 0, t.nv, s.qd);
}

/// Adjoint of place_bodies: from g.state_bar, which it uses up, to the joints' rows of g.bar, added to.
template <class Real>
BACKDRIVE_HD void adj_place_bodies(AdjointScratch<Real>& g) {
  Space<Real>& s = g.ws;
  const StepBar<Real> out = g.step_bar();
  for (int k = s.tables.body_count - 1; k >= 0; --k) {
    const int j = s.tables.tree[k];
    const Joint& joint = s.system.joints[j];
    const PlacingJointBar<Real> to{joint.parent >= 0 ? g.state_bar + joint.parent : nullptr,
                                   g.bar.q + s.tables.rows[j].q, g.bar.qd + s.tables.rows[j].v,
                                   out.joint_parameters ? out.joint_parameters + j : nullptr};
    adj_placed_child(placing_joint(s, j), s.state[joint.child], g.state_bar[joint.child], to);
  }
}

template <class Real>
BACKDRIVE_HD void place_adjoint_group(const PlaceArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  AdjointScratch<Real> g;
  Arena arena(scratch);
  prepare(a.launch, first_world, a.constants_bar != nullptr, arena, g);
  Space<Real>& s = g.ws;
  const TopologyView& t = a.launch.topology;
  const WorldGroup group(a.launch, first_world);
  load_rows(group, a.q, 0, t.nq, s.q);
  load_rows(group, a.qd, 0, t.nv, s.qd);
  clear_parameters(g, t);
  for (int k = 0; k < t.nq; ++k) g.bar.q[k] = constant<Real>(0);
  for (int k = 0; k < t.nv; ++k) g.bar.qd[k] = constant<Real>(0);
  add_seeds(group, a.q_placed_bar, 0, t.nq, g.bar.q);
  add_seeds(group, a.qd_placed_bar, 0, t.nv, g.bar.qd);
  place_bodies(s);
  const BodyStateBar<Real> none{zero3<Real>(), zero3<Real>(), zero6<Real>()};
  for (int i = 0; i < s.tables.body_count; ++i) {
    g.state_bar[i] = load_body_bar(s.tables, i, g.bar.q, g.bar.qd);
    store_body_bar(s.tables, i, none, g.bar.q, g.bar.qd);  // nobody reads what was there before
  }
  set_motions(s);
  bars_of_joints_to_bodies(g, s.ws, s.tables.loops, s.tables.loop_count);
  adj_place_bodies(g);
  store_rows(group, a.q_bar, 0, t.nq, g.bar.q);
  store_rows(group, a.qd_bar, 0, t.nv, g.bar.qd);
  if (a.constants_bar) {
    store_rows(group, a.constants_bar, 0, g.parameter_rows(t), g.parameter_bar);
  }
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
