#pragma once
// Adjoint of dynamics.h: equations (6)-(8). Expects the workspace as forward_dynamics left it.
//
// With φ = Σ over bodies of δ·(force on the body), the loss's cotangents are −∂φ. Four derivatives are needed,
//
//   F = ∂φ/∂δ    A = ∂φ/∂a    V = ∂φ/∂v    Z = −∂φ/∂pose
//
// summed over the subtree of each joint, and two identities spare most of the work:
//
// * φ of a subtree does not change when the subtree and the motions δ, a, v of the link that carries it are turned and
//   moved together, so that Z follows from the rest:   Z = δ_p ×* F + a_p ×* A + v_p ×* V.
// * With T = ½ (V − v ×* A) in place of V, velocities drop out of what a body contributes, and one cross product out of
//   what a joint does: per body of inertia (m, h, J) about O, with the second moment Σ = ½ tr J 1 − J,
//
//     T = [h × (δ_lin × ω) + δ_ω × Σ ω; m δ_c × ω]                    from  Σa × b + a × Σb + Σ(a × b) = tr Σ (a × b).
//
// F is what the joint transmits and is known from the articulated inertia: F = IA δ + P with δ and P of (3)-(4).
#include "integrators/featherstone/dynamics.h"
#include "integrators/featherstone/mutations.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Cotangents that one step produces or passes on, all of the running step.
template <class Real>
struct StepBar {
  Real *q, *qd, *control;         ///< in: of q⁺ and q̇⁺; out: of q, q̇ and the control
  LinkGradient<Real>* constants;  ///< null: nobody asked for parameters
  Vec3<Real>* gravity;            ///< likewise
};

/// F of (7), and true accelerations: what is left of the forward step, before (6) takes its scratch.
template <class Real, class Const>
BACKDRIVE_HD void transmitted_forces(Workspace<Real, Const>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    LinkScratch<Real>& s = ws.link[i];
    ws.bar[i].F = plus_times(s.force, s.IA, s.delta);
    s.a += s.delta;
  }
}

/// Equation (6): M w = g with the factors of the forward step. g stands in dof.r; δ per link and w per degree of
/// freedom.
template <class Real, class Const>
BACKDRIVE_HD void solve_again(Workspace<Real, Const>& ws) {
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    Spatial<Real> force = zero6<Real>();
    if (!link.leaf) force = ws.link[i].force;
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          constexpr int K = decltype(joint)::dofs;
          if constexpr (K > 0) {
            DofScratch<Real>* dof = ws.dof + link.v;
            for (int k = 0; k < K; ++k) dof[k].r -= dot(dof[k].S, force);
            for (int k = 0; k < K; ++k) {
              dof[k].x = dof[k].inverse[0] * dof[0].r;
              for (int l = 1; l < K; ++l) dof[k].x += dof[k].inverse[l] * dof[l].r;
              force += dof[k].UD * dof[k].r;
            }
          }
        });
    if (link.parent < 0) continue;
    Spatial<Real>& parent = ws.link[link.parent].force;
    parent = link.last_child ? force : parent + force;
  }
  solve_outwards<true>(ws, &DofScratch<Real>::w);
}

/// What mass, com and inertia of one body receive.
template <class Real, class Const>
BACKDRIVE_INLINE void mass_properties_adjoint(const LinkScratch<Real>& s, const LinkConstants<Const>& c,
                                              LinkGradient<Real>& gradient) {
  const Vec3<Real>&w = s.v.ang, &alpha = s.a.ang, &delta = s.delta.ang;
  const Vec3<Real> com = s.origin + s.axes * c.com;
  const Vec3<Real> v_c = s.v.lin + cross(w, com);
  const Vec3<Real> a_c = s.a.lin + cross(alpha, com) + unless(Mutation::bias_acceleration, cross(w, v_c));
  const Vec3<Real> delta_c = s.delta.lin + cross(delta, com);
  gradient.mass -= dot(delta_c, a_c);
  const Vec3<Real> Z = (cross(a_c, delta) + cross(delta_c, alpha) + cross(cross(delta_c, w), w)) * c.mass;
  gradient.com -= mutated(Mutation::com_in_world_axes) ? Z : transposed_times(s.axes, Z);
  const auto turned = [&](const Vec3<Real>& v) __attribute__((always_inline)) {
    return mutated(Mutation::inertia_in_world_axes) ? v : transposed_times(s.axes, v);
  };
  const Vec3<Real> x = turned(delta), y = turned(alpha), z = turned(w), u = cross(x, z);
  Sym3<Real>& bar = gradient.inertia;
  bar.xx -= x.x * y.x + u.x * z.x;
  bar.yy -= x.y * y.y + u.y * z.y;
  bar.zz -= x.z * y.z + u.z * z.z;
  bar.xy -= x.x * y.y + x.y * y.x + u.x * z.y + u.y * z.x;
  bar.xz -= x.x * y.z + x.z * y.x + u.x * z.z + u.z * z.x;
  bar.yz -= x.y * y.z + x.z * y.y + u.y * z.z + u.z * z.y;
  if (mutated(Mutation::inertia_off_diagonal)) bar.xy += x.x * y.y + u.x * z.y;
}

/// A and T of one body alone (7).
template <class Real>
BACKDRIVE_INLINE void body_adjoint(const LinkScratch<Real>& s, LinkBar<Real>& bar) {
  const Vec3<Real>&w = s.v.ang, &delta = s.delta.ang;
  const RigidInertia<Real>& I = s.I;
  bar.A = I * s.delta;
  const Vec3<Real> second_moment = w * (constant<Real>(0.5) * (I.aa.xx + I.aa.yy + I.aa.zz)) - I.aa * w;  // Σ ω
  bar.T = {unless(Mutation::com_lever, cross(I.h, cross(s.delta.lin, w))) +
               unless(Mutation::gyroscopic_term, cross(delta, second_moment)),
           cross(bar.A.lin, w)};
}

/// Gradient of a joint's placement: what moves with it is all that Z is about. (adjoint.md (d))
template <class Real, class Const>
BACKDRIVE_INLINE void placement_adjoint(const Workspace<Real, Const>& ws, int i, const Spatial<Real>& Z,
                                        LinkGradient<Real>& gradient) {
  Mat3<Real> axes;
  Vec3<Real> origin;
  placement(ws, ws.links[i], ws.constants[i], axes, origin);
  gradient.rotation += transposed_times(axes, Z.ang - unless(Mutation::placement_without_shift, cross(origin, Z.lin)));
  // A root's translation moves O along with it: the motion about O does not see it.
  if (ws.links[i].parent >= 0) {
    gradient.translation += transposed_times(ws.link[ws.links[i].parent].axes, Z.lin);
  }
}

/// Z of a subtree that is carried with δ, a and v; H as in (8).
template <class Real>
BACKDRIVE_INLINE Spatial<Real> turned_with(const Spatial<Real>& delta, const Spatial<Real>& a, const Spatial<Real>& v,
                                           const LinkBar<Real>& bar, const Spatial<Real>& H) {
  Spatial<Real> V = H + H;
  if (!mutated(Mutation::velocity_turn_of_A)) V = plus_cross_force(V, v, bar.A);
  Spatial<Real> sum = unless(Mutation::force_turn, cross_force(delta, bar.F));
  if (!mutated(Mutation::acceleration_turn)) sum = plus_cross_force(sum, a, bar.A);
  return mutated(Mutation::velocity_turn) ? sum : plus_cross_force(sum, v, V);
}

/// Equation (8) of one joint: q̄, q̇̄, what the parent receives, and the gradient of the placement.
template <int K, class Real, class Const>
BACKDRIVE_INLINE void joint_adjoint(Workspace<Real, Const>& ws, int i, const StepBar<Real>& bar) {
  const Link& link = ws.links[i];
  const LinkBar<Real>& own = ws.bar[i];
  const DofScratch<Real>* dof = ws.dof + link.v;
  Spatial<Real> H = own.T;
  if constexpr (K > 0) {
    Spatial<Real> rate = dof[0].S * ws.qd[link.v];
    for (int k = 1; k < K; ++k) rate += dof[k].S * ws.qd[link.v + k];
    if (!mutated(Mutation::velocity_carry)) H = plus_cross_force(H, rate, own.A);
    const Spatial<Real> t = own.T + unless(Mutation::velocity_half, H);
    for (int k = 0; k < K; ++k) {
      const Real flow = dot(dof[k].S, t);
      bar.qd[link.v + k] -= mutated(Mutation::sign_of_velocity) ? -flow : flow;
    }
  }
  Spatial<Real> Z;
  if (link.parent >= 0) {
    const LinkScratch<Real>& parent = ws.link[mutated(Mutation::own_motion) ? i : link.parent];
    Z = turned_with(parent.delta, parent.a, parent.v, own, H);
    LinkBar<Real>& sum = ws.bar[link.parent];
    sum.A += own.A;
    sum.T += H;
  } else {
    Z = unless(Mutation::root_gravity, Spatial<Real>{cross(own.A.lin, ws.gravity), zero3<Real>()});
    if (bar.gravity) *bar.gravity += mutated(Mutation::gravity_sign) ? -own.A.lin : own.A.lin;
  }
  for (int k = 0; k < K; ++k) bar.q[link.q + k] += dot(dof[k].S, Z);
  if (bar.constants) placement_adjoint(ws, i, Z, bar.constants[i]);
}

/// Equations (7)-(8), leaves to root. bar.q and bar.qd hold the cotangents of q⁺ and q̇⁺ in the sense of step_adjoint.
template <class Real, class Const>
BACKDRIVE_HD void reverse_sweep(Workspace<Real, Const>& ws, const StepBar<Real>& bar) {
  for (int i = 0; i < ws.link_count; ++i) {
    body_adjoint(ws.link[i], ws.bar[i]);
    if (bar.constants) mass_properties_adjoint(ws.link[i], ws.constants[i], bar.constants[i]);
  }
  for (int i = ws.link_count - 1; i >= 0; --i) {
    visit_joint(
        ws.links[i].type, [&](auto joint)
                              __attribute__((always_inline)) { joint_adjoint<decltype(joint)::dofs>(ws, i, bar); });
  }
}

/// Cotangents of command, targets and joint-force parameters, and their part of q̄ and q̇̄.
template <class Real, class Const>
BACKDRIVE_HD void joint_forces_adjoint(Workspace<Real, Const>& ws, const StepBar<Real>& bar) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.type == JointType::fixed) continue;
    const Real zero = constant<Real>(0);
    JointInputBar<Real> in{zero, zero, zero, zero, zero};
    adj_joint_force(link, ws.constants[i], joint_input(ws, link), ws.dt, ws.dof[link.v].w, ws.dof[link.v].qdd, in,
                    bar.constants ? bar.constants + i : nullptr);
    bar.q[link.q] += in.q;
    bar.qd[link.v] += in.qd;
    bar.control[link.v] = in.effort;
    if (link.target >= 0) {
      bar.control[link.target] = in.target_position;
      bar.control[link.target + 1] = in.target_velocity;
    }
  }
}

/// Adjoint of one step (5): on entry bar.q, bar.qd hold the cotangents of q⁺, q̇⁺; on return those of q, q̇. Sets
/// bar.control; adds to bar.constants and bar.gravity.
template <class Real, class Const>
BACKDRIVE_HD void step_adjoint(Workspace<Real, Const>& ws, const StepBar<Real>& bar) {
  for (int k = 0; k < ws.nv; ++k) {
    bar.qd[k] += unless(Mutation::drift_transport, ws.dt * bar.q[k]);  // q⁺ = q + Δt q̇⁺
    ws.dof[k].r = ws.dt * bar.qd[k];                                   // q̇⁺ = q̇ + Δt q̈
  }
  transmitted_forces(ws);
  solve_again(ws);
  reverse_sweep(ws, bar);
  joint_forces_adjoint(ws, bar);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
