#include "autodiff/tape/dynamics.h"

#include "autodiff/tape/recorded.h"
#include "engine/error.h"
#include "integrators/launch.h"

namespace backdrive {
namespace {

template <class T>
struct DynamicsCall {
  const State<T>& state;
  const Buffer<T>& given;
  bool inverse;
};

template <class T>
void check_dynamics(const Model& model, const DynamicsCall<T>& call, const RolloutOptions& options) {
  const Topology& t = model.topology;
  const std::string who = call.inverse ? "inverse_dynamics: " : "forward_dynamics: ";
  if (t.has_bodies()) usage_error(who + "a model in maximal coordinates; expected the integrator featherstone");
  check_rollout(model, call.state, Control<T>(), options);
  const Buffer<T>& given = call.given;
  const int worlds = call.state.q.worlds();
  if (given.rows() != t.nv || given.worlds() != worlds) {
    usage_error(who + (call.inverse ? "qdd" : "tau") + " has " + std::to_string(given.rows()) + " rows of " +
                std::to_string(given.worlds()) + " worlds; expected " + std::to_string(t.nv) + " rows of " +
                std::to_string(worlds));
  }
  if (call.state.q.backend() || given.backend()) {
    usage_error(who + "numbers on a device; expected them in the host's memory");
  }
}

template <class T>
DynamicsArguments<T> dynamics_arguments(const KernelModel<T>& model, const DynamicsCall<T>& call) {
  return {launch_of(model, 0.0, 1, call.state.q), call.inverse, call.state.q.address(), call.state.qd.address(),
          call.given.address()};
}

template <class T>
Buffer<T> run_dynamics(const KernelModel<T>& model, const DynamicsCall<T>& call, int threads, Memory& memory) {
  Buffer<T> result = Buffer<T>::uninitialized(memory, call.given.rows(), call.given.worlds());
  DynamicsArguments<T> arguments = dynamics_arguments(model, call);
  arguments.result = result.write_address();
  launch_dynamics(arguments, threads, memory);
  return result;
}

template <class T>
struct DynamicsNode final : Tape<T>::Node {
  DynamicsNode(Recorded<T> r, const DynamicsCall<T>& call)
      : recorded(std::move(r)), state(call.state), given(call.given), inverse(call.inverse) {
    for (const Buffer<T>* b : {&state.q, &state.qd, &given}) this->inputs.emplace_back(*b, b->version());
  }
  const Model* model() const override { return recorded.model.get(); }
  DynamicsCall<T> call() const { return {state, given, inverse}; }

  LinkDependence trace(Reach& reach) const override {
    const Topology& t = recorded.model->topology;
    LinkDependence own(t.links.size());
    const Components* read = reach.of(result.id());
    if (!read) return own;
    for (std::size_t i = 0; i < t.links.size(); ++i) {
      const Link& link = t.links[i];
      bool any = false;
      for (int k = 0; k < joint_size(link.type).nv; ++k) any = any || read->has(link.v + k);
      if (any) own.move_tree_of(t, static_cast<int>(i));
    }
    reach.read(state.q.id(), moved_positions(t, own));
    reach.read(state.qd.id(), moved_velocities(t, own));
    reach.read(given.id(), moved_velocities(t, own));
    return own;
  }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    const Buffer<T>* bar = bars.find(result);
    if (!bar) return;
    Memory& memory = bars.memory();
    const int worlds = given.worlds();
    State<T> state_bar = State<T>::uninitialized(*recorded.model, worlds, memory);
    Buffer<T> given_bar = Buffer<T>::uninitialized(memory, given.rows(), worlds);
    Buffer<T> constants_bar = recorded.constants_bar(memory, worlds);
    DynamicsArguments<T> arguments = dynamics_arguments(recorded.kernel_model, call());
    arguments.result_bar = bar->address();
    arguments.q_bar = state_bar.q.write_address();
    arguments.qd_bar = state_bar.qd.write_address();
    arguments.given_bar = given_bar.write_address();
    if (!constants_bar.empty()) arguments.constants_bar = constants_bar.write_address();
    launch_dynamics_adjoint(arguments, recorded.options.threads, memory);
    bars.add(state.q, std::move(state_bar.q));
    bars.add(state.qd, std::move(state_bar.qd));
    bars.add(given, std::move(given_bar));
    recorded.add_gradient(constants_bar, bars, gradient, gradient_dot);
  }

  Recorded<T> recorded;
  State<T> state;
  Buffer<T> given, result;
  bool inverse;
};

template <class T>
Buffer<T> dynamics(Tape<T>* tape, const Model& model, const DynamicsCall<T>& call, int threads, Memory& memory) {
  if (tape) tape->check_recording();
  RolloutOptions options;
  options.threads = threads;
  check_dynamics(model, call, options);
  Memory& own = tape ? tape->memory() : memory;
  auto node = std::make_unique<DynamicsNode<T>>(Recorded<T>(model, options, call.given.worlds(), own), call);
  node->result = run_dynamics(node->recorded.kernel_model, call, threads, own);
  node->outputs.emplace_back(node->result, node->result.version());
  Buffer<T> result = node->result;
  if (tape) tape->push(std::move(node));
  return result;
}

}  // namespace

template <class T>
Buffer<T> forward_dynamics(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                           const Buffer<T>& tau, int threads, Memory& memory) {
  return dynamics<T>(tape, model, {state, tau, false}, threads, memory);
}

template <class T>
Buffer<T> inverse_dynamics(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                           const Buffer<T>& qdd, int threads, Memory& memory) {
  return dynamics<T>(tape, model, {state, qdd, true}, threads, memory);
}

template <class T>
Buffer<T> mass_matrix(const Model& model, const Buffer<T>& q, int threads, Memory& memory) {
  const int nv = model.topology.nv, worlds = q.worlds();
  State<T> still;
  still.q = q;
  still.qd = Buffer<T>(nv, worlds);
  Buffer<T> unit(nv, worlds);
  const DynamicsCall<T> call{still, unit, true};
  RolloutOptions options;
  options.threads = threads;
  check_dynamics(model, call, options);
  Model weightless = model;
  for (int k = 0; k < 3; ++k) weightless.gravity.set(0, k, 0);
  const Recorded<T> recorded(weightless, options, worlds, memory);
  Buffer<T> result(memory, row_count(nv, nv), worlds);
  for (int column = 0; column < nv; ++column) {
    for (int w = 0; w < worlds; ++w) {
      if (column > 0) unit.set(column - 1, w, T(0));
      unit.set(column, w, T(1));
    }
    const Buffer<T> efforts = run_dynamics(recorded.kernel_model, call, threads, memory);
    for (int row = 0; row < nv; ++row) {
      for (int w = 0; w < worlds; ++w) result.set(row * nv + column, w, efforts(row, w));
    }
  }
  return result;
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                   \
  template Buffer<T> forward_dynamics<T>(Tape<T>*, const Model&, const State<T>&, const Buffer<T>&, int, Memory&); \
  template Buffer<T> inverse_dynamics<T>(Tape<T>*, const Model&, const State<T>&, const Buffer<T>&, int, Memory&); \
  template Buffer<T> mass_matrix<T>(const Model&, const Buffer<T>&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
