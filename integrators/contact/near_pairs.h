#pragma once
// A list of the pairs near enough to be looked at in every step, of models that have many: Verlet's (Allen and
// Tildesley, Computer Simulation of Liquids, section 5.3), with a distance of its own for each shape in place of one.
//
// A shape may move by, and reach out for points from, its `allowance` in all. Pairs that are further apart than their
// two allowances cannot come into reach meanwhile, however their links turn, as shapes count as balls here.
#include "integrators/contact/bounds.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Up to so many pairs a shape all are looked at: to see whether a shape is within its allowance costs as much as a
/// pair or two.
constexpr int kUnlistedPairsPerShape = 3;
/// What a shape is allowed beyond what it reaches when the list is made: the way of this part of a step when it is
/// pushed, and so many times what its own motion adds to that reach, which is twice the way of a step at least. At a
/// steady speed the list then holds for eight steps and more.
constexpr double kAllowedPush = 0.25, kAllowedMotion = 4;

/// visit(shape, O of its tree).
template <class Space, class Visit>
BACKDRIVE_INLINE void each_shape(Space& ws, const Visit& visit) {
  using Real = typename Space::Real;
  int root = -1;
  Vec3<Real> origin = zero3<Real>();  // of the world
  for (int k = 0; k < ws.contact.shape_count; ++k) {
    const int own = carrier_of(ws, k).root;
    if (own != root) origin = tree_origin(ws, own);
    root = own;
    visit(k, origin);
  }
}

/// Whether all shapes, in all lanes, are still within what the list allows them. O(shapes).
template <class Space>
BACKDRIVE_INLINE bool list_holds(Space& ws) {
  using Real = typename Space::Real;
  const Real zero = constant<Real>(0);
  auto holds = value_of(zero) <= value_of(zero);
  each_shape(
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
  const Real pushed = ws.dt * constant<Real>(kAllowedPush * kPush);
  each_shape(
      ws, [&](int k, const Vec3<Real>& origin) __attribute__((always_inline)) {
        const ShapeBall<Real>& ball = space.balls[k];
        const Real motion = ball.reach - ball.still_reach;
        space.listed[k] = {ball.centre, origin, ball.reach + pushed + motion * constant<Real>(kAllowedMotion)};
      });
  const auto none = [](const Vec3<Real>&) __attribute__((always_inline)) {
    return constant<Real>(0);
  };
  space.near_count = 0;
  for (int k = 0; k < space.pair_count; ++k) {
    const ContactPair& pair = space.pairs[k];
    const ListedShape<Real>&a = space.listed[pair.a], &b = space.listed[pair.b];
    const Real reach = a.allowance + b.allowance, radius = space.balls[pair.a].extent;
    Vec3<Real> apart = a.centre - b.centre;
    if (!space.plans[k].own) apart += a.origin - b.origin;
    const auto lanes = space.plans[k].plane
                           ? !(value_of(dot(plane_normal(ws, pair.b), apart)) > value_of(radius + reach))
                           : may_meet(radius, space.balls[pair.b].extent, apart, reach, none);
    if (any(lanes)) space.near_pairs[space.near_count++] = k;
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
  space.lists_pairs = space.pair_count > kUnlistedPairsPerShape * space.shape_count;
  space.near_count = space.lists_pairs ? -1 : space.pair_count;
  for (int k = 0; k < space.near_count; ++k) space.near_pairs[k] = k;
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
