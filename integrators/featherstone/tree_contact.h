#pragma once
// Contact on trees: the working set as contact/space.h wants it, the linear solves of contact/solve.h, and the step.
#include "integrators/contact/solve.h"
#include "integrators/contact/support.h"
#include "integrators/featherstone/apart_trees.h"
#include "integrators/featherstone/half_way.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// For one degree of freedom the factors of M̃ + Σ θ Jᵀ K J, as DofScratch has those of M̃. Beside its record, as its
/// place on a link beside the link's: where nothing touches these are as small as without contact.
template <class Real>
struct BlockFactors {
  Spatial<Real> UD;
  Real inverse;
  Real x;          ///< at last, in rollouts, Δv
  Real increment;  ///< what D has beside the inertias
};
/// A degree of freedom of an adjoint with contact, where kick and w are those of a step that is in_touch; x holds
/// right-hand sides and solutions, at last W of (A7).
template <class Real>
struct alignas(kRecordAlignment<Real>) ContactAdjointDof : AdjointDof<Real> {
  Real kick;  ///< Δv
  Real w;     ///< (A4)

  /// w Δv, for what resists the solve of contact: implicit joint forces and armature.
  BACKDRIVE_INLINE Real resisted() const { return w * kick; }
};

/// A link as contact sees it in a rollout, where ParameterLink has its motion in an adjoint.
template <class Real>
struct MovingTouchLink : contact::TouchLink<Real> {
  Spatial<Real> v;
  Pose<Real> pose;
};

template <class Layout>
BACKDRIVE_INLINE contact::Carrier carrier_of(const Workspace<Layout>& ws, int shape) {
  const ContactShape& s = ws.contact.shapes[shape];
  return {s.link, s.root, s.fixed};
}
template <class Layout>
BACKDRIVE_INLINE const auto& pose_of(const Workspace<Layout>& ws, int link) {
  return motion_of(ws, link).pose;
}
template <class Layout>
BACKDRIVE_INLINE const auto& pivot_of(const Workspace<Layout>& ws, int link) {
  return motion_of(ws, link).pose.origin;
}
/// What leads links half way: v_s.
template <class Layout>
BACKDRIVE_INLINE const auto& way_velocity_of(const Workspace<Layout>& ws, int link) {
  return ws.contact.link[link].smooth;
}
template <class Layout>
BACKDRIVE_INLINE const auto& velocity_of(const Workspace<Layout>& ws, int link) {
  return motion_of(ws, link).v;
}
/// a of (C3). Where links whip q̇ says nothing of where they are now, but of where the step before left them, (21), and
/// a slip that is half of that would point anywhere: by the share λ it is b, so that friction acts against v⁺.
template <class Layout>
BACKDRIVE_INLINE Spatial<typename Layout::Real> start_of(const Workspace<Layout>& ws, int link) {
  const Spatial<typename Layout::Real>& v = velocity_of(ws, link);
  if (!ws.middle.whips) return v;
  const auto& share = ws.middle.whip[root_of(ws.links, link)];
  return choose(value_of(share) > value_of(constant<typename Layout::Real>(0)),
                v + (ws.contact.link[link].smooth - v) * share, v);
}
template <class Layout>
BACKDRIVE_INLINE auto mass_of(const Workspace<Layout>& ws, int link) {
  return ws.constants[link].mass;
}
template <class Layout>
BACKDRIVE_INLINE const auto& gravity_of(const Workspace<Layout>& ws) {
  return ws.gravity;
}
template <class Layout>
BACKDRIVE_INLINE auto fall_of(const Workspace<Layout>& ws, int link) {
  return constant<typename Layout::Real>(1) - ws.constants[link].lift;
}
/// Trees on a free joint are held by nothing.
template <class Layout>
BACKDRIVE_INLINE int loose_root_of(const Workspace<Layout>& ws, int link) {
  if (link < 0) return -1;
  const int root = root_of(ws.links, link);
  return ws.links[root].type == JointType::free ? root : -1;
}
/// Of bodies that fly alone contact is solved with the inertia that half a turn leads to, as it has shapes there
/// ((C8) of docs/contact.md): the impulse is then that of a body on its way, and what rolls keeps its spin whatever its
/// moments. It is the whole half turn, however far: with the moments of another attitude an impulse that takes energy
/// out of those gives some to the body. Of links, whose inertias are those of all that hangs on them, the start's
/// counts.
template <class Layout>
BACKDRIVE_INLINE bool flies_alone(const Workspace<Layout>& ws, int link) {
  return ws.links[link].type == JointType::free && ws.links[link].leaf;
}
/// What that has more than the inertia at the start.
template <class Layout>
BACKDRIVE_INLINE Sym3<typename Layout::Real> kicked_inertia(const Workspace<Layout>& ws, int link) {
  using Real = typename Layout::Real;
  const Real o = constant<Real>(0);
  if (!flies_alone(ws, link)) return {o, o, o, o, o, o};
  const Sym3<Real> J = inertia_about_com(ws.link[link].I);
  return contact::HalfTurn<Real>::whole(velocity_of(ws, link).ang, ws.dt).turned(J) - J;
}
/// Where O of a tree is in the world, with position(root) of a free root in its joint's axes.
template <class Layout, class Position>
BACKDRIVE_INLINE Vec3<typename Layout::Real> tree_origin_at(const Workspace<Layout>& ws, int root,
                                                            const Position& position) {
  using Real = typename Layout::Real;
  if (root < 0) return zero3<Real>();
  const auto& c = ws.constants[root];
  const Vec3<Real> at = broadcast<Real>(c.translation);
  if (ws.links[root].type != JointType::free) return at;
  return plus_times(at, broadcast<Real>(c.rotation), position(root));
}
template <class Layout>
BACKDRIVE_INLINE Vec3<typename Layout::Real> root_position(const Workspace<Layout>& ws, int root) {
  return vector_at(ws.q + ws.links[root].q + 4);
}
/// At the start of the step.
template <class Layout>
BACKDRIVE_INLINE Vec3<typename Layout::Real> tree_origin(const Workspace<Layout>& ws, int root) {
  return tree_origin_at(
      ws, root, [&](int i) __attribute__((always_inline)) { return root_position(ws, i); });
}
/// By what part of half the step a link is on its way: μ, while it is.
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real way_of(const Workspace<Layout>& ws, int link) {
  return ws.middle.half_way ? ws.middle.share[link] : constant<typename Layout::Real>(0);
}
template <class Layout>
BACKDRIVE_INLINE Vec3<typename Layout::Real> root_position_on_way(const Workspace<Layout>& ws, int root) {
  const Vec3<typename Layout::Real> start = root_position(ws, root);
  if (!ws.middle.half_way) return start;
  const auto time = constant<typename Layout::Real>(0.5) * ws.dt * ws.middle.share[root];
  return start + vector_at(ws.middle.rates + ws.links[root].v + 3) * time;
}
template <class Layout>
BACKDRIVE_INLINE Vec3<typename Layout::Real> origin_on_way(const Workspace<Layout>& ws, int root) {
  return tree_origin_at(
      ws, root, [&](int i) __attribute__((always_inline)) { return root_position_on_way(ws, i); });
}

/// Of a link with shapes, where their balls are, and how it moves where contacts may be made of that.
template <class Layout>
BACKDRIVE_INLINE void keep_for_contact(Workspace<Layout>& ws, int link, const Motion<typename Layout::Real>& m) {
  contact::place_balls(ws, link, m, m.v);
  if constexpr (!kIsAdjoint<Layout>) {
    if (!keeps_for_contact(ws)) return;
    auto& to = ws.contact.link[link];
    to.v = m.v;
    to.pose.axes = m.axes;
    to.pose.origin = m.origin;
  }
}

/// Whether a link's twists are asked for where shapes are close: by its own, and in adjoints by all.
template <class Layout>
BACKDRIVE_INLINE bool twists_wanted(const Workspace<Layout>& ws, int link) {
  return keeps_for_contact(ws) && (kIsAdjoint<Layout> || ws.links[link].touches);
}

/// Where the factors of M̃ + Σ θ Jᵀ K J are.
template <class Layout>
struct FactorsWithBlocks {
  using Real = typename Layout::Real;
  const typename Layout::Dof* dof;
  BlockFactors<Real>* with_blocks;

  BACKDRIVE_INLINE explicit FactorsWithBlocks(const Workspace<Layout>& ws) : dof(ws.dof), with_blocks(ws.with_blocks) {}
  BACKDRIVE_INLINE BlockFactors<Real>& operator()(const typename Layout::Dof& of) const {
    return with_blocks[&of - dof];
  }
};

/// M̃ + Σ θ Jᵀ K J, with the loads of the links as right-hand side.
template <class Layout>
struct SystemWithBlocks {
  using Real = typename Layout::Real;
  Workspace<Layout>& ws;

  BACKDRIVE_INLINE void add_body(int i, Articulated<Real>& top) const {
    const auto& touch = ws.contact.link[i];
    if (!touch.touched) return;
    top.P = top.P - touch.load;
    top.IA += touch.block;
  }
  template <int>
  BACKDRIVE_INLINE auto joint(int i) const {
    return [factors = ws.with_blocks + ws.links[i].v](int k) __attribute__((always_inline)) {
      return JointForce<Real>{constant<Real>(0), factors[k].increment};
    };
  }
  BACKDRIVE_INLINE auto& factors(const typename Layout::Dof& dof) const { return FactorsWithBlocks<Layout>(ws)(dof); }
};

/// The root-to-leaves half of a solve with blocks, of what is added to a motion that has the couplings' efforts; their
/// f into now[].*f. `anew`: the blocks are others than those of the last such solve.
template <class Layout, class Keep, class Visit>
BACKDRIVE_HD void solve_coupled_with_blocks(Workspace<Layout>& ws, bool anew,
                                            typename Layout::Real CouplingStep<typename Layout::Real>::*f,
                                            const Keep& keep, const Visit& visit) {
  solve_uncoupled(ws, FactorsWithBlocks<Layout>(ws));
  if (anew) respond(ws, FactorsWithBlocks<Layout>(ws), ws.coupling.with_blocks);
  correct(ws, ws.coupling.with_blocks, CouplingLoad::nothing, f);
  hand_out(ws, keep, visit);
}

/// contact/solve.h's linear solves.
template <class Layout>
struct TreeSolver {
  using Real = typename Layout::Real;
  Workspace<Layout>& ws;

  BACKDRIVE_HD void factor_and_solve() const {
    articulate_system(ws, SystemWithBlocks<Layout>{ws});
    if (is_coupled(ws)) return outwards_coupled(true);
    outwards();
  }
  BACKDRIVE_HD void solve_again() const {
    solve_inwards_with(
        ws, FactorsWithBlocks<Layout>(ws),
        [&](int i, Spatial<Real>& force) __attribute__((always_inline)) {
          const auto& touch = ws.contact.link[i];
          if (touch.touched) force -= touch.load;
        },
        [](const auto&, const Real& carried) __attribute__((always_inline)) { return -carried; });
    if (is_coupled(ws)) return outwards_coupled(false);
    outwards();
  }

 private:
  BACKDRIVE_HD void outwards() const {
    solve_outwards_with(
        ws, FactorsWithBlocks<Layout>(ws), [](auto&, const Real&) __attribute__((always_inline)){},
        [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
          if (ws.contact.link[i].touched) ws.contact.link[i].change = delta;
        });
  }
  BACKDRIVE_CALLED void outwards_coupled(bool anew) const {
    solve_coupled_with_blocks(
        ws, anew, &CouplingStep<Real>::trial, [](auto&, const Real&) {},
        [&](int i, const Spatial<Real>& delta) {
          if (ws.contact.link[i].touched) ws.contact.link[i].change = delta;
        });
  }
};

/// Moves v_s of roots by what (C12) gives them, by their q̈; `sign`: 1, or −1 to take it away.
template <class Layout, class Solution>
BACKDRIVE_CALLED void add_rises(Workspace<Layout>& ws, Solution x, const typename Layout::Real& sign) {
  contact::each_loose_tree(ws, [&](int i) {
    typename Layout::Dof* const dof = ws.dof + ws.links[i].v;
    for (int k = 3; k < 6; ++k) dof[k].*x += dot(dof[k].S.lin, ws.contact.supports[i].rise) * (sign / ws.dt);
  });
}

/// (1)-(3), (C1): q̈ of all but contact into dof[].*x, the twists with v_s of the links, and the contacts; visit(link,
/// δ) of q̈. Done twice, to the same bits, where shapes come close. In the step that begins a motion q̈ of roots has the
/// rises of (C12), too.
template <class Layout, class Solution, class Visit>
BACKDRIVE_HD void smooth_motion(Workspace<Layout>& ws, Solution x, const Visit& visit) {
  using Real = typename Layout::Real;
  const bool sought = ws.contact.sought;
  if (sought && ws.watch.pair_count > 0) look_at_trees(ws);
  ws.contact.sought = sought && !ws.watch.apart;
  do {
    solve_step(
        ws, x, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
          if (ws.links[i].parent < 0) ws.contact.common = delta * ws.dt;
          if (ws.links[i].touches) contact::widen_balls(ws, i, delta * ws.dt);
          if (twists_wanted(ws, i)) ws.contact.link[i].smooth = velocity_of(ws, i) + delta * ws.dt;
          visit(i, delta);
        });
  } while (!trees_stayed_apart(ws, x) || !contact::find_contacts(ws, [&] {
    if (ws.middle.on) go_half_way(ws, x);
  }));
  ws.contact.sought = sought;
  ws.watch.apart = false;
  if (contact::begins_supported(ws)) {
    contact::support(ws);
    add_rises(ws, x, constant<Real>(1));
  }
}

/// (C1)-(C7), after smooth_motion, where something is in_touch: keep(dof, what contact adds to its velocity);
/// visit(link, its twist).
template <class Layout, class Keep, class Visit>
BACKDRIVE_HD void contact_kick(Workspace<Layout>& ws, const Keep& keep, const Visit& visit) {
  using Real = typename Layout::Real;
  if (!contact::solve_contacts(ws, TreeSolver<Layout>{ws})) return;
  contact::load_last_step(ws);
  articulate_system(ws, SystemWithBlocks<Layout>{ws});
  if (is_coupled(ws)) {
    solve_coupled_with_blocks(ws, true, &CouplingStep<Real>::kick, keep, visit);
  } else {
    solve_outwards_with(ws, FactorsWithBlocks<Layout>(ws), keep, visit);
  }
}

/// (1)-(4) and (C1)-(C7): q̈ of all but contact into dof[].x, and what contact adds to the velocity into
/// with_blocks[].x, where there are contacts.
template <class Layout>
BACKDRIVE_HD void forward_dynamics_with_contact(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  const auto nothing = [](int, const Spatial<Real>&) __attribute__((always_inline)){};
  const FactorsWithBlocks<Layout> factors(ws);
  smooth_motion(ws, &Layout::Dof::x, nothing);
  contact_kick(
      ws, [&](auto& dof, const Real& x) __attribute__((always_inline)) { factors(dof).x = x; }, nothing);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
