#pragma once
// Bodies as contact sees them (contact/space.h), and what is kept of a step with contact: every body is a
// tree of its own, whose O is its centre of mass. So its twist there is [ω; velocity of the com], with which the step
// works anyhow, its O moves by the com and its twists do not turn with it.
#include "integrators/contact/support_adjoint.h"
#include "integrators/semi_implicit/step_adjoint.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// L D Lᵀ of a symmetric positive definite 6×6.
template <class Real>
struct SixFactors {
  Real below[6][6];  ///< L under its diagonal of ones
  Real inverse[6];   ///< D⁻¹
};

/// Of diag(J, m 1) + block.
template <class Real>
BACKDRIVE_INLINE void factor_six(const Sym3<Real>& J, const Real& m, const ArticulatedInertia<Real>& block,
                                 SixFactors<Real>& f) {
  const auto& [aa, al, ll] = block;
  Real A[6][6];
  A[0][0] = J.xx + aa.xx, A[1][1] = J.yy + aa.yy, A[2][2] = J.zz + aa.zz;
  A[1][0] = J.xy + aa.xy, A[2][0] = J.xz + aa.xz, A[2][1] = J.yz + aa.yz;
  A[3][0] = al.cx.x, A[3][1] = al.cx.y, A[3][2] = al.cx.z;
  A[4][0] = al.cy.x, A[4][1] = al.cy.y, A[4][2] = al.cy.z;
  A[5][0] = al.cz.x, A[5][1] = al.cz.y, A[5][2] = al.cz.z;
  A[3][3] = m + ll.xx, A[4][4] = m + ll.yy, A[5][5] = m + ll.zz;
  A[4][3] = ll.xy, A[5][3] = ll.xz, A[5][4] = ll.yz;
  for (int j = 0; j < 6; ++j) {
    f.inverse[j] = constant<Real>(1) / A[j][j];
    for (int i = j + 1; i < 6; ++i) f.below[i][j] = A[i][j] * f.inverse[j];
    for (int k = j + 1; k < 6; ++k) {
      for (int i = k; i < 6; ++i) A[i][k] -= f.below[i][j] * A[k][j];
    }
  }
}

/// A⁻¹ b
template <class Real>
BACKDRIVE_INLINE Spatial<Real> solve_six(const SixFactors<Real>& f, const Spatial<Real>& b) {
  Real x[6] = {b.ang.x, b.ang.y, b.ang.z, b.lin.x, b.lin.y, b.lin.z};
  for (int i = 1; i < 6; ++i) {
    for (int k = 0; k < i; ++k) x[i] -= f.below[i][k] * x[k];
  }
  for (int i = 5; i >= 0; --i) {
    x[i] = x[i] * f.inverse[i];
    for (int k = i + 1; k < 6; ++k) x[i] -= f.below[k][i] * x[k];
  }
  return {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
}

/// What M̃ + Σ θ Jᵀ K J is solved with: M + Σ θ Jᵀ K J of every body, and the rows' factors with that.
template <class Real>
struct BlockFactors {
  SixFactors<Real>* body;  ///< [body_count]
  Factors<Real> rows;
};
template <class Real>
struct MassesWithBlocks {
  static constexpr bool couples = true;
  const SixFactors<Real>* body;

  BACKDRIVE_INLINE Spatial<Real> operator()(int i, const Spatial<Real>& b) const { return solve_six(body[i], b); }
};

/// Rates G x of the solves of contact, by row.
template <class Real>
struct TouchRows {
  Real kick[kRows], w[kRows];
};

template <class R, bool Adjoint>
struct TouchLayout {
  using Real = R;
  using Touch = std::conditional_t<Adjoint, contact::TouchAdjointLink<R>, contact::TouchLink<R>>;
  using ShapeRows = const ShapeConstants<R>*;
};

/// The working set of contact, beside the step's own. `Adjoint`: with what an adjoint needs.
template <class R, bool Adjoint>
struct Touching {
  using Real = R;
  static constexpr bool twists_turn = false, adjoint = Adjoint;

  const System<R>& system;
  Workspace<R>& ws;
  R dt{};
  contact::ContactSpace<TouchLayout<R, Adjoint>> contact{};
  BlockFactors<R> with_blocks{};
  bool* alone = nullptr;             ///< [body_count]: no joint holds it in this step
  int* loose = nullptr;              ///< [body_count]: loose_root_of(), in the step that begins a motion
  Spatial<R>* start = nullptr;       ///< [body_count]: start_of()
  Spatial<R>* reported = nullptr;    ///< [body_count]: v_d after the step, of the links' origins
  TouchRows<R>* rows = nullptr;      ///< [joint_count]; adjoint only, as what follows
  Spatial<R>* smooth_bar = nullptr;  ///< [body_count]: cotangents of v_s
  Spatial<R>* kick_bar = nullptr;    ///< [body_count]: and of Δv
  Workspace<R> end{};                ///< bodies and their cotangents after the step
  CouplingResponse<R> response{};    ///< of couplings, with blocks
};

template <class R, bool Adjoint>
BACKDRIVE_INLINE contact::Carrier carrier_of(const Touching<R, Adjoint>& s, int shape) {
  const int body = s.contact.shapes[shape].body;
  return {body, body, body < 0};
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE bool keeps_for_contact(const Touching<R, Adjoint>&) {
  return true;
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE contact::ShapePose<R> pose_of(const Touching<R, Adjoint>& s, int body) {
  const BodyScratch<R>& b = s.ws.body[body];
  return {b.pose.axes, -b.lever};
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE Vec3<R> pivot_of(const Touching<R, Adjoint>&, int) {
  return zero3<R>();
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE const Spatial<R>& velocity_of(const Touching<R, Adjoint>& s, int body) {
  return s.ws.body[body].velocity;
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE const Spatial<R>& start_of(const Touching<R, Adjoint>& s, int body) {
  return s.start[body];
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE const R& mass_of(const Touching<R, Adjoint>& s, int body) {
  return s.system.bodies[body].mass;
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE bool flies_alone(const Touching<R, Adjoint>& s, int body) {
  return s.alone[body];
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE const Vec3<R>& gravity_of(const Touching<R, Adjoint>& s) {
  return s.system.gravity;
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE R fall_of(const Touching<R, Adjoint>& s, int body) {
  return weight_share(s.system.bodies[body]);
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE int loose_root_of(const Touching<R, Adjoint>& s, int body) {
  return body < 0 ? -1 : s.loose[body];
}
template <class R>
BACKDRIVE_INLINE void add_mass_bar(const StepBar<R>& bar, int body, const R& mass_bar, const R& lift_bar) {
  bar.bodies[body].mass += mass_bar;
  bar.bodies[body].lift += lift_bar;
}
/// M̃ is the start's: what it makes of an impulse is carried on whole.
template <class R, bool Adjoint>
BACKDRIVE_INLINE Sym3<R> kicked_inertia(const Touching<R, Adjoint>&, int) {
  const R o = constant<R>(0);
  return {o, o, o, o, o, o};
}
template <class R, bool Adjoint>
BACKDRIVE_INLINE Vec3<R> tree_origin(const Touching<R, Adjoint>& s, int body) {
  return body < 0 ? zero3<R>() : s.ws.body[body].pose.centre;
}

/// Of a body that flies alone ω changes by −J⁻¹ (φ × J ω) in half a turn, φ. Contact takes its velocities in the
/// middles of steps, by that late or early, where those of trees are: so its work is that along the way.
template <class R>
struct LateSpin {
  contact::HalfTurn<R> turn;
  Vec3<R> momentum, change;  ///< J ω, and J⁻¹ (φ × J ω)

  template <bool Adjoint>
  BACKDRIVE_INLINE LateSpin(const Touching<R, Adjoint>& s, int body)
      : turn(contact::half_turn(s, body, zero3<R>())),
        momentum(s.ws.body[body].inertia * turn.omega),
        change(s.ws.body[body].inverse_inertia * cross(turn.phi, momentum)) {}
};
/// Finds the bodies that no joint holds.
template <class R, bool Adjoint>
BACKDRIVE_INLINE void find_alone(Touching<R, Adjoint>& s) {
  for (int i = 0; i < s.system.body_count; ++i) s.alone[i] = true;
  for (int j = 0; j < s.system.joint_count; ++j) {
    const Joint& joint = s.system.joints[j];
    if (joint.type == JointType::free || !s.system.holds(j)) continue;
    s.alone[joint.child] = false;
    if (joint.parent >= 0) s.alone[joint.parent] = false;
  }
}

/// Finds the trees that no joint holds to the world: of each the body of the least number, which joints hand on.
template <class R, bool Adjoint>
BACKDRIVE_CALLED void find_loose(Touching<R, Adjoint>& s) {
  for (int i = 0; i < s.system.body_count; ++i) s.loose[i] = i;
  for (bool settled = false; !settled;) {
    settled = true;
    for (int j = 0; j < s.system.joint_count; ++j) {
      const Joint& joint = s.system.joints[j];
      if (joint.type == JointType::free || !s.system.holds(j)) continue;
      const int parent = joint.parent < 0 ? -1 : s.loose[joint.parent], child = s.loose[joint.child];
      if (parent == child) continue;
      settled = false;
      const int least = parent < child ? parent : child;
      s.loose[joint.child] = least;
      if (joint.parent >= 0) s.loose[joint.parent] = least;
    }
  }
}

/// Takes room for it from a block of memory, or only counts.
template <class R, bool Adjoint>
BACKDRIVE_HD void take_arrays(const TopologyView& t, Arena& arena, Touching<R, Adjoint>& s) {
  const int bodies = s.system.body_count;
  contact::take_contact_arrays(t, bodies, Adjoint, arena, s.contact);
  s.dt = s.system.dt;
  s.with_blocks.body = arena.take<SixFactors<R>>(bodies);
  s.with_blocks.rows = take_factors(s.system, arena);
  s.response = take_response(s.system, arena);
  s.alone = arena.take<bool>(bodies);
  s.loose = arena.take<int>(bodies);
  s.start = arena.take<Spatial<R>>(bodies);
  s.reported = arena.take<Spatial<R>>(bodies);
  if constexpr (Adjoint) {
    s.rows = arena.take<TouchRows<R>>(s.system.joint_count);
    s.smooth_bar = arena.take<Spatial<R>>(bodies);
    s.kick_bar = arena.take<Spatial<R>>(bodies);
    s.end.body = arena.take<BodyScratch<R>>(bodies);
    s.end.bar = arena.take<BodyBar<R>>(bodies);
  }
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
