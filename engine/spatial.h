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

/// `yes` in lanes where the mask is set, else `no`.
template <class R, class Mask>
BACKDRIVE_INLINE Vec3<R> choose(const Mask& mask, const Vec3<R>& yes, const Vec3<R>& no) {
  return {select(mask, yes.x, no.x), select(mask, yes.y, no.y), select(mask, yes.z, no.z)};
}
template <class R, class Mask>
BACKDRIVE_INLINE Spatial<R> choose(const Mask& mask, const Spatial<R>& yes, const Spatial<R>& no) {
  return {choose(mask, yes.ang, no.ang), choose(mask, yes.lin, no.lin)};
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
// Sums that start from `a` keep every multiply-add fused; a sum of finished products would not.

/// a + b × c
template <class A, class B, class C>
BACKDRIVE_INLINE auto plus_cross(const Vec3<A>& a, const Vec3<B>& b, const Vec3<C>& c)
    -> Vec3<decltype(a.x + b.x * c.x)> {
  return {a.x + b.y * c.z - b.z * c.y, a.y + b.z * c.x - b.x * c.z, a.z + b.x * c.y - b.y * c.x};
}
template <class A>
BACKDRIVE_INLINE void adj_cross(const Vec3<A>& a, const Vec3<A>& b, const Vec3<A>& result_bar, Vec3<A>& a_bar,
                                Vec3<A>& b_bar) {
  a_bar += cross(b, result_bar);
  b_bar += cross(result_bar, a);
}

// ---- matrices -------------------------------------------------------------------------------------------------------

template <class A, class B>
BACKDRIVE_INLINE auto operator*(const Mat3<A>& m, const Vec3<B>& v) -> Vec3<decltype(m.cx.x * v.x)> {
  return {m.cx.x * v.x + m.cy.x * v.y + m.cz.x * v.z, m.cx.y * v.x + m.cy.y * v.y + m.cz.y * v.z,
          m.cx.z * v.x + m.cy.z * v.y + m.cz.z * v.z};
}
/// a + m v
template <class A, class B>
BACKDRIVE_INLINE auto plus_times(const Vec3<A>& a, const Mat3<A>& m, const Vec3<B>& v) -> Vec3<decltype(m.cx.x * v.x)> {
  return {a.x + m.cx.x * v.x + m.cy.x * v.y + m.cz.x * v.z, a.y + m.cx.y * v.x + m.cy.y * v.y + m.cz.y * v.z,
          a.z + m.cx.z * v.x + m.cy.z * v.y + m.cz.z * v.z};
}
template <class A, class B>
BACKDRIVE_INLINE auto operator*(const Mat3<A>& a, const Mat3<B>& b) -> Mat3<decltype(a.cx.x * b.cx.x)> {
  return {a * b.cx, a * b.cy, a * b.cz};
}
/// mᵀ v
template <class A, class B>
BACKDRIVE_INLINE auto transposed_times(const Mat3<A>& m, const Vec3<B>& v) -> Vec3<decltype(m.cx.x * v.x)> {
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
/// a + s v
template <class A>
BACKDRIVE_INLINE Vec3<A> plus_times(const Vec3<A>& a, const Sym3<A>& s, const Vec3<A>& v) {
  return {a.x + s.xx * v.x + s.xy * v.y + s.xz * v.z, a.y + s.xy * v.x + s.yy * v.y + s.yz * v.z,
          a.z + s.xz * v.x + s.yz * v.y + s.zz * v.z};
}
template <class A>
BACKDRIVE_INLINE void operator+=(Sym3<A>& a, const Sym3<A>& b) {
  a.xx += b.xx, a.yy += b.yy, a.zz += b.zz, a.xy += b.xy, a.xz += b.xz, a.yz += b.yz;
}
template <class A>
BACKDRIVE_INLINE Sym3<A> operator-(const Sym3<A>& a, const Sym3<A>& b) {
  return {a.xx - b.xx, a.yy - b.yy, a.zz - b.zz, a.xy - b.xy, a.xz - b.xz, a.yz - b.yz};
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
BACKDRIVE_INLINE auto operator+(const Spatial<A>& a, const Spatial<B>& b) -> Spatial<decltype(a.ang.x + b.ang.x)> {
  return {a.ang + b.ang, a.lin + b.lin};
}
template <class A, class B>
BACKDRIVE_INLINE auto operator-(const Spatial<A>& a, const Spatial<B>& b) -> Spatial<decltype(a.ang.x - b.ang.x)> {
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
  return dot(a.ang, b.ang) + dot(a.lin, b.lin);  // two short chains: this stands on critical paths
}
/// v × m: rate of change of a motion m carried by a body that moves with v.
template <class A>
BACKDRIVE_INLINE Spatial<A> cross_motion(const Spatial<A>& v, const Spatial<A>& m) {
  return {cross(v.ang, m.ang), plus_cross(cross(v.ang, m.lin), v.lin, m.ang)};
}
/// a + v × m
template <class A>
BACKDRIVE_INLINE Spatial<A> plus_cross_motion(const Spatial<A>& a, const Spatial<A>& v, const Spatial<A>& m) {
  return {plus_cross(a.ang, v.ang, m.ang), plus_cross(plus_cross(a.lin, v.ang, m.lin), v.lin, m.ang)};
}
/// v ×* f: the same for a force f; (v ×*) = −(v ×)ᵀ.
template <class A>
BACKDRIVE_INLINE Spatial<A> cross_force(const Spatial<A>& v, const Spatial<A>& f) {
  return {plus_cross(cross(v.ang, f.ang), v.lin, f.lin), cross(v.ang, f.lin)};
}
/// a + v ×* f
template <class A>
BACKDRIVE_INLINE Spatial<A> plus_cross_force(const Spatial<A>& a, const Spatial<A>& v, const Spatial<A>& f) {
  return {plus_cross(plus_cross(a.ang, v.ang, f.ang), v.lin, f.lin), plus_cross(a.lin, v.ang, f.lin)};
}
/// Adjoint of both: d⟨r, v × m⟩ = ⟨m ×* r, dv⟩ − ⟨v ×* r, dm⟩.
template <class A>
BACKDRIVE_INLINE void adj_cross_motion(const Spatial<A>& v, const Spatial<A>& m, const Spatial<A>& result_bar,
                                       Spatial<A>& v_bar, Spatial<A>& m_bar) {
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
  return {i.aa * m.ang + i.al * m.lin, transposed_times(i.al, m.ang) + i.ll * m.lin};  // likewise
}
/// a + I m
template <class R>
BACKDRIVE_INLINE Spatial<R> plus_times(const Spatial<R>& a, const ArticulatedInertia<R>& i, const Spatial<R>& m) {
  const Vec3<R>&u = m.ang, &x = i.al.cx, &y = i.al.cy, &z = i.al.cz;
  const Vec3<R> lin{a.lin.x + x.x * u.x + x.y * u.y + x.z * u.z, a.lin.y + y.x * u.x + y.y * u.y + y.z * u.z,
                    a.lin.z + z.x * u.x + z.y * u.y + z.z * u.z};
  return {plus_times(plus_times(a.ang, i.aa, u), i.al, m.lin), plus_times(lin, i.ll, m.lin)};
}
/// Inertia of one rigid body about the origin: aa as it is, al = [h]×, ll = m 1, with h = m·com.
template <class R>
struct RigidInertia {
  Sym3<R> aa;
  Vec3<R> h;
  R m;
};
/// Of mass m, com c and inertia j about the com: aa = j + m(|c|² 1 − c cᵀ). In place, entry by entry, here and below:
/// GCC copies aggregates of this size with `rep movs`, which stalls.
template <class R>
BACKDRIVE_INLINE void set(RigidInertia<R>& i, const R& m, const Vec3<R>& c, const Sym3<R>& j) {
  const Vec3<R> h = c * m;
  const R xx = h.x * c.x, yy = h.y * c.y, zz = h.z * c.z;
  i.aa.xx = j.xx + (yy + zz);
  i.aa.yy = j.yy + (xx + zz);
  i.aa.zz = j.zz + (xx + yy);
  i.aa.xy = j.xy - h.x * c.y;
  i.aa.xz = j.xz - h.x * c.z;
  i.aa.yz = j.yz - h.y * c.z;
  i.h = h;
  i.m = m;
}
template <class R>
BACKDRIVE_INLINE Spatial<R> operator*(const RigidInertia<R>& i, const Spatial<R>& v) {
  return {plus_cross(i.aa * v.ang, i.h, v.lin), plus_cross(v.lin * i.m, v.ang, i.h)};
}

/// a + I v
template <class R>
BACKDRIVE_INLINE Spatial<R> plus_times(const Spatial<R>& a, const RigidInertia<R>& i, const Spatial<R>& v) {
  return {plus_cross(plus_times(a.ang, i.aa, v.ang), i.h, v.lin), plus_cross(a.lin + v.lin * i.m, v.ang, i.h)};
}

template <class R>
BACKDRIVE_INLINE void set(ArticulatedInertia<R>& i, const RigidInertia<R>& b) {
  const R o = constant<R>(0);
  const Vec3<R> n = -b.h;
  i.aa.xx = b.aa.xx, i.aa.yy = b.aa.yy, i.aa.zz = b.aa.zz;
  i.aa.xy = b.aa.xy, i.aa.xz = b.aa.xz, i.aa.yz = b.aa.yz;
  i.al.cx.x = o, i.al.cx.y = b.h.z, i.al.cx.z = n.y;
  i.al.cy.x = n.z, i.al.cy.y = o, i.al.cy.z = b.h.x;
  i.al.cz.x = b.h.y, i.al.cz.y = n.x, i.al.cz.z = o;
  i.ll.xx = i.ll.yy = i.ll.zz = b.m;
  i.ll.xy = i.ll.xz = i.ll.yz = o;
}

/// entry of I = with(entry of I, entry of J, n, sign) − Σ a_k b_kᵀ for all 21 entries, where the sum is known to be
/// symmetric and a rigid body has ± its n-th number (−1: zero). The products come last: they are what is waited for.
template <int K, class R, class With>
BACKDRIVE_INLINE void each_less_outer(ArticulatedInertia<R>& i, const ArticulatedInertia<R>& j, const Spatial<R>* a,
                                      const Spatial<R>* b, const With& with) {
  using Half = Vec3<R> Spatial<R>::*;
  using Axis = R Vec3<R>::*;
  struct Component {
    Half half;
    Axis axis;
  };
  constexpr auto ang = &Spatial<R>::ang, lin = &Spatial<R>::lin;
  constexpr auto x = &Vec3<R>::x, y = &Vec3<R>::y, z = &Vec3<R>::z;
  constexpr Component ax{ang, x}, ay{ang, y}, az{ang, z}, lx{lin, x}, ly{lin, y}, lz{lin, z};
  enum { xx, yy, zz, xy, xz, yz, hx, hy, hz, m, none = -1 };
  const auto entry = [&](R & to, const R& from, Component p, Component q, int n, int sign = 1)
      __attribute__((always_inline)) {
    R sum = with(to, from, n, sign);
    for (int k = 0; k < K; ++k) sum -= a[k].*p.half.*p.axis * (b[k].*q.half.*q.axis);
    to = sum;
  };
  entry(i.aa.xx, j.aa.xx, ax, ax, xx);
  entry(i.aa.yy, j.aa.yy, ay, ay, yy);
  entry(i.aa.zz, j.aa.zz, az, az, zz);
  entry(i.aa.xy, j.aa.xy, ax, ay, xy);
  entry(i.aa.xz, j.aa.xz, ax, az, xz);
  entry(i.aa.yz, j.aa.yz, ay, az, yz);
  entry(i.al.cx.x, j.al.cx.x, ax, lx, none);
  entry(i.al.cx.y, j.al.cx.y, ay, lx, hz);
  entry(i.al.cx.z, j.al.cx.z, az, lx, hy, -1);
  entry(i.al.cy.x, j.al.cy.x, ax, ly, hz, -1);
  entry(i.al.cy.y, j.al.cy.y, ay, ly, none);
  entry(i.al.cy.z, j.al.cy.z, az, ly, hx);
  entry(i.al.cz.x, j.al.cz.x, ax, lz, hy);
  entry(i.al.cz.y, j.al.cz.y, ay, lz, hx, -1);
  entry(i.al.cz.z, j.al.cz.z, az, lz, none);
  entry(i.ll.xx, j.ll.xx, lx, lx, m);
  entry(i.ll.yy, j.ll.yy, ly, ly, m);
  entry(i.ll.zz, j.ll.zz, lz, lz, m);
  entry(i.ll.xy, j.ll.xy, lx, ly, none);
  entry(i.ll.xz, j.ll.xz, lx, lz, none);
  entry(i.ll.yz, j.ll.yz, ly, lz, none);
}
/// I −= a bᵀ
template <class R>
BACKDRIVE_INLINE void less_outer(ArticulatedInertia<R>& i, const Spatial<R>& a, const Spatial<R>& b) {
  each_less_outer<1>(
      i, i, &a, &b, [](const R& to, const R&, int, int) __attribute__((always_inline)) { return to; });
}
/// I += J − Σ a_k b_kᵀ
template <int K, class R>
BACKDRIVE_INLINE void add_less_outer(ArticulatedInertia<R>& i, const ArticulatedInertia<R>& j, const Spatial<R>* a,
                                     const Spatial<R>* b) {
  each_less_outer<K>(
      i, j, a, b, [](const R& to, const R& x, int, int) __attribute__((always_inline)) { return to + x; });
}
/// I = body + J − Σ a_k b_kᵀ
template <int K, class R>
BACKDRIVE_INLINE void set_less_outer(ArticulatedInertia<R>& i, const RigidInertia<R>& body,
                                     const ArticulatedInertia<R>& j, const Spatial<R>* a, const Spatial<R>* b) {
  const R* const own = &body.aa.xx;
  each_less_outer<K>(
      i, j, a, b, [&](const R&, const R& x, int n, int sign) __attribute__((always_inline)) {
        return n < 0 ? x : sign < 0 ? x - own[n] : x + own[n];
      });
}

}  // namespace backdrive
