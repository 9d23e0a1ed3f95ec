#include "autodiff/tape/stepper.h"

#include "autodiff/tape/recorded.h"
#include "autodiff/tape/rollout_node.h"
#include "engine/buffer_kernels.h"
#include "engine/error.h"
#include "engine/launch.h"

namespace backdrive {

template <class T>
struct Stepper<T>::Batch {
  Batch(const Model& m, State<T> s, Control<T> c, double dt, Memory& shared, int threads)
      : model(snapshot(m)),
        memory(shared),
        kernel_model(model, nullptr, s.q.worlds(), memory),
        control(std::move(c)),
        status(s.q.worlds(), memory),
        steps(memory, 1, 1),
        part({0, 1, false}, s, model, memory) {
    part.end = s;
    if (!part.end_reported.empty()) {
      part.end_reported.copy_from(part.begin_reported.empty() ? s.qd : part.begin_reported);
      part.begin_reported = part.end_reported;
    }
    if (!part.end_ways.empty()) {
      if (part.begin_ways.empty()) {
        part.end_ways.fill(T(kUnknownWay));
      } else {
        part.end_ways.copy_from(part.begin_ways);
      }
      part.begin_ways = part.end_ways;
    }
    options.time_step = dt;
    options.threads = threads;
    options.steps = 1;
    // Larger trees ask for memory at each launch, which a graph cannot.
    DeviceBackend* const backend = memory.backend();
    if (backend && !needs_memory(kernel_model.tree, kernel_model.tables.has_value()))
      graph = backend->record([this] { tell(); });
  }

  void tell() {
    run_part({kernel_model, control, options, status, memory, steps.address()}, part);
    for_each_index(memory.backend(), 1, 1, CountUp{steps.write_address()});
  }

  Model model;
  Memory memory;
  KernelModel<T> kernel_model;
  Control<T> control;
  WorldStatuses status;
  Buffer<int> steps;
  RolloutOptions options;
  RolloutPart<T> part;
  std::unique_ptr<DeviceGraph> graph;
};

template <class T>
Stepper<T>::Stepper(const Model& model, State<T> state, Control<T> control, double time_step, Memory& memory,
                    int threads) {
  RolloutOptions options;
  options.time_step = time_step;
  check_rollout(model, state, control, options);
  Memory& own = memory_for(state.q, memory);
  batch_ = std::make_unique<Batch>(model, std::move(state), std::move(control), time_step, own, threads);
}
template <class T>
Stepper<T>::~Stepper() = default;
template <class T>
Stepper<T>::Stepper(Stepper&&) noexcept = default;
template <class T>
Stepper<T>& Stepper<T>::operator=(Stepper&&) noexcept = default;

template <class T>
void Stepper<T>::step() {
  if (!batch_->graph) return batch_->tell();
  batch_->status.write_address();  // what the host knew of it is out of date
  batch_->graph->launch();
}

template <class T>
const State<T>& Stepper<T>::state() const {
  return batch_->part.end;
}
template <class T>
Buffer<T>& Stepper<T>::control() {
  return batch_->control.u;
}
template <class T>
const WorldStatuses& Stepper<T>::status() const {
  return batch_->status;
}

template class Stepper<float>;
template class Stepper<double>;

}  // namespace backdrive
