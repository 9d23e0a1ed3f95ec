#pragma once
// What launch.h runs on devices for models whose bodies are stepped, a thread to each world.
#include "engine/memory.h"
#include "integrators/rollout/arguments.h"
#include "integrators/semi_implicit/tables.h"

namespace backdrive::semi_implicit {

/// `memory`: of a device, and all pointers of the arguments are into it; but Launch::bodies is the host's, with arrays
/// that lie there. They return before it is done. Throw Error (usage) for dual numbers. T is float, double or
/// Dual<double>.
template <class T>
void rollout_on_device(const RolloutArguments<T>& arguments, Memory& memory);
template <class T>
void rollout_adjoint_on_device(const RolloutAdjointArguments<T>& arguments, Memory& memory);
template <class T>
void poses_on_device(const PoseArguments<T>& arguments, Memory& memory);
template <class T>
void poses_adjoint_on_device(const PoseArguments<T>& arguments, Memory& memory);
template <class T>
void place_on_device(const PlaceArguments<T>& arguments, Memory& memory);
template <class T>
void place_adjoint_on_device(const PlaceArguments<T>& arguments, Memory& memory);

}  // namespace backdrive::semi_implicit
