#pragma once
// The small models that random programs run on.
#include "models/model.h"
#include "tests/support/random.h"

namespace backdrive::test {

/// A tree of 1 to 3 hinges and slides with balls on it and forces of every kind. `structure` decides what there is,
/// `values` the numbers: models of one structure may share a tape.
Model program_model(int joints, std::uint64_t structure, std::uint64_t values);

/// A path of the kind users write, "joints/*/frame" or "bodies/b1/mass".
std::string random_path(const Model& model, Random& random);

}  // namespace backdrive::test
