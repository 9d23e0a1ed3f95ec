#pragma once
// Adjoint of couplings.h: what (14) and (17) give to positions, velocities, controls and the couplings' numbers.
#include "integrators/featherstone/couplings.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// The solve (6) with couplings: w from dof[].x after its leaves-to-root half, into dof[].x, and visit(i, δ).
template <class Layout, class Visit>
BACKDRIVE_CALLED void solve_coupled_again(Workspace<Layout>& ws, const Visit& visit) {
  using Dof = typename Layout::Dof;
  using Real = typename Layout::Real;
  solve_uncoupled(ws, OwnFactors{});
  correct(ws, ws.coupling.smooth, CouplingLoad::nothing, &CouplingStep<Real>::bar);
  hand_out(
      ws, [](Dof& dof, const Real& number) { dof.x = number; }, visit);
}

/// Adjoint of what one coupling asks for: its effort, or the acceleration of one that holds.
template <class Layout, class Bar>
BACKDRIVE_INLINE JointInputBar<typename Layout::Real> coupling_input_adjoint(Workspace<Layout>& ws, int c,
                                                                             const Bar& bar) {
  using Real = typename Layout::Real;
  using Dof = typename Layout::Dof;
  const auto sum = [&](Real Dof::*x) {
    return sum_of_terms(ws, c, [&](const CouplingTerm& term) { return ws.dof[term.v].*x; });
  };
  const Coupling& coupling = ws.coupling.couplings[c];
  const CouplingStep<Real>& now = ws.coupling.now[c];
  Real w = sum(&Dof::x), resisted = w * sum(&Dof::qdd), lost = now.bar;
  if (ws.middle.on) {
    const auto of = [&](const Real* x) {
      return sum_of_terms(ws, c, [&](const CouplingTerm& term) { return x[term.v]; });
    };
    resisted += of(ws.middle.w) * (of(ws.middle.qdd) - sum(&Dof::qdd));
    lost += now.first_bar;
  }
  if (coupling.holds) w = -lost;
  if constexpr (Layout::contact) {
    if (in_touch(ws)) resisted += sum(&Dof::w) * sum(&Dof::kick);
  }
  return adj_coupling_force(coupling, ws.coupling.constants[c].efforts, coupling_input(ws, c), ws.dt, {w, resisted},
                            bar.wants_parameters() ? &bar.couplings[c].efforts : nullptr);
}

template <class Layout, class Bar>
BACKDRIVE_CALLED void couplings_adjoint(Workspace<Layout>& ws, const Bar& bar) {
  using Real = typename Layout::Real;
  for (int c = 0; c < ws.coupling.count; ++c) {
    const Coupling& coupling = ws.coupling.couplings[c];
    const CouplingStep<Real>& now = ws.coupling.now[c];
    const JointInputBar<Real> in = coupling_input_adjoint(ws, c, bar);
    if (coupling.effort >= 0) bar.control.set(coupling.effort, in.effort);
    if (coupling.target >= 0) {
      bar.control.set(coupling.target, in.target_position);
      bar.control.set(coupling.target + 1, in.target_velocity);
    }
    if (bar.wants_parameters()) bar.couplings[c].offset += in.q;
    each_term(ws, c, [&](int t, const CouplingTerm& term) {
      const auto& dof = ws.dof[term.v];
      if (bar.wants_parameters()) {
        Real ratio_bar = now.force * dof.x + now.bar * dof.qdd;  // (17)
        if (ws.middle.on) {
          const Real w = ws.middle.w[term.v];
          ratio_bar += (now.first - now.force) * w + now.first_bar * ws.middle.qdd[term.v];
        }
        if constexpr (Layout::contact) {
          if (in_touch(ws)) ratio_bar += now.kick * dof.w + now.kick_bar * dof.kick;
        }
        bar.ratios[t] += ratio_bar + in.q * ws.q[term.q] + in.qd * ws.qd[term.v];
      }
      bar.q[term.q] += in.q * ws.coupling.ratios[t];
      bar.qd[term.v] += in.qd * ws.coupling.ratios[t];
    });
  }
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
