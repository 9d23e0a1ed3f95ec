#include "autodiff/tape/rollout.h"

#include <algorithm>
#include <limits>

#include "autodiff/tape/rollout_node.h"
#include "engine/error.h"
#include "integrators/rollout/arguments.h"

namespace backdrive {
namespace {

void check_shape(const char* what, int rows, int worlds, int want_rows, int want_worlds) {
  if (rows == want_rows && worlds == want_worlds) return;
  usage_error(std::string(what) + " has " + std::to_string(rows) + " rows of " + std::to_string(worlds) +
              " worlds; expected " + std::to_string(want_rows) + " rows of " + std::to_string(want_worlds));
}

/// `backend`: of the buffers.
template <class T>
void check_parameters(const Model& model, const RolloutOptions& options, int worlds, DeviceBackend* backend) {
  if (const int own = model.parameter_worlds(); own != 1 && own != worlds) {
    usage_error("the model has parameters for " + std::to_string(own) + " worlds, the state " + std::to_string(worlds));
  }
  if (!options.parameters) return;
  const WorldParameters& parameters = *options.parameters;
  const ModelStructure own = structure_of(model), &given = parameters.structure();
  if (std::is_same_v<T, Dual<double>> || parameters.backend() != backend || parameters.worlds() != worlds ||
      own.link_count != given.link_count || own.shape_count != given.shape_count ||
      own.body_count != given.body_count) {
    usage_error("values of parameters for " + std::to_string(parameters.worlds()) + " worlds of " +
                std::to_string(given.link_count) + " links; expected " + std::to_string(worlds) + " worlds of " +
                std::to_string(own.link_count) + " links, where the states are, and no dual numbers");
  }
  for (const Field& field : fields()) {
    if (!field.in(model).any_requires_grad() || parameters.has(field)) continue;
    usage_error("a gradient of " + std::string(field.leaf) +
                " was asked for, which is not among the parameters with values for every world");
  }
}

void check_plan(const RolloutOptions& options) {
  const GradientWindow& window = options.window;
  const MemoryPlan& plan = options.plan;
  const auto refuse = [](const std::string& what) { usage_error(what); };
  if (window.steps < 0) refuse("gradient windows of " + std::to_string(window.steps) + " steps; expected 0 or more");
  if (!(window.clip >= 0)) refuse("clip " + std::to_string(window.clip) + " of gradients; expected 0 or more");
  if (window.cut && window.steps == 0) refuse("gradients cut at windows of 0 steps; expected 1 or more");
  if (plan.piece < 0 || plan.slots < 0) refuse("a memory plan of negative size; expected one of plan_memory()");
  const int whole = window.steps > 0 ? window.steps : options.steps;
  if (!plan.keeps_all() && plan.piece < options.steps && window.clip > 0 && plan.piece % whole != 0) {
    refuse("pieces of " + std::to_string(plan.piece) + " steps for gradient windows of " + std::to_string(whole) +
           " that are clipped; expected whole windows");
  }
}

/// A rollout of its own, not recorded.
template <class T>
Trajectory<T> run(const Model& model, const State<T>& state, const Control<T>& control, const RolloutOptions& options,
                  Memory& memory) {
  const auto status = make_pooled<WorldStatuses>(state.q.worlds(), memory);
  const auto own = make_pooled<Model>(snapshot(model, options.direction, options.checked));
  RolloutPart<T> part({0, options.steps, options.keep_states, options.keep_contact}, state, model, memory);
  const KernelModel<T> kernel_model(*own, options.direction, state.q.worlds(), memory, options.parameters.get());
  run_part({kernel_model, control, options, *status, memory}, part);
  Trajectory<T> result = trajectory_of(part, status);
  result.model = own;
  return result;
}

template <class T>
struct PoseNode final : Tape<T>::Node {
  PoseNode(Recorded<T> r, State<T> s, PoolVector<int> l, Buffer<T> p)
      : recorded(std::move(r)), states(std::move(s)), links(std::move(l)), poses(std::move(p)) {
    this->inputs.emplace_back(states.q, states.q.version());
    if (!states.qd.empty()) this->inputs.emplace_back(states.qd, states.qd.version());
    this->outputs.emplace_back(poses, poses.version());
  }
  const Model* model() const override { return recorded.model.get(); }

  LinkDependence trace(Reach& reach) const override {
    const Topology& t = recorded.model->topology;
    LinkDependence own(t.links.size()), none(t.links.size());
    const Components* read = reach.of(poses.id());
    if (!read) return own;
    const int rows = states.qd.empty() ? kPoseRows : kMotionRows;
    for (std::size_t k = 0; k < links.size(); ++k) {
      bool any = false;
      for (int c = 0; c < rows; ++c) any = any || read->has(static_cast<int>(k) * rows + c);
      if (any && t.has_bodies()) own.posed[links[k]] = true;
      if (any && !t.has_bodies()) own.pose(t, links[k]);
    }
    reach.read(states.q.id(), posed_positions(t, own));
    if (!states.qd.empty()) reach.read(states.qd.id(), posed_velocities(t, own));
    return t.has_bodies() ? none : own;  // where a body is depends on no parameter
  }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    const Buffer<T>* bar = bars.find(poses);
    if (!bar) return;
    Buffer<T> constants_bar = recorded.constants_bar(bars.memory(), states.q.worlds());
    State<T> states_bar = poses_adjoint(recorded, states, links, *bar, {constants_bar}, bars.memory());
    bars.add(states.q, std::move(states_bar.q));
    if (!states.qd.empty()) bars.add(states.qd, std::move(states_bar.qd));
    recorded.add_gradient(constants_bar, bars, gradient, gradient_dot);
  }

  Recorded<T> recorded;
  State<T> states;  ///< without velocities: of poses only
  PoolVector<int> links;
  Buffer<T> poses;
};

/// Throws unless the four rows hold unit quaternions.
template <class T>
void check_quaternion(const Buffer<T>& q, int row, const std::string& whose, const char* expected) {
  // Far above what rounding makes of a unit quaternion.
  constexpr double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-8;
  for (int w = 0; w < q.worlds(); ++w) {
    double square = 0;
    for (int k = 0; k < 4; ++k) square += value_of(q(row + k, w) * q(row + k, w));
    if (std::abs(square - 1) < 2 * tolerance || !std::isfinite(square)) continue;
    usage_error("state.q: the orientation of " + whose + " in world " + std::to_string(w) +
                " is a quaternion of length " + std::to_string(std::sqrt(square)) + ", expected " + expected);
  }
}

/// Quaternions of a state that lies here. A device's are not looked at.
template <class T>
void check_quaternions(const Model& model, const Buffer<T>& q) {
  const Topology& t = model.topology;
  if (q.backend() || t.nq == t.nv) return;
  for (const Link& link : t.links) {
    if (has_quaternion(link.type)) {
      check_quaternion(q, link.q, "joint '" + model.joint_names[link.joint] + "'", "1");
    }
  }
  for (int body = 0; body < t.bodies(); ++body) {
    check_quaternion(q, t.body_q(body), "body '" + model.body_names[body] + "'",
                     "1: place_bodies() puts bodies where their joints say");
  }
}

template <class T>
void check_state(const Model& model, const State<T>& state) {
  const Topology& t = model.topology;
  const int worlds = state.q.worlds();
  check_shape("state.q", state.q.rows(), worlds, t.nq, worlds);
  check_shape("state.qd", state.qd.rows(), state.qd.worlds(), t.nv, worlds);
  const Buffer<T>& reported = state.reported();
  if (!reported.empty()) check_shape("state.reported()", reported.rows(), reported.worlds(), t.nv, worlds);
  const Buffer<T>& ways = state.ways();
  if (!ways.empty()) check_shape("state.ways()", ways.rows(), ways.worlds(), t.way_count, worlds);
}

template <class T>
State<T> placed(const KernelModel<T>& model, const Model& shape, const State<T>& state, const RolloutOptions& options,
                Memory& memory) {
  State<T> result = State<T>::uninitialized(shape, state.q.worlds(), memory);
  PlaceArguments<T> arguments{launch_of(model, options.time_step, 1, state.q), state.q.address(), state.qd.address(),
                              result.q.write_address(), result.qd.write_address()};
  launch_place(arguments, options.threads, memory);
  return result;
}

template <class T>
struct PlaceNode final : Tape<T>::Node {
  PlaceNode(Recorded<T> r, State<T> from, State<T> to) : recorded(std::move(r)), given(from), made(to) {
    for (const Buffer<T>* b : {&given.q, &given.qd}) this->inputs.emplace_back(*b, b->version());
    for (const Buffer<T>* b : {&made.q, &made.qd}) this->outputs.emplace_back(*b, b->version());
  }
  const Model* model() const override { return recorded.model.get(); }

  /// A body is where the joints between it and the world put it; a joint's own rows are copied or, of one that closes
  /// a loop, read off the bodies that it joins.
  LinkDependence trace(Reach& reach) const override {
    const Topology& t = recorded.model->topology;
    LinkDependence own(t.links.size());
    const Components *q = reach.of(made.q.id()), *qd = reach.of(made.qd.id());
    const auto reads = [](const Components* read, int first, int count) {
      bool any = false;
      for (int k = 0; read && k < count; ++k) any = any || read->has(first + k);
      return any;
    };
    for (std::size_t i = 0; i < t.links.size(); ++i) {
      const Link& link = t.links[i];
      const JointSize size = joint_size(link.type);
      const bool joint = reads(q, link.q, size.nq) || reads(qd, link.v, size.nv);
      const bool body = link.body >= 0 && (reads(q, t.body_q(link.body), kBodyPositions) ||
                                           reads(qd, t.body_v(link.body), kBodyVelocities));
      if (joint || body) own.pose(t, static_cast<int>(i));
      if (joint && link.loop_child >= 0) own.pose(t, link.loop_child);
    }
    reach.read(given.q.id(), posed_positions(t, own));
    reach.read(given.qd.id(), posed_velocities(t, own));
    return own;
  }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    const auto address = [](const Buffer<T>* b) { return b ? b->address() : nullptr; };
    const Buffer<T>*q_bar = bars.find(made.q), *qd_bar = bars.find(made.qd);
    if (!q_bar && !qd_bar) return;
    Memory& memory = bars.memory();
    State<T> bar = State<T>::uninitialized(*recorded.model, given.q.worlds(), memory);
    Buffer<T> constants_bar = recorded.constants_bar(memory, given.q.worlds());
    PlaceArguments<T> arguments{launch_of(recorded.kernel_model, recorded.options.time_step, 1, given.q),
                                given.q.address(), given.qd.address()};
    arguments.q_placed_bar = address(q_bar);
    arguments.qd_placed_bar = address(qd_bar);
    arguments.q_bar = bar.q.write_address();
    arguments.qd_bar = bar.qd.write_address();
    if (!constants_bar.empty()) arguments.constants_bar = constants_bar.write_address();
    launch_place_adjoint(arguments, recorded.options.threads, memory);
    bars.add(given.q, std::move(bar.q));
    bars.add(given.qd, std::move(bar.qd));
    recorded.add_gradient(constants_bar, bars, gradient, gradient_dot);
  }

  Recorded<T> recorded;
  State<T> given, made;
};

}  // namespace

template <class T>
void check_rollout(const Model& model, const State<T>& state, const Control<T>& control,
                   const RolloutOptions& options) {
  const Topology& t = model.topology;
  const int worlds = state.q.worlds();
  if (options.steps < 1) usage_error("a rollout of " + std::to_string(options.steps) + " steps; expected 1 or more");
  if (!(options.time_step > 0))
    usage_error("time step " + std::to_string(options.time_step) + " s; expected more than 0");
  check_state(model, state);
  if (!control.u.empty()) {
    check_shape("control.u", control.u.rows(), control.u.worlds(), options.steps * t.nu, worlds);
  }
  check_parameters<T>(model, options, worlds, state.q.backend());
  check_quaternions(model, state.q);
  const auto check_place = [&](const char* what, const Buffer<T>& buffer) {
    if (buffer.empty() || buffer.backend() == state.q.backend()) return;
    const auto place = [](const Buffer<T>& b) { return to_string(b.backend() ? b.backend()->device() : Device{}); };
    usage_error(std::string(what) + " lies on " + place(buffer) + " and state.q on " + place(state.q) +
                ", expected both on one device");
  };
  check_place("state.qd", state.qd);
  check_place("state.reported()", state.reported());
  check_place("state.ways()", state.ways());
  check_place("control", control.u);
}

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
Buffer<T> poses_of(const KernelModel<T>& model, const State<T>& states, const PoolVector<int>& links,
                   const RolloutOptions& options, Memory& memory) {
  const Buffer<T>& q = states.q;
  const int number = q.rows() / model.topology.nq, count = static_cast<int>(links.size());
  const KernelArray<int> link_table(links, memory);
  PoseArguments<T> arguments{launch_of(model, options.time_step, number, q), q.address(), link_table.data(), count};
  if (!states.qd.empty()) arguments.qd = states.qd.address();
  const int rows = row_count(number, row_count(count, arguments.rows()));
  Buffer<T> poses = Buffer<T>::uninitialized(memory, rows, q.worlds());
  arguments.poses = poses.write_address();
  launch_poses(arguments, model.tree, options.threads, memory);
  return poses;
}

template <class T>
State<T> poses_adjoint(const Recorded<T>& recorded, const State<T>& states, const PoolVector<int>& links,
                       const Buffer<T>& poses_bar, const ConstantsBar<T>& constants_bar, Memory& memory) {
  const Buffer<T>& q = states.q;
  State<T> bar;
  bar.q = Buffer<T>::uninitialized(memory, q.rows(), q.worlds());
  const KernelArray<int> link_table(links, memory);
  const int number = q.rows() / recorded.model->topology.nq;
  PoseArguments<T> arguments{launch_of(recorded.kernel_model, recorded.options.time_step, number, q), q.address(),
                             link_table.data(), static_cast<int>(links.size())};
  arguments.pose_bar = poses_bar.address();
  arguments.q_bar = bar.q.write_address();
  if (!constants_bar.rows.empty()) arguments.constants_bar = constants_bar.rows.write_address();
  arguments.resume = constants_bar.resume;
  if (!states.qd.empty()) {
    bar.qd = Buffer<T>::uninitialized(memory, states.qd.rows(), q.worlds());
    arguments.qd = states.qd.address();
    arguments.qd_bar = bar.qd.write_address();
  }
  launch_poses_adjoint(arguments, recorded.kernel_model.tree, recorded.options.threads, memory);
  return bar;
}

/// body_poses(), or with velocities body_motions().
template <class T>
Buffer<T> record_poses(Tape<T>* tape, const Model& model, const State<T>& states, std::span<const int> bodies,
                       const RolloutOptions& options, Memory& memory) {
  if (tape) tape->check_recording();
  const Buffer<T>& q = states.q;
  check_parameters<T>(model, options, q.worlds(), q.backend());
  PoolVector<int> links = links_of(model, bodies);
  Memory& own = memory_for(q, tape ? tape->memory() : memory);
  if (!tape) {
    return poses_of(KernelModel<T>(model, options.direction, q.worlds(), own, options.parameters.get()), states, links,
                    options, own);
  }
  Recorded<T> recorded(model, options, q.worlds(), own);
  Buffer<T> poses = poses_of(recorded.kernel_model, states, links, options, own);
  tape->push(std::make_unique<PoseNode<T>>(std::move(recorded), states, std::move(links), poses));
  return poses;
}

template <class T>
State<T> place_bodies(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                      const RolloutOptions& options, Memory& memory) {
  if (!model.topology.has_bodies()) return state;
  if (tape) tape->check_recording();
  check_state(model, state);
  check_parameters<T>(model, options, state.q.worlds(), state.q.backend());
  Memory& own = memory_for(state.q, tape ? tape->memory() : memory);
  if (!tape) {
    const KernelModel<T> kernel_model(model, options.direction, state.q.worlds(), own, options.parameters.get());
    return placed(kernel_model, model, state, options, own);
  }
  Recorded<T> recorded(model, options, state.q.worlds(), own);
  State<T> result = placed(recorded.kernel_model, model, state, options, own);
  tape->push(std::make_unique<PlaceNode<T>>(std::move(recorded), state, result));
  return result;
}

template <class T>
Trajectory<T> rollout(const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options, Memory& memory) {
  check_rollout(model, state, control, options);
  return run(model, state, control, options, memory_for(state.q, memory));
}

template <class T>
Trajectory<T> rollout(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
                      const RolloutOptions& options, std::type_identity_t<std::shared_ptr<StateObserver<T>>> observer) {
  tape.check_recording();
  check_rollout(model, state, control, options);
  check_plan(options);
  memory_for(state.q, tape.memory());
  auto node = std::make_unique<RolloutNode<T>>(Recorded<T>(model, options, state.q.worlds(), tape.memory()), state,
                                               control, std::move(observer));
  Trajectory<T> result = node->forward(tape.memory());
  tape.push(std::move(node));
  return result;
}

template <class T>
State<T> step(Tape<T>& tape, const Model& model, const State<T>& state, const Control<T>& control,
              RolloutOptions options) {
  options.steps = 1;
  const auto lets_go = [](double at) { return at < std::numeric_limits<double>::infinity(); };
  if (std::ranges::any_of(model.joint_releases, lets_go)) {
    usage_error(
        "a step by itself of a model whose joints let go at a time; expected a rollout, which knows when it is");
  }
  return rollout(tape, model, state, control, options).final;
}

template <class T>
Buffer<T> body_poses(Tape<T>* tape, const Model& model, const Buffer<T>& q, std::span<const int> bodies,
                     const RolloutOptions& options, Memory& memory) {
  const Topology& t = model.topology;
  if (t.nq == 0 || q.rows() % t.nq != 0) {
    usage_error("q has " + std::to_string(q.rows()) + " rows; expected a multiple of " + std::to_string(t.nq));
  }
  State<T> states;
  states.q = q;
  return record_poses(tape, model, states, bodies, options, memory);
}

template <class T>
Buffer<T> body_motions(Tape<T>* tape, const Model& model, const State<T>& states, std::span<const int> bodies,
                       const RolloutOptions& options, Memory& memory) {
  const Topology& t = model.topology;
  const int number = t.nq == 0 ? 0 : states.q.rows() / t.nq;
  check_shape("states.q", states.q.rows(), states.q.worlds(), number * t.nq, states.qd.worlds());
  check_shape("states.qd", states.qd.rows(), states.qd.worlds(), number * t.nv, states.q.worlds());
  return record_poses(tape, model, states, bodies, options, memory);
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                       \
  template void check_rollout<T>(const Model&, const State<T>&, const Control<T>&, const RolloutOptions&);             \
  template State<T> place_bodies<T>(Tape<T>*, const Model&, const State<T>&, const RolloutOptions&, Memory&);          \
  template Trajectory<T> rollout<T>(const Model&, const State<T>&, const Control<T>&, const RolloutOptions&, Memory&); \
  template Trajectory<T> rollout<T>(Tape<T>&, const Model&, const State<T>&, const Control<T>&, const RolloutOptions&, \
                                    std::shared_ptr<StateObserver<T>>);                                                \
  template State<T> step<T>(Tape<T>&, const Model&, const State<T>&, const Control<T>&, RolloutOptions);               \
  template Buffer<T> body_poses<T>(Tape<T>*, const Model&, const Buffer<T>&, std::span<const int>,                     \
                                   const RolloutOptions&, Memory&);                                                    \
  template Buffer<T> body_motions<T>(Tape<T>*, const Model&, const State<T>&, std::span<const int>,                    \
                                     const RolloutOptions&, Memory&);                                                  \
  template Buffer<T> poses_of<T>(const KernelModel<T>&, const State<T>&, const PoolVector<int>&,                       \
                                 const RolloutOptions&, Memory&);                                                      \
  template State<T> poses_adjoint<T>(const Recorded<T>&, const State<T>&, const PoolVector<int>&, const Buffer<T>&,    \
                                     const ConstantsBar<T>&, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
