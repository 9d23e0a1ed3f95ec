#pragma once
// A list of the pairs near enough to be looked at in every step, of models that have many: Verlet's (Allen and
// Tildesley, Computer Simulation of Liquids, section 5.3), with a distance of its own for each shape in place of one.
//
// A shape may move by, and reach out for points from, its `allowance` in all. Pairs that are further apart than their
// two allowances cannot come into reach meanwhile, however their links turn, as shapes count as balls here.
#include "integrators/contact/bounds.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// From how many pairs a shape on a list costs less than looking at all of them.
constexpr int kListedPairsPerShape = 3;
/// What a shape is allowed when the list is made, of what it reaches at rest and, beyond that, by moving in a step,
/// which is twice its way at least: at a steady speed the list then holds for eight steps and more.
constexpr double kAllowedAtRest = 1.5, kAllowedMoving = 5;

/// visit(shape, O of its tree) of those on links.
template <class Space, class Visit>
BACKDRIVE_INLINE void each_moving_shape(Space& ws, const Visit& visit) {
  using Real = typename Space::Real;
  int root = -1;
  Vec3<Real> origin = zero3<Real>();
  for (int k = 0; k < ws.contact.shape_count; ++k) {
    const Carrier carrier = carrier_of(ws, k);
    if (carrier.link < 0) continue;
    if (carrier.root != root) {
      root = carrier.root;
      origin = tree_origin(ws, root);
    }
    visit(k, origin);
  }
}

/// Whether all shapes, in all lanes, are still within what the list allows them. O(shapes).
template <class Space>
BACKDRIVE_INLINE bool list_holds(Space& ws) {
  using Real = typename Space::Real;
  const Real zero = constant<Real>(0);
  auto holds = value_of(zero) <= value_of(zero);
  each_moving_shape(
      ws, [&](int k, const Vec3<Real>& origin) __attribute__((always_inline)) {
        const ListedShape<Real>& listed = ws.contact.listed[k];
        const Vec3<Real> way = (ws.contact.balls[k].centre - listed.centre) + (origin - listed.origin);
        const Real left = listed.allowance - ws.contact.balls[k].reach;
        holds = holds && value_of(left) >= value_of(zero) && value_of(dot(way, way)) <= value_of(left * left);
      });
  return !any(!holds);
}

/// Makes the list for where shapes are now. O(pairs).
template <class Space>
BACKDRIVE_CALLED void list_near_pairs(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const auto list = [&](int k, const Vec3<Real>& origin, double at_rest) __attribute__((always_inline)) {
    const ShapeBall<Real>& ball = space.balls[k];
    const Real moving = ball.reach - ball.still_reach;
    space.listed[k] = {ball.centre, origin,
                       ball.still_reach * constant<Real>(at_rest) + moving * constant<Real>(kAllowedMoving)};
  };
  for (int k = 0; k < space.shape_count; ++k) {
    if (carrier_of(ws, k).link < 0) list(k, zero3<Real>(), 1);
  }
  each_moving_shape(
      ws, [&](int k, const Vec3<Real>& origin) __attribute__((always_inline)) { list(k, origin, kAllowedAtRest); });
  space.near_count = 0;
  for (int k = 0; k < space.pair_count; ++k) {
    const ContactPair& pair = space.pairs[k];
    const ListedShape<Real>&a = space.listed[pair.a], &b = space.listed[pair.b];
    Vec3<Real> apart = a.centre - b.centre;
    if (!space.plans[k].own) apart += a.origin - b.origin;
    const Real near = space.balls[pair.a].extent + (a.allowance + b.allowance);
    bool out;
    if (space.plans[k].plane) {
      out = !any(!(value_of(dot(plane_normal(ws, k), apart)) > value_of(near)));
    } else {
      const Real zero = constant<Real>(0), of_b = space.balls[pair.b].extent, sum = near + of_b;
      const auto boundless = value_of(of_b) < value_of(zero);
      out = !any(boundless || !(value_of(dot(apart, apart)) > value_of(sum * sum)));
    }
    if (!out) space.near_pairs[space.near_count++] = k;
  }
}

/// Sees to it that near_pairs has all pairs that may come into reach in this step.
template <class Space>
BACKDRIVE_INLINE void update_near_pairs(Space& ws) {
  auto& space = ws.contact;
  if (!space.lists_pairs || (space.near_count >= 0 && list_holds(ws))) return;
  list_near_pairs(ws);
}

/// Before the first step: all pairs, or none looked at yet.
template <class Space>
BACKDRIVE_HD void begin_near_pairs(Space& ws) {
  auto& space = ws.contact;
  space.lists_pairs = space.pair_count > kListedPairsPerShape * space.shape_count;
  space.near_count = -1;
  if (space.lists_pairs) return;
  space.near_count = space.pair_count;
  for (int k = 0; k < space.pair_count; ++k) space.near_pairs[k] = k;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
