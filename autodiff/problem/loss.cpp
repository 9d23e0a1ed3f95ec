#include "autodiff/problem/loss.h"

#include <algorithm>
#include <array>
#include <limits>

#include "autodiff/problem/loss_kernel.h"
#include "autodiff/tape/recorded.h"
#include "engine/buffer_kernels.h"
#include "engine/error.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"
#include "models/mass_properties.h"

namespace backdrive {
namespace {

/// Bodies whose poses the terms of one kind (terminal or running) read.
PoolVector<int> bodies_of(const std::vector<LossTerm>& terms, bool terminal) {
  PoolVector<int> bodies;
  for (const LossTerm& term : terms) {
    if (term.is_pose() && term.terminal == terminal &&
        std::find(bodies.begin(), bodies.end(), term.index) == bodies.end()) {
      bodies.push_back(term.index);
    }
  }
  return bodies;
}

/// A buffer that terms read in some of its states, and the cotangent that collects their seeds where some are asked
/// for.
template <class T>
struct Source {
  Buffer<T> values;
  int rows_per_state = 0;
  Buffer<T> bar;
  Components read{};  ///< where seeds may stand

  void collect_seeds(Memory& memory) {
    if (!bar.empty() || values.empty()) return;
    bar = Buffer<T>::uninitialized(memory, values.rows(), values.worlds());
  }
};

/// Which terms an evaluation is about.
enum class Terms { all, states_on_the_way, others };

bool is_among(const LossTerm& term, Terms which) {
  return which == Terms::all || term.is_on_the_way() == (which == Terms::states_on_the_way);
}

/// What is scored, of some steps in a row.
struct Score {
  const std::vector<LossTerm>& terms;
  const Model& model;
  double time_step;
  int steps_before;  ///< of the rollout
  int steps;
  int threads;
};

/// Steps of a score that a running term is about, counted from 1 within it.
struct ScoredSteps {
  int first, count;
};

ScoredSteps scored_steps(const LossTerm& term, const Score& score) {
  if (term.first_step < 1 || term.last_step < term.first_step) {
    usage_error("loss term " + term.name + " of steps " + std::to_string(term.first_step) + " to " +
                std::to_string(term.last_step) + "; expected one step or more, counted from 1");
  }
  const int first = std::max(term.first_step - score.steps_before, 1);
  const int last = std::min(term.last_step - score.steps_before, score.steps);
  return {first, std::max(last - first + 1, 0)};
}

constexpr ErrorShape shape_of(const LossTerm& term) {
  switch (term.quantity) {
    case LossQuantity::contact_force:
      return ErrorShape::vector;
    case LossQuantity::body_position:
      return ErrorShape::position;
    case LossQuantity::body_orientation:
      return ErrorShape::orientation;
    case LossQuantity::joint_position:
    case LossQuantity::joint_velocity:
    case LossQuantity::control:
      break;
  }
  return term.on_circle ? ErrorShape::circle : ErrorShape::scalar;
}

/// Numbers of a target, as kernels read it.
constexpr int target_numbers(ErrorShape shape) {
  switch (shape) {
    case ErrorShape::scalar:
    case ErrorShape::circle:
      return 1;
    case ErrorShape::vector:
    case ErrorShape::position:
      return 3;
    case ErrorShape::orientation:
      break;
  }
  return 9;
}

/// Appends a target.
template <class T>
void put_target(const std::array<double, 4>& target, ErrorShape shape, double weight, PoolVector<T>& to) {
  if (shape == ErrorShape::orientation) {
    const Mat3<double> goal = rotation_matrix(target[0], target[1], target[2], target[3]);
    for (int k = 0; k < 9; ++k) to.push_back(constant<T>(weight * (&goal.cx.x)[k]));
  } else {
    for (int k = 0; k < target_numbers(shape); ++k) to.push_back(constant<T>(target[k]));
  }
}

template <class T>
class Evaluation {
 public:
  Evaluation(const Score& score, Terms which, const Trajectory<T>& trajectory, const Control<T>& control, bool seeds,
             Memory& memory)
      : score_(score),
        which_(which),
        seeds_(seeds),
        memory_(memory),
        worlds_(trajectory.final.q.worlds()),
        status_(*trajectory.status) {
    const Topology& t = score.model.topology;
    q_[0] = {trajectory.q, t.nq, {}};
    q_[1] = {trajectory.final.q, t.nq, {}};
    qd_[0] = {trajectory.velocity(), t.nv, {}};
    qd_[1] = {trajectory.final_velocity(), t.nv, {}};
    control_ = {control.u, t.nu, {}};
    contact_ = {trajectory.contact, row_count(static_cast<std::int64_t>(t.contact_pairs.size()), kContactRows), {}};
  }

  /// Bodies whose poses the terms read, of the last state or on the way.
  void set_poses(bool terminal, const PoolVector<int>& bodies, Buffer<T> poses) {
    bodies_[terminal] = bodies;
    poses_[terminal] = {std::move(poses), row_count(static_cast<std::int64_t>(bodies.size()), 12), {}};
  }

  /// Worlds do not meet: each thread takes its share through all terms.
  void add_to(Buffer<T>& term_sums) {
    PoolVector<LossTermKernel<T>> terms;
    PoolVector<T> targets;
    PoolVector<std::size_t> first_targets;
    PoolVector<int> rows;
    for (std::size_t k = 0; k < score_.terms.size(); ++k) {
      const LossTerm& term = score_.terms[k];
      if (!is_among(term, which_)) continue;
      Source<T>& source = source_of(term);
      if (seeds_) {
        source.collect_seeds(memory_);
        const int numbers = term.is_pose() ? 12 : term.is_contact() ? 3 : 1;
        for (int c = 0; c < numbers; ++c) source.read.add(row_of(term) + c);
      }
      terms.push_back(kernel_of(term, source));
      first_targets.push_back(targets.size());
      put_targets(term, targets);
      rows.push_back(static_cast<int>(k));
    }
    const KernelArray<T> target_table(targets, memory_);
    for (std::size_t k = 0; k < terms.size(); ++k) terms[k].target = target_table.data() + first_targets[k];
    PoolVector<BarRows<T>> bars;
    for (Source<T>* source : sources()) {
      if (!source->bar.empty()) bars.push_back({source->bar.write_address(), source->bar.rows()});
    }
    const KernelArray<LossTermKernel<T>> term_table(terms, memory_);
    const KernelArray<int> row_table(rows, memory_);
    const KernelArray<BarRows<T>> bar_table(bars, memory_);
    const int stride = term_sums.stride();
    const LossKernel<T> kernel{term_table.data(),
                               static_cast<int>(terms.size()),
                               bar_table.data(),
                               static_cast<int>(bars.size()),
                               static_cast<std::size_t>(stride),
                               term_sums.write_address(),
                               row_table.data(),
                               static_cast<int>(score_.terms.size()),
                               status_.address()};
    if (DeviceBackend* const backend = memory_.backend()) return launch_on_device(*backend, worlds_, kernel);
    const int pack = kPackWorlds<T>;
    parallel_for(score_.threads, stride / pack, [&](Range packs) {
      const int begin = packs.begin * pack, end = packs.end * pack;
      kernel.run(begin, std::min(end, worlds_), end);
    });
  }

  void collect(Seeds<T>& seeds) {
    for (Source<T>* source : sources()) {
      if (!source->bar.empty()) seeds.add(source->values, source->bar, source->read);
    }
  }
  /// Of the states on the way; empty where no term reads them.
  const Buffer<T>& q_bar() const { return q_[0].bar; }
  const Buffer<T>& qd_bar() const { return qd_[0].bar; }
  const Buffer<T>& poses_bar() const { return poses_[0].bar; }
  const Buffer<T>& contact_bar() const { return contact_.bar; }

 private:
  std::array<Source<T>*, 8> sources() {
    return {&q_[0], &q_[1], &qd_[0], &qd_[1], &control_, &contact_, &poses_[0], &poses_[1]};
  }

  Source<T>& source_of(const LossTerm& term) {
    switch (term.quantity) {
      case LossQuantity::joint_position:
        return q_[term.terminal];
      case LossQuantity::joint_velocity:
        return qd_[term.terminal];
      case LossQuantity::control:
        return control_;
      case LossQuantity::contact_force:
        return contact_;
      case LossQuantity::body_position:
      case LossQuantity::body_orientation:
        break;
    }
    return poses_[term.terminal];
  }

  /// First row, within a state of its source, of what a term reads.
  int row_of(const LossTerm& term) const {
    if (term.is_pose()) return pose_row(term);
    if (term.is_contact()) return term.index * kContactRows;
    check_one_degree(score_.model, term.index, "loss term ", term.name);
    const Link& link = score_.model.topology.links[score_.model.link_of_joint(term.index)];
    if (term.is_control()) return channel_row(link, term.channel);
    return term.quantity == LossQuantity::joint_position ? link.q : link.v;
  }

  int pose_row(const LossTerm& term) const {
    const PoolVector<int>& bodies = bodies_[term.terminal];
    return static_cast<int>(std::find(bodies.begin(), bodies.end(), term.index) - bodies.begin()) * 12;
  }

  LossTermKernel<T> kernel_of(const LossTerm& term, Source<T>& source) const {
    // One value for each step, and none for the state after the last.
    const bool of_steps = term.is_control() || term.is_contact();
    if (of_steps && term.terminal) usage_error("controls and forces have no terminal value: " + term.name);
    if (term.is_contact() && source.values.empty()) usage_error("a loss of forces needs a rollout that keeps them");
    const double weight = term.weight_per_step(score_.time_step);
    // Terminal terms read the one state of the final buffers, running ones the states after each step.
    const ScoredSteps steps = term.terminal ? ScoredSteps{0, 1} : scored_steps(term, score_);
    LossTermKernel<T> kernel;
    kernel.shape = shape_of(term);
    kernel.weight = constant<T>(weight);
    kernel.twice = constant<T>(2 * weight);
    kernel.thrice = constant<T>(3 * weight);
    kernel.states = steps.count;
    for (int c = 0; c < 3; ++c) kernel.point[c] = constant<T>(term.point[c]);
    if (!term.record.empty()) kernel.target_stride = target_numbers(kernel.shape);
    if (!source.values.empty() && steps.count > 0) {
      const int row = (of_steps ? steps.first - 1 : steps.first) * source.rows_per_state + row_of(term);
      kernel.values = source.values.address(row);
      if (!source.bar.empty()) kernel.bar = source.bar.write_address(row);
      kernel.stride = source.values.stride();
      kernel.state_stride = kernel.stride * source.rows_per_state;
    }
    return kernel;
  }

  /// Appends the target, or that of each step.
  void put_targets(const LossTerm& term, PoolVector<T>& to) const {
    const ErrorShape shape = shape_of(term);
    const double weight = term.weight_per_step(score_.time_step);
    if (term.record.empty()) return put_target(term.target, shape, weight, to);
    if (term.terminal) usage_error("a record is followed on the way, not at the end: " + term.name);
    const ScoredSteps steps = scored_steps(term, score_);
    for (int k = 0; k < steps.count; ++k) {
      const double time = (score_.steps_before + steps.first + k) * score_.time_step;
      const bool turns = shape == ErrorShape::orientation;
      put_target(turns ? term.record.orientation_at(time) : term.record.at(time), shape, weight, to);
    }
  }

  Score score_;
  Terms which_;
  bool seeds_;
  Memory& memory_;
  int worlds_;
  const WorldStatuses& status_;
  Source<T> q_[2], qd_[2], control_, contact_, poses_[2];  // [running, terminal]
  PoolVector<int> bodies_[2];
};

/// The running terms of a rollout that does not keep its states.
template <class T>
class RunningLoss final : public LossObserver<T> {
 public:
  RunningLoss(const Problem& problem, const RolloutOptions& options, int worlds, Memory& memory)
      : terms_(problem.loss),
        memory_(memory),
        recorded_(problem.model, options, worlds, memory),
        bodies_(bodies_of(problem.loss, false)),
        links_(links_of(problem.model, bodies_)),
        sums_(memory, static_cast<int>(terms_.size()), worlds) {
    if (!bodies_.empty()) constants_bar_ = recorded_.constants_bar(memory, worlds);
  }

  void forward(const Trajectory<T>& piece, int first_step) override {
    if (first_step != next_step_) {
      usage_error("an observer of a loss saw step " + std::to_string(first_step) + ", expected " +
                  std::to_string(next_step_) + ": it is made for one rollout, and sums must not accumulate");
    }
    next_step_ += piece.steps;
    evaluation(piece, first_step, false).add_to(sums_);
  }

  StateSeeds<T> backward(const Trajectory<T>& piece, int first_step) override {
    Evaluation<T> seeds = evaluation(piece, first_step, true);
    Buffer<T> not_needed(memory_, sums_.rows(), sums_.worlds());
    seeds.add_to(not_needed);
    StateSeeds<T> result{seeds.q_bar(), seeds.qd_bar(), seeds.contact_bar()};
    if (seeds.poses_bar().empty()) return result;
    Buffer<T> of_poses =
        poses_adjoint(recorded_, piece.q, links_, seeds.poses_bar(), {constants_bar_, resume_}, memory_);
    resume_ = true;
    if (!result.q.empty()) add_into(of_poses, result.q);
    result.q = std::move(of_poses);
    return result;
  }

  void reads(Components& q, Components& qd) const override {
    const Topology& t = recorded_.model->topology;
    LinkDependence posed(t.links.size());
    for (const int link : links_) posed.pose(t, link);
    q.add(posed_positions(t, posed));
    for (const LossTerm& term : terms_) {
      if (!term.is_on_the_way() || term.is_pose()) continue;
      if (term.is_contact()) {  // one of its tree's stands for all
        qd.add(t.links[t.contact_shapes[t.contact_pairs[term.index].a].root].v);
        continue;
      }
      const Link& link = t.links[recorded_.model->link_of_joint(term.index)];
      if (term.quantity == LossQuantity::joint_position) q.add(link.q);
      if (term.quantity == LossQuantity::joint_velocity) qd.add(link.v);
    }
  }

  void finish(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    if (resume_) recorded_.add_gradient(constants_bar_, bars, gradient, gradient_dot);
  }

  const Buffer<T>& sums() const override { return sums_; }

 private:
  Evaluation<T> evaluation(const Trajectory<T>& piece, int first_step, bool seeds) {
    const RolloutOptions& o = recorded_.options;
    Evaluation<T> result({terms_, *recorded_.model, o.time_step, first_step, piece.steps, o.threads},
                         Terms::states_on_the_way, piece, {}, seeds, memory_);
    if (!bodies_.empty())
      result.set_poses(false, bodies_, poses_of(recorded_.kernel_model, piece.q, links_, o, memory_));
    return result;
  }

  std::vector<LossTerm> terms_;
  Memory memory_;  // a handle of its own: the tape may outlive whoever made this
  Recorded<T> recorded_;
  PoolVector<int> bodies_, links_;
  Buffer<T> sums_, constants_bar_;
  int next_step_ = 0;
  bool resume_ = false;
};

}  // namespace

bool scores_states_on_the_way(const Problem& problem) {
  return std::any_of(problem.loss.begin(), problem.loss.end(),
                     [](const LossTerm& term) { return term.is_on_the_way(); });
}

bool scores_contact(const Problem& problem) {
  return std::ranges::any_of(problem.loss, &LossTerm::is_contact);
}

template <class T>
std::shared_ptr<LossObserver<T>> observe_loss(const Problem& problem, const RolloutOptions& options, int worlds,
                                              Memory& memory) {
  if (!scores_states_on_the_way(problem)) return nullptr;
  return std::make_shared<RunningLoss<T>>(problem, options, worlds, memory);
}

template <class T>
LossResult<T> evaluate_loss(const Problem& problem, const Trajectory<T>& trajectory, const Control<T>& control,
                            const RolloutOptions& options, Tape<T>* tape, const LossObserver<T>* observer) {
  const bool on_the_way = scores_states_on_the_way(problem) && !observer;
  if (on_the_way && trajectory.q.empty()) {
    usage_error("a running loss needs a rollout that keeps its states, or one with an observer of observe_loss()");
  }
  Memory& memory = tape ? tape->memory() : memory_beside(trajectory.final.q);
  Evaluation<T> evaluation(
      {problem.loss, problem.model, problem.simulation.time_step, 0, problem.simulation.steps, options.threads},
      observer ? Terms::others : Terms::all, trajectory, control, tape != nullptr, memory);
  for (const bool terminal : {false, true}) {
    if (!terminal && !on_the_way) continue;
    const PoolVector<int> bodies = bodies_of(problem.loss, terminal);
    if (bodies.empty()) continue;
    const Buffer<T>& q = terminal ? trajectory.final.q : trajectory.q;
    evaluation.set_poses(terminal, bodies, body_poses(tape, problem.model, q, bodies, options, memory));
  }
  LossResult<T> result;
  const int worlds = trajectory.final.q.worlds(), terms = static_cast<int>(problem.loss.size());
  result.terms = observer ? observer->sums().clone(memory) : Buffer<T>(memory, std::max(terms, 1), worlds);
  evaluation.add_to(result.terms);
  if (tape) evaluation.collect(result.seeds);
  result.total = Buffer<T>(memory, 1, worlds);
  for_each_index(memory.backend(), 1, worlds,
                 TotalLoss<T>{result.terms.address(), result.total.write_address(), terms,
                              static_cast<std::size_t>(result.terms.stride())});
  return result;
}

#define BACKDRIVE_INSTANTIATE(T)                                                                    \
  template LossResult<T> evaluate_loss<T>(const Problem&, const Trajectory<T>&, const Control<T>&,  \
                                          const RolloutOptions&, Tape<T>*, const LossObserver<T>*); \
  template std::shared_ptr<LossObserver<T>> observe_loss<T>(const Problem&, const RolloutOptions&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
