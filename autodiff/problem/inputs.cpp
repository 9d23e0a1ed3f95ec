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

void check_one_degree(const Model& model, int joint, const char* what, const std::string& name) {
  const JointType type = model.joint_types[joint];
  if (has_one_degree(type)) return;
  input_error(what + name + " of joint '" + model.joint_names[joint] + "', which is " + to_string(type) +
              ": expected a revolute or prismatic joint");
}

int channel_row(const Link& link, ControlChannel channel) {
  if (channel == ControlChannel::effort) return link.v;
  return link.target + (channel == ControlChannel::target_velocity ? 1 : 0);
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
  for (const ControlSignal& signal : problem.controls) {
    check_one_degree(problem.model, signal.joint, "a control signal");
    const Link& link = t.links[problem.model.link_of_joint(signal.joint)];
    const int row = channel_row(link, signal.channel);
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
