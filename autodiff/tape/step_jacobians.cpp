#include "autodiff/tape/step_jacobians.h"

#include <algorithm>
#include <limits>

#include "autodiff/tape/recorded.h"
#include "engine/error.h"
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

  void add(const State<T>& state, const Control<T>& control, int first, int count, StepJacobians<T>& to) const {
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
                    StepJacobians<T>& to) {
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
  for (int w = 0; w < state.q.worlds(); ++w) {
    if (!(*after.status)[w].stopped()) continue;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    for (int r = 0; r < to.A.rows(); ++r) to.A.set(r, w, nan);
    for (int r = 0; r < to.B.rows(); ++r) to.B.set(r, w, nan);
  }
}

}  // namespace

template <class T>
StepJacobians<T> step_jacobians(const Model& model, const State<T>& state, const Control<T>& control,
                                RolloutOptions options) {
  if (options.parameters || model.parameter_worlds() > 1) {
    usage_error("step_jacobians: the parameters differ from world to world; expected those of one world for all");
  }
  const int worlds = state.q.worlds();
  StepJacobians<T> result;
  result.rows = 2 * model.topology.nv;
  result.control_rows = control.u.empty() ? 0 : control.u.rows();
  result.A = Buffer<T>(row_count(result.rows, result.rows), worlds);
  if (result.control_rows > 0) result.B = Buffer<T>(row_count(result.rows, result.control_rows), worlds);
  if (result.rows == 0) return result;
  if (has_kernel(model, options)) {
    linearise_step(model, state, control, options, result);
    return result;
  }
  const Linearisation<T> linearisation(model, options);
  const int at_a_time = std::max(1, kRecordedWorlds / result.rows);
  for (int first = 0; first < worlds; first += at_a_time) {
    linearisation.add(state, control, first, std::min(at_a_time, worlds - first), result);
  }
  return result;
}

template StepJacobians<float> step_jacobians(const Model&, const State<float>&, const Control<float>&, RolloutOptions);
template StepJacobians<double> step_jacobians(const Model&, const State<double>&, const Control<double>&,
                                              RolloutOptions);

}  // namespace backdrive
