#pragma once
// What a step with contact works on: bodies and shapes as contact sees them, and what is kept per contact and body.
// docs/contact.md has the equations (C1)-(C7) and (A1)-(A13).
//
// One source for all integrators: `Space` is the working set of one. It has `dt`, `contact` (a ContactSpace) and
// `twists_turn`, whether its twists turn with the links, and there are
//
//   carrier_of(ws, contact shape)   what carries it
//   pose_of(ws, link)               axes, and origin from the O of its tree
//   velocity_of(ws, link)           twist about O with q̇
//   mass_of(ws, link)
//   tree_origin(ws, root)           O in the world; of the world (−1) its origin
//
// With featherstone O is where the root joint of a tree is; with semi_implicit every body is a tree, and O its com.
//
// A pair's points, normals and relative velocities are in world axes about the O of its first body's tree. A body of
// another tree has its twists there after `about`; its wrenches go back by `back`.
#include "integrators/contact/contact_force.h"
#include "integrators/contact/pairs.h"
#include "integrators/contact/shape_constants.h"
#include "integrators/contact/turn_friction.h"
#include "integrators/rollout/arena.h"
#include "integrators/rollout/broadcast.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

// Larger than what is worth inlining, here and in what follows.
#define BACKDRIVE_CALLED BACKDRIVE_HD __attribute__((noinline))

/// The predictor is solved twice, the second time with the drag that the first asks for (C5a).
constexpr int kPredictors = 2;

/// What carries a shape: link and the root of its tree, −1: the world; whether nothing moves it.
struct Carrier {
  int link, root;
  bool fixed;
};

/// What contact keeps of a link in a step.
template <class Real>
struct TouchLink {
  Spatial<Real> smooth;               ///< twist with v_s
  Spatial<Real> change[kPredictors];  ///< twists of Δv1 and Δv2
  Spatial<Real> load;                 ///< wrench of the contacts: impulses
  ArticulatedInertia<Real> block;
  bool touched;  ///< has a block and a load
};
/// Cotangents with respect to twists, with the sign of φ as F, A and V of (7), and what is left of the pose's.
template <class Real>
struct TouchLinkBar {
  Spatial<Real> v, smooth, w;
  Spatial<Real> change[kPredictors], w_predictor[kPredictors];
  Spatial<Real> turn;
};
template <class Real>
struct TouchAdjointLink : TouchLink<Real> {
  Spatial<Real> kick, w, w_predictor[kPredictors];  ///< twists
  TouchLinkBar<Real> bar;
};

/// One point of contact in a step.
template <class Real>
struct Contact {
  int point;  ///< of its pair
  Real depth;
  Vec3<Real> position, normal;
  LinearModel<Real> model;
  Vec3<Real> change[kPredictors];  ///< e: what the predictors change the relative velocity by
  Real drag;                       ///< c₂: of the second predictor and the force
  Vec3<Real> force;                ///< on the first body
};
template <class Real>
struct ContactBar {
  ContactState<Real> state;
  Vec3<Real> change[kPredictors];
  Real drag;
  LinearModelBar<Real> model;
  PairMaterial<Real> material;
};

/// And of a pair that resists turns.
template <class Real>
struct ContactTurn {
  TurnDrag<Real> drag[kPredictors];
  Vec3<Real> moment;  ///< on the first body
};
template <class Real>
struct ContactTurnBar {
  TurnRates<Real> rates;
  Vec3<Real> late;
  Vec3<Real> change[kPredictors];
  TurnDrag<Real> drag[kPredictors];
  TurnMaterial<Real> material;
};

/// A pair with points near each other, and its contacts.
template <class Real>
struct TouchingPair {
  int pair;
  int first, count;  ///< contacts
  Vec3<Real> shift;  ///< O of the first body's tree minus that of the second's
};

/// A ball about a shape, and how far from it the shape's points may touch something that rests.
template <class Real>
struct ShapeBall {
  Vec3<Real> centre;  ///< about O of its tree
  Real radius;        ///< negative: no ball holds it
  Real reach;         ///< margin, and what its points move by within the step at most
};

/// What of a pair no step changes.
struct PairPlan {
  bool plane;      ///< its second shape is one
  bool new_trees;  ///< not on the trees of the pair before
};

template <class Layout>
struct ContactSpace {
  using Real = typename Layout::Real;
  const ContactShape* shapes;
  const ContactPair* pairs;
  int shape_count, pair_count;
  int link_count;
  const Geometry<ScalarOf<Real>>* geometry;  ///< [contact shape]
  typename Layout::ShapeRows constants;      ///< [contact shape]: ShapeConstants
  typename Layout::Touch* link;              ///< [link_count]
  ShapeBall<Real>* balls;                    ///< [contact shape]
  PairPlan* plans;                           ///< [pair]
  ContactPoint<Real>* points;                ///< as many as a pair has
  Contact<Real>* contacts;
  ContactBar<Real>* bars;           ///< adjoint only
  ContactTurn<Real>* turns;         ///< [contact]; none where no shape resists turns
  ContactTurnBar<Real>* turn_bars;  ///< likewise; adjoint only
  TouchingPair<Real>* touching;
  int touching_count, contact_count;
  bool reported_apart = false;  ///< Workspace::reported is not q̇
};

// ---- pairs ----------------------------------------------------------------------------------------------------------

/// A twist about O of the second body's tree, about that of the first's.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> about(const Spatial<Real>& twist, const Vec3<Real>& shift) {
  return {twist.ang, plus_cross(twist.lin, twist.ang, shift)};
}
/// And a wrench the other way.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> back(const Spatial<Real>& wrench, const Vec3<Real>& shift) {
  return {plus_cross(wrench.ang, shift, wrench.lin), wrench.lin};
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real> velocity_at(const Spatial<Real>& twist, const Vec3<Real>& x) {
  return plus_cross(twist.lin, twist.ang, x);
}
template <class Real>
BACKDRIVE_INLINE Spatial<Real> wrench_at(const Vec3<Real>& x, const Vec3<Real>& force) {
  return {cross(x, force), force};
}

/// Combined constants: springs in series, dissipation that goes with each one's share of the depth, harmonic mean of
/// the friction (whose slope stays finite where one of them is smooth), means of width and creep.
template <class Real>
BACKDRIVE_INLINE PairMaterial<Real> pair_material(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b) {
  const Real half = constant<Real>(0.5), sum = a.stiffness + b.stiffness;
  return {a.stiffness * b.stiffness / sum, half * (a.width + b.width),
          (b.stiffness * a.dissipation + a.stiffness * b.dissipation) / sum,
          constant<Real>(2) * a.friction * b.friction / (a.friction + b.friction + constant<Real>(1e-12)),
          half * (a.creep + b.creep)};
}
template <class Real>
BACKDRIVE_INLINE void adj_pair_material(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b,
                                        const PairMaterial<Real>& m, const PairMaterial<Real>& bar,
                                        ShapeGradient<Real>& a_bar, ShapeGradient<Real>& b_bar) {
  const Real half = constant<Real>(0.5), two = constant<Real>(2), sum = a.stiffness + b.stiffness;
  const Real share_a = a.stiffness / sum, share_b = b.stiffness / sum, loss = bar.dissipation / sum;
  a_bar.stiffness += bar.stiffness * share_b * share_b + loss * (b.dissipation - m.dissipation);
  b_bar.stiffness += bar.stiffness * share_a * share_a + loss * (a.dissipation - m.dissipation);
  a_bar.dissipation += bar.dissipation * share_b;
  b_bar.dissipation += bar.dissipation * share_a;
  const Real slope = bar.friction / (a.friction + b.friction + constant<Real>(1e-12));
  a_bar.friction += slope * (two * b.friction - m.friction);
  b_bar.friction += slope * (two * a.friction - m.friction);
  a_bar.width += half * bar.width;
  b_bar.width += half * bar.width;
  a_bar.creep += half * bar.creep;
  b_bar.creep += half * bar.creep;
}

/// Of friction against turns: means, so that one shape alone may bring it, be the other as smooth as it likes.
template <class Real>
BACKDRIVE_INLINE TurnMaterial<Real> turn_material(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b) {
  const Real half = constant<Real>(0.5);
  return {half * (a.torsional_friction + b.torsional_friction), half * (a.rolling_friction + b.rolling_friction),
          constant<Real>(0.5 / kTurnLength) * (a.creep + b.creep)};
}
template <class Real>
BACKDRIVE_INLINE void adj_turn_material(const TurnMaterial<Real>& bar, ShapeGradient<Real>& own_bar) {
  const Real half = constant<Real>(0.5);
  own_bar.torsional_friction += half * bar.torsional;
  own_bar.rolling_friction += half * bar.rolling;
  own_bar.creep += constant<Real>(0.5 / kTurnLength) * bar.creep;
}

/// How far a pair's predictor blocks are raised: θ_i = 1 + m_i/m_j, so that two free bodies that stop each other are
/// predicted exactly, by their own masses. Massless bodies count with a share of the other's.
template <class Real>
struct BlockShares {
  static constexpr double floor = 1e-4;
  Real first, second;  ///< masses with their floor

  BACKDRIVE_INLINE BlockShares(const Real& a, const Real& b) {
    const Real least = constant<Real>(floor) * (a + b);
    first = a + least;
    second = b + least;
  }
  BACKDRIVE_INLINE Real of_first() const { return constant<Real>(1) + first / second; }
  BACKDRIVE_INLINE Real of_second() const { return constant<Real>(1) + second / first; }
  /// Adjoint: cotangents of both θ to those of the two masses.
  BACKDRIVE_INLINE void adj(const Real& of_first_bar, const Real& of_second_bar, Real& a_bar, Real& b_bar) const {
    const Real ratio = of_first_bar / second - of_second_bar * second / (first * first);    // of `first`
    const Real inverse = of_second_bar / first - of_first_bar * first / (second * second);  // of `second`
    const Real both = constant<Real>(floor) * (ratio + inverse);
    a_bar += ratio + both;
    b_bar += inverse + both;
  }
};

/// The two sides of a pair.
template <class Space>
struct PairSides {
  using Real = typename Space::Real;
  int a, b;  ///< contact shapes
  int i, j;  ///< links; j = −1: the world
  Vec3<Real> shift;
  bool apart;  ///< in two trees

  BACKDRIVE_INLINE PairSides(const Space& ws, const TouchingPair<Real>& touching)
      : a(ws.contact.pairs[touching.pair].a),
        b(ws.contact.pairs[touching.pair].b),
        i(carrier_of(ws, a).link),
        j(carrier_of(ws, b).link),
        shift(touching.shift),
        apart(j >= 0 && carrier_of(ws, a).root != carrier_of(ws, b).root) {}
  /// twist_of(link): relative, about O of the first body's tree.
  template <class TwistOf>
  BACKDRIVE_INLINE Spatial<Real> relative(const TwistOf& twist_of) const {
    const Spatial<Real> first = twist_of(i);
    if (j < 0) return first;
    return first - (apart ? about(twist_of(j), shift) : twist_of(j));
  }
  BACKDRIVE_INLINE Spatial<Real> to_second(const Spatial<Real>& wrench) const {
    return apart ? back(wrench, shift) : wrench;
  }
};

/// A pair whose points touch: its sides, its material, its blocks' shares.
template <class Space>
struct PairInStep : PairSides<Space> {
  using Real = typename Space::Real;
  int number;  ///< in the topology
  PairMaterial<Real> material;
  bool shared;         ///< both bodies move
  bool resists_turns;  ///< one of its shapes does
  Real theta_i, theta_j;

  BACKDRIVE_INLINE PairInStep(const Space& ws, const TouchingPair<Real>& touching)
      : PairSides<Space>(ws, touching),
        number(touching.pair),
        material(pair_material<Real>(ws.contact.constants[this->a], ws.contact.constants[this->b])),
        shared(!carrier_of(ws, this->a).fixed && !carrier_of(ws, this->b).fixed),
        resists_turns(ws.contact.shapes[this->a].resists_turns || ws.contact.shapes[this->b].resists_turns),
        theta_i(constant<Real>(1)),
        theta_j(constant<Real>(1)) {
    if (!shared) return;
    const BlockShares<Real> shares = masses(ws);
    theta_i = shares.of_first();
    theta_j = shares.of_second();
  }
  BACKDRIVE_INLINE TurnMaterial<Real> turning(const Space& ws) const {
    return turn_material<Real>(ws.contact.constants[this->a], ws.contact.constants[this->b]);
  }
  BACKDRIVE_INLINE BlockShares<Real> masses(const Space& ws) const {
    return {broadcast<Real>(mass_of(ws, this->i)), broadcast<Real>(mass_of(ws, this->j))};
  }
};

/// A shape in world axes, about O of its link's tree plus `shift`.
template <class Space>
BACKDRIVE_INLINE Shape<typename Space::Real> placed_shape(const Space& ws, int shape,
                                                          const Vec3<typename Space::Real>& shift) {
  const ShapeConstants<typename Space::Real> c = ws.contact.constants[shape];
  const int link = carrier_of(ws, shape).link;
  if (link < 0) return {{c.rotation, c.position - shift}, c.scale};
  const auto& pose = pose_of(ws, link);
  return {{pose.axes * c.rotation, plus_times(pose.origin, pose.axes, c.position) - shift}, c.scale};
}

/// `links`: how many the integrator has.
template <class Layout>
BACKDRIVE_HD void take_contact_arrays(const TopologyView& t, int links, bool adjoint, Arena& arena,
                                      ContactSpace<Layout>& space) {
  using Real = typename Layout::Real;
  space.shapes = t.contact_shapes;
  space.pairs = t.contact_pairs;
  space.shape_count = t.contact_shape_count;
  space.pair_count = t.contact_pair_count;
  space.link_count = links;
  space.link = arena.take<typename Layout::Touch>(links);
  space.balls = arena.take<ShapeBall<Real>>(t.contact_shape_count);
  space.plans = arena.take<PairPlan>(t.contact_pair_count);
  space.points = arena.take<ContactPoint<Real>>(t.most_points_of_pair);
  space.contacts = arena.take<Contact<Real>>(t.contact_point_count);
  space.bars = arena.take<ContactBar<Real>>(adjoint ? t.contact_point_count : 0);
  const int turns = t.resists_turns ? t.contact_point_count : 0;
  space.turns = arena.take<ContactTurn<Real>>(turns);
  space.turn_bars = arena.take<ContactTurnBar<Real>>(adjoint ? turns : 0);
  space.touching = arena.take<TouchingPair<Real>>(t.contact_pair_count);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
