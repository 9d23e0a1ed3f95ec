#pragma once
// The launches: each processes lane groups [begin, end) of a batch, all steps of a group before the next, with the
// working set in cache. Compiled once per instruction set; kernels<T>() chooses at run time.
#include <cstddef>

#include "engine/dual.h"
#include "engine/isa.h"
#include "engine/status.h"
#include "integrators/contact/geometry.h"
#include "integrators/featherstone/link_constants.h"
#include "models/model.h"

namespace backdrive {
namespace semi_implicit {
struct TablesView;
}

/// What the launches share. All arrays are [row][world] with rows `stride` numbers apart.
template <class T>
struct Launch {
  TopologyView topology;  ///< its links lie where the kernel runs
  /// constant_rows(); with one column, without gaps, where they are the same for all worlds.
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
};

template <class T>
struct RolloutArguments {
  Launch<T> launch;
  const T *q0, *qd0;    ///< [nq], [nv] rows; may be q_end, qd_end
  const T* control;     ///< [steps·nu] rows; null: zero
  T *q, *qd;            ///< [(steps+1)·nq], [(steps+1)·nv] rows; null: keep nothing
  T *q_end, *qd_end;    ///< [nq], [nv] rows
  WorldStatus* status;  ///< [worlds]; worlds that have stopped in earlier steps stay where they are
  /// With contact only, [(steps+1)·nv] and [nv] rows: the velocities that moved q to each state, those of the first
  /// state its own; null: not asked for.
  T *drift = nullptr, *drift_end = nullptr;
  T* contact = nullptr;  ///< with contact only, [steps·pairs·kContactRows] rows (PairReport); null: not asked for
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
  T* constants_bar;                 ///< out, gradient_rows(); null: not asked for
  bool resume = false;          ///< a later part was walked before: q0_bar, qd0_bar, constants_bar hold what it left
  WindowArguments<T> window{};  ///< with a clip, a launch holds whole windows
  const T *drift_bar = nullptr, *drift_end_bar = nullptr;  ///< seeds as those of qd, with contact only; null: none
  const T* contact_bar = nullptr;  ///< seeds as `contact`, of which those of the forces are read; null: none
};

/// Poses of links: per output 3 rows of position and 9 of rotation (columns), in user axes, world frame.
template <class T>
struct PoseArguments {
  Launch<T> launch;  ///< `steps` states
  const T* q;        ///< [steps·nq]
  const int* links;  ///< which links
  int count;
  T* poses;             ///< [steps·count·12]
  const T* pose_bar;    ///< adjoint only
  T* q_bar;             ///< adjoint only, out
  T* constants_bar;     ///< adjoint only, out, gradient_rows() of the links alone; null: not asked for
  bool resume = false;  ///< adjoint only: constants_bar holds what later states left
};

/// Entry points of one instruction set. `scratch` is aligned and holds scratch_bytes.
template <class T>
struct KernelTable {
  int lanes;
  std::size_t (*scratch_bytes)(const Launch<T>&);
  void (*rollout)(const RolloutArguments<T>&, int begin, int end, std::byte* scratch);
  void (*rollout_adjoint)(const RolloutAdjointArguments<T>&, int begin, int end, std::byte* scratch);
  void (*poses)(const PoseArguments<T>&, int begin, int end, std::byte* scratch);
  void (*poses_adjoint)(const PoseArguments<T>&, int begin, int end, std::byte* scratch);
};

/// The kernels for this processor; T is float, double or Dual<double>.
template <class T>
const KernelTable<T>& kernels();
template <>
const KernelTable<float>& kernels<float>();
template <>
const KernelTable<double>& kernels<double>();
template <>
const KernelTable<Dual<double>>& kernels<Dual<double>>();

/// The instruction set that kernels<float>() and kernels<double>() were compiled for.
Isa kernel_isa();

}  // namespace backdrive
