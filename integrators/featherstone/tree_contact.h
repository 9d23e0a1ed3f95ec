#pragma once
// Contact on trees: the working set as contact/space.h wants it, the linear solves of contact/solve.h, and the step.
#include "integrators/contact/solve.h"
#include "integrators/featherstone/middle.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// The factors of M̃ + Σ θ Jᵀ K J for one degree of freedom, as DofScratch has those of M̃.
template <class Real>
struct BlockFactors {
  Spatial<Real> UD;
  Real inverse;
  Real x;
};

/// A degree of freedom of a rollout with contact: x holds D⁻¹ r, then Δv.
template <class Real>
struct alignas(kAlignment<Real>) ContactDof : DofScratch<Real> {
  Real qdd;        ///< of all but contact
  Real increment;  ///< what D has beside the inertias
  BlockFactors<Real> with_blocks;
};
/// And of its adjoint: x holds right-hand sides and solutions, at last W of (A7).
template <class Real>
struct alignas(kAlignment<Real>) ContactAdjointDof : ContactDof<Real> {
  Real kick;        ///< Δv
  Real w;           ///< (A4)
  Real smooth_bar;  ///< cotangent of v_s

  /// w Δv, for what resists the solve of contact: implicit joint forces and armature.
  BACKDRIVE_INLINE Real resisted() const { return w * kick; }
};

/// A link of a rollout with contact, for its shapes: others leave what it adds as it is.
template <class Real>
struct ContactLink : RolloutLink<Real> {
  Spatial<Real> v;
  Pose<Real> pose;

  BACKDRIVE_INLINE void keep(const Link& link, const Motion<Real>& m, bool) {
    if (!link.touches) return;
    v = m.v;
    pose.axes = m.axes;
    pose.origin = m.origin;
  }
};

template <class Layout>
BACKDRIVE_INLINE contact::Carrier carrier_of(const Workspace<Layout>& ws, int shape) {
  const ContactShape& s = ws.contact.shapes[shape];
  return {s.link, s.root, s.fixed};
}
template <class Layout>
BACKDRIVE_INLINE const auto& pose_of(const Workspace<Layout>& ws, int link) {
  return ws.link[link].pose;
}
template <class Layout>
BACKDRIVE_INLINE const auto& pivot_of(const Workspace<Layout>& ws, int link) {
  return ws.link[link].pose.origin;
}
template <class Layout>
BACKDRIVE_INLINE const auto& velocity_of(const Workspace<Layout>& ws, int link) {
  return ws.link[link].v;
}
template <class Layout>
BACKDRIVE_INLINE const auto& start_of(const Workspace<Layout>& ws, int link) {
  return velocity_of(ws, link);
}
template <class Layout>
BACKDRIVE_INLINE auto mass_of(const Workspace<Layout>& ws, int link) {
  return ws.constants[link].mass;
}
/// Of bodies that fly alone contact is solved with the inertia that half a turn leads to, as it has shapes there
/// ((C8) of docs/contact.md): the impulse is then that of a body on its way, and what rolls keeps its spin whatever its
/// moments. Of links, whose inertias are those of all that hangs on them, the start's counts.
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
  return contact::half_turn(ws, link, zero3<Real>()).turned(J) - J;
}
/// Where O of a tree is in the world.
template <class Layout>
BACKDRIVE_INLINE Vec3<typename Layout::Real> tree_origin(const Workspace<Layout>& ws, int root) {
  using Real = typename Layout::Real;
  if (root < 0) return zero3<Real>();
  const auto& c = ws.constants[root];
  const Vec3<Real> at = broadcast<Real>(c.translation);
  if (ws.links[root].type != JointType::free) return at;
  const Real* const q = ws.q + ws.links[root].q;
  return plus_times(at, broadcast<Real>(c.rotation), Vec3<Real>{q[4], q[5], q[6]});
}

/// Whether a link's twists are asked for: by its shapes, and in adjoints by all.
template <class Layout>
BACKDRIVE_INLINE bool twists_wanted(const Workspace<Layout>& ws, int link) {
  return kIsAdjoint<Layout> || ws.links[link].touches;
}

/// Where the factors of M̃ + Σ θ Jᵀ K J are.
struct FactorsWithBlocks {
  template <class Dof>
  BACKDRIVE_INLINE auto& operator()(Dof& dof) const {
    return dof.with_blocks;
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
    return [dof = ws.dof + ws.links[i].v](int k) __attribute__((always_inline)) {
      return JointForce<Real>{constant<Real>(0), dof[k].increment};
    };
  }
  BACKDRIVE_INLINE auto& factors(typename Layout::Dof& dof) const { return dof.with_blocks; }
};

/// The root-to-leaves half of a solve with blocks, of what is added to a motion that has the couplings' efforts; their
/// f into now[].*f. `anew`: the blocks are others than those of the last such solve.
template <class Layout, class Keep, class Visit>
BACKDRIVE_HD void solve_coupled_with_blocks(Workspace<Layout>& ws, bool anew,
                                            typename Layout::Real CouplingStep<typename Layout::Real>::*f,
                                            const Keep& keep, const Visit& visit) {
  solve_uncoupled(ws, FactorsWithBlocks{});
  if (anew) respond(ws, FactorsWithBlocks{}, ws.coupling.with_blocks);
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
        ws, FactorsWithBlocks{},
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
        ws, FactorsWithBlocks{}, [](auto&, const Real&) __attribute__((always_inline)){},
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

/// (1)-(3), (C1): q̈ of all but contact into dof[].qdd, the twists with v_s of the links; visit(link, δ) of q̈.
template <class Layout, class Visit>
BACKDRIVE_HD void smooth_motion(Workspace<Layout>& ws, const Visit& visit) {
  using Real = typename Layout::Real;
  solve_step(
      ws, &Layout::Dof::qdd, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
        if (twists_wanted(ws, i)) ws.contact.link[i].smooth = ws.link[i].v + delta * ws.dt;
        visit(i, delta);
      });
}

/// (C1)-(C7), after smooth_motion: what contact adds to the velocity into dof[].*kick; visit(link, its twist). False:
/// nothing is in reach of anything, and nothing was written.
template <class Layout, class Kick, class Visit>
BACKDRIVE_HD bool contact_kick(Workspace<Layout>& ws, Kick kick, const Visit& visit) {
  using Real = typename Layout::Real;
  if (!contact::solve_contacts(ws, TreeSolver<Layout>{ws})) return false;
  contact::load_last_step(ws);
  articulate_system(ws, SystemWithBlocks<Layout>{ws});
  const auto keep = [kick](auto& dof, const Real& x) __attribute__((always_inline)) {
    dof.*kick = x;
  };
  if (is_coupled(ws)) {
    solve_coupled_with_blocks(ws, true, &CouplingStep<Real>::kick, keep, visit);
  } else {
    solve_outwards_with(ws, FactorsWithBlocks{}, keep, visit);
  }
  return true;
}

/// (1)-(4) and (C1)-(C7): q̈ of all but contact into dof[].qdd, and what contact adds to the velocity into dof[].x,
/// where there are contacts.
template <class Layout>
BACKDRIVE_HD void forward_dynamics_with_contact(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  const auto nothing = [](int, const Spatial<Real>&) __attribute__((always_inline)){};
  smooth_motion(ws, nothing);
  contact_kick(ws, &Layout::Dof::x, nothing);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
