// The adjoint of the semi-implicit step: against dual numbers through the same source, block by block, and those
// against central differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/integrators/semi_implicit_checks.h"
#include "tests/integrators/semi_implicit_mechanisms.h"

namespace backdrive {
namespace {

using test::Mechanism;
using test::MechanismOptions;

/// ⟨w, Jv⟩ and ⟨Jᵀw, v⟩ relative to Σ|g v|: some thousand roundings a step, whose effect the condition of the rows'
/// matrix multiplies (below 1e2 in these cases once it is scaled; stiffness does not enter it).
constexpr double kIdentity = 1e-12;

Mechanism mechanism_case(int kind, int seed) {
  MechanismOptions options;
  options.bodies = 8;
  if (kind == 1) options.loops = 2;
  if (kind == 2) {
    Mechanism m = test::four_bar(6, 1e4, 20);
    m.steps = 6;
    test::Random random(seed + 100);
    for (int j = 0; j < 4; ++j) {
      test::add_forces(random, j, m);
      m.numbers.joints[j].efforts.limit.lower -= 1, m.numbers.joints[j].efforts.limit.upper += 1;
    }
    test::set_inputs(m, &random);
    return m;
  }
  return test::random_mechanism(seed, options);
}

/// Kind and seed: 0, trees; 1, trees with two loops; 2, a four-bar linkage.
constexpr std::pair<int, int> kCases[] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 5}, {1, 6}, {1, 7}, {2, 7}};

class SemiImplicitGradient : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  Mechanism m = mechanism_case(GetParam().first, GetParam().second);
};
INSTANTIATE_TEST_SUITE_P(Cases, SemiImplicitGradient, testing::ValuesIn(kCases));

TEST_P(SemiImplicitGradient, IsTheTransposeOfTheDerivative) {
  const auto errors = test::identity_errors(m, 17);
  for (const auto& [block, e] : errors) {
    EXPECT_LT(e.error, kIdentity) << block;
  }
}

// Central differences: h² of the third derivative against ε/h of the largest term of the sum.
TEST_P(SemiImplicitGradient, AgreesWithDifferences) {
  for (const auto& [block, e] : test::difference_errors(m, 17, 1e-6)) EXPECT_LT(e, 2e-6) << block;
}

// Zeros would pass the checks above.
TEST(SemiImplicitGradients, AreNotZero) {
  std::map<std::string, double> largest;
  for (const auto& [kind, seed] : kCases) {
    for (const auto& [block, e] : test::identity_errors(mechanism_case(kind, seed), 17)) {
      largest[block] = std::max(largest[block], e.size);
    }
  }
  // Springs of 1e5 N/m: a gradient per N/m, times directions of 1 N/m, is small by nature.
  for (const auto& [block, size] : largest) EXPECT_GT(size, 1e-8) << block;
}

}  // namespace
}  // namespace backdrive
