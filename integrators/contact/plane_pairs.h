#pragma once
// Shapes on a plane (shape B). The plane's normal is the contact's, and every point is a point q of shape A in its own
// axes, pushed out by a radius:
//
//   x = o + R q     gap = n·(x − o_B) − r     point = x − (r + ½ gap) n
//
// Sphere 1, capsule 2 (its ends), box 8 (its corners), mesh 1 per vertex, ellipsoid 1, cylinder 10 points. Spheres,
// capsules, boxes and meshes give points fixed to the body: smooth everywhere. Ellipsoid and cylinder: see below.
#include "integrators/contact/shapes.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// A point x and what it is pushed out by, r. Also the cotangents of both.
template <class Real>
struct RoundPoint {
  Vec3<Real> x;
  Real radius;
};

template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> point_on_plane(const RoundPoint<Real>& p, const ShapePose<Real>& plane) {
  const Vec3<Real>& n = plane.axes.cz;
  const Real gap = dot(n, p.x - plane.origin) - p.radius;
  return {gap, p.x - n * (p.radius + constant<Real>(0.5) * gap), n};
}
/// Adds to that of the plane.
template <class Real>
BACKDRIVE_INLINE RoundPoint<Real> adj_point_on_plane(const RoundPoint<Real>& p, const ShapePose<Real>& plane,
                                                     const ContactPoint<Real>& bar, Spatial<Real>& plane_bar) {
  const Real half = constant<Real>(0.5);
  const Vec3<Real>& n = plane.axes.cz;
  const Vec3<Real> from = p.x - plane.origin;
  const Real gap = dot(n, from) - p.radius;
  const Real along = dot(n, bar.point);
  const Real gap_bar = bar.gap - half * along;
  const Vec3<Real> n_bar = bar.normal - bar.point * (p.radius + half * gap) + from * gap_bar;
  const Vec3<Real> origin_bar = n * -gap_bar;
  plane_bar.ang += cross(n, n_bar) + cross(plane.origin, origin_bar);
  plane_bar.lin += origin_bar;
  return {bar.point + n * gap_bar, -(along + gap_bar)};
}

/// A point of a rounded polyhedron.
template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> core_on_plane(const Core<Real>& a, const Vec3<Real>& xi,
                                                  const ShapePose<Real>& plane) {
  return point_on_plane<Real>({core_point(a, xi), a.radius}, plane);
}
template <class Real>
BACKDRIVE_INLINE void adj_core_on_plane(const Core<Real>& a, const Vec3<Real>& xi, const ShapePose<Real>& plane,
                                        const ContactPoint<Real>& bar, CoreBar<Real>& a_bar, Spatial<Real>& plane_bar) {
  const RoundPoint<Real> p{core_point(a, xi), a.radius}, p_bar = adj_point_on_plane(p, plane, bar, plane_bar);
  a_bar.radius += p_bar.radius;
  adj_core_point(a, xi, p.x, p_bar.x, a_bar);
}

/// Corner i of [-1, 1]³: bit k of i is the sign of axis k. Corners 0 and 4 on the z axis are a capsule's ends.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> corner(int i) {
  return {constant<Real>(i & 1 ? 1 : -1), constant<Real>(i & 2 ? 1 : -1), constant<Real>(i & 4 ? 1 : -1)};
}

// ---- ellipsoid ------------------------------------------------------------------------------------------------------
// The support point against the plane's normal m = Rᵀ n:  q = −E∘w/|w|,  w = E∘m.  Smooth everywhere.

template <class Real>
BACKDRIVE_INLINE Vec3<Real> ellipsoid_support(const Vec3<Real>& radii, const Vec3<Real>& m) {
  return -times(radii, direction(times(radii, m)));
}
template <class Real>
BACKDRIVE_INLINE void adj_ellipsoid_support(const Vec3<Real>& radii, const Vec3<Real>& m, const Vec3<Real>& q_bar,
                                            Vec3<Real>& radii_bar, Vec3<Real>& m_bar) {
  const Vec3<Real> w = times(radii, m), n = direction(w);
  Vec3<Real> w_bar = zero3<Real>();
  adj_direction(w, n, -times(radii, q_bar), w_bar);
  radii_bar += times(m, w_bar) - times(n, q_bar);
  m_bar += times(radii, w_bar);
}

// ---- cylinder -------------------------------------------------------------------------------------------------------
// Five points on each end face, in unit coordinates (d_x, d_y, ±1); m = Rᵀ n, and t² = m_x² + m_y² = 1 − m_z²:
//   lowest     d = −κ (m_x, m_y) / √(t² + δ²), κ = √(1 + δ²): the rim's lowest point once the axis is more than ~δ off
//              the normal, exact when lying (t = 1), and moving smoothly into the face's centre as it comes upright
//   four more  d = m_z² (±1, 0), m_z² (0, ±1): on the rim when upright, so that the cylinder stands; drawn into the
//              centre as it lies down, so that it rolls on the lowest point alone
// Smooth everywhere, with curvature up to R/δ. The lowest point's gap is above the exact one by at most 0.3 δ R.
//
// These points wander over the body as it turns, and the gap with them: of a turn θ of the body it has
//
//   ∂gap/∂θ = q × m + E × m,   E = (∂q/∂m)ᵀ m                                              (in the body's axes)
//
// and a force that acted at q alone would do another work than that by which the gap's energy changes: a tilted disc
// would spin up by itself. So it acts at q + E, less what E has along the normal. An ellipsoid's q is the gradient of
// its support function: E lies along the normal.

constexpr double kRimWidth = 0.02;  ///< δ
constexpr int kCylinderPoints = 10;

/// Of the lowest point.
template <class Real>
struct Rim {
  Real square, factor;  ///< t² + δ², κ/√(t² + δ²)
  Real pull;            ///< δ²/(t² + δ²), by which E is q's part of the face

  BACKDRIVE_INLINE explicit Rim(const Vec3<Real>& m) {
    constexpr double width = kRimWidth * kRimWidth;
    square = m.x * m.x + m.y * m.y + constant<Real>(width);
    factor = square_root(constant<Real>(1 + width) / square);
    pull = constant<Real>(width) / square;
  }
};

template <class Real>
BACKDRIVE_INLINE Vec3<Real> cylinder_point(const Vec3<Real>& m, int i) {
  const Real o = constant<Real>(0), end = constant<Real>(i < 5 ? -1 : 1);
  const int k = i % 5;
  if (k == 0) {
    const Rim<Real> rim(m);
    return {-m.x * rim.factor, -m.y * rim.factor, end};
  }
  const Real d = m.z * m.z * constant<Real>(k % 2 ? 1 : -1);
  return k < 3 ? Vec3<Real>{d, o, end} : Vec3<Real>{o, d, end};
}
template <class Real>
BACKDRIVE_INLINE void adj_cylinder_point(const Vec3<Real>& m, int i, const Vec3<Real>& xi_bar, Vec3<Real>& m_bar) {
  const int k = i % 5;
  if (k == 0) {
    const Rim<Real> rim(m);
    const Real along = (m.x * xi_bar.x + m.y * xi_bar.y) / rim.square;
    m_bar.x -= rim.factor * (xi_bar.x - m.x * along);
    m_bar.y -= rim.factor * (xi_bar.y - m.y * along);
  } else {
    const Real d_bar = k < 3 ? xi_bar.x : xi_bar.y;
    m_bar.z += m.z * d_bar * constant<Real>(k % 2 ? 2 : -2);
  }
}
/// E of the point i, of radius 1.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> cylinder_lever(const Vec3<Real>& m, int i) {
  const Real o = constant<Real>(0);
  const int k = i % 5;
  if (k == 0) {
    const Rim<Real> rim(m);
    const Real factor = rim.factor * rim.pull;
    return {-m.x * factor, -m.y * factor, o};
  }
  return {o, o, m.z * (k < 3 ? m.x : m.y) * constant<Real>(k % 2 ? 2 : -2)};
}
template <class Real>
BACKDRIVE_INLINE void adj_cylinder_lever(const Vec3<Real>& m, int i, const Vec3<Real>& lever_bar, Vec3<Real>& m_bar) {
  const int k = i % 5;
  if (k == 0) {
    const Rim<Real> rim(m);
    const Real factor = rim.factor * rim.pull;
    const Real along = constant<Real>(3) * (m.x * lever_bar.x + m.y * lever_bar.y) / rim.square;
    m_bar.x -= factor * (lever_bar.x - m.x * along);
    m_bar.y -= factor * (lever_bar.y - m.y * along);
  } else {
    const Real bar = lever_bar.z * constant<Real>(k % 2 ? 2 : -2);
    m_bar.z += bar * (k < 3 ? m.x : m.y);
    (k < 3 ? m_bar.x : m_bar.y) += bar * m.z;
  }
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> cylinder_extents(const Vec3<Real>& scale) {
  return {scale.x, scale.x, scale.y};
}

/// The point i of an ellipsoid or cylinder that meets the plane, in the shape's axes.
template <ShapeKind kind, class Real>
BACKDRIVE_INLINE Vec3<Real> support_point(const Vec3<Real>& scale, const Vec3<Real>& m, int i) {
  static_assert(kind == ShapeKind::ellipsoid || kind == ShapeKind::cylinder);
  if constexpr (kind == ShapeKind::ellipsoid) {
    return ellipsoid_support(scale, m);
  } else {
    return times(cylinder_extents(scale), cylinder_point(m, i));
  }
}
template <ShapeKind kind, class Real>
BACKDRIVE_INLINE void adj_support_point(const Vec3<Real>& scale, const Vec3<Real>& m, int i, const Vec3<Real>& q_bar,
                                        Vec3<Real>& scale_bar, Vec3<Real>& m_bar) {
  if constexpr (kind == ShapeKind::ellipsoid) {
    adj_ellipsoid_support(scale, m, q_bar, scale_bar, m_bar);
  } else {
    const Vec3<Real> xi = cylinder_point(m, i);
    scale_bar.x += xi.x * q_bar.x + xi.y * q_bar.y;
    scale_bar.y += xi.z * q_bar.z;
    adj_cylinder_point(m, i, times(cylinder_extents(scale), q_bar), m_bar);
  }
}

/// A point moved by E, but not along the normal.
template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> moved_along_surface(const ContactPoint<Real>& p, const Vec3<Real>& lever) {
  return {p.gap, p.point + lever - p.normal * dot(p.normal, lever), p.normal};
}
/// Cotangents of p, of which that of the moved point is `bar`, and of the lever.
template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> adj_moved_along_surface(const Vec3<Real>& normal, const Vec3<Real>& lever,
                                                            const ContactPoint<Real>& bar, Vec3<Real>& lever_bar) {
  const Real along = dot(normal, bar.point);
  lever_bar = bar.point - normal * along;
  return {bar.gap, bar.point, bar.normal - lever * along - bar.point * dot(normal, lever)};
}

/// E of a cylinder's point i, in the world.
template <class Real>
struct CarriedLever {
  const Shape<Real>& shape;
  const Vec3<Real>& m;
  int point;
  Vec3<Real> lever;

  BACKDRIVE_INLINE CarriedLever(const Shape<Real>& a, const Vec3<Real>& local_normal, int i)
      : shape(a), m(local_normal), point(i), lever(a.pose.axes * (cylinder_lever(local_normal, i) * a.scale.x)) {}

  BACKDRIVE_INLINE void adj(const Vec3<Real>& lever_bar, ShapeBar<Real>& a_bar, Vec3<Real>& m_bar) const {
    Vec3<Real> own = zero3<Real>();
    adj_carried_direction(shape.pose, lever, lever_bar, a_bar.pose, own);
    a_bar.scale.x += dot(own, cylinder_lever(m, point));
    adj_cylinder_lever(m, point, own * shape.scale.x, m_bar);
  }
};

/// Ellipsoid or cylinder on a plane.
template <ShapeKind kind, class Real>
BACKDRIVE_INLINE ContactPoint<Real> support_on_plane(const Shape<Real>& a, const ShapePose<Real>& plane, int i) {
  const Vec3<Real> m = transposed_times(a.pose.axes, plane.axes.cz);
  const ContactPoint<Real> p =
      point_on_plane<Real>({carried_point(a.pose, support_point<kind>(a.scale, m, i)), constant<Real>(0)}, plane);
  if constexpr (kind == ShapeKind::ellipsoid) {
    return p;
  } else {
    return moved_along_surface(p, CarriedLever<Real>(a, m, i).lever);
  }
}
template <ShapeKind kind, class Real>
BACKDRIVE_INLINE void adj_support_on_plane(const Shape<Real>& a, const ShapePose<Real>& plane, int i,
                                           const ContactPoint<Real>& bar, ShapeBar<Real>& a_bar,
                                           Spatial<Real>& plane_bar) {
  const Vec3<Real>& n = plane.axes.cz;
  const Vec3<Real> m = transposed_times(a.pose.axes, n);
  const Vec3<Real> x = carried_point(a.pose, support_point<kind>(a.scale, m, i));
  Vec3<Real> q_bar = zero3<Real>(), m_bar = zero3<Real>(), n_bar = zero3<Real>();
  ContactPoint<Real> own = bar;
  if constexpr (kind == ShapeKind::cylinder) {
    const CarriedLever<Real> lever(a, m, i);
    Vec3<Real> lever_bar;
    own = adj_moved_along_surface(n, lever.lever, bar, lever_bar);
    lever.adj(lever_bar, a_bar, m_bar);
  }
  const Vec3<Real> x_bar = adj_point_on_plane<Real>({x, constant<Real>(0)}, plane, own, plane_bar).x;
  adj_carried_point(a.pose, x, x_bar, a_bar.pose, q_bar);
  adj_support_point<kind>(a.scale, m, i, q_bar, a_bar.scale, m_bar);
  adj_local_direction(a.pose, n, m_bar, a_bar.pose, n_bar);
  plane_bar.ang += cross(n, n_bar);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
