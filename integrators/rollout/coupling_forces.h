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
BACKDRIVE_PART JointForce<Real> coupling_force(const Coupling& coupling, const JointEfforts<Const>& c,
                                               const JointInput<Real>& in, const Real& dt) {
  if (coupling.holds) {
    const Real rate = constant<Real>(1) / dt;
    return {-(in.q * rate + in.qd) * rate, constant<Real>(1)};
  }
  JointForce<Real> force = joint_force(PartsOfCoupling(coupling), c, in, dt);
  if (!coupling.acts.spring) return force;
  force.effort -= (in.q + dt * in.qd - c.spring.rest) * c.spring.stiffness;
  force.increment += dt * dt * c.spring.stiffness;
  return force;
}

/// Adjoint, as adj_joint_force; of one that holds of.effort is the cotangent of its s̈.
template <class Real, class Const>
BACKDRIVE_PART JointInputBar<Real> adj_coupling_force(const Coupling& coupling, const JointEfforts<Const>& c,
                                                      const JointInput<Real>& in, const Real& dt,
                                                      const JointForceBar<Real>& of, JointEfforts<Real>* gradient) {
  if (coupling.holds) {
    const Real zero = constant<Real>(0), slowed = of.effort / dt;
    JointInputBar<Real> bar{zero, zero, zero, zero, zero};
    bar.q -= slowed / dt;
    bar.qd -= slowed;
    return bar;
  }
  JointInputBar<Real> bar = adj_joint_force(PartsOfCoupling(coupling), c, in, dt, of, gradient);
  if (!coupling.acts.spring) return bar;
  const Real pull = of.effort * c.spring.stiffness;
  bar.q -= pull;
  bar.qd -= dt * pull;
  if (!gradient) return bar;
  gradient->spring.stiffness -= of.effort * (in.q + dt * in.qd - c.spring.rest) + dt * dt * of.resisted;
  gradient->spring.rest += pull;
  return bar;
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
