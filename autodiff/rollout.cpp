#include "autodiff/rollout.h"

#include "autodiff/model_constants_buffer.h"
#include "engine/error.h"
#include "engine/parallel.h"
#include "integrators/featherstone/kernels.h"

namespace backdrive {
namespace {

void check_shape(const char* what, int rows, int worlds, int want_rows, int want_worlds) {
  if (rows == want_rows && worlds == want_worlds) return;
  usage_error(std::string(what) + " has " + std::to_string(rows) + " rows of " + std::to_string(worlds) +
              " worlds; expected " + std::to_string(want_rows) + " rows of " + std::to_string(want_worlds));
}

void check_parameter_worlds(const Model& model, int worlds) {
  if (const int own = model.parameter_worlds(); own != 1 && own != worlds) {
    usage_error("the model has parameters for " + std::to_string(own) + " worlds, the state " + std::to_string(worlds));
  }
}

template <class T>
void check_rollout(const Model& model, const State<T>& state, const Control<T>& control,
                   const RolloutOptions& options) {
  const Topology& t = model.topology;
  const int worlds = state.q.worlds();
  if (options.steps < 1) usage_error("a rollout of " + std::to_string(options.steps) + " steps; expected 1 or more");
  if (!(options.time_step > 0))
    usage_error("time step " + std::to_string(options.time_step) + " s; expected more than 0");
  check_shape("state.q", state.q.rows(), worlds, t.nq, worlds);
  check_shape("state.qd", state.qd.rows(), state.qd.worlds(), t.nv, worlds);
  if (!control.u.empty()) {
    check_shape("control.u", control.u.rows(), control.u.worlds(), options.steps * t.nu, worlds);
  }
  check_parameter_worlds(model, worlds);
}

/// Runs a kernel over all lane groups, each thread with its own scratch.
template <class T, class Arguments>
void launch(void (*kernel)(const Arguments&, int, int, std::byte*), const Arguments& arguments, int threads,
            Memory& memory) {
  const KernelTable<T>& table = kernels<T>();
  const int groups = (arguments.launch.worlds + table.lanes - 1) / table.lanes;
  const int parts = std::min(threads, groups);
  const std::size_t bytes = (table.scratch_bytes(*arguments.launch.topology) + 4095) / 4096 * 4096;
  const std::shared_ptr<std::byte> scratch = memory.allocate(bytes * parts);
  parallel_for(threads, groups,
               [&](Range range, int part) { kernel(arguments, range.begin, range.end, scratch.get() + bytes * part); });
}

template <class T>
Launch<T> launch_of(const Topology& topology, const Buffer<T>& constants, double time_step, int steps,
                    const Buffer<T>& like) {
  const bool per_world = constants.rows() > 1;
  return {&topology, constants.row(0), per_world, T(time_step), steps, like.stride(), like.worlds()};
}

template <class T>
const T* rows_or_null(const Buffer<T>* buffer) {
  return buffer ? buffer->row(0) : nullptr;
}

/// What the adjoints need of the model as it was.
template <class T>
struct Recorded {
  std::shared_ptr<const Model> model;
  Parameters direction;
  bool has_direction = false;
  bool parameters = false;  ///< somebody asked for a parameter's gradient
  Buffer<T> constants;
  RolloutOptions options;

  Recorded(const Model& m, Buffer<T> c, const RolloutOptions& o)
      : model(make_pooled<Model>(nameless(m))), constants(std::move(c)), options(o) {
    for (const Field& field : fields()) parameters = parameters || field.in(m).any_requires_grad();
    if (o.direction) {
      direction = *o.direction;
      has_direction = true;
    }
    options.direction = nullptr;
  }
  const Parameters* direction_or_null() const { return has_direction ? &direction : nullptr; }
  Buffer<T> constants_bar(Memory& memory, int worlds) const {
    const int rows = static_cast<int>(model->topology.links.size()) * kLinkGradients<T> + 3;
    return parameters ? Buffer<T>::uninitialized(memory, rows, worlds) : Buffer<T>();
  }
  void add_gradient(const Buffer<T>& constants_bar, const WorldStatuses* status, Parameters& gradient,
                    Parameters& gradient_dot) const {
    if (!parameters) return;
    add_constants_gradient(*model, direction_or_null(), constants_bar, status, gradient, gradient_dot);
  }
};

template <class T>
struct RolloutNode final : Tape<T>::Node {
  RolloutNode(Recorded<T> r, State<T> s, Control<T> c, Trajectory<T> t)
      : recorded(std::move(r)), state(std::move(s)), control(std::move(c)), trajectory(std::move(t)) {
    this->status = trajectory.status;
    for (const Buffer<T>* b : {&state.q, &state.qd, &control.u}) {
      if (!b->empty()) this->inputs.emplace_back(*b, b->version());
    }
    for (const Buffer<T>* b : {&trajectory.q, &trajectory.qd, &trajectory.final.q, &trajectory.final.qd}) {
      this->outputs.emplace_back(*b, b->version());
    }
  }
  const Model* model() const override { return recorded.model.get(); }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    Memory& memory = bars.memory();
    const Topology& t = recorded.model->topology;
    const int worlds = state.q.worlds();
    const auto written_by_kernel = [&](int rows) { return Buffer<T>::uninitialized(memory, rows, worlds); };
    Buffer<T> q_bar = written_by_kernel(t.nq), qd_bar = written_by_kernel(t.nv), control_bar;
    if (!control.u.empty()) control_bar = written_by_kernel(control.u.rows());
    Buffer<T> constants_bar = recorded.constants_bar(memory, worlds);
    const auto seed = [&](const Buffer<T>& b) { return rows_or_null(bars.find(b)); };
    const RolloutAdjointArguments<T> arguments{
        launch_of(t, recorded.constants, recorded.options.time_step, trajectory.steps, state.q),
        trajectory.q.row(0),
        trajectory.qd.row(0),
        control.u.empty() ? nullptr : control.u.row(0),
        bars.status(worlds).data(),
        seed(trajectory.q),
        seed(trajectory.qd),
        seed(trajectory.final.q),
        seed(trajectory.final.qd),
        q_bar.write(),
        qd_bar.write(),
        control_bar.empty() ? nullptr : control_bar.write(),
        constants_bar.empty() ? nullptr : constants_bar.write()};
    launch<T>(kernels<T>().rollout_adjoint, arguments, recorded.options.threads, memory);
    bars.add(state.q, std::move(q_bar));
    bars.add(state.qd, std::move(qd_bar));
    if (!control_bar.empty()) bars.add(control.u, std::move(control_bar));
    recorded.add_gradient(constants_bar, &bars.status(worlds), gradient, gradient_dot);
  }

  Recorded<T> recorded;
  State<T> state;
  Control<T> control;
  Trajectory<T> trajectory;
};

template <class T>
Trajectory<T> run(const Model& model, const State<T>& state, const Control<T>& control, const RolloutOptions& options,
                  const Buffer<T>& constants, bool keep, Memory& memory) {
  const Topology& t = model.topology;
  const int worlds = state.q.worlds();
  Trajectory<T> result;
  result.steps = options.steps;
  const auto written_by_kernel = [&](int rows) { return Buffer<T>::uninitialized(memory, rows, worlds); };
  result.final.q = written_by_kernel(t.nq);
  result.final.qd = written_by_kernel(t.nv);
  result.status = make_pooled<WorldStatuses>(worlds);
  if (keep) {
    result.q = written_by_kernel((options.steps + 1) * t.nq);
    result.qd = written_by_kernel((options.steps + 1) * t.nv);
  }
  const RolloutArguments<T> arguments{launch_of(t, constants, options.time_step, options.steps, state.q),
                                      state.q.row(0),
                                      state.qd.row(0),
                                      control.u.empty() ? nullptr : control.u.row(0),
                                      keep ? result.q.write() : nullptr,
                                      keep ? result.qd.write() : nullptr,
                                      result.final.q.write(),
                                      result.final.qd.write(),
                                      result.status->data()};
  launch<T>(kernels<T>().rollout, arguments, options.threads, memory);
  return result;
}

/// Link indices of bodies.
PoolVector<int> links_of(const Model& model, std::span<const int> bodies) {
  PoolVector<int> links;
  for (const int body : bodies) {
    if (body < 0 || body >= static_cast<int>(model.body_names.size())) {
      usage_error("body index " + std::to_string(body) + " of a model with " + std::to_string(model.body_names.size()) +
                  " bodies");
    }
    links.push_back(model.link_of_body(body));
  }
  return links;
}

template <class T>
struct PoseNode final : Tape<T>::Node {
  PoseNode(Recorded<T> r, Buffer<T> states, PoolVector<int> l, Buffer<T> p)
      : recorded(std::move(r)), q(std::move(states)), links(std::move(l)), poses(std::move(p)) {
    this->inputs.emplace_back(q, q.version());
    this->outputs.emplace_back(poses, poses.version());
  }
  const Model* model() const override { return recorded.model.get(); }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    const Buffer<T>* bar = bars.find(poses);
    if (!bar) return;
    Memory& memory = bars.memory();
    const Topology& t = recorded.model->topology;
    Buffer<T> q_bar = Buffer<T>::uninitialized(memory, q.rows(), q.worlds());
    Buffer<T> constants_bar = recorded.constants_bar(memory, q.worlds());
    const PoseArguments<T> arguments{launch_of(t, recorded.constants, recorded.options.time_step, q.rows() / t.nq, q),
                                     q.row(0),
                                     links.data(),
                                     static_cast<int>(links.size()),
                                     nullptr,
                                     bar->row(0),
                                     q_bar.write(),
                                     constants_bar.empty() ? nullptr : constants_bar.write()};
    launch<T>(kernels<T>().poses_adjoint, arguments, recorded.options.threads, memory);
    bars.add(q, std::move(q_bar));
    recorded.add_gradient(constants_bar, &bars.status(q.worlds()), gradient, gradient_dot);
  }

  Recorded<T> recorded;
  Buffer<T> q;
  PoolVector<int> links;
  Buffer<T> poses;
};

}  // namespace

template <class T>
Trajectory<T> rollout(const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options, Memory& memory) {
  check_rollout(model, state, control, options);
  const Buffer<T> constants = constants_buffer<T>(model, options.direction, state.q.worlds(), memory);
  return run(model, state, control, options, constants, options.keep_states, memory);
}

template <class T>
Trajectory<T> rollout(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options) {
  tape.check_recording();
  check_rollout(model, state, control, options);
  const Buffer<T> constants = constants_buffer<T>(model, options.direction, state.q.worlds(), tape.memory());
  const Trajectory<T> result = run(model, state, control, options, constants, true, tape.memory());
  tape.push(std::make_unique<RolloutNode<T>>(Recorded<T>(model, constants, options), state, control, result));
  return result;
}

template <class T>
State<T> step(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
              RolloutOptions options) {
  options.steps = 1;
  return rollout(tape, model, state, control, options).final;
}

template <class T>
Buffer<T> body_poses(Tape<T>* tape, const Model& model, const Buffer<T>& q, std::span<const int> bodies,
                     const RolloutOptions& options, Memory& memory) {
  const Topology& t = model.topology;
  if (t.nq == 0 || q.rows() % t.nq != 0) {
    usage_error("q has " + std::to_string(q.rows()) + " rows; expected a multiple of " + std::to_string(t.nq));
  }
  if (tape) tape->check_recording();
  check_parameter_worlds(model, q.worlds());
  PoolVector<int> links = links_of(model, bodies);
  const int states = q.rows() / t.nq;
  const Buffer<T> constants = constants_buffer<T>(model, options.direction, q.worlds(), memory);
  Buffer<T> poses = Buffer<T>::uninitialized(memory, states * static_cast<int>(bodies.size()) * 12, q.worlds());
  const PoseArguments<T> arguments{launch_of(t, constants, options.time_step, states, q),
                                   q.row(0),
                                   links.data(),
                                   static_cast<int>(links.size()),
                                   poses.write(),
                                   nullptr,
                                   nullptr,
                                   nullptr};
  launch<T>(kernels<T>().poses, arguments, options.threads, memory);
  if (tape) {
    tape->push(std::make_unique<PoseNode<T>>(Recorded<T>(model, constants, options), q, std::move(links), poses));
  }
  return poses;
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                       \
  template Trajectory<T> rollout<T>(const Model&, const State<T>&, const Control<T>&, const RolloutOptions&, Memory&); \
  template Trajectory<T> rollout<T>(Tape<T>&, const Model&, const State<T>&, const Control<T>&,                        \
                                    const RolloutOptions&);                                                            \
  template State<T> step<T>(Tape<T>&, const Model&, const State<T>&, const Control<T>&, RolloutOptions);               \
  template Buffer<T> body_poses<T>(Tape<T>*, const Model&, const Buffer<T>&, std::span<const int>,                     \
                                   const RolloutOptions&, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
