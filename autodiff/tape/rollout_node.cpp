#include "autodiff/tape/rollout_node.h"

#include <algorithm>

namespace backdrive {
namespace {

template <class T>
const T* first_row(const Buffer<T>* buffer) {
  return buffer && !buffer->empty() ? buffer->address() : nullptr;
}

}  // namespace

template <class T>
Trajectory<T> trajectory_of(const RolloutPart<T>& part, const std::shared_ptr<WorldStatuses>& status) {
  Trajectory<T> trajectory;
  trajectory.steps = part.steps;
  trajectory.q = part.q;
  trajectory.qd = part.qd;
  trajectory.final = part.end;
  trajectory.reported = part.reported;
  trajectory.ways = part.ways;
  trajectory.contact = part.contact;
  trajectory.final_reported = part.end_reported;
  trajectory.status = status;
  return trajectory;
}

template <class T>
void run_part(const PartRun<T>& run, RolloutPart<T>& part) {
  const Buffer<T>& u = run.control.u;
  RolloutArguments<T> arguments{launch_of(run.model, run.options.time_step, part.steps, part.begin.q, part.first_step),
                                part.begin.q.address(),
                                part.begin.qd.address(),
                                u.empty() ? nullptr : u.address(part.first_step * run.model.topology.nu),
                                part.q.empty() ? nullptr : part.q.write_address(),
                                part.qd.empty() ? nullptr : part.qd.write_address(),
                                part.end.q.write_address(),
                                part.end.qd.write_address(),
                                run.status.write_address()};
  arguments.launch.steps_before = run.steps_before;
  arguments.launch.fresh = part.fresh;
  if (!part.reported.empty()) arguments.reported = part.reported.write_address();
  if (!part.begin_reported.empty()) arguments.reported0 = part.begin_reported.address();
  if (!part.end_reported.empty()) arguments.reported_end = part.end_reported.write_address();
  if (!part.ways.empty()) arguments.ways = part.ways.write_address();
  if (!part.begin_ways.empty()) arguments.ways0 = part.begin_ways.address();
  if (!part.end_ways.empty()) arguments.ways_end = part.end_ways.write_address();
  if (!part.contact.empty()) arguments.contact = part.contact.write_address();
  if (!part.touched.empty()) arguments.touched = part.touched.write_address();
  launch_rollout(arguments, run.model.tree, run.options.threads, run.memory);
  part.end.set_reported(part.end_reported, part.end_ways);
}

/// What the pieces hand on to one another on the way back, and add to.
template <class T>
struct RolloutNode<T>::Bars {
  Buffer<T> q, qd, control, constants;
  Buffer<T> reported;  ///< empty: that of the first state is q̇'s, and no other is handed on
  Buffer<T> ways;      ///< empty: nobody knew any of the first state, and no other is handed on
  bool resume = false;
  Buffer<int> clipped;  ///< windows, per world
};

template <class T>
RolloutNode<T>::RolloutNode(Recorded<T> recorded, State<T> state, Control<T> control,
                            std::shared_ptr<StateObserver<T>> observer)
    : recorded_(std::move(recorded)),
      state_(std::move(state)),
      reported_(state_.reported()),
      ways_(state_.ways()),
      control_(std::move(control)),
      observer_(std::move(observer)),
      steps_(recorded_.options.steps) {
  const MemoryPlan& plan = recorded_.options.plan;
  piece_ = plan.keeps_all() ? steps_ : std::min(plan.piece, steps_);
  for (const Buffer<T>* b : {&state_.q, &state_.qd, &reported_, &ways_, &control_.u}) {
    if (!b->empty()) this->inputs.emplace_back(*b, b->version());
  }
}

template <class T>
Trajectory<T> RolloutNode<T>::forward(Memory& memory) {
  this->status = make_pooled<WorldStatuses>(state_.q.worlds(), memory);
  checkpoints_.push_back({0, state_});
  last_piece_ = run_piece(reach_piece_before(pieces(), true, memory), pieces() - 1, memory);
  observe(last_piece_);
  Trajectory<T> result = trajectory_of(last_piece_, this->status);
  result.steps = steps_;
  if (!recorded_.options.plan.keeps_all()) result.q = result.qd = result.reported = result.ways = result.contact = {};
  final_ = result.final;
  final_reported_ = result.final_reported;
  final_ways_ = last_piece_.end_ways;
  for (const Buffer<T>* b : {&result.q, &result.qd, &result.reported, &result.contact, &result.final.q,
                             &result.final.qd, &result.final_reported, &final_ways_}) {
    if (b->id() != 0) this->outputs.emplace_back(*b, b->version());
  }
  return result;
}

template <class T>
RolloutPart<T> RolloutNode<T>::run_piece(const State<T>& begin, int piece, Memory& memory) {
  const Model& model = *recorded_.model;
  const int first = piece * piece_;
  RolloutPart<T> part({first, std::min(piece_, steps_ - first), true, recorded_.options.keep_contact}, begin, model,
                      memory);
  run_part({recorded_.kernel_model, control_, recorded_.options, *this->status, memory}, part);
  pass(part.steps, memory);
  return part;
}

template <class T>
void RolloutNode<T>::observe(const RolloutPart<T>& piece) {
  if (observer_) observer_->forward(trajectory_of(piece, this->status), piece.first_step);
}

template <class T>
void RolloutNode<T>::pass(int steps, const Memory& memory) const {
  if (recorded_.options.passed && !memory.backend()) {
    recorded_.options.passed(std::int64_t{steps} * state_.q.worlds());
  }
}

template <class T>
State<T> RolloutNode<T>::advanced(const State<T>& state, int from, int to, bool first_time, Memory& memory) {
  if (first_time && observer_) {
    State<T> at = state;
    for (int piece = from; piece < to; ++piece) {
      const RolloutPart<T> part = run_piece(at, piece, memory);
      observe(part);
      at = part.end;
    }
    return at;
  }
  // By whole pieces, as many as make a part that is neither nothing nor without end.
  constexpr int kSteps = 4096;
  const int most = std::max(1, kSteps / piece_);
  State<T> at = state;
  for (int piece = from; piece < to; piece += most) {
    const int count = std::min(most, to - piece);
    RolloutPart<T> part({piece * piece_, count * piece_, false}, at, *recorded_.model, memory);
    run_part({recorded_.kernel_model, control_, recorded_.options, *this->status, memory}, part);
    pass(part.steps, memory);
    at = part.end;
  }
  return at;
}

template <class T>
State<T> RolloutNode<T>::reach_piece_before(int end, bool first_time, Memory& memory) {
  while (end - checkpoints_.back().piece > 1) {
    const Checkpoint& top = checkpoints_.back();
    const int free = recorded_.options.plan.slots - (static_cast<int>(checkpoints_.size()) - 1);
    if (free <= 0) return advanced(top.state, top.piece, end - 1, first_time, memory);
    const int next = top.piece + static_cast<int>(reversal_split(end - top.piece, free + 1));
    State<T> state = advanced(top.state, top.piece, next, first_time, memory);
    checkpoints_.push_back({next, std::move(state)});
  }
  return checkpoints_.back().state;
}

template <class T>
void RolloutNode<T>::walk_back(const RolloutPart<T>& piece, Bars& out, Cotangents<T>& bars) {
  const Topology& t = recorded_.model->topology;
  const GradientWindow& window = recorded_.options.window;
  StateSeeds<T> seeds;
  if (observer_) seeds = observer_->backward(trajectory_of(piece, this->status), piece.first_step);
  const auto seeds_of = [&](const Buffer<T>& states, Buffer<T>& own) {
    if (!recorded_.options.plan.keeps_all()) return first_row(&own);
    if (!own.empty()) bars.add(states, std::move(own));
    return first_row(bars.find(states));
  };
  const int first_control = piece.first_step * t.nu;
  const bool touches = !piece.reported.empty();
  RolloutAdjointArguments<T> arguments{
      launch_of(recorded_.kernel_model, recorded_.options.time_step, piece.steps, state_.q, piece.first_step),
      piece.q.address(),
      piece.qd.address(),
      control_.u.empty() ? nullptr : control_.u.address(first_control),
      bars.status(state_.q.worlds()).address(),
      seeds_of(piece.q, seeds.q),
      seeds_of(piece.qd, touches ? seeds.start_qd : seeds.qd),
      first_row(bars.find(final_.q)),
      first_row(bars.find(final_.qd)),
      out.q.write_address(),
      out.qd.write_address(),
      out.control.empty() ? nullptr : out.control.write_address(first_control),
      out.constants.empty() ? nullptr : out.constants.write_address(),
      out.resume,
      {window.steps, window.cut, T(window.clip), out.clipped.empty() ? nullptr : out.clipped.write_address()}};
  if (touches) {
    arguments.launch.fresh = piece.fresh;
    arguments.reported_bar = seeds_of(piece.reported, seeds.qd);
    arguments.reported = piece.reported.address();
    arguments.touched = piece.touched.address();
    if (!out.reported.empty()) arguments.reported0_bar = out.reported.write_address();
    arguments.reported_end_bar = first_row(bars.find(final_reported_));
    if (!piece.ways.empty()) {
      arguments.ways = piece.ways.address();
      if (!out.ways.empty()) arguments.ways0_bar = out.ways.write_address();
      arguments.ways_end_bar = first_row(bars.find(final_ways_));
    }
    if (!piece.contact.empty()) arguments.contact_bar = seeds_of(piece.contact, seeds.contact);
  }
  launch_rollout_adjoint(arguments, recorded_.kernel_model.tree, recorded_.options.threads, bars.memory());
  out.resume = true;
  pass(piece.steps, bars.memory());
  if (observer_) observer_->passed(out.q, out.qd, piece.first_step);
}

template <class T>
LinkDependence RolloutNode<T>::trace(Reach& reach) const {
  const Topology& t = recorded_.model->topology;
  Components q, qd;
  const auto collect = [&](const Buffer<T>& buffer, Components& components) {
    if (const Components* read = reach.of(buffer.id())) components.add(*read);
  };
  collect(final_.q, q);
  collect(final_.qd, qd);
  collect(final_reported_, qd);
  if (recorded_.options.plan.keeps_all()) {
    collect(last_piece_.q, q);
    collect(last_piece_.qd, qd);
    collect(last_piece_.reported, qd);
  }
  if (observer_) observer_->reads(q, qd);
  LinkDependence own(t.links.size());
  if (const Components* read = reach.of(final_ways_.id())) {
    for (std::size_t i = 0; i < t.links.size(); ++i) {
      if (t.links[i].way >= 0 && read->has(t.links[i].way)) own.move_tree_of(t, static_cast<int>(i));
    }
  }
  if (const Components* read = reach.of(last_piece_.contact.id())) {
    for (std::size_t k = 0; k < t.contact_pairs.size(); ++k) {
      bool any = false;
      for (int c = 0; c < 3; ++c) any = any || read->has(static_cast<int>(k) * kContactRows + c);
      if (any) own.move_tree_of(t, t.contact_shapes[t.contact_pairs[k].a].root);
    }
  }
  for (std::size_t i = 0; i < t.links.size(); ++i) {
    const Link& link = t.links[i];
    const JointSize size = joint_size(link.type);
    bool read = false;
    for (int k = 0; k < size.nq; ++k) read = read || q.has(link.q + k);
    for (int k = 0; k < size.nv; ++k) read = read || qd.has(link.v + k);
    const bool has_rows = t.has_bodies() && link.body >= 0;
    for (int k = 0; has_rows && k < kBodyPositions; ++k) read = read || q.has(t.body_q(link.body) + k);
    for (int k = 0; has_rows && k < kBodyVelocities; ++k) read = read || qd.has(t.body_v(link.body) + k);
    if (read) own.move_tree_of(t, static_cast<int>(i));
  }
  reach.read(state_.q.id(), moved_positions(t, own));
  reach.read(state_.qd.id(), moved_velocities(t, own));
  if (!reported_.empty()) reach.read(reported_.id(), moved_velocities(t, own));
  if (!ways_.empty()) reach.read(ways_.id(), moved_ways(t, own));
  if (!control_.u.empty()) reach.read(control_.u.id(), moved_controls(t, own));
  return own;
}

template <class T>
void RolloutNode<T>::backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) {
  Memory& memory = bars.memory();
  const int worlds = state_.q.worlds();
  const GradientWindow& window = recorded_.options.window;
  Bars out;
  out.q = Buffer<T>::uninitialized(memory, state_.q.rows(), worlds);
  out.qd = Buffer<T>::uninitialized(memory, state_.qd.rows(), worlds);
  if (!final_reported_.empty() && (pieces() > 1 || !reported_.empty())) {
    out.reported = Buffer<T>::uninitialized(memory, state_.qd.rows(), worlds);
  }
  if (!final_ways_.empty() && (pieces() > 1 || !ways_.empty())) {
    out.ways = Buffer<T>::uninitialized(memory, final_ways_.rows(), worlds);
  }
  if (!control_.u.empty()) out.control = Buffer<T>::uninitialized(memory, control_.u.rows(), worlds);
  out.constants = recorded_.constants_bar(memory, worlds, true);
  if (window.clip > 0) out.clipped = Buffer<int>(memory, 1, worlds);
  walk_back(last_piece_, out, bars);
  for (int end = pieces() - 1; end > 0; --end) {
    last_piece_ = {};  // its memory is that of the next
    while (checkpoints_.back().piece >= end) checkpoints_.pop_back();
    last_piece_ = run_piece(reach_piece_before(end, false, memory), end - 1, memory);
    walk_back(last_piece_, out, bars);
  }
  if (observer_) observer_->finish(bars, gradient, gradient_dot);
  bars.add(state_.q, std::move(out.q));
  bars.add(state_.qd, std::move(out.qd));
  if (!out.reported.empty()) bars.add(reported_.empty() ? state_.qd : reported_, std::move(out.reported));
  if (!out.ways.empty() && !ways_.empty()) bars.add(ways_, std::move(out.ways));
  if (!out.control.empty()) bars.add(control_.u, std::move(out.control));
  if (window.active()) {
    WindowCounts counts;
    counts.all =
        static_cast<std::int64_t>(worlds) * (window.steps > 0 ? (steps_ + window.steps - 1) / window.steps : 1);
    bars.count(counts, out.clipped);
  }
  recorded_.add_gradient(out.constants, bars, gradient, gradient_dot);
}

#define BACKDRIVE_INSTANTIATE(T)                                                                         \
  template class RolloutNode<T>;                                                                         \
  template Trajectory<T> trajectory_of<T>(const RolloutPart<T>&, const std::shared_ptr<WorldStatuses>&); \
  template void run_part<T>(const PartRun<T>&, RolloutPart<T>&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
