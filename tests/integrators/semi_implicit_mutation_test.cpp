// Proof that the gradient tests of the semi-implicit integrator can fail: each fault is planted in a copy of the
// adjoint, and the very check that semi_implicit_gradient_test.cpp makes must notice it.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/faults/planted.h"
#include "tests/integrators/semi_implicit_checks.h"
#include "tests/integrators/semi_implicit_mechanisms.h"

namespace backdrive {
namespace {

/// Largest error over all blocks of a tree, of a tree with loops, one of which is open again, and of a loose box that
/// turns by half a radian in a step.
double worst_with(Fault fault) {
  double worst = 0;
  for (const int seed : {2, 5}) {
    test::MechanismOptions options;
    options.bodies = 8;
    options.loops = seed == 5 ? 2 : 0;
    test::Mechanism m = test::random_mechanism(seed, options);
    if (options.loops > 0) m.joints.back().release = -1;  // it has let go before the first step
    const test::Planted planted(fault);
    for (const auto& [block, e] : test::identity_errors(m, 17)) worst = std::max(worst, e.error);
  }
  const test::Planted planted(fault);
  for (const auto& [block, e] :
       test::identity_errors(test::spinning({1, 0.7, 0.4}, 0.1, {0.6, 0.5, -0.7}, 500, 4), 17)) {
    if (block != "mass") worst = std::max(worst, e.error);  // nothing acts on it: zero
  }
  return worst;
}

TEST(SemiImplicitMutants, SoundAdjointPasses) {
  EXPECT_LT(worst_with(Fault::none), 1e-12);
}

// Ten million times what the gradient tests allow.
TEST(SemiImplicitMutants, EveryFaultIsCaught) {
  for (const test::FaultEntry& entry : test::faults_of("bodies")) {
    const double error = worst_with(entry.fault);
    EXPECT_GT(error, 1e-5) << entry.name;
    std::printf("%s: %.1e\n", entry.name, error);
  }
}

}  // namespace
}  // namespace backdrive
