#pragma once
// What flies as one rigid body, a free root and all that is fixed to it: its velocity terms for a whole step instead of
// its start, equation (26) of docs/theory.md.
//
// Its couple is (12)'s, of the inertia J about the common centre of mass. That is at r from O, and O's acceleration is
// the one with which its velocity stays what it was, with r half way along the step before and along this one:
//
//   ω* = ω − Δt u    b = (ω* × exp(½ Δt ω*) r − ω × exp(−½ Δt ω) r − (ω* − ω) × r)/Δt    force m b for m ω × (ω × r)
//
// With what the start of a step says, two bodies that are fixed to each other gain energy without bound (at 20 rad/s
// and 1/240 s in ten seconds), and one whose frame is not at its centre of mass is not left its momentum.
#include "engine/dual.h"
#include "engine/rotation.h"
#include "integrators/featherstone/free_turn.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Half of m b for one of the two ends of a step, without m: ω × (exp(±½ Δt ω) r − r)/±½ Δt. With A = ω × r and B = ω ×
/// A it is α B ∓ β A, of φ = ½ Δt ω: α = sin|φ|/|φ| and β = (1 − cos|φ|)/(½ Δt).
template <class Real>
class HalfStepPull {
 public:
  BACKDRIVE_INLINE HalfStepPull(const Vec3<Real>& omega, const Vec3<Real>& r, const Real& half, bool late)
      : omega_(omega), r_(r), A_(cross(omega, r)), B_(cross(omega, A_)), half_(half), late_(late), turn_(omega * half) {
    const Real size = half * dot(omega, omega) * turn_.b;
    beta_ = late ? size : -size;
  }
  BACKDRIVE_INLINE Vec3<Real> pull() const { return B_ * turn_.a - A_ * beta_; }
  BACKDRIVE_INLINE const Vec3<Real>& at_start() const { return B_; }

  struct Bar {
    Vec3<Real> omega, r;
  };
  /// Of δ·(pull() − share · at_start()).
  BACKDRIVE_INLINE Bar adj_pull(const Vec3<Real>& delta, const Real& share) const {
    const Vec3<Real> B_bar = delta * (turn_.a - share);
    const Vec3<Real> A_bar = plus_cross(delta * -beta_, B_bar, omega_);
    // ∂α = ¼ Δt² (c − b) ω·∂ω,  ∂β = ½ Δt α ω·∂ω
    const Real along =
        half_ * (half_ * (turn_.c - turn_.b) * dot(delta, B_) - (late_ ? turn_.a : -turn_.a) * dot(delta, A_));
    return {plus_cross(plus_cross(omega_ * along, A_, B_bar), r_, A_bar), cross(A_bar, omega_)};
  }

 private:
  Vec3<Real> omega_, r_, A_, B_;
  Real half_, beta_;
  bool late_;
  TurnCoefficients<Real> turn_;
};

/// a += b
template <class Real>
BACKDRIVE_INLINE void add_body(const RigidInertia<Real>& b, RigidInertia<Real>& a) {
  a.aa += b.aa;
  a.h += b.h;
  a.m += b.m;
}
/// Of a kilogram in it, by which its centre of mass is drawn to where that is; 0 of what has no mass.
template <class Real>
BACKDRIVE_INLINE Real share_of_mass(const RigidInertia<Real>& I) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const auto massless = !(value_of(I.m) > value_of(zero));
  return select(massless, zero, one / select(massless, one, I.m));
}
/// Of a body about O; a massless one's is O.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> com_of(const RigidInertia<Real>& I) {
  return I.h * share_of_mass(I);
}

/// What a symmetric bilinear form receives, Σ (x yᵀ + y xᵀ)/2 by columns.
template <class Real>
struct FormBar {
  Vec3<Real> column[3] = {zero3<Real>(), zero3<Real>(), zero3<Real>()};

  BACKDRIVE_INLINE void add(const Vec3<Real>& x, const Vec3<Real>& y) {
    const Vec3<Real> a = x * constant<Real>(0.5), b = y * constant<Real>(0.5);
    column[0] += a * y.x + b * x.x;
    column[1] += a * y.y + b * x.y;
    column[2] += a * y.z + b * x.z;
  }
  BACKDRIVE_INLINE Real trace() const { return column[0].x + column[1].y + column[2].z; }
  BACKDRIVE_INLINE Vec3<Real> operator*(const Vec3<Real>& x) const {
    return column[0] * x.x + column[1] * x.y + column[2] * x.z;
  }
  /// Σ over columns S × J: −½ of what turns of J receive.
  BACKDRIVE_INLINE Vec3<Real> turning(const Sym3<Real>& J) const {
    return cross(column[0], Vec3<Real>{J.xx, J.xy, J.xz}) + cross(column[1], Vec3<Real>{J.xy, J.yy, J.yz}) +
           cross(column[2], Vec3<Real>{J.xz, J.yz, J.zz});
  }
};

/// What mass, com and inertia about it of several bodies that turn as one receive.
template <class Real>
struct WholeBar {
  Vec3<Real> com;
  Real mass;
  FormBar<Real> inertia;
};

/// Everything in world axes about O. I: of all that flies together.
template <class Real>
class RigidTurn {
 public:
  BACKDRIVE_INLINE RigidTurn(const RigidInertia<Real>& I, const Vec3<Real>& omega, const Real& dt)
      : m_(I.m),
        com_(com_of(I)),
        omega_(omega),
        half_(constant<Real>(0.5) * dt),
        turn_(inertia_about_com(I), omega, zero3<Real>(), dt) {}

  /// Whether some lane's centre of mass is not at O, or its derivative is asked for: else there is no force.
  BACKDRIVE_INLINE bool has_lever() const {
    return kIsDual<Real> || any(value_of(dot(com_, com_)) > value_of(constant<Real>(0)));
  }
  /// What to add to the wrench that velocity terms of the start ask for.
  BACKDRIVE_INLINE Spatial<Real> correction() const {
    if (!has_lever()) return {turn_.correction(), zero3<Real>()};
    const Vec3<Real> force = change_of_pull(early(), late()) * m_;
    return {plus_cross(turn_.correction(), com_, force), force};
  }

  struct Bar {
    Vec3<Real> omega;
    WholeBar<Real> whole;
  };
  /// Of δ·correction(). `com_wanted`: that of the centre of mass, which is the only one of the force without a lever.
  BACKDRIVE_INLINE Bar adj_correction(const Spatial<Real>& delta, bool com_wanted) const {
    const auto couple = turn_.adj_correction(delta.ang);
    Bar bar{couple.omega, {zero3<Real>(), constant<Real>(0), {}}};
    for (const auto& pair : couple.inertia) bar.whole.inertia.add(pair.x, pair.y);
    if (com_wanted || has_lever()) adj_force(delta, bar);
    return bar;
  }

 private:
  BACKDRIVE_INLINE HalfStepPull<Real> early() const { return {omega_, com_, half_, false}; }
  BACKDRIVE_INLINE HalfStepPull<Real> late() const {
    return {omega_ - turn_.lost() * constant<Real>(2), com_, half_, true};
  }
  BACKDRIVE_INLINE static Vec3<Real> change_of_pull(const HalfStepPull<Real>& early, const HalfStepPull<Real>& late) {
    return (early.pull() + late.pull()) * constant<Real>(0.5) - early.at_start();
  }
  BACKDRIVE_INLINE void adj_force(const Spatial<Real>& delta, Bar& bar) const {
    const HalfStepPull<Real> before = early(), after = late();
    const Vec3<Real> pull = change_of_pull(before, after);
    const Vec3<Real> at_com = plus_cross(delta.lin, delta.ang, com_), half_force = at_com * (m_ * constant<Real>(0.5));
    const auto of_early = before.adj_pull(half_force, constant<Real>(2));
    const auto of_late = after.adj_pull(half_force, constant<Real>(0));
    const auto lost = turn_.adj_lost(of_late.omega * constant<Real>(-2));
    bar.omega += of_early.omega + of_late.omega + lost.omega;
    bar.whole.com += plus_cross(of_early.r + of_late.r, pull * m_, delta.ang);
    bar.whole.mass += dot(at_com, pull);
    for (const auto& pair : lost.inertia) bar.whole.inertia.add(pair.x, pair.y);
  }

  Real m_;
  Vec3<Real> com_, omega_;
  Real half_;
  FreeTurn<Real> turn_;
};

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
