#pragma once
// What the adjoints of this library's operations share: the model as it was when recorded.
#include "autodiff/tape/model_constants_buffer.h"
#include "autodiff/tape/rollout.h"
#include "engine/error.h"
#include "integrators/launch.h"
#include "models/builder.h"

namespace backdrive {

template <class T>
Launch<T> launch_of(const KernelModel<T>& model, double time_step, int steps, const Buffer<T>& like,
                    int first_step = 0) {
  const bool per_world = model.constants.rows() > 1;
  return {model.topology,
          model.constants.address(),
          per_world,
          T(time_step),
          steps,
          like.stride(),
          like.worlds(),
          first_step,
          nullptr,
          model.geometry.data(),
          model.tables ? &model.bodies : nullptr};
}

/// The model, its constants and what was asked for, as they were. Shares nothing with the model that can change.
template <class T>
struct Recorded {
  std::shared_ptr<const Model> model;
  Parameters direction;
  bool has_direction = false;
  bool parameters;  ///< somebody asked for a parameter's gradient
  KernelModel<T> kernel_model;
  RolloutOptions options;
  std::uint64_t parameters_version;  ///< of options.parameters

  Recorded(const Model& m, const RolloutOptions& o, int worlds, Memory& memory)
      : model(make_pooled<Model>(snapshot(m, o.direction, o.checked))),
        parameters(any_requires_grad(m)),
        kernel_model(*model, o.direction, worlds, memory, o.parameters.get()),
        options(o),
        parameters_version(o.parameters ? o.parameters->numbers().version() : 0) {
    if (o.direction) {
      direction = *o.direction;
      has_direction = true;
    }
    options.direction = nullptr;
  }
  const Parameters* direction_or_null() const { return has_direction ? &direction : nullptr; }
  /// Rows for the cotangents of the constants of every world, those of contact shapes and couplings, too, where they
  /// are a rollout's; empty when no parameter was asked for.
  Buffer<T> constants_bar(Memory& memory, int worlds, bool of_rollout = false) const {
    return parameters ? Buffer<T>::uninitialized(memory, gradient_rows_of<T>(*model, of_rollout), worlds) : Buffer<T>();
  }
  void add_gradient(const Buffer<T>& constants_bar, Cotangents<T>& bars, Parameters& gradient,
                    Parameters& gradient_dot) const {
    if (!parameters) return;
    if (!options.parameters) {
      const WorldStatuses& status = bars.status(constants_bar.worlds());
      return add_constants_gradient(*model, direction_or_null(), constants_bar, &status, gradient, gradient_dot);
    }
    if (options.parameters->numbers().version() != parameters_version) {
      usage_error(
          "values of parameters were written to between record and backward; the gradient would be that of other "
          "numbers");
    }
    add_constants_gradient(*options.parameters, constants_bar, bars.of_parameters(options.parameters));
  }
};

/// The memory to work in: the one given, which has to be where the buffer is; in place of default_memory() that of the
/// buffer's device.
template <class T>
Memory& memory_for(const Buffer<T>& buffer, Memory& given) {
  if (given.backend() == buffer.backend()) return given;
  if (&given == &default_memory()) return memory_beside(buffer);
  const Device device = buffer.backend() ? buffer.backend()->device() : Device{};
  usage_error("buffers on " + to_string(device) + " with memory of " + to_string(given.device()) +
              ", expected both on one device");
}

/// Throws Error (usage) when shapes, times or devices of a rollout do not agree.
template <class T>
void check_rollout(const Model& model, const State<T>& state, const Control<T>& control, const RolloutOptions& options);

/// Link indices of bodies. Throws Error (usage) for one that is not there.
PoolVector<int> links_of(const Model& model, std::span<const int> bodies);

/// World poses of links in every state of `states`, as body_poses(); where it has velocities, as body_motions().
template <class T>
Buffer<T> poses_of(const KernelModel<T>& model, const State<T>& states, const PoolVector<int>& links,
                   const RolloutOptions& options, Memory& memory);

/// Where cotangents of the constants go; it may be empty. `resume`: it holds what later states left, which is added to.
template <class T>
struct ConstantsBar {
  Buffer<T>& rows;
  bool resume = false;
};
/// Cotangents of the states from those of their poses and motions.
template <class T>
State<T> poses_adjoint(const Recorded<T>& recorded, const State<T>& states, const PoolVector<int>& links,
                       const Buffer<T>& poses_bar, const ConstantsBar<T>& constants_bar, Memory& memory);

}  // namespace backdrive
