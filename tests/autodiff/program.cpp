#include "tests/autodiff/program.h"

#include <ostream>
#include <stdexcept>

#include "autodiff/tape/rollout.h"
#include "tests/autodiff/program_machine.h"

namespace backdrive::test {
namespace {

struct Live {
  std::size_t nodes = tape_counters().nodes;
  std::size_t bytes = default_memory().counters().live_bytes;
  bool operator==(const Live&) const = default;
};

/// The library keeps a few scratch arrays per thread in the default memory, which grow with the model: the largest one
/// first. What is wrong with this program is for the others to find.
void warm_up() {
  static const bool done = [] {
    Memory memory;
    const Program program{3, 3, 0, {{CommandKind::record, 0}, {CommandKind::step, 0}}};
    ProgramMachine machine(program, plain::Fault::none, memory);
    try {
      for (const Command& command : program.commands) machine.execute(command);
      machine.finish();
    } catch (const std::exception&) {
    }
    return true;
  }();
  static_cast<void>(done);
}

const char* name_of(CommandKind kind) {
  static const char* const names[] = {"new_tape", "record", "step", "custom",   "switch_grad", "replace",
                                      "detach",   "drop",   "move", "backward", "use_spent"};
  return names[static_cast<int>(kind)];
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Program& program) {
  out << program.joints << " joints, " << program.worlds << " worlds, dice " << program.dice << ":";
  for (const Command& command : program.commands) out << " " << name_of(command.kind) << "(" << command.dice << ")";
  return out;
}

ProgramCounts run_program(const Program& program, plain::Fault fault) {
  warm_up();
  const Live before;
  Memory memory;
  ProgramCounts counts;
  {
    ProgramMachine machine(program, fault, memory);
    try {
      for (const Command& command : program.commands) machine.execute(command);
      machine.finish();
    } catch (const std::exception& error) {
      throw std::runtime_error(machine.story() + error.what());
    }
    counts = machine.counts();
    if (Live() == before) throw std::logic_error("the counters do not see a machine that is alive");
  }
  if (!(Live() == before) || memory.counters().live_bytes != 0) {
    throw std::runtime_error("left behind: " + std::to_string(Live().nodes - before.nodes) + " nodes, " +
                             std::to_string(memory.counters().live_bytes) + " bytes of the program's memory, " +
                             std::to_string(Live().bytes - before.bytes) + " of the default memory");
  }
  return counts;
}

}  // namespace backdrive::test
