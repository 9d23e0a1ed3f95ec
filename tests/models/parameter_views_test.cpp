// Parameters as kernels read them and gradients as kernels write them.
#include "models/parameter_views.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "models/parameter_list.h"
#include "tests/models/model_cases.h"

namespace backdrive {
namespace {

constexpr int kWorlds = 3;

/// The cart and pole; every number another, every third parameter with values of its own in each world.
Model numbered_model() {
  Model model = test::cart_pole().build();
  double next = 0;
  int count = 0;
  for (const Field& field : fields()) {
    Parameter& p = field.of(model);
    if (count++ % 3 == 0) p.spread(kWorlds);
    for (int w = 0; w < p.worlds(); ++w) {
      for (int i = 0; i < p.items(); ++i) {
        for (int c = 0; c < p.components(); ++c) p.at(i, c, w) = ++next;
      }
    }
  }
  return model;
}

/// Calls visit(item, component, world) for all numbers of a parameter in kWorlds worlds.
template <class Visit>
void each_number(const Parameter& p, int components, Visit&& visit) {
  for (int w = 0; w < kWorlds; ++w) {
    for (int i = 0; i < p.items(); ++i) {
      for (int c = 0; c < components; ++c) visit(i, c, w);
    }
  }
}

void expect_same_numbers(const ParametersView& view, const Model& model) {
  ParametersView own = view;
  for (const Field& field : fields()) {
    const Parameter& p = field.in(model);
    const ParameterValues& values = field.of(own);
    EXPECT_EQ(values.items, p.items()) << field.leaf;
    EXPECT_EQ(values.components, p.components()) << field.leaf;
    each_number(p, p.components(), [&](int i, int c, int w) {
      EXPECT_EQ(values(i, c, w), p(i, c, w)) << field.leaf << " " << i << " " << c << " " << w;
    });
  }
}

TEST(ParameterViews, EveryNestHoldsEveryFieldOnceInTheSamePlace) {
  Parameters parameters;
  ParametersView view;
  GradientSlots slots;
  std::set<const void*> seen;
  for (const Field& field : fields()) {
    seen.insert(&field.of(view));
    const std::ptrdiff_t place = &field.of(parameters) - &parameters.bodies.mass;
    EXPECT_EQ(&field.of(view) - &view.bodies.mass, place) << field.leaf;
    EXPECT_EQ(&field.of(slots) - &slots.bodies.mass, place) << field.leaf;
    EXPECT_EQ(field.of(view).components, field.components) << field.leaf;
    EXPECT_FALSE(field.of(slots)) << field.leaf << " has slots that nobody gave";
  }
  EXPECT_EQ(seen.size(), sizeof(ParametersView) / sizeof(ParameterValues));
}

TEST(ParameterViews, ReadWhatParametersHold) {
  const Model model = numbered_model();
  expect_same_numbers(view_of(model), model);
}

TEST(ParameterViews, OneBlockHoldsAllNumbersOnce) {
  const Model model = numbered_model();
  std::vector<double> block(flat_size(model), -1);
  write_flat(model, block.data());
  expect_same_numbers(flat_view(model, block.data()), model);
  for (size_t k = 0; k < block.size(); ++k) EXPECT_EQ(block[k], static_cast<double>(k + 1));
}

TEST(ParameterViews, SlotsAreTheParameters) {
  Model model = numbered_model();
  Parameters gradient = zero_parameters(model, kWorlds);
  gradient.gravity = Parameter(3);
  gradient.gravity.resize(1);
  GradientSlots slots = slots_of(gradient);
  double next = 0;
  for (const Field& field : fields()) {
    each_number(field.in(gradient), field.tangents, [&](int i, int c, int w) { field.of(slots)(i, c, w) += ++next; });
  }
  next = 0;
  for (const Field& field : fields()) {
    const Parameter& p = field.in(gradient);
    if (p.uniform()) continue;
    each_number(p, field.tangents, [&](int i, int c, int w) { EXPECT_EQ(p(i, c, w), ++next) << field.leaf; });
  }
  EXPECT_EQ(gradient.gravity(0, 1), 3 * next + 2 + 5 + 8) << "what all worlds share receives from all";
}

TEST(GradientBlock, HoldsWhatIsAskedForAndAddsIt) {
  Model model = numbered_model();
  for (const Field& field : fields()) {
    Parameter& p = field.of(model);
    for (int i = 0; i < p.items(); ++i) p.requires_grad(i, i == 0 && field.leaf != "mass" && field.leaf != "damping");
  }
  Parameters gradient;
  for (const Field& field : fields()) {
    field.of(gradient) = field.in(model).zeros(field.tangents, field.in(model).worlds());
  }
  const GradientBlock layout(model, gradient, kWorlds);
  std::vector<double> block(layout.numbers()), sums(static_cast<size_t>(layout.rows()));
  GradientSlots slots = layout.slots(block.data());
  EXPECT_FALSE(slots.bodies.mass);
  EXPECT_FALSE(slots.joints.damping);
  const auto value = [](const Field& field, int i, int c, int w) {
    return static_cast<double>(&field - fields().data()) * 1000 + i * 100 + c * 10 + w;
  };
  for (const Field& field : fields()) {
    const ParameterSlots& own = field.of(slots);
    if (!own) continue;
    each_number(field.in(model), field.tangents, [&](int i, int c, int w) { own(i, c, w) += value(field, i, c, w); });
  }
  for (int r = 0; r < layout.rows(); ++r) {
    for (int w = 0; w < kWorlds; ++w) sums[r] += block[layout.first_row() + r * layout.stride() + w];
  }
  for (int round = 1; round <= 2; ++round) {
    layout.add_to(gradient, block.data(), sums.data());
    for (const Field& field : fields()) {
      const Parameter& p = field.in(gradient);
      each_number(p, field.tangents, [&](int i, int c, int w) {
        double want = 0;
        if (field.in(model).requires_grad(i)) {
          for (int k = 0; k < kWorlds; ++k) want += p.uniform() || k == w ? value(field, i, c, k) : 0;
        }
        EXPECT_EQ(p(i, c, w), want * round) << field.leaf << " " << i << " " << c << " " << w;
      });
    }
  }
}

}  // namespace
}  // namespace backdrive
