#pragma once
// One world of a problem, run and scored; and its trajectory as a table.
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "autodiff/optimize.h"

namespace backdrive::app {

struct SimulationResult {
  int steps = 0;              ///< done; fewer than asked for when the world stopped or somebody interrupted
  std::vector<double> q, qd;  ///< [steps + 1][nq], [steps + 1][nv]; qd: Trajectory::velocity()
  WorldStatus status;
  bool interrupted = false;
  std::vector<std::string> term_names;  ///< empty when the run did not reach its end, or nothing is scored
  std::vector<double> terms;
  double loss = 0;
  double seconds = 0;
};

/// Runs the problem from its initial state under its controls. `progress` is called now and then with the steps done;
/// returning false interrupts. On the first of the devices.
SimulationResult simulate(const Problem& problem, const ExecutionOptions& how,
                          const std::function<bool(int)>& progress = {});

/// time, then position and velocity of every joint, then its control channels (empty in the last row, from which no
/// step is taken). SI units.
void write_trajectory(std::ostream& stream, const Problem& problem, const SimulationResult& result);

/// Aligned tables for people: loss terms with their sum, and the last state with units.
std::string loss_table(const SimulationResult& result);
std::string state_table(const Problem& problem, const SimulationResult& result);

}  // namespace backdrive::app
