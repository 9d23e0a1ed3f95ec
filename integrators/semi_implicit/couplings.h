#pragma once
// Couplings of joints in the step of loose bodies: docs/semi_implicit.md, (16)-(18).
//
// A free row's rate is its joint's, so that a coupling's is c·G v: row by row, what it pushes with goes where the
// joints' own impulses go. With M̃ = M + Gᵀ A G and the responses Z = M̃⁻¹ Gᵀ cᵀ,
//
//   (16) M̃ v⁺ = b + Gᵀ cᵀ f       f = ask − I c·G v⁺;   one that holds: c·G v⁺ = ask
//
// as equation (15) of docs/theory.md, with velocities for accelerations and impulses for efforts.
#include "integrators/rollout/coupling_elimination.h"
#include "integrators/rollout/coupling_forces.h"
#include "integrators/semi_implicit/row_solve.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template <class Real>
BACKDRIVE_INLINE bool is_coupled(const System<Real>& system) {
  return system.couplings.count > 0;
}

/// The row that is a joint's degree of freedom.
BACKDRIVE_HD constexpr int row_of(JointType type) {
  return type == JointType::revolute ? 2 : 5;
}

/// Calls visit(term, joint, row) for the terms of a coupling.
template <class Real, class Visit>
BACKDRIVE_INLINE void each_term(const System<Real>& system, int c, const Visit& visit) {
  const CouplingsOf<Real>& all = system.couplings;
  const Coupling& coupling = all.couplings[c];
  for (int t = coupling.first_term; t < coupling.first_term + coupling.term_count; ++t) {
    const int joint = all.terms[t].joint;
    visit(t, joint, row_of(system.joints[joint].type));
  }
}
/// Sum of number(joint, row).
template <class Real, class Number>
BACKDRIVE_INLINE Real sum_of_terms(const System<Real>& system, int c, const Number& number) {
  Real sum = constant<Real>(0);
  each_term(system, c, [&](int t, int j, int row) { sum += number(j, row) * system.couplings.ratios[t]; });
  return sum;
}

/// Z with the factors at hand, and the eliminated matrix. Overwrites body[].u and joint[].rate.
template <class Real, class Masses>
BACKDRIVE_CALLED void respond(const System<Real>& system, Workspace<Real>& ws, const Masses& divide_by_mass,
                              const Factors<Real>& factors, const CouplingResponse<Real>& to) {
  const int n = system.couplings.count;
  for (int c = 0; c < n; ++c) {
    for (int i = 0; i < system.body_count; ++i) ws.body[i].u = zero6<Real>();
    each_term(system, c, [&](int t, int j, int row) {
      const Joint& joint = system.joints[j];
      Real f[kRows];
      for (Real& x : f) x = constant<Real>(0);
      f[row] = f[row] + system.couplings.ratios[t];
      add_row_forces(ws.joint[j].geometry, f, ws.body[joint.child].u,
                     joint.parent >= 0 ? &ws.body[joint.parent].u : nullptr);
    });
    solve(system, ws, divide_by_mass, factors);
    for (int i = 0; i < system.body_count; ++i) to.bodies[c * system.body_count + i] = ws.body[i].u;
    for (int j = 0; j < system.joint_count; ++j) {
      for (int row = 0; row < kRows; ++row) to.rows[c * system.joint_count + j].rate[row] = ws.joint[j].rate[row];
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      const RowRates<Real>* const z = to.rows + k * system.joint_count;
      to.matrix[i * n + k] =
          ws.coupled[i].increment * sum_of_terms(system, i, [&](int j, int row) { return z[j].rate[row]; });
    }
    if (!system.couplings.couplings[i].holds) to.matrix[i * n + i] += constant<Real>(1);
  }
  eliminate(to.matrix, n);
}

/// Where what couplings push with goes. By its own name: nvcc writes pointers to members with parentheses, of which
/// compilers warn.
template <class Real>
using CoupledPush = Real CoupledStep<Real>::*;

/// What a solve wants of couplings.
template <class Real>
struct CoupledSolve {
  CouplingResponse<Real> response;
  CoupledPush<Real> f;
  bool anew;   ///< the first solve with its factors
  bool kicks;  ///< with what they ask for, and to the rows' targets
};

/// From the solution without couplings in body[].u and joint[].rate, less t where it kicks, to that with them.
template <class Real>
BACKDRIVE_CALLED void correct(const System<Real>& system, Workspace<Real>& ws, const CoupledSolve<Real>& wanted) {
  const int n = system.couplings.count;
  const CouplingResponse<Real>& by = wanted.response;
  const CoupledPush<Real> f = wanted.f;
  CoupledStep<Real>* const now = ws.coupled;
  for (int i = 0; i < n; ++i) {
    const Real asked = wanted.kicks ? now[i].ask : constant<Real>(0);
    const Real rate = sum_of_terms(system, i, [&](int j, int row) {
      const JointScratch<Real>& s = ws.joint[j];
      return wanted.kicks ? s.rate[row] + s.target[row] : s.rate[row];
    });
    now[i].*f = asked - now[i].increment * rate;
  }
  substitute(by.matrix, n, [&](int i) -> Real& { return now[i].*f; });
  for (int c = 0; c < n; ++c) {
    const Real push = now[c].*f;
    for (int i = 0; i < system.body_count; ++i) ws.body[i].u += by.bodies[c * system.body_count + i] * push;
    for (int j = 0; j < system.joint_count; ++j) {
      const RowRates<Real>& z = by.rows[c * system.joint_count + j];
      for (int row = 0; row < kRows; ++row) ws.joint[j].rate[row] += z.rate[row] * push;
    }
  }
}

/// A solve as solve(), with couplings. The right-hand side waits in coupled_bodies where it is the first of its
/// factors.
template <class Real, class Masses>
BACKDRIVE_CALLED void solve_coupled(const System<Real>& system, Workspace<Real>& ws, const Masses& divide_by_mass,
                                    const Factors<Real>& factors, const CoupledSolve<Real>& wanted) {
  if (wanted.anew) {
    for (int i = 0; i < system.body_count; ++i) ws.coupled_bodies[i] = ws.body[i].u;
    respond(system, ws, divide_by_mass, factors, wanted.response);
    for (int i = 0; i < system.body_count; ++i) ws.body[i].u = ws.coupled_bodies[i];
  }
  solve(system, ws, divide_by_mass, factors, wanted.kicks);
  correct(system, ws, wanted);
}

/// (17): what every coupling asks for, and its I.
template <class Real>
BACKDRIVE_CALLED void prepare_couplings(const System<Real>& system, Workspace<Real>& ws) {
  const Real& dt = system.dt;
  for (int c = 0; c < system.couplings.count; ++c) {
    const Coupling& coupling = system.couplings.couplings[c];
    const CouplingConstants<Real>& own = system.couplings.constants[c];
    CoupledStep<Real>& s = ws.coupled[c];
    const auto sum = [&](const auto& number) { return sum_of_terms(system, c, number); };
    s.in.q = sum([&](int j, int) { return ws.joint[j].position[0]; }) + own.offset;
    s.in.qd = sum([&](int j, int row) { return ws.joint[j].start[row]; });
    if (coupling.holds) {
      s.increment = constant<Real>(1);
      s.ask = -(s.in.q / dt);
      continue;
    }
    const JointForce<Real> force = coupling_force(coupling, own.efforts, s.in, dt);
    const Real flown = sum([&](int j, int row) { return ws.joint[j].flown[row]; });
    s.increment = force.increment;
    s.ask = dt * force.effort + s.increment * s.in.qd - (flown - s.in.qd) * own.efforts.armature;
  }
}

// ---- and back -------------------------------------------------------------------------------------------------------

/// Adjoint of prepare_couplings: cotangents by coupling into coupled[], gradients of its numbers but the ratios.
/// `resisted(c)`: as of adj_row_impulses.
template <class Real, class Resisted>
BACKDRIVE_HD void adj_prepare_couplings(const System<Real>& system, Workspace<Real>& ws, const Resisted& resisted,
                                        CouplingConstants<Real>* gradient) {
  const Real &dt = system.dt, zero = constant<Real>(0);
  for (int c = 0; c < system.couplings.count; ++c) {
    const Coupling& coupling = system.couplings.couplings[c];
    const CouplingConstants<Real>& own = system.couplings.constants[c];
    CoupledStep<Real>& s = ws.coupled[c];
    s.in_bar = {zero, zero, zero, zero, zero};
    if (coupling.holds) {  // adj_close_couplings
      s.flown_bar = zero;
      continue;
    }
    const auto sum = [&](const auto& number) { return sum_of_terms(system, c, number); };
    const Real w = sum([&](int j, int row) { return ws.joint[j].rate[row]; });
    const Real gained = sum([&](int j, int row) { return ws.joint[j].next[row]; }) - s.in.qd;
    s.in_bar = adj_coupling_force(coupling, own.efforts, s.in, dt, {w * dt, w * gained + resisted(c)},
                                  gradient ? &gradient[c].efforts : nullptr);
    s.flown_bar = -(w * own.efforts.armature);
    s.in_bar.qd += w * s.increment - s.flown_bar;
    if (!gradient) continue;
    gradient[c].offset += s.in_bar.q;
    gradient[c].efforts.armature -= w * (sum([&](int j, int row) { return ws.joint[j].flown[row]; }) - s.in.qd);
  }
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
