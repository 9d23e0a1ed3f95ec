#pragma once
#include "tests/support/gradient_case.h"

namespace backdrive::test {

/// Balls that lie softly on a floor and on each other, one of them on the hinge of another and lighter than its mass:
/// contacts bear a part of their weight where positions are those of random_batch.
Model borne_model(Integrator integrator);
/// A motion of it that begins there; with featherstone.
GradientCase borne_case();

}  // namespace backdrive::test
