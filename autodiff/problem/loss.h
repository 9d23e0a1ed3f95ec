#pragma once

#include "autodiff/problem/inputs.h"

namespace backdrive {

template <class T>
struct LossResult {
  Buffer<T> terms;  ///< [term][world], weights included
  Buffer<T> total;  ///< [1][world]; NaN in worlds that stopped
  Seeds<T> seeds;   ///< of the sum over worlds of `total`; empty without a tape
};

/// Scores the states of a rollout while they pass; its sums go to evaluate_loss().
template <class T>
class LossObserver : public StateObserver<T> {
 public:
  virtual const Buffer<T>& sums() const = 0;  ///< [term][world], zero for the terms of other things
};

/// Whether some term reads states before the last.
bool scores_states_on_the_way(const Problem& problem);
/// Whether some term reads forces of contact: a rollout that is scored has to keep them (RolloutOptions::keep_contact).
bool scores_contact(const Problem& problem);

/// For one rollout of `worlds` worlds that does not keep its states; null when no term reads them. Keeps copies of what
/// it needs of the problem. Throws Error (usage) when a second rollout shows it states.
/// `control`: of that rollout.
template <class T>
std::shared_ptr<LossObserver<T>> observe_loss(const Problem& problem, const Control<T>& control,
                                              const RolloutOptions& options, int worlds, Memory& memory);

/// Scores a trajectory. With a tape, records what lies between the trajectory and the terms (body poses) and returns
/// the seeds that the tape's backward wants. Terms that read states on the way are those of the observer when one is
/// given. O(worlds · steps · terms).
template <class T>
LossResult<T> evaluate_loss(const Problem& problem, const Trajectory<T>& trajectory, const Control<T>& control,
                            const RolloutOptions& options, Tape<T>* tape, const LossObserver<T>* observer = nullptr);

}  // namespace backdrive
