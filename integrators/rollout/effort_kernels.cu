// What devices run of the efforts that acted.
#include "engine/cuda_launch.cuh"
#include "integrators/rollout/effort_kernel.h"

#define BACKDRIVE_FUNCTORS_OF(T)                           \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::EffortsWorld<T>) \
  BACKDRIVE_INSTANTIATE_LAUNCH(backdrive::EffortsAdjointWorld<T>)
BACKDRIVE_FUNCTORS_OF(float)
BACKDRIVE_FUNCTORS_OF(double)
