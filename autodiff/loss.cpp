#include "autodiff/loss.h"

#include <algorithm>
#include <array>
#include <limits>

#include "autodiff/recorded.h"
#include "autodiff/variables.h"
#include "engine/error.h"
#include "engine/parallel.h"
#include "engine/sincos.h"
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
  T* bar_numbers = nullptr;

  void collect_seeds(Memory& memory) {
    if (!bar.empty() || values.empty()) return;
    bar = Buffer<T>::uninitialized(memory, values.rows(), values.worlds());
    bar_numbers = bar.write();
  }
  const T* row(int state, int r) const { return values.row(state * rows_per_state + r); }
  /// Null when no seeds are asked for.
  T* bar_row(int state, int r) const {
    return bar_numbers ? bar_numbers + (std::size_t(state) * rows_per_state + r) * bar.stride() : nullptr;
  }
  void clear(Range worlds) {
    for (int r = 0; r < bar.rows(); ++r) {
      std::fill(bar_numbers + std::size_t(r) * bar.stride() + worlds.begin,
                bar_numbers + std::size_t(r) * bar.stride() + worlds.end, T(0));
    }
  }
};

/// error² and half its derivative, per world.
template <class T>
struct ScalarError {
  T target;
  bool on_circle;

  T square(const T& x) const {
    if (!on_circle) return (x - target) * (x - target);
    T s, c;
    sincos(x - target, s, c);
    return constant<T>(2) - constant<T>(2) * c;
  }
  T half_slope(const T& x) const {
    if (!on_circle) return x - target;
    T s, c;
    sincos(x - target, s, c);
    return s;
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
  int steps;
  int threads;
};

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
    qd_[0] = {trajectory.qd, t.nv, {}};
    qd_[1] = {trajectory.final.qd, t.nv, {}};
    control_ = {control.u, t.nu, {}};
  }

  /// Bodies whose poses the terms read, of the last state or on the way.
  void set_poses(bool terminal, const PoolVector<int>& bodies, Buffer<T> poses) {
    bodies_[terminal] = bodies;
    poses_[terminal] = {std::move(poses), static_cast<int>(bodies.size()) * 12, {}};
  }

  /// Worlds do not meet: each thread takes its share through all terms.
  void add_to(Buffer<T>& term_sums) {
    T* const sums = term_sums.write();
    const int pack = kPackWorlds<T>, stride = term_sums.stride();
    if (seeds_) {
      for (const LossTerm& term : score_.terms) {
        if (!is_among(term, which_)) continue;
        source_of(term).collect_seeds(memory_);
        for (int k = 0; k < (term.is_pose() ? 12 : 1); ++k) source_of(term).read.add(row_of(term) + k);
      }
    }
    parallel_for(score_.threads, stride / pack, [&](Range packs) {
      const Range columns{packs.begin * pack, packs.end * pack}, worlds{columns.begin, std::min(columns.end, worlds_)};
      for (Source<T>* source : sources()) source->clear(columns);
      for (std::size_t k = 0; k < score_.terms.size(); ++k) {
        if (is_among(score_.terms[k], which_)) add_term(score_.terms[k], worlds, sums + k * stride);
      }
      for (int w = worlds.begin; w < worlds.end; ++w) {
        if (!status_[w].stopped()) continue;
        for (std::size_t k = 0; k < score_.terms.size(); ++k) {
          sums[k * stride + w] = T(std::numeric_limits<double>::quiet_NaN());
        }
        for (Source<T>* source : sources()) source->clear({w, w + 1});
      }
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

 private:
  std::array<Source<T>*, 7> sources() { return {&q_[0], &q_[1], &qd_[0], &qd_[1], &control_, &poses_[0], &poses_[1]}; }

  Source<T>& source_of(const LossTerm& term) {
    switch (term.quantity) {
      case LossQuantity::joint_position:
        return q_[term.terminal];
      case LossQuantity::joint_velocity:
        return qd_[term.terminal];
      case LossQuantity::control:
        return control_;
      case LossQuantity::body_position:
      case LossQuantity::body_orientation:
        break;
    }
    return poses_[term.terminal];
  }

  /// First row, within a state of its source, of what a term reads.
  int row_of(const LossTerm& term) const {
    if (term.is_pose()) return pose_row(term);
    const Link& link = score_.model.topology.links[score_.model.link_of_joint(term.index)];
    if (term.is_control()) return channel_row(link, term.channel);
    return term.quantity == LossQuantity::joint_position ? link.q : link.v;
  }

  void add_term(const LossTerm& term, Range worlds, T* sum) {
    const bool control = term.is_control();
    if (control && term.terminal) usage_error("a control has no terminal value: " + term.name);
    const double weight = term.terminal ? term.weight : term.weight * score_.time_step;
    const int steps = score_.steps;
    // Terminal terms read the one state of the final buffers, running ones the states after each step.
    const int first = term.terminal || control ? 0 : 1;
    const int last = term.terminal ? 0 : (control ? steps - 1 : steps);
    const Source<T>& source = source_of(term);
    const int row = row_of(term);
    for (int state = first; state <= last; ++state) {
      switch (term.quantity) {
        case LossQuantity::joint_position:
        case LossQuantity::joint_velocity:
        case LossQuantity::control:
          add_scalar(term, weight, source, state, row, worlds, sum);
          break;
        case LossQuantity::body_position:
          add_position(term, weight, source, state, row, worlds, sum);
          break;
        case LossQuantity::body_orientation:
          add_orientation(term, weight, source, state, row, worlds, sum);
          break;
      }
    }
  }

  void add_scalar(const LossTerm& term, double weight, const Source<T>& source, int state, int r, Range worlds,
                  T* sum) {
    const ScalarError<T> error{constant<T>(term.target[0]), term.on_circle};
    const T factor = constant<T>(weight), twice = constant<T>(2 * weight);
    if (source.values.empty()) {  // no control signal: zero throughout
      for (int w = worlds.begin; w < worlds.end; ++w) sum[w] += factor * error.square(constant<T>(0));
      return;
    }
    const T* const x = source.row(state, r);
    for (int w = worlds.begin; w < worlds.end; ++w) sum[w] += factor * error.square(x[w]);
    T* const bar = source.bar_row(state, r);
    if (!bar) return;
    for (int w = worlds.begin; w < worlds.end; ++w) bar[w] += twice * error.half_slope(x[w]);
  }

  int pose_row(const LossTerm& term) const {
    const PoolVector<int>& bodies = bodies_[term.terminal];
    return static_cast<int>(std::find(bodies.begin(), bodies.end(), term.index) - bodies.begin()) * 12;
  }

  /// |position + R point − target|²
  void add_position(const LossTerm& term, double weight, const Source<T>& poses, int state, int r0, Range worlds,
                    T* sum) {
    for (int axis = 0; axis < 3; ++axis) {
      const T* const position = poses.row(state, r0 + axis);
      T* const bar = poses.bar_row(state, r0 + axis);
      const T* columns[3];
      T* columns_bar[3];
      for (int c = 0; c < 3; ++c) {
        columns[c] = poses.row(state, r0 + 3 + 3 * c + axis);
        columns_bar[c] = poses.bar_row(state, r0 + 3 + 3 * c + axis);
      }
      for (int w = worlds.begin; w < worlds.end; ++w) {
        T error = position[w] - constant<T>(term.target[axis]);
        for (int c = 0; c < 3; ++c) error += columns[c][w] * constant<T>(term.point[c]);
        sum[w] += constant<T>(weight) * error * error;
        if (!bar) continue;
        const T slope = constant<T>(2 * weight) * error;
        bar[w] += slope;
        for (int c = 0; c < 3; ++c) columns_bar[c][w] += slope * constant<T>(term.point[c]);
      }
    }
  }

  /// 3 − tr(R*ᵀ R) = 2 − 2 cos(angle between): smooth, and angle² where they are near.
  void add_orientation(const LossTerm& term, double weight, const Source<T>& poses, int state, int r0, Range worlds,
                       T* sum) {
    const Mat3<double> goal = rotation_matrix(term.target[0], term.target[1], term.target[2], term.target[3]);
    const double* const entries = &goal.cx.x;
    for (int w = worlds.begin; w < worlds.end; ++w) sum[w] += constant<T>(3 * weight);
    for (int k = 0; k < 9; ++k) {
      const T* const r = poses.row(state, r0 + 3 + k);
      T* const bar = poses.bar_row(state, r0 + 3 + k);
      const T factor = constant<T>(weight * entries[k]);
      for (int w = worlds.begin; w < worlds.end; ++w) sum[w] -= factor * r[w];
      if (!bar) continue;
      for (int w = worlds.begin; w < worlds.end; ++w) bar[w] -= factor;
    }
  }

  Score score_;
  Terms which_;
  bool seeds_;
  Memory& memory_;
  int worlds_;
  const WorldStatuses& status_;
  Source<T> q_[2], qd_[2], control_, poses_[2];  // [running, terminal]
  PoolVector<int> bodies_[2];
};

/// The running terms of a rollout that does not keep its states.
template <class T>
class RunningLoss final : public LossObserver<T> {
 public:
  RunningLoss(const Problem& problem, const RolloutOptions& options, int worlds, Memory& memory)
      : terms_(problem.loss),
        memory_(memory),
        recorded_(problem.model, constants_buffer<T>(problem.model, options.direction, worlds, memory), options),
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
    evaluation(piece, false).add_to(sums_);
  }

  StateSeeds<T> backward(const Trajectory<T>& piece, int) override {
    Evaluation<T> seeds = evaluation(piece, true);
    Buffer<T> not_needed(memory_, sums_.rows(), sums_.worlds());
    seeds.add_to(not_needed);
    StateSeeds<T> result{seeds.q_bar(), seeds.qd_bar()};
    if (seeds.poses_bar().empty()) return result;
    Buffer<T> of_poses = poses_adjoint(recorded_, piece.q, links_, seeds.poses_bar(), constants_bar_, resume_, memory_);
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
      const Link& link = t.links[recorded_.model->link_of_joint(term.index)];
      if (term.quantity == LossQuantity::joint_position) q.add(link.q);
      if (term.quantity == LossQuantity::joint_velocity) qd.add(link.v);
    }
  }

  void finish(const WorldStatuses& status, Parameters& gradient, Parameters& gradient_dot) override {
    if (resume_) recorded_.add_gradient(constants_bar_, &status, gradient, gradient_dot);
  }

  const Buffer<T>& sums() const override { return sums_; }

 private:
  Evaluation<T> evaluation(const Trajectory<T>& piece, bool seeds) {
    const RolloutOptions& o = recorded_.options;
    Evaluation<T> result({terms_, *recorded_.model, o.time_step, piece.steps, o.threads}, Terms::states_on_the_way,
                         piece, {}, seeds, memory_);
    if (!bodies_.empty())
      result.set_poses(false, bodies_, poses_of(*recorded_.model, recorded_.constants, piece.q, links_, o, memory_));
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
  Memory& memory = tape ? tape->memory() : default_memory();
  Evaluation<T> evaluation(
      {problem.loss, problem.model, problem.simulation.time_step, problem.simulation.steps, options.threads},
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
  T* const total = result.total.write();
  for (int k = 0; k < terms; ++k) {
    const T* const sum = result.terms.row(k);
    for (int w = 0; w < worlds; ++w) total[w] += sum[w];
  }
  return result;
}

template <class T>
State<T> initial_state(const Problem& problem, int worlds, Memory& memory) {
  State<T> state(problem.model, worlds, memory);
  for (int r = 0; r < state.q.rows(); ++r)
    std::fill_n(state.q.write(r), worlds, constant<T>(problem.initial_position[r]));
  for (int r = 0; r < state.qd.rows(); ++r)
    std::fill_n(state.qd.write(r), worlds, constant<T>(problem.initial_velocity[r]));
  return state;
}

template <class T>
Control<T> initial_control(const Problem& problem, int worlds, Memory& memory) {
  const Topology& t = problem.model.topology;
  const int steps = problem.simulation.steps;
  Control<T> control(problem.model, steps, worlds, memory);
  for (const ControlSignal& signal : problem.controls) {
    const Link& link = t.links[problem.model.link_of_joint(signal.joint)];
    const int row = channel_row(link, signal.channel);
    for (int step = 0; step < steps; ++step) {
      const KnotWeights k = knot_weights(static_cast<int>(signal.values.size()), steps, step, signal.hold);
      const double value = k.first_weight * signal.values[k.first] + k.second_weight * signal.values[k.second];
      std::fill_n(control.u.write(step * t.nu + row), worlds, constant<T>(value));
    }
  }
  return control;
}

KnotWeights knot_weights(int knots, int steps, int step, bool hold) {
  if (knots <= 1) return {0, 0, 1, 0};
  if (knots >= steps) return {step, step, 1, 0};
  if (hold) {
    const int k = static_cast<int>(static_cast<long long>(step) * knots / steps);
    return {k, k, 1, 0};
  }
  const double at = steps > 1 ? static_cast<double>(step) * (knots - 1) / (steps - 1) : 0;
  const int first = std::min(static_cast<int>(at), knots - 2);
  return {first, first + 1, 1 - (at - first), at - first};
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                  \
  template LossResult<T> evaluate_loss<T>(const Problem&, const Trajectory<T>&, const Control<T>&,                \
                                          const RolloutOptions&, Tape<T>*, const LossObserver<T>*);               \
  template std::shared_ptr<LossObserver<T>> observe_loss<T>(const Problem&, const RolloutOptions&, int, Memory&); \
  template State<T> initial_state<T>(const Problem&, int, Memory&);                                               \
  template Control<T> initial_control<T>(const Problem&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
