#pragma once
#include "tests/support/gradient_case.h"

namespace backdrive::test {

/// Four bodies of unequal masses and moments, fixed to each other in two branches about a free root, that turn by some
/// tenths of a radian in a step, and above the floor that one of them meets; two worlds.
GradientCase rigid_case();

}  // namespace backdrive::test
