#pragma once
// Which states of a recorded rollout are kept, so that its gradient fits into a given memory: all of them, those at the
// starts of its pieces, or (binomial checkpoints) fewer still. What is not kept is computed again, to the same bits.
//
// The schedule is that of A. Griewank and A. Walther, "Algorithm 799: revolve" (ACM TOMS 26, 2000), with pieces of
// several steps in place of their single ones: within a piece all states are kept while it is walked back.
#include <cstddef>
#include <cstdint>
#include <string>

namespace backdrive {

struct MemoryPlan {
  int piece = 0;  ///< steps whose states are held at a time; 0: all of the rollout's
  int slots = 0;  ///< states kept at starts of pieces beside the initial one, at most

  bool keeps_all() const { return piece == 0; }
};

/// What a plan costs.
struct MemoryCost {
  std::size_t state_bytes = 0;  ///< states that the recording keeps, checkpoints and the piece at hand
  double recomputed = 0;        ///< forward steps done again, as a multiple of the rollout's steps
  std::size_t total_bytes = 0;  ///< with what does not depend on the plan: initial state, controls, their gradients
};

/// What has to be known of a rollout to plan its memory.
struct RolloutSize {
  int steps = 0;
  int worlds = 0;
  int state_rows = 0;    ///< nq + nv
  int control_rows = 0;  ///< nu when there is a control buffer, else 0
  int number_bytes = 8;
  int control_copies = 2;       ///< the controls, their gradient, and whatever else has their size
  int window = 1;               ///< pieces are made of whole windows of so many steps
  int seed_rows = 0;            ///< what a loss holds beside each of the states that are held
  std::size_t fixed_bytes = 0;  ///< held in any case
};

MemoryCost cost_of(const RolloutSize& size, const MemoryPlan& plan);

/// The plan with the least work that fits: everything, else pieces of about √steps, else binomial checkpoints. Throws
/// Error (usage) that names the least budget when none fits. O(√steps · log steps).
MemoryPlan plan_memory(const RolloutSize& size, std::size_t budget_bytes);

/// The plan that keeps all, or of long rollouts one of pieces that take seconds, not minutes, each: between two of them
/// there is somebody to ask how far it is, or to end it.
MemoryPlan plan_in_pieces(const RolloutSize& size);

/// Bytes in words: "1.5 MiB".
std::string bytes_text(std::size_t bytes);
/// "every 1000-th of 1000000 states (1.9 MiB), 1.00 extra forward rollouts".
std::string describe(const RolloutSize& size, const MemoryPlan& plan);

/// Forward steps (of pieces) that the reversal of `pieces` pieces repeats or does in advance when `checkpoints` states
/// can be kept, that of the first piece among them: t(l, c) of the paper, eq. (4).
double reversal_cost(std::int64_t pieces, std::int64_t checkpoints);
/// How many pieces to advance before the next checkpoint is set; in [1, pieces − 1].
std::int64_t reversal_split(std::int64_t pieces, std::int64_t checkpoints);

}  // namespace backdrive
