#pragma once
// Executes the commands of a program on the library and keeps the plain description of all that happened beside it.
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "tests/autodiff/program.h"
#include "tests/support/random.h"

namespace backdrive::test {

class ProgramMachine {
 public:
  ProgramMachine(const Program& program, plain::Fault fault, Memory& memory);
  void execute(const Command& command);
  /// Walks every tape that is left, and looks whether any buffer was written to.
  void finish();
  /// The program in words, for a failure's message.
  std::string story() const { return story_.str(); }
  ProgramCounts counts() const { return counts_; }

 private:
  struct RecordedTape {
    Tape<double> tape;
    std::vector<plain::Op> ops;
    bool spent = false;
  };

  // What there is to choose from.
  int worlds() const { return program_.worlds; }
  int pick_slot(Random& random, int rows);
  int pick_any_slot(Random& random);
  std::pair<int, int> pick_state(Random& random);
  RecordedTape& pick_tape(Random& random);
  std::string name(const RecordedTape& tape) const;

  int add_slot(const Buffer<double>& buffer, const std::string& what);
  void keep(RecordedTape& tape, plain::Op op);
  int new_leaf(Random& random, int rows, double bound, const char* what);
  std::shared_ptr<const plain::Model> snapshot() const;
  State<double> state(std::pair<int, int> slots) const;

  void new_tape();
  void record(Random& random);
  void step(Random& random);
  void custom(Random& random);
  void switch_grad(Random& random);
  void replace(Random& random);
  void detach(Random& random);
  void drop(Random& random);
  void move(Random& random);
  void backward(RecordedTape& tape, Random& random);
  void use_spent(RecordedTape& tape);

  Seeds<double> random_seeds(const RecordedTape& tape, Random& random, plain::Question& question);
  void compare(const Gradients<double>& got, const plain::Answer& want, const RecordedTape& tape);
  void compare_fields(const Parameters& got, const plain::Answer& want, double whole);
  void compare_number(const std::string& what, double got, double want, double scale);

  const Program& program_;
  Memory memory_;
  std::unique_ptr<Model> model_;
  RolloutOptions options_;
  std::vector<std::unique_ptr<RecordedTape>> tapes_;
  std::vector<plain::Slot> slots_;
  std::vector<Buffer<double>> buffers_;  ///< beside slots_; empty when the handle was dropped
  std::vector<std::pair<int, int>> states_;
  std::set<int> made_;  ///< slots that a tape put out
  plain::Reference reference_;
  std::ostringstream story_;
  ProgramCounts counts_;
};

}  // namespace backdrive::test
