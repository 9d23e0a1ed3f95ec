#pragma once
// What launch.h runs on devices for trees in joint coordinates, a thread to each world.
#include "engine/memory.h"
#include "integrators/rollout/arguments.h"

namespace backdrive::featherstone {

/// `memory`: of a device, and all pointers of the arguments are into it; `tree`: their topology where the host reads
/// it. They return before it is done. Throw Error (usage) for dual numbers. T is float, double or Dual<double>.
template <class T>
void rollout_on_device(const RolloutArguments<T>& arguments, const TopologyView& tree, Memory& memory);
template <class T>
void rollout_adjoint_on_device(const RolloutAdjointArguments<T>& arguments, const TopologyView& tree, Memory& memory);
template <class T>
void poses_on_device(const PoseArguments<T>& arguments, const TopologyView& tree, Memory& memory);
template <class T>
void poses_adjoint_on_device(const PoseArguments<T>& arguments, const TopologyView& tree, Memory& memory);

/// Whether rollouts of the tree take blocks of memory per world.
bool needs_blocks(const TopologyView& tree);

}  // namespace backdrive::featherstone
