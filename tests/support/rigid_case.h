#pragma once
#include "tests/support/gradient_case.h"

namespace backdrive::test {

/// Bodies of unequal masses and moments that turn by some tenths of a radian in a step, two worlds: four that are fixed
/// to each other in two branches about a free root, above the floor that one of them meets; two on a ball joint, which
/// carry two more on a hinge that spins.
GradientCase rigid_case();

}  // namespace backdrive::test
