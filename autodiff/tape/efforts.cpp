#include "autodiff/tape/efforts.h"

#include <cstddef>

#include "engine/error.h"
#include "integrators/featherstone/link_constants.h"
#include "integrators/semi_implicit/parameter_rows.h"
#include "models/coordinates.h"

namespace backdrive {
namespace {

/// First of an effort's numbers in a struct of numbers.
template <class Struct>
constexpr int kEffortsAt = static_cast<int>(offsetof(Struct, efforts) / sizeof(double));

template <class T>
EffortArguments<T> arguments_of(const KernelModel<T>& model, const EffortSteps<T>& steps,
                                const KernelArray<EffortTerm>& table, int count, double time_step) {
  const Trajectory<T>& piece = steps.piece;
  const Buffer<T>& u = steps.control.u;
  return {launch_of(model, time_step, piece.steps, piece.q),
          piece.q.address(),
          piece.qd.address(),
          piece.velocity().address(),
          u.empty() ? nullptr : u.address(steps.first_control),
          table.data(),
          count};
}

template <class T>
struct EffortsNode final : Tape<T>::Node {
  EffortsNode(Recorded<T> r, Trajectory<T> t, Control<T> c, PoolVector<EffortTerm> asked, Buffer<T> e)
      : recorded(std::move(r)),
        trajectory(std::move(t)),
        control(std::move(c)),
        terms(std::move(asked)),
        efforts(std::move(e)) {
    for (const Buffer<T>* b : {&trajectory.q, &trajectory.qd, &trajectory.reported, &control.u}) {
      if (!b->empty()) this->inputs.emplace_back(*b, b->version());
    }
    this->outputs.emplace_back(efforts, efforts.version());
  }
  const Model* model() const override { return recorded.model.get(); }

  LinkDependence trace(Reach& reach) const override {
    const Topology& t = recorded.model->topology;
    LinkDependence own(t.links.size());
    Components q, qd, velocity, u;
    const Components* read = reach.of(efforts.id());
    for (std::size_t k = 0; read && k < terms.size(); ++k) {
      const EffortTerm& term = terms[k];
      if (!read->has(static_cast<int>(k))) continue;
      const Link& link = t.links[term.link];
      const JointSize size = joint_size(link.type);
      for (int c = 0; c < size.nq; ++c) q.add(link.q + c);
      for (int c = 0; c < size.nv; ++c) qd.add(link.v + c), u.add(link.v + c);
      if (term.power) velocity.add(link.v + term.dof);
      for (int c = 0; link.target >= 0 && c < 2 * size.nv; ++c) u.add(link.target + c);
      own.moved[term.link] = true;
    }
    reach.read(trajectory.q.id(), q);
    reach.read(trajectory.qd.id(), qd);
    reach.read(trajectory.velocity().id(), velocity);
    if (!control.u.empty()) reach.read(control.u.id(), u);
    return own;
  }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    const Buffer<T>* bar = bars.find(efforts);
    if (!bar) return;
    Memory& memory = bars.memory();
    const int worlds = trajectory.q.worlds();
    const auto zeros = [&](const Buffer<T>& like) {
      return like.empty() ? Buffer<T>() : Buffer<T>(memory, like.rows(), worlds);
    };
    Buffer<T> q = zeros(trajectory.q), qd = zeros(trajectory.qd), velocity = zeros(trajectory.reported);
    Buffer<T> u = zeros(control.u), constants;
    if (recorded.parameters) constants = Buffer<T>(memory, gradient_rows_of<T>(*recorded.model, false), worlds);
    efforts_adjoint<T>(recorded, {trajectory, control}, terms, *bar,
                       {q, qd, velocity.empty() ? qd : velocity, u, constants}, memory);
    bars.add(trajectory.q, std::move(q));
    bars.add(trajectory.qd, std::move(qd));
    if (!velocity.empty()) bars.add(trajectory.reported, std::move(velocity));
    if (!u.empty()) bars.add(control.u, std::move(u));
    recorded.add_gradient(constants, bars, gradient, gradient_dot);
  }

  Recorded<T> recorded;
  Trajectory<T> trajectory;
  Control<T> control;
  PoolVector<EffortTerm> terms;
  Buffer<T> efforts;
};

}  // namespace

EffortTerm effort_term(const Model& model, int joint, EffortPart part, bool power, int degree) {
  const int degrees = joint_size(model.joint_types[joint]).nv;
  if (degree < 0 || degree >= degrees) {
    input_error("the effort of degree of freedom " + std::to_string(degree) + " of joint '" + model.joint_names[joint] +
                "', which is " + to_string(model.joint_types[joint]) + " and has " + std::to_string(degrees));
  }
  const auto [at, dof] = degree_of_freedom(model, joint, degree);
  EffortTerm term{part, power, at, dof};
  if (model.topology.has_bodies()) {
    using Constants = semi_implicit::JointConstants<double>;
    using Gradient = semi_implicit::JointGradient<double>;
    const int bodies = static_cast<int>(model.body_names.size());
    term.constants_row =
        semi_implicit::joint_row<double>(bodies) + joint * kNumbers<double, Constants> + kEffortsAt<Constants>;
    term.gradient_row =
        semi_implicit::joint_gradient_row<double>(bodies) + joint * kNumbers<double, Gradient> + kEffortsAt<Gradient>;
  } else {
    using Constants = featherstone::LinkConstants<double>;
    using Gradient = featherstone::LinkGradient<double>;
    term.constants_row = at * kNumbers<double, Constants> + kEffortsAt<Constants>;
    term.gradient_row = at * kNumbers<double, Gradient> + kEffortsAt<Gradient>;
  }
  return term;
}

template <class T>
Buffer<T> efforts_of(const KernelModel<T>& model, const EffortSteps<T>& steps, const PoolVector<EffortTerm>& terms,
                     const RolloutOptions& options, Memory& memory) {
  const KernelArray<EffortTerm> table(terms, memory);
  const int count = static_cast<int>(terms.size());
  EffortArguments<T> arguments = arguments_of(model, steps, table, count, options.time_step);
  Buffer<T> efforts = Buffer<T>::uninitialized(memory, row_count(steps.piece.steps, count), steps.piece.q.worlds());
  arguments.efforts = efforts.write_address();
  launch_efforts(arguments, options.threads, memory);
  return efforts;
}

template <class T>
void efforts_adjoint(const Recorded<T>& recorded, const EffortSteps<T>& steps, const PoolVector<EffortTerm>& terms,
                     const Buffer<T>& efforts_bar, const EffortBars<T>& bars, Memory& memory) {
  const KernelArray<EffortTerm> table(terms, memory);
  EffortArguments<T> arguments =
      arguments_of(recorded.kernel_model, steps, table, static_cast<int>(terms.size()), recorded.options.time_step);
  arguments.efforts_bar = efforts_bar.address();
  arguments.q_bar = bars.q.write_address();
  arguments.qd_bar = bars.qd.write_address();
  arguments.velocity_bar = &bars.velocity == &bars.qd ? arguments.qd_bar : bars.velocity.write_address();
  if (!bars.control.empty()) arguments.control_bar = bars.control.write_address(steps.first_control);
  if (!bars.constants.empty()) arguments.constants_bar = bars.constants.write_address();
  launch_efforts_adjoint(arguments, recorded.options.threads, memory);
}

template <class T>
Buffer<T> acting_efforts(Tape<T>* tape, const Model& model, const EffortSteps<T>& rollout,
                         std::span<const EffortTerm> terms, const RolloutOptions& options, Memory& memory) {
  const Trajectory<T>& trajectory = rollout.piece;
  if (trajectory.q.empty()) usage_error("efforts of a rollout that kept no states, expected one with keep_states");
  if (tape) tape->check_recording();
  PoolVector<EffortTerm> asked(terms.begin(), terms.end());
  Memory& own = memory_for(trajectory.q, tape ? tape->memory() : memory);
  const int worlds = trajectory.q.worlds();
  if (!tape) {
    const auto now = make_pooled<Model>(snapshot(model, options.direction, options.checked));
    const KernelModel<T> kernel_model(*now, options.direction, worlds, own, options.parameters.get());
    return efforts_of<T>(kernel_model, rollout, asked, options, own);
  }
  Recorded<T> recorded(model, options, worlds, own);
  Buffer<T> efforts = efforts_of<T>(recorded.kernel_model, rollout, asked, options, own);
  tape->push(
      std::make_unique<EffortsNode<T>>(std::move(recorded), trajectory, rollout.control, std::move(asked), efforts));
  return efforts;
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                   \
  template Buffer<T> acting_efforts<T>(Tape<T>*, const Model&, const EffortSteps<T>&, std::span<const EffortTerm>, \
                                       const RolloutOptions&, Memory&);                                            \
  template Buffer<T> efforts_of<T>(const KernelModel<T>&, const EffortSteps<T>&, const PoolVector<EffortTerm>&,    \
                                   const RolloutOptions&, Memory&);                                                \
  template void efforts_adjoint<T>(const Recorded<T>&, const EffortSteps<T>&, const PoolVector<EffortTerm>&,       \
                                   const Buffer<T>&, const EffortBars<T>&, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
