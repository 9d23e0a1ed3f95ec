#pragma once
// How a body moves on by itself for a step, its momentum kept: docs/semi_implicit.md, equations (5) and (6).
//
// In its own axes, with Π = J Ω the angular momentum that it has at the start,
//
//   Ω₀ = Ω,  Ω_{k+1} = J⁻¹ exp(−½ Δt Ω_k) Π,   R⁺ = R exp(Δt Ω_N)
//
// Ω_N approaches the angular velocity half-way: the implicit midpoint rule on the rotation group, whose error of order
// (Δt|Ω|)^(N+1) in Ω is what energy flies freely by.
#include "integrators/semi_implicit/system.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

constexpr int kTurnIterations = 2;

/// exp(φ) x and Jl(φ) x = Jr(φ)ᵀ x.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> turned_by(const Vec3<Real>& phi, const Vec3<Real>& x) {
  const TurnCoefficients<Real> turn(phi);
  const Vec3<Real> first = cross(phi, x), second = cross(phi, first);
  return x + first * turn.a + second * turn.b;
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> left_jacobian_times(const Vec3<Real>& phi, const Vec3<Real>& x) {
  const TurnCoefficients<Real> turn(phi);
  const Vec3<Real> first = cross(phi, x), second = cross(phi, first);
  return x + first * turn.b + second * turn.c;
}

/// s += of the six stored numbers of J in xᵀ J y.
template <class Real>
BACKDRIVE_INLINE void add_bilinear(Sym3<Real>& s, const Vec3<Real>& x, const Vec3<Real>& y) {
  s.xx += x.x * y.x, s.yy += x.y * y.y, s.zz += x.z * y.z;
  s.xz += x.x * y.z + x.z * y.x;
  s.yz += x.y * y.z + x.z * y.y;
  s.xy += x.x * y.y + x.y * y.x;
}

/// The angular velocities Ω_k of a free flight, body axes.
template <class Real>
struct Turn {
  Vec3<Real> omega[kTurnIterations + 1];
  Vec3<Real> angle;  ///< φ = Δt Ω_N
};

template <class Real>
BACKDRIVE_PART Turn<Real> turn_of(const BodyConstants<Real>& body, const Vec3<Real>& omega, const Real& dt) {
  const Vec3<Real> momentum = body.inertia * omega;
  const Real half = constant<Real>(-0.5) * dt;
  Turn<Real> t;
  t.omega[0] = omega;
  for (int k = 0; k < kTurnIterations; ++k) {
    t.omega[k + 1] = body.inverse_inertia * turned_by(t.omega[k] * half, momentum);
  }
  t.angle = t.omega[kTurnIterations] * dt;
  return t;
}

/// Adjoint of turn_of: the cotangent of φ to that of Ω, returned, and of J, added to unless null.
template <class Real>
BACKDRIVE_PART Vec3<Real> adj_turn_of(const BodyConstants<Real>& body, const Turn<Real>& t, const Real& dt,
                                      const Vec3<Real>& angle_bar, Sym3<Real>* inertia_bar) {
  const Real half = constant<Real>(0.5) * dt;
  Vec3<Real> omega_bar = angle_bar * dt, momentum_bar = zero3<Real>();
  for (int k = kTurnIterations - 1; k >= 0; --k) {
    const Vec3<Real> bar = body.inverse_inertia * omega_bar, phi = t.omega[k] * half;
    if (inertia_bar) add_bilinear(*inertia_bar, -bar, t.omega[k + 1]);
    momentum_bar += turned_by(phi, bar);
    omega_bar = left_jacobian_times(phi, cross(body.inertia * t.omega[k + 1], bar)) * -half;
  }
  if (inertia_bar) add_bilinear(*inertia_bar, momentum_bar, t.omega[0]);
  return omega_bar + body.inertia * momentum_bar;
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
