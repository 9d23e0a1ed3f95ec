#pragma once
// Forward dynamics of a tree in O(n) and its adjoint, equations (1)-(8) of docs/theory.md.
//
// Everything is in world axes about O, the origin of the tree's root joint. Forward dynamics is split into the bias
// force (inverse dynamics with q̈ = 0, which takes the place of pA and c in (2)-(3)) and a solve with the articulated
// inertias,
//
//   M q̈ = τ − h(q, q̇),
//
// so that the same solve serves the adjoint. Bodies enter through their centre of mass c: with the velocity and
// acceleration of c, v_c = v + ω × c and a_c = a + α × c + ω × v_c, the force on a body about O is
//
//   f = m a_c,   n = J α + ω × J ω + c × f                                        (J about c, in world axes)
//
// which costs 50 multiply-adds where I a + v ×* I v costs 70. Reference: Featherstone, Rigid Body Dynamics Algorithms
// (2008), §7.3, in one common frame; the split is ours.
#include "integrators/featherstone/joint_forces.h"
#include "integrators/featherstone/joints.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Per link: where it is, how it moves, and what the solves need.
template <class Real>
struct LinkScratch {
  Mat3<Real> axes;       ///< R: link axes in the world
  Vec3<Real> origin;     ///< p: link origin from O
  Spatial<Real> v;       ///< velocity
  Spatial<Real> a;       ///< bias acceleration; in the adjoint, acceleration
  Spatial<Real> delta;   ///< of (4): what q̈ adds to a; of (6): δ
  RigidInertia<Real> I;  ///< of its body
  ArticulatedInertia<Real> IA;
  Real displacement[2];  ///< of its joint
  Spatial<Real> force;   ///< P; later scratch of the sweeps that need one
};

/// Per degree of freedom, indexed as velocities are.
template <class Real>
struct DofScratch {
  Spatial<Real> S;
  Spatial<Real> UD;             ///< column of U D⁻¹
  Real inverse[kMaxJointDofs];  ///< row of D⁻¹
  Real r;                       ///< right-hand side of the solve, less what the subtree takes
  Real x;                       ///< D⁻¹ r
  Real qdd, w;                  ///< solutions
  Real effort, increment;       ///< from joint_force
};

/// Per link, of the reverse sweep: F, A and T of (7)-(8).
template <class Real>
struct LinkBar {
  Spatial<Real> F, A, T;
};

/// The working set of one group of worlds. Nothing in it outlives a step but q, qd and the constants.
template <class Real, class Const>
struct Workspace {
  const Link* links;
  int link_count, nq, nv;
  const LinkConstants<Const>* constants;
  Vec3<Const> gravity;
  Real dt;
  Real *q, *qd, *control;
  LinkScratch<Real>* link;
  DofScratch<Real>* dof;
  LinkBar<Real>* bar;
};

/// Values used after this are read from memory again. Without it GCC keeps all that it has seen in registers, runs out
/// of them, and spills to the stack what lies in the workspace already.
BACKDRIVE_INLINE void read_again() {
#if !defined(__CUDA_ARCH__)
  asm volatile("" ::: "memory");
#endif
}

/// A constant as the Real of a group of worlds.
template <class Real, class Const>
BACKDRIVE_INLINE Real in_packs(const Const& c) {
  if constexpr (std::is_same_v<Real, Const>) {
    return c;
  } else {
    return constant<Real>(0) + c;
  }
}
template <class Real, class Const>
BACKDRIVE_INLINE Vec3<Real> in_packs(const Vec3<Const>& c) {
  return {in_packs<Real>(c.x), in_packs<Real>(c.y), in_packs<Real>(c.z)};
}
template <class Real, class Const>
BACKDRIVE_INLINE Mat3<Real> in_packs(const Mat3<Const>& c) {
  return {in_packs<Real>(c.cx), in_packs<Real>(c.cy), in_packs<Real>(c.cz)};
}

/// Where a link is placed before its joint moves it: axes R_p R and origin p_p + R_p t. O lies at the root joint.
template <class Real, class Const>
BACKDRIVE_INLINE void placement(const Workspace<Real, Const>& ws, const Link& link, const LinkConstants<Const>& c,
                                Mat3<Real>& axes, Vec3<Real>& origin) {
  if (link.parent < 0) {
    axes = in_packs<Real>(c.rotation);
    origin = zero3<Real>();
  } else {
    const LinkScratch<Real>& parent = ws.link[link.parent];
    axes = parent.axes * c.rotation;
    origin = plus_times(parent.origin, parent.axes, c.translation);
  }
}

/// Equation (1) of one link: v and bias acceleration (q̈ = 0, gravity as −g at the root).
template <class Joint, class Real, class Const>
BACKDRIVE_INLINE void move_link(Workspace<Real, Const>& ws, const Link& link, LinkScratch<Real>& s) {
  constexpr int K = Joint::dofs;
  const bool root = link.parent < 0;
  DofScratch<Real>* dof = ws.dof + link.v;
  Spatial<Real> rate = zero6<Real>();  // S q̇
  if constexpr (K > 0) {
    Spatial<Real> S[K];
    Joint::subspace(s.axes, s.origin, S);
    for (int k = 0; k < K; ++k) dof[k].S = S[k];
    rate = S[0] * ws.qd[link.v];
    for (int k = 1; k < K; ++k) rate += S[k] * ws.qd[link.v + k];
  }
  if (root) {
    s.v = rate;
    s.a = {zero3<Real>(), zero3<Real>() - ws.gravity};
  } else {
    const LinkScratch<Real>& parent = ws.link[link.parent];
    s.v = parent.v + rate;
    s.a = K > 0 ? plus_cross_motion(parent.a, parent.v, rate) : parent.a;
  }
}

/// Inertia and bias force of one body.
template <class Real, class Const>
BACKDRIVE_INLINE void body_part(LinkScratch<Real>& s, const LinkConstants<Const>& c) {
  const Vec3<Real> com = plus_times(s.origin, s.axes, c.com);
  const Sym3<Real> J = rotated(s.axes, c.inertia);
  set(s.I, in_packs<Real>(c.mass), com, J);
  const Vec3<Real> v_c = plus_cross(s.v.lin, s.v.ang, com);
  const Vec3<Real> a_c = plus_cross(plus_cross(s.a.lin, s.a.ang, com), s.v.ang, v_c);
  const Vec3<Real> f = a_c * c.mass;
  s.force = {plus_cross(plus_cross(J * s.a.ang, s.v.ang, J * s.v.ang), com, f), f};
}

/// Equation (1), root to leaves: positions, velocities, bias accelerations and each body's own bias force.
template <class Real, class Const>
BACKDRIVE_HD void kinematics(Workspace<Real, Const>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    LinkScratch<Real>& s = ws.link[i];
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          Mat3<Real> axes;
          Vec3<Real> origin;
          placement(ws, link, ws.constants[i], axes, origin);
          joint.move(s.displacement, axes, origin);
          s.axes = axes;
          s.origin = origin;
          move_link<decltype(joint)>(ws, link, s);
        });
  }
  for (int i = 0; i < ws.link_count; ++i) body_part(ws.link[i], ws.constants[i]);
}

/// One joint of (2): U, U D⁻¹, and D⁻¹ r.
template <int K, class Real>
BACKDRIVE_INLINE void factor_joint(DofScratch<Real>* dof, const LinkScratch<Real>& s, Spatial<Real> (&U)[K],
                                   Spatial<Real> (&UD)[K], Real (&x)[K]) {
  Real D[kMaxJointDofs][kMaxJointDofs];
  for (int k = 0; k < K; ++k) {
    U[k] = s.IA * dof[k].S;
    for (int l = 0; l <= k; ++l) D[k][l] = D[l][k] = dot(dof[l].S, U[k]);
    D[k][k] += dof[k].increment;
    dof[k].r = dof[k].effort - dot(dof[k].S, s.force);
  }
  invert<K>(D);
  for (int k = 0; k < K; ++k) {
    UD[k] = U[0] * D[k][0];
    x[k] = D[k][0] * dof[0].r;
    for (int l = 1; l < K; ++l) UD[k] += U[l] * D[k][l], x[k] += D[k][l] * dof[l].r;
    dof[k].UD = UD[k];
    dof[k].x = x[k];
    for (int l = 0; l < K; ++l) dof[k].inverse[l] = D[k][l];
  }
}

/// Equations (2)-(3) of one link. The last child starts its parent's IA, from the parent's own body; the others add.
template <int K, class Real, class Const>
BACKDRIVE_INLINE void articulate_link(Workspace<Real, Const>& ws, const Link& link, LinkScratch<Real>& s) {
  Spatial<Real> U[K ? K : 1], UD[K ? K : 1];
  Real x[K ? K : 1];
  if constexpr (K > 0) factor_joint<K>(ws.dof + link.v, s, U, UD, x);
  if (link.parent < 0) return;
  LinkScratch<Real>& parent = ws.link[link.parent];
  read_again();
  if (link.last_child) {
    set_less_outer<K>(parent.IA, parent.I, s.IA, U, UD);
  } else {
    add_less_outer<K>(parent.IA, s.IA, U, UD);
  }
  parent.force += s.force;
  for (int k = 0; k < K; ++k) parent.force += U[k] * x[k];
}

/// Equations (2)-(3), leaves to root. Efforts and increments are in ws.dof.
template <class Real, class Const>
BACKDRIVE_HD void articulate(Workspace<Real, Const>& ws) {
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    LinkScratch<Real>& s = ws.link[i];
    if (link.leaf) set(s.IA, s.I);
    visit_joint(
        link.type, [&](auto joint)
                       __attribute__((always_inline)) { articulate_link<decltype(joint)::dofs>(ws, link, s); });
  }
}

/// x of one joint in the root-to-leaves half of a solve: D⁻¹ r − (U D⁻¹)ᵀ δ_p; adds S x to δ.
template <int K, class Real>
BACKDRIVE_INLINE void solve_joint(DofScratch<Real>* dof, Real DofScratch<Real>::*x, Spatial<Real>& delta) {
  if constexpr (K > 0) {
    Real sum[K];
    for (int k = 0; k < K; ++k) dof[k].*x = sum[k] = dof[k].x - dot(dof[k].UD, delta);
    for (int k = 0; k < K; ++k) delta += dof[k].S * sum[k];
  }
}

/// Root-to-leaves half of a solve (4), (6): the solution into dof[].*x; where asked, of each link the motion δ it
/// causes.
template <bool KeepDelta, class Real, class Const>
BACKDRIVE_HD void solve_outwards(Workspace<Real, Const>& ws, Real DofScratch<Real>::*x) {
  Spatial<Real> delta = zero6<Real>();
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.parent < 0) {
      delta = zero6<Real>();
    } else if (link.parent != i - 1) {
      delta = ws.link[link.parent].delta;
    }
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          solve_joint<decltype(joint)::dofs>(ws.dof + link.v, x, delta);
        });
    const bool branches = !link.leaf && !ws.links[i + 1].last_child;
    if (KeepDelta || branches) ws.link[i].delta = delta;
  }
}

template <class Real, class Const>
BACKDRIVE_INLINE JointInput<Real> joint_input(const Workspace<Real, Const>& ws, const Link& link) {
  const Real zero = constant<Real>(0);
  const bool driven = link.target >= 0;
  return {ws.q[link.q], ws.qd[link.v], ws.control[link.v], driven ? ws.control[link.target] : zero,
          driven ? ws.control[link.target + 1] : zero};
}

/// What each joint needs of its own q and q̇ alone.
template <class Real, class Const>
BACKDRIVE_HD void displacements_and_forces(Workspace<Real, Const>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.type == JointType::fixed) continue;
    visit_joint(
        link.type, [&](auto joint)
                       __attribute__((always_inline)) { joint.displace(ws.q + link.q, ws.link[i].displacement); });
    DofScratch<Real>& dof = ws.dof[link.v];
    joint_force(link, ws.constants[i], joint_input(ws, link), ws.dt, dof.effort, dof.increment);
  }
}

/// q̈ from ws.q, ws.qd and ws.control into ws.dof[].qdd; for the adjoint, also δ.
template <bool KeepDelta, class Real, class Const>
BACKDRIVE_HD void forward_dynamics(Workspace<Real, Const>& ws) {
  displacements_and_forces(ws);
  kinematics(ws);
  articulate(ws);
  solve_outwards<KeepDelta>(ws, &DofScratch<Real>::qdd);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
