#pragma once
// The efforts and powers of joints that acted in the steps of a rollout, with or without a tape.
#include <span>

#include "autodiff/tape/recorded.h"

namespace backdrive {

/// The effort of a joint's degree of freedom, or its power. Throws Error (input) for a joint without that degree.
EffortTerm effort_term(const Model& model, int joint, EffortPart part, bool power = false, int degree = 0);

/// A rollout or a piece of one; `first_control`: its first row in `control`, which may be empty.
template <class T>
struct EffortSteps {
  const Trajectory<T>& piece;
  const Control<T>& control;
  int first_control = 0;
};

/// [step·count + k][world], N·m or N, or W: what each of `terms` was in each step of a rollout that kept its states,
/// from its first on. Parts are those of docs/theory.md (9) with the velocity that the step led to; of semi_implicit
/// with the joint's rate there, which is that of its row to O(Δt). O(worlds · steps · count).
template <class T>
Buffer<T> acting_efforts(Tape<T>* tape, const Model& model, const EffortSteps<T>& rollout,
                         std::span<const EffortTerm> terms, const RolloutOptions& options,
                         Memory& memory = default_memory());

/// The same of a piece of a rollout, of a model that is at hand.
template <class T>
Buffer<T> efforts_of(const KernelModel<T>& model, const EffortSteps<T>& steps, const PoolVector<EffortTerm>& terms,
                     const RolloutOptions& options, Memory& memory);

/// Cotangents that are added to. Of `control` all rows; empty ones are not asked for.
template <class T>
struct EffortBars {
  Buffer<T>&q, &qd, &velocity;  ///< velocity may be qd
  Buffer<T>&control, &constants;
};
template <class T>
void efforts_adjoint(const Recorded<T>& recorded, const EffortSteps<T>& steps, const PoolVector<EffortTerm>& terms,
                     const Buffer<T>& efforts_bar, const EffortBars<T>& bars, Memory& memory);

}  // namespace backdrive
