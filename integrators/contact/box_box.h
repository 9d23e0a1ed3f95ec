#pragma once
// Two boxes: five points, of which 0-3 or 4 is in use and the rest is far.
//
// The axis of least penetration (or largest separation) is found among both boxes' face normals and the products of
// their edges (separating axes: Gottschalk 1996; Ericson, Real-Time Collision Detection, section 4.4.1).
//   a face's   0-3: the reference face (normal n, centre b) is that one, the incident face (normal m, centre a) that of
//              the other box which looks against it most. Each corner of the incident face is moved to a place x of
//              that face over the reference face, in two rounds of: sideways into the reference face, along n back into
//              the incident plane, x += n m·(a − x) / m·n, sideways into the incident face. Then
//                gap = n·(x − b)    point = x − ½ gap n
//              Clipping would change the number of points as the boxes slide; these are always four, each of them moves
//              continuously, and they are the clipped corners wherever the faces' sides are parallel. Boxes of one size
//              in a stack, where clipping flickers, are no special case. No gap is below the axis' separation.
//   edges'     4: the nearest points of the two edges (features.h).
// Smooth while the chosen axis and the clamped sides stay; across a clamp the gap is C⁰ in the place, C¹ for parallel
// faces. Where the choice of axis changes, points jump; between faces that are equally good, to about the same places.
#include "engine/magnitude.h"
#include "integrators/contact/features.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

constexpr int kBoxBoxPoints = 5;
/// Edges are chosen when they separate better than any face by this much of the smallest half extent: below that the
/// face's four points say the same and say it more steadily.
constexpr double kFaceBias = 0.02;

template <class Real>
BACKDRIVE_INLINE Vec3<Real> unit_axis(int k) {
  return {constant<Real>(k == 0), constant<Real>(k == 1), constant<Real>(k == 2)};
}
template <class Real>
BACKDRIVE_INLINE Real sign_of(const Real& x) {
  const Real one = constant<Real>(1);
  return select(less(x, constant<Real>(0)), -one, one);
}
/// Half width of a box along a direction given by its products with the box's axes.
template <class Real>
BACKDRIVE_INLINE Real half_width(const Vec3<Real>& h, const Vec3<Real>& along) {
  return h.x * magnitude(along.x) + h.y * magnitude(along.y) + h.z * magnitude(along.z);
}

/// A face: its outward normal and the two axes that span it, ±unit vectors in the box's axes.
template <class Real>
struct BoxFace {
  Vec3<Real> normal, side[2];
};
template <class Real>
BACKDRIVE_INLINE BoxFace<Real> box_face(int k, const Real& sign) {
  return {unit_axis<Real>(k) * sign, {unit_axis<Real>((k + 1) % 3), unit_axis<Real>((k + 2) % 3)}};
}
template <class Real>
BACKDRIVE_INLINE BoxFace<Real> choose(const MaskOf<Real>& mask, const BoxFace<Real>& yes, const BoxFace<Real>& no) {
  return {choose(mask, yes.normal, no.normal),
          {choose(mask, yes.side[0], no.side[0]), choose(mask, yes.side[1], no.side[1])}};
}
template <class Real>
BACKDRIVE_INLINE Core<Real> choose(const MaskOf<Real>& mask, const Core<Real>& yes, const Core<Real>& no) {
  return {{{choose(mask, yes.pose.axes.cx, no.pose.axes.cx), choose(mask, yes.pose.axes.cy, no.pose.axes.cy),
            choose(mask, yes.pose.axes.cz, no.pose.axes.cz)},
           choose(mask, yes.pose.origin, no.pose.origin)},
          choose(mask, yes.extents, no.extents),
          select(mask, yes.radius, no.radius)};
}

/// The face of `box` whose outward normal is farthest along `out`.
template <class Real>
BACKDRIVE_INLINE BoxFace<Real> facing(const Core<Real>& box, const Vec3<Real>& out) {
  const Vec3<Real> m = transposed_times(box.pose.axes, out);
  const Real x = magnitude(m.x), y = magnitude(m.y), z = magnitude(m.z);
  const BoxFace<Real> first = choose(less(x, y), box_face(1, sign_of(m.y)), box_face(0, sign_of(m.x)));
  return choose(less(maximum(x, y), z), box_face(2, sign_of(m.z)), first);
}

/// What touches: reference and incident face, or a pair of edges.
template <class Real>
struct BoxBoxChoice {
  MaskOf<Real> by_edges;
  MaskOf<Real> reference_is_a;
  Core<Real> reference, incident;
  BoxFace<Real> face, other;  ///< of the reference, of the incident box
  FeaturePair<Real> edges;
};

/// Keeps the face of `box` that separates best; `from` leads from its centre to the other's.
template <class Real>
BACKDRIVE_INLINE void best_face(const Core<Real>& box, const Core<Real>& other, const Vec3<Real>& from, Real& best,
                                BoxFace<Real>& face) {
  const Vec3<Real> axes[3] = {box.pose.axes.cx, box.pose.axes.cy, box.pose.axes.cz};
  const Real half[3] = {box.extents.x, box.extents.y, box.extents.z};
  for (int k = 0; k < 3; ++k) {
    const Real along = dot(from, axes[k]);
    const Real gap = magnitude(along) - half[k] - half_width(other.extents, transposed_times(other.pose.axes, axes[k]));
    const MaskOf<Real> better = k == 0 ? MaskOf<Real>(true) : less(best, gap);
    best = select(better, gap, best);
    face = choose(better, box_face(k, sign_of(along)), face);
  }
}

/// The edges of A and B along their axes i and j that face each other along ±(a_i × b_j).
template <class Real>
BACKDRIVE_INLINE FeaturePair<Real> edge_feature(const Vec3<Real>& to_a, const Vec3<Real>& of_a, const Vec3<Real>& of_b,
                                                const Vec3<Real>& l, int i, int j) {
  const Real zero = constant<Real>(0), one = constant<Real>(1), sign = sign_of(dot(to_a, l));
  const auto corner_along = [&](const Vec3<Real>& m) __attribute__((always_inline)) {
    return Vec3<Real>{sign_of(m.x), sign_of(m.y), sign_of(m.z)} * sign;
  };
  const Vec3<Real> ones{one, one, one}, ei = unit_axis<Real>(i), ej = unit_axis<Real>(j);
  FeaturePair<Real> f = vertex_pair(times(-corner_along(of_a), ones - ei), times(corner_along(of_b), ones - ej));
  f.d[0] = {ei, one, MaskOf<Real>(true), zero, zero};
  f.d[1] = {ej, zero, MaskOf<Real>(true), zero, zero};
  f.crossed = MaskOf<Real>(true);
  f.sign = sign;
  return f;
}

template <class Real>
BACKDRIVE_HD Real best_edges(const Core<Real>& A, const Core<Real>& B, const Vec3<Real>& to_a,
                             FeaturePair<Real>& edges) {
  const Vec3<Real> a[3] = {A.pose.axes.cx, A.pose.axes.cy, A.pose.axes.cz};
  const Vec3<Real> b[3] = {B.pose.axes.cx, B.pose.axes.cy, B.pose.axes.cz};
  const Real parallel = constant<Real>(1e-6), never = constant<Real>(-kFarGap);
  Real best = never;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const Vec3<Real> l = cross(a[i], b[j]);
      const Real square = dot(l, l);
      const Vec3<Real> of_a = transposed_times(A.pose.axes, l), of_b = transposed_times(B.pose.axes, l);
      const Real width = half_width(A.extents, of_a) + half_width(B.extents, of_b);
      const Real gap = select(less(square, parallel), never,
                              (magnitude(dot(to_a, l)) - width) / square_root(maximum(square, parallel)));
      const MaskOf<Real> better = less(best, gap);
      best = select(better, gap, best);
      edges = choose(better, edge_feature(to_a, of_a, of_b, l, i, j), edges);
    }
  }
  return best;
}

template <class Real>
BACKDRIVE_CALLED BoxBoxChoice<Real> box_box_choice(const Core<Real>& A, const Core<Real>& B) {
  BoxBoxChoice<Real> c;
  const Vec3<Real> to_a = A.pose.origin - B.pose.origin;
  Real of_a = constant<Real>(0), of_b = of_a;
  BoxFace<Real> face_a = box_face<Real>(0, of_a), face_b = face_a;
  best_face(A, B, -to_a, of_a, face_a);
  best_face(B, A, to_a, of_b, face_b);
  const Vec3<Real>&ha = A.extents, &hb = B.extents;
  const Real smallest = minimum(minimum(ha.x, minimum(ha.y, ha.z)), minimum(hb.x, minimum(hb.y, hb.z)));
  c.edges = vertex_pair(zero3<Real>(), zero3<Real>());
  const Real of_edges = best_edges(A, B, to_a, c.edges);
  c.by_edges = less(maximum(of_a, of_b) + constant<Real>(kFaceBias) * smallest, of_edges);
  c.reference_is_a = less(of_b, of_a);
  c.reference = choose(c.reference_is_a, A, B);
  c.incident = choose(c.reference_is_a, B, A);
  c.face = choose(c.reference_is_a, face_a, face_b);
  c.other = facing(c.incident, -(c.reference.pose.axes * c.face.normal));
  return c;
}

// ---- a corner of the incident face, moved into both faces -----------------------------------------------------------

constexpr int kRound = 5;  ///< steps of a round: 0, 1 along the reference face's sides, 2 along n, 3, 4 the incident's
constexpr int kSteps = 2 * kRound;

template <class Real>
struct FacePoint {
  Vec3<Real> n, m, a, b;     ///< as above
  Vec3<Real> xi;             ///< the corner, in unit coordinates of the incident box
  Vec3<Real> x[kSteps + 1];  ///< from the corner to the place
};

/// Clamp in step k of a round: the axis, and the box that it belongs to.
template <class Real>
BACKDRIVE_INLINE const Vec3<Real>& clamp_axis(const BoxBoxChoice<Real>& c, int k) {
  return k < 2 ? c.face.side[k] : c.other.side[k - 3];
}
template <class Real>
BACKDRIVE_INLINE const Core<Real>& clamp_box(const BoxBoxChoice<Real>& c, int k) {
  return k < 2 ? c.reference : c.incident;
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> clamped_along(const Core<Real>& box, const Vec3<Real>& axis, const Vec3<Real>& x) {
  const Vec3<Real> w = box.pose.axes * axis;
  const Real y = dot(w, x - box.pose.origin), h = dot(axis, box.extents);
  return x + w * (clamped(y, -h, h) - y);
}

template <class Real>
BACKDRIVE_HD FacePoint<Real> face_point(const BoxBoxChoice<Real>& c, int which) {
  FacePoint<Real> p;
  p.n = c.reference.pose.axes * c.face.normal;
  p.b = core_point(c.reference, c.face.normal);
  p.m = c.incident.pose.axes * c.other.normal;
  p.a = core_point(c.incident, c.other.normal);
  p.xi = c.other.normal + c.other.side[0] * constant<Real>(which & 1 ? 1 : -1) +
         c.other.side[1] * constant<Real>(which & 2 ? 1 : -1);
  p.x[0] = core_point(c.incident, p.xi);
  for (int i = 0; i < kSteps; ++i) {
    const int k = i % kRound;
    p.x[i + 1] = k == 2 ? p.x[i] + p.n * (dot(p.m, p.a - p.x[i]) / dot(p.m, p.n))
                        : clamped_along(clamp_box(c, k), clamp_axis(c, k), p.x[i]);
  }
  return p;
}

/// Adjoint of x' = x + w (clamped(y, ±h) − y), y = w·(x − o): x̄ changes in place.
template <class Real>
BACKDRIVE_INLINE void adj_clamp_along(const Core<Real>& box, const Vec3<Real>& axis, const Vec3<Real>& x,
                                      Vec3<Real>& x_bar, CoreBar<Real>& box_bar) {
  const Vec3<Real> w = box.pose.axes * axis, from = x - box.pose.origin;
  const Real y = dot(w, from), h = dot(axis, box.extents), bound = clamped(y, -h, h);
  const MaskOf<Real> out = less(h, y) || less(y, -h);
  const Real along = only(out, dot(w, x_bar));
  const Vec3<Real> w_bar = x_bar * (bound - y) - from * along, o_bar = w * along;
  box_bar.extents += axis * (along * sign_of(y));
  box_bar.pose.ang += cross(w, w_bar) + cross(box.pose.origin, o_bar);
  box_bar.pose.lin += o_bar;
  x_bar -= o_bar;
}

template <class Real>
BACKDRIVE_INLINE ContactPoint<Real> contact_of(const BoxBoxChoice<Real>& c, const FacePoint<Real>& p) {
  const Vec3<Real>& x = p.x[kSteps];
  const Real gap = dot(p.n, x - p.b);
  return {gap, x - p.n * (constant<Real>(0.5) * gap), choose(c.reference_is_a, -p.n, p.n)};
}

template <class Real>
BACKDRIVE_HD void adj_contact_of(const BoxBoxChoice<Real>& c, const FacePoint<Real>& p, const ContactPoint<Real>& bar,
                                 CoreBar<Real>& reference_bar, CoreBar<Real>& incident_bar) {
  const Real half = constant<Real>(0.5);
  const Vec3<Real> from = p.x[kSteps] - p.b;
  const Real gap_bar = bar.gap - half * dot(p.n, bar.point);
  Vec3<Real> n_bar =
      choose(c.reference_is_a, -bar.normal, bar.normal) - bar.point * (half * dot(p.n, from)) + from * gap_bar;
  Vec3<Real> x_bar = bar.point + p.n * gap_bar, m_bar = zero3<Real>(), a_bar = m_bar;
  for (int i = kSteps; i-- > 0;) {
    const int k = i % kRound;
    if (k != 2) {
      adj_clamp_along(clamp_box(c, k), clamp_axis(c, k), p.x[i], x_bar, k < 2 ? reference_bar : incident_bar);
      continue;
    }
    // x' = x + n z, z = m·(a − x) / m·n
    const Vec3<Real> to_a = p.a - p.x[i];
    const Real over = dot(p.m, p.n), z = dot(p.m, to_a) / over, top_bar = dot(p.n, x_bar) / over;
    n_bar += x_bar * z - p.m * (top_bar * z);
    m_bar += (to_a - p.n * z) * top_bar;
    a_bar += p.m * top_bar;
    x_bar -= p.m * top_bar;
  }
  adj_core_point(c.incident, p.xi, p.x[0], x_bar, incident_bar);
  adj_core_point(c.incident, c.other.normal, p.a, a_bar, incident_bar);
  adj_core_point(c.reference, c.face.normal, p.b, p.n * -gap_bar, reference_bar);
  incident_bar.pose.ang += cross(p.m, m_bar);
  reference_bar.pose.ang += cross(p.n, n_bar);
}

template <class Real>
BACKDRIVE_HD void box_box(const Core<Real>& A, const Core<Real>& B, ContactPoint<Real>* out) {
  const BoxBoxChoice<Real> c = box_box_choice(A, B);
  for (int i = 0; i < 4; ++i) out[i] = choose(c.by_edges, far_point<Real>(), contact_of(c, face_point(c, i)));
  out[4] = choose(c.by_edges, witness(A, B, c.edges), far_point<Real>());
}

template <class Real>
BACKDRIVE_INLINE void add_chosen(const MaskOf<Real>& swapped, const CoreBar<Real>& first, const CoreBar<Real>& second,
                                 CoreBar<Real>& to) {
  to.pose.ang += choose(swapped, second.pose.ang, first.pose.ang);
  to.pose.lin += choose(swapped, second.pose.lin, first.pose.lin);
  to.extents += choose(swapped, second.extents, first.extents);
}

template <class Real>
BACKDRIVE_HD void adj_box_box(const Core<Real>& A, const Core<Real>& B, const ContactPoint<Real>* bar,
                              CoreBar<Real>& A_bar, CoreBar<Real>& B_bar) {
  const BoxBoxChoice<Real> c = box_box_choice(A, B);
  CoreBar<Real> reference_bar = zero_core_bar<Real>(), incident_bar = reference_bar;
  for (int i = 0; i < 4; ++i)
    adj_contact_of(c, face_point(c, i), only(!c.by_edges, bar[i]), reference_bar, incident_bar);
  add_chosen(c.reference_is_a, incident_bar, reference_bar, A_bar);
  add_chosen(c.reference_is_a, reference_bar, incident_bar, B_bar);
  adj_witness(A, B, c.edges, only(c.by_edges, bar[4]), A_bar, B_bar);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
