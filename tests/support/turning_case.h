#pragma once
#include "tests/support/gradient_case.h"

namespace backdrive::test {

/// Two free balls of unequal moments, one on the floor and the other on it, that turn so fast that torsional and
/// rolling friction are at their bounds in every step, and so soft that they stay in touch; three worlds. Random trees
/// turn slowly for their creep: there, friction against turns holds.
GradientCase turning_case();

}  // namespace backdrive::test
