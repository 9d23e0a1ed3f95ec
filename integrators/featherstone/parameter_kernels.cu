// A thread per world for each of the functors of link_parameters.h.
#include "engine/cuda_launch.cuh"
#include "integrators/featherstone/link_parameters.h"

BACKDRIVE_LINK_PARAMETER_FUNCTORS(BACKDRIVE_INSTANTIATE_LAUNCH)
