#pragma once
// Two cylinders: twenty points, of which those that do not apply are far.
//   0-5    samples of A's ends on the end face of B that looks at it, within its disc
//   6-11   the same the other way round. Where end faces lie on each other the lowest sample, which wanders over all of
//          its face as this tilts by kRimWidth, is left out but of a face that the other covers: it would come and go
//   12-13  side at side, as of capsules: at both ends of what parallel cylinders have in common, else at the crossing
//   14-15  the deepest of A's rims at B's side
//   16-17  of B's at A's
//   18-19  rims at rims: where the circles cross, n along tangent × tangent
// The axis of the pair is, of the normals of all these, the one along which planes hold the two furthest apart; what is
// more than kAlignment off it is left out.
// Where none of these touches though a place of one's axis is in the other, the lowest sample speaks for the end face
// that separates best, wherever it is.
//
// Smooth while the ends and the points in use stay.
#include "integrators/contact/cylinder_polyhedron.h"
#include "integrators/contact/round_pairs.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

constexpr int kRimPoints = 2;
/// Cosine of the tilt, three times kRimWidth, up to which end faces count as lying on each other.
constexpr double kFlush = 0.9982;
/// How far, as a sine, the normal of two rims may be past either end face or side: of faces that lie on each other it
/// is that of the faces, whichever way they tilt.
constexpr double kRimsSlack = 0.25;
constexpr int kCylinderCylinderPoints = 2 * kSamples + 2 + 3 * kRimPoints;

/// The axis of a cylinder with its radius.
template <class N>
BACKDRIVE_INLINE ThickLine<N> axis_line(const Shape<N>& c) {
  const Vec3<N> half = c.pose.axes.cz * c.scale.y;
  return {c.pose.origin - half, half * constant<N>(2), c.scale.x};
}

/// What of a cylinder touches another.
template <class Real>
struct CylinderPart {
  Real end;     ///< the end that looks at the other
  Real facing;  ///< the end that faces the other's end face, as of samples
  MaskOf<Real> sampled[kSamples];
  Deepest<LineTouch<Real>, Real, kRimPoints> rims;

  BACKDRIVE_INLINE CylinderPart()
      : rims({MaskOf<Real>(true), {constant<Real>(1), constant<Real>(1), constant<Real>(0)}, constant<Real>(1)}) {}
};
/// Two rims that cross, and the sign of n, out of the first, along tangent × tangent.
template <class Real>
struct RimsTouch {
  RimPlace<Real> place[2];
  Real sign;
};
template <class Real>
BACKDRIVE_INLINE RimsTouch<Real> choose(const MaskOf<Real>& mask, const RimsTouch<Real>& yes,
                                        const RimsTouch<Real>& no) {
  return {{choose(mask, yes.place[0], no.place[0]), choose(mask, yes.place[1], no.place[1])},
          select(mask, yes.sign, no.sign)};
}
/// In plain numbers.
template <class Real>
struct CylinderCylinderFeatures {
  CylinderPart<Real> part[2];
  FeaturePair<Real> sides[2];
  MaskOf<Real> sides_used[2];
  Deepest<RimsTouch<Real>, Real, kRimPoints> rims;

  BACKDRIVE_INLINE CylinderCylinderFeatures() : rims({{top(), top()}, constant<Real>(1)}) {}

 private:
  static BACKDRIVE_INLINE RimPlace<Real> top() { return {constant<Real>(1), constant<Real>(1), constant<Real>(0)}; }
};

// ---- rim at rim -----------------------------------------------------------------------------------------------------

/// One step of Newton's method for e·t_a = e·t_b = 0, e = a − b: where the distance of two rims is stationary.
template <class N>
BACKDRIVE_INLINE void approach(const Shape<N>& a, const Shape<N>& b, RimPoint<N>& on_a, RimPoint<N>& on_b) {
  const Vec3<N> e = on_a.at - on_b.at;
  const N both = dot(on_a.tangent, on_b.tangent), tiny = constant<N>(1e-6);
  const N f = dot(e, on_a.tangent), g = dot(e, on_b.tangent);
  // in lengths along the rims
  const N faa = constant<N>(1) - dot(e, on_a.radial) / a.scale.x,
          gbb = constant<N>(1) + dot(e, on_b.radial) / b.scale.x;
  const N determinant = faa * gbb - both * both;
  const N safe = select(less(magnitude(determinant), tiny), tiny, determinant);
  on_a.turn(a, (g * both - f * gbb) / (safe * a.scale.x));
  on_b.turn(b, (faa * g - both * f) / (safe * b.scale.x));
}

template <class N>
BACKDRIVE_INLINE ContactPoint<N> rims_touch(const Shape<N>& a, const Shape<N>& b, const RimsTouch<ValueOf<N>>& t) {
  RimPoint<N> on_a(a, lifted<N>(t.place[0])), on_b(b, lifted<N>(t.place[1]));
  approach(a, b, on_a, on_b);
  const Vec3<N> n = direction(cross(on_a.tangent, on_b.tangent)) * N(t.sign);
  return {dot(n, on_b.at - on_a.at), (on_a.at + on_b.at) * constant<N>(0.5), n};
}

/// A place where rims cross, and whether they do.
template <class Real>
struct RimCrossing {
  MaskOf<Real> valid;
  RimsTouch<Real> touch;
  ContactPoint<Real> point;
};

/// Of the second cylinder with the first.
template <class Real>
BACKDRIVE_INLINE RimCrossing<Real> turned(const RimCrossing<Real>& c) {
  return {c.valid, {{c.touch.place[1], c.touch.place[0]}, c.touch.sign}, turned(c.point)};
}

/// From places of two ends' rims that are near. Valid: with each cylinder on its side.
template <class Real>
BACKDRIVE_CALLED RimCrossing<Real> crossing_near(const Shape<Real>& a, const Shape<Real>& b, const Real (&end)[2],
                                                 RimPoint<Real> on_a, RimPoint<Real> on_b) {
  const Real zero = constant<Real>(0), slack = constant<Real>(kRimsSlack);
  for (int k = 0; k < 8; ++k) approach(a, b, on_a, on_b);
  const Vec3<Real> area = cross(on_a.tangent, on_b.tangent), out_a = on_a.radial + a.pose.axes.cz * end[0];
  const Real sign = select(less(dot(area, out_a), zero), -constant<Real>(1), constant<Real>(1));
  RimCrossing<Real> found;
  found.touch = {{on_a.place(a, end[0]), on_b.place(b, end[1])}, sign};
  found.point = rims_touch(a, b, found.touch);
  const Vec3<Real>& n = found.point.normal;
  const auto stands = [&](const Vec3<Real>& outward, const Real& side) __attribute__((always_inline)) {
    return !less(side * dot(n, outward), -slack);
  };
  const Vec3<Real> e = on_a.at - on_b.at, aside = e - n * dot(n, e);
  const Real least = minimum(a.scale.x, b.scale.x);
  found.valid = stands(on_a.radial, constant<Real>(1)) && stands(a.pose.axes.cz, end[0]) &&
                stands(on_b.radial, constant<Real>(-1)) && stands(b.pose.axes.cz, -end[1]) &&
                less(constant<Real>(kLeastAngle * kLeastAngle), dot(area, area)) &&
                less(dot(aside, aside), least * least * constant<Real>(1e-8));
  return found;
}

/// Of the rims of two ends: from `which`, −1 or 1, of the two places where they cross as seen along A.
template <class Real>
BACKDRIVE_CALLED RimCrossing<Real> crossing_seen(const Shape<Real>& a, const Shape<Real>& b, const Real (&end)[2],
                                                 double which) {
  const Real zero = constant<Real>(0), half = constant<Real>(0.5);
  const Vec3<Real> centre = b.pose.origin + b.pose.axes.cz * (b.scale.y * end[1]);
  const Vec3<Real> d = local_point(a.pose, centre), to = direction(Vec3<Real>{d.x, d.y, zero});
  const Real off = length(Vec3<Real>{d.x, d.y, zero});
  const Real along = half * (off + (a.scale.x * a.scale.x - b.scale.x * b.scale.x) / off);
  const Real across = constant<Real>(which) * square_root(maximum(a.scale.x * a.scale.x - along * along, zero));
  const Vec3<Real> out = direction(Vec3<Real>{to.x * along - to.y * across, to.y * along + to.x * across, zero});
  const RimPoint<Real> on_a(a, {end[0], out.x, out.y});
  const Vec3<Real> q = local_point(b.pose, on_a.at), in_b = direction(Vec3<Real>{q.x, q.y, zero});
  return crossing_near(a, b, end, on_a, {b, {end[1], in_b.x, in_b.y}});
}

/// The place of a cylinder that is furthest along a direction n, at a rim, and how far that bends there: R/ρ, with ρ
/// the length of n as seen along the axis.
template <class Real>
struct FurthestAtRim {
  Real end;
  RimPoint<Real> on;
  Real bend;
};
template <class Real>
BACKDRIVE_INLINE FurthestAtRim<Real> furthest_at_rim(const Shape<Real>& c, const Vec3<Real>& n) {
  const Real one = constant<Real>(1), zero = constant<Real>(0);
  const Vec3<Real> m = transposed_times(c.pose.axes, n), flat{m.x, m.y, zero}, out = direction(flat);
  const Real end = select(less(m.z, zero), -one, one);
  return {end, {c, {end, out.x, out.y}}, c.scale.x / maximum(length(flat), constant<Real>(kLeastAngle))};
}

/// How far planes with that normal that hold the two are apart, from A to B.
template <class Real>
BACKDRIVE_INLINE Real apart_along(const Shape<Real>& a, const Shape<Real>& b, const Vec3<Real>& n) {
  return dot(n, b.pose.origin - a.pose.origin) - cylinder_half_width(a, n) - cylinder_half_width(b, n);
}

/// From A to B, of the directions that are off the normal of an end face that looks at the other, towards the place of
/// the other that is nearest to its plane, the one along which they are furthest apart: crossing_from() leads on.
template <class Real>
BACKDRIVE_CALLED Vec3<Real> tilted_face(const Shape<Real>& a, const Shape<Real>& b, const Real (&end)[2]) {
  const Shape<Real>* const shapes[2] = {&a, &b};
  Vec3<Real> best = a.pose.axes.cz;
  Real most = constant<Real>(-kFarGap);
  for (int k = 0; k < 2; ++k) {
    const Shape<Real>&own = *shapes[k], &other = *shapes[1 - k];
    const Vec3<Real> outward = own.pose.axes.cz * end[k];
    const Vec3<Real> nearest = local_point(own.pose, furthest_at_rim(other, -outward).on.at);
    const Vec3<Real> aside = own.pose.axes * direction(Vec3<Real>{nearest.x, nearest.y, constant<Real>(0)});
    for (const double tilt : {0.03, 0.1, 0.3}) {
      const Vec3<Real> n = direction(outward + aside * constant<Real>(tilt)) * constant<Real>(k == 0 ? 1 : -1);
      const Real apart = apart_along(a, b, n);
      best = choose(less(most, apart), n, best);
      most = maximum(most, apart);
    }
  }
  return best;
}

/// Where rims cross at whichever ends: where planes with a normal n between them hold both furthest apart, from `start`
/// on, from A to B. That is f(n) = n·e, e from A's place furthest along n to B's furthest along −n, on the sphere, by
/// (Σ R/ρ t tᵀ + |f|) δ = e − f n, with the rims' tangents t: Newton's method for f ≥ 0, and below it still leads up.
template <class Real>
BACKDRIVE_CALLED RimCrossing<Real> crossing_from(const Shape<Real>& a, const Shape<Real>& b, const Vec3<Real>& start) {
  constexpr int steps = 10;
  Vec3<Real> n = start;
  for (int k = 0; k < steps; ++k) {
    const FurthestAtRim<Real> A = furthest_at_rim(a, n), B = furthest_at_rim(b, -n);
    const Vec3<Real> e = B.on.at - A.on.at;
    const Real f = dot(n, e), both = dot(A.on.tangent, B.on.tangent), lift = magnitude(f);
    const Vec3<Real> up = e - n * f;
    const Real by_a = A.bend * dot(A.on.tangent, up), by_b = B.bend * dot(B.on.tangent, up);
    const Real bends = A.bend + B.bend + lift;
    const Real determinant = lift * bends + A.bend * B.bend * (constant<Real>(1) - both * both);
    const Vec3<Real> step = (up * bends - A.on.tangent * by_a - B.on.tangent * by_b) *
                            (constant<Real>(1) / maximum(determinant, constant<Real>(kTinySquare)));
    const Real far = length(step), most = constant<Real>(0.5);
    n = direction(n + step * (most / maximum(far, most)));
  }
  const FurthestAtRim<Real> A = furthest_at_rim(a, n), B = furthest_at_rim(b, -n);
  const Real end[2] = {A.end, B.end};
  return crossing_near(a, b, end, A.on, B.on);
}

/// The places where rims cross: found from where those of the ends that look at each other do as seen along either
/// axis, and from a tilted_face(), which may lead to other ends. Normals lead out of A.
template <class Real>
struct RimCrossings {
  static constexpr int count = 5;
  RimCrossing<Real> at[count];

  BACKDRIVE_INLINE RimCrossings(const Shape<Real>& a, const Shape<Real>& b, const Real (&end)[2]) {
    const Real turned_end[2] = {end[1], end[0]};
    for (int k = 0; k < count; ++k) {
      const double which = k % 2 ? 1 : -1;
      if (k < 2) {
        at[k] = crossing_seen(a, b, end, which);
      } else if (k < 4) {
        at[k] = turned(crossing_seen(b, a, turned_end, which));
      } else {
        at[k] = crossing_from(a, b, tilted_face(a, b, end));
      }
      drop_if_known(k);
    }
  }

 private:
  BACKDRIVE_INLINE void drop_if_known(int k) {
    for (int other = 0; other < k; ++other) {
      MaskOf<Real> same = at[other].valid;
      for (int i = 0; i < 2; ++i) {
        const RimPlace<Real>&own = at[k].touch.place[i], &known = at[other].touch.place[i];
        same = same && less(constant<Real>(0), own.end * known.end) && is_same_place(own, known);
      }
      at[k].valid = at[k].valid && !same;
    }
  }
};

/// Places of the rims of c that may touch the side of the other; normals lead out of c.
template <class Real>
struct RimCandidates {
  static constexpr int count = 4;
  LineCandidate<Real> at[count];

  BACKDRIVE_INLINE RimCandidates(const Shape<Real>& c, const Shape<Real>& other) {
    const Real one = constant<Real>(1), slack = constant<Real>(kSupportSlack);
    for (int k = 0; k < count; ++k) {
      at[k] = line_at_rim(c, axis_line(other), k < 2 ? -one : one, k % 2 ? -1 : 1);
      // within the slack sides touch
      at[k].valid = at[k].valid && !less(magnitude(dot(at[k].normal, c.pose.axes.cz)), slack);
      if (k % 2 == 0) continue;
      const LineCandidate<Real>& other_place = at[k - 1];
      at[k].valid = at[k].valid && !(other_place.valid && is_same_place(at[k].touch.place, other_place.touch.place));
    }
  }
};

/// Samples of one cylinder on the end face of another with that outward normal, where allowed. Returns the least gap.
template <class Real>
BACKDRIVE_CALLED Real choose_samples(const Shape<Real>& own, const Shape<Real>& other, const Vec3<Real>& normal,
                                     const MaskOf<Real>& allowed, CylinderPart<Real>& part) {
  const Real zero = constant<Real>(0), disc = other.scale.x * constant<Real>(1 + kSidewaysSlack);
  const auto off_axis = [&](const Vec3<Real>& x) __attribute__((always_inline)) {
    const Vec3<Real> q = local_point(other.pose, x);
    return length(Vec3<Real>{q.x, q.y, zero});
  };
  const MaskOf<Real> flush = less(constant<Real>(kFlush), magnitude(dot(own.pose.axes.cz, normal)));
  const MaskOf<Real> covered = less(off_axis(own.pose.origin) + own.scale.x, disc), with_lowest = covered || !flush;
  const Vec3<Real> origin = other.pose.origin + normal * other.scale.y;
  part.facing = end_facing(own, normal);
  Real least = constant<Real>(kFarGap);
  for (int i = 0; i < kSamples; ++i) {
    const Vec3<Real> place = sample_place(own, normal, part.facing, i);
    part.sampled[i] = allowed && less(off_axis(place), disc) && (with_lowest || MaskOf<Real>(i != 0 && i != 5));
    least = minimum(least, select(part.sampled[i], dot(normal, place - origin), constant<Real>(kFarGap)));
  }
  return least;
}

/// Whether a place of either axis is in the other cylinder.
template <class Real>
BACKDRIVE_INLINE MaskOf<Real> are_deep(const Shape<Real>& a, const Shape<Real>& b) {
  MaskOf<Real> deep(false);
  for (int k = 0; k < 3; ++k) {
    deep = deep || is_inside(b, local_point(b.pose, place_on_axis(a, k))) ||
           is_inside(a, local_point(a.pose, place_on_axis(b, k)));
  }
  return deep;
}

template <class Real>
BACKDRIVE_CALLED void cylinder_cylinder_features(const Shape<Real>& a, const Shape<Real>& b,
                                                 CylinderCylinderFeatures<Real>& f) {
  const Real one = constant<Real>(1), zero = constant<Real>(0), far = constant<Real>(kFarGap);
  const Real slack = constant<Real>(kSupportSlack);
  const Shape<Real>* const shapes[2] = {&a, &b};
  // the axis that separates best: a feature that is past the other shape somewhere is none, whatever its own gap
  SeparatingAxis<Real> axis{a.pose.axes.cz};
  const auto consider = [&](const MaskOf<Real>& valid, const Vec3<Real>& out_of_a) __attribute__((always_inline)) {
    const Real apart = apart_along(a, b, out_of_a);
    axis.consider(valid, apart, -out_of_a);
    return apart;
  };
  Vec3<Real> outward[2];  // of the end faces that look at the other
  Real face_gap[2];
  for (int k = 0; k < 2; ++k) {
    const Vec3<Real>& own_axis = shapes[k]->pose.axes.cz;
    const Vec3<Real> to = shapes[1 - k]->pose.origin - shapes[k]->pose.origin;
    f.part[k].end = select(less(dot(own_axis, to), zero), -one, one);
    outward[k] = own_axis * f.part[k].end;
    face_gap[k] = consider(MaskOf<Real>(true), k == 0 ? outward[k] : -outward[k]);
  }
  const Core<Real> A = core_of<ShapeKind::capsule>(a), B = core_of<ShapeKind::capsule>(b);
  const Real ends[2] = {f.part[0].end, f.part[1].end};
  const RimCandidates<Real> rims[2] = {{a, b}, {b, a}};
  const RimCrossings<Real> crossings(a, b, ends);
  ContactPoint<Real> side[2];
  for (int k = 0; k < 2; ++k) {
    f.sides[k] = capsule_capsule_feature(A, B, k);
    side[k] = witness(A, B, f.sides[k]);
    const Real tilt_a = magnitude(dot(side[k].normal, a.pose.axes.cz));
    const Real tilt_b = magnitude(dot(side[k].normal, b.pose.axes.cz));
    f.sides_used[k] = less(tilt_a, slack) && less(tilt_b, slack);
    consider(f.sides_used[k], -side[k].normal);
  }
  for (int k = 0; k < 2; ++k) {
    for (const LineCandidate<Real>& found : rims[k].at) consider(found.valid, k == 0 ? found.normal : -found.normal);
  }
  for (const RimCrossing<Real>& found : crossings.at) consider(found.valid, found.point.normal);

  // what touches along it
  for (const RimCrossing<Real>& found : crossings.at) {
    const MaskOf<Real> used = found.valid && axis.aligned(-found.point.normal);
    f.rims.offer(select(used, found.point.gap, far), found.touch);
  }
  Real least = f.rims.gap[0];
  for (int k = 0; k < 2; ++k) {
    f.sides_used[k] = f.sides_used[k] && axis.aligned(side[k].normal);
    least = minimum(least, select(f.sides_used[k], side[k].gap, far));
    const Vec3<Real>& n = outward[1 - k];
    least = minimum(least, choose_samples(*shapes[k], *shapes[1 - k], n, axis.aligned(k == 0 ? n : -n), f.part[k]));
    for (const LineCandidate<Real>& found : rims[k].at) {
      const MaskOf<Real> used = found.valid && axis.aligned(k == 0 ? -found.normal : found.normal);
      f.part[k].rims.offer(select(used, found.gap, far), found.touch);
    }
    least = minimum(least, f.part[k].rims.gap[0]);
  }
  const MaskOf<Real> missed = are_deep(a, b) && !less(least, zero), by_b = less(face_gap[0], face_gap[1]);
  f.part[0].sampled[0] = f.part[0].sampled[0] || (missed && by_b);
  f.part[1].sampled[0] = f.part[1].sampled[0] || (missed && !by_b);
}

/// Sample i of `own`; normals lead into it.
template <class N>
BACKDRIVE_CALLED ContactPoint<N> sample_on_end(const Shape<N>& own, const Shape<N>& other,
                                               const CylinderCylinderFeatures<ValueOf<N>>& f, int which, int i) {
  const Vec3<N> n = other.pose.axes.cz * N(f.part[1 - which].end);
  const auto& part = f.part[which];
  return choose(part.sampled[i], sample_on_plane(own, n, other.pose.origin + n * other.scale.y, N(part.facing), i),
                far_point<N>());
}

/// A feature of two shapes in numbers of type N.
template <class N, class Real>
BACKDRIVE_INLINE FeaturePair<N> lifted(const FeaturePair<Real>& f) {
  const auto direction = [](const FeatureDirection<Real>& d) __attribute__((always_inline)) {
    return FeatureDirection<N>{lifted<N>(d.xi), N(d.of_a), d.free, N(d.pull), N(d.target)};
  };
  return {lifted<N>(f.a), lifted<N>(f.b), {direction(f.d[0]), direction(f.d[1])}, f.crossed, N(f.sign)};
}

/// Point i, normals from B to A.
template <class N>
BACKDRIVE_CALLED ContactPoint<N> cylinder_cylinder_point(const Shape<N>& a, const Shape<N>& b,
                                                         const CylinderCylinderFeatures<ValueOf<N>>& f, int i) {
  if (i < kSamples) return sample_on_end(a, b, f, 0, i);
  i -= kSamples;
  if (i < kSamples) return turned(sample_on_end(b, a, f, 1, i));
  i -= kSamples;
  if (i < 2)
    return choose(f.sides_used[i],
                  witness(core_of<ShapeKind::capsule>(a), core_of<ShapeKind::capsule>(b), lifted<N>(f.sides[i])),
                  far_point<N>());
  i -= 2;
  if (i >= 2 * kRimPoints) {
    i -= 2 * kRimPoints;
    return turned(choose(f.rims.used(i), rims_touch(a, b, f.rims.feature[i]), far_point<N>()));
  }
  const int which = i / kRimPoints, k = i % kRimPoints;
  const auto& rims = f.part[which].rims;
  const Shape<N>&own = which == 0 ? a : b, &other = which == 0 ? b : a;
  const ContactPoint<N> p =
      choose(rims.used(k), line_at_cylinder(own, axis_line(other), rims.feature[k]), far_point<N>());
  return which == 0 ? turned(p) : p;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
