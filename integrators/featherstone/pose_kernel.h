#pragma once
// Link poses of recorded states, where asked for with velocities, and their adjoint: the Jacobian's transpose by the
// same sweep as (8), with Z and what velocities receive, F:
//
//   v = v_p + S q̇ about O, link origin o:  ṗ = v_lin + ω × o         F = [ω̄ + o × ṗ̄; ṗ̄]   Z += v ×* F + [o × (ṗ̄ × ω); ṗ̄
//   × ω] summed over a joint's subtree          q̇̄ = Sᵀ F                  q̄ = Sᵀ (Z − v_p ×* F)
//
// since a turn and shift of the subtree takes its own motions S q̇ along, v − v_p. A free root's are fixed in the world
// but go along with its origin: its turns leave its own v out as well, its shifts change no velocity.
#include "integrators/featherstone/workspace.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <class Real>
struct PoseLink {
  Pose<Real> pose;
  Spatial<Real> v;  ///< with velocities only
};
template <class Real>
struct PoseAdjointLink : PoseLink<Real> {
  Spatial<Real> Z;
  Spatial<Real> F;  ///< with velocities only
};

template <class R>
struct PackPoses {
  using Real = R;
  using Link = PoseLink<R>;
  using Constants = const LinkConstants<R>*;
  using Alignments = const Mat3<R>*;
  static constexpr bool parameters = false;
};
template <class R>
struct PackPosesAdjoint : PackPoses<R> {
  using Link = PoseAdjointLink<R>;
  static constexpr bool parameters = true;
};

/// The working set of one group of worlds.
template <class Layout>
struct PoseScratch {
  using Real = typename Layout::Real;
  const Link* links;
  int link_count;
  typename Layout::Constants constants;    ///< [i]: LinkConstants
  typename Layout::Alignments alignments;  ///< [i]: Mat3
  Real *q, *qd;
  typename Layout::Link* link;
  Real *q_bar, *qd_bar;  ///< adjoint only, from here on
  Real* parameter_bar;   ///< gradient_rows() of the links; null: nobody asked
  LinkGradient<Real>* gradient;
};

/// Axes and origins of all links from g.q; with velocities also those, from g.qd.
template <class Layout>
BACKDRIVE_HD void link_poses(PoseScratch<Layout>& g, bool velocities) {
  using Real = typename Layout::Real;
  for (int i = 0; i < g.link_count; ++i) {
    const Link& link = g.links[i];
    Mat3<Real> axes;
    Vec3<Real> origin;
    placement(link, g.constants[i], g.link[link.parent < 0 ? i : link.parent].pose, axes, origin);
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          Real displacement[2];
          [[maybe_unused]] const Mat3<Real> placed = axes;
          joint.displace(g.q + link.q, displacement);
          joint.move(g.q + link.q, displacement, axes, origin);
          if (!velocities) return;
          constexpr int K = decltype(joint)::dofs;
          Spatial<Real> v = link.parent < 0 ? zero6<Real>() : g.link[link.parent].v;
          if constexpr (K > 0) {
            Spatial<Real> S[K];
            joint.subspace(placed, axes, origin, S);
            for (int k = 0; k < K; ++k) v += S[k] * g.qd[link.v + k];
          }
          g.link[i].v = v;
        });
    g.link[i].pose.axes = axes;
    g.link[i].pose.origin = origin;
  }
}

/// Of a free root's link origin from its joint, in world axes.
template <class Layout>
BACKDRIVE_HD Vec3<typename Layout::Real> free_position(const PoseScratch<Layout>& g, int root) {
  using Real = typename Layout::Real;
  const Real* const p = g.q + g.links[root].q + 4;
  return broadcast<Real>(g.constants[root].rotation) * Vec3<Real>{p[0], p[1], p[2]};
}

/// Where O of a link's tree is in the world: at the root joint, with a free root at its link's origin.
template <class Layout>
BACKDRIVE_HD Vec3<typename Layout::Real> tree_origin(const PoseScratch<Layout>& g, int i) {
  const int root = root_of(g.links, i);
  const auto& c = g.constants[root];
  const Vec3<typename Layout::Real> joint = broadcast<typename Layout::Real>(c.translation);
  return g.links[root].type == JointType::free ? joint + free_position(g, root) : joint;
}

template <class Layout>
BACKDRIVE_HD void poses_worlds(const PoseArguments<StorageOf<typename Layout::Real>>& a, PoseScratch<Layout>& g,
                               int first_world) {
  using Real = typename Layout::Real;
  const int nq = a.launch.topology.nq, nv = a.launch.topology.nv, rows = a.rows();
  const WorldGroup group(a.launch, first_world);
  for (int step = 0; step < a.launch.steps; ++step) {
    load_rows(group, a.q, std::size_t(step) * nq, nq, g.q);
    if (a.qd) load_rows(group, a.qd, std::size_t(step) * nv, nv, g.qd);
    link_poses(g, a.qd);
    for (int k = 0; k < a.count; ++k) {
      const int i = a.links[k];
      const Pose<Real>& link = g.link[i].pose;
      const Vec3<Real> root = tree_origin(g, i);
      struct {
        Vec3<Real> position;
        Mat3<Real> rotation;
        Vec3<Real> velocity, angular_velocity;
      } pose{link.origin + root, link.axes * transposed(g.alignments[i]), zero3<Real>(), zero3<Real>()};
      if (a.qd) {
        pose.angular_velocity = g.link[i].v.ang;
        pose.velocity = g.link[i].v.lin + cross(g.link[i].v.ang, link.origin);
      }
      store_rows(group, a.poses, (std::size_t(step) * a.count + k) * rows, rows, &pose.position.x);
    }
  }
}

/// One state: pose cotangents to each link's Z and, with velocities, F.
template <class Layout>
BACKDRIVE_HD void pose_cotangents(const PoseArguments<StorageOf<typename Layout::Real>>& a, PoseScratch<Layout>& g,
                                  int step, int first_world) {
  using Real = typename Layout::Real;
  for (int i = 0; i < g.link_count; ++i) g.link[i].Z = g.link[i].F = zero6<Real>();
  for (int k = 0; k < a.count; ++k) {
    const int i = a.links[k];
    typename Layout::Link& link = g.link[i];
    struct {
      Vec3<Real> position;
      Mat3<Real> rotation;
      Vec3<Real> velocity, angular_velocity;
    } bar;
    const std::size_t first_row = (std::size_t(step) * a.count + k) * a.rows();
    load_rows(WorldGroup(a.launch, first_world), a.pose_bar, first_row, a.rows(), &bar.position.x);
    const Mat3<Real> axes = link.pose.axes * transposed(g.alignments[i]);
    const Vec3<Real> turn =
        cross(axes.cx, bar.rotation.cx) + cross(axes.cy, bar.rotation.cy) + cross(axes.cz, bar.rotation.cz);
    const Vec3<Real> lever = cross(link.pose.origin, bar.position);
    link.Z.ang += turn + lever;
    link.Z.lin += bar.position;
    if (a.qd) {
      const Spatial<Real> F{bar.angular_velocity + cross(link.pose.origin, bar.velocity), bar.velocity};
      const Vec3<Real> origin_bar = cross(bar.velocity, link.v.ang);
      link.F += F;
      link.Z = plus_cross_force(link.Z, link.v, F);
      link.Z += Spatial<Real>{cross(link.pose.origin, origin_bar), origin_bar};
    }
    // rotation = R Aᵀ: A exp(η) turns it by −R η.
    if (Layout::parameters && g.gradient) g.gradient[i].alignment -= transposed_times(link.pose.axes, turn);
  }
}

/// And on to q̄, q̇̄ and placements, leaves to root.
template <class Layout>
BACKDRIVE_HD void pose_adjoint_step(PoseScratch<Layout>& g, bool velocities) {
  using Real = typename Layout::Real;
  for (int i = g.link_count - 1; i >= 0; --i) {
    const Link& link = g.links[i];
    const typename Layout::Link& own = g.link[i];
    const bool moved = velocities && link.parent >= 0;
    const Spatial<Real> Z = moved ? own.Z - cross_force(g.link[link.parent].v, own.F) : own.Z;
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          constexpr int K = decltype(joint)::dofs;
          if constexpr (K > 0) {
            Spatial<Real> S[K];
            joint.subspace(broadcast<Real>(g.constants[i].rotation), own.pose.axes, own.pose.origin, S);
            // Behind a free root's quaternion; a ball's turns are all it has.
            constexpr bool free = decltype(joint)::fixed_in_world;
            const Spatial<Real> turned = free && velocities ? Z - cross_force(own.v, own.F) : Z;
            for (int k = 0; k < K; ++k) g.q_bar[link.q + k + (k < 3 ? 0 : 1)] += dot(S[k], k < 3 ? turned : Z);
            for (int k = 0; velocities && k < K; ++k) g.qd_bar[link.v + k] += dot(S[k], own.F);
          }
        });
    if (Layout::parameters && g.gradient) {
      const Pose<Real>& parent = g.link[link.parent < 0 ? i : link.parent].pose;
      Spatial<Real> about_joint = Z;
      if (link.type == JointType::free) about_joint.ang += cross(free_position(g, i), Z.lin);
      placement_adjoint(link, g.constants[i], parent, about_joint, g.gradient[i]);
      if (link.parent < 0) g.gradient[i].translation += Z.lin;
    }
    if (link.parent < 0) continue;
    g.link[link.parent].Z += own.Z;
    if (velocities) g.link[link.parent].F += own.F;
  }
}

template <class Layout>
BACKDRIVE_HD void poses_adjoint_worlds(const PoseArguments<StorageOf<typename Layout::Real>>& a, PoseScratch<Layout>& g,
                                       int first_world) {
  using Real = typename Layout::Real;
  const TopologyView& t = a.launch.topology;
  const WorldGroup group(a.launch, first_world);
  const int rows = Layout::parameters && g.gradient ? gradient_rows<Real>(t.link_count) : 0;
  if (!a.resume) {
    for (int k = 0; k < rows; ++k) g.parameter_bar[k] = constant<Real>(0);
  } else if (rows > 0) {
    load_rows(group, a.constants_bar, 0, rows, g.parameter_bar);
  }
  for (int step = a.launch.steps; step-- > 0;) {
    load_rows(group, a.q, std::size_t(step) * t.nq, t.nq, g.q);
    if (a.qd) load_rows(group, a.qd, std::size_t(step) * t.nv, t.nv, g.qd);
    link_poses(g, a.qd);
    for (int k = 0; k < t.nq; ++k) g.q_bar[k] = constant<Real>(0);
    for (int k = 0; k < t.nv; ++k) g.qd_bar[k] = constant<Real>(0);
    pose_cotangents(a, g, step, first_world);
    pose_adjoint_step(g, a.qd);
    store_rows(group, a.q_bar, std::size_t(step) * t.nq, t.nq, g.q_bar);
    if (a.qd) store_rows(group, a.qd_bar, std::size_t(step) * t.nv, t.nv, g.qd_bar);
  }
  if (rows > 0) store_rows(group, a.constants_bar, 0, rows, g.parameter_bar);
}

/// For both directions; the arrays of the adjoint, where it is one.
template <class Layout>
BACKDRIVE_HD void take_arrays(const TopologyView& t, bool adjoint, bool parameters, Arena& arena,
                              PoseScratch<Layout>& g) {
  using Real = typename Layout::Real;
  g.link = arena.take<typename Layout::Link>(t.link_count);
  g.q = arena.take<Real>(t.nq);
  g.qd = arena.take<Real>(t.nv);
  g.q_bar = adjoint ? arena.take<Real>(t.nq) : nullptr;
  g.qd_bar = adjoint ? arena.take<Real>(t.nv) : nullptr;
  g.parameter_bar = parameters ? arena.take<Real>(gradient_rows<Real>(t.link_count)) : nullptr;
  g.gradient = structs_of<LinkGradient<Real>>(g.parameter_bar);
}

template <class T, class Layout>
void lay_out(const PoseArguments<T>& a, int first_world, Arena& arena, PoseScratch<Layout>& g) {
  using Real = typename Layout::Real;
  const TopologyView& t = a.launch.topology;
  take_arrays(t, a.q_bar != nullptr, a.constants_bar != nullptr, arena, g);
  LinkConstants<Real>* const constants = arena.take<LinkConstants<Real>>(t.link_count);
  Mat3<Real>* const alignments = arena.take<Mat3<Real>>(t.link_count);
  if (arena.only_counts()) return;
  g.links = t.links;
  g.link_count = t.link_count;
  g.constants = constants;
  g.alignments = alignments;
  load_constants(a.launch, 0, first_world, numbers_of<Real>(constants), t.link_count * kLinkConstants<Real>);
  load_constants(a.launch, alignment_row<Real>(t.link_count), first_world, numbers_of<Real>(alignments),
                 t.link_count * 9);
}

template <class Real>
void poses_group(const PoseArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  PoseScratch<PackPoses<Real>> g;
  Arena arena(scratch);
  lay_out(a, first_world, arena, g);
  poses_worlds(a, g, first_world);
}

template <class Real>
void poses_adjoint_group(const PoseArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  PoseScratch<PackPosesAdjoint<Real>> g;
  Arena arena(scratch);
  lay_out(a, first_world, arena, g);
  poses_adjoint_worlds(a, g, first_world);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
