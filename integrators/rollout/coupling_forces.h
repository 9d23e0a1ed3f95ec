#pragma once
// Effort of a coupling: that of a joint at its position s and rate ṡ (joint_forces.h), but for the spring, which acts
// implicitly, too,
//
//   −k (s + Δt ṡ⁺ − rest)
//
// so that one as stiff as a gear asks for no smaller steps. One that holds has no effort of its own, but an
// acceleration that it is to have, after which its position is zero:
//
//   (16) s̈ = −(s/Δt + ṡ)/Δt
#include "integrators/rollout/coupling_constants.h"
#include "integrators/rollout/joint_forces.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// What of a coupling's parts joint_force() computes.
struct PartsOfCoupling {
  EffortParts acts;

  BACKDRIVE_HD explicit PartsOfCoupling(const Coupling& coupling) : acts(coupling.acts) { acts.spring = false; }
};

/// The effort at s̈ = 0, and the increment that multiplies −s̈; of one that holds s̈ of (16), and 1.
template <class Real, class Const>
BACKDRIVE_PART void coupling_force(const Coupling& coupling, const JointEfforts<Const>& c, const JointInput<Real>& in,
                                   const Real& dt, Real& effort, Real& increment) {
  if (coupling.holds) {
    const Real rate = constant<Real>(1) / dt;
    effort = -(in.q * rate + in.qd) * rate;
    increment = constant<Real>(1);
    return;
  }
  joint_force(PartsOfCoupling(coupling), c, in, dt, effort, increment);
  if (!coupling.acts.spring) return;
  effort -= (in.q + dt * in.qd - c.spring.rest) * c.spring.stiffness;
  increment += dt * dt * c.spring.stiffness;
}

/// Adjoint, with w and `resisted` as of adj_joint_force; of one that holds w is the cotangent of its s̈.
template <class Real, class Const>
BACKDRIVE_PART void adj_coupling_force(const Coupling& coupling, const JointEfforts<Const>& c,
                                       const JointInput<Real>& in, const Real& dt, const Real& w, const Real& resisted,
                                       JointInputBar<Real>& bar, JointEfforts<Real>* gradient) {
  if (coupling.holds) {
    const Real slowed = w / dt;
    bar.q -= slowed / dt;
    bar.qd -= slowed;
    return;
  }
  adj_joint_force(PartsOfCoupling(coupling), c, in, dt, w, resisted, bar, gradient);
  if (!coupling.acts.spring) return;
  const Real pull = w * c.spring.stiffness;
  bar.q -= pull;
  bar.qd -= dt * pull;
  if (!gradient) return;
  gradient->spring.stiffness -= w * (in.q + dt * in.qd - c.spring.rest) + dt * dt * resisted;
  gradient->spring.rest += pull;
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
