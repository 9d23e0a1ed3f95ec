#pragma once
// Mass, centre of mass and inertia of shapes of uniform density and of the bodies they make up,
// each adjoint beneath its primal. C is double or Dual<double>; cotangents of Sym3
// as in mass_types.h.
#include <span>

#include "engine/rotation.h"
#include "models/mass_types.h"
#include "models/meshes/mesh_mass.h"

namespace backdrive {

/// Volume in m³ and second moments ∫x², ∫y², ∫z² dV in m⁵ of a shape about its centre, along its
/// own axes.
template <class C>
struct VolumeMoments {
  C volume{};
  Vec3<C> second{};
};

/// |d|² 1 − d dᵀ: inertia of a unit mass at d.
template <class C>
BACKDRIVE_HD inline Sym3<C> point_inertia(const Vec3<C>& d) {
  const C xx = d.x * d.x, yy = d.y * d.y, zz = d.z * d.z;
  return {yy + zz, xx + zz, xx + yy, -(d.x * d.y), -(d.x * d.z), -(d.y * d.z)};
}
/// Adjoint of mass·point_inertia(d), where J̄ (a symmetric gradient) is the cotangent of the result:
/// m̄ += |d|² tr J̄ − dᵀ J̄ d,   d̄ += 2m (tr J̄ d − J̄ d).
template <class C>
BACKDRIVE_HD inline void adj_point_inertia(const C& mass, const Vec3<C>& d, const Sym3<C>& J_bar, C& mass_bar,
                                           Vec3<C>& d_bar) {
  const Vec3<C> arm = d * (J_bar.xx + J_bar.yy + J_bar.zz) - J_bar * d;
  mass_bar += dot(d, arm);
  d_bar += arm * (constant<C>(2) * mass);
}

// ---- shapes
// ---------------------------------------------------------------------------------------------------------

/// Polynomials in the scale; planes and height fields have no volume, and meshes have their own (mesh_mass.h). With s =
/// scale:
///   sphere     V = 4/3 π r³         ∫x² = V r²/5
///   ellipsoid  V = 4/3 π abc        ∫x² = V a²/5
///   box        V = 8 abc            ∫x² = V a²/3
///   cylinder   V = 2π r²h           ∫x² = ∫y² = V r²/4     ∫z² = V h²/3
///   capsule    the cylinder and a ball whose halves stand h apart:   ∫z² += V_ball (r²/5 + ¾ h r +
///   h²)
template <class C>
BACKDRIVE_HD inline VolumeMoments<C> volume_moments(GeometryType type, const Vec3<C>& s) {
  const auto c = [](double v) { return constant<C>(v); };
  const C ball = c(4 * M_PI / 3), tube = c(2 * M_PI);
  switch (type) {
    case GeometryType::plane:
    case GeometryType::mesh:
    case GeometryType::height_field:
      break;
    case GeometryType::sphere: {
      const C V = ball * s.x * s.x * s.x, m = V * s.x * s.x * c(0.2);
      return {V, {m, m, m}};
    }
    case GeometryType::ellipsoid: {
      const C V = ball * s.x * s.y * s.z;
      return {V, Vec3<C>{s.x * s.x, s.y * s.y, s.z * s.z} * (V * c(0.2))};
    }
    case GeometryType::box: {
      const C V = c(8) * s.x * s.y * s.z;
      return {V, Vec3<C>{s.x * s.x, s.y * s.y, s.z * s.z} * (V / c(3))};
    }
    case GeometryType::cylinder:
    case GeometryType::capsule: {
      const C r = s.x, h = s.y;
      const C V = tube * r * r * h, x = V * r * r * c(0.25), z = V * h * h / c(3);
      if (type == GeometryType::cylinder) return {V, {x, x, z}};
      const C B = ball * r * r * r, y = x + B * r * r * c(0.2);
      return {V + B, {y, y, z + B * (r * r * c(0.2) + c(0.75) * h * r + h * h)}};
    }
  }
  return {c(0), zero3<C>()};
}

template <class C>
BACKDRIVE_HD inline void adj_volume_moments(GeometryType type, const Vec3<C>& s, const VolumeMoments<C>& bar,
                                            Vec3<C>& s_bar) {
  const auto c = [](double v) { return constant<C>(v); };
  const C ball = c(4 * M_PI / 3), tube = c(2 * M_PI);
  const Vec3<C>& m_bar = bar.second;
  switch (type) {
    case GeometryType::plane:
    case GeometryType::mesh:
    case GeometryType::height_field:
      return;
    case GeometryType::sphere: {
      const C r2 = s.x * s.x;
      s_bar.x += ball * r2 * (c(3) * bar.volume + r2 * (m_bar.x + m_bar.y + m_bar.z));
      return;
    }
    case GeometryType::ellipsoid:
    case GeometryType::box: {
      // V = k abc and ∫x² = g V a²: V_bar collects what multiplies V, then each ∫x² adds its own 2
      // g V a.
      const bool box = type == GeometryType::box;
      const C k = box ? c(8) : ball, g = box ? c(1) / c(3) : c(0.2);
      const C V_bar = bar.volume + g * (m_bar.x * s.x * s.x + m_bar.y * s.y * s.y + m_bar.z * s.z * s.z);
      const C kg2 = c(2) * k * g;
      s_bar.x += s.y * s.z * (k * V_bar + kg2 * s.x * s.x * m_bar.x);
      s_bar.y += s.x * s.z * (k * V_bar + kg2 * s.y * s.y * m_bar.y);
      s_bar.z += s.x * s.y * (k * V_bar + kg2 * s.z * s.z * m_bar.z);
      return;
    }
    case GeometryType::cylinder:
    case GeometryType::capsule: {
      const C r = s.x, h = s.y, xy_bar = m_bar.x + m_bar.y;
      s_bar.x += tube * r * h * (c(2) * bar.volume + r * r * xy_bar + c(2.0 / 3) * h * h * m_bar.z);
      s_bar.y += tube * r * r * (bar.volume + c(0.25) * r * r * xy_bar + h * h * m_bar.z);
      if (type == GeometryType::cylinder) return;
      // ball part: V = b r³, ∫x² = b r⁵/5, ∫z² = b (r⁵/5 + ¾ h r⁴ + h² r³)
      s_bar.x +=
          ball * r * r * (c(3) * bar.volume + r * r * (xy_bar + m_bar.z) + (c(3) * h * r + c(3) * h * h) * m_bar.z);
      s_bar.y += ball * r * r * r * (c(0.75) * r + c(2) * h) * m_bar.z;
      return;
    }
  }
}

template <class C>
BACKDRIVE_HD inline SolidMesh<C> solid_mesh(const SolidShape<C>& shape) {
  return {shape.mesh, shape.scale, shape.density, shape.position, shape.rotation};
}

/// A shape's mass, com and inertia in link axes. A density of 0 gives zeros (a mesh its com).
template <class C>
BACKDRIVE_HD inline MassProperties<C> shape_mass(const SolidShape<C>& shape) {
  if (shape.type == GeometryType::mesh) return mesh_mass(solid_mesh(shape));
  const VolumeMoments<C> moments = volume_moments(shape.type, shape.scale);
  const Vec3<C> m = moments.second * shape.density;
  const C o = constant<C>(0);
  const Sym3<C> own{m.y + m.z, m.x + m.z, m.x + m.y, o, o, o};
  return {shape.density * moments.volume, shape.position, rotated(shape.rotation, own)};
}
/// With B = Rᵀ J̄ R (J̄ the symmetric gradient) and own inertia diag(J): the cotangent of ∫x² is ρ
/// (tr B − B_xx), and θ̄ = vee(C − Cᵀ), C = B J − J B, that is θ̄_x = 2 B_yz (J_y − J_z) and cyclic.
template <class C>
BACKDRIVE_HD inline void adj_shape_mass(const SolidShape<C>& shape, const MassProperties<C>& bar,
                                        SolidShapeBar<C>& shape_bar) {
  if (shape.type == GeometryType::mesh) return adj_mesh_mass(solid_mesh(shape), bar, shape_bar);
  const VolumeMoments<C> moments = volume_moments(shape.type, shape.scale);
  const Sym3<C> B = rotated(transposed(shape.rotation), symmetric_gradient(bar.inertia));
  const Vec3<C> second_bar{B.yy + B.zz, B.xx + B.zz, B.xx + B.yy};
  shape_bar.density += bar.mass * moments.volume + dot(second_bar, moments.second);
  adj_volume_moments(shape.type, shape.scale, {shape.density * bar.mass, second_bar * shape.density}, shape_bar.scale);
  shape_bar.position += bar.com;
  const Vec3<C> m = moments.second * (constant<C>(2) * shape.density);  // J_y − J_z = m_z − m_y
  shape_bar.theta += Vec3<C>{B.yz * (m.z - m.y), B.xz * (m.x - m.z), B.xy * (m.y - m.x)};
}

// ---- bodies
// ---------------------------------------------------------------------------------------------------------

/// Two rigid parts made one. A part of no mass and no inertia leaves the other as it is, bit for
/// bit; where neither has mass, the com is a's. With d = com_b − com_a and μ = m_a m_b / m:   J =
/// J_a + J_b + μ (|d|² 1 − d dᵀ).
template <class C>
BACKDRIVE_HD inline MassProperties<C> combined(const MassProperties<C>& a, const MassProperties<C>& b) {
  const bool a_heavier = !(value_of(a.mass) < value_of(b.mass));
  const MassProperties<C>& heavy = a_heavier ? a : b;
  const MassProperties<C>& light = a_heavier ? b : a;
  const C mass = heavy.mass + light.mass;
  const C share = value_of(mass) == 0 ? constant<C>(0) : light.mass / mass;
  const Vec3<C> d = light.com - heavy.com;
  Sym3<C> inertia = heavy.inertia;
  inertia += light.inertia;
  const Sym3<C> apart = point_inertia(d);
  const C reduced = share * heavy.mass;
  inertia += Sym3<C>{apart.xx * reduced, apart.yy * reduced, apart.zz * reduced,
                     apart.xy * reduced, apart.xz * reduced, apart.yz * reduced};
  return {mass, heavy.com + d * share, inertia};
}

/// The body that explicit numbers and solid shapes make together. O(shapes).
template <class C>
inline MassProperties<C> body_mass(const MassProperties<C>& explicit_part, std::span<const SolidShape<C>> shapes) {
  MassProperties<C> body = explicit_part;
  for (const SolidShape<C>& shape : shapes) body = combined(body, shape_mass(shape));
  return body;
}

/// Cotangent of one part, given that of the whole (mass, com, inertia about the com). With d =
/// com_part − com:
///   m̄ᵢ = m̄ + d·com̄/m + |d|² tr J̄ − dᵀ J̄ d,   com̄ᵢ = mᵢ (com̄/m + 2 (tr J̄ d − J̄ d)),   J̄ᵢ = J̄
/// (the com's own shift drops out of J, as Σ mᵢ dᵢ = 0). A massless whole passes no com̄ to its
/// parts' masses; where that matters use part_bar_of_moments.
template <class C>
BACKDRIVE_HD inline MassProperties<C> part_bar(const MassProperties<C>& part, const MassProperties<C>& whole,
                                               const MassProperties<C>& whole_bar) {
  MassProperties<C> bar{whole_bar.mass, zero3<C>(), whole_bar.inertia};
  const Vec3<C> d = part.com - whole.com;
  if (!(value_of(whole.mass) == 0)) {
    const Vec3<C> first_bar = whole_bar.com * (constant<C>(1) / whole.mass);
    bar.mass += dot(d, first_bar);
    bar.com += first_bar * part.mass;
  }
  adj_point_inertia(part.mass, d, symmetric_gradient(whole_bar.inertia), bar.mass, bar.com);
  return bar;
}

/// The same from the cotangents of the whole's moments about the link origin, which simply add up;
/// sound for massless bodies too:   m̄ᵢ = m̄ + comᵢ·h̄ + |comᵢ|² tr J̄ − comᵢᵀ J̄ comᵢ,   com̄ᵢ = mᵢ h̄ +
/// 2mᵢ (tr J̄ comᵢ − J̄ comᵢ),   J̄ᵢ = J̄.
template <class C>
BACKDRIVE_HD inline MassProperties<C> part_bar_of_moments(const MassProperties<C>& part,
                                                          const MassMoments<C>& whole_bar) {
  MassProperties<C> bar{whole_bar.mass + dot(part.com, whole_bar.first), whole_bar.first * part.mass,
                        whole_bar.inertia};
  adj_point_inertia(part.mass, part.com, symmetric_gradient(whole_bar.inertia), bar.mass, bar.com);
  return bar;
}

/// Moments about the link origin: h = m com, J_o = J + m (|com|² 1 − com comᵀ).
template <class C>
BACKDRIVE_HD inline MassMoments<C> moments_of(const MassProperties<C>& body) {
  const Sym3<C> p = point_inertia(body.com);
  Sym3<C> inertia = body.inertia;
  inertia += Sym3<C>{p.xx * body.mass, p.yy * body.mass, p.zz * body.mass,
                     p.xy * body.mass, p.xz * body.mass, p.yz * body.mass};
  return {body.mass, body.com * body.mass, inertia};
}

/// Adjoint of body_mass: adds to the cotangents of the explicit numbers and of each shape.
/// O(shapes).
template <class C>
inline void adj_body_mass(const MassProperties<C>& explicit_part, std::span<const SolidShape<C>> shapes,
                          const MassProperties<C>& body_bar, MassProperties<C>& explicit_bar,
                          std::span<SolidShapeBar<C>> shapes_bar) {
  const MassProperties<C> body = body_mass(explicit_part, shapes);
  const auto add = [](MassProperties<C>& to, const MassProperties<C>& bar) {
    to.mass += bar.mass;
    to.com += bar.com;
    to.inertia += bar.inertia;
  };
  add(explicit_bar, part_bar(explicit_part, body, body_bar));
  for (size_t i = 0; i < shapes.size(); ++i) {
    adj_shape_mass(shapes[i], part_bar(shape_mass(shapes[i]), body, body_bar), shapes_bar[i]);
  }
}
/// Adjoint of moments_of(body_mass(...)).
template <class C>
inline void adj_body_mass(const MassProperties<C>& explicit_part, std::span<const SolidShape<C>> shapes,
                          const MassMoments<C>& body_bar, MassProperties<C>& explicit_bar,
                          std::span<SolidShapeBar<C>> shapes_bar) {
  const MassProperties<C> bar = part_bar_of_moments(explicit_part, body_bar);
  explicit_bar.mass += bar.mass;
  explicit_bar.com += bar.com;
  explicit_bar.inertia += bar.inertia;
  for (size_t i = 0; i < shapes.size(); ++i) {
    adj_shape_mass(shapes[i], part_bar_of_moments(shape_mass(shapes[i]), body_bar), shapes_bar[i]);
  }
}

}  // namespace backdrive
