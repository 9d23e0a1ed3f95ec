#pragma once
// One world of a problem, run and scored; and its trajectory as a table.
#include <array>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "autodiff/optimize/optimize.h"
#include "autodiff/tape/efforts.h"

namespace backdrive::app {

/// A pair of shapes that touched in a step.
struct ContactRecord {
  int step;                            ///< the force acted from its state to the next
  int pair;                            ///< of the topology's contact_pairs
  std::array<double, 3> force, point;  ///< N on the pair's first body; m; world axes
  double depth;                        ///< m
};

struct SimulationResult {
  int steps = 0;                        ///< done; fewer than asked for when the world stopped or somebody interrupted
  std::vector<double> q, qd;            ///< [steps + 1][nq], [steps + 1][nv]; qd: Trajectory::velocity()
  std::vector<ContactRecord> contacts;  ///< in the order of steps, then of pairs
  std::vector<double> efforts;          ///< [steps][those asked for]
  WorldStatus status;
  bool interrupted = false;
  std::vector<std::string> term_names;  ///< empty when the run did not reach its end, or nothing is scored
  std::vector<double> terms;
  double loss = 0;
  double seconds = 0;
};

/// A sentence for each loop that is not closed in the initial state; validate, run and optimize warn with it.
std::vector<std::string> open_loops(const Problem& problem);

/// Runs the problem from its initial state under its controls. `progress` is called now and then with the steps done;
/// returning false interrupts. `efforts`: which to keep. On the first of the devices.
SimulationResult simulate(const Problem& problem, const ExecutionOptions& how, std::span<const EffortTerm> efforts = {},
                          const std::function<bool(int)>& progress = {});

/// How often pairs of shapes came to touch and parted in a run.
struct ContactChanges {
  int made = 0, broken = 0;
};
ContactChanges contact_changes(const SimulationResult& result);

/// Of each step of `substeps` steps, as write_contacts() tells.
std::vector<ContactRecord> contacts_of_steps(std::vector<ContactRecord> contacts, int substeps);

/// Whether anything can touch anything, so that there is something to write:
bool may_touch(const Problem& problem);
/// time and step, the two shapes, the force on the first one's body, where it acts, depth: a row for each pair that
/// touched in a step. Of a step with substeps the mean of its forces, the mean point, weighted with them, and the
/// greatest depth. SI units, world axes.
void write_contacts(std::ostream& stream, const Problem& problem, const SimulationResult& result);

/// Aligned tables for people: loss terms with their sum, and the last state with units.
std::string loss_table(const SimulationResult& result);
std::string state_table(const Problem& problem, const SimulationResult& result);

}  // namespace backdrive::app
