// As device_kernels.cu, for models in which something can touch something.
#include "engine/cuda_launch.cuh"
#include "integrators/semi_implicit/device_kernels.h"

BACKDRIVE_SEMI_IMPLICIT_CONTACT_FUNCTORS(BACKDRIVE_INSTANTIATE_LAUNCH)
