#pragma once
// With what a problem's rollout begins, and what drives it.
#include <string>

#include "autodiff/problem/problem.h"
#include "autodiff/tape/rollout.h"

namespace backdrive {

/// The problem's initial state and control signals in every world.
template <class T>
State<T> initial_state(const Problem& problem, int worlds, Memory& memory = default_memory());
template <class T>
Control<T> initial_control(const Problem& problem, int worlds, Memory& memory = default_memory());

/// Value of a signal given by `knots` (spread evenly from the first to the last of `steps` steps) at `step`, as weights
/// on two neighbouring knots.
struct KnotWeights {
  int first, second;
  double first_weight, second_weight;
};
KnotWeights knot_weights(int knots, int steps, int step, bool hold);
/// The same at a step of a simulation, whose controls are held over its substeps.
KnotWeights knot_weights(int knots, const Simulation& simulation, int step, bool hold);

/// What a row is asked for, for messages: "loss term ", and its name.
struct AskedBy {
  const char* what;
  const std::string& name;
};
/// Row within one step of a channel's number of a joint or coupling (models/coordinates.h). Throws Error (input) where
/// there is none; allocates nothing that stays.
int channel_row(const Model& model, int controlled, ControlChannel channel, int component, const AskedBy& by);

}  // namespace backdrive
