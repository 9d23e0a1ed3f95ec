#include "autodiff/loss.h"

#include <algorithm>
#include <array>
#include <limits>

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
    const bool pose = term.quantity == LossQuantity::body_position || term.quantity == LossQuantity::body_orientation;
    if (pose && term.terminal == terminal && std::find(bodies.begin(), bodies.end(), term.index) == bodies.end()) {
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

template <class T>
class Evaluation {
 public:
  Evaluation(const Problem& problem, const Trajectory<T>& trajectory, const Control<T>& control,
             const RolloutOptions& options, Tape<T>* tape)
      : problem_(problem),
        tape_(tape),
        memory_(tape ? tape->memory() : default_memory()),
        worlds_(trajectory.final.q.worlds()),
        status_(*trajectory.status) {
    const Topology& t = problem.model.topology;
    q_[0] = {trajectory.q, t.nq, {}};
    q_[1] = {trajectory.final.q, t.nq, {}};
    qd_[0] = {trajectory.qd, t.nv, {}};
    qd_[1] = {trajectory.final.qd, t.nv, {}};
    control_ = {control.u, t.nu, {}};
    for (const bool terminal : {false, true}) {
      bodies_[terminal] = bodies_of(problem.loss, terminal);
      if (bodies_[terminal].empty()) continue;
      poses_[terminal] = {body_poses(tape, problem.model, q_[terminal].values, bodies_[terminal], options, memory_),
                          static_cast<int>(bodies_[terminal].size()) * 12,
                          {}};
    }
  }

  /// Worlds do not meet: each thread takes its share through all terms.
  LossResult<T> run(int threads) {
    LossResult<T> result;
    const int terms = static_cast<int>(problem_.loss.size());
    result.terms = Buffer<T>(memory_, std::max(terms, 1), worlds_);
    result.total = Buffer<T>(memory_, 1, worlds_);
    T* const sums = result.terms.write();
    T* const total = result.total.write();
    if (tape_) {
      for (const LossTerm& term : problem_.loss) source_of(term).collect_seeds(memory_);
    }
    const int pack = padded_worlds(1), stride = result.total.stride();
    parallel_for(threads, stride / pack, [&](Range packs) {
      const Range columns{packs.begin * pack, packs.end * pack}, worlds{columns.begin, std::min(columns.end, worlds_)};
      for (Source<T>* source : sources()) source->clear(columns);
      for (int k = 0; k < terms; ++k) {
        T* const sum = sums + std::size_t(k) * stride;
        add_term(problem_.loss[k], worlds, sum);
        for (int w = worlds.begin; w < worlds.end; ++w) {
          if (status_[w].stopped()) sum[w] = T(std::numeric_limits<double>::quiet_NaN());
          total[w] += sum[w];
        }
      }
      for (int w = worlds.begin; w < worlds.end; ++w) {
        if (!status_[w].stopped()) continue;
        for (Source<T>* source : sources()) source->clear({w, w + 1});
      }
    });
    for (Source<T>* source : sources()) {
      if (!source->bar.empty()) result.seeds.add(source->values, source->bar);
    }
    return result;
  }

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

  void add_term(const LossTerm& term, Range worlds, T* sum) {
    const Topology& t = problem_.model.topology;
    const bool control = term.quantity == LossQuantity::control;
    if (control && term.terminal) usage_error("a control has no terminal value: " + term.name);
    const double weight = term.terminal ? term.weight : term.weight * problem_.simulation.time_step;
    const int steps = problem_.simulation.steps;
    // Terminal terms read the one state of the final buffers, running ones the states after each step.
    const int first = term.terminal || control ? 0 : 1;
    const int last = term.terminal ? 0 : (control ? steps - 1 : steps);
    const Source<T>& source = source_of(term);
    int row = 0;
    if (term.quantity == LossQuantity::body_position || term.quantity == LossQuantity::body_orientation) {
      row = pose_row(term);
    } else {
      const Link& link = t.links[problem_.model.link_of_joint(term.index)];
      row = control ? channel_row(link, term.channel) : term.quantity == LossQuantity::joint_position ? link.q : link.v;
    }
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

  const Problem& problem_;
  Tape<T>* tape_;
  Memory& memory_;
  int worlds_;
  const WorldStatuses& status_;
  Source<T> q_[2], qd_[2], control_, poses_[2];  // [running, terminal]
  PoolVector<int> bodies_[2];
};

}  // namespace

template <class T>
LossResult<T> evaluate_loss(const Problem& problem, const Trajectory<T>& trajectory, const Control<T>& control,
                            const RolloutOptions& options, Tape<T>* tape) {
  const bool running = std::any_of(problem.loss.begin(), problem.loss.end(), [](const LossTerm& term) {
    return !term.terminal && term.quantity != LossQuantity::control;
  });
  if (running && trajectory.q.empty()) usage_error("a running loss needs a rollout that keeps its states");
  return Evaluation<T>(problem, trajectory, control, options, tape).run(options.threads);
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

#define BACKDRIVE_INSTANTIATE(T)                                                                   \
  template LossResult<T> evaluate_loss<T>(const Problem&, const Trajectory<T>&, const Control<T>&, \
                                          const RolloutOptions&, Tape<T>*);                        \
  template State<T> initial_state<T>(const Problem&, int, Memory&);                                \
  template Control<T> initial_control<T>(const Problem&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
