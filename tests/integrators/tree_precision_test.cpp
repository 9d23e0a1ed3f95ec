// What float32 makes of one step of jointed bodies that touch a floor, beside float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/integrators/thrown_boxes.h"
#include "tests/support/single_steps.h"

namespace backdrive {
namespace {

using test::ThrownBoxes;

/// Of a throw from four times the size, one second long.
std::vector<double> differences(const ThrownBoxes& boxes, double rate) {
  const Model model = boxes.model();
  RolloutOptions options;
  options.time_step = 1 / rate;
  options.steps = static_cast<int>(std::lround(rate));
  State<double> start = boxes.throws<double>(model, 1, 10, 10 * boxes.size);
  start.q.set(6, 0, 4 * boxes.size);
  std::vector<double> unit(model.topology.nv, boxes.size);
  for (const Link& link : model.topology.links) {
    if (link.type == JointType::prismatic) unit[link.v] = 1;
    if (link.type == JointType::free) std::fill_n(unit.begin() + link.v + 3, 3, 1);
  }
  return test::differences_of_steps(model, start, options, [&](int v) { return unit[v]; });
}

// Rounding, 6e-8, by what links weigh less than what is added to their inertias, some thousand times, and by places
// that are known to 6e-8 of 0.1 m. With K_t of what sticks as it is (docs/contact.md, section 2) 99.9 % of the steps of
// boxes of 10 cm and more are within 1e-3 to 2.4e-3.
TEST(TreePrecision, StepsOfLinksThatTouchAreThoseOfRounding) {
  for (const double size : {0.001, 0.01, 0.1, 1., 10.}) {
    std::vector<double> all;
    const double slow = 120 * std::max(1., 0.01 / size);  // things of 1 mm fall by their size in 14 ms
    for (const double rate : {slow, 4 * slow}) {
      for (const JointType first : ThrownBoxes::types) {
        for (const JointType second : ThrownBoxes::types) {
          const ThrownBoxes boxes{Integrator::featherstone, first, second, size, true};
          const std::vector<double> off = differences(boxes, rate);
          all.insert(all.end(), off.begin(), off.end());
        }
      }
    }
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) { return all[static_cast<std::size_t>(share * (all.size() - 1))]; };
    std::printf("boxes of %g m: median %.1e, 99 %% %.1e, 99.9 %% %.1e, worst %.1e\n", size, at(0.5), at(0.99),
                at(0.999), at(1));
    EXPECT_LT(at(0.999), size < 0.1 ? 3e-3 : 8e-4) << size << " m";
    EXPECT_LT(at(1), 2e-2) << size << " m";
  }
}

}  // namespace
}  // namespace backdrive
