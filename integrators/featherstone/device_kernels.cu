// The kernels for devices, a thread per world; compiled with BACKDRIVE_KERNELS=device. scripts/gpu-resources prints
// what they need of a thread.
#include "engine/cuda_launch.cuh"
#include "integrators/featherstone/device_kernels.h"

BACKDRIVE_DEVICE_FUNCTORS(BACKDRIVE_INSTANTIATE_LAUNCH)
