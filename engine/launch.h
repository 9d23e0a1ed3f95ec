#pragma once
// Work on many indices at once, where the numbers live: the same function object runs on the host's threads, as threads
// of a GPU, or on a GPU that the processor plays.
#include "engine/cuda_backend.h"
#include "engine/device.h"
#include "engine/dual.h"
#include "engine/error.h"
#include "engine/parallel.h"
#include "engine/real.h"

namespace backdrive {

/// f(i) for i < count on a CUDA device. Defined in cuda_launch.cuh, instantiated in the .cu files for the functors that
/// they list.
template <class F>
void launch_cuda(DeviceBackend& backend, std::int64_t count, const F& f);

/// Dual numbers are the processor's: function objects for them are not compiled for GPUs.
template <class F>
constexpr bool kOnDevices = true;
template <template <class> class F, class T>
constexpr bool kOnDevices<F<Dual<T>>> = false;

/// Calls f(i) for every i below `count` on the device, whose memory all pointers in the function object are to; it is
/// copied. Returns at once. Throws Error (usage) for dual numbers.
template <class F>
void launch_on_device(DeviceBackend& backend, [[maybe_unused]] std::int64_t count, [[maybe_unused]] const F& f) {
  if constexpr (!kOnDevices<F>) {
    usage_error("dual numbers on " + to_string(backend.device()) + ", expected buffers of the host");
  } else {
#if BACKDRIVE_HAS_EMULATED_DEVICE
    if (count > 0 && backend.device().kind == DeviceKind::emulated) {
      return static_cast<EmulatedBackend&>(backend).launch([f, count] {
        for (std::int64_t i = 0; i < count; ++i) f(i);
      });
    }
#endif
#if BACKDRIVE_HAS_CUDA
    if (count > 0) launch_cuda(backend, count, f);
#endif
  }
}

/// Calls f(i) for every i below `count` on the device or, where `backend` is null, on threads of the host (on several:
/// count below 2³¹).
template <class F>
void for_each_index(DeviceBackend* backend, int threads, std::int64_t count, const F& f) {
  if (backend) return launch_on_device(*backend, count, f);
  if (threads == 1) {
    for (std::int64_t i = 0; i < count; ++i) f(i);
    return;
  }
  parallel_for(threads, static_cast<int>(count), [&](Range range) {
    for (int i = range.begin; i < range.end; ++i) f(i);
  });
}

}  // namespace backdrive
