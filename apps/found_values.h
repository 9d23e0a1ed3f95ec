#pragma once
// What an optimisation found, number by number.
#include <string>
#include <vector>

#include "autodiff/problem/problem.h"

namespace backdrive::app {

struct FoundValue {
  std::string name;  ///< "joints/hinge/damping", "bodies/pole/com/z", "initial_state/hinge/position", "control/hinge"
  double value;      ///< SI
  std::string unit;
  std::string note;  ///< the bound that it stands at, or nothing
  int variable = 0;  ///< which of the problem's
};

/// The values of a problem's variables, of a vector each component: parameters, initial states, and controls of one
/// knot. What controls of several are belongs into a file.
std::vector<FoundValue> found_values(const Problem& problem);

std::string found_table(const std::vector<FoundValue>& values);

}  // namespace backdrive::app
