#pragma once
// Adjoint of dynamics.h: equations (6)-(8). Expects the workspace as forward_dynamics<true> left it.
//
// With φ = Σ over bodies of δ·(force on the body), the loss's cotangents are −∂φ. Per body, in the terms of dynamics.h,
//
//   φ = m δ_c·a_c + δ_ω·(J α + ω × J ω),   δ_c = δ_lin + δ_ω × c,   g = δ_ω × ω
//   F = ∂φ/∂δ = [J α + ω × J ω + c × f; f],  f = m a_c          A = ∂φ/∂a = [J δ_ω + c × A_l; A_l],  A_l = m δ_c
//   V = ∂φ/∂v = [v_c × A_l + c × V_l + J ω × δ_ω + J g; V_l],   V_l = A_l × ω
//   Z = ∂φ/∂pose = [c × Z_l + J α × δ_ω + J δ_ω × α + J ω × g + J g × ω; Z_l],  Z_l = f × δ_ω + A_l × α + V_l × ω
//
// which is (7) with the inertia about the com: 160 multiply-adds instead of 230.
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

/// Equation (6): M w = g with the factors of the forward step. g stands in dof.r; δ per link and w per degree of freedom.
template <class Real, class Const>
void solve_again(Workspace<Real, Const>& ws) {
  for (int i = 0; i < ws.link_count; ++i) ws.link[i].force = zero6<Real>();
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    Spatial<Real> force = ws.link[i].force;
    visit_joint(link.type, [&](auto joint) __attribute__((always_inline)) {
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
    if (link.parent >= 0) ws.link[link.parent].force += force;
  }
  solve_outwards(ws, &DofScratch<Real>::w);
}

/// Equation (7) for one body; where parameters are asked for, also what mass, com and inertia receive.
template <class Real, class Const>
BACKDRIVE_INLINE void body_adjoint(const LinkScratch<Real>& s, const LinkConstants<Const>& c,
                                   LinkGradient<Real>* gradient, HandedBar<Real>& h) {
  const Vec3<Real>&w = s.v.ang, &alpha = s.a.ang, &com = s.com, &delta = s.delta.ang;
  const Sym3<Real>& J = s.inertia;
  const Vec3<Real> v_c = s.v.lin + cross(w, com);
  const Vec3<Real> a_c = s.a.lin + cross(alpha, com) + unless(Mutation::bias_acceleration, cross(w, v_c));
  const Vec3<Real> delta_c = s.delta.lin + cross(delta, com);
  const Vec3<Real> f = a_c * c.mass;
  const Vec3<Real> A = delta_c * c.mass;
  const Vec3<Real> V = cross(A, w);
  const Vec3<Real> Z = unless(Mutation::force_turn, cross(f, delta)) + cross(A, alpha) + cross(V, w);
  const Vec3<Real> g = cross(delta, w);
  const Vec3<Real> J_alpha = J * alpha, J_delta = J * delta, J_w = J * w, J_g = J * g;
  if (gradient) {
    gradient->mass -= dot(delta_c, a_c);
    gradient->com -= mutated(Mutation::com_in_world_axes) ? Z : transposed_times(s.axes, Z);
    const auto turned = [&](const Vec3<Real>& v) __attribute__((always_inline)) {
      return mutated(Mutation::inertia_in_world_axes) ? v : transposed_times(s.axes, v);
    };
    const Vec3<Real> x = turned(delta), y = turned(alpha), u = turned(g), z = turned(w);
    Sym3<Real>& bar = gradient->inertia;
    bar.xx -= x.x * y.x + u.x * z.x;
    bar.yy -= x.y * y.y + u.y * z.y;
    bar.zz -= x.z * y.z + u.z * z.z;
    bar.xy -= x.x * y.y + x.y * y.x + u.x * z.y + u.y * z.x;
    bar.xz -= x.x * y.z + x.z * y.x + u.x * z.z + u.z * z.x;
    bar.yz -= x.y * y.z + x.z * y.y + u.y * z.z + u.z * z.y;
    if (mutated(Mutation::inertia_off_diagonal)) bar.xy += x.x * y.y + u.x * z.y;
  }
  h.F = {J_alpha + cross(w, J_w) + cross(com, f), f};
  h.A = {J_delta + cross(com, A), A};
  h.V = {cross(v_c, A) + cross(com, V) + unless(Mutation::gyroscopic_term, cross(J_w, delta) + J_g), V};
  h.Z = {unless(Mutation::com_lever, cross(com, Z)) + cross(J_alpha, delta) + cross(J_delta, alpha) + cross(J_w, g) +
             cross(J_g, w),
         Z};
}

/// Gradient of a joint's placement: what moves with it is everything that Z collected. (adjoint.md (d))
template <class Real, class Const>
BACKDRIVE_INLINE void placement_adjoint(const Workspace<Real, Const>& ws, int i,
                                        const Spatial<Real>& Z, LinkGradient<Real>& gradient) {
  Mat3<Real> axes;
  Vec3<Real> origin;
  placement(ws, ws.links[i], ws.constants[i], axes, origin);
  gradient.rotation -= transposed_times(axes, Z.ang - unless(Mutation::placement_without_shift, cross(origin, Z.lin)));
  // A root's translation moves O along with it: the motion about O does not see it.
  if (ws.links[i].parent >= 0) {
    gradient.translation -= transposed_times(ws.link[ws.links[i].parent].axes, Z.lin);
  }
}

/// Equation (8) of one joint: q̄, q̇̄, and h becomes what the parent receives.
template <int K, class Real, class Const>
BACKDRIVE_INLINE void joint_adjoint(const Workspace<Real, Const>& ws, const Link& link, const StepBar<Real>& bar,
                                    HandedBar<Real>& h) {
  if constexpr (K > 0) {
    const DofScratch<Real>* dof = ws.dof + link.v;
    Spatial<Real> t = h.V;  // V + s ×* A − v ×* A, where v − s is the parent's velocity
    if (link.parent >= 0) {
      const Spatial<Real> A = h.A;
      t -= unless(Mutation::bias_in_velocity, cross_force(ws.link[link.parent].v, A));
      Spatial<Real> rate = dof[0].S * ws.qd[link.v];
      for (int k = 1; k < K; ++k) rate += dof[k].S * ws.qd[link.v + k];
      if (!mutated(Mutation::velocity_carry)) h.V += cross_force(rate, A);
    }
    for (int k = 0; k < K; ++k) {
      const Real flow = dot(dof[k].S, t);
      bar.qd[link.v + k] -= mutated(Mutation::sign_of_velocity) ? -flow : flow;
    }
    for (int k = 0; k < K; ++k) {
      const Spatial<Real> S_bar = h.F * dof[k].w + h.A * dof[k].qdd + t * ws.qd[link.v + k];
      if (!mutated(Mutation::subspace_cotangent)) h.Z += cross_force(dof[k].S, S_bar);
    }
    for (int k = 0; k < K; ++k) bar.q[link.q + k] -= dot(dof[k].S, h.Z);
  }
}

/// Equations (7)-(8), leaves to root. bar.q and bar.qd hold the cotangents of q⁺ and q̇⁺ in the sense of step_adjoint.
template <class Real, class Const>
void reverse_sweep(Workspace<Real, Const>& ws, const StepBar<Real>& bar) {
  for (int i = 0; i < ws.link_count; ++i) {
    body_adjoint(ws.link[i], ws.constants[i], bar.constants ? bar.constants + i : nullptr, ws.bar[i]);
  }
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    HandedBar<Real>& h = ws.bar[i];
    const Spatial<Real> Z_before = mutated(Mutation::placement_before) ? h.Z : zero6<Real>();
    visit_joint(link.type, [&](auto joint) __attribute__((always_inline)) {
      joint_adjoint<decltype(joint)::dofs>(ws, link, bar, h);
    });
    if (bar.constants) {
      placement_adjoint(ws, i, mutated(Mutation::placement_before) ? Z_before : h.Z, bar.constants[i]);
    }
    if (link.parent >= 0) {
      HandedBar<Real>& parent = ws.bar[link.parent];
      parent.F += h.F, parent.A += h.A, parent.V += h.V, parent.Z += h.Z;
    } else if (bar.gravity) {
      *bar.gravity += mutated(Mutation::gravity_sign) ? -h.A.lin : h.A.lin;
    }
  }
}

/// Cotangents of command, targets and joint-force parameters, and their part of q̄ and q̇̄.
template <class Real, class Const>
void joint_forces_adjoint(Workspace<Real, Const>& ws, const StepBar<Real>& bar) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.type == JointType::fixed) continue;
    const Real zero = constant<Real>(0);
    JointInputBar<Real> in{zero, zero, zero, zero, zero};
    adj_joint_force(link, ws.constants[i], joint_input(ws, link), ws.dt, ws.dof[link.v].w,
                    ws.dof[link.v].qdd, in, bar.constants ? bar.constants + i : nullptr);
    bar.q[link.q] += in.q;
    bar.qd[link.v] += in.qd;
    bar.control[link.v] += in.effort;
    if (link.target >= 0) {
      bar.control[link.target] += in.target_position;
      bar.control[link.target + 1] += in.target_velocity;
    }
  }
}

/// Adjoint of one step (5): on entry bar.q, bar.qd hold the cotangents of q⁺, q̇⁺; on return those of q, q̇. Adds to
/// bar.control, bar.constants and bar.gravity.
template <class Real, class Const>
void step_adjoint(Workspace<Real, Const>& ws, const StepBar<Real>& bar) {
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    if (link.type == JointType::fixed) continue;
    bar.qd[link.v] += unless(Mutation::drift_transport, ws.dt * bar.q[link.q]);     // q⁺ = q + Δt q̇⁺
    ws.dof[link.v].r = ws.dt * bar.qd[link.v];   // q̇⁺ = q̇ + Δt q̈
  }
  solve_again(ws);
  reverse_sweep(ws, bar);
  joint_forces_adjoint(ws, bar);
}

}  // namespace backdrive::featherstone
