// The float kernels against the double ones, from inputs that float holds exactly. The bound is computed: a stable
// algorithm gives the exact result for inputs perturbed by a few units of float's rounding, u = 6e-8. So the double
// result is computed again at inputs perturbed by u, and the change tells what float may differ: each link and each
// step adds errors of its own, which are independent and so add up as a square root does; a factor of two for the
// several roundings in each.
#include <gtest/gtest.h>

#include <cmath>

#include "models/parameter_list.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

using test::CaseGradient;
using test::GradientCase;

constexpr double kUnit = 6e-8;
constexpr int kSamples = 8;
double allowed(int links, int steps, double spread) {
  return 2 * std::sqrt(links + steps) * spread;
}

template <class Visit>
void each_number(GradientCase& c, Visit&& visit) {
  for (Buffer<double>* b : {&c.batch.state.q, &c.batch.state.qd, &c.batch.control.u, &c.q_bar, &c.qd_bar, &c.q_end_bar,
                            &c.qd_end_bar, &c.pose_bar}) {
    *b = b->clone(default_memory());
    for (int r = 0; r < b->rows(); ++r) {
      for (int w = 0; w < b->worlds(); ++w) visit(b->write(r)[w]);
    }
  }
  for (const Field& field : fields()) {
    Parameter& p = field.of(c.model);
    for (int i = 0; i < p.items(); ++i) {
      for (int k = 0; k < p.components(); ++k) visit(p.at(i, k));
    }
  }
}

GradientCase rounded_case(int links, int steps) {
  test::TreeOptions options;
  options.links = links;
  options.forces = options.shapes = true;
  Model model = test::random_tree(links, options);
  // A saturating drive may do so a step earlier in float: a jump, not rounding.
  for (int j = 0; j < links; ++j) model.joints.drive.effort_limit.set(j, 0, 1e3);
  test::require_all(model);
  GradientCase c = test::make_case(std::move(model), steps, 0.005, 3, links);
  each_number(c, [](double& x) { x = static_cast<float>(x); });
  return c;
}

GradientCase perturbed(const GradientCase& c, std::uint64_t seed) {
  GradientCase to = c;
  test::Random random(seed);
  each_number(to, [&](double& x) { x *= 1 + (random.chance(0.5) ? kUnit : -kUnit); });
  return to;
}

/// The results of a case block by block, as plain numbers.
struct Block {
  std::string name;
  std::vector<double> numbers;
};
std::vector<double> numbers_of(const Buffer<double>& b) {
  std::vector<double> all;
  for (int w = 0; w < b.worlds(); ++w) {
    for (const double x : test::column(b, w)) all.push_back(x);
  }
  return all;
}
std::vector<Block> blocks_of(const CaseGradient& g) {
  std::vector<Block> blocks{{"q0", numbers_of(g.q0)}, {"qd0", numbers_of(g.qd0)}, {"control", numbers_of(g.control)}};
  for (const Field& field : fields()) {
    const Parameter& p = field.in(g.parameters);
    Block block{std::string(field.leaf), {}};
    for (int i = 0; i < p.items(); ++i) {
      for (int k = 0; k < p.components(); ++k) block.numbers.push_back(p(i, k));
    }
    blocks.push_back(block);
  }
  return blocks;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) result = std::max(result, std::abs(a[i] - b[i]));
  return result;
}

struct Size {
  int links, steps;
};
void PrintTo(const Size& s, std::ostream* out) {
  *out << s.links << " links, " << s.steps << " steps";
}
class Precision : public testing::TestWithParam<Size> {};

TEST_P(Precision, FloatGradientsAgreeWithDouble) {
  const auto [links, steps] = GetParam();
  const GradientCase c = rounded_case(links, steps);
  const std::vector<Block> single = blocks_of(test::gradient_by_tape<float>(c));
  const std::vector<Block> pair = blocks_of(test::gradient_by_tape<double>(c));
  std::vector<double> spread(pair.size());
  for (int k = 0; k < kSamples; ++k) {
    const std::vector<Block> other = blocks_of(test::gradient_by_tape<double>(perturbed(c, k)));
    for (std::size_t b = 0; b < pair.size(); ++b) {
      spread[b] = std::max(spread[b], largest_difference(other[b].numbers, pair[b].numbers));
    }
  }
  int differ = 0;
  for (std::size_t b = 0; b < pair.size(); ++b) {
    const double error = largest_difference(single[b].numbers, pair[b].numbers);
    EXPECT_LE(error, allowed(links, steps, spread[b])) << pair[b].name;
    differ += error > 0;
  }
  EXPECT_GT(differ, 15) << "equal to the bit: did float run at all?";
}

TEST_P(Precision, FloatStatesAgreeWithDouble) {
  const auto [links, steps] = GetParam();
  const GradientCase c = rounded_case(links, steps);
  // f sums all states and poses under random weights.
  const double single = test::value_of_case<float>(c), pair = test::value_of_case<double>(c);
  double spread = 0;
  for (int k = 0; k < kSamples; ++k) {
    spread = std::max(spread, std::abs(test::value_of_case<double>(perturbed(c, k)) - pair));
  }
  EXPECT_LE(std::abs(single - pair), allowed(links, steps, spread));
  EXPECT_NE(single, pair);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Precision,
                         testing::Values(Size{1, 1}, Size{4, 1}, Size{4, 20}, Size{8, 1}, Size{8, 20}, Size{16, 20}));

}  // namespace
}  // namespace backdrive
