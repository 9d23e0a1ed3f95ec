#pragma once
// Couplings of joints in the solves of dynamics.h, equations (14)-(17) of docs/theory.md. With a row of C for each,
// s = C q + offset, their efforts λ at s̈ = 0, and the increments I that multiply −s̈, a solve with M̃ becomes one of
//
//   (14) (M̃ + Cᵀ I C) x = r + Cᵀ λ
//
// by the tree's factors: with x₀ = M̃⁻¹ r and the responses Z = M̃⁻¹ Cᵀ, a solve per coupling,
//
//   (15) (E + I C Z) f = E λ + … − I C x₀      x = x₀ + Z f
//
// where E is 1. Of a coupling that holds, which is I → ∞, E is 0 and I is 1, with s̈ of (16) on the right. f is what the
// coupling pushes with.
//
// The cotangents of a solve are a solve with the same factors. With w and its f_w,
//
//   (17) ∂/∂C_ij = f_i w_j + f_w,i x_j
#include "integrators/featherstone/whip.h"
#include "integrators/rollout/coupling_elimination.h"
#include "integrators/rollout/coupling_forces.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Whether any couplings are there; asked where a layout may have some.
template <class Layout>
BACKDRIVE_INLINE bool is_coupled(const Workspace<Layout>& ws) {
  return ws.coupling.count > 0;
}

/// Calls visit(ratio, term) for the terms of a coupling.
template <class Layout, class Visit>
BACKDRIVE_INLINE void each_term(const Workspace<Layout>& ws, int c, const Visit& visit) {
  const Coupling& coupling = ws.coupling.couplings[c];
  for (int t = coupling.first_term; t < coupling.first_term + coupling.term_count; ++t) {
    visit(t, ws.coupling.terms[t]);
  }
}

/// A coupling's row of C times a vector of velocities' numbers, number(v).
template <class Layout, class Number>
BACKDRIVE_INLINE typename Layout::Real sum_of_terms(const Workspace<Layout>& ws, int c, const Number& number) {
  using Real = typename Layout::Real;
  Real sum = constant<Real>(0);
  each_term(ws, c, [&](int t, const CouplingTerm& term) { sum += number(term) * ws.coupling.ratios[t]; });
  return sum;
}

template <class Layout>
BACKDRIVE_INLINE JointInput<typename Layout::Real> coupling_input(const Workspace<Layout>& ws, int c) {
  using Real = typename Layout::Real;
  const Coupling& coupling = ws.coupling.couplings[c];
  const Real zero = constant<Real>(0);
  const auto control = [&](int row) { return row >= 0 ? zero + ws.control[row] : zero; };
  const Real s = sum_of_terms(ws, c, [&](const CouplingTerm& term) { return ws.q[term.q]; });
  const Real rate = sum_of_terms(ws, c, [&](const CouplingTerm& term) { return ws.qd[term.v]; });
  const bool driven = coupling.target >= 0;
  return {s + ws.coupling.constants[c].offset, rate, control(coupling.effort), control(driven ? coupling.target : -1),
          control(driven ? coupling.target + 1 : -1)};
}

/// λ and I of all couplings.
template <class Layout>
BACKDRIVE_HD void coupling_efforts(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  for (int c = 0; c < ws.coupling.count; ++c) {
    const JointForce<Real> force =
        coupling_force(ws.coupling.couplings[c], ws.coupling.constants[c].efforts, coupling_input(ws, c), ws.dt);
    ws.coupling.now[c].effort = force.effort;
    ws.coupling.now[c].increment = force.increment;
  }
}

/// Z with the factors that factors_of says, and the matrix of (15), eliminated. Overwrites x of these factors.
template <class Layout, class FactorsOf>
BACKDRIVE_CALLED void respond(Workspace<Layout>& ws, const FactorsOf& factors_of,
                              const CouplingResponse<typename Layout::Real>& response) {
  using Real = typename Layout::Real;
  const int n = ws.coupling.count;
  for (int c = 0; c < n; ++c) {
    Real* const z = response.columns + c * ws.nv;
    for (int v = 0; v < ws.nv; ++v) z[v] = constant<Real>(0);
    each_term(ws, c, [&](int t, const CouplingTerm& term) { z[term.v] += ws.coupling.ratios[t]; });
    solve_inwards_with(
        ws, factors_of, [](int, Spatial<Real>&) {},
        [&](const auto& dof, const Real& carried) { return z[&dof - ws.dof] - carried; });
    solve_outwards_with(
        ws, factors_of, [&](auto& dof, const Real& x) { z[&dof - ws.dof] = x; }, [](int, const Spatial<Real>&) {});
  }
  for (int i = 0; i < n; ++i) {
    const Real& increment = ws.coupling.now[i].increment;
    for (int j = 0; j < n; ++j) {
      const Real* const z = response.columns + j * ws.nv;
      response.matrix[i * n + j] = increment * sum_of_terms(ws, i, [&](const CouplingTerm& term) { return z[term.v]; });
    }
    if (!ws.coupling.couplings[i].holds) response.matrix[i * n + i] += constant<Real>(1);
  }
  eliminate(response.matrix, n);
}

/// What a solve asks of couplings: their efforts, or, of what is added to a motion that has them, nothing.
enum class CouplingLoad { efforts, nothing };

/// (15): ws.coupling.solution from x₀ to x; f into now[].*f.
template <class Layout>
BACKDRIVE_CALLED void correct(Workspace<Layout>& ws, const CouplingResponse<typename Layout::Real>& response,
                              CouplingLoad load, typename Layout::Real CouplingStep<typename Layout::Real>::*f) {
  using Real = typename Layout::Real;
  const int n = ws.coupling.count;
  Real* const x = ws.coupling.solution;
  auto* const now = ws.coupling.now;
  for (int i = 0; i < n; ++i) {
    const Real asked = load == CouplingLoad::efforts ? now[i].effort : constant<Real>(0);
    now[i].*f = asked - now[i].increment * sum_of_terms(ws, i, [&](const CouplingTerm& term) { return x[term.v]; });
  }
  substitute(response.matrix, n, [&](int i) -> Real& { return now[i].*f; });
  for (int c = 0; c < n; ++c) {
    const Real* const z = response.columns + c * ws.nv;
    for (int v = 0; v < ws.nv; ++v) x[v] += z[v] * now[c].*f;
  }
}

/// Root to leaves: keep(dof, number of ws.coupling.solution), and visit(i, δ) with the motion they make of each link.
template <class Layout, class Keep, class Visit>
BACKDRIVE_HD void hand_out(Workspace<Layout>& ws, const Keep& keep, const Visit& visit) {
  using Real = typename Layout::Real;
  const auto number = [&](int v, const Spatial<Real>&) __attribute__((always_inline)) {
    const Real& x = ws.coupling.solution[v];
    keep(ws.dof[v], x);
    return x;
  };
  spread_motion(ws, number, visit);
}

/// x₀ of a solve that has come to the root, into ws.coupling.solution.
template <class Layout, class FactorsOf>
BACKDRIVE_CALLED void solve_uncoupled(Workspace<Layout>& ws, const FactorsOf& factors_of) {
  using Real = typename Layout::Real;
  solve_outwards_with(
      ws, factors_of, [&](auto& dof, const Real& x) { ws.coupling.solution[&dof - ws.dof] = x; },
      [](int, const Spatial<Real>&) {});
}

/// q̈₀ of a step and the couplings' responses, into ws.coupling, after articulate(). Overwrites dof[].x.
template <class Layout>
BACKDRIVE_CALLED void begin_coupled_motion(Workspace<Layout>& ws) {
  coupling_efforts(ws);
  solve_uncoupled(ws, OwnFactors{});
  respond(ws, OwnFactors{}, ws.coupling.smooth);
}

/// The root-to-leaves half of the solve with M̃ of a step, after articulate(): with the efforts of couplings. q̈ into
/// dof[].*x, and visit(i, δ). Where (24) has made the responses, they are there.
template <class Layout, class Solution, class Visit>
BACKDRIVE_CALLED void solve_coupled_motion(Workspace<Layout>& ws, Solution x, const Visit& visit) {
  using Dof = typename Layout::Dof;
  using Real = typename Layout::Real;
  if (ws.middle.on) {
    solve_uncoupled(ws, OwnFactors{});
  } else {
    begin_coupled_motion(ws);
  }
  correct(ws, ws.coupling.smooth, CouplingLoad::efforts, &CouplingStep<Real>::force);
  hand_out(
      ws, [x](Dof& dof, const Real& number) { dof.*x = number; }, visit);
}

/// Equation (4) of a step, with couplings where there are any.
template <class Layout, class Solution, class Visit>
BACKDRIVE_INLINE void solve_motion(Workspace<Layout>& ws, Solution x, const Visit& visit) {
  if constexpr (Layout::coupled) {
    if (is_coupled(ws)) return solve_coupled_motion(ws, x, visit);
  }
  solve_outwards(ws, x, visit);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
