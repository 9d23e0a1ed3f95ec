#pragma once
// Vectors, rotations, inertias and 6-vectors (angular first: [ω; v], [n; f]). The adjoint adj_f of each elementary f
// stands right beneath it and always adds (+=) to the cotangents, named _bar.
#include "engine/real.h"

namespace backdrive {

template <class R>
struct Vec3 {
  R x, y, z;
};
/// Columns of a 3x3 matrix.
template <class R>
struct Mat3 {
  Vec3<R> cx, cy, cz;
};
/// Symmetric 3x3 matrix.
template <class R>
struct Sym3 {
  R xx, yy, zz, xy, xz, yz;
};
/// A motion [ω; v] or a force [n; f].
template <class R>
struct Spatial {
  Vec3<R> ang, lin;
};

template <class R>
BACKDRIVE_INLINE Vec3<R> zero3() {
  const R o = constant<R>(0);
  return {o, o, o};
}
template <class R>
BACKDRIVE_INLINE Spatial<R> zero6() {
  return {zero3<R>(), zero3<R>()};
}
template <class R>
BACKDRIVE_INLINE Mat3<R> identity3() {
  const R o = constant<R>(0), i = constant<R>(1);
  return {{i, o, o}, {o, i, o}, {o, o, i}};
}

// ---- 3-vectors ------------------------------------------------------------------------------------------------------
// Two element types A and B meet where a pack of worlds multiplies a constant that all worlds share.

template <class A, class B>
BACKDRIVE_INLINE auto operator+(const Vec3<A>& a, const Vec3<B>& b) -> Vec3<decltype(a.x + b.x)> {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class A, class B>
BACKDRIVE_INLINE auto operator-(const Vec3<A>& a, const Vec3<B>& b) -> Vec3<decltype(a.x - b.x)> {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class A>
BACKDRIVE_INLINE Vec3<A> operator-(const Vec3<A>& a) {
  return {-a.x, -a.y, -a.z};
}
template <class A, class S>
BACKDRIVE_INLINE auto operator*(const Vec3<A>& a, const S& s) -> Vec3<decltype(a.x * s)> {
  return {a.x * s, a.y * s, a.z * s};
}
template <class A, class B>
BACKDRIVE_INLINE void operator+=(Vec3<A>& a, const Vec3<B>& b) {
  a.x += b.x, a.y += b.y, a.z += b.z;
}
template <class A, class B>
BACKDRIVE_INLINE void operator-=(Vec3<A>& a, const Vec3<B>& b) {
  a.x -= b.x, a.y -= b.y, a.z -= b.z;
}
template <class A, class B>
BACKDRIVE_INLINE auto dot(const Vec3<A>& a, const Vec3<B>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
template <class A, class B>
BACKDRIVE_INLINE auto cross(const Vec3<A>& a, const Vec3<B>& b) -> Vec3<decltype(a.x * b.x)> {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <class A>
BACKDRIVE_INLINE void adj_cross(const Vec3<A>& a, const Vec3<A>& b, const Vec3<A>& result_bar,
                                Vec3<A>& a_bar, Vec3<A>& b_bar) {
  a_bar += cross(b, result_bar);
  b_bar += cross(result_bar, a);
}

// ---- matrices -------------------------------------------------------------------------------------------------------

template <class A, class B>
BACKDRIVE_INLINE auto operator*(const Mat3<A>& m, const Vec3<B>& v) -> Vec3<decltype(m.cx.x * v.x)> {
  return {m.cx.x * v.x + m.cy.x * v.y + m.cz.x * v.z, m.cx.y * v.x + m.cy.y * v.y + m.cz.y * v.z,
          m.cx.z * v.x + m.cy.z * v.y + m.cz.z * v.z};
}
template <class A, class B>
BACKDRIVE_INLINE auto operator*(const Mat3<A>& a, const Mat3<B>& b)
    -> Mat3<decltype(a.cx.x * b.cx.x)> {
  return {a * b.cx, a * b.cy, a * b.cz};
}
/// mᵀ v
template <class A, class B>
BACKDRIVE_INLINE auto transposed_times(const Mat3<A>& m, const Vec3<B>& v)
    -> Vec3<decltype(m.cx.x * v.x)> {
  return {dot(m.cx, v), dot(m.cy, v), dot(m.cz, v)};
}
template <class A>
BACKDRIVE_INLINE Mat3<A> transposed(const Mat3<A>& m) {
  return {{m.cx.x, m.cy.x, m.cz.x}, {m.cx.y, m.cy.y, m.cz.y}, {m.cx.z, m.cy.z, m.cz.z}};
}

template <class A, class B>
BACKDRIVE_INLINE auto operator*(const Sym3<A>& s, const Vec3<B>& v) -> Vec3<decltype(s.xx * v.x)> {
  return {s.xx * v.x + s.xy * v.y + s.xz * v.z, s.xy * v.x + s.yy * v.y + s.yz * v.z,
          s.xz * v.x + s.yz * v.y + s.zz * v.z};
}
template <class A>
BACKDRIVE_INLINE void operator+=(Sym3<A>& a, const Sym3<A>& b) {
  a.xx += b.xx, a.yy += b.yy, a.zz += b.zz, a.xy += b.xy, a.xz += b.xz, a.yz += b.yz;
}

/// R S Rᵀ: an inertia turned into other axes.
template <class A, class B>
BACKDRIVE_INLINE auto rotated(const Mat3<A>& r, const Sym3<B>& s) -> Sym3<decltype(r.cx.x * s.xx)> {
  using C = decltype(r.cx.x * s.xx);
  const Vec3<C> a = r * Vec3<B>{s.xx, s.xy, s.xz};  // columns of R S
  const Vec3<C> b = r * Vec3<B>{s.xy, s.yy, s.yz};
  const Vec3<C> c = r * Vec3<B>{s.xz, s.yz, s.zz};
  return {a.x * r.cx.x + b.x * r.cy.x + c.x * r.cz.x, a.y * r.cx.y + b.y * r.cy.y + c.y * r.cz.y,
          a.z * r.cx.z + b.z * r.cy.z + c.z * r.cz.z, a.x * r.cx.y + b.x * r.cy.y + c.x * r.cz.y,
          a.x * r.cx.z + b.x * r.cy.z + c.x * r.cz.z, a.y * r.cx.z + b.y * r.cy.z + c.y * r.cz.z};
}

// ---- 6-vectors ------------------------------------------------------------------------------------------------------

template <class A, class B>
BACKDRIVE_INLINE auto operator+(const Spatial<A>& a, const Spatial<B>& b)
    -> Spatial<decltype(a.ang.x + b.ang.x)> {
  return {a.ang + b.ang, a.lin + b.lin};
}
template <class A, class B>
BACKDRIVE_INLINE auto operator-(const Spatial<A>& a, const Spatial<B>& b)
    -> Spatial<decltype(a.ang.x - b.ang.x)> {
  return {a.ang - b.ang, a.lin - b.lin};
}
template <class A, class S>
BACKDRIVE_INLINE auto operator*(const Spatial<A>& a, const S& s) -> Spatial<decltype(a.ang.x * s)> {
  return {a.ang * s, a.lin * s};
}
template <class A>
BACKDRIVE_INLINE void operator+=(Spatial<A>& a, const Spatial<A>& b) {
  a.ang += b.ang, a.lin += b.lin;
}
template <class A>
BACKDRIVE_INLINE void operator-=(Spatial<A>& a, const Spatial<A>& b) {
  a.ang -= b.ang, a.lin -= b.lin;
}
/// Power of a force on a motion.
template <class A>
BACKDRIVE_INLINE A dot(const Spatial<A>& a, const Spatial<A>& b) {
  return dot(a.ang, b.ang) + dot(a.lin, b.lin);
}
/// v × m: rate of change of a motion m carried by a body that moves with v.
template <class A>
BACKDRIVE_INLINE Spatial<A> cross_motion(const Spatial<A>& v, const Spatial<A>& m) {
  return {cross(v.ang, m.ang), cross(v.ang, m.lin) + cross(v.lin, m.ang)};
}
/// v ×* f: the same for a force f; (v ×*) = −(v ×)ᵀ.
template <class A>
BACKDRIVE_INLINE Spatial<A> cross_force(const Spatial<A>& v, const Spatial<A>& f) {
  return {cross(v.ang, f.ang) + cross(v.lin, f.lin), cross(v.ang, f.lin)};
}
/// Adjoint of both: d⟨r, v × m⟩ = ⟨m ×* r, dv⟩ − ⟨v ×* r, dm⟩.
template <class A>
BACKDRIVE_INLINE void adj_cross_motion(const Spatial<A>& v, const Spatial<A>& m,
                                       const Spatial<A>& result_bar, Spatial<A>& v_bar,
                                       Spatial<A>& m_bar) {
  v_bar += cross_force(m, result_bar);
  m_bar -= cross_force(v, result_bar);
}

// ---- articulated inertia --------------------------------------------------------------------------------------------

/// Symmetric 6x6 [[aa, al], [alᵀ, ll]]: 21 numbers about the origin of the common frame.
template <class R>
struct ArticulatedInertia {
  Sym3<R> aa;
  Mat3<R> al;
  Sym3<R> ll;
};

template <class R>
BACKDRIVE_INLINE void operator+=(ArticulatedInertia<R>& a, const ArticulatedInertia<R>& b) {
  a.aa += b.aa;
  a.al.cx += b.al.cx, a.al.cy += b.al.cy, a.al.cz += b.al.cz;
  a.ll += b.ll;
}
template <class R>
BACKDRIVE_INLINE Spatial<R> operator*(const ArticulatedInertia<R>& i, const Spatial<R>& m) {
  return {i.aa * m.ang + i.al * m.lin, transposed_times(i.al, m.ang) + i.ll * m.lin};
}
/// I −= a bᵀ, where a bᵀ is known to be symmetric.
template <class R>
BACKDRIVE_INLINE void subtract_outer(ArticulatedInertia<R>& i, const Spatial<R>& a,
                                     const Spatial<R>& b) {
  i.aa.xx -= a.ang.x * b.ang.x, i.aa.yy -= a.ang.y * b.ang.y, i.aa.zz -= a.ang.z * b.ang.z;
  i.aa.xy -= a.ang.x * b.ang.y, i.aa.xz -= a.ang.x * b.ang.z, i.aa.yz -= a.ang.y * b.ang.z;
  i.al.cx -= a.ang * b.lin.x, i.al.cy -= a.ang * b.lin.y, i.al.cz -= a.ang * b.lin.z;
  i.ll.xx -= a.lin.x * b.lin.x, i.ll.yy -= a.lin.y * b.lin.y, i.ll.zz -= a.lin.z * b.lin.z;
  i.ll.xy -= a.lin.x * b.lin.y, i.ll.xz -= a.lin.x * b.lin.z, i.ll.yz -= a.lin.y * b.lin.z;
}
/// I += J − Σ a_k b_kᵀ, where the sum is known to be symmetric.
template <int K, class R>
BACKDRIVE_INLINE void add_less_outer(ArticulatedInertia<R>& i, const ArticulatedInertia<R>& j,
                                     const Spatial<R> (&a)[K], const Spatial<R> (&b)[K]) {
  using Half = Vec3<R> Spatial<R>::*;
  using Axis = R Vec3<R>::*;
  const auto add = [&](R& to, R from, Half p, Axis x, Half q, Axis y) __attribute__((always_inline)) {
    for (int k = 0; k < K; ++k) from -= a[k].*p.*x * (b[k].*q.*y);
    to += from;
  };
  const auto add_symmetric = [&](Sym3<R>& to, const Sym3<R>& from, Half h) __attribute__((always_inline)) {
    add(to.xx, from.xx, h, &Vec3<R>::x, h, &Vec3<R>::x);
    add(to.yy, from.yy, h, &Vec3<R>::y, h, &Vec3<R>::y);
    add(to.zz, from.zz, h, &Vec3<R>::z, h, &Vec3<R>::z);
    add(to.xy, from.xy, h, &Vec3<R>::x, h, &Vec3<R>::y);
    add(to.xz, from.xz, h, &Vec3<R>::x, h, &Vec3<R>::z);
    add(to.yz, from.yz, h, &Vec3<R>::y, h, &Vec3<R>::z);
  };
  const auto add_column = [&](Vec3<R>& to, const Vec3<R>& from, Axis y) __attribute__((always_inline)) {
    add(to.x, from.x, &Spatial<R>::ang, &Vec3<R>::x, &Spatial<R>::lin, y);
    add(to.y, from.y, &Spatial<R>::ang, &Vec3<R>::y, &Spatial<R>::lin, y);
    add(to.z, from.z, &Spatial<R>::ang, &Vec3<R>::z, &Spatial<R>::lin, y);
  };
  add_symmetric(i.aa, j.aa, &Spatial<R>::ang);
  add_column(i.al.cx, j.al.cx, &Vec3<R>::x);
  add_column(i.al.cy, j.al.cy, &Vec3<R>::y);
  add_column(i.al.cz, j.al.cz, &Vec3<R>::z);
  add_symmetric(i.ll, j.ll, &Spatial<R>::lin);
}
/// Rigid body of mass m, com c and inertia j about the com, seen about the origin:
/// aa = j + m(|c|² 1 − c cᵀ), al = m [c]×, ll = m 1.
template <class R>
BACKDRIVE_INLINE ArticulatedInertia<R> rigid_inertia(const R& m, const Vec3<R>& c,
                                                     const Sym3<R>& j) {
  const R o = constant<R>(0);
  const Vec3<R> h = c * m;
  const R xx = h.x * c.x, yy = h.y * c.y, zz = h.z * c.z;
  return {{j.xx + (yy + zz), j.yy + (xx + zz), j.zz + (xx + yy), j.xy - h.x * c.y, j.xz - h.x * c.z,
           j.yz - h.y * c.z},
          {{o, h.z, -h.y}, {-h.z, o, h.x}, {h.y, -h.x, o}},
          {m, m, m, o, o, o}};
}

}  // namespace backdrive
