#pragma once
// From which depth on two shapes are pushed apart by their second spring (force_law.h): before their middles meet, as
// contact pushes the shortest way out, which from then on is out on the other side. docs/contact.md, section 1.
//
//   D = (r_i + r_j)/4, H = 2000    r: radius of a ball inside of the shape
//   D = l, H = 200                 on planes and height fields, which have one side: l the largest half length
//
// Between two shapes H is what stops a pair of mass m at (r_i + r_j) √(H k/m)/2 or so, with auto 200 m/s of 10 cm; on
// the ground, which nothing passes, it carries what is heavy. D is linear in the scale of each shape, with weights that
// change only where another axis becomes the shortest.
#include "integrators/contact/shapes.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Two shapes by what their core takes.
template <class Real>
struct CorePair {
  const Geometry<ScalarOf<Real>>& first;
  const Vec3<Real>& first_scale;
  const Geometry<ScalarOf<Real>>& second;
  const Vec3<Real>& second_scale;

  BACKDRIVE_INLINE bool on_ground() const { return is_ground(second.kind); }
  /// H: between bodies enough to stop what is fast, on the ground to carry what is heavy.
  BACKDRIVE_INLINE double hardening() const { return on_ground() ? 200 : 2000; }
};

/// 1 for the smallest of three lengths, or the largest, else 0.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> pick_extreme(const Vec3<Real>& v, bool largest) {
  const Real one = constant<Real>(1), zero = constant<Real>(0);
  const auto before = [&](const Real& a, const Real& b) {
    return largest ? !(value_of(a) < value_of(b)) : !(value_of(a) > value_of(b));
  };
  const auto x = before(v.x, v.y) && before(v.x, v.z), y = !x && before(v.y, v.z);
  return {select(x, one, zero), select(y, one, zero), select(x || y, zero, one)};
}

/// The derivative of a shape's part of D by its scale, whose product with the scale is that part.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> core_weights(const Geometry<ScalarOf<Real>>& geometry, const Vec3<Real>& s,
                                         bool on_ground) {
  const Real zero = constant<Real>(0), part = constant<Real>(on_ground ? 1 : 0.25);
  switch (geometry.kind) {
    case GeometryType::sphere:
      return {part, zero, zero};
    case GeometryType::capsule:
      return {part, on_ground ? part : zero, zero};
    case GeometryType::cylinder: {
      const Vec3<Real> picked = pick_extreme<Real>({s.x, s.y, s.y}, on_ground);
      return {picked.x * part, (picked.y + picked.z) * part, zero};
    }
    case GeometryType::ellipsoid:
    case GeometryType::box:
      return pick_extreme(s, on_ground) * part;
    case GeometryType::mesh: {
      // Inside of a mesh is a ball of half its bounding box's size at least, of a tetrahedron for example.
      const Real size = constant<Real>(on_ground ? 1 : 0.125);
      const Vec3<Real> box = {constant<Real>(1) * geometry.half[0], constant<Real>(1) * geometry.half[1],
                              constant<Real>(1) * geometry.half[2]};
      const Vec3<Real> picked = pick_extreme<Real>({s.x * box.x, s.y * box.y, s.z * box.z}, on_ground) * size;
      return {picked.x * box.x, picked.y * box.y, picked.z * box.z};
    }
    case GeometryType::plane:
    case GeometryType::height_field:
      break;
  }
  return zero3<Real>();
}

/// D, m. A nanometre more, so that it is never zero.
template <class Real>
BACKDRIVE_INLINE Real core_depth(const CorePair<Real>& pair) {
  const bool ground = pair.on_ground();
  return dot(core_weights<Real>(pair.first, pair.first_scale, ground), pair.first_scale) +
         dot(core_weights<Real>(pair.second, pair.second_scale, ground), pair.second_scale) + constant<Real>(1e-9);
}
template <class Real>
BACKDRIVE_INLINE void adj_core_depth(const CorePair<Real>& pair, const Real& core_bar, Vec3<Real>& first_scale_bar,
                                     Vec3<Real>& second_scale_bar) {
  const bool ground = pair.on_ground();
  first_scale_bar += core_weights<Real>(pair.first, pair.first_scale, ground) * core_bar;
  second_scale_bar += core_weights<Real>(pair.second, pair.second_scale, ground) * core_bar;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
