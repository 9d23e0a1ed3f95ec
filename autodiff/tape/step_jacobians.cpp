#include "autodiff/tape/step_jacobians.h"

#include <algorithm>
#include <limits>

#include "autodiff/tape/recorded.h"
#include "autodiff/tape/tangent_duals.h"
#include "engine/error.h"
#include "engine/parallel.h"
#include "integrators/launch.h"

namespace backdrive {
namespace {

/// Recorded worlds at a time.
constexpr int kRecordedWorlds = 4096;

/// Columns first, first + 1, ... of `from`, each `copies` times, side by side.
template <class T>
Buffer<T> repeated(const Buffer<T>& from, int first, int count, int copies) {
  Buffer<T> to(from.rows(), count * copies);
  for (int row = 0; row < from.rows(); ++row) {
    for (int w = 0; w < count; ++w) {
      for (int k = 0; k < copies; ++k) to.set(row, w * copies + k, from(row, first + w));
    }
  }
  return to;
}

template <class T>
class Linearisation {
 public:
  Linearisation(const Model& model, const RolloutOptions& options)
      : model_(model), options_(options), tangent_(tangent_rows(model.topology)) {
    // What parameters ask for is not asked for here.
    set_requires_grad(model_, "*", false);
    options_.window = {};
    options_.plan = {};
  }

  /// Of some of the worlds; says how they fared.
  void add(const State<T>& state, const Control<T>& control, Range which, StepJacobians<T>& to,
           WorldStatuses& status) const {
    const int first = which.begin, count = which.end - which.begin;
    const int nv = model_.topology.nv;
    State<T> start;
    start.q = repeated(state.q, first, count, to.rows);
    start.qd = repeated(state.qd, first, count, to.rows);
    Control<T> controls;
    if (to.control_rows > 0) controls.u = repeated(control.u, first, count, to.rows);
    Tape<T> tape;
    const Trajectory<T> t = rollout(tape, model_, start, controls, options_);
    Buffer<T> q_seed(model_.topology.nq, count * to.rows), qd_seed(nv, count * to.rows);
    for (int w = 0; w < count * to.rows; ++w) {
      const int row = w % to.rows;
      if (row < nv) q_seed.set(tangent_[row], w, T(1));
      if (row >= nv) qd_seed.set(row - nv, w, T(1));
    }
    Seeds<T> seeds;
    seeds.add(t.final.q, q_seed);
    seeds.add(t.final.qd, qd_seed);
    const Gradients<T> g = std::move(tape).backward(seeds, Disconnected::zero);
    const Buffer<T>&by_q = g.of(start.q), &by_qd = g.of(start.qd);
    const Buffer<T>* const by_control = to.control_rows > 0 ? &g.of(controls.u) : nullptr;
    for (int w = 0; w < count * to.rows; ++w) {
      const int row = w % to.rows, world = first + w / to.rows;
      for (int v = 0; v < nv; ++v) {
        to.A.set(row * to.rows + v, world, by_q(tangent_[v], w));
        to.A.set(row * to.rows + nv + v, world, by_qd(v, w));
      }
      for (int c = 0; c < to.control_rows; ++c) to.B.set(row * to.control_rows + c, world, (*by_control)(c, w));
      status.write_address()[world] = (*t.status)[w];
    }
  }

 private:
  Model model_;
  RolloutOptions options_;
  std::vector<int> tangent_;
};

/// Whether there is a kernel for it: one step of joint coordinates, with nothing that can touch.
bool has_kernel(const Model& model, const RolloutOptions& options) {
  return options.steps == 1 && !model.topology.has_bodies() && model.topology.contact_pairs.empty();
}

template <class T>
void linearise_step(const Model& model, const State<T>& state, const Control<T>& control, RolloutOptions options,
                    StepJacobians<T>& to, WorldStatuses& status) {
  options.keep_states = false;
  const Trajectory<T> after = rollout(model, state, control, options);
  Memory& memory = default_memory();
  // Of the model as the rollout had it: what acts in it is derived anew from its numbers.
  const KernelModel<T> kernel_model(*after.model, nullptr, state.q.worlds(), memory);
  StepJacobianArguments<T> arguments{launch_of(kernel_model, options.time_step, 1, state.q),
                                     state.q.address(),
                                     state.qd.address(),
                                     control.u.empty() ? nullptr : control.u.address(),
                                     to.A.write_address(),
                                     to.B.empty() ? nullptr : to.B.write_address()};
  launch_step_jacobian(arguments, options.threads, memory);
  status = *after.status;
  for (int w = 0; w < state.q.worlds(); ++w) {
    if (!status[w].stopped()) continue;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    for (int r = 0; r < to.A.rows(); ++r) to.A.set(r, w, nan);
    for (int r = 0; r < to.B.rows(); ++r) to.B.set(r, w, nan);
  }
}

/// What is asked of a model.
template <class T>
struct StepCall {
  State<T> state;
  Control<T> control;
  RolloutOptions options;
};

template <class T>
StepJacobians<T> linearised(const Model& model, const StepCall<T>& call, Memory& memory, WorldStatuses& status) {
  const int worlds = call.state.q.worlds();
  StepJacobians<T> result;
  result.rows = 2 * model.topology.nv;
  result.control_rows = call.control.u.empty() ? 0 : call.control.u.rows();
  result.A = Buffer<T>(memory, row_count(result.rows, result.rows), worlds);
  if (result.control_rows > 0) result.B = Buffer<T>(memory, row_count(result.rows, result.control_rows), worlds);
  if (result.rows == 0) return result;
  if (has_kernel(model, call.options)) {
    linearise_step(model, call.state, call.control, call.options, result, status);
    return result;
  }
  const Linearisation<T> linearisation(model, call.options);
  const int at_a_time = std::max(1, kRecordedWorlds / result.rows);
  for (int first = 0; first < worlds; first += at_a_time) {
    linearisation.add(call.state, call.control, {first, std::min(first + at_a_time, worlds)}, result, status);
  }
  return result;
}

/// Gradients of what is linear in A and B, in double precision: a row of both is a direction that a rollout on dual
/// numbers and its adjoint move along.
template <class T>
class JacobianAdjoint {
 public:
  using D = Dual<double>;

  JacobianAdjoint(const Model& model, const StepCall<T>& call, Memory& memory)
      : model_(model),
        call_(call),
        memory_(memory),
        options_(call.options),
        still_(zero_parameters(model)),
        to_{Buffer<double>(memory, call.state.q.rows(), call.state.q.worlds()),
            Buffer<double>(memory, call.state.qd.rows(), call.state.q.worlds()),
            call.control.u.empty() ? Buffer<double>()
                                   : Buffer<double>(memory, call.control.u.rows(), call.state.q.worlds())} {
    options_.window = {};
    options_.plan = {};
    options_.keep_contact = false;
    options_.direction = &still_;
  }

  struct Sums {
    Buffer<double> q, qd, u;
  };
  Sums take() && { return std::move(to_); }

  /// Cotangents of one row of a world's A and B.
  struct Row {
    int world, row;
    std::vector<double> by_state, by_control;
  };

  /// Adds to the parameters' gradient at once.
  void add(const std::vector<Row>& rows, Parameters& gradient) {
    const Topology& t = model_.topology;
    const int count = static_cast<int>(rows.size());
    State<D> start = State<D>::uninitialized(model_, count, memory_);
    Control<D> control;
    if (!to_.u.empty()) control.u = Buffer<D>(memory_, to_.u.rows(), count);
    for (int k = 0; k < count; ++k) {
      const Row& of = rows[k];
      set_moving<T>(t, {call_.state, of.world}, of.by_state, {start, k});
      for (int c = 0; c < control.u.rows(); ++c) {
        control.u.set(c, k, {double(call_.control.u(c, of.world)), of.by_control[c]});
      }
    }
    Tape<D> tape(memory_);
    const Trajectory<D> after = rollout(tape, model_, start, control, options_);
    const Gradients<D> by = std::move(tape).backward(seeds_of(rows, after.final), Disconnected::zero);
    const Buffer<D>&by_q = by.of(start.q), &by_qd = by.of(start.qd);
    for (int k = 0; k < count; ++k) {
      const int world = rows[k].world;
      add_moved_positions_gradient(t, rows[k].by_state, {by_q, k}, {to_.q, world});
      for (int v = 0; v < t.nv; ++v) to_.qd.write(v)[world] += by_qd(v, k).dot;
      for (int c = 0; c < control.u.rows(); ++c) to_.u.write(c)[world] += by.of(control.u)(c, k).dot;
    }
    if (asks_) add_numbers(by.parameters_dot(), gradient);
  }

 private:
  Seeds<D> seeds_of(const std::vector<Row>& rows, const State<D>& end) const {
    const Topology& t = model_.topology;
    Buffer<D> q(memory_, t.nq, end.q.worlds()), qd(memory_, t.nv, end.q.worlds());
    for (int k = 0; k < end.q.worlds(); ++k) {
      const int row = rows[k].row;
      if (row < t.nv) set_moving_seed(t, row, {end.q, k}, q);
      if (row >= t.nv) qd.set(row - t.nv, k, D(1));
    }
    Seeds<D> seeds;
    seeds.add(end.q, q);
    seeds.add(end.qd, qd);
    return seeds;
  }

  const Model& model_;
  const StepCall<T>& call_;
  Memory& memory_;
  RolloutOptions options_;
  Parameters still_;
  Sums to_;
  bool asks_ = any_requires_grad(model_);
};

template <class T>
struct StepJacobianNode final : Tape<T>::Node {
  StepJacobianNode(std::shared_ptr<const Model> m, StepCall<T> c, StepJacobians<T> r,
                   std::shared_ptr<WorldStatuses> fared)
      : recorded(std::move(m)), call(std::move(c)), result(std::move(r)) {
    this->status = std::move(fared);
    for (const Buffer<T>* b : {&call.state.q, &call.state.qd, &call.control.u}) {
      if (!b->empty()) this->inputs.emplace_back(*b, b->version());
    }
    for (const Buffer<T>* b : {&result.A, &result.B}) {
      if (!b->empty()) this->outputs.emplace_back(*b, b->version());
    }
  }
  const Model* model() const override { return recorded.get(); }

  LinkDependence trace(Reach& reach) const override {
    const Topology& t = recorded->topology;
    LinkDependence own(t.links.size());
    const auto reads = [&](const Buffer<T>& matrix, int columns, int row) {
      const Components* const read = matrix.empty() ? nullptr : reach.of(matrix.id());
      for (int c = 0; read && c < columns; ++c) {
        if (read->has(row * columns + c)) return true;
      }
      return false;
    };
    // Of positions, and of velocities.
    const auto reads_any = [&](int first, int count) {
      for (int v = first; v < first + count; ++v) {
        for (const int row : {v, t.nv + v}) {
          if (reads(result.A, result.rows, row) || reads(result.B, result.control_rows, row)) return true;
        }
      }
      return false;
    };
    for (std::size_t i = 0; i < t.links.size(); ++i) {
      const Link& link = t.links[i];
      const bool has_rows = t.has_bodies() && link.body >= 0;
      if (reads_any(link.v, joint_size(link.type).nv) ||
          (has_rows && reads_any(t.body_v(link.body), kBodyVelocities))) {
        own.move_tree_of(t, static_cast<int>(i));
      }
    }
    reach.read(call.state.q.id(), moved_positions(t, own));
    reach.read(call.state.qd.id(), moved_velocities(t, own));
    if (!call.control.u.empty()) reach.read(call.control.u.id(), moved_controls(t, own));
    return own;
  }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& /*gradient_dot*/) override {
    const Buffer<T>*const A_bar = bars.find(result.A), *const B_bar = result.B.empty() ? nullptr : bars.find(result.B);
    if (!A_bar && !B_bar) return;
    Memory& memory = bars.memory();
    const int worlds = call.state.q.worlds();
    const WorldStatuses& fared = bars.status(worlds);
    JacobianAdjoint<T> adjoint(*recorded, call, memory);
    std::vector<typename JacobianAdjoint<T>::Row> rows;
    for (int w = 0; w < worlds; ++w) {
      for (int row = 0; row < result.rows && !fared[w].stopped(); ++row) {
        auto one = row_of(A_bar, B_bar, row, w);
        const auto is_none = [](double x) { return x == 0; };
        if (std::ranges::all_of(one.by_state, is_none) && std::ranges::all_of(one.by_control, is_none)) continue;
        rows.push_back(std::move(one));
        if (static_cast<int>(rows.size()) < kRecordedWorlds) continue;
        adjoint.add(rows, gradient);
        rows.clear();
      }
    }
    if (!rows.empty()) adjoint.add(rows, gradient);
    auto sums = std::move(adjoint).take();
    for (int w = 0; w < worlds; ++w) {
      if (!fared[w].stopped()) continue;
      for (Buffer<double>* b : {&sums.q, &sums.qd, &sums.u}) {
        for (int r = 0; r < b->rows(); ++r) b->set(r, w, std::numeric_limits<double>::quiet_NaN());
      }
    }
    bars.add(call.state.q, in_precision<T>(std::move(sums.q), memory));
    bars.add(call.state.qd, in_precision<T>(std::move(sums.qd), memory));
    if (!call.control.u.empty()) bars.add(call.control.u, in_precision<T>(std::move(sums.u), memory));
  }

  typename JacobianAdjoint<T>::Row row_of(const Buffer<T>* A_bar, const Buffer<T>* B_bar, int row, int world) const {
    typename JacobianAdjoint<T>::Row one{world, row, {}, {}};
    one.by_state.resize(result.rows);
    one.by_control.resize(result.control_rows);
    for (int k = 0; A_bar && k < result.rows; ++k) one.by_state[k] = double((*A_bar)(row * result.rows + k, world));
    for (int k = 0; B_bar && k < result.control_rows; ++k) {
      one.by_control[k] = double((*B_bar)(row * result.control_rows + k, world));
    }
    return one;
  }

  std::shared_ptr<const Model> recorded;
  StepCall<T> call;
  StepJacobians<T> result;
};

template <class T>
void check_step(const Model& model, const StepCall<T>& call) {
  if (call.options.parameters || model.parameter_worlds() > 1) {
    usage_error("step_jacobians: the parameters differ from world to world; expected those of one world for all");
  }
}

}  // namespace

template <class T>
StepJacobians<T> step_jacobians(const Model& model, const State<T>& state, const Control<T>& control,
                                RolloutOptions options) {
  return step_jacobians<T>(nullptr, model, state, control, std::move(options));
}

template <class T>
StepJacobians<T> step_jacobians(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                                const Control<T>& control, RolloutOptions options) {
  if (tape) tape->check_recording();
  StepCall<T> call{state, control, std::move(options)};
  check_step(model, call);
  Memory& memory = tape ? tape->memory() : default_memory();
  const auto status = make_pooled<WorldStatuses>(state.q.worlds(), memory);
  const StepJacobians<T> result = linearised(model, call, memory, *status);
  if (!tape) return result;
  call.options.direction = nullptr;
  tape->push(std::make_unique<StepJacobianNode<T>>(make_pooled<Model>(snapshot(model, nullptr, call.options.checked)),
                                                   std::move(call), result, status));
  return result;
}

#define BACKDRIVE_INSTANTIATE(T)                                                                              \
  template StepJacobians<T> step_jacobians(const Model&, const State<T>&, const Control<T>&, RolloutOptions); \
  template StepJacobians<T> step_jacobians(Tape<T>*, const Model&, const State<T>&, const Control<T>&, RolloutOptions);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
