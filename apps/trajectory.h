#pragma once
// The table of a motion: trajectory.csv.
#include <ostream>

#include "apps/simulate.h"
#include "scenes/scene.h"

namespace backdrive::app {

/// The efforts that a table has, for simulate(): those of drives, and of each joint that is asked for every part.
std::vector<EffortTerm> efforts_in_table(const Model& model, const RecordedColumns& columns);

/// time, position and velocity of every joint, then of each its effort and targets, empty in the last row, from which
/// no step is taken: `<joint>/effort` is what command and drive gave, `<joint>/command` that of a driven joint which it
/// was told to give. Behind that what `columns` ask for. SI units, world axes. `result` must have efforts_in_table().
void write_trajectory(std::ostream& stream, const Problem& problem, const RecordedColumns& columns,
                      const SimulationResult& result);

}  // namespace backdrive::app
