#pragma once
// The numbers of a scene that a page can move: where joints begin, and every parameter of the model.
#include <string>
#include <utility>
#include <vector>

#include "autodiff/optimize/optimize.h"

namespace backdrive::app {

/// One number with its path: initial_state/JOINT/position, initial_state/JOINT/velocity, with /x and so on where a
/// joint has several, or a parameter's. Of an orientation the three numbers are a turn about its own axes, in rad, from
/// zero.
struct Slider {
  std::string path;
  double value = 0;             ///< may be infinite: no limit
  std::string unit, words;      ///< what it is, in a line
  double lower = 0, upper = 0;  ///< where its slider ends, at first
  bool is_position = false;     ///< of a joint
};
/// All of them: positions, velocities, parameters.
std::vector<Slider> sliders_of(const Problem& problem);

/// A problem with some of its numbers moved, and these as its variables.
struct MovedProblem {
  Problem problem;  ///< at the values
  /// Which number of the variables (variable_layout) each path is.
  std::vector<std::pair<std::string, int>> numbers;
};
/// Throws Error (input) with path, value and what was expected: for a path that names no single number, and for a value
/// that it cannot have.
MovedProblem move_numbers(const Problem& problem, const std::vector<std::pair<std::string, double>>& values);

/// The gradient of the loss by each of the numbers of a moved problem.
struct SliderGradient {
  double loss = 0;
  std::vector<double> gradient;
  std::vector<std::string> why;  ///< it is zero: as far as structure says it
};
/// Throws Error (non_finite) where the motion stops. O(a rollout with gradient).
SliderGradient slider_gradient(const MovedProblem& moved, ExecutionOptions how);

}  // namespace backdrive::app
