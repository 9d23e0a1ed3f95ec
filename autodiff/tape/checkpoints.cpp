#include "autodiff/tape/checkpoints.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/error.h"
#include "engine/memory.h"

namespace backdrive {
namespace {

/// β(c, r) = C(c + r, c): the most pieces that c checkpoints reverse when none is run more than r times in advance.
double reach(double checkpoints, double repetitions) {
  double product = 1;
  for (double k = 1; k <= std::min(checkpoints, repetitions); ++k) {
    product *= (checkpoints + repetitions + 1 - k) / k;
    if (product > 1e18) return product;
  }
  return std::round(product);
}

std::int64_t pieces_of(const RolloutSize& size, int piece) {
  return (static_cast<std::int64_t>(size.steps) + piece - 1) / piece;
}

std::size_t bytes_of_rows(const RolloutSize& size, std::size_t rows) {
  const std::size_t stride = size.number_bytes == 4 ? row_stride<float>(size.worlds) : row_stride<double>(size.worlds);
  return rows * stride * static_cast<std::size_t>(size.number_bytes);
}

/// The plan of pieces of `piece` steps with all the checkpoints that fit, or fewer when fewer are of use.
MemoryPlan with_slots(const RolloutSize& size, int piece, std::size_t budget) {
  MemoryPlan plan{piece, 0};
  const std::size_t least = cost_of(size, plan).total_bytes;
  const std::size_t slot = cost_of(size, {piece, 8}).total_bytes / 8 - least / 8 + 1;  // as cost_of() rounds
  if (least > budget) return {0, 0};
  const std::size_t fit = (budget - least) / slot;
  plan.slots = static_cast<int>(std::min<std::size_t>(fit, static_cast<std::size_t>(pieces_of(size, piece) - 1)));
  return plan;
}

}  // namespace

std::string bytes_text(std::size_t bytes) {
  char text[32];
  const double mib = static_cast<double>(bytes) / (1024.0 * 1024.0);
  std::snprintf(text, sizeof text, mib < 1 ? "%.1f KiB" : "%.1f MiB", mib < 1 ? mib * 1024 : mib);
  return text;
}

double reversal_cost(std::int64_t pieces, std::int64_t checkpoints) {
  if (pieces <= 1) return 0;
  const double l = static_cast<double>(pieces), c = static_cast<double>(std::min(checkpoints, pieces));
  if (checkpoints <= 1) return l * (l - 1) / 2;
  double r = 1;
  while (reach(c, r) < l) ++r;
  return r * l - reach(c + 1, r - 1);
}

std::int64_t reversal_split(std::int64_t pieces, std::int64_t checkpoints) {
  const auto cost = [&](std::int64_t m) {
    return static_cast<double>(m) + reversal_cost(m, checkpoints) + reversal_cost(pieces - m, checkpoints - 1);
  };
  // The cost is convex in m: its first rise is found by bisection.
  std::int64_t low = 1, high = std::max<std::int64_t>(1, pieces - 1);
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (cost(middle + 1) >= cost(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

MemoryCost cost_of(const RolloutSize& size, const MemoryPlan& plan) {
  MemoryCost cost;
  const std::size_t rows = static_cast<std::size_t>(size.state_rows), steps = static_cast<std::size_t>(size.steps);
  const std::size_t held = plan.keeps_all() ? steps + 1 : static_cast<std::size_t>(plan.piece) + 1;
  // Beside checkpoints: the states between which a part runs.
  const std::size_t states = plan.keeps_all() ? held : held + static_cast<std::size_t>(plan.slots) + 2;
  cost.state_bytes = bytes_of_rows(size, states * rows);
  const std::size_t seeds = bytes_of_rows(size, held * static_cast<std::size_t>(size.seed_rows));
  // Start and end with their gradients; controls with theirs.
  const std::size_t others = bytes_of_rows(size, 6 * rows + steps * static_cast<std::size_t>(size.control_copies) *
                                                                static_cast<std::size_t>(size.control_rows));
  cost.total_bytes = size.fixed_bytes + cost.state_bytes + seeds + others;
  cost.total_bytes += cost.total_bytes / 8;  // blocks of the pool are up to an eighth larger than what they hold
  if (!plan.keeps_all()) {
    cost.recomputed = reversal_cost(pieces_of(size, plan.piece), plan.slots + 1) * plan.piece / size.steps;
  }
  return cost;
}

MemoryPlan plan_memory(const RolloutSize& size, std::size_t budget_bytes) {
  const MemoryPlan all;
  if (cost_of(size, all).total_bytes <= budget_bytes) return all;
  const auto whole_windows = [&](double steps) {
    const double windows = std::max(1.0, std::round(steps / size.window));
    return static_cast<int>(std::min<double>(windows * size.window, size.steps));
  };
  MemoryPlan best{0, 0};
  double least_work = INFINITY;
  std::size_t least_bytes = cost_of(size, all).total_bytes;
  const auto consider = [&](int piece) {
    least_bytes = std::min(least_bytes, cost_of(size, {piece, 0}).total_bytes);
    const MemoryPlan plan = with_slots(size, piece, budget_bytes);
    if (plan.keeps_all()) return;
    const double work = cost_of(size, plan).recomputed;
    if (work < least_work - 1e-9) {
      least_work = work;
      best = plan;
    }
  };
  // √steps needs least memory of all that repeat each step once; smaller pieces need less, and repeat more.
  for (double piece = std::sqrt(static_cast<double>(size.steps)); piece >= 0.5; piece /= 1.25)
    consider(whole_windows(piece));
  consider(whole_windows(1));
  if (best.keeps_all()) {
    usage_error("a memory budget of " + bytes_text(budget_bytes) + " is too small for " + std::to_string(size.steps) +
                " steps of " + std::to_string(size.worlds) + " worlds; expected at least " + bytes_text(least_bytes));
  }
  return best;
}

MemoryPlan plan_in_pieces(const RolloutSize& size) {
  constexpr std::size_t kSteps = 1 << 16, kLeastSteps = 1 << 12, kBytes = std::size_t{4} << 30;
  const std::size_t row = bytes_of_rows(size, static_cast<std::size_t>(size.state_rows));
  const std::size_t wanted = std::clamp(kBytes / std::max<std::size_t>(row, 1), kLeastSteps, kSteps);
  const auto window = static_cast<std::size_t>(std::max(1, size.window));
  const std::size_t piece = std::max<std::size_t>(1, wanted / window) * window;
  if (piece >= static_cast<std::size_t>(size.steps)) return {};
  MemoryPlan plan{static_cast<int>(piece), 0};
  plan.slots = static_cast<int>(pieces_of(size, plan.piece)) - 1;
  return plan;
}

std::string describe(const RolloutSize& size, const MemoryPlan& plan) {
  const MemoryCost cost = cost_of(size, plan);
  std::string text;
  if (plan.keeps_all()) {
    text = "every one of " + std::to_string(size.steps + 1) + " states";
  } else if (plan.slots + 1 >= pieces_of(size, plan.piece)) {
    text = "every " + std::to_string(plan.piece) + "-th of " + std::to_string(size.steps + 1) + " states";
  } else {
    text = std::to_string(plan.slots + 1) + " binomial checkpoints for " + std::to_string(pieces_of(size, plan.piece)) +
           " pieces of " + std::to_string(plan.piece) + " steps";
  }
  char work[64];
  std::snprintf(work, sizeof work, "%.2f extra forward rollouts", cost.recomputed);
  return text + " (" + bytes_text(cost.state_bytes) + " of " + bytes_text(cost.total_bytes) + " in all), " + work;
}

}  // namespace backdrive
