#pragma once
// The gyroscopic couple of a body that spins, for a whole step instead of its start (docs/theory.md, (12)):
//
//   Q = ω × J ω + J (ω × e),   (J + ½ Δt G) u = Q,   G x = x × J ω + ω × J x + J (x × e),   couple J u in place of Q
//
// so that ω⁺ = ω − Δt u where nothing else acts. J (ω × e) is what the bias acceleration of the body's joint asks for:
// of a hinge e = z q̇, of a ball minus the angular velocity of the body that carries it, of a free body 0. Q is
// quadratic in velocities, and for e = 0 J u is its symmetric bilinear form at ω and ω⁺: Kahan's method, for Euler's
// equations that of Hirota and Kimura (Discretization of the Euler top, J. Phys. Soc. Jpn. 69, 2000), which keeps
// energy and momentum within O(Δt²) for all times. With Q of the start both grow, in proportion to Δt and time.
#include "engine/spatial.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// About the centre of mass; a massless body's is that about O.
template <class Real>
BACKDRIVE_INLINE Sym3<Real> inertia_about_com(const RigidInertia<Real>& I) {
  const Real one = constant<Real>(1), zero = constant<Real>(0);
  const auto massless = !(value_of(I.m) > value_of(zero));
  const Real inverse = select(massless, zero, one / select(massless, one, I.m));
  const Vec3<Real>&h = I.h, c = h * inverse;
  const Real xx = h.x * c.x, yy = h.y * c.y, zz = h.z * c.z;
  return {I.aa.xx - (yy + zz), I.aa.yy - (xx + zz), I.aa.zz - (xx + yy),
          I.aa.xy + h.x * c.y, I.aa.xz + h.x * c.z, I.aa.yz + h.y * c.z};
}

/// J += that of mass m at x.
template <class Real>
BACKDRIVE_INLINE void add_point_mass(const Real& m, const Vec3<Real>& x, Sym3<Real>& J) {
  const Vec3<Real> h = x * m;
  const Real xx = h.x * x.x, yy = h.y * x.y, zz = h.z * x.z;
  J.xx += yy + zz, J.yy += xx + zz, J.zz += xx + yy;
  J.xy -= h.x * x.y, J.xz -= h.x * x.z, J.yz -= h.y * x.z;
}

/// Everything in world axes.
template <class Real>
class FreeTurn {
 public:
  /// O(1). Bodies without an inertia of their own are given Q. In turns of more than a radian or so per step, for which
  /// the linear equations may have no solution, there is no couple: ω stays, and energy in bounds. `held`: e.
  BACKDRIVE_INLINE FreeTurn(const Sym3<Real>& J, const Vec3<Real>& omega, const Vec3<Real>& held, const Real& dt)
      : J_(J), omega_(omega), held_(held), momentum_(J * omega) {
    const Real zero = constant<Real>(0), one = constant<Real>(1), half = constant<Real>(0.5) * dt;
    const Vec3<Real>& L = momentum_;
    const Vec3<Real> x{J.xx, J.xy, J.xz}, y{J.xy, J.yy, J.yz}, z{J.xz, J.yz, J.zz};  // J e
    const Vec3<Real>& e = held;
    // By the trace, lest in float32 determinants of milligrams vanish.
    const Real trace = J.xx + J.yy + J.zz;
    const auto heavy = value_of(trace) > value_of(constant<Real>(1e-30));
    const Real scale = select(heavy, one, zero) / select(heavy, trace, one);
    const Vec3<Real> a = ((plus_cross(Vec3<Real>{zero, -L.z, L.y}, omega, x) + (z * e.y - y * e.z)) * half + x) * scale;
    const Vec3<Real> b = ((plus_cross(Vec3<Real>{L.z, zero, -L.x}, omega, y) + (x * e.z - z * e.x)) * half + y) * scale;
    const Vec3<Real> c = ((plus_cross(Vec3<Real>{-L.y, L.x, zero}, omega, z) + (y * e.x - x * e.y)) * half + z) * scale;
    const Vec3<Real> bc = cross(b, c);
    const Real determinant = dot(a, bc), least = constant<Real>(0.25) * dot(x * scale, cross(y * scale, z * scale));
    const auto turns = value_of(least) > value_of(zero);
    solvable_ = turns && value_of(determinant) > value_of(least);
    lost_ = turns && !solvable_;
    const Real inverse = scale / select(solvable_, determinant, one);
    inverse_ = {bc * inverse, cross(c, a) * inverse, cross(a, b) * inverse};
    half_ = select(solvable_, half, zero);
    couple_ = plus_cross(J * cross(omega, held), omega, momentum_);
    u_ = choose(lost_, zero3<Real>(), transposed_times(inverse_, couple_));
  }

  /// What to add to Q.
  BACKDRIVE_INLINE Vec3<Real> correction() const {
    const Vec3<Real> late = (plus_cross(cross(u_, momentum_), omega_, J_ * u_) + J_ * cross(u_, held_)) * -half_;
    return choose(lost_, -couple_, late);
  }

  /// With ω − shift in place of ω in Q: what (24) adds to it.
  BACKDRIVE_INLINE Vec3<Real> correction_from(const Vec3<Real>& shift) const {
    const Vec3<Real> late = plus_cross(cross(shift, momentum_), omega_ - shift, J_ * shift);
    return correction() + late + J_ * cross(shift, held_);
  }
  /// What ω loses by itself in half a step, ½ Δt u; 0 where there is no correction.
  BACKDRIVE_INLINE Vec3<Real> lost() const { return u_ * half_; }

  /// Cotangents; J̄ is the sum of x yᵀ over the pairs.
  struct Pair {
    Vec3<Real> x, y;
  };
  template <int pairs>
  struct Bar {
    Vec3<Real> omega, held;
    Pair inertia[pairs];
  };
  /// Of δ·correction(). With (J + ½ Δt G)ᵀ λ = J δ, z = ω − ½ Δt u and μ = J (λ − δ):
  ///   ω̄ = J z × λ + J (λ × z) − [J ω × δ + J (δ × ω)] + e × μ        ē = μ × ω − ½ Δt J λ × u
  BACKDRIVE_INLINE Bar<5> adj_correction(const Vec3<Real>& delta) const {
    const Vec3<Real> solved = inverse_ * (J_ * delta), lost = u_ * half_;
    const Vec3<Real> lambda = choose(solvable_, solved, choose(lost_, zero3<Real>(), delta));
    const Vec3<Real> z = omega_ - lost;
    const Vec3<Real> bar = plus_cross(J_ * cross(lambda, z), J_ * z, lambda);
    // (δ − λ, u), (λ × ω, z), (−½ Δt λ × u, ω) and, taken away, (δ × ω, ω); of e (λ − δ, ω × e) and (−λ, ½ Δt u × e)
    const Vec3<Real> late = cross(lambda, omega_), more = lambda - delta, pull = J_ * more;
    return {bar - plus_cross(J_ * cross(delta, omega_), momentum_, delta) + cross(held_, pull),
            cross(pull, omega_) - cross(J_ * lambda, lost),
            {{-more, u_},
             {late, z},
             {-cross(lambda, lost) - cross(delta, omega_), omega_},
             {more, cross(omega_, held_)},
             {-lambda, cross(lost, held_)}}};
  }

  /// Of δ·correction_from(shift): those of y = ω − shift, e and J, and that of the shift. To those of δ·correction()
  /// come
  ///   ω̄ = J (δ × shift)   ȳ = J shift × δ   s̄hift = J ω × δ + J (δ × y) + e × J δ   ē = J δ × shift
  struct ShiftedBar : Bar<8> {
    Vec3<Real> shift;
  };
  BACKDRIVE_INLINE ShiftedBar adj_correction_from(const Vec3<Real>& shift, const Vec3<Real>& delta) const {
    const Bar<5> bar = adj_correction(delta);
    const Vec3<Real> y = omega_ - shift, late = cross(delta, shift), pull = J_ * delta;
    const Vec3<Real> omega = bar.omega + J_ * late, by_y = cross(delta, y);
    const auto& pairs = bar.inertia;
    return {{plus_cross(omega, J_ * shift, delta),
             plus_cross(bar.held, pull, shift),
             {pairs[0],
              pairs[1],
              pairs[2],
              pairs[3],
              pairs[4],
              {late, omega_},
              {by_y, shift},
              {delta, cross(shift, held_)}}},
            plus_cross(plus_cross(omega + J_ * by_y, momentum_, delta), held_, pull)};
  }

  /// Of δ·lost(). With (J + ½ Δt G)ᵀ λ = ½ Δt δ and z = ω − ½ Δt u:
  ///   ω̄ = J z × λ + J (λ × z) + e × J λ        ē = J λ × z
  ///   J̄ = −(λ, u) + (λ × ω, z) − ½ Δt (λ × u, ω) + (λ, z × e)
  BACKDRIVE_INLINE Bar<4> adj_lost(const Vec3<Real>& delta) const {
    const Vec3<Real> solved = inverse_ * (delta * half_), by = lost(), z = omega_ - by;
    const Vec3<Real> lambda = choose(solvable_, solved, zero3<Real>());
    const Vec3<Real> pull = J_ * lambda;
    return {plus_cross(plus_cross(J_ * cross(lambda, z), J_ * z, lambda), held_, pull),
            cross(pull, z),
            {{-lambda, u_}, {cross(lambda, omega_), z}, {-cross(lambda, by), omega_}, {lambda, cross(z, held_)}}};
  }

 private:
  Sym3<Real> J_;
  Vec3<Real> omega_, held_, momentum_;
  Mat3<Real> inverse_;     ///< rows of (J + ½ Δt G)⁻¹
  Vec3<Real> couple_, u_;  ///< Q; 0 where it is lost
  Real half_;              ///< ½ Δt; 0 where there is no correction
  decltype(value_of(std::declval<Real>()) < value_of(std::declval<Real>())) solvable_, lost_;
};

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
