// A thread per world for each of the functors of parameter_rows.h.
#include "engine/cuda_launch.cuh"
#include "integrators/semi_implicit/parameter_rows.h"

BACKDRIVE_SEMI_IMPLICIT_PARAMETER_FUNCTORS(BACKDRIVE_INSTANTIATE_LAUNCH)
