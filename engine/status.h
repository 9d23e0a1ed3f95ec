#pragma once
#include <memory>

#include "engine/memory.h"
#include "engine/pool_containers.h"
#include "engine/real.h"

namespace backdrive {

/// How a world fared. A world that becomes non-finite stops: its state stays what it was before that step, the others
/// go on.
struct WorldStatus {
  int stopped_step = -1;   ///< step whose result was not finite; −1: none
  int joint = -1;          ///< joint (index in the model) whose acceleration or state was not finite
  int unsolved_step = -1;  ///< first step whose contact was not solved, which it went on from; −1: none

  constexpr bool stopped() const { return stopped_step >= 0; }
};

/// One per world, where the worlds are computed; none has stopped at first. A handle: copies share what a device has.
/// The host's first look at those of a device after write_address() waits for it.
class WorldStatuses {
 public:
  explicit WorldStatuses(std::size_t worlds = 0, Memory& memory = default_memory());

  std::size_t size() const { return worlds_; }
  const WorldStatus& operator[](std::size_t world) const { return on_host()[world]; }
  const WorldStatus* begin() const { return on_host().data(); }
  const WorldStatus* end() const { return begin() + worlds_; }
  bool any_stopped() const;
  int count_stopped() const;
  /// Keeps the first stop of each world: the own one where there is one, else that of `other`. Both on one device.
  void merge(const WorldStatuses& other);

  DeviceBackend* backend() const { return backend_; }
  /// For kernels.
  const WorldStatus* address() const;
  WorldStatus* write_address();

 private:
  PoolVector<WorldStatus>& on_host() const;

  std::size_t worlds_;
  DeviceBackend* backend_;
  std::shared_ptr<std::byte> block_;  ///< on a device
  mutable bool stale_ = false;        ///< host_ is not what the device has
  mutable PoolVector<WorldStatus> host_;
};

/// Kernel of WorldStatuses::merge().
struct MergeStatus {
  WorldStatus* to;
  const WorldStatus* from;
  BACKDRIVE_HD void operator()(int world) const {
    const int unsolved = to[world].unsolved_step >= 0 ? to[world].unsolved_step : from[world].unsolved_step;
    if (!to[world].stopped()) to[world] = from[world];
    to[world].unsolved_step = unsolved;
  }
};

}  // namespace backdrive
