#include "autodiff/problem/inputs.h"

#include "engine/buffer_kernels.h"
#include "engine/error.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"

namespace backdrive {
namespace {

/// rows[r] in every world of row r.
template <class T>
Buffer<T> spread(const std::vector<T>& rows, int worlds, Memory& memory) {
  Buffer<T> buffer(memory, static_cast<int>(rows.size()), worlds);
  if (!memory.backend()) {
    for (int r = 0; r < buffer.rows(); ++r) std::fill_n(buffer.write(r), worlds, rows[r]);
  } else if (!rows.empty()) {
    const KernelArray<T> numbers(rows, memory);
    launch_on_device(*memory.backend(), worlds,
                     SpreadRows<T>{numbers.data(), buffer.write_address(), buffer.rows(),
                                   static_cast<std::size_t>(buffer.stride())});
  }
  return buffer;
}

}  // namespace

int channel_row(const Model& model, int controlled, ControlChannel channel, int component, const AskedBy& by) {
  const int joints = static_cast<int>(model.joint_names.size()),
            all = joints + static_cast<int>(model.coupling_names.size());
  const auto refuse = [&](const std::string& why) { input_error(by.what + by.name + ": " + why); };
  if (controlled < 0 || controlled >= all) {
    refuse("joint index " + std::to_string(controlled) + ", expected one of " + std::to_string(joints) + " joints" +
           (all > joints ? " and " + std::to_string(all - joints) + " couplings behind them" : ""));
  }
  const bool is_joint = controlled < joints;
  const auto owner = [&] {
    return (is_joint ? "joint '" : "coupling '") + name_of_controlled(model, controlled) + "' ";
  };
  const int count = static_cast<int>(controlled_components(model, controlled, channel).size());
  if (component < 0 || component >= count) {
    refuse(owner() + (is_joint ? std::string("is ") + to_string(model.joint_types[controlled]) + ": " : "") +
           "component " + std::to_string(component) + " of channel " + to_string(channel) + ", expected one of " +
           std::to_string(count));
  }
  const int row = control_row(model, controlled, channel, component);
  if (row < 0) {
    refuse(owner() + (channel == ControlChannel::effort ? "is held, expected no control of it"
                                                        : "has no drive, expected one or the channel effort"));
  }
  return row;
}

template <class T>
State<T> initial_state(const Problem& problem, int worlds, Memory& memory) {
  const auto rows = [](const std::vector<double>& numbers) {
    std::vector<T> result;
    for (const double x : numbers) result.push_back(constant<T>(x));
    return result;
  };
  State<T> state;
  state.q = spread(rows(problem.initial_position), worlds, memory);
  state.qd = spread(rows(problem.initial_velocity), worlds, memory);
  return state;
}

template <class T>
Control<T> initial_control(const Problem& problem, int worlds, Memory& memory) {
  const Topology& t = problem.model.topology;
  const int steps = problem.simulation.steps;
  std::vector<T> rows(static_cast<std::size_t>(steps) * t.nu, constant<T>(0));
  const std::string none;
  for (const ControlSignal& signal : problem.controls) {
    const int row =
        channel_row(problem.model, signal.joint, signal.channel, signal.component, {"a control signal", none});
    for (int step = 0; step < steps; ++step) {
      const KnotWeights k = knot_weights(static_cast<int>(signal.values.size()), problem.simulation, step, signal.hold);
      const double value = k.first_weight * signal.values[k.first] + k.second_weight * signal.values[k.second];
      rows[static_cast<std::size_t>(step) * t.nu + row] = constant<T>(value);
    }
  }
  Control<T> control;
  control.u = spread(rows, worlds, memory);
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

KnotWeights knot_weights(int knots, const Simulation& simulation, int step, bool hold) {
  return knot_weights(knots, simulation.control_steps(), step / simulation.substeps, hold);
}

#define BACKDRIVE_INSTANTIATE(T)                                    \
  template State<T> initial_state<T>(const Problem&, int, Memory&); \
  template Control<T> initial_control<T>(const Problem&, int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
