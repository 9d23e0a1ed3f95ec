#pragma once
// A batch that is stepped in place, for policies in the loop.
#include <memory>

#include "autodiff/tape/rollout.h"

namespace backdrive {

/// Advances states step by step, the fastest way there is: on a device one call repeats a recorded graph. Nothing is on
/// a tape; for gradients through steps see step() and rollout(). Parameters are those of the model as it was when this
/// was made. What a step does has the same bits as a step of a rollout.
template <class T>
class Stepper {
 public:
  /// Takes over `state`, whose numbers it changes. `control` is read at every step and holds one step's channels;
  /// empty: no effort. Both lie where `memory` is. Throws Error (usage) when shapes or devices do not agree.
  Stepper(const Model& model, State<T> state, Control<T> control, double time_step, Memory& memory = default_memory(),
          int threads = 1);
  ~Stepper();
  Stepper(Stepper&&) noexcept;
  Stepper& operator=(Stepper&&) noexcept;

  /// One step of all worlds. On a device it returns before it is done, after whatever the device was told before.
  void step();
  const State<T>& state() const;
  /// To write the next controls into: through write() on the host; on a device by kernels or copy_from().
  Buffer<T>& control();
  /// Steps are counted from the first one.
  const WorldStatuses& status() const;

 private:
  struct Batch;
  std::unique_ptr<Batch> batch_;
};

}  // namespace backdrive
