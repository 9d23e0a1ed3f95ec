// Proof that the gradient tests of the semi-implicit integrator can fail: each fault is planted in a copy of the
// adjoint, and the very check that semi_implicit_gradient_test.cpp makes must notice it.
#define BACKDRIVE_KERNELS semi_mutant
#define BACKDRIVE_MUTATIONS
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/integrators/semi_implicit_checks.h"
#include "tests/integrators/semi_implicit_mechanisms.h"

namespace backdrive {
namespace {

using semi_implicit::Mutation;

/// Largest error over all blocks of a tree and of a tree with loops.
double worst_with(Mutation mutation) {
  double worst = 0;
  for (const int seed : {2, 5}) {
    test::MechanismOptions options;
    options.bodies = 8;
    options.loops = seed == 5 ? 2 : 0;
    const test::Mechanism m = test::random_mechanism(seed, options);
    semi_implicit::planted_mutation = mutation;
    for (const auto& [block, e] : test::identity_errors(m, 17)) worst = std::max(worst, e.error);
    semi_implicit::planted_mutation = Mutation::none;
  }
  return worst;
}

TEST(SemiImplicitMutants, SoundAdjointPasses) {
  EXPECT_LT(worst_with(Mutation::none), 1e-12);
}

// A hundred million times what the gradient tests allow. From half_kick on faults are of contact, which
// tests/autodiff/semi_implicit_contact_mutation_test.cpp plants, and from read_turn on of coordinates, which
// semi_implicit_coordinates_test.cpp does.
TEST(SemiImplicitMutants, EveryFaultIsCaught) {
  for (int k = 1; k < static_cast<int>(Mutation::half_kick); ++k) {
    const double error = worst_with(static_cast<Mutation>(k));
    EXPECT_GT(error, 1e-4) << "fault " << k << " of integrators/semi_implicit/mutations.h";
    std::printf("fault %d: %.1e\n", k, error);
  }
}

}  // namespace
}  // namespace backdrive
