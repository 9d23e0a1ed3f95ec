#pragma once
// What a tape recorded, written down plainly, and its gradients computed again from scratch: forward mode in float64,
// one number of the inputs at a time, over dense dynamics in world coordinates. No tape, no adjoint, no kernel: the
// second opinion for the random programs of programs_test.cpp.
#include <map>
#include <memory>
#include <vector>

#include "models/parameter_list.h"

namespace backdrive::test::plain {

/// Faults to plant in the reference: a right library beside a wrong reference differ as the reverse would, so each must
/// be found. Every one is a mistake that engines have made.
enum class Fault {
  none,
  accumulated_twice,     ///< a gradient is added to that of an earlier backward
  flows_through_detach,  ///< a detached copy passes its cotangent on
  switch_at_backward,    ///< requires_grad is looked at when walking back, not when recording
  values_at_backward,    ///< so are the parameters' values
  last_use_only,         ///< of several uses of a buffer only the last counts
  last_seed_only,        ///< of several seeds of a buffer only the last counts
  one_world_only,        ///< a uniform parameter's gradient is that of one world, not the sum
};

using Numbers = std::vector<double>;  ///< [row · worlds + world]

/// Joint j moves body j about its axis, or along it.
struct Joint {
  bool slides;
  int parent;  ///< body, −1: world
  int target;  ///< first of two control channels, −1: no drive
};

/// One row of the table of fields: [world][item][component].
struct FieldValues {
  int items, components, tangents, worlds;
  Numbers values;
  std::vector<bool> asked;
};

struct Model {
  std::vector<Joint> joints;
  std::vector<int> shape_bodies;    ///< all shapes are spheres
  std::vector<FieldValues> fields;  ///< in the order of the table
  int nu = 0;
};
/// The numbers and requests of a model at this moment.
Model snapshot(const backdrive::Model& model);
/// Whether anybody asks for a parameter's gradient.
bool asks(const Model& model);

/// A buffer of the program.
struct Slot {
  int rows = 0;
  Numbers numbers;
  int detached_from = -1;  ///< the slot that it is a copy of
};

enum class OpKind { rollout, policy, product, sum, sine, scaled };

/// One thing on a tape. Slots by number, −1 for one that nobody can name.
///   rollout: (q, qd[, u]) to (final q, final qd, all q, all qd)        policy: (gains, q, qd) to (u)
///   product, sum: (a, b) to (y)                                        sine, scaled: (a) to (y)
struct Op {
  OpKind kind;
  std::vector<int> in, out;
  int steps = 0;
  double factor = 1;
  std::shared_ptr<const Model> model{};  ///< rollout: as it was when recorded
};

struct Seed {
  int slot;
  Numbers numbers;
};

/// Everything one backward depends on.
struct Question {
  const std::vector<Slot>* slots;
  std::vector<Op> ops;
  std::vector<Seed> seeds;
  int worlds;
  double time_step;
  std::shared_ptr<const Model> model_now;  ///< for faults: the model at backward
};

/// Derivatives, and beside each the sum of the magnitudes of its terms |seed · ∂output/∂input|: rounding errors are
/// relative to that.
struct Block {
  Numbers values, magnitudes;
};

struct FieldGradient {
  int items = 0, tangents = 0, worlds = 0;
  std::vector<bool> asked;
  Block block;  ///< [world][item][tangent]
};

struct Answer {
  std::map<int, Block> buffers;       ///< by slot: of every input that no op of the tape made
  std::vector<FieldGradient> fields;  ///< in the order of the table; empty when no op has a model
  std::vector<Numbers> values;        ///< by slot: what the ops put out; empty where they do not
  bool refused = false;               ///< models that ask for gradients differ in shape: an error
};

/// Keeps what its fault needs from one answer to the next.
class Reference {
 public:
  explicit Reference(Fault fault) : fault_(fault) {}
  Answer answer(const Question& question);

 private:
  Fault fault_;
  std::map<int, Block> buffers_before_;
  std::vector<FieldGradient> fields_before_;
};

}  // namespace backdrive::test::plain
