#pragma once
// What the files *_instances.cpp are compiled for, each once per row of the list in integrators/CMakeLists.txt:
// BACKDRIVE_KERNELS names the instruction set (v2, v3, v4; dual: dual numbers, for any processor), and BACKDRIVE_REAL
// is the number type, in namespace backdrive.
#include "engine/pack.h"

#include "engine/dual.h"

namespace backdrive {
using InstanceReal = BACKDRIVE_REAL;
}
