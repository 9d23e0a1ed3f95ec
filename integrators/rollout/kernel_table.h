#pragma once
// The entry points of an integrator for one instruction set and number type.
#include <cstddef>

#include "integrators/rollout/arguments.h"

namespace backdrive {

/// Each kernel processes lane groups [begin, end) of a batch, all steps of a group before the next, with the working
/// set in cache. `scratch` is aligned to 64 bytes and holds scratch_bytes.
template <class T>
struct KernelTable {
  template <class Arguments>
  using Kernel = void (*)(const Arguments&, int begin, int end, std::byte* scratch);

  int lanes;
  std::size_t (*scratch_bytes)(const Launch<T>&);
  Kernel<RolloutArguments<T>> rollout;
  Kernel<RolloutAdjointArguments<T>> rollout_adjoint;
  Kernel<PoseArguments<T>> poses, poses_adjoint;
  Kernel<EffortArguments<T>> efforts, efforts_adjoint;
  Kernel<PlaceArguments<T>> place, place_adjoint;  ///< null but for maximal coordinates
  // Null but for joint coordinates; the first for duals, too.
  Kernel<StepJacobianArguments<T>> step_jacobian;
  Kernel<DynamicsArguments<T>> dynamics, dynamics_adjoint;
};

}  // namespace backdrive
