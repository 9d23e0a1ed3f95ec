#pragma once
// Ellipsoid (shape A) and any shape B but the ground: one point, on the normal n, from B to A, along which the two are
// furthest apart or, where they overlap, least in one another:
//
//   s(n) = n·(x_A − x_B)      x_A = o − R E² Rᵀ n / h,  h = |E Rᵀ n|;  x_B: of B the place furthest along n
//   gap = max s               point = x_A − ½ gap n
//
// There n is the normal of one of B's features, and all are tried:
//
//   face          its normal
//   edge, side    where, as seen along it, a point is nearest to an ellipse (nearest_ellipsoid.h)
//   vertex, end   where a point is nearest to an ellipsoid
//   rim           where the point of a circle is that is nearest: Newton's method along it
//   ellipsoid     where both, scaled alike about their middles, touch; then Newton's method for the greatest s
//
// one step of which more, in any number type, on the directions in which the feature lets n turn, gives the point.
// O(vertices² + edges + faces).
//
// Smooth while the feature stays. Across features the gap is continuous, and so is n but where the two overlap by more
// than a radius of curvature: there two ways out may be as short.
#include "integrators/contact/cylinder_features.h"
#include "integrators/contact/nearest_ellipsoid.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// A sine: by how much more than a feature another place of B may reach along its n.
constexpr double kOnTop = 1e-5;

/// A feature of B in plain numbers, and n there, in the world while it is sought.
template <class Real>
struct EllipsoidFeature {
  Vec3<Real> normal;
  MaskOf<Real> is_face, is_edge;  ///< n does not turn, or about the edge alone
  Vec3<Real> xi, along;           ///< of B's core: a place of the feature, and the way of an edge
  Triangle<Real> face;            ///< of a polyhedron

  /// A place where n may turn every way.
  static BACKDRIVE_INLINE EllipsoidFeature vertex(const Vec3<Real>& n, const Vec3<Real>& xi) {
    const Real zero = constant<Real>(0);
    const Vec3<Real> z{zero, zero, constant<Real>(1)};
    return {n, MaskOf<Real>(false), MaskOf<Real>(false), xi, z, {{z, z, z}}};
  }
  static BACKDRIVE_INLINE EllipsoidFeature edge(const Vec3<Real>& n, const Vec3<Real>& xi, const Vec3<Real>& along) {
    EllipsoidFeature f = vertex(n, xi);
    f.is_edge = MaskOf<Real>(true);
    f.along = along;
    return f;
  }
  static BACKDRIVE_INLINE EllipsoidFeature flat(const Vec3<Real>& n, const Vec3<Real>& xi) {
    EllipsoidFeature f = vertex(n, xi);
    f.is_face = MaskOf<Real>(true);
    return f;
  }
};
template <class Real>
BACKDRIVE_INLINE EllipsoidFeature<Real> choose(const MaskOf<Real>& mask, const EllipsoidFeature<Real>& yes,
                                               const EllipsoidFeature<Real>& no) {
  return {choose(mask, yes.normal, no.normal),   chosen(mask, yes.is_face, no.is_face),
          chosen(mask, yes.is_edge, no.is_edge), choose(mask, yes.xi, no.xi),
          choose(mask, yes.along, no.along),     choose(mask, yes.face, no.face)};
}

/// In plain numbers: two directions in which n may turn, and by what matrix slopes of s along them lead to where s is
/// greatest; zero where n may not.
template <class Real>
struct NormalTurn {
  Vec3<Real> u, v;
  Real uu, uv, vv;

  /// From the slope ds/dn; `to_u`, `to_v`: u and v, or what they are in numbers with derivatives.
  template <class N>
  BACKDRIVE_INLINE Vec3<N> step(const Vec3<N>& slope, const Vec3<N>& to_u, const Vec3<N>& to_v) const {
    const N by_u = dot(slope, to_u), by_v = dot(slope, to_v);
    return to_u * (by_u * N(uu) + by_v * N(uv)) + to_v * (by_u * N(uv) + by_v * N(vv));
  }
  BACKDRIVE_INLINE Vec3<Real> step(const Vec3<Real>& slope) const { return step<Real>(slope, u, v); }
};

/// Both in B's axes, with which n turns where it is not the one that is sought: a motion of both bodies takes it along.
template <class Real>
struct EllipsoidTouch {
  EllipsoidFeature<Real> feature;
  NormalTurn<Real> turn;
};

constexpr ShapeKind core_kind(ShapeKind b) {
  if (b == ShapeKind::cylinder) return ShapeKind::capsule;
  return b == ShapeKind::ellipsoid ? ShapeKind::sphere : b;
}
/// B's vertices, segment or middle, with a radius if its kind has one.
template <ShapeKind b, class N>
BACKDRIVE_INLINE Core<N> core_under(const Shape<N>& s) {
  return core_of<core_kind(b)>(s);
}
constexpr bool has_edges(ShapeKind b) {
  return b != ShapeKind::sphere && b != ShapeKind::ellipsoid;
}

/// x_B of a feature.
template <ShapeKind b, class N>
BACKDRIVE_INLINE Vec3<N> place_under(const Shape<N>& under, const EllipsoidFeature<ValueOf<N>>& f, const Vec3<N>& n) {
  using K = ShapeKind;
  const Core<N> core = core_under<b>(under);
  const Vec3<N> x = core_point(core, lifted<N>(f.xi));
  if constexpr (b == K::ellipsoid) return x + ellipsoid_place(under, n);
  if constexpr (b == K::sphere || b == K::capsule) return x + n * core.radius;
  if constexpr (b == K::cylinder) {
    const Vec3<N>& z = under.pose.axes.cz;
    return choose(f.is_face, x, x + direction(n - z * dot(z, n)) * core.radius);
  }
  return x;
}
/// x_A − x_B, which is ds/dn.
template <ShapeKind b, class N>
BACKDRIVE_INLINE Vec3<N> way_between(const Shape<N>& a, const Shape<N>& under, const EllipsoidFeature<ValueOf<N>>& f,
                                     const Vec3<N>& n) {
  return a.pose.origin - ellipsoid_place(a, n) - place_under<b>(under, f, n);
}

/// n in numbers of any type: the face's, or one more step of Newton's method on, about the edge where it is one.
template <ShapeKind b, class N>
BACKDRIVE_INLINE Vec3<N> stationary_normal(const Shape<N>& a, const Shape<N>& under,
                                           const EllipsoidTouch<ValueOf<N>>& t) {
  const auto& f = t.feature;
  const Mat3<N>& axes = under.pose.axes;
  Vec3<N> n = axes * lifted<N>(f.normal), u = axes * lifted<N>(t.turn.u);
  if constexpr (has_edges(b)) {
    const Core<N> core = core_under<b>(under);
    const Vec3<N> w = direction(core_direction(core, lifted<N>(f.along))), across = direction(n - w * dot(w, n));
    n = choose(f.is_edge, across, n);
    u = choose(f.is_edge, cross(w, across), u);
    if constexpr (b == ShapeKind::cylinder) {
      n = choose(f.is_face, axes.cz * N(f.xi.z), n);
    } else if constexpr (b != ShapeKind::capsule) {
      n = choose(f.is_face, axes * face_plane(core.extents, lifted<N>(f.face)).normal, n);
    }
  }
  return direction(n + t.turn.step(way_between<b>(a, under, f, n), u, axes * lifted<N>(t.turn.v)));
}

template <ShapeKind b, class N>
BACKDRIVE_CALLED ContactPoint<N> ellipsoid_point(const Shape<N>& a, const Shape<N>& under,
                                                 const EllipsoidTouch<ValueOf<N>>& t) {
  const Vec3<N> n = stationary_normal<b>(a, under, t), on_a = a.pose.origin - ellipsoid_place(a, n);
  const N gap = dot(n, on_a - place_under<b>(under, t.feature, n));
  return {gap, on_a - n * (gap * constant<N>(0.5)), n};
}

// ---- found in plain numbers -----------------------------------------------------------------------------------------

/// What turns n from where the slope is to where s is greatest; `climbing`: or up from anywhere.
template <ShapeKind b, class Real>
BACKDRIVE_INLINE NormalTurn<Real> normal_turn(const Shape<Real>& a, const Shape<Real>& under,
                                              const EllipsoidFeature<Real>& f, bool climbing) {
  using N = Dual<Real>;
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const Vec3<Real>& n = f.normal;
  NormalTurn<Real> t;
  span_plane(n, t.u, t.v);
  if constexpr (has_edges(b)) {
    t.u = choose(f.is_edge, cross(direction(core_direction(core_under<b>(under), f.along)), n), t.u);
  }
  const Shape<N> still_a = lifted<N>(a), still_b = lifted<N>(under);
  Real s = zero, uu, uv, vv;
  const auto bend = [&](const Vec3<Real>& way, Real& by_u, Real& by_v) __attribute__((always_inline)) {
    const Vec3<N> slope = way_between<b>(still_a, still_b, f, with_rates(n, way));
    const Vec3<Real> rate = rates_of(slope);
    s = dot(n, values_of(slope));
    by_u = dot(rate, t.u), by_v = dot(rate, t.v);
  };
  bend(t.u, uu, uv);
  bend(t.v, uv, vv);
  // −d²s/dn² on the sphere: s − d(ds/dn)/dn, positive at a top; without s nowhere negative
  const auto is_positive = [&](const Real& x, const Real& y) __attribute__((always_inline)) {
    return less(zero, x) && less(zero, y) && less(constant<Real>(1e-6) * x * y, x * y - uv * uv);
  };
  Real x = s - uu, y = s - vv;
  MaskOf<Real> free = (f.is_edge && less(zero, x)) || is_positive(x, y);
  if (climbing) {
    x = select(free, x, -uu), y = select(free, y, -vv);
    free = MaskOf<Real>(true);
  }
  free = free && !f.is_face;
  const MaskOf<Real> both = free && !f.is_edge;
  const Real divisor = select(both, x * y - uv * uv, x), tiny = constant<Real>(kTinySquare);
  const Real inverse = only(free, one / select(less(magnitude(divisor), tiny), one, divisor));
  t.uu = select(both, y, one) * inverse;
  t.uv = only(both, uv * inverse);
  t.vv = only(both, x * inverse);
  return t;
}

/// The turn at a feature that is found; none where it is not: where n would turn by more than kStillMoves.
template <ShapeKind b, class Real>
BACKDRIVE_INLINE EllipsoidTouch<Real> touch_at(const Shape<Real>& a, const Shape<Real>& under,
                                               const EllipsoidFeature<Real>& f) {
  NormalTurn<Real> t = normal_turn<b>(a, under, f, false);
  const Vec3<Real> step = t.step(way_between<b>(a, under, f, f.normal));
  const MaskOf<Real> found = less(dot(step, step), constant<Real>(kStillMoves * kStillMoves));
  t.uu = only(found, t.uu), t.uv = only(found, t.uv), t.vv = only(found, t.vv);
  const Mat3<Real>& axes = under.pose.axes;
  EllipsoidTouch<Real> touch{f, t};
  touch.feature.normal = transposed_times(axes, f.normal);
  touch.turn.u = transposed_times(axes, t.u), touch.turn.v = transposed_times(axes, t.v);
  return touch;
}

/// The greatest s of two ellipsoids: climbs from f, or from one of their axes where that is higher, as it is where one
/// lies deep in the other.
template <class Real>
BACKDRIVE_CALLED void climb(const Shape<Real>& a, const Shape<Real>& under, EllipsoidFeature<Real>& f) {
  constexpr ShapeKind b = ShapeKind::ellipsoid;
  const Real one = constant<Real>(1);
  const auto height = [&](const Vec3<Real>& n) __attribute__((always_inline)) {
    return dot(n, way_between<b>(a, under, f, n));
  };
  Real share = one, best = height(f.normal);
  const Vec3<Real> apart = a.pose.origin - under.pose.origin;
  const Mat3<Real>&own = a.pose.axes, &other = under.pose.axes;
  const Vec3<Real> axes[] = {own.cx, own.cy, own.cz, other.cx, other.cy, other.cz};
  for (const Vec3<Real>& axis : axes) {
    const Vec3<Real> n = choose(less(dot(axis, apart), constant<Real>(0)), -axis, axis);
    const Real s = height(n);
    const MaskOf<Real> higher = less(best, s);
    f.normal = choose(higher, n, f.normal);
    best = select(higher, s, best);
  }
  constexpr int steps = 10;
  constexpr double most = 0.5, shorter = 0.2, longer = 4;  // radians a step, and how it changes; short ones are trusted
  for (int k = 0; k < steps; ++k) {
    const Vec3<Real> way = way_between<b>(a, under, f, f.normal);
    const Vec3<Real> step = normal_turn<b>(a, under, f, true).step(way);
    const Real turned = length(step), allowed = share * constant<Real>(most);
    const Vec3<Real> n = direction(f.normal + step * select(less(allowed, turned), allowed / turned, one));
    const Real next = height(n);
    const MaskOf<Real> higher = less(best, next) || less(turned, constant<Real>(kStillMoves));
    f.normal = choose(higher, n, f.normal);
    best = select(higher, next, best);
    share = select(higher, minimum(one, share * constant<Real>(longer)), share * constant<Real>(shorter));
  }
}

/// A place of a rim, how far it is from an ellipsoid and along what n, and Newton's step to where it is nearest.
template <class Real>
struct RimNearEllipsoid {
  RimPoint<Real> on;
  Vec3<Real> n;
  Real distance, angle;

  BACKDRIVE_INLINE RimNearEllipsoid(const Shape<Real>& a, const Shape<Real>& cylinder, const RimPoint<Real>& at)
      : on(at) {
    using N = Dual<Real>;
    const Vec3<Real> y = local_point(a.pose, on.at);
    const Vec3<Real> y_dot = transposed_times(a.pose.axes, on.tangent * cylinder.scale.x);
    const Vec3<N> m = normal_towards(lifted<N>(thick_radii(a.scale)), with_rates(y, y_dot));
    n = -(a.pose.axes * values_of(m));
    distance = dot(values_of(m), y) - length(times(a.scale, values_of(m)));
    const Vec3<Real> n_dot = -(a.pose.axes * rates_of(m));
    // distance′ = −R n·t,  distance″ = R (n·r − n′·t)
    const Real bend = dot(n, on.radial) - dot(n_dot, on.tangent);
    angle = dot(n, on.tangent) / maximum(bend, constant<Real>(1e-6));
  }
};
template <class Real>
BACKDRIVE_INLINE RimNearEllipsoid<Real> choose(const MaskOf<Real>& mask, const RimNearEllipsoid<Real>& yes,
                                               const RimNearEllipsoid<Real>& no) {
  RimNearEllipsoid<Real> c = no;
  c.on.radial = choose(mask, yes.on.radial, no.on.radial), c.on.tangent = choose(mask, yes.on.tangent, no.on.tangent);
  c.on.at = choose(mask, yes.on.at, no.on.at), c.n = choose(mask, yes.n, no.n);
  c.distance = select(mask, yes.distance, no.distance), c.angle = select(mask, yes.angle, no.angle);
  return c;
}

/// n of the place of an end's rim that is nearest to the ellipsoid, sought from below the ellipsoid's lowest place, or
/// from where `common` leads if that is nearer. Valid: it is found and on top.
template <class Real>
BACKDRIVE_CALLED MaskOf<Real> nearest_of_rim(const Shape<Real>& a, const Shape<Real>& cylinder, const Real& end,
                                             const Vec3<Real>& common, Vec3<Real>& n) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), least = constant<Real>(-kOnTop);
  const Vec3<Real>& z = cylinder.pose.axes.cz;
  const auto place_at = [&](const Vec3<Real>& to) __attribute__((always_inline)) {
    const Vec3<Real> q = transposed_times(cylinder.pose.axes, to), out = direction(Vec3<Real>{q.x, q.y, zero});
    return RimNearEllipsoid<Real>(a, cylinder, RimPoint<Real>(cylinder, {end, out.x, out.y}));
  };
  RimNearEllipsoid<Real> place = place_at(a.pose.origin - ellipsoid_place(a, z * end) - cylinder.pose.origin);
  const RimNearEllipsoid<Real> other = place_at(common);
  place = choose(less(other.distance, place.distance), other, place);
  Real share = one;
  constexpr int steps = 9;
  for (int k = 0; k < steps; ++k) {
    const Real angle = place.angle * share;
    RimPoint<Real> on = place.on;
    on.turn(cylinder, angle);
    const RimNearEllipsoid<Real> next(a, cylinder, on);
    const MaskOf<Real> nearer =
        less(next.distance, place.distance) || less(magnitude(angle), constant<Real>(kStillMoves));
    place = choose(nearer, next, place);
    share = select(nearer, one, share * constant<Real>(0.25));
  }
  n = place.n;
  return less(magnitude(place.angle), constant<Real>(kStillMoves)) && less(least, dot(n, place.on.radial)) &&
         less(least, end * dot(n, z));
}

/// The feature with the greatest s of those considered so far.
template <class Real>
struct EllipsoidSearch {
  const Shape<Real>& a;
  Vec3<Real> radii = thick_radii(a.scale);
  EllipsoidFeature<Real> best = EllipsoidFeature<Real>::vertex(a.pose.axes.cz, zero3<Real>());
  Real most = constant<Real>(-kFarGap);

  BACKDRIVE_INLINE void consider(const MaskOf<Real>& valid, const Real& s, const EllipsoidFeature<Real>& f) {
    const MaskOf<Real> better = valid && less(most, s);
    most = select(better, s, most);
    best = choose(better, f, best);
  }
  /// s of a place x that is furthest along n.
  BACKDRIVE_INLINE Real height(const Vec3<Real>& n, const Vec3<Real>& x) const {
    return dot(n, a.pose.origin - x) - ellipsoid_half_width(a, n);
  }
  BACKDRIVE_INLINE Vec3<Real> normal_at(const Vec3<Real>& x) const {
    return -(a.pose.axes * normal_towards(radii, local_point(a.pose, x)));
  }
  BACKDRIVE_INLINE Vec3<Real> normal_at_line(const Vec3<Real>& x, const Vec3<Real>& way) const {
    const Vec3<Real> w = transposed_times(a.pose.axes, direction(way));
    return -(a.pose.axes * normal_towards_line(radii, local_point(a.pose, x), w));
  }
};

/// A capsule's or a cylinder's. Of faces and rims that are as far the face.
template <ShapeKind b, class Real>
BACKDRIVE_INLINE void search_along_axis(const Shape<Real>& under, EllipsoidSearch<Real>& search) {
  using Feature = EllipsoidFeature<Real>;
  const Shape<Real>& a = search.a;
  const Core<Real> core = core_under<b>(under);
  const Vec3<Real>&axis = under.pose.axes.cz, &middle = under.pose.origin;
  const MaskOf<Real> always(true);
  const Real zero = constant<Real>(0), rounding = constant<Real>(sizeof(ScalarOf<Real>) == 4 ? 1e-6 : 1e-12);
  const Vec3<Real> across = search.normal_at_line(middle, axis), up{zero, zero, constant<Real>(1)};
  search.consider(always, search.height(across, middle) - core.radius, Feature::edge(across, zero3<Real>(), up));
  [[maybe_unused]] const Mat3<Real> own = width_matrix(a.pose.axes, search.radii);
  [[maybe_unused]] const Mat3<Real> disc = width_matrix(under.pose.axes, {core.radius, core.radius, zero});
  for (int k = -1; k <= 1; k += 2) {
    const Real end = constant<Real>(k);
    const Vec3<Real> xi = up * end, x = core_point(core, xi), outward = axis * end;
    const auto on_top = [&](const Vec3<Real>& n) __attribute__((always_inline)) {
      return less(constant<Real>(-kOnTop), dot(n, outward));
    };
    if constexpr (b == ShapeKind::capsule) {
      const Vec3<Real> n = search.normal_at(x);
      search.consider(on_top(n), search.height(n, x) - core.radius, Feature::vertex(n, xi));
    } else {
      const auto of_rim = [&](const Vec3<Real>& n) __attribute__((always_inline)) {
        return search.height(n, x) - core.radius * length(n - axis * dot(n, axis));
      };
      // n of both scaled alike is not that of the nearest place, but says how far they are apart at least
      const Vec3<Real> common = common_normal(own, disc, a.pose.origin - x);
      search.consider(on_top(common), of_rim(common), Feature::vertex(common, xi));
      Vec3<Real> n;
      const MaskOf<Real> found = nearest_of_rim<Real>(a, under, end, common, n);
      search.consider(found, of_rim(n), Feature::vertex(n, xi));
      search.consider(always, search.height(outward, x) + rounding * core.radius, Feature::flat(outward, xi));
    }
  }
}

template <class Real>
BACKDRIVE_CALLED void search_polyhedron(const MeshCore<Real>& p, EllipsoidSearch<Real>& search) {
  using Feature = EllipsoidFeature<Real>;
  const auto& [core, mesh] = p;
  const Real slack = constant<Real>(kOnTop);
  for (int i = 0; i < mesh.face_count; ++i) {
    const Triangle<Real> t = mesh_face<Real>(mesh, i);
    Feature face = Feature::flat(core.pose.axes * face_plane(core.extents, t).normal, t.v[0]);
    face.face = t;
    search.consider(MaskOf<Real>(true), search.height(face.normal, core_point(core, t.v[0])), face);
  }
  for (int i = 0; i < mesh.edge_count; ++i) {
    const MeshEdge<Real> e = mesh_edge(p, i);
    const Vec3<Real> n = search.normal_at_line(e.start, e.way);
    search.consider(is_on_top(e, n, slack), search.height(n, e.start), Feature::edge(n, e.xi, e.along));
  }
  for (int i = 0; i < mesh.vertex_count; ++i) {
    const Vec3<Real> xi = vertex<Real>(mesh, i), x = core_point(core, xi), n = search.normal_at(x);
    MaskOf<Real> on_top(true);
    for (int k = 0; k < mesh.vertex_count; ++k) {
      const Vec3<Real> to = core_point(core, vertex<Real>(mesh, k)) - x;
      on_top = on_top && !less(slack * length(to), dot(n, to));
    }
    search.consider(on_top, search.height(n, x), Feature::vertex(n, xi));
  }
}

/// `mesh`: of a box or mesh.
template <ShapeKind b, class Real>
BACKDRIVE_CALLED EllipsoidTouch<Real> ellipsoid_touch(const Shape<Real>& a, const Shape<Real>& under,
                                                      const MeshView<ScalarOf<Real>>& mesh) {
  using K = ShapeKind;
  EllipsoidSearch<Real> search{a};
  if constexpr (b == K::sphere) {
    search.best.normal = search.normal_at(under.pose.origin);
  } else if constexpr (b == K::ellipsoid) {
    const Mat3<Real> own = width_matrix(a.pose.axes, search.radii);
    const Mat3<Real> other = width_matrix(under.pose.axes, thick_radii(under.scale));
    search.best.normal = common_normal(own, other, a.pose.origin - under.pose.origin);
    climb(a, under, search.best);
  } else if constexpr (b == K::capsule || b == K::cylinder) {
    search_along_axis<b>(under, search);
  } else {
    const Core<Real> core = core_of<b>(under);
    search_polyhedron<Real>({core, mesh}, search);
  }
  return touch_at<b>(a, under, search.best);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
