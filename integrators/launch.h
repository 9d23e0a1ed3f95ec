#pragma once
// Runs the kernels of either integrator where the numbers are: on threads of the processor, a pack of worlds at a time,
// or on a device, a thread to each world.
#include "engine/memory.h"
#include "integrators/rollout/arguments.h"

namespace backdrive {

/// All pointers of the arguments are into memory that `memory` is of, which gives the scratch; `tree` is the topology
/// of the arguments where the host reads it, and so is Launch::bodies, whose arrays lie there. On a device they return
/// before it is done; `threads` are the processor's. Throw Error (usage) for dual numbers on a device. T is float,
/// double or Dual<double>.
template <class T>
void launch_rollout(const RolloutArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory);
template <class T>
void launch_rollout_adjoint(const RolloutAdjointArguments<T>& arguments, const TopologyView& tree, int threads,
                            Memory& memory);
template <class T>
void launch_poses(const PoseArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory);
template <class T>
void launch_poses_adjoint(const PoseArguments<T>& arguments, const TopologyView& tree, int threads, Memory& memory);
template <class T>
void launch_efforts(const EffortArguments<T>& arguments, int threads, Memory& memory);
template <class T>
void launch_efforts_adjoint(const EffortArguments<T>& arguments, int threads, Memory& memory);
template <class T>
void launch_place(const PlaceArguments<T>& arguments, int threads, Memory& memory);
template <class T>
void launch_place_adjoint(const PlaceArguments<T>& arguments, int threads, Memory& memory);

/// On threads of the processor; T is float or double. For trees without contact, not for bodies.
template <class T>
void launch_step_jacobian(const StepJacobianArguments<T>& arguments, int threads, Memory& memory);
/// Likewise, with contact or without; of duals, too.
template <class T>
void launch_dynamics(const DynamicsArguments<T>& arguments, int threads, Memory& memory);
template <class T>
void launch_dynamics_adjoint(const DynamicsArguments<T>& arguments, int threads, Memory& memory);

/// Whether launches for this tree, or for its bodies, ask for memory on a device.
bool needs_memory(const TopologyView& tree, bool steps_bodies);

}  // namespace backdrive
