// The kernels for devices, a thread per world; compiled with BACKDRIVE_KERNELS=device, once for each part and number
// (BACKDRIVE_FUNCTOR_PART, BACKDRIVE_NUMBER). scripts/gpu-resources prints what they need of a thread.
#include "engine/cuda_launch.cuh"
#include "integrators/featherstone/device_kernels.h"

#define BACKDRIVE_FUNCTORS_OF(part) BACKDRIVE_DEVICE_PART_##part
#define BACKDRIVE_FUNCTORS(part) BACKDRIVE_FUNCTORS_OF(part)
BACKDRIVE_FUNCTORS(BACKDRIVE_FUNCTOR_PART)(BACKDRIVE_INSTANTIATE_LAUNCH, BACKDRIVE_NUMBER)
