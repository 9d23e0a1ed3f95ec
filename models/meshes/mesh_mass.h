#pragma once
// Mass properties of solids that a mesh bounds, as functions of a scale along each axis of the mesh, each adjoint
// beneath its primal. The integrals over the mesh are made once, at scale 1 (solid_moments in triangle_mesh.h and
// convex_mesh.h); what is left are polynomials. C is double or Dual<double>; cotangents of Sym3 as in
// mass_types.h.
#include "engine/rotation.h"
#include "models/mass_types.h"

namespace backdrive {

/// A mesh filled with matter: scale without a unit and ≥ 0, density in kg/m³, placed in the link's axes by position and
/// rotation, which turn and move the origin of the mesh, not its com.
template <class C>
struct SolidMesh {
  SolidMoments<double> moments;  ///< at scale 1
  Vec3<C> scale;
  C density;
  Vec3<C> position;
  Mat3<C> rotation;
};

template <class C>
BACKDRIVE_HD inline Vec3<C> times_each(const Vec3<double>& a, const Vec3<C>& b) {
  return {constant<C>(a.x) * b.x, constant<C>(a.y) * b.y, constant<C>(a.z) * b.z};
}

/// Of x' = diag(s) x, with k = s_x s_y s_z:   V' = k V   com'_i = s_i com_i   S'_ij = k s_i s_j S_ij.
template <class C>
BACKDRIVE_HD inline SolidMoments<C> scaled_moments(const SolidMoments<double>& unit, const Vec3<C>& s) {
  const C k = s.x * s.y * s.z;
  const auto entry = [&](double S, const C& a, const C& b) { return constant<C>(S) * k * a * b; };
  const Sym3<double>& S = unit.second;
  return {k * constant<C>(unit.volume),
          times_each(unit.com, s),
          {entry(S.xx, s.x, s.x), entry(S.yy, s.y, s.y), entry(S.zz, s.z, s.z), entry(S.xy, s.x, s.y),
           entry(S.xz, s.x, s.z), entry(S.yz, s.y, s.z)}};
}
/// With S̄ the symmetric gradient that bar.second holds, T_ij = S̄_ij S_ij and q = V̄ V + sᵀ T s:
///   s̄_i += com_i com̄_i + q k/s_i + 2 k (T s)_i,   k/s_i as the product of the other two.
template <class C>
BACKDRIVE_HD inline void adj_scaled_moments(const SolidMoments<double>& unit, const Vec3<C>& s,
                                            const SolidMoments<C>& bar, Vec3<C>& s_bar) {
  const auto c = [](double v) { return constant<C>(v); };
  const Sym3<C>& g = bar.second;
  const Sym3<double>& S = unit.second;
  const Sym3<C> T{g.xx * c(S.xx), g.yy * c(S.yy), g.zz * c(S.zz), g.xy * c(S.xy), g.xz * c(S.xz), g.yz * c(S.yz)};
  const Vec3<C> Ts = T * s;
  const C q = bar.volume * c(unit.volume) + dot(s, Ts);
  s_bar += times_each(unit.com, bar.com);
  s_bar += Vec3<C>{s.y * s.z, s.x * s.z, s.x * s.y} * q;
  s_bar += Ts * (c(2) * s.x * s.y * s.z);
}

/// tr S 1 − S: inertia of matter with second moments S; and, as the map is its own adjoint, the symmetric gradient by S
/// from that by the inertia.
template <class C>
BACKDRIVE_HD inline Sym3<C> trace_minus(const Sym3<C>& S) {
  return {S.yy + S.zz, S.xx + S.zz, S.xx + S.yy, -S.xy, -S.xz, -S.yz};
}
template <class C>
BACKDRIVE_HD inline Sym3<C> times_number(const Sym3<C>& S, const C& by) {
  return {S.xx * by, S.yy * by, S.zz * by, S.xy * by, S.xz * by, S.yz * by};
}

/// Mass, com and inertia about the com in link axes. A density of 0 gives zeros but for the com.
template <class C>
BACKDRIVE_HD inline MassProperties<C> mesh_mass(const SolidMesh<C>& mesh) {
  const SolidMoments<C> moments = scaled_moments(mesh.moments, mesh.scale);
  return {mesh.density * moments.volume, mesh.position + mesh.rotation * moments.com,
          rotated(mesh.rotation, times_number(trace_minus(moments.second), mesh.density))};
}
/// With B = Rᵀ J̄ R (J̄ the symmetric gradient), own inertia J, g = Rᵀ com̄ and own com x:
///   S̄ = ρ (tr B 1 − B),   θ̄ = x × g + 2 vee(B J − J B),   vee[m]× = m.
template <class C>
BACKDRIVE_HD inline void adj_mesh_mass(const SolidMesh<C>& mesh, const MassProperties<C>& bar,
                                       SolidShapeBar<C>& mesh_bar) {
  const SolidMoments<C> moments = scaled_moments(mesh.moments, mesh.scale);
  const Sym3<C> B = rotated(transposed(mesh.rotation), symmetric_gradient(bar.inertia));
  const Sym3<C> unit = trace_minus(moments.second), S_bar = trace_minus(B);
  const Vec3<C> g = transposed_times(mesh.rotation, bar.com);
  mesh_bar.density += bar.mass * moments.volume + B.xx * unit.xx + B.yy * unit.yy + B.zz * unit.zz +
                      constant<C>(2) * (B.xy * unit.xy + B.xz * unit.xz + B.yz * unit.yz);
  adj_scaled_moments(mesh.moments, mesh.scale,
                     SolidMoments<C>{mesh.density * bar.mass, g, times_number(S_bar, mesh.density)}, mesh_bar.scale);
  mesh_bar.position += bar.com;
  // (B J)_zy − (B J)_yz and cyclic: rows of B times columns of J.
  const Vec3<C> Bx{B.xx, B.xy, B.xz}, By{B.xy, B.yy, B.yz}, Bz{B.xz, B.yz, B.zz};
  const Vec3<C> Jx{unit.xx, unit.xy, unit.xz}, Jy{unit.xy, unit.yy, unit.yz}, Jz{unit.xz, unit.yz, unit.zz};
  const Vec3<C> twist{dot(Bz, Jy) - dot(By, Jz), dot(Bx, Jz) - dot(Bz, Jx), dot(By, Jx) - dot(Bx, Jy)};
  mesh_bar.theta += cross(moments.com, g) + twist * (constant<C>(2) * mesh.density);
}

}  // namespace backdrive
