#pragma once
// What a run needs is held against what the machine has before it starts: better a sentence at once than to be killed
// after an hour.
#include <cstdint>
#include <string>

#include "apps/simulate.h"

namespace backdrive::app {

/// Bytes that this process may still take: the least of what the machine has available (/proc/meminfo), of the limits
/// of its control groups, and of `ulimit -v`. The largest number where nothing says.
std::uint64_t available_memory();

/// Why the motion of one world (simulate()), with so many efforts a step, is larger than what the machine has; empty
/// where it fits.
std::string motion_too_large(const Problem& problem, std::size_t efforts = 0);
/// Throws Error (input) with that.
void check_motion_fits(const Problem& problem, std::size_t efforts = 0);

/// For what evaluates gradients. Where all states of the recorded rollouts fit neither the budget nor the machine, the
/// budget becomes what the machine has: fewer states are kept then, and the others computed again, to the same bits.
/// Throws Error (input) when even the fewest do not fit. GPUs have memory of their own: there only the motion is
/// checked.
void keep_within_memory(const Problem& problem, ExecutionOptions& how);

/// The most of `worlds` whose rollouts fit into half of what the machine has, at least 1.
int worlds_that_fit(const Problem& problem, ExecutionOptions how, int worlds);

}  // namespace backdrive::app
