#pragma once
// The cotangents that a step hands on, and what several of its sweeps do with them.
#include "integrators/featherstone/middle.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Whose bias forces a sweep (8) takes the cotangents through: those of a step, or the second and the first of (24).
enum class Sweep { whole, middle, start };

/// Cotangents that one step produces or passes on, all of the running step.
template <class Layout>
struct StepBar {
  using Real = typename Layout::Real;
  Real *q, *qd;       ///< in: of q⁺ and q̇⁺; out: of q and q̇
  const Real* rates;  ///< what qd is the cotangent of in a sweep (8): q̇ or z
  Sweep sweep = Sweep::whole;
  typename Layout::ControlBar control;  ///< out: of the control
  LinkGradient<Real>* constants;        ///< null: nobody asked for parameters
  Vec3<Real>* gravity;                  ///< likewise
  ShapeGradient<Real>* shapes;          ///< likewise; with contact only
  CouplingConstants<Real>* couplings;   ///< likewise
  Real* ratios;                         ///< likewise
  Real* reported;                       ///< with contact only: of what moved q to q⁺; out: of what moved it to q
  Real* ways;                           ///< with contact only, [Link::way]: of μ; out: of μ⁻
  Vec3<Real>* pair_forces;              ///< in, with contact only: of the pairs' forces; null: nobody asked

  BACKDRIVE_INLINE bool wants_parameters() const { return Layout::parameters && constants; }
  /// Of reported_of() the working set.
  BACKDRIVE_INLINE Real* before() const { return Layout::contact ? reported : qd; }
  BACKDRIVE_INLINE Real& mass(int link) const { return constants[link].mass; }
};

/// gradient.inertia −= x yᵀ, of the six stored numbers of J in xᵀ J y; both in link axes.
template <class Real>
BACKDRIVE_INLINE void less_bilinear(const Vec3<Real>& x, const Vec3<Real>& y, Sym3<Real>& bar) {
  bar.xx -= x.x * y.x;
  bar.yy -= x.y * y.y;
  bar.zz -= x.z * y.z;
  bar.xy -= x.x * y.y + x.y * y.x;
  bar.xz -= x.x * y.z + x.z * y.x;
  bar.yz -= x.y * y.z + x.z * y.y;
}

/// The same of a form in world axes.
template <class Real>
BACKDRIVE_INLINE void less_form(const FormBar<Real>& form, const Mat3<Real>& axes, Sym3<Real>& bar) {
  const Vec3<Real> x = form * axes.cx, y = form * axes.cy, z = form * axes.cz;
  const Real two = constant<Real>(2);
  bar.xx -= dot(axes.cx, x);
  bar.yy -= dot(axes.cy, y);
  bar.zz -= dot(axes.cz, z);
  bar.xy -= two * dot(axes.cx, y);
  bar.xz -= two * dot(axes.cx, z);
  bar.yz -= two * dot(axes.cy, z);
}

/// Gradient with respect to a joint's placement, from Z: that of everything that moves with the joint.
template <class Real, class Const>
BACKDRIVE_PART void placement_adjoint(const Link& link, const LinkConstants<Const>& c, const Pose<Real>& parent,
                                      const Spatial<Real>& Z, LinkGradient<Real>& gradient) {
  Mat3<Real> axes;
  Vec3<Real> origin;
  placement(link, c, parent, axes, origin);
  gradient.rotation += transposed_times(axes, Z.ang - cross(origin, Z.lin));
  // A root's translation moves O along with it: the motion about O does not see it.
  if (link.parent >= 0) gradient.translation += transposed_times(parent.axes, Z.lin);
}

/// What several bodies that turn as one receive together, and about what their inertia is.
template <class Real>
struct CarriedBar {
  WholeBar<Real> whole;
  Vec3<Real> about;
  Real share;   ///< of a kilogram in the common centre of mass; 0 where nothing is known of that
  Real levers;  ///< 1; 0 where all have no mass, and no point that inertias could be about
};

/// What mass, com and inertia of one of them receive; returned is −∂/∂(its turns, shifts).
template <class Layout>
BACKDRIVE_PART Spatial<typename Layout::Real> adj_carried(const Workspace<Layout>& ws, int i,
                                                          const CarriedBar<typename Layout::Real>& of,
                                                          LinkGradient<typename Layout::Real>& gradient) {
  using Real = typename Layout::Real;
  const auto& c = ws.constants[i];
  const Pose<Real>& pose = ws.link[i].pose;
  const FormBar<Real>& form = of.whole.inertia;
  const Vec3<Real> com = plus_times(pose.origin, pose.axes, c.com), arm = com - of.about;
  const Vec3<Real> drawn = of.whole.com * of.share, by_arm = (arm * form.trace() - form * arm) * of.levers;
  const Vec3<Real> com_bar = (drawn + by_arm * constant<Real>(2)) * c.mass;
  gradient.mass -= of.whole.mass + dot(arm, drawn + by_arm);
  gradient.com -= transposed_times(pose.axes, com_bar);
  less_form(form, pose.axes, gradient.inertia);
  const Vec3<Real> turned = form.turning(rotated(pose.axes, c.inertia)) * constant<Real>(2);
  return {plus_cross(turned, com_bar, com), -com_bar};
}

/// To the parameters of a link's body, of those that are fixed to it, and of where they are.
template <class Layout>
BACKDRIVE_INLINE void add_to_carried(const Workspace<Layout>& ws, int carrier,
                                     const CarriedBar<typename Layout::Real>& of, const StepBar<Layout>& bar) {
  each_carried(
      ws.links, carrier, [&](int i) __attribute__((always_inline)) {
        const auto Z = adj_carried(ws, i, of, bar.constants[i]);
        for (int k = i; k != carrier; k = ws.links[k].parent) {
          placement_adjoint(ws.links[k], ws.constants[k], ws.link[ws.links[k].parent].pose, Z, bar.constants[k]);
        }
      });
}
/// Of inertia about the common centre of mass.
template <class Layout>
BACKDRIVE_PART void add_to_carried(const Workspace<Layout>& ws, int carrier,
                                   const WholeBar<typename Layout::Real>& whole, const StepBar<Layout>& bar) {
  if constexpr (Layout::parameters) {
    if (!bar.wants_parameters()) return;
    using Real = typename Layout::Real;
    const RigidInertia<Real> I = carried_inertia(ws, carrier);
    const Real zero = constant<Real>(0), one = constant<Real>(1), share = share_of_mass(I);
    const Real levers = select(value_of(share) > value_of(zero), one, zero);
    add_to_carried(ws, carrier, CarriedBar<Real>{whole, com_of(I), share, levers}, bar);
  }
}

/// Of the cotangents of a free_turn(): adds to T of its body, to its joint's q̇̄, and to what mass, com and inertia
/// receive, of all that is fixed to it. Returns what T of the link that carries a ball receives beside.
template <class Layout, class TurnBar>
BACKDRIVE_PART Vec3<typename Layout::Real> add_free_turn(Workspace<Layout>& ws, int i, const TurnBar& turn,
                                                         const StepBar<Layout>& bar, Vec3<typename Layout::Real>& T) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const Real half = constant<Real>(0.5);
  if constexpr (Layout::parameters) {
    if (bar.wants_parameters()) {
      const Real zero = constant<Real>(0), one = constant<Real>(1);
      WholeBar<Real> whole{zero3<Real>(), zero, {}};
      for (const auto& pair : turn.inertia) whole.inertia.add(pair.x, pair.y);
      if (link.type == JointType::ball) {
        add_to_carried(ws, i, CarriedBar<Real>{whole, ws.link[i].pose.origin, zero, one}, bar);
      } else {
        add_to_carried(ws, i, whole, bar);
      }
    }
  }
  T += turn.omega * half;
  if (link.type == JointType::ball) return link.parent < 0 ? zero3<Real>() : turn.held * -half;
  if (link.type == JointType::revolute) bar.qd[link.v] -= dot(ws.dof[link.v].S.ang, turn.held);
  return zero3<Real>();
}

/// μ of a link's tree.
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real middle_share_of(const Workspace<Layout>& ws, int i) {
  return ws.middle.share[root_of(ws.links, i)];
}

/// free_turn() of a link of an adjoint, whose angular velocity is by `shift` another.
template <class Layout>
BACKDRIVE_INLINE FreeTurn<typename Layout::Real> free_turn_of(
    const Workspace<Layout>& ws, int i, const typename Layout::Real* rates,
    const Vec3<typename Layout::Real>& shift = zero3<typename Layout::Real>()) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  const Vec3<Real> carrier = link.parent < 0 ? zero3<Real>() : ws.link[link.parent].v.ang;
  return free_turn(ws, link, ws.link[i].v.ang + shift, carrier, rates);
}

/// Of δ·(the couple of a link that spins, (12)), as add_free_turn().
template <class Layout>
BACKDRIVE_PART Vec3<typename Layout::Real> adj_free_turn(Workspace<Layout>& ws, int i,
                                                         const Vec3<typename Layout::Real>& delta,
                                                         const StepBar<Layout>& bar, Vec3<typename Layout::Real>& T) {
  if (bar.sweep == Sweep::middle) {
    const auto turn = free_turn_of(ws, i, bar.rates, ws.whip[i].spin).adj_correction_from(ws.whip[i].spin, delta);
    ws.whip[i].spin_bar = turn.shift;
    return add_free_turn(ws, i, turn, bar, T);
  }
  const auto turn = free_turn_of(ws, i, bar.rates);
  Vec3<typename Layout::Real> carried = add_free_turn(ws, i, turn.adj_correction(delta), bar, T);
  if (bar.sweep == Sweep::start) {
    const Vec3<typename Layout::Real> lost_bar = ws.whip[i].spin_bar * middle_share_of(ws, i);
    carried += add_free_turn(ws, i, turn.adj_lost(lost_bar), bar, T);
  }
  return carried;
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
