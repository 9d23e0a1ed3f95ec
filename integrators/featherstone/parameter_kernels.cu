// A thread per world for each of the functors of parameter_kernel.h.
#include "engine/cuda_launch.cuh"
#include "integrators/rollout/parameter_kernel.h"

BACKDRIVE_PARAMETER_FUNCTORS(BACKDRIVE_INSTANTIATE_LAUNCH)
