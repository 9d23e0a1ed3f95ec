// The adjoint against dual numbers through the very forward it is the adjoint of: ⟨w, J v⟩ = ⟨Jᵀ w, v⟩ for every input
// and every parameter, with states and poses as outputs. No difference noise: what is left is rounding. That these
// tests can fail is shown by mutation_test.cpp.
#include <gtest/gtest.h>

#include "models/parameter_list.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace backdrive {
namespace {

using test::BlockError;
using test::CaseGradient;
using test::GradientCase;

/// Of Σ |g v|. Rounding of sums over some hundred terms and 30 steps leaves less than 1e-14.
constexpr double kTolerance = 1e-12;

struct Setup {
  std::uint64_t seed;
  int links;
  bool branched, forces, shapes, per_world;
  int steps;
  bool rotations = false, contact = false;
  int couplings = 0;
};
void PrintTo(const Setup& s, std::ostream* out) {
  *out << s.links << (s.branched ? " branched" : " serial") << (s.forces ? ", forces" : "")
       << (s.shapes ? ", shapes" : "") << (s.rotations ? ", rotations" : "") << (s.contact ? ", contact" : "")
       << (s.per_world ? ", per world" : "") << (s.couplings ? ", couplings" : "") << ", seed " << s.seed;
}

/// Every parameter with its own value in each of `worlds` worlds, a few percent apart; inertias are scaled as a whole,
/// so that they stay possible.
void vary_by_world(Model& model, int worlds, std::uint64_t seed) {
  test::Random random(seed);
  for (const Field& field : fields()) {
    Parameter& p = field.of(model);
    p.spread(worlds);
    for (int w = 0; w < worlds; ++w) {
      for (int i = 0; i < p.items(); ++i) {
        double factor = 1;
        for (int k = 0; k < p.components(); ++k) {
          if (k == 0 || field.leaf != "inertia") factor = random.uniform(0.95, 1.05);
          p.at(i, k, w) *= factor;
        }
      }
    }
  }
  validate(model);
}

Model model_of(const Setup& s, int worlds) {
  test::TreeOptions options;
  options.links = s.links;
  options.branched = s.branched;
  options.forces = s.forces;
  options.shapes = s.shapes;
  options.rotations = s.rotations;
  options.contact = s.contact;
  options.couplings = s.couplings;
  Model model = test::random_tree(s.seed, options);
  if (s.per_world) vary_by_world(model, worlds, s.seed);
  test::require_all(model);
  return model;
}

/// Sanitizers see in two steps what they see in thirty; not every parameter has a gradient then.
int steps_of(const Setup& s) {
  return test::kSanitized ? 2 : s.steps;
}

class Adjoint : public testing::TestWithParam<Setup> {
 protected:
  static constexpr int worlds = 2;
  const GradientCase c =
      test::make_case(model_of(GetParam(), worlds), steps_of(GetParam()), 0.01, worlds, GetParam().seed + 100);
  const CaseGradient gradient = test::gradient_by_tape<double>(c);
};

/// Whether some item of a field has a use in this model: no ball has an axis, a limit or a drive.
bool is_asked_for(const Model& model, const std::string& block) {
  for (const Field& field : fields()) {
    if (test::block_of(field) == block) return field.in(model).any_requires_grad();
  }
  return block.find("target") != 0 || model.topology.nu > model.topology.nv;
}

TEST_P(Adjoint, IsTheTransposeOfTheDerivative) {
  for (const BlockError& e : test::compare_blocks(c, gradient, GetParam().seed)) {
    EXPECT_LT(e.error, kTolerance) << e.block;
    const bool force = e.block == "joints/damping" || e.block == "joints/friction" ||
                       e.block.find("joints/limit") == 0 || e.block.find("joints/drive") == 0 ||
                       e.block.find("target") == 0;
    // One coupling has limits, and may reach neither or one of them.
    const bool perhaps = e.block == "couplings/limit/lower" || e.block == "couplings/limit/upper";
    const bool present = !perhaps && test::block_is_live(c.model, e.block) &&
                         (GetParam().shapes || e.block.find("shapes") != 0) &&
                         (GetParam().forces || !force || e.block == "joints/damping") && is_asked_for(c.model, e.block);
    if (present && !test::kSanitized) {
      EXPECT_GT(e.size, 1e-7) << e.block << " should have a gradient";
    } else if (!test::block_is_live(c.model, e.block)) {
      EXPECT_EQ(e.size, 0) << e.block;
    }
  }
}

// The same check number by number: an error in one entry cannot hide among the others. Slow builds take a part of them.
constexpr int kEvery = test::kSlowBuild ? 11 : 1;
class SmallAdjoint : public Adjoint {};
TEST_P(SmallAdjoint, EveryNumberIsRight) {
  // The friction of a contact is a difference of velocities over its creep, which takes a digit; so is what a drive's
  // limit changes, once the drive is slowed by contact.
  // What whips has momenta over the step, which take a digit of what is small beside them, as limits of couplings are.
  const double tolerance = (GetParam().contact ? 30 : GetParam().couplings ? 10 : 1) * kTolerance;
  int number = 0;
  for (const Field& field : fields()) {
    const Parameter& g = field.in(gradient.parameters);
    const bool axis = field.leaf == "axis";
    double scale = 0;
    for (int w = 0; w < g.worlds(); ++w) {
      for (int i = 0; i < g.items(); ++i) {
        for (int k = 0; k < g.components(); ++k) scale = std::max(scale, std::abs(g(i, k, w)));
      }
    }
    for (int i = 0; i < g.items(); ++i) {
      for (int k = 0; k < g.components(); ++k) {
        if (number++ % kEvery != 0) continue;
        // Worlds of their own parameters are moved at once, each along its own: none sees the others.
        test::Direction v = test::zero_direction(c);
        Parameter& d = field.of(v.parameters);
        std::vector<double> reverse(g.worlds());
        for (int w = 0; w < g.worlds(); ++w) {
          for (int l = 0; l < g.components(); ++l) {
            // What is perpendicular to the axis of the unit vector k; elsewhere the unit vector itself.
            const double along = axis ? c.model.joints.axis(i, k, w) * c.model.joints.axis(i, l, w) : 0;
            d.at(i, l, w) = (k == l) - along;
            reverse[w] += g(i, l, w) * d(i, l, w);
          }
        }
        const std::vector<test::Product> forward =
            g.worlds() > 1 ? test::forward_products(c, v) : std::vector{test::forward_product(c, v)};
        for (int w = 0; w < g.worlds(); ++w) {
          EXPECT_NEAR(reverse[w], forward[w].value, tolerance * scale)
              << field.leaf << " item " << i << " component " << k << " world " << w;
        }
      }
    }
  }
}

// Summing per-world gradients of equal parameters gives the uniform gradient.
class UniformAdjoint : public Adjoint {};
TEST_P(UniformAdjoint, IsTheSumOverWorlds) {
  GradientCase spread = c;
  for (const Field& field : fields()) field.of(spread.model).spread(worlds);
  const CaseGradient each = test::gradient_by_tape<double>(spread);
  EXPECT_TRUE(test::same_bits(each.q0, gradient.q0));
  EXPECT_TRUE(test::same_bits(each.control, gradient.control));
  for (const Field& field : fields()) {
    const Parameter& one = field.in(gradient.parameters);
    const Parameter& many = field.in(each.parameters);
    ASSERT_EQ(many.worlds(), worlds);
    for (int i = 0; i < one.items(); ++i) {
      for (int k = 0; k < one.components(); ++k) {
        double sum = 0, magnitude = 0;
        for (int w = 0; w < worlds; ++w) {
          sum += many(i, k, w);
          magnitude += std::abs(many(i, k, w));
        }
        // Rotations mix components that differ in size, so the item's largest sets the scale of its rounding.
        for (int l = 0; l < one.components(); ++l) magnitude = std::max(magnitude, std::abs(many(i, l, 0)));
        EXPECT_NEAR(one(i, k), sum, 1e-11 * magnitude) << field.leaf << " item " << i << " component " << k;
      }
    }
  }
}

constexpr Setup kSmall[] = {{1, 1, false, false, false, false, 10},
                            {2, 2, false, true, false, false, 10},
                            {3, 6, false, true, true, false, 30},
                            {4, 8, true, true, true, false, 30},
                            {5, 8, true, true, true, true, 30},
                            {10, 1, false, false, true, false, 20, true},
                            {11, 5, false, true, true, false, 20, true},
                            {12, 10, true, true, true, true, 20, true},
                            {14, 1, false, false, true, false, 10, true, true},
                            {15, 6, false, true, true, false, 10, false, true},
                            {16, 7, true, true, true, true, 6, true, true},
                            {17, 9, true, true, true, false, 6, true, true},
                            {20, 2, false, false, false, false, 10, false, false, 1},
                            {21, 5, false, false, false, false, 10, false, false, 2},
                            {22, 6, true, true, true, false, 20, false, false, 3},
                            {23, 8, true, true, false, true, 20, false, false, 4},
                            {24, 10, true, true, true, false, 10, true, false, 3},
                            {25, 6, false, false, true, false, 20, false, true, 3},
                            {26, 9, true, true, true, true, 6, true, true, 3},
                            // Of hinges with a driven ball, a universal and a planar joint between them.
                            {27, 10, false, true, false, false, 10, true, false, 3}};
constexpr Setup kLarge[] = {
    {6, 14, true, true, true, false, 20},        {7, 12, false, true, false, true, 20},
    {8, 18, true, false, true, false, 20},       {9, 32, true, true, true, false, 10},
    {13, 24, true, true, true, false, 10, true}, {19, 20, true, true, true, false, 10, true, true}};
INSTANTIATE_TEST_SUITE_P(Small, Adjoint, testing::ValuesIn(kSmall));
INSTANTIATE_TEST_SUITE_P(Large, Adjoint, testing::ValuesIn(kLarge));
INSTANTIATE_TEST_SUITE_P(Small, SmallAdjoint, testing::ValuesIn(kSmall));
INSTANTIATE_TEST_SUITE_P(Some, UniformAdjoint, testing::Values(kSmall[1], kSmall[3], kLarge[0], kLarge[3], kLarge[4]));

// A gradient nobody asked for is zero, and asking for it changes no bit of the others.
TEST(AdjointRequests, OnlyWhatIsAskedForIsComputed) {
  test::TreeOptions options;
  options.forces = true;
  Model all = test::random_tree(31, options);
  test::require_all(all);
  Model some = all;
  set_requires_grad(some, "*", false);
  set_requires_grad(some, "bodies/body2/mass", true);
  set_requires_grad(some, "joints/joint1/damping", true);
  some.topology = all.topology;  // the same features: same arithmetic
  const GradientCase c = test::make_case(all, 5, 0.01, 2, 1);
  GradientCase fewer = c;
  fewer.model = some;
  const CaseGradient a = test::gradient_by_tape<double>(c), b = test::gradient_by_tape<double>(fewer);
  EXPECT_TRUE(test::same_bits(a.q0, b.q0));
  EXPECT_EQ(a.parameters.bodies.mass(2), b.parameters.bodies.mass(2));
  EXPECT_NE(b.parameters.bodies.mass(2), 0);
  EXPECT_EQ(b.parameters.bodies.mass(1), 0);
  EXPECT_NE(a.parameters.bodies.mass(1), 0);
  EXPECT_EQ(a.parameters.joints.damping(1), b.parameters.joints.damping(1));
  EXPECT_EQ(b.parameters.gravity(0, 2), 0);
}

}  // namespace
}  // namespace backdrive
