#pragma once
// What the adjoints of this library's operations share: the model as it was when recorded, and how kernels are
// launched.
#include "autodiff/model_constants_buffer.h"
#include "autodiff/rollout.h"
#include "engine/parallel.h"
#include "integrators/featherstone/kernels.h"

namespace backdrive {

/// Runs a kernel over all lane groups, each thread with its own scratch.
template <class T, class Arguments>
void launch(void (*kernel)(const Arguments&, int, int, std::byte*), const Arguments& arguments, int threads,
            Memory& memory) {
  const KernelTable<T>& table = kernels<T>();
  const int groups = (arguments.launch.worlds + table.lanes - 1) / table.lanes;
  const int parts = std::min(threads, groups);
  const std::size_t bytes = (table.scratch_bytes(arguments.launch.topology) + 4095) / 4096 * 4096;
  const std::shared_ptr<std::byte> scratch = memory.allocate(bytes * parts);
  parallel_for(threads, groups,
               [&](Range range, int part) { kernel(arguments, range.begin, range.end, scratch.get() + bytes * part); });
}

template <class T>
Launch<T> launch_of(const Topology& topology, const Buffer<T>& constants, double time_step, int steps,
                    const Buffer<T>& like, int first_step = 0) {
  const bool per_world = constants.rows() > 1;
  return {view_of(topology), constants.row(0), per_world, T(time_step), steps, like.stride(), like.worlds(), first_step};
}

/// The model, its constants and what was asked for, as they were. Shares nothing with the model that can change.
template <class T>
struct Recorded {
  std::shared_ptr<const Model> model;
  Parameters direction;
  bool has_direction = false;
  bool parameters = false;  ///< somebody asked for a parameter's gradient
  Buffer<T> constants;
  RolloutOptions options;

  Recorded(const Model& m, Buffer<T> c, const RolloutOptions& o)
      : model(make_pooled<Model>(m)), constants(std::move(c)), options(o) {
    for (const Field& field : fields()) parameters = parameters || field.in(m).any_requires_grad();
    if (o.direction) {
      direction = *o.direction;
      has_direction = true;
    }
    options.direction = nullptr;
  }
  const Parameters* direction_or_null() const { return has_direction ? &direction : nullptr; }
  /// Rows for the cotangents of the constants of every world; empty when no parameter was asked for.
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

/// Link indices of bodies. Throws Error (usage) for one that is not there.
PoolVector<int> links_of(const Model& model, std::span<const int> bodies);

/// World poses of links in every state of q, as body_poses().
template <class T>
Buffer<T> poses_of(const Model& model, const Buffer<T>& constants, const Buffer<T>& q, const PoolVector<int>& links,
                   const RolloutOptions& options, Memory& memory);

/// Cotangents of q from those of its poses. Adds those of the constants to `constants_bar` when `resume` says that it
/// holds what later states left, else puts them there; it may be empty.
template <class T>
Buffer<T> poses_adjoint(const Recorded<T>& recorded, const Buffer<T>& q, const PoolVector<int>& links,
                        const Buffer<T>& poses_bar, Buffer<T>& constants_bar, bool resume, Memory& memory);

}  // namespace backdrive
