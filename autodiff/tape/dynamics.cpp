#include "autodiff/tape/dynamics.h"

#include <algorithm>
#include <vector>

#include "autodiff/tape/recorded.h"
#include "autodiff/tape/tangent_duals.h"
#include "engine/error.h"
#include "integrators/launch.h"
#include "models/coordinates.h"
#include "models/parameter_list.h"

namespace backdrive {
namespace {

/// Which way the equation is asked, or what of it.
enum class Asking { forward, inverse, jacobian };

template <class T>
struct DynamicsCall {
  const State<T>& state;
  const Buffer<T>& given;
  Asking asking;
  bool inverse() const { return asking == Asking::inverse; }
};

template <class T>
void check_dynamics(const Model& model, const DynamicsCall<T>& call, const RolloutOptions& options) {
  const Topology& t = model.topology;
  const char* const names[] = {"forward_dynamics: ", "inverse_dynamics: ", "jacobian: "};
  const std::string who = names[static_cast<int>(call.asking)];
  if (t.has_bodies()) usage_error(who + "a model in maximal coordinates; expected the integrator featherstone");
  check_rollout(model, call.state, Control<T>(), options);
  const Buffer<T>& given = call.given;
  const int worlds = call.state.q.worlds();
  if (given.rows() != t.nv || given.worlds() != worlds) {
    usage_error(who + (call.inverse() ? "qdd" : "tau") + " has " + std::to_string(given.rows()) + " rows of " +
                std::to_string(given.worlds()) + " worlds; expected " + std::to_string(t.nv) + " rows of " +
                std::to_string(worlds));
  }
  if (call.state.q.backend() || given.backend()) {
    usage_error(who + "numbers on a device; expected them in the host's memory");
  }
}

template <class T>
DynamicsArguments<T> dynamics_arguments(const KernelModel<T>& model, const DynamicsCall<T>& call) {
  return {launch_of(model, 0.0, 1, call.state.q), call.inverse(), call.state.q.address(), call.state.qd.address(),
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
      : recorded(std::move(r)), state(call.state), given(call.given), asking(call.asking) {
    for (const Buffer<T>* b : {&state.q, &state.qd, &given}) this->inputs.emplace_back(*b, b->version());
  }
  const Model* model() const override { return recorded.model.get(); }
  DynamicsCall<T> call() const { return {state, given, asking}; }

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
  Asking asking;
};

/// M has no gradient by it.
Model without_gravity(const Model& model) {
  Model weightless = model;
  for (int k = 0; k < 3; ++k) weightless.gravity.set(0, k, 0);
  set_requires_grad(weightless, "gravity", false);
  return weightless;
}

/// Copies of a state's rows, one behind the other, recorded where there is a tape.
template <class T>
Buffer<T> repeated(Tape<T>* tape, const Buffer<T>& rows, int count, Memory& memory) {
  const int height = rows.rows(), worlds = rows.worlds();
  Buffer<T> copies(memory, row_count(count, height), worlds);
  for (int r = 0; r < copies.rows(); ++r) std::copy_n(rows.row(r % height), worlds, copies.write(r));
  if (!tape) return copies;
  tape->record({.inputs = {rows}, .outputs = {copies}, .adjoint = [=](Cotangents<T>& bars) {
                  const Buffer<T>* const bar = bars.find(copies);
                  if (!bar) return;
                  Buffer<T>& to = bars.of(rows);
                  for (int r = 0; r < bar->rows(); ++r) {
                    for (int w = 0; w < worlds; ++w) to.write(r % height)[w] += (*bar)(r, w);
                  }
                }});
  return copies;
}

/// Motion of one body where each velocity is one alone (rows column·18 + ...) to the Jacobian of a point.
template <class T>
struct PointRows {
  const Buffer<T>& motions;
  Vec3<T> point;

  Vec3<T> vector(int column, int first, int world) const {
    const int row = column * kMotionRows + first;
    return {motions(row, world), motions(row + 1, world), motions(row + 2, world)};
  }
  Vec3<T> lever(int column, int world) const {
    return vector(column, 3, world) * point.x + vector(column, 6, world) * point.y + vector(column, 9, world) * point.z;
  }
  void set(int column, int world, int nv, Buffer<T>& to) const {
    const Vec3<T> turn = vector(column, 15, world);
    const Vec3<T> slide = vector(column, 12, world) + cross(turn, lever(column, world));
    const T numbers[] = {slide.x, slide.y, slide.z, turn.x, turn.y, turn.z};
    for (int k = 0; k < 6; ++k) to.set(k * nv + column, world, numbers[k]);
  }
  void add_bar(int column, int world, int nv, const Buffer<T>& bar, Buffer<T>& to) const {
    const auto given = [&](int k) { return bar(k * nv + column, world); };
    const Vec3<T> slide{given(0), given(1), given(2)}, turn{given(3), given(4), given(5)};
    const Vec3<T> lever_bar = cross(slide, vector(column, 15, world));
    const auto add = [&](int first, const Vec3<T>& v) {
      const int row = column * kMotionRows + first;
      to.write(row)[world] += v.x, to.write(row + 1)[world] += v.y, to.write(row + 2)[world] += v.z;
    };
    add(3, lever_bar * point.x), add(6, lever_bar * point.y), add(9, lever_bar * point.z);
    add(12, slide);
    add(15, turn + cross(lever(column, world), slide));
  }
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

/// A row of each matrix a launch of the adjoint.
template <class T>
DynamicsDerivatives<T> derivatives_of(const Recorded<T>& recorded, const DynamicsCall<T>& call, Memory& memory) {
  const Topology& t = recorded.model->topology;
  const int nv = t.nv, worlds = call.state.q.worlds();
  const std::vector<int> tangent = tangent_rows(t);
  const auto matrix = [&] { return Buffer<T>(memory, row_count(nv, nv), worlds); };
  DynamicsDerivatives<T> result{matrix(), matrix(), matrix()};
  Buffer<T> seed(memory, nv, worlds), q_bar(memory, t.nq, worlds), qd_bar(memory, nv, worlds),
      tau_bar(memory, nv, worlds);
  for (int row = 0; row < nv; ++row) {
    for (int w = 0; w < worlds; ++w) {
      if (row > 0) seed.set(row - 1, w, T(0));
      seed.set(row, w, T(1));
    }
    DynamicsArguments<T> arguments = dynamics_arguments(recorded.kernel_model, call);
    arguments.result_bar = seed.address();
    arguments.q_bar = q_bar.write_address();
    arguments.qd_bar = qd_bar.write_address();
    arguments.given_bar = tau_bar.write_address();
    launch_dynamics_adjoint(arguments, recorded.options.threads, memory);
    for (int v = 0; v < nv; ++v) {
      const int to = row * nv + v;
      std::copy_n(q_bar.row(tangent[v]), worlds, result.by_position.write(to));
      std::copy_n(qd_bar.row(v), worlds, result.by_velocity.write(to));
      std::copy_n(tau_bar.row(v), worlds, result.by_effort.write(to));
    }
  }
  return result;
}

/// Gradients of what is linear in dynamics' first derivatives, in double precision: a row of all three matrices is a
/// direction that the state and the efforts of an adjoint on dual numbers move along.
template <class T>
class DerivativesAdjoint {
 public:
  using D = Dual<double>;

  /// Of state and efforts, and of the constants in their dots: empty where nobody asked for a parameter.
  struct Sums {
    Buffer<double> q, qd, given;
    Buffer<D> constants;
  };

  DerivativesAdjoint(const Recorded<T>& recorded, const DynamicsCall<T>& call, Memory& memory)
      : recorded_(recorded),
        call_(call),
        memory_(memory),
        topology_(recorded.model->topology),
        worlds_(call.given.worlds()),
        model_(*recorded.model, nullptr, worlds_, memory),
        moving_(State<D>::uninitialized(*recorded.model, worlds_, memory)),
        bar_(State<D>::uninitialized(*recorded.model, worlds_, memory)),
        given_(memory, topology_.nv, worlds_),
        given_bar_(memory, topology_.nv, worlds_),
        sums_{Buffer<double>(memory, topology_.nq, worlds_), Buffer<double>(memory, topology_.nv, worlds_),
              Buffer<double>(memory, topology_.nv, worlds_), Buffer<D>()} {
    if (!recorded.parameters) return;
    sums_.constants = Buffer<D>(memory, gradient_rows_of<D>(*recorded.model, false), worlds_);
    constants_bar_ = Buffer<D>(memory, sums_.constants.rows(), worlds_);
  }

  Sums take() && { return std::move(sums_); }

  /// Cotangents of one row: null where there are none.
  void add_row(int row, const Buffer<T>* by_position, const Buffer<T>* by_velocity, const Buffer<T>* by_effort) {
    const int nv = topology_.nv;
    const auto at = [&](const Buffer<T>* matrix, int v, int w) {
      return matrix ? double((*matrix)(row * nv + v, w)) : 0.0;
    };
    std::vector<std::vector<double>> directions(worlds_, std::vector<double>(2 * static_cast<std::size_t>(nv)));
    bool any = false;
    for (int w = 0; w < worlds_; ++w) {
      std::vector<double>& d = directions[w];
      for (int v = 0; v < nv; ++v) {
        d[v] = at(by_position, v, w), d[nv + v] = at(by_velocity, v, w);
        const double effort = at(by_effort, v, w);
        given_.set(v, w, {double(call_.given(v, w)), effort});
        any = any || d[v] != 0 || d[nv + v] != 0 || effort != 0;
      }
      set_moving<T>(topology_, {call_.state, w}, d, {moving_, w});
    }
    if (!any) return;
    walk_back(row);
    for (int w = 0; w < worlds_; ++w) add_moved_positions_gradient(topology_, directions[w], {bar_.q, w}, {sums_.q, w});
    add_dots(bar_.qd, sums_.qd);
    add_dots(given_bar_, sums_.given);
    if (!constants_bar_.empty()) add_into(sums_.constants, constants_bar_);
  }

 private:
  void walk_back(int row) {
    Buffer<D> seed(memory_, topology_.nv, worlds_);
    for (int w = 0; w < worlds_; ++w) seed.set(row, w, D(1));
    DynamicsArguments<D> arguments = dynamics_arguments<D>(model_, {moving_, given_, Asking::forward});
    arguments.result_bar = seed.address();
    arguments.q_bar = bar_.q.write_address();
    arguments.qd_bar = bar_.qd.write_address();
    arguments.given_bar = given_bar_.write_address();
    if (!constants_bar_.empty()) arguments.constants_bar = constants_bar_.write_address();
    launch_dynamics_adjoint(arguments, recorded_.options.threads, memory_);
  }

  static void add_dots(const Buffer<D>& from, Buffer<double>& to) {
    for (int r = 0; r < from.rows(); ++r) {
      for (int w = 0; w < from.worlds(); ++w) to.write(r)[w] += from(r, w).dot;
    }
  }

  const Recorded<T>& recorded_;
  const DynamicsCall<T>& call_;
  Memory& memory_;
  const Topology& topology_;
  int worlds_;
  KernelModel<D> model_;
  State<D> moving_, bar_;
  Buffer<D> given_, given_bar_, constants_bar_;
  Sums sums_;
};

template <class T>
struct DerivativesNode final : Tape<T>::Node {
  DerivativesNode(Recorded<T> r, const DynamicsCall<T>& call, DynamicsDerivatives<T> d)
      : recorded(std::move(r)), state(call.state), tau(call.given), result(std::move(d)) {
    for (const Buffer<T>* b : {&state.q, &state.qd, &tau}) this->inputs.emplace_back(*b, b->version());
    for (const Buffer<T>* b : {&result.by_position, &result.by_velocity, &result.by_effort}) {
      this->outputs.emplace_back(*b, b->version());
    }
  }
  const Model* model() const override { return recorded.model.get(); }

  // The mass matrix, whose inverse by_effort is, has no velocity in it, and h no effort.
  LinkDependence trace(Reach& reach) const override {
    const Topology& t = recorded.model->topology;
    LinkDependence own(t.links.size());
    const bool by_position = read_rows(reach, result.by_position, own);
    const bool by_velocity = read_rows(reach, result.by_velocity, own);
    read_rows(reach, result.by_effort, own);
    reach.read(state.q.id(), moved_positions(t, own));
    if (by_position || by_velocity) reach.read(state.qd.id(), moved_velocities(t, own));
    if (by_position) reach.read(tau.id(), moved_velocities(t, own));
    return own;
  }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& /*gradient_dot*/) override {
    const Buffer<T>*const by_position = bars.find(result.by_position),
                          *const by_velocity = bars.find(result.by_velocity),
                          *const by_effort = bars.find(result.by_effort);
    if (!by_position && !by_velocity && !by_effort) return;
    const DynamicsCall<T> call{state, tau, Asking::forward};
    DerivativesAdjoint<T> adjoint(recorded, call, bars.memory());
    const Topology& t = recorded.model->topology;
    for (int row = 0; row < t.nv; ++row) adjoint.add_row(row, by_position, by_velocity, by_effort);
    auto sums = std::move(adjoint).take();
    bars.add(state.q, in_precision<T>(std::move(sums.q), bars.memory()));
    bars.add(state.qd, in_precision<T>(std::move(sums.qd), bars.memory()));
    bars.add(tau, in_precision<T>(std::move(sums.given), bars.memory()));
    if (!recorded.parameters) return;
    Parameters values = gradient;  // of first derivatives by parameters, which nobody asks for
    add_constants_gradient<Dual<double>>(*recorded.model, nullptr, sums.constants, &bars.status(tau.worlds()), values,
                                         gradient);
  }

  /// Whether any number of a matrix is read; adds the links whose accelerations they are of.
  bool read_rows(const Reach& reach, const Buffer<T>& matrix, LinkDependence& own) const {
    const Topology& t = recorded.model->topology;
    const Components* const read = reach.of(matrix.id());
    if (!read) return false;
    for (std::size_t i = 0; i < t.links.size(); ++i) {
      const Link& link = t.links[i];
      const int first = link.v * t.nv, end = (link.v + joint_size(link.type).nv) * t.nv;
      bool any = false;
      for (int k = first; k < end; ++k) any = any || read->has(k);
      if (any) own.move_tree_of(t, static_cast<int>(i));
    }
    return true;
  }

  Recorded<T> recorded;
  State<T> state;
  Buffer<T> tau;
  DynamicsDerivatives<T> result;
};

}  // namespace

template <class T>
Buffer<T> forward_dynamics(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                           const Buffer<T>& tau, int threads, Memory& memory) {
  return dynamics<T>(tape, model, {state, tau, Asking::forward}, threads, memory);
}

template <class T>
Buffer<T> inverse_dynamics(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                           const Buffer<T>& qdd, int threads, Memory& memory) {
  return dynamics<T>(tape, model, {state, qdd, Asking::inverse}, threads, memory);
}

template <class T>
Buffer<T> mass_matrix(const Model& model, const Buffer<T>& q, int threads, Memory& memory) {
  const int nv = model.topology.nv, worlds = q.worlds();
  State<T> still;
  still.q = q;
  still.qd = Buffer<T>(nv, worlds);
  Buffer<T> unit(nv, worlds);
  const DynamicsCall<T> call{still, unit, Asking::inverse};
  RolloutOptions options;
  options.threads = threads;
  check_dynamics(model, call, options);
  const Recorded<T> recorded(without_gravity(model), options, worlds, memory);
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

template <class T>
Buffer<T> bias_force(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state, int threads,
                     Memory& memory) {
  return inverse_dynamics<T>(tape, model, state, Buffer<T>(model.topology.nv, state.q.worlds()), threads, memory);
}

template <class T>
Buffer<T> mass_matrix(std::type_identity_t<Tape<T>*> tape, const Model& model, const Buffer<T>& q, int threads,
                      Memory& memory) {
  if (!tape) return mass_matrix<T>(model, q, threads, memory);
  const int nv = model.topology.nv, worlds = q.worlds();
  const Model weightless = without_gravity(model);
  State<T> still;
  still.q = q;
  still.qd = Buffer<T>(nv, worlds);
  std::vector<Buffer<T>> columns;
  Buffer<T> result(tape->memory(), row_count(nv, nv), worlds);
  for (int c = 0; c < nv; ++c) {
    Buffer<T> unit(nv, worlds);
    for (int w = 0; w < worlds; ++w) unit.set(c, w, T(1));
    columns.push_back(inverse_dynamics<T>(tape, weightless, still, unit, threads, memory));
    for (int row = 0; row < nv; ++row) std::copy_n(columns[c].row(row), worlds, result.write(row * nv + c));
  }
  tape->record({.inputs = columns, .outputs = {result}, .adjoint = [=](Cotangents<T>& bars) {
                  const Buffer<T>* const bar = bars.find(result);
                  if (!bar) return;
                  for (int c = 0; c < nv; ++c) {
                    Buffer<T>& to = bars.of(columns[c]);
                    for (int row = 0; row < nv; ++row) {
                      for (int w = 0; w < worlds; ++w) to.write(row)[w] += (*bar)(row * nv + c, w);
                    }
                  }
                }});
  return result;
}

template <class T>
Buffer<T> jacobian(std::type_identity_t<Tape<T>*> tape, const Model& model, const Buffer<T>& q, int body,
                   const std::array<double, 3>& point, Memory& memory) {
  const Topology& t = model.topology;
  const int nv = t.nv, worlds = q.worlds();
  State<T> still;
  still.q = q;
  still.qd = Buffer<T>(nv, worlds);
  if (tape) tape->check_recording();
  check_dynamics<T>(model, {still, still.qd, Asking::jacobian}, {});
  Memory& own = tape ? tape->memory() : memory;
  State<T> units;
  units.q = repeated<T>(tape, q, nv, own);
  units.qd = Buffer<T>(own, row_count(nv, nv), worlds);
  for (int v = 0; v < nv; ++v) {
    for (int w = 0; w < worlds; ++w) units.qd.set(v * nv + v, w, T(1));
  }
  const Buffer<T> motions = body_motions<T>(tape, model, units, std::array{body}, {}, own);
  const Vec3<T> at{T(point[0]), T(point[1]), T(point[2])};
  Buffer<T> result(own, row_count(6, nv), worlds);
  for (int v = 0; v < nv; ++v) {
    for (int w = 0; w < worlds; ++w) PointRows<T>{motions, at}.set(v, w, nv, result);
  }
  if (!tape) return result;
  tape->record({.inputs = {motions}, .outputs = {result}, .adjoint = [=](Cotangents<T>& bars) {
                  const Buffer<T>* const bar = bars.find(result);
                  if (!bar) return;
                  Buffer<T>& to = bars.of(motions);
                  for (int v = 0; v < nv; ++v) {
                    for (int w = 0; w < worlds; ++w) PointRows<T>{motions, at}.add_bar(v, w, nv, *bar, to);
                  }
                }});
  return result;
}

template <class T>
DynamicsDerivatives<T> dynamics_derivatives(const Model& model, const State<T>& state, const Buffer<T>& tau,
                                            int threads, Memory& memory) {
  return dynamics_derivatives<T>(nullptr, model, state, tau, threads, memory);
}

template <class T>
DynamicsDerivatives<T> dynamics_derivatives(std::type_identity_t<Tape<T>*> tape, const Model& model,
                                            const State<T>& state, const Buffer<T>& tau, int threads, Memory& memory) {
  if (tape) tape->check_recording();
  const DynamicsCall<T> call{state, tau, Asking::forward};
  RolloutOptions options;
  options.threads = threads;
  check_dynamics(model, call, options);
  Memory& own = tape ? tape->memory() : memory;
  Recorded<T> recorded(model, options, state.q.worlds(), own);
  const DynamicsDerivatives<T> result = derivatives_of(recorded, call, own);
  if (tape) tape->push(std::make_unique<DerivativesNode<T>>(std::move(recorded), call, result));
  return result;
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                     \
  template Buffer<T> forward_dynamics<T>(Tape<T>*, const Model&, const State<T>&, const Buffer<T>&, int, Memory&);   \
  template Buffer<T> inverse_dynamics<T>(Tape<T>*, const Model&, const State<T>&, const Buffer<T>&, int, Memory&);   \
  template Buffer<T> bias_force<T>(Tape<T>*, const Model&, const State<T>&, int, Memory&);                           \
  template Buffer<T> mass_matrix<T>(const Model&, const Buffer<T>&, int, Memory&);                                   \
  template Buffer<T> mass_matrix<T>(Tape<T>*, const Model&, const Buffer<T>&, int, Memory&);                         \
  template Buffer<T> jacobian<T>(Tape<T>*, const Model&, const Buffer<T>&, int, const std::array<double, 3>&,        \
                                 Memory&);                                                                           \
  template DynamicsDerivatives<T> dynamics_derivatives<T>(const Model&, const State<T>&, const Buffer<T>&, int,      \
                                                          Memory&);                                                  \
  template DynamicsDerivatives<T> dynamics_derivatives<T>(Tape<T>*, const Model&, const State<T>&, const Buffer<T>&, \
                                                          int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
