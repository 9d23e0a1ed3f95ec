#pragma once
// Forward dynamics of a tree in O(n) and its adjoint, equations (1)-(8) of docs/theory.md.
//
// Everything is in world axes about O, the origin of the tree's root joint. Forward dynamics is split into the bias force
// (inverse dynamics with q̈ = 0, which takes the place of pA and c in (2)-(3)) and a solve with the articulated inertias,
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
  Mat3<Real> axes;      ///< R: link axes in the world
  Vec3<Real> origin;    ///< p: link origin from O
  Spatial<Real> v;      ///< velocity
  Spatial<Real> a;      ///< acceleration; bias acceleration until accelerations() has added its part
  Vec3<Real> com;       ///< c from O
  Sym3<Real> inertia;   ///< J about c, world axes
  Spatial<Real> force;  ///< scratch of the sweeps that need one
  Spatial<Real> delta;  ///< δ of (6)
};

/// Per degree of freedom, indexed as velocities are.
template <class Real>
struct DofScratch {
  Spatial<Real> S, U;
  Real inverse[kMaxJointDofs];  ///< row of D⁻¹
  Real r;                       ///< right-hand side of the solve, less what the subtree takes
  Real qdd, w;                  ///< solutions
  Real effort, increment;       ///< from joint_force
};

/// What children hand to their parent.
template <class Real>
struct Handed {
  ArticulatedInertia<Real> inertia;
  Spatial<Real> force;
};
template <class Real>
BACKDRIVE_INLINE void operator+=(Handed<Real>& a, const Handed<Real>& b) {
  a.inertia += b.inertia;
  a.force += b.force;
}
/// What children hand to their parent in the reverse sweep (8).
template <class Real>
struct HandedBar {
  Spatial<Real> F, A, V, Z;
};

/// The working set of one group of worlds. Nothing in it outlives a step but q, qd and the constants.
template <class Real, class Const>
struct Workspace {
  const Link* links;
  int link_count, nq, nv, slots;
  const LinkConstants<Const>* constants;
  Vec3<Const> gravity;
  Real dt;
  Real *q, *qd, *control;
  LinkScratch<Real>* link;
  DofScratch<Real>* dof;
  Handed<Real>* slot;
  HandedBar<Real>* slot_bar;
};

/// Whether link i + 1 hands its part to link i directly; other children go through a slot.
BACKDRIVE_INLINE bool next_is_child(const Link* links, int count, int i) {
  return i + 1 < count && links[i + 1].parent == i;
}

/// Where a link is placed before its joint moves it: axes R_p R and origin p_p + R_p t. O lies at the root joint.
template <class Real, class Const>
BACKDRIVE_INLINE void placement(const Workspace<Real, Const>& ws, const Link& link,
                                const LinkConstants<Const>& c, Mat3<Real>& axes, Vec3<Real>& origin) {
  if (link.parent < 0) {
    axes = identity3<Real>() * c.rotation;
    origin = zero3<Real>();
  } else {
    const LinkScratch<Real>& parent = ws.link[link.parent];
    axes = parent.axes * c.rotation;
    origin = parent.origin + parent.axes * c.translation;
  }
}

/// Equation (1), root to leaves: positions, velocities and bias accelerations (q̈ = 0, gravity as −g at the root).
template <class Real, class Const>
void kinematics(Workspace<Real, Const>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    LinkScratch<Real>& s = ws.link[i];
    Mat3<Real> axes;
    Vec3<Real> origin;
    placement(ws, link, ws.constants[i], axes, origin);
    Spatial<Real> v = zero6<Real>();
    Spatial<Real> a{zero3<Real>(), zero3<Real>() - ws.gravity};
    if (link.parent >= 0) {
      v = ws.link[link.parent].v;
      a = ws.link[link.parent].a;
    }
    visit_joint(link.type, [&](auto joint) __attribute__((always_inline)) {
      using Joint = decltype(joint);
      joint.move(ws.q + link.q, axes, origin);
      if constexpr (Joint::dofs > 0) {
        DofScratch<Real>* dof = ws.dof + link.v;
        Spatial<Real> S[Joint::dofs];
        joint.subspace(axes, origin, S);
        Spatial<Real> rate = S[0] * ws.qd[link.v];
        for (int k = 1; k < Joint::dofs; ++k) rate += S[k] * ws.qd[link.v + k];
        for (int k = 0; k < Joint::dofs; ++k) dof[k].S = S[k];
        a += cross_motion(v, rate);
        v += rate;
      }
    });
    s.axes = axes;
    s.origin = origin;
    s.v = v;
    s.a = a;
  }
}

/// Bias force and rigid inertia of one body, and its com and inertia in the world.
template <class Real, class Const>
BACKDRIVE_INLINE Handed<Real> body_part(LinkScratch<Real>& s, const LinkConstants<Const>& c) {
  const Vec3<Real> com = s.origin + s.axes * c.com;
  const Sym3<Real> J = rotated(s.axes, c.inertia);
  s.com = com;
  s.inertia = J;
  const Vec3<Real> v_c = s.v.lin + cross(s.v.ang, com);
  const Vec3<Real> a_c = s.a.lin + cross(s.a.ang, com) + cross(s.v.ang, v_c);
  const Vec3<Real> f = a_c * c.mass;
  return {rigid_inertia(constant<Real>(0) + c.mass, com, J),
          {J * s.a.ang + cross(s.v.ang, J * s.v.ang) + cross(com, f), f}};
}

/// One joint of (2)-(3): U, D⁻¹ and right-hand side; `part` becomes what the parent receives.
template <int K, class Real>
BACKDRIVE_INLINE void articulate_joint(DofScratch<Real>* dof, Handed<Real>& part) {
  if constexpr (K > 0) {
    Spatial<Real> U[K];
    Real D[kMaxJointDofs][kMaxJointDofs];
    for (int k = 0; k < K; ++k) {
      U[k] = part.inertia * dof[k].S;
      for (int l = 0; l <= k; ++l) D[k][l] = D[l][k] = dot(dof[l].S, U[k]);
      D[k][k] += dof[k].increment;
      dof[k].r = dof[k].effort - dot(dof[k].S, part.force);
    }
    invert<K>(D);
    for (int k = 0; k < K; ++k) {
      Spatial<Real> scaled = U[0] * D[k][0];
      for (int l = 1; l < K; ++l) scaled += U[l] * D[k][l];
      subtract_outer(part.inertia, U[k], scaled);
      part.force += scaled * dof[k].r;
      dof[k].U = U[k];
      for (int l = 0; l < K; ++l) dof[k].inverse[l] = D[k][l];
    }
  }
}

/// Equations (2)-(3), leaves to root. Efforts and increments are in ws.dof. Along a chain the sum is handed on in place.
template <class Real, class Const>
void articulate(Workspace<Real, Const>& ws) {
  for (int k = 0; k < ws.slots; ++k) ws.slot[k] = Handed<Real>{};
  Handed<Real> part{};
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    const Handed<Real> own = body_part(ws.link[i], ws.constants[i]);
    if (next_is_child(ws.links, ws.link_count, i)) {
      part += own;
    } else {
      part = own;
    }
    if (link.slot >= 0) part += ws.slot[link.slot];
    visit_joint(link.type, [&](auto joint) __attribute__((always_inline)) {
      articulate_joint<decltype(joint)::dofs>(ws.dof + link.v, part);
    });
    if (link.parent >= 0 && link.parent != i - 1) ws.slot[ws.links[link.parent].slot] += part;
  }
}

/// x_k of one joint in the root-to-leaves half of a solve: D⁻¹ (r − Uᵀ δ_p); adds S x to δ.
template <int K, class Real>
BACKDRIVE_INLINE void solve_joint(DofScratch<Real>* dof, Real DofScratch<Real>::*x,
                                  Spatial<Real>& delta) {
  if constexpr (K > 0) {
    Real r[K];
    for (int k = 0; k < K; ++k) r[k] = dof[k].r - dot(dof[k].U, delta);
    for (int k = 0; k < K; ++k) {
      Real sum = dof[k].inverse[0] * r[0];
      for (int l = 1; l < K; ++l) sum += dof[k].inverse[l] * r[l];
      dof[k].*x = sum;
    }
    for (int k = 0; k < K; ++k) delta += dof[k].S * (dof[k].*x);
  }
}

/// Equation (4), root to leaves: q̈, and where asked the true acceleration of each link.
template <bool WithLinks, class Real, class Const>
void accelerations(Workspace<Real, Const>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    Spatial<Real> delta = link.parent < 0 ? zero6<Real>() : ws.link[link.parent].delta;
    visit_joint(link.type, [&](auto joint) __attribute__((always_inline)) {
      solve_joint<decltype(joint)::dofs>(ws.dof + link.v, &DofScratch<Real>::qdd, delta);
    });
    ws.link[i].delta = delta;
    if constexpr (WithLinks) ws.link[i].a += delta;
  }
}

template <class Real, class Const>
BACKDRIVE_INLINE JointInput<Real> joint_input(const Workspace<Real, Const>& ws, const Link& link) {
  const Real zero = constant<Real>(0);
  const bool driven = link.target >= 0;
  return {ws.q[link.q], ws.qd[link.v], ws.control[link.v], driven ? ws.control[link.target] : zero,
          driven ? ws.control[link.target + 1] : zero};
}

/// q̈ from ws.q, ws.qd and ws.control into ws.dof[].qdd.
template <bool WithLinks, class Real, class Const>
void forward_dynamics(Workspace<Real, Const>& ws) {
  kinematics(ws);
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.type == JointType::fixed) continue;
    DofScratch<Real>& dof = ws.dof[link.v];
    joint_force(link, ws.constants[i], joint_input(ws, link), ws.dt, dof.effort, dof.increment);
  }
  articulate(ws);
  accelerations<WithLinks>(ws);
}

}  // namespace backdrive::featherstone
