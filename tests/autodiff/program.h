#pragma once
// Random programs over tapes: what they may do, and the machine that runs one on the library beside the plain reference
// and throws where the two differ.
#include <cstdint>
#include <iosfwd>
#include <vector>

#include "tests/autodiff/program_reference.h"

namespace backdrive::test {

enum class CommandKind {
  new_tape,
  record,       ///< a rollout of 1 to 6 steps
  step,         ///< one step under a policy
  custom,       ///< an operation with its own adjoint
  switch_grad,  ///< requires_grad of a path
  replace,      ///< parameters: a value, an object, a group, the whole model
  detach,       ///< a copy that no gradient flows through
  drop,         ///< a tape without backward, or a handle of a buffer
  move,         ///< a tape, into a new one or over another
  backward,     ///< compared with the reference
  use_spent,    ///< a spent tape must refuse everything
};

/// Any list of commands is a program: each picks what it works on among what is there, by its dice. So a list stays one
/// when rapidcheck takes commands out of it.
struct Command {
  CommandKind kind;
  std::uint16_t dice;
};

struct Program {
  int joints = 1;      ///< 1 to 3
  int worlds = 1;      ///< 1 to 3
  std::uint16_t dice;  ///< of the model and the first states
  std::vector<Command> commands;
};
std::ostream& operator<<(std::ostream& out, const Program& program);

struct ProgramCounts {
  int backwards = 0;
  int refusals = 0;        ///< of models that differ in shape
  int foreign_inputs = 0;  ///< gradients of what another tape had made
  double worst = 0;        ///< largest error in units of the tolerance
};

/// Runs the program; throws std::runtime_error with what happened so far when the library and the reference differ,
/// when a seed is written to, when a spent tape works, or when nodes or memory are left behind.
ProgramCounts run_program(const Program& program, plain::Fault fault = plain::Fault::none);

}  // namespace backdrive::test
