#pragma once
// A rollout on a tape: runs forwards, keeps the states that its plan says, and walks back piece by piece.
#include "autodiff/tape/recorded.h"

namespace backdrive {

/// Which steps of a rollout, and what is kept of them.
struct PartSteps {
  int first = 0, count = 0;
  bool keep_states = true, keep_contact = false;
};

/// Some steps in a row.
template <class T>
struct RolloutPart {
  int first_step = 0, steps = 0;
  State<T> begin, end;                     ///< may be the same buffers
  Buffer<T> begin_reported, end_reported;  ///< begin.reported(), and what becomes end's; empty: no contact
  Buffer<T> begin_ways, end_ways;          ///< likewise of ways()
  bool fresh = false;                      ///< as in Launch
  Buffer<T> q, qd;                         ///< every state, steps + 1 of them; empty: not kept
  Buffer<T> reported, contact;             ///< as Trajectory says
  Buffer<T> ways;                          ///< of every state, as `reported`
  Buffer<T> touched;                       ///< as RolloutArguments says

  RolloutPart() = default;
  RolloutPart(const PartSteps& which, const State<T>& from, const Model& model, Memory& memory)
      : first_step(which.first),
        steps(which.count),
        begin(from),
        end(State<T>::uninitialized(model, from.q.worlds(), memory)) {
    const int nv = model.topology.nv, worlds = from.q.worlds();
    const bool touches = !model.topology.contact_pairs.empty();
    if (touches) begin_reported = from.reported(), end_reported = Buffer<T>::uninitialized(memory, nv, worlds);
    const int way_count = model.topology.way_count;
    if (way_count > 0) begin_ways = from.ways(), end_ways = Buffer<T>::uninitialized(memory, way_count, worlds);
    fresh = touches && from.begins();
    if (!which.keep_states) return;
    const std::int64_t states = std::int64_t{steps} + 1;
    q = Buffer<T>::uninitialized(memory, row_count(states, model.topology.nq), worlds);
    qd = Buffer<T>::uninitialized(memory, row_count(states, nv), worlds);
    if (touches) reported = Buffer<T>::uninitialized(memory, row_count(states, nv), worlds);
    if (way_count > 0) ways = Buffer<T>::uninitialized(memory, row_count(states, way_count), worlds);
    if (touches) touched = Buffer<T>::uninitialized(memory, steps, worlds);
    const int pair_rows = row_count(static_cast<std::int64_t>(model.topology.contact_pairs.size()), kContactRows);
    if (touches && which.keep_contact) contact = Buffer<T>::uninitialized(memory, row_count(steps, pair_rows), worlds);
  }
};

/// What parts of a rollout have in common.
template <class T>
struct PartRun {
  const KernelModel<T>& model;
  const Control<T>& control;  ///< of the whole rollout
  const RolloutOptions& options;
  WorldStatuses& status;
  Memory& memory;
  const int* steps_before = nullptr;  ///< as in Launch
};
template <class T>
void run_part(const PartRun<T>& run, RolloutPart<T>& part);

/// The part as a Trajectory of its own.
template <class T>
Trajectory<T> trajectory_of(const RolloutPart<T>& part, const std::shared_ptr<WorldStatuses>& status);

template <class T>
class RolloutNode final : public Tape<T>::Node {
 public:
  RolloutNode(Recorded<T> recorded, State<T> state, Control<T> control, std::shared_ptr<StateObserver<T>> observer);

  /// Once, before the node is on a tape.
  Trajectory<T> forward(Memory& memory);
  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override;
  LinkDependence trace(Reach& reach) const override;
  const Model* model() const override { return recorded_.model.get(); }

 private:
  struct Checkpoint {
    int piece;
    State<T> state;
  };
  struct Bars;

  int pieces() const { return (steps_ + piece_ - 1) / piece_; }
  /// The state at the start of piece `to`, from one at the start of piece `from`; shows the pieces to the observer on
  /// the way when `first_time`.
  State<T> advanced(const State<T>& state, int from, int to, bool first_time, Memory& memory);
  /// Runs one piece and keeps all of its states.
  RolloutPart<T> run_piece(const State<T>& begin, int piece, Memory& memory);
  /// The state at the start of the last piece before `end`; sets checkpoints on the way while there are slots.
  State<T> reach_piece_before(int end, bool first_time, Memory& memory);
  void observe(const RolloutPart<T>& piece);
  /// Tells whom options.passed says.
  void pass(int steps, const Memory& memory) const;
  void walk_back(const RolloutPart<T>& piece, Bars& out, Cotangents<T>& bars);

  Recorded<T> recorded_;
  State<T> state_;
  Buffer<T> reported_, ways_;  ///< state_.reported(), state_.ways()
  Control<T> control_;
  std::shared_ptr<StateObserver<T>> observer_;
  int steps_, piece_;
  State<T> final_;
  Buffer<T> final_reported_, final_ways_;
  RolloutPart<T> last_piece_;  ///< as the forward pass left it, until the walk back begins
  PoolVector<Checkpoint> checkpoints_;
};

}  // namespace backdrive
