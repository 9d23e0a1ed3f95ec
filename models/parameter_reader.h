#pragma once
// A model's parameters in one world, and the masses they make, read from wherever a ParametersView looks.
#include <type_traits>

#include "models/mass_properties.h"
#include "models/parameter_views.h"

namespace backdrive {

template <class Numbers>
BACKDRIVE_HD inline Vec3<double> vector_of(const Numbers& p, int item, int world) {
  return {p(item, 0, world), p(item, 1, world), p(item, 2, world)};
}

/// The function that picks a member of any nest of parameters.
#define BACKDRIVE_PICK(member)       \
  [](const auto& p) -> const auto& { \
    return p.member;                 \
  }

/// Reads parameters of one world, with their dots along a direction where C is dual.
template <class C>
struct ParameterReader {
  const ParametersView& values;
  const ParametersView* direction;  ///< null: zeros
  int world;

  BACKDRIVE_HD C number(const ParameterValues& p, const ParameterValues* dots, int item, int component) const {
    if constexpr (std::is_same_v<C, double>) {
      return p(item, component, world);
    } else {
      return {p(item, component, world), dots ? (*dots)(item, component, world) : 0.0};
    }
  }
  template <class Pick>
  BACKDRIVE_HD C number(Pick pick, int item, int component = 0) const {
    return number(pick(values), direction ? &pick(*direction) : nullptr, item, component);
  }
  template <class Pick>
  BACKDRIVE_HD Vec3<C> vector(Pick pick, int item) const {
    return {number(pick, item, 0), number(pick, item, 1), number(pick, item, 2)};
  }
  /// R(quaternion), and for duals R [θ̇]× with the direction's three tangents.
  template <class Pick>
  BACKDRIVE_HD Mat3<C> rotation(Pick pick, int item) const {
    const ParameterValues& o = pick(values);
    const Mat3<double> r = rotation_matrix(o(item, 0, world), o(item, 1, world), o(item, 2, world), o(item, 3, world));
    if constexpr (std::is_same_v<C, double>) {
      return r;
    } else {
      Vec3<double> t = zero3<double>();
      if (direction) t = vector_of(pick(*direction), item, world);
      const Mat3<double> dot = r * Mat3<double>{{0, t.z, -t.y}, {-t.z, 0, t.x}, {t.y, -t.x, 0}};
      const auto column = [](const Vec3<double>& v, const Vec3<double>& d) {
        return Vec3<C>{{v.x, d.x}, {v.y, d.y}, {v.z, d.z}};
      };
      return {column(r.cx, dot.cx), column(r.cy, dot.cy), column(r.cz, dot.cz)};
    }
  }
};

/// The axis about or along which a link of one degree of freedom moves, in its joint's frame.
template <class C>
BACKDRIVE_HD inline Vec3<C> link_axis(const ParameterReader<C>& read, const Link& link) {
  if (link.axis == LinkAxis::parameter) return read.vector(BACKDRIVE_PICK(joints.axis), link.joint);
  const Mat3<C> axes = identity3<C>();
  return link.axis == LinkAxis::x ? axes.cx : link.axis == LinkAxis::y ? axes.cy : axes.cz;
}

/// The numbers a body was given, without its shapes.
template <class C>
BACKDRIVE_HD inline MassProperties<C> explicit_mass(const ParameterReader<C>& read, int body) {
  const auto inertia = [&](int k) { return read.number(BACKDRIVE_PICK(bodies.inertia), body, k); };
  return {read.number(BACKDRIVE_PICK(bodies.mass), body),
          read.vector(BACKDRIVE_PICK(bodies.com), body),
          {inertia(0), inertia(1), inertia(2), inertia(3), inertia(4), inertia(5)}};
}

template <class C>
BACKDRIVE_HD inline SolidShape<C> solid_shape(const ModelStructure& model, const ParameterReader<C>& read, int s) {
  return {model.shape_types[s],
          read.vector(BACKDRIVE_PICK(shapes.geometry.scale), s),
          read.number(BACKDRIVE_PICK(shapes.density), s),
          read.vector(BACKDRIVE_PICK(shapes.frame.position), s),
          read.rotation(BACKDRIVE_PICK(shapes.frame.orientation), s),
          model.shape_moments[s]};
}

/// Calls visit(s) for each shape of a body. O(all shapes).
template <class Visit>
BACKDRIVE_HD inline void each_shape_of(const ModelStructure& model, int body, Visit&& visit) {
  for (int s = 0; s < model.shape_count; ++s) {
    if (model.shape_bodies[s] == body) visit(s);
  }
}

/// Mass properties of a body with all its shapes; of none (−1) zeros. O(all shapes), no allocation.
template <class C>
BACKDRIVE_HD inline MassProperties<C> body_mass(const ModelStructure& model, const ParameterReader<C>& read, int body) {
  if (body < 0) return {};
  MassProperties<C> result = explicit_mass(read, body);
  each_shape_of(model, body, [&](int s) { result = combined(result, shape_mass(solid_shape(model, read, s))); });
  return result;
}

inline MassProperties<double> explicit_mass(const Model& model, int body, int world) {
  return explicit_mass(ParameterReader<double>{view_of(model), nullptr, world}, body);
}
inline MassProperties<double> body_mass(const Model& model, int body, int world) {
  return body_mass(structure_of(model), ParameterReader<double>{view_of(model), nullptr, world}, body);
}

}  // namespace backdrive
