#pragma once
// Trees that are far from all that they may touch: their shapes are not looked at in that step, which is to the same
// bits what it would be if they were. docs/contact.md, "Out of reach".
//
// In no posture is a point of a tree's shapes further from its O than the links to it are long, its `span` s. With v
// the sum of the rates of what slides and ω that of what turns, no link has a twist about O of more than [ω; v + s ω],
// and the bound on the speed of its points in place_balls(), with its sums of magnitudes, is √3 v + (√3 + 3) s ω at
// most: a sum of joint rates, each by a weight that no step changes. Only trees without slides are watched: there O
// alone slides.
#include "engine/magnitude.h"
#include "integrators/contact/find_contacts.h"
#include "integrators/featherstone/whip.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Of more no list is made: to see that they are apart takes as long as bounds of their shapes.
constexpr int kMostWatchedPairs = 8;
/// For how many steps all shapes are looked at once a tree was not far enough.
constexpr int kStaysNear = 16;
/// √3 and √3 + 3, and what rounding may take of sums.
constexpr double kSlideWeight = 1.75, kTurnWeight = 4.75;

constexpr int kMostWatchedTrees = 2 * kMostWatchedPairs + 2;  ///< with those of the pair that is one too many

/// A tree that may touch something.
template <class Real>
struct alignas(kRecordAlignment<Real>) WatchedTree {
  Real span;    ///< s
  Real margin;  ///< greatest of its shapes'
  Real speed;   ///< bound on that of its points at the step's start
  int root;
  int first, end;  ///< of its rates
};
/// Two of them, or one and a shape of the world.
struct WatchedPair {
  int tree, other;  ///< watched trees; other −1: the world
  int shape;        ///< of the world
};

/// Where there is contact. Without pairs nothing is watched: where that would not pay, or something has no bound.
template <class Real>
struct TreeWatch {
  WatchedTree<Real>* trees;  ///< [tree_count]
  Real* weights;             ///< of their rates, by how much these may move points
  int* rates;                ///< their degrees of freedom, which themselves stand in the order of joints, not of trees
  WatchedPair pairs[kMostWatchedPairs];
  int tree_count, pair_count;
  int near;    ///< for so many steps more all shapes are looked at
  bool apart;  ///< no shape is looked at in this step
};

/// The watched tree of a root, which becomes one. Its span is yet to be found.
template <class Layout>
BACKDRIVE_HD int watch_tree(Workspace<Layout>& ws, int root) {
  using Real = typename Layout::Real;
  auto& watch = ws.watch;
  for (int n = 0; n < watch.tree_count; ++n) {
    if (watch.trees[n].root == root) return n;
  }
  WatchedTree<Real>& tree = watch.trees[watch.tree_count];
  const Real zero = constant<Real>(0);
  tree = {zero, zero, zero, root, 0, 0};
  return watch.tree_count++;
}

/// False: there are too many, something has no bound, or shapes of one tree may touch each other.
template <class Layout>
BACKDRIVE_HD bool list_watched_pairs(Workspace<Layout>& ws) {
  auto& watch = ws.watch;
  const auto& space = ws.contact;
  for (int k = 0; k < space.pair_count; ++k) {
    const contact::PairPlan& plan = space.plans[k];
    const int b = space.pairs[k].b;
    if (plan.own || (contact::is_ground(space.geometry[b].kind) && !plan.plane)) return false;
    const int tree = watch_tree(ws, plan.root_a), other = plan.root_b < 0 ? -1 : watch_tree(ws, plan.root_b);
    const WatchedPair pair{tree, other, other < 0 ? b : -1};
    int n = 0;
    const auto is_listed = [&](const WatchedPair& x) {
      return x.tree == pair.tree && x.other == pair.other && x.shape == pair.shape;
    };
    while (n < watch.pair_count && !is_listed(watch.pairs[n])) ++n;
    if (n == kMostWatchedPairs) return false;
    if (n == watch.pair_count) watch.pairs[watch.pair_count++] = pair;
  }
  return true;
}

/// Spans, margins and rates of the watched trees; false: one has slides. O(links + shapes).
template <class Layout>
BACKDRIVE_HD bool bound_trees(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  auto& watch = ws.watch;
  int rates = 0;
  for (int n = 0; n < watch.tree_count; ++n) {
    WatchedTree<Real>& tree = watch.trees[n];
    Real* const way = ws.middle.share;  // to the links' origins, which no step has begun to write to
    const int end = end_of_tree(ws, tree.root);
    for (int i = tree.root; i < end; ++i) {
      const Link& link = ws.links[i];
      if (link.type == JointType::prismatic) return false;
      const Vec3<Real> translation = broadcast<Real>(ws.constants[i].translation);
      way[i] = link.parent < 0 ? constant<Real>(0) : way[link.parent] + square_root(dot(translation, translation));
      for (int shape = ws.contact.first_shape[i]; shape >= 0; shape = ws.contact.balls[shape].next) {
        const contact::ShapeBall<Real>& ball = ws.contact.balls[shape];
        tree.span = maximum(tree.span, way[i] + square_root(dot(ball.place, ball.place)) + ball.extent);
        tree.margin = maximum(tree.margin, broadcast<Real>(ws.contact.constants[shape].margin));
      }
    }
    tree.first = rates;
    for (int i = tree.root; i < end; ++i) {
      const Link& link = ws.links[i];
      for (int k = 0; k < joint_size(link.type).nv; ++k) {
        const bool slides = k >= turning_dofs(link);
        watch.weights[rates] = slides ? constant<Real>(kSlideWeight) : tree.span * constant<Real>(kTurnWeight);
        watch.rates[rates++] = link.v + k;
      }
    }
    tree.end = rates;
  }
  return true;
}

/// Once per rollout, after plan_contacts(). Trees of a shape or two gain nothing by it.
template <class Layout>
BACKDRIVE_HD void watch_trees(Workspace<Layout>& ws) {
  auto& watch = ws.watch;
  watch.tree_count = watch.pair_count = watch.near = 0;
  watch.apart = false;
  const bool watched = list_watched_pairs(ws) && 2 * watch.pair_count < ws.contact.pair_count && bound_trees(ws);
  if (!watched) watch.pair_count = 0;
}

/// Bound on the speed of a tree's points with `rate`, a degree of freedom's. O(degrees of freedom).
template <class Layout, class Rate>
BACKDRIVE_INLINE typename Layout::Real greatest_speed(const Workspace<Layout>& ws,
                                                      const WatchedTree<typename Layout::Real>& tree,
                                                      const Rate& rate) {
  typename Layout::Real sum = constant<typename Layout::Real>(0);
  for (int n = tree.first; n < tree.end; ++n) sum += ws.watch.weights[n] * magnitude(rate(ws.watch.rates[n]));
  return sum;
}

/// Whether in some lane shapes of a pair may be in reach in this step, if its smooth motion adds no more than a tree's
/// speed and the push that bounds allow for.
template <class Layout>
BACKDRIVE_INLINE bool may_come_near(const Workspace<Layout>& ws, const WatchedPair& pair) {
  using Real = typename Layout::Real;
  const auto& watch = ws.watch;
  const auto reach_of = [&](const WatchedTree<Real>& tree) __attribute__((always_inline)) {
    return tree.span + tree.margin + ws.dt * (constant<Real>(3) * tree.speed + constant<Real>(contact::kPush));
  };
  const WatchedTree<Real>& tree = watch.trees[pair.tree];
  const Vec3<Real> origin = tree_origin(ws, tree.root);
  Real reach = reach_of(tree), gap;
  if (pair.other >= 0) {
    const WatchedTree<Real>& other = watch.trees[pair.other];
    const Vec3<Real> apart = origin - tree_origin(ws, other.root);
    reach += reach_of(other);
    gap = square_root(dot(apart, apart));
  } else {
    const contact::ShapeBall<Real>& shape = ws.contact.balls[pair.shape];
    const Vec3<Real> apart = origin - shape.centre;
    reach += broadcast<Real>(ws.contact.constants[pair.shape].margin);
    gap = ws.contact.geometry[pair.shape].kind == GeometryType::plane
              ? dot(contact::plane_normal(ws, pair.shape), apart)
              : square_root(dot(apart, apart)) - shape.extent;
  }
  return any(!(value_of(gap) > value_of(reach)));
}

/// Sets watch.apart for a step that begins.
template <class Layout>
BACKDRIVE_CALLED void look_at_trees(Workspace<Layout>& ws) {
  auto& watch = ws.watch;
  if (watch.near > 0) {
    --watch.near;
    return;
  }
  for (int n = 0; n < watch.tree_count; ++n) {
    watch.trees[n].speed = greatest_speed(
        ws, watch.trees[n], [&](int v) __attribute__((always_inline)) { return ws.qd[v]; });
  }
  for (int n = 0; n < watch.pair_count; ++n) {
    if (!may_come_near(ws, watch.pairs[n])) continue;
    watch.near = kStaysNear;
    return;
  }
  watch.apart = true;
}
/// After the smooth motion of a step, of which q̈ is in dof[].*x. False: it was more than look_at_trees() allows for,
/// and the step has to begin anew, in which all shapes are looked at.
template <class Layout, class Solution>
BACKDRIVE_CALLED bool trees_stayed_apart(Workspace<Layout>& ws, Solution x) {
  using Real = typename Layout::Real;
  auto& watch = ws.watch;
  if (!watch.apart) return true;
  for (int n = 0; n < watch.tree_count; ++n) {
    const WatchedTree<Real>& tree = watch.trees[n];
    const Real change = greatest_speed(
        ws, tree, [&](int v) __attribute__((always_inline)) { return ws.dt * (ws.dof[v].*x); });
    const Real most = tree.speed + constant<Real>(contact::kPush);
    if (!any(!(value_of(change) < value_of(most)))) continue;
    watch.near = kStaysNear;
    watch.apart = false;
    ws.contact.sought = true;
    return false;
  }
  return true;
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
