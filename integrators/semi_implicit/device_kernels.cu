// The kernels for devices, a thread per world; compiled with BACKDRIVE_KERNELS=device.
#include "integrators/semi_implicit/device_kernels.h"

#include "engine/cuda_launch.cuh"

BACKDRIVE_SEMI_IMPLICIT_FUNCTORS(BACKDRIVE_INSTANTIATE_LAUNCH)
