#pragma once
// What a step of trees works on: the records of links and degrees of freedom, what waits in sweeps, and the whole of
// it, with what others ask of that. workspace.h lays it out.
#include <algorithm>

#include "integrators/featherstone/coupling_space.h"
#include "integrators/featherstone/link_constants.h"
#include "integrators/featherstone/whip_share.h"
#include "integrators/rollout/arena.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {
template <class Layout>
struct ContactSpace;
}

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Where a link is, in world axes from O.
template <class Real>
struct Pose {
  Mat3<Real> axes;    ///< R: link axes in the world
  Vec3<Real> origin;  ///< p: link origin from O
};

/// And how it moves.
template <class Real>
struct Motion : Pose<Real> {
  Spatial<Real> v;  ///< velocity
  Spatial<Real> a;  ///< bias acceleration
};

/// Where it was at q⁻, and how q̇ moved it there (whip.h).
template <class Real>
struct Before : Pose<Real> {
  Spatial<Real> v;
};
template <class Real>
struct MotionAndBefore {
  Motion<Real> now;
  Before<Real> before;
};

/// Where it is at a step's start and at its end, but for (27), and how v_d moves it at the start (straight_flight.h);
/// from O, wherever that is.
template <class Real>
struct FlyingLink {
  Pose<Real> start, end;
  Spatial<Real> v;
};

/// Per link, for a rollout.
template <class Real>
struct alignas(kRecordAlignment<Real>) RolloutLink {
  RigidInertia<Real> I;  ///< of its body
  Spatial<Real> force;   ///< its body's bias force; in the adjoint, its force

  /// Of a motion what later sweeps need; `pose`: that is wanted, too.
  BACKDRIVE_INLINE void keep(const Motion<Real>&, bool) {}
};

/// For an adjoint, beside that.
template <class Real>
struct AdjointLink : RolloutLink<Real> {
  Spatial<Real> v;
  Spatial<Real> a;      ///< bias acceleration, then acceleration
  Spatial<Real> delta;  ///< δ of (6)

  BACKDRIVE_INLINE void keep(const Motion<Real>& m, bool) {
    v = m.v;
    a = m.a;
  }
};

/// And for an adjoint with gradients of parameters, or with contact. Where nobody asks for them, the twelve numbers of
/// a pose would push others out of the first cache.
template <class Real>
struct ParameterLink : AdjointLink<Real> {
  Pose<Real> pose;

  BACKDRIVE_INLINE void keep(const Motion<Real>& m, bool wanted) {
    AdjointLink<Real>::keep(m, wanted);
    if (!wanted) return;
    pose.axes = m.axes;
    pose.origin = m.origin;
  }
};

/// Per degree of freedom, indexed as velocities are.
template <class Real>
struct DofScratch {
  Spatial<Real> S;
  Spatial<Real> UD;  ///< U D⁻¹
  Real inverse;      ///< D⁻¹
  Real x;            ///< right-hand side of a solve, D⁻¹ r, solution: q̈ or, in the adjoint, w
};
template <class Real>
struct alignas(kRecordAlignment<Real>) RolloutDof : DofScratch<Real> {};
template <class Real>
struct alignas(kRecordAlignment<Real>) AdjointDof : DofScratch<Real> {
  Real qdd;
};
/// Either, with what Joint::displace makes of q. Packs compute it ahead, in a loop of its own where the wait for one
/// sine overlaps the next (Layout::ahead); a GPU thread has others to wait with, and keeps none of it.
template <class Real>
struct Ahead {
  Real displacement[2];
};
template <class Dof, class Real>
struct DofAhead : Ahead<Real>, Dof {};

/// What sweeps to the root sum over the subtree of a joint: IA and P of (2)-(3), and F, A and T of (7)-(8).
template <class Real>
struct Articulated {
  ArticulatedInertia<Real> IA;
  Spatial<Real> P;
};
template <class Real>
struct LinkBar {
  Spatial<Real> F, A, T;
};

/// Values that wait while a sweep walks a branch: last in, first out, since links are numbered depth first. A sweep to
/// the leaves leaves one at a link with several children, a sweep to the root one per branch that has been summed.
template <class X>
class Stack {
 public:
  BACKDRIVE_INLINE explicit Stack(void* block) : end_(static_cast<X*>(block)) {}
  BACKDRIVE_INLINE void push(const X& x) { *end_++ = x; }
  BACKDRIVE_INLINE X& pop() { return *--end_; }
  BACKDRIVE_INLINE const X& last() const { return end_[-1]; }

 private:
  X* end_;
};
/// Numbers of the largest that waits.
template <class Real>
constexpr int kStackNumbers = std::max(sizeof(Articulated<Real>), sizeof(MotionAndBefore<Real>)) / sizeof(Real);

/// Whether a layout is for an adjoint.
template <class Layout>
constexpr bool kIsAdjoint = requires {
  typename Layout::ControlBar;
};

/// Of a link of an adjoint, what the way back over (21) and (24) reads again.
template <class Real>
struct alignas(kRecordAlignment<Real>) WhipLink {
  TreeTurns<Real> turns;  ///< of a root; what follows, up to `force`, is set where its tree whips in some lane
  Pose<Real> pose;
  Spatial<Real> a;  ///< bias acceleration, without gravity
  Before<Real> before;
  Spatial<Real> force;         ///< what (21) adds to the body's bias force
  Spatial<Real> force_change;  ///< and (24), as what follows, where MiddleSpace::on
  Real half_way_bar;           ///< of a root: cotangent of μ by where contact is solved
  Real whip_bar;               ///< of a root: of λ by what contact makes of it
  Vec3<Real> spin;             ///< of a body that spins: what it loses of ω by itself up to the middle of a step, and
  Vec3<Real> spin_bar;         ///< that's cotangent, (24)
};
struct NoWhip {};
struct NoFlights {};

/// Of a step whose velocity terms are, in some tree and lane, those of its middle: (24). Arrays of one number a degree
/// of freedom but for the shares'.
template <class Real>
struct MiddleSpace {
  bool on = false;        ///< in this step
  bool half_way = false;  ///< and links are where contact is solved (half_way.h)
  bool whips = false;     ///< with contact: some tree does in this step, in some lane
  Real* share;            ///< [link]: μ, of a root; half way of all links
  Real* whip;             ///< with contact, [link]: λ, of a root
  Real* qdd;              ///< q̈₁
  Real* rates;            ///< z; where contact is sought half way v_s, and at last what moves q where something whips
};
/// What contact needs of a link half way, as it is at the step's start.
template <class Real>
struct LinkAtStart {
  Pose<Real> pose;
  Spatial<Real> v;
  RigidInertia<Real> I;
};
/// Of an adjoint.
template <class Real>
struct MiddleAdjointSpace : MiddleSpace<Real> {
  Real* rates_bar;  ///< cotangent of z
  Real* w;          ///< (6) of the first solve
  // With contact:
  LinkAtStart<Real>* links;  ///< [link]
  Spatial<Real>* S;          ///< as it is at the start
  Real* q_bar;               ///< as q: of where contact is solved
};

template <class Real>
struct BlockFactors;  // tree_contact.h
template <class Real>
struct TreeWatch;  // apart_trees.h

/// In place of contact::ContactSpace where there is no contact.
struct NoContact {
  static constexpr int close = 0, contact_count = 0;
};
struct NoWatch {};

/// The working set of one group of worlds. Nothing in it outlives a step but q, qd and the constants.
template <class Layout>
struct Workspace {
  using Real = typename Layout::Real;
  static constexpr bool has_contact = Layout::contact, has_ways = Layout::contact;  // rollout/shell.h
  static constexpr bool twists_turn = true;                                         // contact/space.h
  const Link* links;
  int link_count, nq, nv;
  typename Layout::Constants constants;  ///< [i]: LinkConstants
  Vec3<typename Layout::Real> gravity;
  typename Layout::Real dt;
  typename Layout::Real *q, *qd;
  typename Layout::Real* reported;   ///< with contact: reported_of() where that is not q̇
  typename Layout::Real* ways;       ///< with contact: [Link::way]: μ of the step that led here, or kUnknownWay
  typename Layout::Control control;  ///< [k]: Real
  bool lifted;                       ///< gravity compensation acts on some body
  bool poses = false;                ///< of all links are wanted: parameters have gradients
  typename Layout::Link* link;
  typename Layout::Dof* dof;
  std::conditional_t<kIsAdjoint<Layout>, WhipLink<Real>*, NoWhip> whip;
  std::conditional_t<kIsAdjoint<Layout>, MiddleAdjointSpace<Real>, MiddleSpace<Real>> middle;
  std::conditional_t<kIsAdjoint<Layout> && Layout::contact, FlyingLink<Real>*, NoFlights> flights;
  BlockFactors<Real>* with_blocks;  ///< with contact: of a degree of freedom
  void* stack;
  std::conditional_t<Layout::contact, contact::ContactSpace<Layout>, NoContact> contact;
  std::conditional_t<Layout::contact, TreeWatch<Real>, NoWatch> watch;
  std::conditional_t<Layout::coupled, CouplingSpace<Layout>, NoCouplings> coupling;
};

/// Whether links and degrees of freedom keep what contacts are made of: while shapes are close.
template <class Layout>
BACKDRIVE_INLINE bool keeps_for_contact(const Workspace<Layout>& ws) {
  return ws.contact.close > 0;
}
/// Whether something is in reach of something in this step, in some lane.
template <class Layout>
BACKDRIVE_INLINE bool in_touch(const Workspace<Layout>& ws) {
  return ws.contact.contact_count > 0;
}

/// The velocity that moved q here: in the last step or, before the first, as the state says.
template <class Layout>
BACKDRIVE_INLINE const typename Layout::Real* reported_of(const Workspace<Layout>& ws) {
  if constexpr (Layout::contact) {
    if (ws.contact.reported_apart) return ws.reported;
  }
  return ws.qd;
}

/// The root of a link's tree.
BACKDRIVE_INLINE int root_of(const Link* links, int i) {
  while (links[i].parent >= 0) i = links[i].parent;
  return i;
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
