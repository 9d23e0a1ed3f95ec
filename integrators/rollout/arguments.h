#pragma once
// What kernels are launched with, the same for all integrators.
#include "engine/real.h"
#include "engine/status.h"
#include "models/model.h"

namespace backdrive {
namespace contact {
template <class T>
struct Geometry;
}
namespace semi_implicit {
struct TablesView;
}

/// What the launches share. All arrays are [row][world] with rows `stride` numbers apart.
template <class T>
struct Launch {
  TopologyView topology;  ///< its links lie where the kernel runs
  /// Rows of what the integrator reads of a model; with one column, without gaps, where they are the same for all
  /// worlds.
  const T* constants;
  bool constants_per_world;
  T time_step;
  int steps;  ///< of this launch; of poses: states
  int stride;
  int worlds;          ///< real worlds; the rest of the last group is padding
  int first_step = 0;  ///< number of the first step in the whole rollout
  /// Counts steps before that, where the kernel runs; null: none. For launches that are repeated as they are.
  const int* steps_before = nullptr;
  const contact::Geometry<ScalarOf<T>>* geometry = nullptr;  ///< [contact shape], where the kernel runs
  /// Of models that semi_implicit steps, whose kernels run then; arrays where the kernel runs. Null: none.
  const semi_implicit::TablesView* bodies = nullptr;
  /// The rollout's first state begins a motion: contact may bear what rests there (contact/support.h).
  bool fresh = false;

  /// Whether step `number` of the rollout begins such a motion.
  BACKDRIVE_HD bool begins(int number) const { return fresh && number == 0; }
};

template <class T>
struct RolloutArguments {
  Launch<T> launch;
  const T *q0, *qd0;    ///< [nq], [nv] rows; may be q_end, qd_end
  const T* control;     ///< [steps·nu] rows; null: zero
  T *q, *qd;            ///< [(steps+1)·nq], [(steps+1)·nv] rows; null: keep nothing
  T *q_end, *qd_end;    ///< [nq], [nv] rows
  WorldStatus* status;  ///< [worlds]; worlds that have stopped in earlier steps stay where they are
  /// With contact only: the velocities that moved q to the first state, to each and to the last, [nv], [(steps+1)·nv]
  /// and [nv] rows; null: q̇, not asked for.
  const T* reported0 = nullptr;  ///< may be reported_end
  T *reported = nullptr, *reported_end = nullptr;
  /// Likewise State::ways() of the first state, of each and of the last, [way_count] rows a state; null: nothing is
  /// known, not asked for.
  const T* ways0 = nullptr;  ///< may be ways_end
  T *ways = nullptr, *ways_end = nullptr;
  T* contact = nullptr;  ///< with contact only, [steps·pairs·kContactRows] rows (PairReport); null: not asked for
  /// With contact only, [steps] rows, out: 0 in worlds where nothing can have acted in a step; null: not asked for.
  T* touched = nullptr;
};

/// Windows of the rollout at whose first state the gradient is cut or clipped; counted from its first step.
template <class T>
struct WindowArguments {
  int steps = 0;           ///< 0: the whole rollout is one
  bool cut = false;        ///< no gradient passes from a window to the one before
  T clip = 0;              ///< largest norm of what one contributes; 0: any
  int* clipped = nullptr;  ///< [worlds], raised by the number of windows that were scaled
};

/// A launch is the last part of the rollout not yet walked back.
template <class T>
struct RolloutAdjointArguments {
  Launch<T> launch;
  const T *q, *qd;   ///< as recorded
  const T* control;  ///< null: zero
  const WorldStatus* status;
  const T *q_bar, *qd_bar;          ///< seeds of every recorded state; null: none
  const T *q_end_bar, *qd_end_bar;  ///< seeds of the last state; null: none
  T *q0_bar, *qd0_bar;              ///< out
  T* control_bar;                   ///< out, [steps·nu] rows; null: not asked for
  T* constants_bar;                 ///< out, gradient rows; null: not asked for
  bool resume = false;              ///< a later part was walked before: the arrays that are out hold what it left
  WindowArguments<T> window{};      ///< with a clip, a launch holds whole windows
  /// With contact only, from here on: as recorded; null: q̇ of each state.
  const T* reported = nullptr;
  const T* touched = nullptr;  ///< likewise; null: what acted is sought in all steps
  /// Out, as q0_bar. Null: qd0_bar has it, which is right for launches that are all of a rollout.
  T* reported0_bar = nullptr;
  const T* ways = nullptr;              ///< as recorded; null: nothing is known
  T* ways0_bar = nullptr;               ///< out, as q0_bar; null: not asked for, of launches that are all of a rollout
  const T* ways_end_bar = nullptr;      ///< seeds as q_end_bar
  const T* reported_bar = nullptr;      ///< seeds as those of qd; null: none
  const T* reported_end_bar = nullptr;  ///< likewise
  const T* contact_bar = nullptr;       ///< seeds as `contact`, of which those of the forces are read; null: none
};

/// Derivatives of a state by the one before it and by the controls of the step between them, as StepJacobians
/// (autodiff/tape/step_jacobians.h) has them. Trees without contact only.
template <class T>
struct StepJacobianArguments {
  Launch<T> launch;  ///< one step
  const T *q, *qd;
  const T* control;  ///< null: zero
  T* by_state;       ///< out, [2 nv · 2 nv] rows
  T* by_control;     ///< out, [2 nv · nu] rows; null: not asked for
};

/// M q̈ + h(q, q̇) = τ: accelerations of efforts or, `inverse`, efforts of accelerations. Joint coordinates only; a state
/// in each world.
template <class T>
struct DynamicsArguments {
  Launch<T> launch;
  bool inverse;
  const T *q, *qd;
  const T* given;                                               ///< [nv] rows: τ, or q̈ where inverse
  T* result = nullptr;                                          ///< [nv] rows: the other; not of the adjoint
  const T* result_bar = nullptr;                                ///< adjoint only, from here on
  T *q_bar = nullptr, *qd_bar = nullptr, *given_bar = nullptr;  ///< out
  T* constants_bar = nullptr;  ///< out, gradient rows without those of shapes; null: not asked for
};

/// Rows of a link's pose, and of its pose and motion.
constexpr int kPoseRows = 12, kMotionRows = 18;

/// Poses of links: per output 3 rows of position and 9 of rotation (columns), in user axes, world frame; where
/// velocities are given, 3 more of the velocity of the link's origin and 3 of the angular velocity, in world axes.
template <class T>
struct PoseArguments {
  Launch<T> launch;  ///< `steps` states
  const T* q;        ///< [steps·nq]
  const int* links;  ///< which links
  int count;
  T* poses = nullptr;           ///< [steps·count·rows()]; not of the adjoint
  const T* pose_bar = nullptr;  ///< adjoint only
  T* q_bar = nullptr;           ///< adjoint only, out
  T* constants_bar = nullptr;   ///< adjoint only, out, gradient rows without those of shapes; null: not asked for
  bool resume = false;          ///< adjoint only: constants_bar holds what later states left
  const T* qd = nullptr;        ///< [steps·nv]; null: poses only
  T* qd_bar = nullptr;          ///< adjoint only, with qd: out

  BACKDRIVE_HD int rows() const { return qd ? kMotionRows : kPoseRows; }
};

/// What of a joint's effort: command and drive, after the drive's limit; each part alone, where the drive's is what it
/// adds to the command; all of them. Armature is inertia, no part of it.
enum class EffortPart { actuator, command, drive, spring, damping, friction, limit, total };

/// An effort to look at, of a joint's degree of freedom; or its power, effort · velocity.
struct EffortTerm {
  EffortPart part = EffortPart::actuator;
  bool power = false;
  int link = 0;
  int dof = 0;                              ///< which of the link's
  int constants_row = 0, gradient_row = 0;  ///< of its JointEfforts, among the constants and their cotangents
};

/// Efforts that acted in each step of a recorded rollout.
template <class T>
struct EffortArguments {
  Launch<T> launch;
  const T *q, *qd, *velocity;  ///< every state, as RolloutArguments has them; velocity: that which moved q
  const T* control;            ///< null: zero
  const EffortTerm* terms;     ///< where the kernel runs
  int count;
  T* efforts = nullptr;                                            ///< [steps·count] rows; not of the adjoint
  const T* efforts_bar = nullptr;                                  ///< adjoint only, from here on
  T *q_bar = nullptr, *qd_bar = nullptr, *velocity_bar = nullptr;  ///< added to; velocity_bar may be qd_bar
  T *control_bar = nullptr, *constants_bar = nullptr;              ///< added to; null: not asked for
};

/// Maximal coordinates only: bodies from the coordinates of the tree's joints, and the coordinates of joints that close
/// loops from the bodies.
template <class T>
struct PlaceArguments {
  Launch<T> launch;
  const T *q, *qd;                                            ///< [nq], [nv] rows: those of the tree's joints are read
  T *q_placed = nullptr, *qd_placed = nullptr;                ///< out, all rows; not of the adjoint
  const T *q_placed_bar = nullptr, *qd_placed_bar = nullptr;  ///< adjoint only, from here on; null: zeros
  T *q_bar = nullptr, *qd_bar = nullptr;                      ///< out
  T* constants_bar = nullptr;                                 ///< out, gradient rows; null: not asked for
};

}  // namespace backdrive
