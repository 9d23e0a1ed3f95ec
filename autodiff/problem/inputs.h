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

/// Row within one step of a control.
int channel_row(const Link& link, ControlChannel channel);

/// Throws Error (input) for a joint that `what` (and its name) cannot be about: it is about one position or velocity,
/// or one effort.
void check_one_degree(const Model& model, int joint, const char* what, const std::string& name = {});

}  // namespace backdrive
