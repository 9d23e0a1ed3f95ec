// The kernels for devices, a thread per world; compiled with BACKDRIVE_KERNELS=device, once for each part and number
// (BACKDRIVE_FUNCTOR_PART, BACKDRIVE_NUMBER).
#include "integrators/semi_implicit/device_kernels.h"

#include "engine/cuda_launch.cuh"

#define BACKDRIVE_FUNCTORS_OF(part) BACKDRIVE_SEMI_IMPLICIT_PART_##part
#define BACKDRIVE_FUNCTORS(part) BACKDRIVE_FUNCTORS_OF(part)
BACKDRIVE_FUNCTORS(BACKDRIVE_FUNCTOR_PART)(BACKDRIVE_INSTANTIATE_LAUNCH, BACKDRIVE_NUMBER)
