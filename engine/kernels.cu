// The engine's own kernels.
#include "engine/cuda_launch.cuh"
#include "engine/status.h"

BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::MergeStatus)
