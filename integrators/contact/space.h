#pragma once
// What a step with contact works on: bodies and shapes as contact sees them, and what is kept per contact and body.
// docs/contact.md has the equations (C1)-(C9) and (A1)-(A9).
//
// One source for all integrators: `Space` is the working set of one. It has `dt`, `contact` (a ContactSpace) and
// `twists_turn`, whether its twists turn with the links, and there are
//
//   carrier_of(ws, contact shape)   what carries it
//   pose_of(ws, link)               axes, and origin from the O of its tree
//   velocity_of(ws, link)           twist about O with q̇
//   start_of(ws, link)              the same as contact takes it, for slips
//   pivot_of(ws, link)              from O: where its own turn leaves it in place
//   mass_of(ws, link)
//   flies_alone(ws, link)           whether no joint holds it to another or to the world
//   kicked_inertia(ws, link)        what resists contact beside what the solver has: a Sym3 of its turns about O
//   tree_origin(ws, root)           O in the world; of the world (−1) its origin
//
// and where twists turn, which is where trees can be solved for half way along the step (featherstone/half_way.h),
//
//   way_of(ws, link)                by what part of that its tree is there, 0 to 1, when contacts are sought
//   way_velocity_of(ws, link)       with what twist it came there
//   origin_on_way(ws, root)         as tree_origin, there
//   add_way_bar(ws, link, x)        its cotangent in an adjoint
//
// With featherstone O is where the root joint of a tree is; with semi_implicit every body is a tree, and O its com.
//
// A pair's points, normals and relative velocities are in world axes about the O of its first body's tree. A body of
// another tree has its twists there after `about`; its wrenches go back by `back`.
#include "integrators/contact/contact_force.h"
#include "integrators/contact/core_depth.h"
#include "integrators/contact/pairs.h"
#include "integrators/contact/shape_constants.h"
#include "integrators/contact/solve_limits.h"
#include "integrators/contact/springs.h"
#include "integrators/rollout/arena.h"
#include "integrators/rollout/broadcast.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// What carries a shape: link and the root of its tree, −1: the world; whether nothing moves it.
struct Carrier {
  int link, root;
  bool fixed;
};

/// What contact keeps of a link in a step.
template <class Real>
struct TouchLink {
  Spatial<Real> smooth;  ///< twist with v_s
  Spatial<Real> change;  ///< twist that the last solve gave it
  Spatial<Real> load;    ///< wrench of the contacts: right-hand side of a solve
  ArticulatedInertia<Real> block;
  Sym3<Real> kicked;  ///< kicked_inertia(), in every block
  bool touched;       ///< a point of it is in reach: has a block and a load
};
/// Cotangents with respect to twists, with the sign of φ as F, A and V of (7), and what is left of the pose's.
template <class Real>
struct TouchLinkBar {
  Spatial<Real> v, start, smooth, kick, w;  ///< v: by the half turn; start: as contact takes it
  Spatial<Real> way;                        ///< of v_s, by what leads half way
  Spatial<Real> turn;
};
template <class Real>
struct TouchAdjointLink : TouchLink<Real> {
  Spatial<Real> kick, w;  ///< twists of Δv and w
  TouchLinkBar<Real> bar;
};

/// A contact on one of its bodies, while a system M̃ x + Σ Jᵀ K J x = Σ Jᵀ (…) is solved. A vector of its unknowns is
/// known here by the twist of the body's point, and by its image under M̃ as the wrenches Σ Jᵀ that make it up.
template <class Real>
struct ContactSide {
  Spatial<Real> twist, wrench;          ///< of the solution so far
  Spatial<Real> residual;               ///< of the system, a wrench
  Spatial<Real> step, step_wrench;      ///< what the running Newton step adds to it
  Spatial<Real> search, search_wrench;  ///< direction of conjugate gradients
};

/// One point of contact in a step.
template <class Real>
struct Contact {
  int point;  ///< of its pair
  Vec3<Real> position;
  ContactState<Real> state;
  ContactBlock<Real> block;  ///< K at the solution so far
  Spatial<Real> wrench;      ///< on the first body
  Spatial<Real> impulse;     ///< that Newton's linear model gives it at the solution so far
  Vec3<Real> carried;        ///< of an adjoint in float32: the impulse that the step's last solve gave it
  Real bound;                ///< (C9): what friction's bound is held at, N; see ContactSpace::held
  bool idle;                 ///< apart in all lanes: K and residuals are zero
  bool still;                ///< was idle when the running Newton step began, which leaves its wrenches as they are
  ContactSide<Real> side[2];
};

/// What BiCGSTAB keeps of a side, all wrenches: the residual that it began with, the running one, the direction of its
/// steps and what that takes of the residual.
template <class Real>
struct KrylovSide {
  Spatial<Real> shadow, rest, search, image;
};
template <class Real>
struct KrylovContact {
  KrylovSide<Real> side[2];
};

/// A pair with points in reach: its sides, its law, its blocks' shares, its contacts.
template <class Real>
struct TouchingPair {
  int number;        ///< in the topology
  int first, count;  ///< contacts
  int a, b;          ///< contact shapes
  int i, j;          ///< links; j = −1: the world
  bool apart;        ///< in two trees
  bool moves[2];     ///< whether something moves i, j
  Vec3<Real> shift;  ///< O of the first body's tree minus that of the second's
  PairLaw<Real> law;
  Real turn_loss_bar;  ///< cotangent of the law's, from (A5) to (A6)
  Real theta[2];       ///< shares of the blocks of i and j
  Real sticking;       ///< what K_t is at most in Newton's steps in float32, see soften()
  Real eased;          ///< of an adjoint in float32: what part of K_t the blocks have, E of eased()

  BACKDRIVE_INLINE bool shared() const { return moves[0] && moves[1]; }
  /// Of a contact on i (0) or j (1), from the O of that body's tree.
  BACKDRIVE_INLINE Vec3<Real> arm(const Contact<Real>& c, int side) const {
    return side == 0 ? c.position : c.position + shift;
  }
  BACKDRIVE_INLINE int link(int side) const { return side == 0 ? i : j; }
};

/// A ball about a shape, or a capsule, and how far from it the shape's points may touch something that rests.
template <class Real>
struct alignas(kRecordAlignment<Real>) ShapeBall {
  Vec3<Real> centre;  ///< about O of its tree
  Real reach;         ///< margin, and what its points move by within the step at most
  Real own_reach;     ///< as seen from its tree's root: towards shapes of the same tree, if it meets_own
  Real lever;         ///< from O to the farthest point at most

  // What no step changes; vectors in the axes of the link, or of the world.
  Real radius;       ///< of the ball or capsule; negative: none holds it
  Real extent;       ///< from the centre to the farthest point
  Vec3<Real> place;  ///< of the centre
  Real still_reach;  ///< of what rests
  int next;          ///< shape on the same link, as ContactSpace::first_shape
  bool capsule;
  bool boxed;       ///< whether ContactSpace::box_axes has the axes of a box about it
  bool meets_own;   ///< whether it may touch shapes of its own tree
  Vec3<Real> axis;  ///< half as it is there

  Vec3<Real> half;  ///< from the centre to the middle of the capsule's end; zero of a ball
};

/// Of a tree that nothing holds what contacts bear of its weight when a motion begins (support.h). Also its cotangents.
template <class Real>
struct Support {
  Real mass;        ///< of the tree, kg
  Real weight;      ///< over g
  Real borne;       ///< Σ −N n·g
  Vec3<Real> rise;  ///< what its velocity begins with beside q̇, world axes
};

/// What of a pair no step changes.
struct PairPlan {
  bool plane;          ///< its second shape is one
  bool capsules;       ///< one of its shapes is one
  bool boxes;          ///< likewise with a box about it, and neither is boundless
  bool own;            ///< both are of one tree
  int root_a, root_b;  ///< of the trees of its shapes; −1: the world
};

/// A pair whose bounds meet in this step.
template <class Real>
struct MeetingPair {
  int number;          ///< in the topology
  MaskOf<Real> lanes;  ///< where they do
};

/// A shape when the list of near_pairs.h was made.
template <class Real>
struct ListedShape {
  Vec3<Real> centre;  ///< about O of its tree
  Vec3<Real> origin;  ///< that O
  Real allowance;     ///< what it may move by since, and reach for, before the list has to be made anew
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
  Spatial<Real> common;                      ///< as balls are placed and widened: of their tree's root the same twist
  int* first_shape;                          ///< [link]: of those on it; −1: none
  Mat3<Real>* box_axes;                      ///< [contact shape]: of the boxes about them
  PairPlan* plans;                           ///< [pair]
  ListedShape<Real>* listed;                 ///< [contact shape]: where lists_pairs
  int* near_pairs;                           ///< pairs to be looked at
  int near_count;                            ///< negative: they are yet to be found
  MeetingPair<Real>* meeting;                ///< [pair]
  int meeting_count;
  bool lists_pairs;            ///< whether near_pairs are others from time to time, or all
  ContactPoint<Real>* points;  ///< as many as a pair has
  Contact<Real>* contacts;
  ContactBar<Real>* bars;       ///< adjoint only
  KrylovContact<Real>* krylov;  ///< likewise
  TouchingPair<Real>* touching;
  int touching_count, contact_count;
  Support<Real>* supports;      ///< [link], at the roots of trees
  Support<Real>* support_bars;  ///< likewise, adjoint only
  bool begins = false;      ///< this step begins a motion of whose start positions and velocities are all that is known
  bool sought = true;  ///< whether contacts of this step are; an adjoint knows of steps in which nothing acted
  int close = 0;  ///< steps for which links still keep what contacts are made of: shapes were close (find_contacts)
  bool reported_apart = true;  ///< Workspace::reported may be another than q̇, as it may before a rollout's first step
  bool any_held = false;       ///< of the last step: whether friction's bound is held, and in which lanes
  MaskOf<Real> held;
  MaskOf<Real> shared;        ///< find_shared()
  bool any_unsolved = false;  ///< and 1 in the lanes where it was not solved
  Real unsolved;
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

/// The twist of a point, [ω; its velocity], and the wrench about O of a wrench at it.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> twist_at(const Spatial<Real>& twist, const Vec3<Real>& x) {
  return {twist.ang, velocity_at(twist, x)};
}
template <class Real>
BACKDRIVE_INLINE Spatial<Real> from_point(const Vec3<Real>& x, const Spatial<Real>& wrench) {
  return {plus_cross(wrench.ang, x, wrench.lin), wrench.lin};
}

/// Combined constants but for the core's depth and what turns take out: springs in series, dissipation that goes with
/// each one's share of the depth, harmonic mean of the friction (whose slope stays finite where one of them is smooth),
/// means of width and creep.
template <class Real>
BACKDRIVE_INLINE PairMaterial<Real> pair_material(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b,
                                                  const Real& dt) {
  const PairSprings<Real> k = pair_springs(a, b, dt);
  const Real half = constant<Real>(0.5), sum = k.a + k.b;
  return {k.a * k.b / sum,
          half * (a.width + b.width),
          (k.b * a.dissipation + k.a * b.dissipation) / sum,
          constant<Real>(2) * a.friction * b.friction / (a.friction + b.friction + constant<Real>(1e-12)),
          half * (a.creep + b.creep),
          constant<Real>(kNoCore),
          constant<Real>(0),
          constant<Real>(0)};
}
template <class Real>
BACKDRIVE_INLINE void adj_pair_material(const ShapeConstants<Real>& a, const ShapeConstants<Real>& b,
                                        const PairLaw<Real>& law, const PairMaterial<Real>& bar,
                                        ShapeGradient<Real>& a_bar, ShapeGradient<Real>& b_bar) {
  const PairMaterial<Real>& m = law.material;
  const PairSprings<Real> k = pair_springs(a, b, law.dt);
  const Real half = constant<Real>(0.5), two = constant<Real>(2), sum = k.a + k.b;
  const Real share_a = k.a / sum, share_b = k.b / sum, loss = bar.dissipation / sum;
  const Real more = loss * (b.dissipation - a.dissipation);
  adj_pair_springs<Real>(
      a, b, law.dt,
      {bar.stiffness * share_b * share_b + share_b * more, bar.stiffness * share_a * share_a - share_a * more}, a_bar,
      b_bar);
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

/// Whether two shapes have a second spring: not of one robot, whose parts often overlap.
template <class Space>
BACKDRIVE_INLINE bool has_core(const Space& ws, int a, int b) {
  const int root = ws.contact.shapes[a].root;
  return root < 0 || root != ws.contact.shapes[b].root;
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

/// How far the blocks of a pair are raised for the preconditioner: θ_i = 1 + m_i/m_j, so that it majorises the matrix,
/// and is exact for two free bodies that stop each other. Massless bodies count with a share of the other's.
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
};

/// A pair as this step finds it, without contacts yet.
template <class Space>
BACKDRIVE_HD TouchingPair<typename Space::Real> touching_pair(const Space& ws, int number,
                                                              const Vec3<typename Space::Real>& shift) {
  using Real = typename Space::Real;
  const ContactPair& pair = ws.contact.pairs[number];
  const Carrier first = carrier_of(ws, pair.a), second = carrier_of(ws, pair.b);
  const ShapeConstants<Real> a = ws.contact.constants[pair.a], b = ws.contact.constants[pair.b];
  TouchingPair<Real> t;
  t.number = number;
  t.first = ws.contact.contact_count, t.count = 0;
  t.a = pair.a, t.b = pair.b;
  t.i = first.link, t.j = second.link;
  t.apart = second.link >= 0 && first.root != second.root;
  t.moves[0] = !first.fixed, t.moves[1] = second.link >= 0 && !second.fixed;
  t.shift = shift;
  t.law = {pair_material<Real>(a, b, ws.dt), turn_material<Real>(a, b),
           ws.contact.shapes[pair.a].resists_turns || ws.contact.shapes[pair.b].resists_turns, false, ws.dt};
  if (has_core(ws, pair.a, pair.b)) {
    const CorePair<Real> core{ws.contact.geometry[pair.a], a.scale, ws.contact.geometry[pair.b], b.scale};
    t.law.material.core = core_depth(core);
    t.law.material.hardening = constant<Real>(core.hardening());
  }
  t.sticking = constant<Real>(1e30);
  for (const int side : {0, 1}) {
    if (!t.moves[side]) continue;
    const double most = flies_alone(ws, t.link(side)) ? SolveLimits<Real>::sticking_alone : SolveLimits<Real>::sticking;
    t.sticking = minimum(t.sticking, broadcast<Real>(mass_of(ws, t.link(side))) * constant<Real>(most));
  }
  t.theta[0] = t.theta[1] = constant<Real>(1);
  if (t.shared()) {
    const BlockShares<Real> shares(broadcast<Real>(mass_of(ws, t.i)), broadcast<Real>(mass_of(ws, t.j)));
    t.theta[0] = shares.of_first();
    t.theta[1] = shares.of_second();
  }
  return t;
}
/// twist_of(link): relative, about O of the first body's tree.
template <class Real, class TwistOf>
BACKDRIVE_INLINE Spatial<Real> relative(const TouchingPair<Real>& pair, const TwistOf& twist_of) {
  const Spatial<Real> first = twist_of(pair.i);
  if (pair.j < 0) return first;
  return first - (pair.apart ? about(twist_of(pair.j), pair.shift) : twist_of(pair.j));
}

/// O of the first of two trees, from that of the second, where contacts are sought.
template <class Space>
BACKDRIVE_INLINE Vec3<typename Space::Real> shift_on_way(const Space& ws, int root_a, int root_b) {
  if (root_a == root_b) return zero3<typename Space::Real>();
  if constexpr (Space::twists_turn) {
    return origin_on_way(ws, root_a) - origin_on_way(ws, root_b);
  } else {
    return tree_origin(ws, root_a) - tree_origin(ws, root_b);
  }
}

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

/// Half the turn of a link in a step, with the velocity at its start, about its pivot. Contact is evaluated where that
/// leads: the wrench and the linear path of a gap then agree with the gap's own path to O(Δt³), whatever point of the
/// body is the nearest. At the start they leave out how that point wanders, which feeds discs that wobble.
///
/// Of the turn φ = ½ Δt ω g, Cayley's, 1 + a [φ]× + ½ a [φ]×², a = 1/(1 + ¼ φ²). Where a step turns by more than half a
/// radian or so, its middle says no more than its start: g = 1/(1 + u²), u = (½ Δt ω)²/kMiddleTurn².
constexpr double kMiddleTurn = 0.3;  ///< rad

template <class Real>
struct HalfTurn {
  Vec3<Real> pivot, omega, phi;
  Real a, u, g, half;
  Real rest;  ///< of half the step

  /// None, in no time.
  BACKDRIVE_INLINE HalfTurn() : pivot(zero3<Real>()), omega(pivot), phi(pivot) {
    a = g = rest = constant<Real>(1);
    u = half = constant<Real>(0);
  }
  /// `left`: of half the step, the rest being turned already.
  BACKDRIVE_INLINE HalfTurn(const Vec3<Real>& at, const Vec3<Real>& velocity, const Real& dt, const Real& left)
      : HalfTurn(at, velocity, dt, left,
                 dot(velocity, velocity) * (dt * dt) * constant<Real>(0.25 / (kMiddleTurn * kMiddleTurn))) {}
  /// However far it is, g = 1.
  static BACKDRIVE_INLINE HalfTurn whole(const Vec3<Real>& velocity, const Real& dt) {
    return {zero3<Real>(), velocity, dt, constant<Real>(1), constant<Real>(0)};
  }
  BACKDRIVE_INLINE Vec3<Real> turned(const Vec3<Real>& x) const {
    const Vec3<Real> first = cross(phi, x);
    return x + (first + cross(phi, first) * constant<Real>(0.5)) * a;
  }
  BACKDRIVE_INLINE Vec3<Real> turned_back(const Vec3<Real>& x) const {
    const Vec3<Real> first = cross(phi, x);
    return x + (cross(phi, first) * constant<Real>(0.5) - first) * a;
  }
  BACKDRIVE_INLINE ShapePose<Real> turned(const ShapePose<Real>& s) const {
    const Vec3<Real> arm = s.origin - pivot;
    return {{turned(s.axes.cx), turned(s.axes.cy), turned(s.axes.cz)}, s.origin + (turned(arm) - arm)};
  }
  /// J of a body that turns with it.
  BACKDRIVE_INLINE Sym3<Real> turned(const Sym3<Real>& J) const {
    const Real zero = constant<Real>(0), one = constant<Real>(1);
    return rotated(Mat3<Real>{turned(Vec3<Real>{one, zero, zero}), turned(Vec3<Real>{zero, one, zero}),
                              turned(Vec3<Real>{zero, zero, one})},
                   J);
  }
  /// What it moves a point by, linearly.
  BACKDRIVE_INLINE Vec3<Real> shift_of(const Vec3<Real>& x) const { return cross(phi, x - pivot); }

  /// Cotangent of φ from that of the turn of everything about the pivot, and of ω from that of φ.
  BACKDRIVE_INLINE Vec3<Real> adj_turned(const Vec3<Real>& turn_bar) const {
    return (turn_bar - cross(phi, turn_bar) * constant<Real>(0.5)) * a;
  }
  BACKDRIVE_INLINE Vec3<Real> adj_phi(const Vec3<Real>& phi_bar) const {
    const Real slope = half * half * half * u * g * g * constant<Real>(-4 / (kMiddleTurn * kMiddleTurn));
    return (phi_bar * (half * g) + omega * (slope * dot(omega, phi_bar))) * rest;
  }
  BACKDRIVE_INLINE Real adj_rest(const Vec3<Real>& phi_bar) const { return dot(phi_bar, omega) * (half * g); }

 private:
  BACKDRIVE_INLINE HalfTurn(const Vec3<Real>& at, const Vec3<Real>& velocity, const Real& dt, const Real& left,
                            const Real& fading)
      : pivot(at), omega(velocity), u(fading), rest(left) {
    const Real one = constant<Real>(1);
    half = constant<Real>(0.5) * dt;
    g = one / (one + u * u);
    phi = omega * (half * g * rest);
    a = one / (one + constant<Real>(0.25) * dot(phi, phi));
  }
};

/// Of a link of which nothing is turned yet, about O of its tree plus `shift`.
template <class Space>
BACKDRIVE_INLINE HalfTurn<typename Space::Real> half_turn(const Space& ws, int link,
                                                          const Vec3<typename Space::Real>& shift) {
  return {pivot_of(ws, link) - shift, velocity_of(ws, link).ang, ws.dt, constant<typename Space::Real>(1)};
}

/// A shape, about O of its link's tree plus `shift`, where its link is and after the half turn of that. What the world
/// carries stays.
template <class Real>
struct TurningShape {
  int link;
  HalfTurn<Real> turn;
  Spatial<Real> way;  ///< what has moved it since the start of the step: a twist by time
  Shape<Real> start, end;

  /// What both move a point by, linearly.
  BACKDRIVE_INLINE Vec3<Real> shift_of(const Vec3<Real>& x) const { return turn.shift_of(x) + velocity_at(way, x); }
};
template <class Space>
BACKDRIVE_INLINE TurningShape<typename Space::Real> turning_shape(const Space& ws, int shape,
                                                                  const Vec3<typename Space::Real>& shift) {
  using Real = typename Space::Real;
  const int link = carrier_of(ws, shape).link;
  const Shape<Real> start = placed_shape(ws, shape, shift);
  const Spatial<Real> none = zero6<Real>();
  if (link < 0) return {link, HalfTurn<Real>(), none, start, start};
  if constexpr (Space::twists_turn) {
    const Real way = way_of(ws, link);
    const Spatial<Real>& v = velocity_of(ws, link);
    const HalfTurn<Real> turn(pivot_of(ws, link) - shift, v.ang, ws.dt, constant<Real>(1) - way);
    const Spatial<Real> moved = about(way_velocity_of(ws, link), shift) * (turn.half * way);
    return {link, turn, moved, start, {turn.turned(start.pose), start.scale}};
  } else {
    const HalfTurn<Real> turn = half_turn(ws, link, shift);
    return {link, turn, none, start, {turn.turned(start.pose), start.scale}};
  }
}

/// What contacts of a shape dissipate as it turns, s/m, by the velocity of a step's end (α_φ of force_law.h), as d₀ and
/// d₁ of a step know its depth the worse the further it turns:
///
///   (C11) c_t Δt/l · u/(1 + u)       u of (C8), l the largest half length
///
/// So no step that turns it far throws it back by more than some l/c_t a step. Spheres have none, as a turn
/// about their middle changes nothing.
constexpr double kTurnLoss = 10;  ///< c_t
template <class Real>
struct TurnLoss {
  Vec3<Real> weights;  ///< ∂l/∂scale
  Real value, by_length;
  Vec3<Real> by_omega;

  BACKDRIVE_INLINE TurnLoss(const TurningShape<Real>& s, const Geometry<ScalarOf<Real>>& geometry, const Real& dt)
      : weights(core_weights<Real>(geometry, s.end.scale, true)) {
    const Real one = constant<Real>(1), part = one / (one + s.turn.u);
    const Real length = one / (dot(weights, s.end.scale) + constant<Real>(1e-9));
    const Real most = constant<Real>(kTurnLoss) * dt * length;
    value = most * s.turn.u * part;
    by_length = -(value * length);
    by_omega = s.turn.omega *
               (most * part * part * s.turn.half * s.turn.half * constant<Real>(2 / (kMiddleTurn * kMiddleTurn)));
  }
  static BACKDRIVE_INLINE bool has(const TurningShape<Real>& s, const Geometry<ScalarOf<Real>>& geometry) {
    return s.link >= 0 && geometry.kind != GeometryType::sphere;
  }
};
template <class Real>
BACKDRIVE_INLINE Real turn_loss(const TurningShape<Real>& s, const Geometry<ScalarOf<Real>>& geometry, const Real& dt) {
  return TurnLoss<Real>::has(s, geometry) ? TurnLoss<Real>(s, geometry, dt).value : constant<Real>(0);
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
  space.first_shape = arena.take<int>(links);
  space.box_axes = arena.take<Mat3<Real>>(t.contact_shape_count);
  space.plans = arena.take<PairPlan>(t.contact_pair_count);
  space.listed = arena.take<ListedShape<Real>>(t.contact_shape_count);
  space.near_pairs = arena.take<int>(t.contact_pair_count);
  space.meeting = arena.take<MeetingPair<Real>>(t.contact_pair_count);
  space.points = arena.take<ContactPoint<Real>>(t.most_points_of_pair);
  space.contacts = arena.take<Contact<Real>>(t.contact_point_count);
  space.bars = arena.take<ContactBar<Real>>(adjoint ? t.contact_point_count : 0);
  space.krylov = arena.take<KrylovContact<Real>>(adjoint ? t.contact_point_count : 0);
  space.touching = arena.take<TouchingPair<Real>>(t.contact_pair_count);
  space.supports = arena.take<Support<Real>>(links);
  space.support_bars = arena.take<Support<Real>>(adjoint ? links : 0);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
