#pragma once
// What a step and its adjoint work in: nothing in it outlives a step.
#include "integrators/rollout/arena.h"
#include "integrators/rollout/joint_forces.h"
#include "integrators/rollout/rows.h"
#include "integrators/semi_implicit/free_flight.h"
#include "integrators/semi_implicit/joint_rows.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template <class Real>
struct BodyScratch {
  BodyPose<Real> pose, predicted;       ///< at the start; and where the body would fly to without a kick
  Vec3<Real> lever;                     ///< from the link origin to the com, world axes
  Sym3<Real> inertia, inverse_inertia;  ///< about the com, world axes
  Spatial<Real> velocity;               ///< [ω; velocity of the com] at the start
  Spatial<Real> next;                   ///< after the kick
  Spatial<Real> predicted_velocity;     ///< after a free flight without a kick
  Spatial<Real> u;                      ///< right-hand side of a solve, then its result: in the adjoint, u of (8)
  BodyState<Real> after;                ///< the state at the end of the step
};

/// Cotangents of one body: turn and centre are left tangents, [ω; velocity of the com] at the start.
template <class Real>
struct BodyBar {
  Vec3<Real> turn, centre;
  Spatial<Real> velocity;
  Vec3<Real> predicted_turn, predicted_centre;
  Spatial<Real> predicted_velocity;
};

/// By row.
template <class Real>
struct JointScratch {
  JointGeometry<Real> geometry;
  /// Of joints that a spring, a limit or a drive acts on, by degree of freedom; of a ball its quaternion.
  Real position[4];
  Real error[kRows];    ///< at the predicted pose
  Real inertia[kRows];  ///< A: what resists a change of the row's rate beside the bodies
  Real target[kRows];   ///< t: the rate that A draws to; where A is zero, zero or any
  Real impulse[kRows];  ///< r: of the row at that rate
  Real start[kRows];    ///< rate at the start
  Real flown[kRows];    ///< rate after a free flight without a kick
  Real next[kRows];     ///< rate after the kick
  Real off[kRows];      ///< by how much that is off the target
  Real rate[kRows];     ///< right-hand side of a solve, then G x of its result x
};

template <class Real>
struct Block {
  Real at[kRows][kRows];
};
/// By row: 1/(1 + A S), S the pivot.
template <class Real>
struct Pivots {
  Real inverse[kRows];
};
/// Of 1 + A S: row_solve.h.
template <class Real>
struct Factors {
  Block<Real>* block;    ///< [elimination.block_count]
  Pivots<Real>* pivots;  ///< [joint_count]
};

/// Of one coupling in a step: couplings.h.
template <class Real>
struct CoupledStep {
  JointInput<Real> in;  ///< its position and rate at the start, and its controls
  Real ask, increment;  ///< of (16)
  Real push, push_bar;  ///< f of v⁺, and of u
  Real kick, kick_bar;  ///< f of Δv and of w; with contact only
  Real trial;           ///< f of solves on the way there
  JointInputBar<Real> in_bar;
  Real flown_bar;  ///< of its rate after a free flight
};
template <class Real>
struct RowRates {
  Real rate[kRows];
};
/// What couplings do to bodies and rows by pushing with one, and the matrix that says with how much they push.
template <class Real>
struct CouplingResponse {
  Spatial<Real>* bodies = nullptr;  ///< [coupling][body]
  RowRates<Real>* rows = nullptr;   ///< [coupling][joint]
  Real* matrix = nullptr;           ///< [coupling][coupling]
};

/// Cotangents of a body's pose: a left tangent, and its centre of mass.
template <class Real>
struct PoseBar {
  Vec3<Real> turn, centre;
};
/// Where couplings that hold hold their joints: held_couplings.h.
template <class Real>
struct HeldPoses {
  BodyPose<Real>* pose = nullptr;  ///< [body_count]: after the free flight that no contact bends
  PoseBar<Real>* bar = nullptr;    ///< [body_count]; of adjoints only
  Real* matrix = nullptr;          ///< [coupling][coupling]; likewise
};

template <class Real>
struct Workspace {
  BodyScratch<Real>* body;                  ///< [body_count]
  JointScratch<Real>* joint;                ///< [joint_count]
  Factors<Real> factors;                    ///< with the bodies' own masses
  BodyBar<Real>* bar;                       ///< [body_count]; of adjoints only
  CoupledStep<Real>* coupled = nullptr;     ///< [coupling]
  Spatial<Real>* coupled_bodies = nullptr;  ///< [body_count], with couplings
  CouplingResponse<Real> response = {};
  HeldPoses<Real> held = {};  ///< with couplings
};

/// Where the step of body i begins.
template <class Real>
BACKDRIVE_INLINE FlightStart<Real> flight_start(const System<Real>& system, const BodyState<Real>* state,
                                                const Workspace<Real>& ws, int i) {
  return {system.bodies[i], state[i].rotation, ws.body[i].pose.axes, system.dt};
}

/// Where joint j finds its bodies, which are at pose_of(body).
template <class Real, class PoseOf>
BACKDRIVE_INLINE JointGeometry<Real> geometry_of(const System<Real>& system, int j, const PoseOf& pose_of) {
  const Joint& joint = system.joints[j];
  const bool carried = joint.parent >= 0;
  const auto side = [&](int body) { return JointSide<Real>{pose_of(body), system.bodies[body].com}; };
  return joint_geometry(joint.type, system.constants[j], carried, side(carried ? joint.parent : joint.child),
                        side(joint.child));
}
/// At the start or at the predicted pose.
template <class Real>
BACKDRIVE_INLINE JointGeometry<Real> geometry_at(const System<Real>& system, const Workspace<Real>& ws, int j,
                                                 BodyPose<Real> BodyScratch<Real>::*pose) {
  return geometry_of(system, j, [&](int body) -> const BodyPose<Real>& { return ws.body[body].*pose; });
}

template <class Real>
BACKDRIVE_HD CouplingResponse<Real> take_response(const System<Real>& system, Arena& arena) {
  const int n = system.couplings.count;
  Spatial<Real>* const bodies = arena.take<Spatial<Real>>(n * system.body_count);
  RowRates<Real>* const rows = arena.take<RowRates<Real>>(n * system.joint_count);
  return {bodies, rows, arena.take<Real>(n * n)};
}

template <class Real>
BACKDRIVE_HD Factors<Real> take_factors(const System<Real>& system, Arena& arena) {
  Block<Real>* const block = arena.take<Block<Real>>(system.elimination.block_count);
  return {block, arena.take<Pivots<Real>>(system.joint_count)};
}

/// Takes a workspace for `system` from a block of memory, or only counts.
template <class Real>
BACKDRIVE_HD void take_arrays(const System<Real>& system, bool adjoint, Arena& arena, Workspace<Real>& ws) {
  ws.body = arena.take<BodyScratch<Real>>(system.body_count);
  ws.joint = arena.take<JointScratch<Real>>(system.joint_count);
  ws.factors = take_factors(system, arena);
  ws.bar = adjoint ? arena.take<BodyBar<Real>>(system.body_count) : nullptr;
  const int couplings = system.couplings.count;
  ws.coupled = arena.take<CoupledStep<Real>>(couplings);
  ws.coupled_bodies = arena.take<Spatial<Real>>(couplings > 0 ? system.body_count : 0);
  ws.response = take_response(system, arena);
  const int bodies = couplings > 0 ? system.body_count : 0;
  ws.held.pose = arena.take<BodyPose<Real>>(bodies);
  ws.held.bar = adjoint ? arena.take<PoseBar<Real>>(bodies) : nullptr;
  ws.held.matrix = adjoint ? arena.take<Real>(couplings * couplings) : nullptr;
}

/// Bytes of a workspace, aligned to 64.
template <class Real>
std::size_t workspace_bytes(const System<Real>& system, bool adjoint) {
  Arena counter(nullptr);
  Workspace<Real> none;
  take_arrays(system, adjoint, counter, none);
  return counter.used();
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
