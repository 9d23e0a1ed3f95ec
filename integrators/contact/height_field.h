#pragma once
// Shapes on a height field (shape B): z = h(x, y), two triangles to a cell.
//
// Every shape probes the field with points of its own (probes):
//   sphere 1     its centre with its radius       box 8    its corners
//   capsule 3    both ends and the middle         mesh     its vertices
//   ellipsoid 1, cylinder 10   the points of plane_pairs.h against the field's mean normal below the shape's origin
// A probe without radius meets the triangle straight below or above it. One with a radius meets the nearest face, edge
// or vertex of the 3x3 cells around it when it is above the field, and the triangle below or above it otherwise: its
// radius should not exceed a cell. Peaks of the field between a shape's probes go unseen.
//
// Smooth while the nearest triangle, edge or vertex stays. Across the edges of triangles: gap continuous; the normal
// continuous for a probe with radius over a ridge, and jumping in a valley or for a probe without radius.
#include "integrators/contact/nearest.h"
#include "integrators/contact/plane_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

template <class Real>
using FieldOf = HeightFieldView<ScalarOf<Real>>;

/// The field as a core, whose ξ are its nodes.
template <class Real>
struct GroundField {
  const Core<Real>& core;
  const FieldOf<Real>& heights;
};

/// Whole numbers of a pack are kept as Reals; exact below 2^24.
template <class Real>
BACKDRIVE_INLINE Real rounded_down(const Real& x) {
  if constexpr (RealTraits<Real>::lanes == 1) {
    return Real(static_cast<ScalarOf<Real>>(static_cast<int>(value_of(x))));
  } else {
    Real whole;
    for (int l = 0; l < RealTraits<Real>::lanes; ++l) {
      whole.set(l, static_cast<ScalarOf<Real>>(static_cast<int>(x[l])));
    }
    return whole;
  }
}
template <class Real>
BACKDRIVE_INLINE Real height(const FieldOf<Real>& field, const Real& i, const Real& j) {
  if constexpr (RealTraits<Real>::lanes == 1) {
    return Real(field.heights[static_cast<int>(value_of(j)) * field.nx + static_cast<int>(value_of(i))]);
  } else {
    Real h;
    for (int l = 0; l < RealTraits<Real>::lanes; ++l) {
      h.set(l, field.heights[static_cast<int>(j[l]) * field.nx + static_cast<int>(i[l])]);
    }
    return h;
  }
}

/// Between the bounds; the lower one for NaN, so that indices are always in range.
template <class Real>
BACKDRIVE_INLINE Real within(const Real& x, const Real& low, const Real& high) {
  return minimum(select(less(low, x), x, low), high);
}

/// Cell (i, j) as the unit coordinates of its corners 00, 10, 11, 01.
template <class Real>
struct FieldCell {
  Vec3<Real> v[4];

  BACKDRIVE_INLINE Triangle<Real> triangle(int k) const { return {{v[0], v[1 + k], v[2 + k]}}; }
};
template <class Real>
BACKDRIVE_INLINE FieldCell<Real> field_cell(const FieldOf<Real>& field, const Real& i, const Real& j) {
  const Real one = constant<Real>(1), dx = constant<Real>(2.0 / (field.nx - 1)),
             dy = constant<Real>(2.0 / (field.ny - 1));
  const auto node = [&](const Real& a, const Real& b) __attribute__((always_inline)) {
    return Vec3<Real>{a * dx - one, b * dy - one, height(field, a, b)};
  };
  return {{node(i, j), node(i + one, j), node(i + one, j + one), node(i, j + one)}};
}

/// The cell below a point of unit coordinates (x, y), and which of its triangles.
template <class Real>
struct FieldPlace {
  Real i, j;
  MaskOf<Real> second;
};
template <class Real>
BACKDRIVE_INLINE FieldPlace<Real> field_place(const FieldOf<Real>& field, const Real& x, const Real& y) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const Real gx = (x + one) * constant<Real>(0.5 * (field.nx - 1)),
             gy = (y + one) * constant<Real>(0.5 * (field.ny - 1));
  const Real i = rounded_down(within(gx, zero, constant<Real>(field.nx - 2)));
  const Real j = rounded_down(within(gy, zero, constant<Real>(field.ny - 2)));
  return {i, j, less(gx - i, gy - j)};
}

template <class Real>
BACKDRIVE_INLINE Triangle<Real> triangle_at(const FieldOf<Real>& field, const FieldPlace<Real>& p) {
  const FieldCell<Real> cell = field_cell(field, p.i, p.j);
  return {{cell.v[0], choose(p.second, cell.v[2], cell.v[1]), choose(p.second, cell.v[3], cell.v[2])}};
}

/// Probe ξ of A, with A's radius when `round`.
template <bool round, class Real>
BACKDRIVE_CALLED FeaturePair<Real> probe_feature(const Core<Real>& A, const Vec3<Real>& xi,
                                                 const GroundField<Real>& ground) {
  const auto& [B, field] = ground;
  const Vec3<Real> q = local_point(B.pose, core_point(A, xi));
  const FieldPlace<Real> place = field_place(field, q.x / B.extents.x, q.y / B.extents.y);
  const Triangle<Real> below = triangle_at(field, place);
  const FeaturePair<Real> straight = face_feature(xi, below);
  if constexpr (!round) {
    return straight;
  } else {
    const Real zero = constant<Real>(0);
    NearestFeature<Real> best = nothing_nearest(xi);
    for (int k = 0; k < 9; ++k) {
      const Real i = within(place.i + constant<Real>(k % 3 - 1), zero, constant<Real>(field.nx - 2));
      const Real j = within(place.j + constant<Real>(k / 3 - 1), zero, constant<Real>(field.ny - 2));
      const FieldCell<Real> cell = field_cell(field, i, j);
      for (int side = 0; side < 4; ++side) offer_edge(q, xi, B.extents, cell.v[side], cell.v[(side + 1) % 4], best);
      offer_edge(q, xi, B.extents, cell.v[0], cell.v[2], best);
      for (int t = 0; t < 2; ++t) offer_face(q, xi, B.extents, cell.triangle(t), zero, best);
    }
    const FacePlane<Real> plane = face_plane(B.extents, below);
    const MaskOf<Real> above = less(zero, dot(plane.normal, q - plane.corner));
    return choose(above, best.feature, straight);
  }
}

// ---- ellipsoid and cylinder -----------------------------------------------------------------------------------------

/// The field's mean slope at unit coordinates (x, y): of nodes that of the way from the one before to the one after,
/// and in between bilinear. It is continuous, as that of the triangles is not: points on A that went by theirs jumped
/// along its rim with each edge that its middle passed, and a cylinder that stood in a bowl, on a node, was kept
/// rocking.
template <class Real>
struct FieldSlope {
  Vec3<Real> along[2];  ///< tangents in unit coordinates, (1, 0, ∂z/∂x) and (0, 1, ∂z/∂y)
  Real bend[2][2];      ///< of ∂z/∂x and ∂z/∂y by x and by y; zero by what is beyond the field
};
template <class Real>
BACKDRIVE_HD FieldSlope<Real> field_slope(const FieldOf<Real>& field, const Real& x, const Real& y) {
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const int last[2] = {field.nx - 1, field.ny - 1};
  const FieldPlace<Real> place = field_place(field, x, y);
  const Real node[2] = {place.i, place.j}, at[2] = {x, y};
  Real way[2], by[2];  // in the cell, from 0 to 1
  for (int k = 0; k < 2; ++k) {
    const Real per_unit = constant<Real>(0.5 * last[k]), go = (at[k] + one) * per_unit - node[k];
    const auto inside = less(zero, go) && less(go, one);
    way[k] = within(go, zero, one);
    by[k] = select(inside, per_unit, zero);
  }
  FieldSlope<Real> f;
  for (int k = 0; k < 2; ++k) {
    const auto slope_at = [&](int di, int dj) {
      // One node along axis k and none along the other, from edge to edge of the field at most.
      const Real i = place.i + constant<Real>(di), j = place.j + constant<Real>(dj);
      const Real along_x = constant<Real>(k == 0), along_y = constant<Real>(k == 1);
      const Real i0 = maximum(i - along_x, zero), i1 = minimum(i + along_x, constant<Real>(last[0]));
      const Real j0 = maximum(j - along_y, zero), j1 = minimum(j + along_y, constant<Real>(last[1]));
      return (height(field, i1, j1) - height(field, i0, j0)) * constant<Real>(0.5 * last[k]) / ((i1 - i0) + (j1 - j0));
    };
    const Real s00 = slope_at(0, 0), s10 = slope_at(1, 0), s01 = slope_at(0, 1), s11 = slope_at(1, 1);
    const Real bend0 = s10 - s00, bend1 = s11 - s01;  // along x, on the cell's two sides
    const Real side0 = s00 + way[0] * bend0, side1 = s01 + way[0] * bend1;
    f.along[k] = {constant<Real>(k == 0), constant<Real>(k == 1), side0 + way[1] * (side1 - side0)};
    f.bend[k][0] = by[0] * (bend0 + way[1] * (bend1 - bend0));
    f.bend[k][1] = by[1] * (side1 - side0);
  }
  return f;
}

/// A's support points against the field's mean normal n below A's origin.
template <ShapeKind kind, class Real>
struct FieldSupports {
  const Shape<Real>& a;
  const GroundField<Real>& ground;
  Vec3<Real> q;  ///< A's origin in B's axes
  FieldSlope<Real> slope;
  Vec3<Real> w[2], area, n;  ///< tangents, their product and its direction, in the world

  BACKDRIVE_INLINE FieldSupports(const Shape<Real>& shape, const GroundField<Real>& field) : a(shape), ground(field) {
    const Core<Real>& B = ground.core;
    q = local_point(B.pose, a.pose.origin);
    slope = field_slope<Real>(ground.heights, q.x / B.extents.x, q.y / B.extents.y);
    for (int k = 0; k < 2; ++k) w[k] = core_direction(B, slope.along[k]);
    area = cross(w[0], w[1]);
    n = direction(area);
  }

  BACKDRIVE_HD ContactPoint<Real> point(int i) const {
    const Support f = support(i);
    const ContactPoint<Real> p = witness(f.core, ground.core, f.feature);
    if constexpr (kind == ShapeKind::ellipsoid) {
      return p;
    } else {
      return moved_along_surface(p, CarriedLever<Real>(a, f.m, i).lever);
    }
  }
  /// Adds what point i carries, but for that by way of n, which is added to n_bar for `adj`.
  BACKDRIVE_HD void adj_point(int i, const ContactPoint<Real>& bar, ShapeBar<Real>& a_bar, CoreBar<Real>& B_bar,
                              Vec3<Real>& n_bar) const {
    const Support f = support(i);
    const Core<Real>& B = ground.core;
    CoreBar<Real> core_bar = zero_core_bar<Real>();
    Vec3<Real> m_bar = zero3<Real>();
    ContactPoint<Real> own = bar;
    if constexpr (kind == ShapeKind::cylinder) {
      const CarriedLever<Real> lever(a, f.m, i);
      Vec3<Real> lever_bar;
      own = adj_moved_along_surface(witness(f.core, B, f.feature).normal, lever.lever, bar, lever_bar);
      lever.adj(lever_bar, a_bar, m_bar);
    }
    adj_witness(f.core, B, f.feature, own, core_bar, B_bar);
    a_bar.pose += core_bar.pose;
    adj_support_point<kind>(a.scale, f.m, i, core_bar.extents, a_bar.scale, m_bar);
    adj_local_direction(a.pose, n, m_bar, a_bar.pose, n_bar);
  }
  BACKDRIVE_INLINE void adj(const Vec3<Real>& n_bar, ShapeBar<Real>& a_bar, CoreBar<Real>& B_bar) const {
    const Core<Real>& B = ground.core;
    Vec3<Real> area_bar = zero3<Real>(), w_bar[2] = {area_bar, area_bar}, q_bar = area_bar, origin_bar = area_bar;
    adj_direction(area, n, n_bar, area_bar);
    adj_cross(w[0], w[1], area_bar, w_bar[0], w_bar[1]);
    for (int k = 0; k < 2; ++k) {
      adj_core_direction(B, slope.along[k], w[k], w_bar[k], B_bar);
      const Real slope_bar = dot(B.pose.axes.cz, w_bar[k]) * B.extents.z;
      q_bar.x += slope_bar * slope.bend[k][0] / B.extents.x;
      q_bar.y += slope_bar * slope.bend[k][1] / B.extents.y;
    }
    B_bar.extents.x -= q_bar.x * q.x / B.extents.x;
    B_bar.extents.y -= q_bar.y * q.y / B.extents.y;
    adj_local_point(B.pose, a.pose.origin, q_bar, B_bar.pose, origin_bar);
    a_bar.pose.lin += origin_bar;
    a_bar.pose.ang += cross(a.pose.origin, origin_bar);
  }

 private:
  /// Point i as a core whose one point is ξ = (1, 1, 1).
  struct Support {
    Vec3<Real> m;  ///< n in A's axes
    Core<Real> core;
    FeaturePair<Real> feature;
  };
  BACKDRIVE_HD Support support(int i) const {
    const Real one = constant<Real>(1);
    Support f;
    f.m = transposed_times(a.pose.axes, n);
    f.core = {a.pose, support_point<kind>(a.scale, f.m, i), constant<Real>(0)};
    f.feature = probe_feature<false>(f.core, {one, one, one}, ground);
    return f;
  }
};

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
