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
// which costs 50 multiply-adds where I a + v ×* I v costs 70. Joints of several degrees of freedom are taken apart one
// degree after the other, from the child's side on, as if there were massless links between them: the factors of M are
// then triangular within a joint, and no D but a number is ever inverted. Reference: Featherstone, Rigid Body Dynamics
// Algorithms (2008), §7.3, in one common frame; the split is ours.
#include "integrators/featherstone/joints.h"
#include "integrators/featherstone/link_forces.h"
#include "integrators/featherstone/rigid_turn.h"
#include "integrators/featherstone/working_set.h"
#include "integrators/rollout/broadcast.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Where a link is placed before its joint moves it: axes R_p R and origin p_p + R_p t. O lies at the root joint.
template <class Real, class Const>
BACKDRIVE_INLINE void placement(const Link& link, const LinkConstants<Const>& c, const Pose<Real>& parent,
                                Mat3<Real>& axes, Vec3<Real>& origin) {
  if (link.parent < 0) {
    axes = broadcast<Real>(c.rotation);
    origin = zero3<Real>();
  } else {
    axes = parent.axes * c.rotation;
    origin = plus_times(parent.origin, parent.axes, c.translation);
  }
}

/// What carries a root: at rest, with gravity as an acceleration upwards.
template <class Layout>
BACKDRIVE_INLINE Motion<typename Layout::Real> world_motion(const Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  return {{identity3<Real>(), zero3<Real>()}, zero6<Real>(), {zero3<Real>(), zero3<Real>() - ws.gravity}};
}

/// Equation (1) of one link: pose, v and bias acceleration (q̈ = 0).
template <class Joint, class Layout, class Const>
BACKDRIVE_PART void move_link(Workspace<Layout>& ws, const Link& link, const LinkConstants<Const>& c,
                              const Motion<typename Layout::Real>& parent, Motion<typename Layout::Real>& own) {
  using Real = typename Layout::Real;
  constexpr int K = Joint::dofs;
  typename Layout::Dof* dof = ws.dof + link.v;
  Mat3<Real> axes;
  Vec3<Real> origin;
  Real displacement[2];
  if constexpr (!Layout::ahead) {
    Joint::displace(ws.q + link.q, displacement);
  } else if constexpr (Joint::displaced) {
    for (int k = 0; k < 2; ++k) displacement[k] = dof->displacement[k];
  }
  placement(link, c, parent, axes, origin);
  [[maybe_unused]] const Mat3<Real> placed = axes;
  Joint::move(ws.q + link.q, displacement, axes, origin);
  Spatial<Real> rate = zero6<Real>();  // S q̇
  if constexpr (K > 0) {
    Spatial<Real> S[K];
    Joint::subspace(placed, axes, origin, S);
    for (int k = 0; k < K; ++k) dof[k].S = S[k];
    rate = S[0] * ws.qd[link.v];
    for (int k = 1; k < K; ++k) rate += S[k] * ws.qd[link.v + k];
  }
  own.axes = axes;
  own.origin = origin;
  own.v = parent.v + rate;
  if constexpr (Joint::fixed_in_world) {
    own.a = {parent.a.ang, plus_cross(parent.a.lin, rate.lin, rate.ang)};
  } else {
    own.a = K > 0 && link.parent >= 0 ? plus_cross_motion(parent.a, parent.v, rate) : parent.a;
  }
}

/// Pose and subspace of a link.
template <class Real>
struct PlacedLink : Pose<Real> {
  Spatial<Real> S[Free::dofs];
};
/// What the motion about O sees of a joint's position: of a free root its quaternion.
template <class Joint, class Real>
struct JointPosition {
  static constexpr int size = Joint::dofs > 1 ? 4 : Joint::dofs;
  Real q[4];

  BACKDRIVE_INLINE explicit JointPosition(const Real* from) : q{} {
    for (int k = 0; k < size; ++k) q[k] = from[k];
  }
  /// q ⊕ time · rates.
  BACKDRIVE_INLINE JointPosition moved([[maybe_unused]] const Real* rates, const Real& time) const {
    JointPosition to = *this;
    if constexpr (Joint::dofs == 1) {
      to.q[0] = q[0] + time * rates[0];
    } else if constexpr (Joint::dofs > 1) {
      constexpr TurnSide side = Joint::fixed_in_world ? TurnSide::left : TurnSide::right;
      const Quaternion<Real> at = turned<side>(load_quaternion(q), vector_at(rates) * time);
      to.q[0] = at.v.x, to.q[1] = at.v.y, to.q[2] = at.v.z, to.q[3] = at.w;
    }
    return to;
  }
};
/// Those of link i with its joint at a position.
template <class Joint, class Layout>
BACKDRIVE_PART void place_link(const Workspace<Layout>& ws, int i,
                               const JointPosition<Joint, typename Layout::Real>& at,
                               const Pose<typename Layout::Real>& parent, PlacedLink<typename Layout::Real>& own) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  Real displacement[2];
  placement(link, ws.constants[i], parent, own.axes, own.origin);
  [[maybe_unused]] const Mat3<Real> placed = own.axes;
  Joint::displace(at.q, displacement);
  Joint::move(at.q, displacement, own.axes, own.origin);
  if constexpr (Joint::dofs > 0) Joint::subspace(placed, own.axes, own.origin, own.S);
}
/// What a joint's rates make of its parent's twist.
template <class Joint, class Real>
BACKDRIVE_INLINE Spatial<Real> moved_by(const Spatial<Real>& parent, const PlacedLink<Real>& own,
                                        [[maybe_unused]] const Real* rates) {
  Spatial<Real> v = parent;
  for (int k = 0; k < Joint::dofs; ++k) v += own.S[k] * rates[k];
  return v;
}

/// Inertia and bias force of one body.
template <class Real, class Const>
BACKDRIVE_PART void body_part(const Motion<Real>& m, const LinkConstants<Const>& c, RolloutLink<Real>& s) {
  const Vec3<Real> com = plus_times(m.origin, m.axes, c.com);
  const Sym3<Real> J = rotated(m.axes, c.inertia);
  set(s.I, broadcast<Real>(c.mass), com, J);
  const Vec3<Real> v_c = plus_cross(m.v.lin, m.v.ang, com);
  const Vec3<Real> a_c = plus_cross(plus_cross(m.a.lin, m.a.ang, com), m.v.ang, v_c);
  const Vec3<Real> f = a_c * c.mass;
  s.force = {plus_cross(plus_cross(J * m.a.ang, m.v.ang, J * m.v.ang), com, f), f};
}

/// (20): m g of a body, of which its lift is taken off the bias force.
template <class Real, class Const>
BACKDRIVE_INLINE Vec3<Real> lift_of(const LinkConstants<Const>& c, const Vec3<Real>& gravity) {
  return gravity * (constant<Real>(0) + c.lift);
}
template <class Real, class Const>
BACKDRIVE_PART void add_lift(const Motion<Real>& m, const LinkConstants<Const>& c, const Vec3<Real>& gravity,
                             RolloutLink<Real>& s) {
  const Vec3<Real> f = lift_of(c, gravity) * c.mass;
  s.force += Spatial<Real>{cross(plus_times(m.origin, m.axes, c.com), f), f};
}

/// visit(link) of a link and of what is fixed to it.
template <class Visit>
BACKDRIVE_INLINE void each_carried(const Link* links, int i, const Visit& visit) {
  visit(i);
  for (int k = i + 1; k < links[i].fixed_end; ++k) {
    if (links[k].carrier == i) visit(k);
  }
}
/// Of a link's body and of what is fixed to it.
template <class Layout>
BACKDRIVE_INLINE RigidInertia<typename Layout::Real> carried_inertia(const Workspace<Layout>& ws, int i) {
  RigidInertia<typename Layout::Real> I = ws.link[i].I;
  for (int k = i + 1; k < ws.links[i].fixed_end; ++k) {
    if (ws.links[k].carrier == i) add_body(ws.link[k].I, I);
  }
  return I;
}
/// Where a ball joint is: Σ e × (p × e) = 2 p of its three S = [e; p × e].
template <class Layout>
BACKDRIVE_INLINE Vec3<typename Layout::Real> ball_position(const Workspace<Layout>& ws, const Link& link) {
  const typename Layout::Dof* const dof = ws.dof + link.v;
  const auto twice = [&](int k) { return cross(dof[k].S.ang, dof[k].S.lin); };
  return (twice(0) + twice(1) + twice(2)) * constant<typename Layout::Real>(0.5);
}

/// (12) of a link that spins and all that is fixed to it: about the joint of a ball, else about the centre of mass.
/// `carrier`: angular velocity of the link that carries it; `rates`: q̇ or what takes its place.
template <class Layout>
BACKDRIVE_INLINE FreeTurn<typename Layout::Real> free_turn(const Workspace<Layout>& ws, const Link& link,
                                                           const Vec3<typename Layout::Real>& omega,
                                                           const Vec3<typename Layout::Real>& carrier,
                                                           const typename Layout::Real* rates) {
  using Real = typename Layout::Real;
  const int i = static_cast<int>(&link - ws.links);
  const typename Layout::Dof* const dof = ws.dof + link.v;
  const RigidInertia<Real> I = carried_inertia(ws, i);
  Sym3<Real> J = inertia_about_com(I);
  Vec3<Real> held = zero3<Real>();
  if (link.type == JointType::ball) {
    if (link.fixed_end < 0) {
      add_point_mass(I.m, Mat3<Real>{dof[0].S.ang, dof[1].S.ang, dof[2].S.ang} * ws.constants[i].com, J);
    } else {
      add_point_mass(I.m, com_of(I) - ball_position(ws, link), J);
    }
    if (link.parent >= 0) held = -carrier;
  } else if (link.type == JointType::revolute) {
    held = dof[0].S.ang * rates[link.v];
  }
  return FreeTurn<Real>(J, omega, held, ws.dt);
}

template <class Layout>
void displacements(Workspace<Layout>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.type == JointType::fixed) continue;
    typename Layout::Dof& dof = ws.dof[link.v];
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) { joint.displace(ws.q + link.q, dof.displacement); });
  }
}

/// Whether a link has several children.
BACKDRIVE_INLINE bool branches(const Link* links, int i) {
  return !links[i].leaf && !links[i + 1].last_child;
}

/// Root to leaves: number(v, δ) is the rate or acceleration of a degree of freedom whose parent side moves with δ, and
/// visit(i, δ) sees the motion that they all cause of each link.
template <class Layout, class Number, class Visit>
BACKDRIVE_HD void spread_motion(Workspace<Layout>& ws, const Number& number, const Visit& visit) {
  using Real = typename Layout::Real;
  Spatial<Real> delta = zero6<Real>();
  Stack<Spatial<Real>> branchings(ws.stack);
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.parent < 0) {
      delta = zero6<Real>();
    } else if (link.parent != i - 1) {
      delta = link.last_child ? branchings.pop() : branchings.last();
    }
    visit_dofs(
        link.type, [&](auto dofs) __attribute__((always_inline)) {
          for (int v = link.v; v < link.v + dofs(); ++v) delta += ws.dof[v].S * number(v, delta);
        });
    visit(i, delta);
    if (branches(ws.links, i)) branchings.push(delta);
  }
}

template <class Layout>
BACKDRIVE_INLINE int end_of_tree(const Workspace<Layout>& ws, int root) {
  int end = root + 1;
  while (end < ws.link_count && ws.links[end].parent >= 0) ++end;
  return end;
}

/// (26) of what flies as one body with a root, from S and the inertias of its links.
template <class Layout>
BACKDRIVE_INLINE RigidTurn<typename Layout::Real> rigid_turn(const Workspace<Layout>& ws, int root) {
  using Real = typename Layout::Real;
  const int v = ws.links[root].v;
  const typename Layout::Dof* const dof = ws.dof + v;
  const Vec3<Real> omega = Mat3<Real>{dof[0].S.ang, dof[1].S.ang, dof[2].S.ang} * vector_at(ws.qd + v);
  return {carried_inertia(ws, root), omega, ws.dt};
}

/// (12) of what spins with bodies fixed to it, once the inertias of all are known.
template <class Layout>
BACKDRIVE_CALLED void add_couples_of_several(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  const auto rate = [&](int v, const Spatial<Real>&) { return ws.qd[v]; };
  spread_motion(ws, rate, [&](int i, const Spatial<Real>& velocity) {
    const Link& link = ws.links[i];
    if (!link.spins || link.fixed_end < 0) return;
    Vec3<Real> carrier = velocity.ang;
    for (int v = link.v; v < link.v + joint_size(link.type).nv; ++v) carrier -= ws.dof[v].S.ang * ws.qd[v];
    ws.link[i].force.ang += free_turn(ws, link, velocity.ang, carrier, ws.qd).correction();
  });
}

/// Equation (1), root to leaves: positions, velocities, bias accelerations and each body's own bias force.
template <class Layout>
BACKDRIVE_HD void kinematics(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  if constexpr (Layout::ahead) displacements(ws);
  Motion<Real> parent = world_motion(ws);
  Stack<Motion<Real>> branchings(ws.stack);
  bool several = false;
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.parent < 0) {
      parent = world_motion(ws);
    } else if (link.parent != i - 1) {
      parent = link.last_child ? branchings.pop() : branchings.last();
    }
    const auto& c = ws.constants[i];
    Motion<Real> own;
    visit_joint(
        link.type, [&](auto joint)
                       __attribute__((always_inline)) { move_link<decltype(joint)>(ws, link, c, parent, own); });
    body_part(own, c, ws.link[i]);
    if (link.spins && link.fixed_end < 0) {
      ws.link[i].force.ang += free_turn(ws, link, own.v.ang, parent.v.ang, ws.qd).correction();  // (12)
    }
    several = several || (link.spins && link.fixed_end >= 0);
    if (link.lifted) add_lift(own, c, ws.gravity, ws.link[i]);
    ws.link[i].keep(own, ws.poses || (link.touches && keeps_for_contact(ws)));
    if constexpr (Layout::contact) {
      if (link.parent < 0) ws.contact.common = own.v;
      if (link.touches) keep_for_contact(ws, i, own);
    }
    if (branches(ws.links, i)) branchings.push(own);
    parent = own;
  }
  if (several) add_couples_of_several(ws);
  for (int root = 0; root < ws.link_count; ++root) {
    if (ws.links[root].rigid) ws.link[root].force += rigid_turn(ws, root).correction();  // (26)
  }
}

/// Equations (2)-(3) of one link. `top` holds what its subtree sums to, and then what its parent's does so far. The
/// last child starts its parent's, from the parent's own body; the others add.
template <int K, class Layout, class System>
BACKDRIVE_PART void articulate_link(Workspace<Layout>& ws, const System& system, int i,
                                    Articulated<typename Layout::Real>& top,
                                    Stack<Articulated<typename Layout::Real>>& stack) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  constexpr int last = K > 0;  // the degree on the parent's side, whose elimination is one with the sum there
  Spatial<Real> U, UD;
  Real x;
  const auto forces = system.template joint<K>(i);
  for (int k = K - 1; k >= 0; --k) {
    typename Layout::Dof& dof = ws.dof[link.v + k];
    const JointForce<Real> force = forces(k);
    auto& factors = system.factors(dof);
    U = top.IA * dof.S;
    const Real inverse = constant<Real>(1) / (dot(dof.S, U) + force.increment);
    const Real r = force.effort - dot(dof.S, top.P);
    UD = U * inverse;
    x = inverse * r;
    factors.UD = UD;
    factors.x = x;
    factors.inverse = inverse;
    if (k == 0) break;
    less_outer(top.IA, U, UD);
    top.P += U * x;
  }
  if (link.parent < 0) return;
  compiler_barrier();
  if (link.last_child) {
    set_less_outer<last>(top.IA, ws.link[link.parent].I, top.IA, &U, &UD);
    system.add_body(link.parent, top);
  } else {
    const Articulated<Real>& others = stack.pop();
    add_less_outer<last>(top.IA, others.IA, &U, &UD);
    top.P += others.P;
  }
  if constexpr (K > 0) top.P += U * x;
  if (link.parent != i - 1) stack.push(top);
}

/// Equations (2)-(3), leaves to root, of the system that says what a body brings (add_body: beside its inertia, which
/// top has), what a degree of freedom brings (joint: effort, and what D has beside the inertias), and where its factors
/// are kept (factors).
template <class Layout, class System>
BACKDRIVE_HD void articulate_system(Workspace<Layout>& ws, const System& system) {
  using Real = typename Layout::Real;
  Articulated<Real> top;
  Stack<Articulated<Real>> stack(ws.stack);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    if (ws.links[i].leaf) {
      set(top.IA, ws.link[i].I);
      top.P = zero6<Real>();
      system.add_body(i, top);
    }
    visit_dofs(
        ws.links[i].type, [&](auto dofs)
                              __attribute__((always_inline)) { articulate_link<dofs()>(ws, system, i, top, stack); });
  }
}

/// All but contact: bias forces, joint forces and their increments.
template <class Layout>
struct SmoothSystem {
  using Real = typename Layout::Real;
  Workspace<Layout>& ws;

  BACKDRIVE_INLINE void add_body(int i, Articulated<Real>& top) const { top.P = ws.link[i].force + top.P; }
  template <int K>
  BACKDRIVE_INLINE auto joint(int i) const {
    return [forces = LinkForces<K, Layout>(ws, i)](int k) __attribute__((always_inline)) {
      const JointForce<Real> force = forces(k);
      if constexpr (Layout::contact) {
        if (keeps_for_contact(forces.ws)) forces.ws.with_blocks[forces.link.v + k].increment = force.increment;
      }
      return force;
    };
  }
  BACKDRIVE_INLINE auto& factors(typename Layout::Dof& dof) const { return dof; }
};

/// Equations (2)-(3) of everything but contact.
template <class Layout>
BACKDRIVE_HD void articulate(Workspace<Layout>& ws) {
  articulate_system(ws, SmoothSystem<Layout>{ws});
}

/// The factors of M̃ of a degree of freedom.
struct OwnFactors {
  template <class Dof>
  BACKDRIVE_INLINE Dof& operator()(Dof& dof) const {
    return dof;
  }
};

/// Leaves to root: add_force(i, P) adds a link's own to the force P that its subtree hands on, and take(i, v, P) is
/// what each of its degrees of freedom makes of that, the last one first.
template <class Layout, class AddForce, class Take>
BACKDRIVE_HD void gather_forces(Workspace<Layout>& ws, const AddForce& add_force, const Take& take) {
  using Real = typename Layout::Real;
  Spatial<Real> force = zero6<Real>();
  Stack<Spatial<Real>> stack(ws.stack);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    if (link.leaf) force = zero6<Real>();
    add_force(i, force);
    visit_dofs(
        link.type, [&](auto dofs) __attribute__((always_inline)) {
          for (int v = link.v + dofs() - 1; v >= link.v; --v) take(i, v, force);
        });
    if (link.parent < 0) continue;
    if (!link.last_child) force += stack.pop();
    if (link.parent != i - 1) stack.push(force);
  }
}

/// Leaves-to-root half of a solve (6): add_force as in gather_forces; remainder(dof, Sᵀ P) is r, and D⁻¹ r goes into
/// factors_of(dof).x.
template <class Layout, class FactorsOf, class AddForce, class Remainder>
BACKDRIVE_HD void solve_inwards_with(Workspace<Layout>& ws, const FactorsOf& factors_of, const AddForce& add_force,
                                     const Remainder& remainder) {
  using Real = typename Layout::Real;
  const auto eliminate = [&](int, int v, Spatial<Real>& force) __attribute__((always_inline)) {
    typename Layout::Dof& dof = ws.dof[v];
    auto& factors = factors_of(dof);
    const Real r = remainder(dof, dot(dof.S, force));
    factors.x = factors.inverse * r;
    force += factors.UD * r;
  };
  gather_forces(ws, add_force, eliminate);
}

/// Root-to-leaves half of a solve (4), (6), with the factors and D⁻¹ r in factors_of(dof): keep(dof, solution), and
/// visit(i, δ) with the motion it causes of each link.
template <class Layout, class FactorsOf, class Keep, class Visit>
BACKDRIVE_HD void solve_outwards_with(Workspace<Layout>& ws, const FactorsOf& factors_of, const Keep& keep,
                                      const Visit& visit) {
  using Real = typename Layout::Real;
  const auto solution = [&](int v, const Spatial<Real>& delta) __attribute__((always_inline)) {
    typename Layout::Dof& dof = ws.dof[v];
    const auto& factors = factors_of(dof);
    const Real x = factors.x - dot(factors.UD, delta);  // D⁻¹ r − (U D⁻¹)ᵀ δ_p
    keep(dof, x);
    return x;
  };
  spread_motion(ws, solution, visit);
}

/// The same from dof[].x into dof[].*x.
template <class Layout, class Solution, class Visit>
BACKDRIVE_HD void solve_outwards(Workspace<Layout>& ws, Solution x, const Visit& visit) {
  using Dof = typename Layout::Dof;
  using Real = typename Layout::Real;
  solve_outwards_with(
      ws, OwnFactors{}, [x](Dof & dof, const Real& sum) __attribute__((always_inline)) { dof.*x = sum; }, visit);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
