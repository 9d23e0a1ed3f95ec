#include "apps/gradient_doubts.h"

#include <algorithm>

#include "apps/console.h"

namespace backdrive::app {

std::vector<std::string> gradient_doubts(const Problem& problem, const GradientReach& reach) {
  std::vector<std::string> lines;
  const auto over = [&](std::size_t first) {
    return number(reach.distances[first]) + " to " + number(reach.distances.back()) + " of the variables' scales";
  };
  if (reach.is_endless()) {
    lines.push_back("the gradient is of length " + number(reach.steepness) +
                    " where the loss is nowhere steeper than " + number(reach.greatest() * reach.steepness) + " over " +
                    over(0) + " along it: it grew on its way back through " + count(problem.simulation.steps, "step") +
                    ", by chaos or rounding, and cannot be trusted; a shorter run, windows (optimize/gradient) or "
                    "--precision float64 may help");
  } else if (reach.is_lost()) {
    const std::size_t far = reach.steeper.size() - 2;
    lines.push_back("the gradient is of length " + number(reach.steepness) + " where the loss is no steeper than " +
                    number(std::max(reach.steeper[far], reach.steeper[far + 1]) * reach.steepness) + " over " +
                    over(far) + " along it: small changes grow on their way through " +
                    count(problem.simulation.steps, "step") +
                    ", as from one bounce to the next, and where a search would go it cannot be trusted; a shorter run "
                    "or windows (optimize/gradient) may help");
  } else if (reach.is_parted()) {
    lines.push_back("over " + over(reach.distances.size() - 2) + " along its gradient the loss changes " +
                    number(reach.ratios.back()) +
                    " times as much as the gradient says: it jumps in between, as by the step in which something stops "
                    "or turns over, and further off the gradient cannot be trusted; more starts may help, or a wider "
                    "or softer contact");
  }
  return lines;
}

}  // namespace backdrive::app
