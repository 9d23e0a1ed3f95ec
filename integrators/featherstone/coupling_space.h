#pragma once
// The working set of couplings (couplings.h).
#include "integrators/rollout/arena.h"
#include "integrators/rollout/coupling_constants.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Of one coupling in a step.
template <class Real>
struct CouplingStep {
  Real effort, increment;  ///< λ and I of (14)
  Real force;              ///< f of q̈
  Real bar;                ///< f of w: cotangent of s̈ where it holds
  Real kick, kick_bar;     ///< f of Δv, an impulse, and of its w; with contact only
  Real trial;              ///< f of solves on the way there
  Real first, first_bar;   ///< f of q̈₁ of (24) and of its w
};

/// Z, and the matrix of (15).
template <class Real>
struct CouplingResponse {
  Real* columns;  ///< [coupling][nv]
  Real* matrix;   ///< [coupling][coupling]
};

template <class Layout>
struct CouplingSpace {
  using Real = typename Layout::Real;
  int count = 0;
  const Coupling* couplings;
  const CouplingTerm* terms;
  typename Layout::CouplingRows constants;  ///< [coupling]: CouplingConstants
  typename Layout::RatioRows ratios;        ///< [term]
  CouplingStep<Real>* now;                  ///< [coupling]
  Real* solution;                           ///< [nv]
  CouplingResponse<Real> smooth;            ///< of M̃
  CouplingResponse<Real> with_blocks;       ///< and of M̃ with the blocks of contact
};
/// In its place where there are none.
struct NoCouplings {};

template <class Layout>
BACKDRIVE_HD void take_coupling_arrays(const TopologyView& t, Arena& arena, CouplingSpace<Layout>& space) {
  using Real = typename Layout::Real;
  const int n = t.coupling_count;
  space.count = n;
  space.couplings = t.couplings;
  space.terms = t.coupling_terms;
  space.now = arena.take<CouplingStep<Real>>(n);
  space.solution = arena.take<Real>(n > 0 ? t.nv : 0);
  const auto take = [&](bool wanted) {
    const int couplings = wanted ? n : 0;
    Real* const columns = arena.take<Real>(couplings * t.nv);
    return CouplingResponse<Real>{columns, arena.take<Real>(couplings * couplings)};
  };
  space.smooth = take(true);
  space.with_blocks = take(Layout::contact);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
