#pragma once
// The trees that the benchmarks run: the speed of a step depends on their topology alone.
#include "models/model.h"

namespace backdrive::benchmarks {

/// `links` revolute joints in a row, axes x, y, z in turn.
Model chain(int links);
/// 18 revolute joints: a trunk of six with four legs of three.
Model tree18();
/// 30 revolute joints: a trunk of six with four limbs of six.
Model tree30();

}  // namespace backdrive::benchmarks
